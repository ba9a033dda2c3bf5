"""Self-loops that a store keeps: their weights match a plain definition, their bytes are the same
however a store is built, and questions that count them do so wherever the graph is.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.sparse import load_npz

import delegraph
from delegraph.kernels.base.team import Team
from delegraph.partition.errors import InputError
from delegraph.partition.input.arrow import as_numpy
from delegraph.partition.store import shards
from delegraph.partition.store.store import open_store
from delegraph.pipeline.algorithms.pagerank import PageRankProgram
from delegraph.pipeline.api import build
from delegraph.pipeline.engines.operations.program import CountsLoopsOnCpus
from delegraph.pipeline.questions import FORMS
from delegraph.pipeline.run.resources import Resources
from support.graphs import write_in_parts
from support.marks import slow
from support.stores import edit_manifest, sealed

TEAM = Team(1)
COUNTING = ("pagerank", "hits", "eigenvector", "katz", "degree", "leiden", "louvain")


@pytest.fixture
def command(request):
    """Return a function that runs the command line."""
    return request.getfixturevalue("delegraph")


def looped(seed: int, kind: str, rows: int = 4000, vertices: int = 300):
    """Return edges of which every third is a self-loop, as ids and weights; some weights are 0."""
    rng = np.random.default_rng(seed)
    src, dst = (rng.integers(0, vertices, rows) ** 2 // vertices for _ in range(2))
    dst[::3] = src[::3]
    if kind == "uint32":
        return src, dst, rng.integers(0, 3, rows)
    return src, dst, (rng.integers(0, 3, rows) * 2.0 ** rng.integers(-40, 40, rows)).astype("f4")


def defined(src, dst, weight, duplicates: str) -> dict[int, float]:
    """Return the weight of each vertex's self-loops by definition; vertices without any have
    none.
    """
    weights: dict[int, list[float]] = {}
    for u, v, w in zip(src.tolist(), dst.tolist(), weight.tolist(), strict=True):
        if u == v:
            weights.setdefault(u, []).append(w)
    fold = {"min": min, "max": max, "sum": lambda values: float(np.float32(sum(sorted(values))))}
    found = {vertex: fold[duplicates](values) for vertex, values in weights.items()}
    return {vertex: loop for vertex, loop in found.items() if loop}


def kept(path: Path) -> dict[int, float]:
    """Return the weight of the self-loops of each vertex of a store that has any."""
    store = open_store(path)
    found = store.loops(TEAM)
    assert (found is None) == (not store.info.loops)
    if found is None:
        return {}
    table = store.vertices(TEAM, ["vertex", "global_id", "loop"])
    assert len(found.numbers) == store.info.loops
    assert (as_numpy(table["global_id"])[found.numbers] == found.vertices).all()
    assert (as_numpy(table["loop"])[found.numbers] == found.weights).all()
    vertices = as_numpy(table["vertex"])[found.numbers].tolist()
    return dict(zip(vertices, found.weights.tolist(), strict=True))


@pytest.mark.parametrize("duplicates", ["min", "max", "sum"])
@pytest.mark.parametrize("kind", ["float32", "uint32"])
@pytest.mark.parametrize(
    "shape",
    [
        {},
        {"directed": True, "partitions": 3, "threshold": 12, "order": "none"},
        slow({"partitions": 4, "layout": "2d", "order": "random"}),
    ],
    ids=str,
)
def test_weights_are_what_rows_say(edge_list, tmp_path, duplicates, kind, shape):
    src, dst, weight = looped(1, kind)
    edges = edge_list(src, dst, w=weight)
    reading: dict[str, Any] = {"weight": "w", "duplicates": duplicates, "device": "cpu"}
    build(edges, tmp_path / "graph.dg", loops="keep", **reading, **shape)
    wanted = defined(src, dst, weight, duplicates)
    found = kept(tmp_path / "graph.dg")
    assert found.keys() == wanted.keys()
    np.testing.assert_allclose([found[vertex] for vertex in wanted], [*wanted.values()], rtol=1e-6)
    build(edges, tmp_path / "without.dg", **reading, **shape)
    assert open_store(tmp_path / "without.dg").info.loops is None
    for file in (tmp_path / "graph.dg").rglob("*.npy"):  # edges and their weights stay the same
        other = tmp_path / "without.dg" / file.relative_to(tmp_path / "graph.dg")
        assert file.read_bytes() == other.read_bytes()


def test_without_weights(edge_list, tmp_path):
    """Each vertex with a self-loop keeps 1, whatever its id."""
    edges = edge_list([7, 7, 7, 2**60], [7, 7, -3, 2**60])
    build(edges, tmp_path / "graph.dg", loops="keep")
    assert kept(tmp_path / "graph.dg") == {7: 1, 2**60: 1}
    names = edge_list(["b", "a", "a"], ["b", "b", "c"], name="names.parquet")
    build(names, tmp_path / "names.dg", loops="keep")
    table = pq.read_table(tmp_path / "names.dg" / "vertices.parquet")
    assert table["vertex"].to_pylist() == ["a", "b", "c"]
    assert table["loop"].to_pylist() == [0, 1, 0]
    build(edge_list([0], [1], name="none.parquet"), tmp_path / "none.dg", loops="keep")
    assert open_store(tmp_path / "none.dg").info.loops == 0
    assert kept(tmp_path / "none.dg") == {}


@pytest.mark.parametrize("duplicates", [None, "min", "sum"])
def test_bytes_do_not_depend_on_how_it_is_built(tmp_path, monkeypatch, duplicates):
    src, dst, weight = looped(3, "float32", rows=20_000)
    folder = tmp_path / "edges"
    write_in_parts(folder, src, dst, weight)
    stores = []
    reading: dict[str, Any] = {}
    if duplicates is not None:
        reading = {"weight": "w", "duplicates": duplicates}
    ways: list[dict[str, Any]] = [{"threads": 1}, {"threads": 4}, {"least": 0}, {"least": 40}]
    for way in ways:
        if "least" in way:
            monkeypatch.setattr(shards, "GATHER_EDGES", way.pop("least") or shards.GATHER_EDGES)
            way["scratch"] = str(tmp_path / f"scratch-{len(stores)}")
            Path(way["scratch"]).mkdir()
        place = tmp_path / f"graph-{len(stores)}.dg"
        build(folder, place, loops="keep", device="cpu", **reading, **way)
        files = sorted(file for file in place.rglob("*") if file.is_file())
        stores.append({str(file.relative_to(place)): file.read_bytes() for file in files})
    assert all(files == stores[0] for files in stores)


@pytest.mark.slow
def test_the_same_bytes_by_workers(tmp_path, edge_list, ok):
    src, dst, weight = looped(3, "uint32", rows=20_000)
    edges = edge_list(src, dst, w=weight)
    shape = "--weight", "w", "--loops", "keep", "--partitions", 3
    for name, flags in (("alone", []), ("together", ["--workers", 2])):
        ok("build", edges, "-o", tmp_path / f"{name}.dg", *shape, *flags)
        ok("pagerank", tmp_path / f"{name}.dg", "-o", tmp_path / name, *flags)
        ok("validate", tmp_path / f"{name}.dg", tmp_path / name)
    for file in (tmp_path / "alone.dg").rglob("*.*"):
        if file.is_file():
            other = tmp_path / "together.dg" / file.relative_to(tmp_path / "alone.dg")
            assert file.read_bytes() == other.read_bytes(), file


def test_a_sum_that_is_too_large(edge_list, tmp_path):
    edges = edge_list([1, 1, 1], [1, 1, 2], w=[2**31, 2**31, 1])
    reading: dict[str, Any] = {"weight": "w", "loops": "keep", "duplicates": "sum"}
    with pytest.raises(InputError, match="add up to more than 32 bits can hold"):
        build(edges, tmp_path / "graph.dg", **reading)
    assert not (tmp_path / "graph.dg").exists()
    reading["duplicates"] = "max"
    build(edges, tmp_path / "graph.dg", **reading)
    assert kept(tmp_path / "graph.dg") == {1: 2**31}


def test_another_store_is_not_taken_for_it(edge_list, tmp_path, command):
    edges, store = edge_list([1, 1], [1, 2]), tmp_path / "graph.dg"
    assert command("build", edges, "-o", store).code == 0
    refused = command("build", edges, "-o", store, "--loops", "keep")
    assert refused.code == 2
    assert "built differently: --loops" in refused.err
    assert command("build", edges, "-o", store, "--loops", "keep", "--overwrite").code == 0
    again = command("build", edges, "-o", store, "--loops", "keep")
    assert (again.code, "already built" in again.err) == (0, True)
    assert "kept 1 self-loop of 1 vertex" in again.out


def test_an_older_store_keeps_none(edge_list, tmp_path):
    build(edge_list([1, 1], [1, 2]), tmp_path / "graph.dg")

    def older(manifest):
        manifest["format_version"] = 5
        del manifest["graph"]["loops"]

    edit_manifest(tmp_path / "graph.dg", older)
    assert open_store(tmp_path / "graph.dg").info.loops is None
    assert delegraph.degree(tmp_path / "graph.dg").table["degree"].to_pylist() == [1, 1]


@pytest.mark.parametrize(
    ("loops", "told"),
    [
        ([0.5, -1.0], "weights that no store keeps"),
        ([0.5, float("nan")], "weights that no store keeps"),
        ([0.5, float("inf")], "weights that no store keeps"),
        ([0.5, 0.5], "not the 1 self-loops that the manifest tells of"),
        ([0.0, 0.0], "not the 1 self-loops that the manifest tells of"),
    ],
)
def test_damaged_contents(edge_list, tmp_path, loops, told):
    store = tmp_path / "graph.dg"
    build(edge_list([1, 1], [1, 2], w=[0.5, 0.25]), store, weight="w", loops="keep")
    table = pq.read_table(store / "vertices.parquet")
    field = table.schema.field("loop")
    damaged = table.set_column(3, field, pa.array(loops, field.type))
    pq.write_table(damaged, store / "vertices.parquet")
    sealed(store, "vertices.parquet")
    for question in (delegraph.pagerank, delegraph.leiden):
        with pytest.raises(InputError, match=told):
            question(store, device="cpu")


@pytest.mark.parametrize("loops", [-1, 2, "1", 0.5])
def test_a_number_that_no_manifest_has(edge_list, tmp_path, loops):
    build(edge_list([1, 1], [1, 2]), tmp_path / "graph.dg", loops="keep")
    edit_manifest(tmp_path / "graph.dg", lambda manifest: manifest["graph"].update(loops=loops))
    with pytest.raises(InputError, match="loops is"):
        open_store(tmp_path / "graph.dg")


# Questions


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("question", COUNTING)
def test_an_edge_list_and_stores_give_the_same(edge_list, tmp_path, ok, question, weighted):
    """The answer is the same of an edge list, of stores and of an open graph, another one than
    without self-loops, and what NetworkX gives; ``validate`` finds nothing wrong, and finds what
    another graph's answer gets wrong.
    """
    src, dst, weight = looped(5, "uint32", rows=900, vertices=120)
    edges = edge_list(src, dst, w=weight + 1)
    reading = ["--weight", "w"] * weighted
    more = ["--tolerance", 1e-12] if question in ("pagerank", "hits", "eigenvector") else []
    keep = [*reading, "--loops", "keep"]
    for name, shape in (("one", []), ("several", ["--partitions", 3, "--threshold", 8])):
        ok("build", edges, "-o", tmp_path / f"{name}.dg", *keep, *shape)
    tables, records = {}, {}
    for name in ("edges", "one", "several"):
        graph, how = (edges, keep) if name == "edges" else (tmp_path / f"{name}.dg", [])
        out = tmp_path / name
        told = ok(question, graph, "-o", out, *how, *more, "--device", "cpu", "--json").json
        assert told["notes"][0].endswith("self-loops: kept")
        assert told["graph"]["loops"] == len({*src[src == dst].tolist()})
        tables[name] = pq.read_table(out).to_pandas()
        records[name] = told[question]
        judged = (edges, reading) if name == "edges" else (graph, [])
        assert ok("validate", judged[0], out, *judged[1]).out.startswith("valid: ")
    options: dict[str, Any] = {"loops": "keep", **({"weight": "w"} if weighted else {})}
    with delegraph.open(edges, **options) as opened:
        asked = {"tolerance": 1e-12} if more else {}
        tables["open"] = getattr(opened, question)(**asked).table.to_pandas()
    for table in tables.values():
        for column in table.columns:
            np.testing.assert_allclose(table[column], tables["edges"][column], rtol=1e-12)
    dropped = ok(question, edges, "-o", tmp_path / "dropped", *reading, *more, "--json").json
    assert dropped["notes"][0].endswith("delegraph does so with --loops keep")
    check_by_networkx(question, tables["edges"], records["edges"], (src, dst, weight + 1), weighted)
    check_that_loops_matter(tmp_path, question, tables["edges"])


def check_by_networkx(question, table, record, edges, weighted: bool) -> None:
    graph = networkx.Graph()
    for u, v, w in zip(*(column.tolist() for column in edges), strict=True):
        least = min(w, graph[u][v]["weight"]) if graph.has_edge(u, v) else w
        graph.add_edge(u, v, weight=least if weighted else 1)
    values = table.set_index("vertex")
    if question in ("leiden", "louvain"):
        groups = [{*group.index} for _, group in values.groupby("community")]
        assert record["quality"] == pytest.approx(networkx.community.modularity(graph, groups))
        return
    wanted: dict[str, dict]
    if question == "degree":
        wanted = {"degree": dict(graph.degree())}
        if weighted:
            wanted["weighted_degree"] = dict(graph.degree(weight="weight"))
    elif question == "hits":
        wanted = dict(zip(("hub", "authority"), networkx.hits(graph, tol=1e-14), strict=True))
    elif question == "katz":
        how = {"alpha": record["alpha"], "max_iter": 10_000, "weight": "weight"}
        wanted = {question: networkx.katz_centrality(graph, tol=1e-6, **how)}
    else:
        names = {"pagerank": "pagerank", "eigenvector": "eigenvector_centrality"}
        function = getattr(networkx, names[question])
        wanted = {question: function(graph, tol=1e-13, max_iter=10_000, weight="weight")}
    for column, scores in wanted.items():
        found = [values[column][vertex] for vertex in scores]
        np.testing.assert_allclose(found, [*scores.values()], rtol=2e-6)


def check_that_loops_matter(folder: Path, question: str, table) -> None:
    """Check that an answer without self-loops is another one, and that ``validate`` says so."""
    other = pq.read_table(folder / "dropped").to_pandas()
    assert not other.equals(table)
    path = next((folder / "dropped").glob("*.parquet"))
    bare = folder / "bare.parquet"
    taken = pq.read_table(path)
    facts = json.loads(taken.schema.metadata[b"delegraph"])
    facts["graph"] = open_store(folder / "one.dg").info.fingerprint
    pq.write_table(taken.replace_schema_metadata({"delegraph": json.dumps(facts)}), bare)
    assert not delegraph.validate(folder / "one.dg", bare)["valid"]


def test_known_values(edge_list):
    """A triangle and a self-loop: NetworkX counts the loop once in PageRank."""
    edges = edge_list([1, 2, 3, 2], [2, 3, 1, 2])
    scores = delegraph.pagerank(edges, loops="keep", device="cpu", tolerance=1e-9)
    assert scores.table["pagerank"].to_numpy().round(3).tolist() == [0.292, 0.416, 0.292]


@pytest.mark.parametrize("question", COUNTING)
def test_loops_alone(edge_list, question):
    """Graphs of nothing but self-loops have answers, too."""
    edges = edge_list([4, 2, 2], [4, 2, 2], w=[3, 1, 1])
    for more in ({}, {"weight": "w", "duplicates": "sum"}):
        answer = getattr(delegraph, question)(edges, loops="keep", device="cpu", **more)
        (column, *_) = [name for name in answer.table.column_names if name != "vertex"]
        values = answer.table[column].to_pylist()
        if question in ("leiden", "louvain"):
            assert values == [2, 4]
            shares = [2, 3] if more else [1, 1]
            quality = 1 - sum((share / sum(shares)) ** 2 for share in shares)
            assert answer.record[question]["quality"] == pytest.approx(quality)
        elif question == "degree":
            assert values == [2, 2]
            assert answer.record["degree"]["isolated"] == 0
        elif not more:
            assert values[0] == values[1] > 0


def test_unweighted(edge_list):
    """Where weights do not count, a self-loop counts as much as any edge."""
    edges = edge_list([1, 1, 2], [1, 2, 3], w=[9, 5, 7])
    wanted = delegraph.pagerank(edges, loops="keep", device="cpu").table
    asked: dict[str, Any] = {"weight": "w", "unweighted": True, "device": "cpu"}
    assert delegraph.pagerank(edges, loops="keep", **asked).table.equals(wanted)


def test_other_questions_drop_them(edge_list, tmp_path, ok):
    """Questions that do not count self-loops answer as if a store kept none."""
    src, dst, _ = looped(6, "uint32", rows=600, vertices=90)
    edges = edge_list(src, dst)
    ok("build", edges, "-o", tmp_path / "kept.dg", "--loops", "keep")
    ok("build", edges, "-o", tmp_path / "dropped.dg")
    for question in (["components"], ["cores"], ["labels"], ["clustering"], ["bfs", "--source", 0]):
        tables = []
        for name in ("kept", "dropped"):
            out = tmp_path / f"{name}-{question[0]}"
            told = ok(*question, tmp_path / f"{name}.dg", "-o", out, "--json").json
            assert "left out" in told["notes"][0]
            assert ok("validate", tmp_path / f"{name}.dg", out).out.startswith("valid: ")
            tables.append(pq.read_table(out).replace_schema_metadata(None))
        assert tables[0].equals(tables[1])
    assert "--loops" not in ok("cores", "--help").out


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("directed", [False, True])
def test_what_leaves_a_store_has_them(edge_list, tmp_path, ok, directed, weighted):
    """The edges of an open store, and its matrix, have the self-loops that it keeps, once each."""
    src, dst, weight = looped(8, "uint32", rows=400, vertices=60)
    reading: dict[str, Any] = {"directed": directed, "loops": "keep"}
    reading |= {"weight": "w"} if weighted else {}
    delegraph.build(edge_list(src, dst, w=weight), tmp_path / "g.dg", device="cpu", **reading)
    wanted = kept(tmp_path / "g.dg")
    with delegraph.open(tmp_path / "g.dg", device="cpu") as graph:
        edges = graph.edges.read_all().to_pandas()
        loops = edges[edges["src"] == edges["dst"]]
        assert sorted(loops["src"]) == sorted(wanted)
        if weighted:
            assert dict(zip(loops["src"], loops["weight"], strict=True)) == wanted
    ok("convert", tmp_path / "g.dg", "-o", tmp_path / "g.npz")
    matrix = load_npz(tmp_path / "g.npz")
    vertex = np.load(tmp_path / "g.npz")["vertex"]
    diagonal = matrix.diagonal()
    assert dict(zip(vertex[diagonal > 0].tolist(), diagonal[diagonal > 0], strict=True)) == wanted
    assert matrix.nnz == len(edges) * (1 if directed else 2) - len(loops) * (not directed)


def isolated_graph(kind: str) -> Any:
    """Return a graph in memory with a self-loop at 1 and an isolated vertex 3."""
    graph: Any = networkx.DiGraph([(0, 1), (1, 2), (1, 1)])
    graph.add_node(3)
    return graph if kind == "networkx" else networkx.to_scipy_sparse_array(graph, format=kind)


@pytest.mark.parametrize("kind", ["networkx", "csr", "coo", "dia"])
def test_isolated_vertices_in_memory_have_no_loops(tmp_path, kind):
    """The self-loop that marks an isolated vertex is told from one that the graph has."""
    graph = isolated_graph(kind)
    build(graph, tmp_path / "graph.dg", directed=True, loops="keep")
    assert kept(tmp_path / "graph.dg") == {1: 1}
    wanted = {0: (0, 1), 1: (2, 2), 2: (1, 0), 3: (0, 0)}
    opened = delegraph.open(graph, directed=True, loops="keep")
    answers = [opened.degree(), delegraph.degree(graph, directed=True, loops="keep")]
    delegraph.degree(graph, output=tmp_path / "degrees", directed=True, loops="keep")
    answers.append(pq.read_table(tmp_path / "degrees"))
    for answer in answers:
        table = pa.table(answer)
        columns = (table[name].to_pylist() for name in ("vertex", "in_degree", "out_degree"))
        found = {vertex: degrees for vertex, *degrees in zip(*columns, strict=True)}
        assert {vertex: tuple(degrees) for vertex, degrees in found.items()} == wanted
    ranks = opened.pagerank(tolerance=1e-10).table
    theirs = networkx.pagerank(isolated_graph("networkx"), tol=1e-12)
    found = dict(zip(ranks["vertex"].to_pylist(), ranks["pagerank"].to_pylist(), strict=True))
    assert found == pytest.approx(theirs, abs=1e-6)


def test_values_of_a_matrix_do_not_count_without_weights(tmp_path):
    """Entries of a matrix are edges whatever their values, where self-loops are kept, too."""
    matrix = isolated_graph("csr")
    matrix.data[:] = [5, 0, -2]
    build(matrix, tmp_path / "graph.dg", directed=True, loops="keep")
    assert kept(tmp_path / "graph.dg") == {1: 1}


def test_form_and_program_agree_on_where_loops_count():
    """Pagerank's form tells users what its program says of itself."""
    assert isinstance(PageRankProgram, CountsLoopsOnCpus)
    others = {form.name for form in FORMS.values() if form.counts_loops}
    on_cpus = {name for name in others if not FORMS[name].counts_loops_on_gpus}
    assert on_cpus == {"pagerank"}


def test_open_says_that_loops_of_an_edge_list_take_the_cpu(edge_list, monkeypatch):
    device = object()
    monkeypatch.setattr(Resources, "chosen_device", lambda self, notes=None: device)
    opened = delegraph.open(edge_list([1, 1], [1, 2]), loops="keep", device="cuda")
    assert opened.device == "cpu"
    assert "self-loops of an edge list are kept on CPUs only: used the CPU" in opened.notes
    assert opened.degree()["degree"].to_pylist() == [3, 1]
