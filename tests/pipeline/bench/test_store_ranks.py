"""Graph500's protocol by several ranks, on a store or a generated graph: faults found,
measurements, refusals.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import delegraph
from delegraph.kernels.base.graph import UNREACHED
from delegraph.kernels.base.team import Team
from delegraph.kernels.bfs.check import Violations
from delegraph.partition.disk.memory import parse_bytes
from delegraph.partition.errors import DelegraphError
from delegraph.partition.store.grid import Grid
from delegraph.partition.store.store import Store, open_store
from delegraph.pipeline.bench import searchers as rank_searchers
from delegraph.pipeline.bench.check import RankCheck, stored_edges
from delegraph.pipeline.bench.check import edges_of as edges_of_rank
from delegraph.pipeline.bench.device import parse_recipe
from delegraph.pipeline.bench.protocol import (
    BenchOptions,
    CpuSearcher,
    draw_sources,
    rows_from_vertex,
    run_all,
)
from delegraph.pipeline.bench.ranks import BenchJob, Placing
from delegraph.pipeline.bench.store_ranks import StoreBenchJob
from delegraph.pipeline.engines.host.rows import StoreGraph
from delegraph.pipeline.engines.host.search import HostSearchEngine
from delegraph.pipeline.engines.ranks.result import RankResult, result_of
from delegraph.pipeline.engines.ranks.search import load_rank, rank_bytes, search_rank
from delegraph.pipeline.ranks.communicator import Communicator
from delegraph.pipeline.results.names import names_of_store
from support.graphs import edges_of, random_edges
from support.marks import slow
from support.ranks import by_threads
from support.searches import violations_of

LAYOUTS = {
    "delegate": {"partitions": 5, "threshold": 6},
    "an order of its own": {"partitions": 4, "threshold": 6, "order": "random"},
    "2d": {"layout": "2d", "grid": Grid(2, 3)},
    "1d": {"layout": "1d", "partitions": 4},
}
TEAM = Team(1)


@pytest.fixture
def store_of(edge_list, tmp_path):
    """Return a function that builds a store of two components, one of them a path, from which
    searches reach few vertices.
    """

    def build(layout: str, directed: bool = False) -> Store:
        src, dst = random_edges(1, 600, 3000)
        path = edge_list(np.r_[src, 1000:1050], np.r_[dst, 1001:1051])
        options = LAYOUTS[layout]
        delegraph.build(path, tmp_path / "graph.dg", **options, directed=directed, threads=1)
        return open_store(tmp_path / "graph.dg")

    return build


def job_of(store: Store, sources: int = 6, device: str = "cpu") -> StoreBenchJob:
    rows = rows_from_vertex(store, TEAM)
    drawn = draw_sources(names_of_store(store, TEAM), rows, BenchOptions(sources, seed=2))
    return StoreBenchJob(store.path, tuple(drawn.places), tuple(drawn.ids), device=device)


def searcher_of(store: Store) -> CpuSearcher:
    """Return a searcher of one process."""
    engine = HostSearchEngine(StoreGraph(store, None), 1)
    engine.load()
    return CpuSearcher(engine, rows_from_vertex(store, TEAM))


def check_job(store: Store, ranks: int, device: str = "cpu") -> None:
    """Check that ranks measure and check the same searches as one process."""
    job = job_of(store, device=device)
    alone = searcher_of(store)
    wanted = run_all(alone, job.sources, job.names, None)
    measured = by_threads(ranks, lambda communicator: job.run(communicator, TEAM))
    assert measured[1:] == [None] * (ranks - 1)
    (timings, *_), exchanged = measured[0]
    assert (timings.rows, timings.depths) == (wanted.rows, wanted.depths)
    assert all(seconds > 0 for seconds in timings.seconds)
    assert exchanged.supersteps >= np.mean(timings.depths)
    assert sum(exchanged.bytes_sent.values()) > 0
    assert exchanged.graph_bytes > 0
    assert (exchanged.table_bytes is None) == (store.info.grid is not None)
    assert sum(step["seconds"] for step in exchanged.levels) > 0


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_ranks_and_one_process(store_of, layout, directed):
    store = store_of(layout, directed)
    for ranks in (2, 3):
        check_job(store, ranks)


@pytest.mark.slow
@pytest.mark.parametrize("order", ["degree", "random"])
@pytest.mark.parametrize("directed", [False, True])
def test_ranks_with_emulated_devices(emulated, edge_list, tmp_path, directed, order):
    """Ranks with emulated devices, of several partitions, check results on the devices, or on their
    hosts if directed.
    """
    path = edge_list(*random_edges(3, 300, 1500))
    options = {"directed": directed, "order": order, "partitions": 5, "threshold": 8}
    delegraph.build(path, tmp_path / "graph.dg", **options)
    check_job(open_store(tmp_path / "graph.dg"), 2, "cuda")


@pytest.mark.parametrize(
    ("ranks", "placing"),
    [slow(3, Placing()), slow(2, Placing("1d")), slow(4, Placing("2d", push_only=True))],
    ids=str,
)
def test_a_graph_made_across_ranks(emulated, ranks, placing):
    """Ranks generate a graph, search it and check every result in place."""
    recipe = parse_recipe("kronecker:8")
    assert recipe is not None
    job = BenchJob(recipe, BenchOptions(sources=4), placing)
    results = by_threads(ranks, lambda communicator: job.run(communicator, TEAM))
    assert results[0] is not None
    _, benched, exchanged = results[0]
    assert benched.graph["partitions"] == ranks
    assert exchanged is not None
    assert (exchanged.table_bytes is None) == (placing.layout != "delegate")


def wrong_distance(result: RankResult, v: int, partitions: int) -> None:
    result.parts[v % partitions].distance[v // partitions] += 1


def unreached(result: RankResult, v: int, partitions: int) -> None:
    part = result.parts[v % partitions]
    part.distance[v // partitions], part.parent[v // partitions] = -1, UNREACHED


def no_parent(result: RankResult, v: int, partitions: int) -> None:
    result.parts[v % partitions].parent[v // partitions] = UNREACHED


def wrong_parent(result: RankResult, v: int, partitions: int) -> None:
    result.parts[v % partitions].parent[v // partitions] = v  # no edge leads from it to itself


WRONG = {wrong_distance: 2, unreached: 4, no_parent: 1, wrong_parent: 5}


@pytest.mark.parametrize("wrong", WRONG, ids=lambda change: change.__name__)
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_is_wrong_is_found(store_of, layout, directed, wrong):
    """Ranks find planted errors by the rules, and as often, as one process; edges come from memory
    or the store.
    """
    store = store_of(layout, directed)
    info, ranks = store.info, 3
    table, rows_from = store.delegates(TEAM), rows_from_vertex(store, TEAM)
    source = job_of(store, 1).sources[0]
    # A normal vertex with a parent: of the last level but one, where it has children.
    searcher = searcher_of(store)
    searcher.search(source)
    assert searcher.found is not None
    depth = searcher.found.supersteps.depth
    normal = np.ones(info.vertices, bool)
    normal[table] = False
    victim = int(np.flatnonzero(normal & (searcher.found.distance == depth - 1))[0])

    def work(communicator: Communicator) -> list[tuple[Violations, RankResult]]:
        rank = communicator.rank
        graph = load_rank(store, rank, ranks, TEAM)
        search_rank(graph, source, communicator, TEAM)
        result = result_of(graph)
        if victim % info.partitions in result.parts:
            wrong(result, victim, info.partitions)
        both = []
        for edges in (
            lambda: edges_of_rank(graph),
            lambda: stored_edges(store, rank, ranks, TEAM),
        ):
            rows = None if rank else rows_from
            check = RankCheck(communicator, info.vertices, info.partitions, table, edges, rows)
            both.append((check(source, result)[0], check._gather(result)))
        return both

    src, dst = edges_of(store)
    for both in by_threads(ranks, work):
        for violations, (distance, parent) in both:
            expected = violations_of(src, dst, True, distance, parent, source)
            assert violations.count == expected.count
            assert violations.count[WRONG[wrong]]


def test_a_wrong_search_fails_the_bench(store_of, monkeypatch):
    """A wrong search on one rank fails the bench on all ranks, with the source as the user's id and
    the broken rules.
    """
    store = store_of("2d")

    def wrongly(graph) -> RankResult:
        result = result_of(graph)
        if graph.rank == 1:
            unreached(result, 1, store.info.partitions)
        return result

    monkeypatch.setattr(rank_searchers, "result_of", wrongly)
    job = job_of(store)
    with pytest.raises(DelegraphError, match=rf"vertex {job.names[0]} breaks rules {{.*4: \d"):
        by_threads(2, lambda communicator: job.run(communicator, TEAM))


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Build graph.dg of four partitions, grid.dg of the same in 2d, and one.dg in one piece."""
    folder = tmp_path_factory.mktemp("bench")
    src, dst = random_edges(1, 3000, 20_000)
    pq.write_table(pa.table({"src": src, "dst": dst}), folder / "edges.parquet")
    for name, options in {
        "graph": {"partitions": 4},
        "grid": {"partitions": 4, "layout": "2d"},
        "one": {},
    }.items():
        delegraph.build(folder / "edges.parquet", folder / f"{name}.dg", **options, threads=1)
    return folder


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_workers(ok, folder):
    args = ("--sources", 4, "--seed", 5)
    alone = ok("bench", folder / "graph.dg", *args, "--device", "cpu", "--json").json
    run = ok("bench", folder / "graph.dg", *args, "--workers", 2, "--scaling", "strong", "--json")
    one, two = run.json
    assert (one["ranks"], two["ranks"]) == (1, 2)
    assert one["exchanged"] is None
    assert set(two["exchanged"]["bytes_sent"]) == {"delegates", "normals", "control"}
    for row in (one, two):
        report = row["report"]
        for key in ("sources", "depth", "seed", "device", "preparation_seconds"):
            assert report[key] == alone[key]
        assert alone["graph"].items() <= report["graph"].items()
        assert report["threads"] == row["ranks"] * two["report"]["threads"] // 2
    lines = ok("bench", folder / "grid.dg", *args, "--workers", 2).out.splitlines()
    assert lines[0] == f"4 searches each, all valid, on {two['report']['threads']} threads of CPUs"
    assert lines[2].startswith("grid.dg")
    assert "expand" in lines[-1]


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("one.dg", ("--workers", 2), "has 1 partition for 2 workers: build it again with"),
        ("graph.dg", ("--workers", 2, "--scaling", "weak"), "give --scaling strong"),
        (
            "graph.dg",
            ("--workers", 3, "--scaling", "strong"),
            "a number of workers that is a power of two, not 3",
        ),
        ("graph.dg", ("--workers", 2, "--threshold", 9), "--threshold was fixed when"),
        ("grid.dg", ("--workers", 2, "--device", "cuda:1"), "give --device cuda"),
        (
            "graph.dg",
            ("--memory-limit", "1GB"),
            "--memory-limit is only for several worker processes",
        ),
        (
            "kronecker:9",
            ("--workers", 2, "--memory-limit", "1GB"),
            "--memory-limit is only for stores",
        ),
        ("no.dg", ("--workers", 2), "not a store"),
        ("kronecker:x", (), "write kronecker:SCALE"),
    ],
)
def test_refusals(delegraph, folder, name, options, says):
    run = delegraph("bench", name if ":" in name else folder / name, *options)
    assert run.code == 2
    assert len(run.err.splitlines()) == 1
    assert says in run.err


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.slow
@pytest.mark.parametrize("command", ["bench", "plan"])
def test_too_little_memory(delegraph, folder, command):
    """The least limit that a refusal names is enough to run."""
    args = (command, folder / "graph.dg", "--workers", 2, "--memory-limit")
    run = delegraph(*args, "1MB")
    assert run.code == 2
    assert "each of 2 ranks holds up to" in run.err
    least = re.search(r"give --memory-limit ([\d.]+[MG]B) or more", run.err)
    assert least, run.err
    assert delegraph(*args, parse_bytes(least[1])).code == 0


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.slow
def test_a_plan_is_what_a_search_keeps_to(ok, delegraph, folder):
    """A plan's bytes are those that a search by ranks keeps to; test_too_little_memory has the
    refusals.
    """
    store = open_store(folder / "graph.dg")
    document = ok("plan", store.path, "--workers", 3, "--json").json
    (step,) = document["steps"]
    assert (step["name"], step["tasks"], step["at_once"]) == ("search", 3, 3)
    assert step["task_bytes"] == max(rank_bytes(store, rank, 3) for rank in range(3))
    assert document["projected_peak_bytes"] == document["baseline_bytes"] + 3 * step["task_bytes"]
    assert (document["workers"], document["device"]) == (3, None)


def test_a_plan_for_more_workers_than_partitions(delegraph, folder):
    run = delegraph("plan", folder / "graph.dg", "--workers", 5)
    assert run.code == 2
    assert "has 4 partitions for 5 workers" in run.err
