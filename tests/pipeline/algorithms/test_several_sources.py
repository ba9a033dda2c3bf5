"""``bfs --sources``: a search from each source, and one search from all sources together."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import delegraph as package
from delegraph.kernels import reference
from delegraph.partition.errors import InputError
from delegraph.pipeline.algorithms import bfs_each, many_sources, searches
from delegraph.pipeline.results import by_source, names
from support.graphs import random_edges
from support.marks import mostly_slow, slow
from support.outputs import digest
from support.schema import conforms, run_record


def each(folder: Path) -> dict[Any, dict[Any, int]]:
    """Return the distance by source and vertex, after a check that rows are in order and appear
    once.
    """
    distances: dict[Any, dict[Any, int]] = {}
    rows = pq.read_table(folder).to_pylist()
    assert [row["source"] for row in rows] == sorted(row["source"] for row in rows)
    for row in rows:
        row_of = distances.setdefault(row["source"], {})
        assert not row_of or max(row_of) < row["vertex"]
        row_of[row["vertex"]] = row["distance"]
    return distances


def together(folder: Path) -> dict[Any, tuple[int | None, Any]]:
    rows = pq.read_table(folder).to_pylist()
    return {row["vertex"]: (row["distance"], row["nearest"]) for row in rows}


def wanted_of(src, dst, directed, sources) -> tuple[dict, dict]:
    """Return the definition's results of separate searches, and of one search from all sources."""
    n = int(max(src.max(), dst.max())) + 1
    present = np.unique(np.r_[src, dst]).tolist()
    u, v = (src, dst) if directed else (np.r_[src, dst], np.r_[dst, src])
    distance = {s: reference.distances(u, v, n, s, directed=True).tolist() for s in sources}
    apart = {s: {t: hops[t] for t in present if hops[t] >= 0} for s, hops in distance.items()}
    hops, nearest = (column.tolist() for column in reference.nearest(u, v, n, np.sort(sources)))
    joint = {t: (hops[t], nearest[t]) if hops[t] >= 0 else (None, None) for t in present}
    return apart, joint


def least_limit(delegraph, *args) -> str:
    """Return the smallest limit that a refusal names."""
    refused = delegraph(*args, "--memory-limit", "1MB")
    assert refused.code == 2, refused.err
    return refused.err.split("--memory-limit ")[1].split()[0]


@pytest.mark.parametrize(
    ("way", "directed"),
    [
        ("edges", True),
        ("streamed", False),
        *(slow(*case) for case in [("edges", False), ("store", False), ("store", True)]),
        slow("streamed", True),
        slow("workers", False),
        slow("workers", True),
    ],
)
def test_every_way_is_right_and_recorded(ok, delegraph, edge_list, tmp_path, way, directed):
    src, dst = random_edges(5, 900, 1200)
    graph, flags = edge_list(src, dst), ["--directed"] if directed else []
    if way != "edges":
        ok("build", graph, "-o", tmp_path / "graph.dg", "--partitions", 2, *flags)
        graph, flags = tmp_path / "graph.dg", []
    sources = np.unique(src)[70::-1].tolist()  # more than a word has bits
    pq.write_table(pa.table({"vertex": sources}), tmp_path / "some.parquet")
    for name, options in (("each", []), ("together", ["--together"])):
        out = tmp_path / name
        args = ("bfs", graph, "--sources", tmp_path / "some.parquet", *options, "-o", out, *flags)
        extra = {"workers": ["--workers", 2], "streamed": ["--memory-limit"]}.get(way, [])
        if way == "streamed":
            extra += [least_limit(delegraph, *args)]
        printed = ok(*args, *extra, "--json").json
        record = json.loads((tmp_path / f"{name}.run.json").read_text())
        assert {**record, "already": False} == printed
        assert conforms(record, run_record(f"bfs-{name}"))
        facts = record["searches"]
        assert facts["method"] == ("streamed" if way == "streamed" else "in memory")
        assert record["ranks"] == (2 if way == "workers" else 1)
        assert (facts["sources"], facts["max_depth"]) == (len(sources), None)
        ok("validate", graph, out, *flags)
        assert "already" in ok(*args, *extra).err
        assert ok("info", out, "--json").json["depth"] == facts["depth"]
        assert ok("info", out).out.startswith("result")
        if way == "store":
            planned = ok("plan", graph, "--algorithm", f"bfs-{name}", "--json").json
            assert planned["in_memory"]
    apart, joint = wanted_of(src, dst, directed, sources)
    assert each(tmp_path / "each") == apart
    assert together(tmp_path / "together") == joint


def test_bytes_depend_on_the_graph_alone(ok, delegraph, edge_list, tmp_path, monkeypatch):
    """Result bytes depend on the graph alone, with several files a batch and several pieces a
    file.
    """
    monkeypatch.setattr(names, "_LEAST_ROWS", 2048)
    monkeypatch.setattr(by_source, "_LEAST_ROWS", 100)
    src, dst = random_edges(5, 3000, 6000)
    ok("build", edge_list(src, dst), "-o", tmp_path / "graph.dg")
    sources = np.unique(src)[:7].tolist()
    args = ("bfs", tmp_path / "graph.dg", "--sources", ",".join(map(str, sources)), "-o")
    ok(*args, tmp_path / "1", "--threads", 1)
    assert len(list((tmp_path / "1").iterdir())) > 1
    ok(*args, tmp_path / "3", "--threads", 3)
    ok(*args, tmp_path / "s", "--memory-limit", least_limit(delegraph, *args, tmp_path / "s"))
    assert digest(tmp_path / "1") == digest(tmp_path / "3") == digest(tmp_path / "s")
    assert each(tmp_path / "1") == wanted_of(src, dst, False, sources)[0]


@pytest.mark.parametrize("max_depth", mostly_slow([None, 0, 254, 255, 256], None, 255))
def test_deeper_than_a_byte_counts(ok, edge_list, tmp_path, max_depth):
    ends = np.arange(600)
    edges, depth = edge_list(ends, ends + 1), []
    if max_depth is not None:
        depth = ["--max-depth", max_depth]
    sources = np.arange(0, 600, 9)
    for name, options in (("each", []), ("together", ["--together"])):
        ids = ",".join(map(str, sources))
        ok("bfs", edges, "--sources", ids, *options, *depth, "-o", tmp_path / name)
        ok("validate", edges, tmp_path / name)
    most = 600 if max_depth is None else max_depth
    apart, joint = wanted_of(ends, ends + 1, False, sources.tolist())
    assert each(tmp_path / "each") == {
        s: {v: hops for v, hops in reached.items() if hops <= most} for s, reached in apart.items()
    }
    near = {v: row if row[0] <= most else (None, None) for v, row in joint.items()}
    assert together(tmp_path / "together") == near


@pytest.mark.parametrize(("depth", "files"), [(254, 1), (255, 2)])
def test_how_deep_a_byte_counts(ok, edge_list, tmp_path, depth, files):
    """Separate searches of up to 254 levels fit eight bits and one batch; deeper searches take two
    batches.
    """
    ends = np.arange(depth)
    sources = ",".join(map(str, range(40)))
    args = ("bfs", edge_list(ends, ends + 1), "--directed", "--sources", sources)
    ok(*args, "-o", tmp_path / "out")
    assert len(list((tmp_path / "out").glob("*.parquet"))) == files


@pytest.mark.parametrize(
    ("frontiers", "grows"),
    [([1] * 7, True), ([64] * 8, False), ([2**i for i in range(8)], True), (range(1, 9), False)],
)
def test_whether_a_frontier_grows(frontiers, grows):
    assert searches._grows(list(frontiers)) == grows


@pytest.mark.parametrize("directed", [False, True])
def test_searches_that_seldom_meet_go_apart(
    ok, delegraph, edge_list, tmp_path, monkeypatch, directed
):
    """Searches that seldom meet go apart only in memory, and write the bytes of searches together
    from disk.
    """
    apart = []

    def counted(search):
        def counting(*args):
            apart.append(len(args[2]))
            return search(*args)

        return counting

    for module in (bfs_each, many_sources):
        monkeypatch.setattr(module, "search_apart", counted(module.search_apart))
    ends = np.arange(700)
    loop = np.r_[ends, 700], np.r_[ends + 1, 0]
    ok("build", edge_list(*loop), "-o", tmp_path / "g.dg", *["--directed"] * directed)
    few = ",".join(map(str, range(0, 700, 150)))
    pq.write_table(pa.table({"vertex": range(0, 700, 10)}), tmp_path / "some.parquet")
    for command, sources in (("bfs", few), ("closeness", tmp_path / "some.parquet")):
        args = (command, tmp_path / "g.dg", "--sources", sources, "-o")
        ok(*args, tmp_path / f"{command} 1")
        if command == "bfs":
            # Of eight bits, which are too few, and of sixteen.
            assert apart == [5, 5]
        ok("validate", tmp_path / "g.dg", tmp_path / f"{command} 1")
        least = least_limit(delegraph, *args, tmp_path / f"{command} 2")
        count = len(apart)
        ok(*args, tmp_path / f"{command} 2", "--memory-limit", least)
        assert len(apart) == count
        assert digest(tmp_path / f"{command} 1") == digest(tmp_path / f"{command} 2")
    assert apart == [5, 5, 64, 6]
    sources = list(range(0, 700, 150))
    assert each(tmp_path / "bfs 1") == wanted_of(*loop, directed, sources)[0]


def test_ids_that_are_strings(ok, edge_list, tmp_path):
    """The nearest of several sources at the same distance is the first string in order."""
    edges = edge_list(["b", "d", "x"], ["c", "c", "x"], id_type=pa.string())
    ok("bfs", edges, "--sources", "d,b", "-o", tmp_path / "each")
    assert each(tmp_path / "each") == {"b": {"b": 0, "c": 1, "d": 2}, "d": {"b": 2, "c": 1, "d": 0}}
    schema = pq.read_schema(next((tmp_path / "each").iterdir()))
    assert schema.types == [pa.string(), pa.string(), pa.int32()]
    ok("bfs", edges, "--sources", "d,b", "--together", "-o", tmp_path / "together")
    near = {"b": (0, "b"), "c": (1, "b"), "d": (0, "d"), "x": (None, None)}
    assert together(tmp_path / "together") == near
    for name in ("each", "together"):
        ok("validate", edges, tmp_path / name)


@pytest.mark.parametrize("store", [True, False])
def test_goes_on_after_the_last_batch(ok, delegraph, edge_list, tmp_path, monkeypatch, store):
    src, dst = random_edges(5, 300, 2000)
    graph = edge_list(src, dst)
    if store:
        ok("build", graph, "-o", tmp_path / "graph.dg")
        graph = tmp_path / "graph.dg"
    ids = ",".join(map(str, np.unique(src)[:200]))  # of four batches
    args = ("bfs", graph, "--sources", ids, "--checkpoint", 0, "-o")
    ok(*args, tmp_path / "whole")
    write, calls = bfs_each.write_rows, []

    def dying(*args):
        calls.append(args)
        digests = write(*args)
        if len(calls) == 3:
            raise OSError("killed")
        return digests

    with monkeypatch.context() as patched:
        patched.setattr(bfs_each, "write_rows", dying)
        assert delegraph(*args, tmp_path / "out").code == 1
    run = ok(*args, tmp_path / "out")
    assert "source 128" in run.err
    assert digest(tmp_path / "out") == digest(tmp_path / "whole")
    assert not list(tmp_path.glob(".*"))


def damaged(folder: Path, change) -> None:
    path = next(iter(sorted(folder.glob("*.parquet"))))
    table = pq.read_table(path)
    columns = table.to_pydict()
    change(columns)
    pq.write_table(pa.table(columns, schema=table.schema), path)


def farther(columns):
    columns["distance"][columns["distance"].index(2)] += 1


def negative(columns):
    columns["distance"][1] = -5


def no_source(columns):
    at = columns["distance"].index(0)
    for column in columns.values():
        del column[at]


def a_row_less(columns):
    at = columns["distance"].index(2)
    for column in columns.values():
        del column[at]


def a_row_twice(columns):
    at = columns["distance"].index(2)
    for column in columns.values():
        column.append(column[at])


def a_stranger(columns):
    columns["vertex"][columns["distance"].index(2)] = 10**6


def another_nearest(columns):
    at = columns["distance"].index(2)
    columns["nearest"][at] = columns["vertex"][at]


def unreached(columns):
    at = columns["distance"].index(2)
    columns["distance"][at] = columns["nearest"][at] = None


@pytest.mark.parametrize(
    ("options", "change", "rules"),
    [
        ([], farther, {3}),
        ([], negative, {1}),
        ([], no_source, {2, 3}),
        ([], a_row_less, {3}),
        ([], a_row_twice, {0}),
        ([], a_stranger, {0, 3}),
        (["--together"], farther, {3}),
        (["--together"], negative, {1}),
        (["--together"], no_source, {0, 2}),
        (["--together"], a_row_less, {0}),
        (["--together"], a_row_twice, {0}),
        (["--together"], another_nearest, {4}),
        (["--together"], unreached, {3}),
    ],
)
def test_wrong_rows_are_found(ok, delegraph, edge_list, tmp_path, options, change, rules):
    src, dst = random_edges(5, 300, 900)
    edges, ids = edge_list(src, dst), f"{src[0]},{dst[100]},{dst[200]}"
    ok("bfs", edges, "--sources", ids, *options, "-o", tmp_path / "out")
    damaged(tmp_path / "out", change)
    run = delegraph("validate", edges, tmp_path / "out", "--json")
    assert run.code == 1
    assert rules <= {rule["rule"] for rule in run.json["rules"]}
    assert "wrong: rule" in delegraph("validate", edges, tmp_path / "out").out


def test_other_columns_of_a_file_mean_nothing(ok, edge_list, tmp_path):
    edges = edge_list([1, 2], [2, 3])
    table = pa.table({"vertex": [1, 2], "weight": ["heavy", "light"]})
    pq.write_table(table, tmp_path / "some.parquet")
    for command in ("bfs", "closeness"):
        ok(command, edges, "--sources", tmp_path / "some.parquet", "-o", tmp_path / command)
        column = "source" if command == "bfs" else "vertex"
        ids = pq.read_table(tmp_path / command, columns=[column])[column].to_pylist()
        assert set(ids) == {1, 2}


@pytest.mark.parametrize("command", ["bfs", "closeness"])
def test_one_vertex_by_its_id(ok, edge_list, tmp_path, command):
    edges = edge_list([5, 6, 7], [6, 7, 8])
    ok(command, edges, "--sources", "6,", "-o", tmp_path / "out")
    column = "source" if command == "bfs" else "vertex"
    ids = pq.read_table(tmp_path / "out", columns=[column])[column].to_pylist()
    assert set(ids) == {6}


def test_rows_of_nobody_in_particular(ok, edge_list, tmp_path):
    """Results without metadata, as another program may write them, are judged by the rows that they
    hold.
    """
    edges = edge_list(*random_edges(5, 300, 900))
    for name, options in (("each", []), ("together", ["--together"])):
        ok("bfs", edges, "--sources", "1,2", *options, "-o", tmp_path / name)
        (path,) = (tmp_path / name).iterdir()
        pq.write_table(pq.read_table(path).replace_schema_metadata(None), path)
        ok("validate", edges, tmp_path / name)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ([], "--sources"),
        (["--source", 0, "--sources", "1"], "give either"),
        (["--source", 0, "--together"], "--together"),
        (["--sources", "1", "--profile"], "--profile"),
        (["--sources", "1", "--max-depth", -1], "max-depth"),
        (["--sources", ""], "no vertices are given"),
        (["--sources", "1,,2"], "'' is not an integer"),
        (["--sources", "1,9"], "9 is not a vertex"),
        (["--sources", "1,2,1"], "1 occurs twice"),
        (["--sources", "1,x"], "'x' is not an integer"),
        (["--sources", "none.parquet"], "none.parquet"),
        (["--sources", {"vertex": [1, 9]}], "9 is not a vertex"),
        (["--sources", {"vertex": [1, 2, 1]}], "1 occurs twice"),
        (["--sources", {"vertex": [1, None]}], "holds nulls"),
        (["--sources", {"vertex": pa.array([], pa.int64())}], "the file has no vertices"),
        (["--sources", {"vertex": ["1"]}], "ids are string"),
        (["--sources", {"node": [1]}], "'vertex' is missing"),
    ],
)
def test_bad_input_is_told(delegraph, edge_list, tmp_path, options, says):
    edges = edge_list([0, 1, 2], [1, 2, 3])
    if options and isinstance(options[1], dict):
        pq.write_table(pa.table(options[1]), tmp_path / "some.parquet")
        options = [options[0], tmp_path / "some.parquet"]
    run = delegraph("bfs", edges, "-o", tmp_path / "out", *options)
    assert (run.code, says in run.err) == (2, True), run.err
    assert not list(tmp_path.glob("*out*"))


def test_from_python(edge_list, tmp_path):
    edges = edge_list([0, 1, 2], [1, 2, 3])
    package.bfs(edges, output=tmp_path / "each", sources=[3, 0])
    package.bfs(edges, output=tmp_path / "joint", sources=(0, 3), together=True)
    assert each(tmp_path / "each")[3] == {0: 3, 1: 2, 2: 1, 3: 0}
    assert together(tmp_path / "joint") == {0: (0, 0), 1: (1, 0), 2: (1, 3), 3: (0, 3)}
    pq.write_table(pa.table({"vertex": [0, 3]}), tmp_path / "some.parquet")
    result = package.bfs(edges, output=tmp_path / "each", sources=tmp_path / "some.parquet")
    assert result.already  # the same, however it is said
    with pytest.raises(InputError, match="give either"):
        package.bfs(edges, output=tmp_path / "out")
