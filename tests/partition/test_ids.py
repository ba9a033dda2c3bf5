"""Ids of every kind come out of a search as they went in."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delegraph.kernels import reference
from support.graphs import random_edges
from support.outputs import distances_of, read_result

INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64()]
INTEGERS += [pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
EXTREMES = {
    pa.int64(): [-(2**63), -5, 0, 2**33, 2**63 - 1],
    pa.uint64(): [0, 7, 2**33, 2**63, 2**64 - 1],
    pa.int32(): [-(2**31), -1, 0, 1, 2**31 - 1],
    pa.string(): ["", "Zürich", "a", "zz", "\U0001f600"],
}


@pytest.mark.parametrize("id_type", INTEGERS, ids=str)
def test_integer_widths(ok, edge_list, tmp_path, id_type):
    edges = edge_list([1, 2, 5], [2, 3, 5], id_type=id_type)
    ok("bfs", edges, "--source", 1, "-o", tmp_path / "out")
    assert read_result(tmp_path / "out") == {1: (0, None), 2: (1, 1), 3: (2, 2), 5: (None, None)}
    schema = pq.read_schema(next((tmp_path / "out").iterdir()))
    assert schema.field("vertex").type == id_type
    assert schema.field("parent").type == id_type
    assert schema.field("distance").type == pa.int32()


@pytest.mark.parametrize("id_type", EXTREMES, ids=str)
@pytest.mark.parametrize("through", ["edges", "store"])
def test_sparse_and_extreme_ids(ok, edge_list, tmp_path, id_type, through):
    a, b, c, d, e = EXTREMES[id_type]
    graph = edge_list([c, a, b, e], [a, b, d, e], id_type=id_type)
    if through == "store":
        ok("build", graph, "-o", tmp_path / "graph.dg")
        graph = tmp_path / "graph.dg"
    ok("bfs", graph, f"--source={c}", "-o", tmp_path / "out")
    expected = {c: (0, None), a: (1, c), b: (2, a), d: (3, b), e: (None, None)}
    assert read_result(tmp_path / "out") == expected
    column = pq.read_table(tmp_path / "out")["vertex"]
    assert column.type == id_type
    assert column.to_pylist() == [a, b, c, d, e], "by rising id"


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["x", "y", "z"], pa.large_string()),
        pa.array(["x", "y", "z"], pa.string_view()),
        pa.array(["x", "y", "z"]).dictionary_encode(),
        pa.array([10**12, 5, -3]).dictionary_encode(),
    ],
    ids=["large", "view", "dictionary", "dictionary of integers"],
)
def test_encodings(ok, tmp_path, column):
    table = pa.table({"src": column[:2], "dst": column[1:]})
    pq.write_table(table, tmp_path / "e.parquet")
    first, second, third = column.to_pylist()
    ok("bfs", tmp_path / "e.parquet", "--source", first, "-o", tmp_path / "out")
    assert distances_of(tmp_path / "out") == {first: 0, second: 1, third: 2}


def test_columns_of_two_widths_meet_in_the_wider(ok, tmp_path):
    table = pa.table({"src": pa.array([1, 2], pa.int32()), "dst": pa.array([2**40, 1], pa.int64())})
    pq.write_table(table, tmp_path / "e.parquet")
    ok("bfs", tmp_path / "e.parquet", "--source", 2, "-o", tmp_path / "out")
    assert distances_of(tmp_path / "out") == {2: 0, 1: 1, 2**40: 2}


def test_unsigned_and_signed_meet_in_a_signed_type(ok, tmp_path):
    table = pa.table({"src": pa.array([1, 2], pa.uint32()), "dst": pa.array([-7, 1], pa.int8())})
    pq.write_table(table, tmp_path / "e.parquet")
    ok("bfs", tmp_path / "e.parquet", "--source", 2, "-o", tmp_path / "out")
    assert distances_of(tmp_path / "out") == {2: 0, 1: 1, -7: 2}


@pytest.mark.parametrize("statistics", [True, False])
def test_sparse_ids_give_the_distances_of_dense_ones(ok, tmp_path, statistics):
    """Sparse ids and strings give the distances of dense ids, over many row groups, with and
    without statistics in files.
    """
    src, dst = random_edges(5, 2000, 9000)
    spread = np.random.default_rng(0).permutation(2000) * 9_876_543_211 - 2**40
    names = {
        "dense": (src, dst),
        "sparse": (spread[src], spread[dst]),
        "strings": ([f"v{u}" for u in src], [f"v{v}" for v in dst]),
    }
    results = {}
    for name, (u, v) in names.items():
        path = tmp_path / f"{name}.parquet"
        pq.write_table(
            pa.table({"src": u, "dst": v}), path, row_group_size=700, write_statistics=statistics
        )
        start = {"dense": src[0], "sparse": spread[src[0]], "strings": f"v{src[0]}"}[name]
        ok("bfs", path, f"--source={start}", "-o", tmp_path / name)
        results[name] = distances_of(tmp_path / name)
    expected = reference.distances(src, dst, 2000, src[0]).tolist()
    present = np.unique(np.concatenate([src, dst])).tolist()
    wanted = {v: None if expected[v] < 0 else expected[v] for v in present}
    assert results["dense"] == wanted
    assert results["sparse"] == {int(spread[v]): hops for v, hops in wanted.items()}
    assert results["strings"] == {f"v{v}": hops for v, hops in wanted.items()}


def test_few_ids_of_a_wide_range_are_renumbered(ok, tmp_path):
    """Ids dense enough for a table by the number of rows, but not by the number of vertices, give
    right distances.
    """
    table = pa.table({"src": np.tile([0, 50_000], 20_000), "dst": np.tile([50_000, 9], 20_000)})
    pq.write_table(table, tmp_path / "e.parquet")
    ok("bfs", tmp_path / "e.parquet", "--source", 9, "-o", tmp_path / "out")
    assert distances_of(tmp_path / "out") == {9: 0, 50_000: 1, 0: 2}


def test_many_files_and_a_glob(ok, edge_list, tmp_path):
    edge_list([0], [1], name="in/a.parquet")
    edge_list([1], [2], name="in/more/b.parquet", id_type=pa.int16())
    edge_list([], [], name="in/empty.parquet", id_type=pa.int64())
    (tmp_path / "in" / "_SUCCESS").touch()
    for graph in (tmp_path / "in", f"{tmp_path}/in/**/*.parquet"):
        ok("bfs", graph, "--source", 0, "-o", tmp_path / "out", "--overwrite")
        assert distances_of(tmp_path / "out") == {0: 0, 1: 1, 2: 2}


def test_other_columns_are_ignored_and_named_ones_used(ok, tmp_path):
    table = pa.table({"w": [0.5, 0.25], "to": [1, 2], "from": [0, 1], "src": ["a", None]})
    pq.write_table(table, tmp_path / "e.parquet")
    ok(*f"bfs {tmp_path}/e.parquet --src from --dst to --source 0 -o {tmp_path}/out".split())
    assert distances_of(tmp_path / "out") == {0: 0, 1: 1, 2: 2}
