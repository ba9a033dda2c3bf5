"""Programs on several GPUs of one machine: shares of the edges, or of the sources.

    python benchmarks/gpu_program_ranks.py [--ranks 2] [--weak kron25,kron26] [--strong kron26]
        [--algorithms components,pagerank,sssp,betweenness,closeness] [--sources 16] [--data FOLDER]

weak: of graphs, the first by one GPU, the next by twice as many, and so on; strong: each graph by
1, 2, 4, ... GPUs. Efficiency is the rate (entries a second) of k over k times that of one, of the
first graph, or of the same. Ranks are threads of this process; what they tell each other goes by
NCCL. Rank r has the rows of the vertices v with v mod ranks = r. A time is from a meeting of all
ranks to the next, the median of several; of PageRank an iteration's. Every result is compared with
that of one GPU; components and shortest paths of one are checked as in gpu_algorithms.py. Keeps the
figures in benchmarks/results/gpu_program_ranks.json.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from statistics import median
from typing import Any

import environment
import gpu
import numpy as np
import real
from gpu_algorithms import DAMPING, Subject, check_components, check_paths, plain, subject_of

from delegraph.kernels.gpu.device import Device, open_device
from delegraph.kernels.gpu.graph import Rows
from delegraph.kernels.gpu_programs import betweenness, components, pagerank, searches
from delegraph.kernels.gpu_programs import shortest_paths as paths
from delegraph.kernels.gpu_programs.ranks import Ranks
from delegraph.kernels.gpu_programs.rows import ProgramGraph, cut
from delegraph.pipeline.ranks.communicator import barrier, telling_others
from delegraph.pipeline.ranks.nccl import NcclCommunicator
from delegraph.pipeline.ranks.tcp import TcpCommunicator

REPEATS = 5
ITERATIONS = 10
BATCHES = 4  # of 64 searches

Work = Callable[[ProgramGraph, Ranks], Any]
"""What a rank does; rank 0 gives the result, others anything."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Time programs on several GPUs.")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--weak", default="")
    parser.add_argument("--strong", default="")
    parser.add_argument("--algorithms", default=",".join(ALGORITHMS))
    parser.add_argument("--sources", type=int, default=16)
    real.add_option(parser)
    options = parser.parse_args()
    devices = [open_device(rank) for rank in range(options.ranks)]
    about = environment.describe(("numpy", "pyarrow"))
    about["versions"] |= devices[0].versions()
    about["gpu"] = {"name": devices[0].name, **gpu.clocks()}
    environment.show(about)
    print(f"{len(devices)} x {devices[0].name}, {about['gpu']}", flush=True)
    found = real.real_graphs(options.data)
    algorithms = options.algorithms.split(",")
    counts = [1 << i for i in range(options.ranks.bit_length()) if 1 << i <= options.ranks]
    results: list[dict[str, Any]] = []
    for name in filter(None, options.strong.split(",")):
        for result in measure(devices, name, counts, algorithms, found, options.sources):
            results.append({"scaling": "strong", **result})
            show(results[-1])
    first: dict[str, float] = {}
    for name, ranks in zip(filter(None, options.weak.split(",")), counts, strict=False):
        for result in measure(
            devices, name, sorted({1, ranks}), algorithms, found, options.sources
        ):
            rate = result["entries_a_second"] / ranks
            if result["ranks"] == ranks:
                of_one = rate / first.setdefault(result["algorithm"], rate)
                results.append({"scaling": "weak", **result, "of_one": of_one})
                show(results[-1])
    environment.keep("gpu_program_ranks", about, results)


def measure(
    devices: list[Device],
    name: str,
    counts: list[int],
    algorithms: list[str],
    found: dict[str, Any],
    sources: int,
) -> Iterator[dict[str, Any]]:
    """By so many ranks; the first are the ones of the others' efficiency."""
    subject = subject_of(devices[0], name, found, sources)
    alone: dict[str, tuple[float, Any]] = {}
    for ranks in counts:
        with joined(devices[:ranks]) as everyone:
            shares = share_all(everyone, devices, name, found, subject)
            for algorithm in algorithms:
                work, same = ALGORITHMS[algorithm](subject)
                whole = algorithm in DEALT
                graphs = [share.whole if whole else share.part for share in shares]
                seconds, sent, given = run(everyone, graphs, work)
                if ranks == 1:
                    alone[algorithm] = median(seconds), given
                else:
                    same(alone[algorithm][1], given)
                spent = median(seconds)
                yield {
                    "graph": name,
                    "algorithm": algorithm,
                    "ranks": ranks,
                    "vertices": subject.vertices,
                    "entries": subject.rows.edges,
                    "median_ms": 1e3 * spent,
                    "worst_ms": 1e3 * max(seconds),
                    "entries_a_second": subject.rows.edges / spent,
                    "sent": sent,
                    "of_one": alone[algorithm][0] / spent / ranks,
                }
            del shares


class Share:
    """A rank's: its part of the edges, and all of them."""

    def __init__(self, whole: ProgramGraph, rank: int, ranks: int) -> None:
        self.whole = whole
        self.part = whole if ranks == 1 else part_of(whole, rank, ranks)


@contextmanager
def joined(devices: list[Device]) -> Iterator[list[NcclCommunicator]]:
    size = len(devices)
    below = [TcpCommunicator("benchmark", r, size, "tcp://127.0.0.1", 60.0) for r in range(size)]
    with ThreadPoolExecutor(size) as pool:
        list(pool.map(lambda rank: rank.join([other.address for other in below]), below))
        everyone = list(map(NcclCommunicator, below, devices))
        try:
            yield everyone
        finally:
            list(pool.map(lambda rank: rank.close(), everyone))
            list(pool.map(lambda rank: rank.close(), below))


def share_all(
    everyone: list[NcclCommunicator],
    devices: list[Device],
    name: str,
    found: dict[str, Any],
    subject: Subject,
) -> list[Share]:
    """Each rank makes the graph anew, but the first one."""

    def one(communicator: NcclCommunicator) -> Share:
        rank, device = communicator.rank, devices[communicator.rank]
        with device.use() as cupy:
            whole = subject if rank == 0 else subject_of(device, name, found, 1)
            share = Share(whole.graph, rank, len(everyone))
            cupy.get_default_memory_pool().free_all_blocks()
            return share

    with ThreadPoolExecutor(len(everyone)) as pool:
        return list(pool.map(one, everyone))


def part_of(graph: ProgramGraph, rank: int, ranks: int) -> ProgramGraph:
    """Rows of every so many vertices; the others have none."""
    rows, device = graph.cut.rows, graph.device
    with device.use() as cupy:
        lengths = rows.offsets[1:] - rows.offsets[:-1]
        mine = cupy.arange(len(lengths)) % ranks == rank
        offsets = cupy.zeros_like(rows.offsets)
        cupy.cumsum(lengths * mine, out=offsets[1:])
        edges = int(offsets[-1])
        targets, weights = (cupy.empty(edges, np.uint32) for _ in range(2))
        at, piece = 0, 1 << 26
        for first in range(0, rows.edges, piece):
            entries = cupy.arange(first, min(first + piece, rows.edges), dtype=np.uint64)
            chosen = mine[cupy.searchsorted(rows.offsets, entries, "right") - 1]
            some = rows.near[first : first + piece][chosen]
            targets[at : at + len(some)] = some
            assert graph.weights is not None
            weights[at : at + len(some)] = graph.weights[first : first + piece][chosen]
            at += len(some)
        made = cut(device, Rows(offsets, targets))
        return replace(graph, cut=made, weights=weights, twice=False, ranks=ranks)


def run(
    everyone: list[NcclCommunicator], graphs: list[ProgramGraph], work: Work
) -> tuple[list[float], int, Any]:
    """Seconds, run by run but the first; bytes that all ranks have sent in the last; its result."""

    def one(communicator: NcclCommunicator) -> tuple[list[float], int, Any]:
        graph = graphs[communicator.rank]
        device, seconds, sent, given = graph.device, [], 0, None
        with telling_others(communicator.rank, communicator), device.use() as cupy:
            for _ in range(1 + REPEATS):
                ranks = Ranks(device, communicator.rank, communicator.size, communicator.exchange)
                given = None
                cupy.cuda.Device().synchronize()
                barrier(communicator)
                began = time.perf_counter()
                given = work(graph, ranks)
                cupy.cuda.Device().synchronize()
                barrier(communicator)
                own = given[0] if isinstance(given, tuple) else time.perf_counter() - began
                seconds.append(own)
                sent = ranks.sent
        return seconds[1:], sent, given[1] if isinstance(given, tuple) else given

    with ThreadPoolExecutor(len(everyone)) as pool:
        found = list(pool.map(one, everyone))
    return found[0][0], sum(sent for _, sent, _ in found), found[0][2]


def of_components(subject: Subject) -> tuple[Work, Callable[[Any, Any], None]]:
    def work(graph: ProgramGraph, ranks: Ranks) -> Any:
        if ranks.size == 1:
            forest = components.join_all(graph)
            check_components(subject, forest)
            return forest.get()
        return components.components_of_shares(graph, ranks)

    return work, lambda one, other: np.testing.assert_array_equal(one, other)


def of_pagerank(subject: Subject) -> tuple[Work, Callable[[Any, Any], None]]:
    """A time is of an iteration, the median."""

    def work(graph: ProgramGraph, ranks: Ranks) -> Any:
        graph = plain(graph)
        if ranks.size == 1:
            walk = pagerank.GpuWalk(graph, DAMPING, None, True)
            steps = walk.run(ITERATIONS)
        else:
            walk = pagerank.SharedWalk(graph, ranks, DAMPING, True)
            steps = [walk.step(False)[0] for _ in range(ITERATIONS)]
            ranks.sent //= ITERATIONS
        return median(some.seconds for some in steps), walk.ranks()

    return work, lambda one, other: np.testing.assert_allclose(one, other, rtol=1e-12)


def of_paths(subject: Subject) -> tuple[Work, Callable[[Any, Any], None]]:
    source = subject.sources[0]
    width = subject.mean_weight / max(1.0, subject.rows.edges / subject.vertices)

    def work(graph: ProgramGraph, ranks: Ranks) -> Any:
        if ranks.size == 1:
            found = paths.GpuPaths(graph, source, width, np.inf)
            while not found.done:
                found.run()
            check_paths(subject, source, found.distance)
        else:
            found = paths.SharedPaths(graph, ranks, source, width, np.inf)
            while not found.done:
                found.step(False)
        return found.distance.get()

    return work, lambda one, other: np.testing.assert_array_equal(one, other)


def of_betweenness(subject: Subject) -> tuple[Work, Callable[[Any, Any], None]]:
    every = np.array(subject.sources, np.uint32)

    def work(graph: ProgramGraph, ranks: Ranks) -> Any:
        sources, done = every[ranks.rank :: ranks.size], 0
        state = betweenness.GpuBrandes(graph)
        while done < len(sources):
            done += state.run(sources[done:])
        score = graph.device.cupy.asarray(state.score())
        if ranks.size > 1:
            ranks.fold_whole(score, graph.device.cupy.add)
        return score.get()

    return work, lambda one, other: np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


def of_closeness(subject: Subject) -> tuple[Work, Callable[[Any, Any], None]]:
    """Several batches of searches: those of each rank."""
    every = np.tile(subject.many, BATCHES)

    def work(graph: ProgramGraph, ranks: Ranks) -> Any:
        state, found = searches.GpuSearches(graph, len(every)), []
        mine = np.array_split(every, ranks.size)[ranks.rank]
        for first in range(0, len(mine), searches.WIDTH):
            batch = mine[first : first + searches.WIDTH]
            met = state.together(batch)
            hops = met.hops if met.outcome == searches.FOUND else state.apart(batch)
            assert hops is not None
            found.append(hops["total"].copy())
        came = ranks.tell([[np.concatenate(found)]] * ranks.size)
        return np.concatenate([some for (some,) in came])

    return work, lambda one, other: np.testing.assert_array_equal(one, other)


ALGORITHMS: dict[str, Callable[[Subject], tuple[Work, Callable[[Any, Any], None]]]] = {
    "components": of_components,
    "pagerank": of_pagerank,
    "sssp": of_paths,
    "betweenness": of_betweenness,
    "closeness": of_closeness,
}
DEALT = "betweenness", "closeness"


def show(result: dict[str, Any]) -> None:
    print(
        f"{result['scaling']:<7}{result['graph']:<16}{result['algorithm']:<12}"
        f"{result['ranks']} GPUs {result['median_ms']:>10.3f} ms, worst {result['worst_ms']:.3f}; "
        f"{result['entries_a_second'] / 1e9:.1f} G entries/s; efficiency {result['of_one']:.2f}; "
        f"{result['sent'] / 1e6:.1f} MB sent",
        flush=True,
    )


if __name__ == "__main__":
    main()
