"""Graphs in memory give the answers of a Parquet file with the same edges."""

from __future__ import annotations

import tempfile
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

import delegraph
from delegraph.partition.errors import InputError
from delegraph.pipeline.edge_sources import pairs
from support.marks import mostly_slow

duckdb = pytest.importorskip("duckdb")
nx = pytest.importorskip("networkx")
pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")
sparse = pytest.importorskip("scipy.sparse")

INTEGERS = st.integers(0, 6)
IDS = {
    "int64": st.one_of(INTEGERS, st.integers(-(2**63), 2**63 - 1)),
    "uint64": st.one_of(INTEGERS, st.integers(0, 2**64 - 1)),
    "string": st.one_of(st.sampled_from("abcdef"), st.text(max_size=3)),
}
TYPES = {"int64": pa.int64(), "uint64": pa.uint64(), "string": pa.string()}


class Drawn(NamedTuple):
    """A graph. edges: with weights. lone: vertices without edges."""

    id_type: str
    edges: list[tuple[Any, Any, int]]
    lone: list[Any]
    directed: bool
    weighted: bool

    @property
    def rows(self) -> list[tuple[Any, Any, int]]:
        """The edges, and a self-loop for each lone vertex."""
        return [*self.edges, *((vertex, vertex, 0) for vertex in self.lone)]

    @property
    def options(self) -> dict[str, Any]:
        return {"directed": self.directed, **({"weight": "weight"} if self.weighted else {})}


@st.composite
def graphs(draw, ids=None, distinct=False) -> Drawn:
    """Draw a graph, perhaps with loops, rows that repeat an edge, and lone vertices."""
    id_type = draw(st.sampled_from(sorted(IDS))) if ids is None else "int64"
    ends = draw(st.lists(IDS[id_type] if ids is None else ids, min_size=1, max_size=7, unique=True))
    one = st.sampled_from(ends)
    edges = draw(
        st.lists(
            st.tuples(one, one, st.integers(1, 9)),
            max_size=12,
            unique_by=(lambda edge: edge[:2]) if distinct else None,
        )
    )
    met = {end for edge in edges for end in edge[:2]}
    lone = [end for end in ends if end not in met]
    return Drawn(id_type, edges, lone, draw(st.booleans()), draw(st.booleans()))


def table_of(drawn: Drawn) -> pa.Table:
    src, dst, weight = zip(*drawn.rows, strict=True)
    kind = TYPES[drawn.id_type]
    return pa.table({"src": pa.array(src, kind), "dst": pa.array(dst, kind), "weight": weight})


def answers(graph: Any, source: Any, weighted: bool, **options: Any) -> list[pa.Table]:
    """Return components, ranks, and distances from a vertex."""
    with delegraph.open(graph, device="cpu", threads=1, **options) as opened:
        search = opened.sssp(source) if weighted else opened.bfs(source)
        return [
            opened.components().table,
            opened.pagerank(iterations=3).table,
            search.table.select(["vertex", "distance"]),
        ]


def from_parquet(drawn: Drawn) -> list[pa.Table]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "edges.parquet"
        pq.write_table(table_of(drawn), path)
        return answers(path, drawn.rows[0][0], drawn.weighted, **drawn.options)


def assert_same(graph: Any, drawn: Drawn, **options: Any) -> None:
    found = answers(graph, drawn.rows[0][0], drawn.weighted, **{**drawn.options, **options})
    for one, other in zip(found, from_parquet(drawn), strict=True):
        assert one.column_names == other.column_names
        for name in one.column_names:
            assert one[name].to_pylist() == other[name].to_pylist()


def pairs_of(drawn: Drawn) -> list[tuple[Any, ...]]:
    return drawn.rows if drawn.weighted else [row[:2] for row in drawn.rows]  # pyright: ignore


def array_of(drawn: Drawn) -> np.ndarray:
    kind = {"int64": np.int64, "uint64": np.uint64, "string": np.str_}[drawn.id_type]
    return np.array([row[:2] for row in drawn.rows], kind)


def relation_of(drawn: Drawn) -> Any:
    table = table_of(drawn)
    connection = duckdb.connect()
    connection.register("edges", table)
    return connection.sql("select * from edges")


TABLES = {
    "table": table_of,
    "reader": lambda drawn: table_of(drawn).to_reader(),
    "pandas": lambda drawn: table_of(drawn).to_pandas(),
    "polars": lambda drawn: polars.from_arrow(table_of(drawn)),
    "duckdb": relation_of,
}
PAIRS = {
    "list": pairs_of,
    "iterator": lambda drawn: iter(pairs_of(drawn)),
    "lists": lambda drawn: [list(pair) for pair in pairs_of(drawn)],
}


@pytest.mark.parametrize("kind", mostly_slow({**TABLES, **PAIRS}, "pandas", "duckdb", "list"))
@settings(max_examples=10)
@given(drawn=graphs())
def test_tables_and_pairs(kind, drawn):
    assert_same({**TABLES, **PAIRS}[kind](drawn), drawn)


@given(drawn=graphs())
def test_arrays(drawn):
    drawn = drawn._replace(weighted=False)
    assume_no_nul(drawn)
    assert_same(array_of(drawn), drawn)


def assume_no_nul(drawn: Drawn) -> None:
    """Leave out texts that end with NUL, which arrays of NumPy cut off."""
    for row in drawn.rows:
        if drawn.id_type == "string" and any(end.endswith("\0") for end in row[:2]):
            pytest.skip("NumPy cuts off NUL")


def networkx_of(drawn: Drawn, kind: type) -> Any:
    graph = kind()
    graph.add_nodes_from(drawn.lone)
    for u, v, weight in drawn.edges:
        graph.add_edge(u, v, weight=weight)
    return graph


@given(drawn=graphs())
def test_multigraphs_of_networkx(drawn):
    """A multigraph is directed if it is, whether or not the caller says so."""
    graph = networkx_of(drawn, nx.MultiDiGraph if drawn.directed else nx.MultiGraph)
    assert_same(graph, drawn)
    assert_same(graph, drawn, directed=None)


@given(drawn=graphs(distinct=True))
def test_graphs_of_networkx(drawn):
    """A directed graph may be read as undirected; an undirected one that is read as directed has
    each edge in both directions.
    """
    assert_same(networkx_of(drawn, nx.DiGraph), drawn)
    graph = networkx_of(drawn, nx.Graph)
    both = [(u, v, data["weight"]) for u, v, data in graph.edges(data=True)]
    both += [(v, u, weight) for u, v, weight in both if u != v]
    assert_same(graph, drawn._replace(edges=both))


def test_attributes_of_networkx():
    graph = nx.Graph([("a", "b", {"km": 2.5}), ("b", "c")])
    assert delegraph.sssp(graph, "a", weight="km")["distance"].to_pylist() == [0, 2.5, 3.5]
    with pytest.raises(InputError, match="no edge of the graph has the attribute 'miles'"):
        delegraph.sssp(graph, "a", weight="miles")
    graph.add_edge("c", "d", km="far")
    with pytest.raises(InputError, match="the weight 'far' is no number"):
        delegraph.sssp(graph, "a", weight="km")
    view = graph.subgraph(["a", "b"])
    assert delegraph.bfs(view, "a").distance.to_pylist() == [0, 1]


@pytest.mark.parametrize(
    "format", mostly_slow(["coo", "csr", "csc", "bsr", "dia", "dok", "lil"], "csr", "dia")
)
@settings(max_examples=8)
@given(data=st.data())
def test_sparse_matrices(format, data):
    """Each vertex up to the last one is in the graph; COO may repeat an entry."""
    drawn = data.draw(graphs(INTEGERS, distinct=format != "coo"))
    size = 1 + max(max(row[:2]) for row in drawn.rows)
    met = {end for edge in drawn.edges for end in edge[:2]}
    drawn = drawn._replace(lone=[vertex for vertex in range(size) if vertex not in met])
    src, dst, weights = zip(*drawn.edges, strict=True) if drawn.edges else ((), (), ())
    ends = np.array(src, np.int32), np.array(dst, np.int32)
    make = data.draw(st.sampled_from([sparse.coo_array, sparse.coo_matrix]))
    matrix = make((np.array(weights, np.int64), ends), shape=(size, size))
    assert_same(matrix.asformat(format), drawn)


@pytest.mark.parametrize("format", ["coo", "csr", "csc", "dok", "lil"])
def test_zeros_are_entries(format):
    matrix = sparse.coo_array((np.array([0.0, 2.0]), ([0, 1], [1, 2])), shape=(3, 3))
    found = delegraph.sssp(matrix.asformat(format), 0, weight="weight")
    assert found["distance"].to_pylist() == [0, 0, 2]


@pytest.mark.parametrize("format", ["bsr", "dia"])
def test_zeros_fill_up_some_formats(format):
    matrix = sparse.coo_array((np.array([1.0, 2.0]), ([0, 1], [1, 3])), shape=(4, 4))
    found = delegraph.components(matrix.asformat(format))
    assert found["component"].to_pylist() == [0, 0, 2, 0]


def test_many_entries(monkeypatch):
    """Batches of one entry have the edges of a whole matrix."""
    monkeypatch.setattr("delegraph.pipeline.edge_sources.matrices._AT_ONCE", 1)
    matrix = sparse.random_array((20, 20), density=0.1, rng=np.random.default_rng(1))
    for format in ("coo", "csr", "csc"):
        with delegraph.open(matrix.asformat(format), directed=True) as graph:
            found = graph.components()["component"].to_pylist()
        wanted = sparse.csgraph.connected_components(matrix, directed=False)[1]
        first = {number: vertex for vertex, number in reversed([*enumerate(wanted.tolist())])}
        assert found == [first[number] for number in wanted.tolist()]


def test_wider_types_come_later(monkeypatch):
    """A later batch may need wider types than the first one."""
    monkeypatch.setattr(pairs, "_AT_ONCE", 1)
    edges = [(1, 2, 3), (2, 3, 0.5), (2**63, 1, 1), (5, 1, 2), (1, 2, 7)]
    found = delegraph.sssp(iter(edges), 1, weight="weight")
    assert found["vertex"].to_pylist() == [1, 2, 3, 5, 2**63]
    assert found["distance"].to_pylist() == [0, 3, 3.5, 2, 1]
    for more, told in (
        (("a", "b"), "all integers, all strings or all UUIDs"),
        ((-1, 1), "64 bits holds all"),
    ):
        with pytest.raises(InputError, match=told):
            delegraph.components([(1, 2), (2**63, 1), more])
        with pytest.raises(InputError, match=told):
            delegraph.components([(1, 2), more, (2**63, 1)])


class Nodes:
    """A node that is neither an integer nor a string."""


WRONG: list[tuple[Any, dict[str, Any], str]] = [
    ([(1, 2), 3], {}, r"edge 1 is 3: give \(u, v\) or \(u, v, weight\)"),
    (["ab"], {}, r"edge 0 is 'ab': give \(u, v\)"),
    ([(1, 2), (1, 2, 3)], {}, "the first edge has 2 parts"),
    ([(1, 2)], {"weight": "weight"}, "the pairs have no weights"),
    ([(1, 2, 3)], {"weight": "km"}, "are named 'weight', not 'km'"),
    ([(1, 2)], {"src": "a", "dst": "b"}, "only a table has names of columns"),
    ([(1, 2.5)], {}, r"2.5.* \(float\) cannot be a vertex"),
    ([(True, 1)], {}, r"\(bool\) cannot be a vertex"),
    ([(None, 1)], {}, r"\(NoneType\) cannot be a vertex"),
    ([(1, "a")], {}, "all integers, all strings or all UUIDs: there are both 'a' and 1"),
    ([(-1, 2**63)], {}, "64 bits holds all ids"),
    ([(1, 2, "far")], {"weight": "weight"}, "the weight 'far' is no number"),
    (np.zeros((2, 3), int), {}, r"shape \(2, 3\)"),
    (np.zeros(4, int), {}, r"shape \(4,\)"),
    (np.zeros((2, 2), int), {"weight": "weight"}, "has no weights"),
    (np.zeros((2, 2)), {}, r"\(float\) cannot be a vertex"),
    (np.ma.masked_array(np.zeros((2, 2), int)), {}, "masked"),
    (sparse.csr_array((2, 3)), {}, r"shape \(2, 3\)"),
    (sparse.eye_array(2, dtype=complex), {"weight": "weight"}, "must be real numbers"),
    (sparse.eye_array(2), {"weight": "km"}, "are named 'weight', not 'km'"),
    (nx.Graph([((0, 1), (1, 2))]), {}, r"\(tuple\) cannot be a vertex"),
    (nx.Graph([(1, "a")]), {}, "all integers, all strings or all UUIDs"),
    (nx.Graph([(Nodes(), 1)]), {}, r"\(Nodes\) cannot be a vertex"),
]


@pytest.mark.parametrize(("graph", "options", "told"), WRONG, ids=range(len(WRONG)))
def test_wrong_graphs(graph, options, told):
    with pytest.raises(InputError, match=told) as error:
        delegraph.open(graph, **options)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "empty", [[], iter(()), np.zeros((0, 2), int), nx.Graph(), sparse.coo_array((0, 0))]
)
def test_empty_graphs(empty):
    with pytest.raises(InputError, match="zero rows: a graph without vertices cannot be searched"):
        delegraph.components(empty)


def test_open_graphs_name_their_kind():
    with delegraph.open(nx.path_graph(3)) as graph:
        assert graph.location == "Graph in memory"
        with pytest.raises(InputError, match="Graph in memory was opened without weights"):
            graph.sssp(0)


def test_other_objects():
    """Objects that hold edges, but no rows, are told apart from what is no graph."""
    assert delegraph.components(nx.path_graph(3).edges)["vertex"].to_pylist() == [0, 1, 2]
    with pytest.raises(TypeError, match="LazyFrame has no rows yet"):
        delegraph.components(polars.LazyFrame({"src": [1], "dst": [2]}))
    with pytest.raises(InputError, match="is no relation of DuckDB: give one"):
        delegraph.components(duckdb.connect())


def test_errors_of_an_iterator_are_its_own():
    def edges():
        yield 1, 2
        raise ValueError("a bug of the caller")

    with pytest.raises(ValueError, match=r"^a bug of the caller$"):
        delegraph.components(edges())
    with pytest.raises(InputError, match=r"Parquet cannot hold the edges: .*surrogates"):
        delegraph.components([("\ud800", "b")])


def test_errors_name_the_graph():
    """Errors about the temporary file do not name it."""
    with pytest.raises(InputError, match=r"^the graph: .*weights must be numbers from 0"):
        delegraph.sssp([(1, 2, -0.5)], 1, weight="weight")
    with pytest.raises(InputError, match=r"^the graph: .*integer weights must be from 0"):
        delegraph.build([(1, 2, 2**63)], "unused.dg", weight="weight")
    assert not Path("unused.dg").exists()


@pytest.mark.parametrize(
    "one", [[(7, 7)], np.array([[7, 7]]), nx.Graph([(7, 7)]), nx.empty_graph([7])]
)
def test_one_vertex(one):
    assert delegraph.components(one).table.to_pydict() == {"vertex": [7], "component": [7]}


def test_one_vertex_of_a_matrix():
    for matrix in (sparse.coo_array((1, 1)), sparse.eye_array(1)):
        assert delegraph.components(matrix)["vertex"].to_pylist() == [0]


class Relation:
    """A relation as older versions of DuckDB have it, without an Arrow stream."""

    __module__ = "duckdb.duckdb"

    def __init__(self, table: pa.Table, method: str) -> None:
        self.columns = table.column_names
        self.table = table
        rows = table if method == "arrow" else table.to_reader()
        setattr(self, method, lambda: rows)


@pytest.mark.parametrize("method", ["fetch_arrow_reader", "fetch_record_batch", "arrow"])
def test_older_relations(method):
    relation = Relation(pa.table({"src": [1], "dst": [2]}), method)
    assert delegraph.components(relation)["component"].to_pylist() == [1, 1]  # pyright: ignore


def test_relations():
    """DuckDB computes the columns of edges only, with whatever names; its errors are told."""
    connection = duckdb.connect()
    relation = connection.sql(
        """select 1 as "from ""here", 2 as "to", error('computed') as other"""
    )
    found = delegraph.components(relation, src='from "here', dst="to")
    assert found["component"].to_pylist() == [1, 1]
    with pytest.raises(InputError, match="no column named 'src'; it has a"):
        delegraph.components(connection.sql("select 1 as a"))
    with pytest.raises(InputError, match="oh no"):
        delegraph.components(connection.sql("select error('oh no')::int as src, 1 as dst"))


def test_stores_of_pairs(tmp_path):
    """``build``, and a question with an output, take pairs, and begin anew each time."""
    built = delegraph.build([(1, 2), (2, 3)], tmp_path / "graph.dg")
    assert built.store.info.vertices == 3
    found = delegraph.components(nx.DiGraph([(1, 2)]), output=tmp_path / "out")
    assert found.record["graph"]["directed"]


def test_pairs_are_read_in_batches(monkeypatch):
    """No more than a batch of an iterator's edges is in memory."""
    alive = 0

    class Edge(tuple):
        def __new__(cls, ends):
            nonlocal alive
            alive += 1
            return super().__new__(cls, ends)

        def __del__(self):
            nonlocal alive
            alive -= 1

    most = 0

    def edges():
        nonlocal most
        for number in range(100):
            most = max(most, alive)
            yield Edge((number, number + 1))

    monkeypatch.setattr(pairs, "_AT_ONCE", 10)
    assert len(delegraph.components(edges())) == 101
    assert 10 <= most <= 20


def test_uuids_of_pairs_and_networkx():
    one, two, three = (UUID(int=number) for number in (1, 2, 2**127))
    graph = nx.Graph([(one, two)])
    graph.add_node(three)
    for source in ([(one, two), (three, three)], graph, np.array([(one, two), (three, three)])):
        found = delegraph.components(source)
        assert found.top() == [(one, 2), (three, 1)]
    with pytest.raises(InputError, match="must be all integers, all strings or all UUIDs"):
        delegraph.components([(one, 2)])


@pytest.mark.parametrize("number", [Decimal("1.5"), Fraction(3, 2), 1.5, np.float32(1.5)], ids=str)
def test_weights_of_any_number(number):
    assert delegraph.sssp([(0, 1, number), (1, 2, 1)], 0, weight="weight").top() == [
        (2, 2.5),
        (1, 1.5),
        (0, 0.0),
    ]


def test_messages_about_tables_that_are_none(tmp_path):
    with pytest.raises(InputError, match=r"^Series is no table: give a frame with the columns"):
        delegraph.components(pandas.Series([1, 2]))
    with pytest.raises(InputError, match="column 'src' holds nulls: every row") as raised:
        delegraph.components(pandas.DataFrame({"src": [1, None], "dst": [2, 3]}))
    assert "row group" not in str(raised.value)
    delegraph.build([(0, 1)], tmp_path / "graph.dg")
    with pytest.raises(InputError, match=r"leave out directed=True$"):
        delegraph.components(tmp_path / "graph.dg", directed=True)
