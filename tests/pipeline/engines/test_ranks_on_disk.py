"""Searches by several ranks with edges on disk: against the definition, and the bytes that they
read.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import delegraph as package
from delegraph.kernels import reference
from delegraph.kernels.base.numbering import by_rule
from delegraph.kernels.base.team import Team
from delegraph.kernels.pieces.piece import Ends, Piece, Start, row_of
from delegraph.kernels.pieces.pull import pull_piece
from delegraph.kernels.pieces.push import push_piece
from delegraph.partition.disk import files
from delegraph.partition.disk.memory import parse_bytes
from delegraph.partition.store.edge_stream import EdgeStream
from delegraph.partition.store.grid import Grid
from delegraph.partition.store.manifest import targets_file
from delegraph.partition.store.store import Store, open_store
from delegraph.pipeline.engines.direction import choose
from delegraph.pipeline.engines.ranks import edges
from delegraph.pipeline.engines.ranks.edges import Chosen, Rows, RowsOnDisk
from delegraph.pipeline.engines.ranks.graph import RankGraph
from delegraph.pipeline.engines.ranks.result import gather, result_of, save
from delegraph.pipeline.engines.ranks.search import load_rank, rank_stream_bytes, search_rank
from delegraph.pipeline.engines.ranks.superstep import Choose
from delegraph.pipeline.ranks.communicator import (
    Failure,
    RankError,
    SingleCommunicator,
    ThreadGroup,
)
from support.graphs import edges_of, random_edges
from support.marks import nightly, slow
from support.outputs import distances_of
from support.ranks import search_by_threads
from support.searches import violations_of

BLOCK = 256  # bytes: the header's 128, then 32 edges; pages of 2
LAYOUTS = {
    "auto": {"partitions": 3},
    "few delegates": {"partitions": 4, "threshold": 60},
    "2d": {"layout": "2d", "grid": Grid(3, 2)},
    "1d": {"layout": "1d", "partitions": 3},
}
CHOICES: dict[str, Choose] = {
    "auto": choose,
    "push": lambda *_: "push",
    "pull": lambda *_: "pull",
}


@pytest.fixture
def small_blocks(monkeypatch):
    """Set blocks so small that they cut rows, and pages of a few edges."""
    monkeypatch.setattr(files, "BLOCK_BYTES", BLOCK)


def built(folder: Path, src, dst, **options) -> Store:
    pq.write_table(pa.table({"src": src, "dst": dst}), folder / "edges.parquet")
    package.build(folder / "edges.parquet", folder / "graph.dg", **options, threads=1)
    return open_store(folder / "graph.dg")


def twice(
    store: Store, source: int, ranks: int, folder: Path, threads: int, choose: Choose
) -> list[tuple[np.ndarray, np.ndarray, list]]:
    """Search twice with the same graphs; return distances, parents and supersteps of each
    search.
    """

    def one(communicator) -> list[list]:
        graph = load_rank(store, communicator.rank, ranks, Team(1), on_disk=True)
        logs = []
        for place in places:
            result = search_rank(graph, source, communicator, Team(threads), choose=choose)
            save(result_of(graph), place)
            logs.append(result.supersteps)
        return logs

    places = [folder / f"{i}" for i in range(2)]
    for place in places:
        place.mkdir(parents=True)
    with ThreadPoolExecutor(ranks) as pool:
        steps, *_ = pool.map(one, ThreadGroup(ranks).communicators)
    return [(*gather(store, place), log) for place, log in zip(places, steps, strict=True)]


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("ranks", [slow(2), 3])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_against_the_definition(tmp_path, layout, directed, ranks):
    """Searches are right, and a second search reads no more: the first reads and verifies whole
    blocks, the second single pages.
    """
    store = built(tmp_path, *random_edges(1, 700, 4000), **LAYOUTS[layout], directed=directed)
    src, dst = edges_of(store)
    n = store.info.vertices
    for source, (name, rule) in zip((0, n // 2, n - 1), CHOICES.items(), strict=True):
        wanted = reference.distances(src, dst, n, source, True)
        levels = np.bincount(wanted[wanted > 0], minlength=1)[1:].tolist()
        read = []
        out = tmp_path / name
        for distance, parent, steps in twice(store, source, ranks, out, 1 + ranks, rule):
            assert np.array_equal(distance, wanted)
            assert not violations_of(src, dst, True, distance, parent, source)
            assert [step["found"] for step in steps if step["found"]] == levels
            read.append(sum(step["bytes_read"] for step in steps))
        assert min(1, len(levels)) <= read[1] <= read[0]


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("way", CHOICES)
@pytest.mark.parametrize("layout", ["auto", "2d", "1d"])
def test_a_row_of_many_runs(tmp_path, layout, way):
    """A star's centre has a row of many runs that threads share, in either direction of a
    search.
    """
    store = built(tmp_path, np.zeros(3000, int), np.arange(1, 3001), **LAYOUTS[layout])
    src, dst = edges_of(store)
    for source in (0, 1500):
        wanted = reference.distances(src, dst, 3001, source, True)
        distance, parent, _ = search_by_threads(
            *(store, source, 3, tmp_path / "out"), threads=4, choose=CHOICES[way], on_disk=True
        )
        assert np.array_equal(distance, wanted)
        assert not violations_of(src, dst, True, distance, parent, source)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("layout", ["auto", "2d"])
def test_edges_that_a_push_examines_and_bytes_that_it_reads(tmp_path, layout):
    """A push from disk examines the edges of a push in memory; on a path, it reads few bytes and
    blocks.
    """
    store = built(tmp_path, np.arange(1000), np.arange(1, 1001), **LAYOUTS[layout])
    blocks = sum(len(r.xxh3) for name, r in store.files.items() if ".targets-" in name)
    place = store, 5, 2, tmp_path / "out"
    in_memory = search_by_threads(*place, choose=CHOICES["push"])[2][0].supersteps
    pushed = search_by_threads(*place, choose=CHOICES["push"], on_disk=True)[2][0].supersteps
    for one, other in zip(in_memory, pushed, strict=True):
        assert one["edges_examined"] == other["edges_examined"]
        assert (one["bytes_read"], one["blocks_skipped"]) == (0, 0)
        assert other["bytes_read"] <= 2 * BLOCK * other["edges_examined"]
        assert 0 < other["blocks_skipped"] < blocks
    assert sum(step["bytes_read"] for step in pushed) > 0


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("layout", ["2d", "1d"])
def test_late_pulls_skip_what_is_visited(tmp_path, layout):
    store = built(tmp_path, *random_edges(7, 2000, 20_000), **LAYOUTS[layout])
    place = store, 0, 3, tmp_path / "out"
    steps = search_by_threads(*place, choose=CHOICES["pull"], on_disk=True)[2][0].supersteps
    skipped = [step["blocks_skipped"] for step in steps]
    assert skipped == sorted(skipped)
    assert skipped[-1] > skipped[0]


@pytest.mark.usefixtures("small_blocks")
def test_active_rows_are_those_of_the_vertices(tmp_path):
    """Active rows are those of the chosen vertices, in pages on disk and in turns of rows in
    memory.
    """
    store = built(tmp_path, *random_edges(2, 300, 3000), partitions=2, layout="1d")
    on_disk, held = (load_rank(store, 0, 2, Team(1), on_disk=way) for way in (True, False))
    rows, same = on_disk.adjacencies[0].rows, held.adjacencies[0].rows
    assert isinstance(rows, RowsOnDisk)
    assert isinstance(same, Rows)
    count, starts = len(rows.offsets) - 1, rows.stream.page_starts
    rng = np.random.default_rng(1)
    for size in (0, 1, 5, 150):
        queue = np.sort(rng.choice(count, size, replace=False))
        bits = np.zeros(-(-count // 64), np.uint64)
        np.bitwise_or.at(bits, queue >> 6, np.uint64(1) << (queue & 63).astype(np.uint64))
        chosen, rest = Chosen(by_rule(), bits, count), Chosen(by_rule(), ~bits, count)
        active = rows.active(Team(2), chosen)
        entries = {e for u in queue.tolist() for e in range(rows.offsets[u], rows.offsets[u + 1])}
        holding = np.searchsorted(starts, sorted(entries), side="right") - 1
        with_edges = np.diff(starts) > 0
        assert np.array_equal(np.flatnonzero(active.where & with_edges), np.unique(holding))
        assert active.edges == len(entries)
        assert active[:2] == same.active(Team(1), chosen)[:2]
        others = rows.active(Team(1), rest)
        assert others[:2] == same.active(Team(1), rest)[:2]
        assert active.edges + others.edges == len(same.targets)


def test_turns_have_equally_many_edges():
    degrees = np.random.default_rng(1).integers(0, 50, 10_000)
    degrees[70] = 3 * edges.EDGES_A_TURN
    offsets = np.append(0, np.cumsum(degrees)).astype(np.uint32)
    rows = Rows(offsets, np.zeros(int(offsets[-1]), np.uint32))
    wanted = np.full(-(-len(degrees) // 64), 0x5555555555555555, np.uint64)
    active = rows.active(Team(1), Chosen(by_rule(), wanted, len(degrees)))
    assert active.edges == degrees[::2].sum()
    assert active.rows == np.count_nonzero(degrees[::2])
    visits = rows.push(Team(2), active, lambda piece, *turn: turn)
    at = 0
    for queue, first, last, most in visits.results:
        assert first >= at
        lengths = degrees[queue[first:last]]
        assert most == lengths.sum()
        assert most < edges.EDGES_A_TURN + lengths.max() or len(lengths[lengths > 0]) == 1
        at = last
    assert at == len(active.queue) == len(degrees) // 2


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_damaged_block_is_named(tmp_path, layout):
    store = built(tmp_path, *random_edges(1, 5000, 40_000), **LAYOUTS[layout])
    name = "nn" if store.info.subgraph_edges["nn"] else "nd"
    path = store.path / targets_file(1, name, 0)
    data = bytearray(path.read_bytes())
    data[200] ^= 1
    path.write_bytes(data)
    with pytest.raises(RankError, match=rf"rank 1 .*{path.name}: damaged: block 0 .* in superstep"):
        search_by_threads(store, 3, 3, tmp_path / "out", on_disk=True)


def test_a_failure_elsewhere_ends_the_reading(tmp_path, monkeypatch):
    """A failure of another rank ends the reading at once, not at the end of the superstep, which
    may take minutes.
    """
    monkeypatch.setattr(files, "BLOCK_BYTES", BLOCK)
    store = built(tmp_path, *random_edges(1, 700, 4000), partitions=2, layout="1d")
    group = ThreadGroup(2)
    graph = load_rank(store, 0, 2, Team(1), group.communicators[0].check, on_disk=True)
    rows = graph.adjacencies[0].rows
    read = []

    def visit(*piece_and_rows) -> None:
        read.append(1)
        group.fail(Failure(1, "failed"))

    side = graph.adjacencies[0].source
    every = rows.active(Team(1), Chosen(side.places, ~np.zeros_like(graph.own.visited), side.count))
    with pytest.raises(RankError, match="rank 1 failed"):
        rows.push(Team(1), every, visit)
    assert len(read) == 1


def test_wide_offsets():
    """Pieces of more than 2^32 edges, of which eight in the middle are in memory, touch no other
    edge.
    """
    far = 1 << 33
    offsets = np.array([0, far, far + 3, far + 3, far + 10, 2 * far], np.uint64)
    targets = np.arange(8, dtype=np.uint32)
    piece = Piece(offsets, targets, far - 2, far + 6)
    assert row_of(offsets, piece.begin) == 0
    assert row_of(offsets, piece.end - 1) == 3
    every, nobody = np.full(1, 0b1111, np.uint64), np.zeros(1, np.uint64)
    same, nothing = by_rule(), np.empty(0, np.uint32)
    bits, parents = np.zeros(1, np.uint64), np.full(64, 99, np.uint32)
    ends = Ends(same, nobody, bits, nothing, parents)
    assert push_piece(piece, nothing, 0, 4, Start(same, same, every), ends) == (8, 8)
    assert parents[:9].tolist() == [0, 0, 1, 1, 1, 3, 3, 3, 99]
    sent, vertices, parents = np.zeros(1, np.uint64), np.empty(8, np.uint32), np.empty(8, np.uint32)
    ends = Ends(same, sent, sent, vertices, parents)
    assert push_piece(piece, nothing, 0, 4, Start(same, same, every), ends) == (8, 8)
    assert vertices.tolist() == list(range(8))
    assert parents.tolist() == [0, 0, 1, 1, 1, 3, 3, 3]
    reached = Start(same, same, np.array([0b10010], np.uint64))
    bits, parents = np.zeros(1, np.uint64), np.full(64, 99, np.uint32)
    ends = Ends(same, nobody, bits, nothing, parents)
    assert pull_piece(piece, 0, 4, reached, ends) == (2, 2 + 3 + 3)
    assert parents[:4].tolist() == [1, 4, 99, 99]
    sent, vertices, parents = np.zeros(1, np.uint64), np.empty(4, np.uint32), np.empty(4, np.uint32)
    ends = Ends(same, sent, sent, vertices, parents)
    assert pull_piece(piece, 0, 4, reached, ends) == (2, 2 + 3 + 3)
    assert (vertices[:2].tolist(), parents[:2].tolist()) == ([0, 1], [1, 4])


COMPILED = """
import sys
import numpy as np
from delegraph.kernels.base import bitmap
from delegraph.kernels.base.compiled import variants
from delegraph.kernels.base.team import Team
from delegraph.kernels.pieces import active, piece, pull, push, vertices
from delegraph.partition.store.store import open_store
from delegraph.pipeline.ranks.communicator import SingleCommunicator, ThreadGroup
from delegraph.pipeline.engines.ranks.search import load_rank, search_rank, warm_up
from concurrent.futures import ThreadPoolExecutor

modules = bitmap, active, piece, pull, push, vertices
warm_up([np.uint32])
before = variants(*modules)
assert set(before.values()) == {1}, before
store = open_store(sys.argv[1])

def one(communicator):
    for on_disk in (False, True):
        place = communicator.rank, communicator.size
        graph = load_rank(store, *place, Team(1), on_disk=on_disk)
        for way in ("push", "pull"):
            search_rank(graph, 0, communicator, Team(1), choose=lambda *_: way)

one(SingleCommunicator())
with ThreadPoolExecutor(2) as pool:
    list(pool.map(one, ThreadGroup(2).communicators))
assert variants(*modules) == before, (variants(*modules), before)
"""


@pytest.mark.parametrize("layout", ["auto", "2d"])
def test_compiling_beforehand_compiles_all(tmp_path, layout):
    """Compiling beforehand compiles all kernels, in a process that has compiled nothing else."""
    store = built(tmp_path, *random_edges(3, 300, 2000), **LAYOUTS[layout], directed=True)
    subprocess.run([sys.executable, "-c", COMPILED, store.path], check=True)


def arrays_of(graph: RankGraph) -> Sequence[np.ndarray]:
    """Return all arrays that a single rank holds with edges on disk, buffers included."""
    state = [graph.delegates]
    for adjacency in graph.adjacencies:
        rows = adjacency.rows
        assert isinstance(rows, RowsOnDisk)
        assert isinstance(rows.stream, EdgeStream)
        state += [rows.offsets, rows.stream.page_starts, rows.stream._verified, *rows.buffers]
    assert not graph.every_ghost
    for part in graph.vertex_states:
        state += [part.visited, part.frontier, part.found, part.distance, part.parent]
    return state


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("threads", [1, 3])
def test_projected_bytes_hold_what_is_loaded(tmp_path, layout, threads):
    store = built(tmp_path, *random_edges(1, 3000, 60_000), **LAYOUTS[layout])
    graph = load_rank(store, 0, 1, Team(1), on_disk=True)
    search_rank(graph, 0, SingleCommunicator(), Team(2 * threads))
    arrays = {id(array): array.nbytes for array in arrays_of(graph)}
    assert sum(arrays.values()) <= rank_stream_bytes(store, 0, 1, threads)


@pytest.fixture(scope="module")
def large(tmp_path_factory) -> Path:
    """Build a store whose edges are far larger than the buffers that they are read into."""
    rng = np.random.default_rng(1)
    ends = (rng.random((2, 8_000_000)) ** 2 * 30_000).astype(np.int64)
    return built(tmp_path_factory.mktemp("large"), *ends, partitions=2).path


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.slow
@pytest.mark.parametrize("workers", [nightly(1), 2])
def test_a_limit_between_both_needs(delegraph, ok, large, tmp_path, workers):
    """The least limit that a refusal names is that of edges on disk, and plan and bfs keep to
    it.
    """
    on = ("--workers", workers, "--threads", 2, "--memory-limit")
    args = ("bfs", large, "--source", 5, "-o")
    ok(*args, tmp_path / "first", *on, "4GB")  # workers that compile hold more
    run = delegraph(*args, tmp_path / "out", *on, "1MB")
    assert run.code == 2
    assert f"each of {workers} ranks holds up to" in run.err
    least = re.search(r"give --memory-limit ([\d.]+[MG]B) or more", run.err)
    assert least, run.err
    bound = parse_bytes(least[1])
    for name, limit in (("streamed", bound), ("held", 10 * bound)):
        planned = ok("plan", large, *on, limit, "--json").json
        assert planned["in_memory"] == (name == "held")
        ok(*args, tmp_path / name, *on, limit)
        record = json.loads((tmp_path / f"{name}.run.json").read_text())
        assert record["ranks"] == workers
        read = sum(step["bytes_read"] for step in record["supersteps"])
        assert (read > 0) == (name == "streamed")
        method = record["search"]["method"]
        assert method == ("push-pull, streamed" if name == "streamed" else "push-pull")
    assert distances_of(tmp_path / "streamed") == distances_of(tmp_path / "held")


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("kind", ["threads", slow("tcp")])
@pytest.mark.parametrize("directed", [slow(False), True])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_any_number_of_ranks(tmp_path, layout, directed, kind):
    """Searches are right for any number of ranks, in memory and on disk, so segments are local and
    remote in every mixture.
    """
    store = built(tmp_path, *random_edges(5, 300, 1500), **LAYOUTS[layout], directed=directed)
    src, dst = edges_of(store)
    wanted = reference.distances(src, dst, store.info.vertices, 7, True)
    for ranks in range(1, store.info.partitions + 1):
        for on_disk in (False, True):
            for way, rule in CHOICES.items():
                place = store, 7, ranks, tmp_path / f"{ranks}-{on_disk}-{way}"
                result = search_by_threads(*place, kind=kind, choose=rule, on_disk=on_disk)
                assert np.array_equal(result[0], wanted)
                assert not violations_of(src, dst, True, *result[:2], 7)
