"""Notes tell of dropped self-loops, combined duplicates and rounded weights: on stderr, in Python
and in records, by every command and engine.
"""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import delegraph as package
from delegraph.pipeline.results.row_notes import row_notes
from delegraph.pipeline.run.records import GraphRecord, WeightsRecord
from support.graphs import random_edges
from support.marks import slow

SRC, DST = [1, 2, 3, 2, 2, 1, 1], [2, 3, 1, 2, 1, 2, 2]
"""Rows with one self-loop; of the other rows two repeat 1-2, or three, where 2-1 is the same
edge.
"""

LOOPS = "1 of 7 rows is a self-loop: left out"
ONE_WAY = "2 of 7 rows repeat an edge: each edge counts once"
BOTH_WAYS = "3 of 7 rows repeat an edge (u-v and v-u are one): each edge counts once"
IN_PAGERANK = (
    "; NetworkX, igraph and cuGraph count it in PageRank, delegraph does so with --loops keep"
)
ROWS_IN_PAGERANK = (
    "; igraph, and NetworkX in multigraphs, count each row in PageRank, delegraph does not"
)
PATHS = "; igraph counts each row as a path of its own, delegraph does not"

ASKED: dict[str, list[Any]] = {
    "bfs": ["--source", 1],
    "each": ["--sources", "1,2"],
    "together": ["--sources", "1,2", "--together"],
    **{name: [] for name in ("components", "pagerank", "closeness", "eccentricity", "betweenness")},
}


def wanted(name: str, directed: bool, scanned: bool = False) -> list[str]:
    duplicates = ONE_WAY if directed else BOTH_WAYS
    if name == "pagerank":
        return [LOOPS + IN_PAGERANK, duplicates + ROWS_IN_PAGERANK]
    if name == "betweenness":
        return [LOOPS, duplicates + PATHS]
    return [LOOPS] if scanned else [LOOPS, duplicates]


def in_python(name: str) -> list[str]:
    """Return the lines about an undirected graph, with options as Python's keywords."""
    return [line.replace("--loops keep", 'loops="keep"') for line in wanted(name, directed=False)]


def command(name: str) -> str:
    return "bfs" if name in ("each", "together") else name


def says(run: Any, lines: list[str]) -> None:
    """Check that the given lines, once each, are all that a command says about rows."""
    assert [line for line in run.err.splitlines() if " rows " in line] == lines


@pytest.mark.parametrize("directed", [slow(False), True])
@pytest.mark.parametrize("name", ASKED)
def test_of_an_edge_list(ok, edge_list, tmp_path, name, directed):
    """Notes on an edge list's rows are told for integer and string ids; a scan does not count
    duplicates, and the record says so.
    """
    way = ["--directed"] if directed else []
    scanned = name in ("bfs", "components")
    for kind in (int, str):
        edges = edge_list(list(map(kind, SRC)), list(map(kind, DST)))
        args = command(name), edges, "-o", tmp_path / "out", *ASKED[name], *way
        run = ok(*args, "--overwrite")
        says(run, wanted(name, directed, scanned))
        record = json.loads((tmp_path / "out.run.json").read_text())
        assert record["notes"] == wanted(name, directed, scanned)
        duplicates = None if scanned else 2 if directed else 3
        graph = record["graph"]
        assert (graph["rows"], graph["self_loops"], graph["duplicates"]) == (7, 1, duplicates)
        says(ok(*args), wanted(name, directed, scanned))  # it is there already
        assert not ok(*args, "--overwrite", "--quiet").err


@pytest.mark.parametrize(
    ("name", "way"),
    [
        *product(ASKED, ["store"]),
        *(("bfs", way) for way in ("several", "temporary")),
        *(("pagerank", way) for way in ("several", "temporary")),
        *(slow(name, "workers") for name in ("bfs", "pagerank")),
    ],
)
def test_of_a_store(ok, edge_list, tmp_path, name, way):
    edges = edge_list(SRC, DST)
    partitions = ["--partitions", 1 if way == "store" else 2]
    graph, more = tmp_path / "graph.dg", []
    if way == "temporary":
        graph, more = edges, partitions
    else:
        built = ok("build", edges, "-o", graph, *partitions)
        says(built, [LOOPS, BOTH_WAYS])
        record = json.loads((tmp_path / "graph.dg.run.json").read_text())
        assert record["notes"] == [LOOPS, BOTH_WAYS]
        assert (record["graph"]["self_loops"], record["graph"]["duplicates"]) == (1, 3)
        says(ok("build", edges, "-o", graph, *partitions), [LOOPS, BOTH_WAYS])
    if way == "workers":
        more = ["--workers", 2]
    args = command(name), graph, "-o", tmp_path / "out", *ASKED[name], *more
    says(ok(*args), wanted(name, directed=False))
    record = json.loads((tmp_path / "out.run.json").read_text())
    assert (record["graph"]["self_loops"], record["graph"]["duplicates"]) == (1, 3)


def test_nothing_is_said_where_there_are_none(ok, edge_list, tmp_path):
    edges = edge_list([1, 2, 3], [2, 3, 1])
    says(ok("build", edges, "-o", tmp_path / "graph.dg"), [])
    for graph, name in product((edges, tmp_path / "graph.dg"), ASKED):
        args = command(name), graph, "-o", tmp_path / "out", *ASKED[name], "--overwrite", "--json"
        run = ok(*args)
        says(run, [])
        assert run.json["notes"] == []
        assert run.json["graph"]["self_loops"] == 0


def test_a_result_of_an_older_version_says_nothing(ok, edge_list, tmp_path):
    args = "pagerank", edge_list(SRC, DST), "-o", tmp_path / "out"
    ok(*args)
    path = tmp_path / "out.run.json"
    record = json.loads(path.read_text())
    for name in ("self_loops", "duplicates", "weights"):
        del record["graph"][name]
    path.write_text(json.dumps(record))
    rerun = ok(*args)
    assert "already" in rerun.err
    says(rerun, [])


def test_events_have_it(ok, edge_list, tmp_path):
    args = "pagerank", edge_list(SRC, DST), "-o", tmp_path / "out", "--log-format", "json"
    events = [json.loads(line) for line in ok(*args).err.splitlines()]
    notes = [event["message"] for event in events if event["event"] == "note"]
    assert notes[:2] == wanted("pagerank", directed=False)


def test_python_has_it(edge_list, tmp_path):
    edges = edge_list(SRC, DST)
    ranks = package.pagerank(edges, output=tmp_path / "ranks")
    assert list(ranks.notes) == in_python("pagerank")
    assert list(package.pagerank(edges, output=tmp_path / "ranks").notes) == list(ranks.notes)
    built = package.build(edges, tmp_path / "graph.dg")
    assert built.notes == (LOOPS, BOTH_WAYS)
    for graph in (edges, tmp_path / "graph.dg"):
        with package.open(graph, device="cpu") as opened:
            assert opened.notes == (LOOPS, BOTH_WAYS)
            for name, ask in {
                "bfs": lambda graph: graph.bfs(1),
                "each": lambda graph: graph.bfs(sources=[1, 2]),
                "pagerank": lambda graph: graph.pagerank(),
                "betweenness": lambda graph: graph.betweenness(),
            }.items():
                result = ask(opened)
                assert list(result.notes) == in_python(name)
                assert result.record["notes"] == wanted(name, directed=False)
                result.write(tmp_path / name, overwrite=True)
                record = json.loads((tmp_path / f"{name}.run.json").read_text())
                assert record["notes"] == wanted(name, directed=False)


@pytest.mark.parametrize("seed", range(3))
def test_counts_are_those_of_a_plain_count(ok, edge_list, tmp_path, seed):
    src, dst = random_edges(seed, 40, 500)
    loops = int(np.count_nonzero(src == dst))
    pairs = {(u, v) for u, v in zip(src.tolist(), dst.tolist(), strict=True) if u != v}
    edges = {(min(pair), max(pair)) for pair in pairs}
    for directed, count in ((False, len(edges)), (True, len(pairs))):
        way = ["--directed"] if directed else []
        args = "closeness", edge_list(src, dst), "-o", tmp_path / "out", *way, "--overwrite"
        graph = ok(*args, "--json").json["graph"]
        assert graph["self_loops"] == loops
        assert graph["duplicates"] == 500 - loops - count
    scanned = ok("components", edge_list(src, dst), "-o", tmp_path / "scanned", "--json").json
    assert scanned["graph"]["self_loops"] == loops


def weighted(folder: Path) -> Path:
    weight = [0.1, 0.5, 0.25, 1.0, 2.0, 16777217.0, 3.0]
    pq.write_table(pa.table({"src": SRC, "dst": DST, "w": weight}), folder / "edges.parquet")
    return folder / "edges.parquet"


ROUNDED = "2 of 7 weights were rounded to 32 bits; the greatest change is 6e-08 of the weight"
SUMS = (
    "the sums of weights of rows that repeat an edge are rounded to 32 bits, by 6e-08 of the sum "
    "at most"
)


@pytest.mark.parametrize("duplicates", ["min", "max", "sum"])
@pytest.mark.parametrize("through", ["edges", "store", slow("several")])
def test_weights_are_told_where_they_mean_something(ok, tmp_path, duplicates, through):
    edges, reading = weighted(tmp_path), ["--weight", "w", "--duplicates", duplicates]
    graph, words = edges, {"min": "the least", "max": "the greatest", "sum": "the sum"}[duplicates]
    combined = f"{BOTH_WAYS}, with {words} of its rows' weights"
    last = [ROUNDED, SUMS] if duplicates == "sum" else [ROUNDED]
    if through != "edges":
        graph = tmp_path / "graph.dg"
        shape = ["--partitions", 3] if through == "several" else []
        built = ok("build", edges, "-o", graph, *reading, *shape)
        assert built.err.splitlines()[: 2 + len(last)] == [LOOPS, combined, *last]
        assert "2 rounded to 32 bits, the greatest change is 6e-08" in ok("info", graph).out
        assert ok("info", graph, "--json").json["weights"]["rounded"] == 2
        reading = []
    run = ok("sssp", graph, "--source", 1, "-o", tmp_path / "paths", *reading, "--json").json
    assert run["notes"] == [LOOPS, combined, *last]
    weights = run["graph"]["weights"]
    assert (weights["column"], weights["kind"]) == ("w", "float32")
    assert (weights["combined_by"], weights["rounded"]) == (duplicates, 2)
    assert weights["greatest_change"] == pytest.approx(1 / 16777217)
    run = ok("pagerank", graph, "-o", tmp_path / "ranks", *reading, "--json").json
    added = (
        "; igraph, and NetworkX in multigraphs, add them up in PageRank (--duplicates sum), "
        "delegraph does not"
    )
    more = "" if duplicates == "sum" else added
    assert run["notes"] == [LOOPS + IN_PAGERANK, combined + more, *last]
    run = ok("pagerank", graph, "-o", tmp_path / "plain", *reading, "--unweighted", "--json").json
    assert run["notes"] == wanted("pagerank", directed=False)
    if through != "edges":
        run = ok("closeness", graph, "-o", tmp_path / "near", "--json").json
        assert run["notes"] == wanted("closeness", directed=False)


def test_a_graph_in_python_tells_of_weights(tmp_path):
    with package.open(weighted(tmp_path), weight="w", device="cpu") as graph:
        assert graph.notes[-1] == ROUNDED
        assert graph.sssp(1).notes[-1] == ROUNDED
        assert ROUNDED not in graph.bfs(1).notes


def test_weights_of_which_nothing_is_known():
    """Weights of a store that an older version has built give no note, as their rounding is
    unknown.
    """
    weights = WeightsRecord(
        column="w", kind="float32", combined_by="min", rounded=None, greatest_change=None
    )
    graph = GraphRecord(
        fingerprint="",
        directed=True,
        vertices=2,
        rows=1,
        self_loops=0,
        loops=None,
        duplicates=0,
        id_type="int64",
        weights=weights,
    )
    assert row_notes(graph) == []
