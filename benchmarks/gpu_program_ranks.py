"""Programs on several GPUs of one machine: shares of the edges, or of the sources.

    python benchmarks/gpu_program_ranks.py [--ranks 2] [--weak kron25,kron26] [--strong kron26]
        [--algorithms components,pagerank,sssp,betweenness,closeness,hits,cores,forest]
        [--sources 16] [--data FOLDER]

weak: of graphs, the first by one GPU, the next by twice as many, and so on; strong: each graph by
1, 2, 4, ... GPUs. Efficiency is the rate (entries a second) of k over k times that of one, of the
first graph, or of the same. Ranks are processes; rank r has the rows of the vertices v with
v mod ranks = r, as in the layout 1d, or of betweenness and closeness all rows and a share of the
sources. A time is from a meeting of all ranks to the next, the median of several; of PageRank and
HITS an iteration's. hits, cores and forest are operations' programs: gathers of sums, spreads of
counts, gathers by both ends. Every result is compared with that of one GPU; components and shortest
paths of one are checked as in gpu_algorithms.py. Keeps the figures in
benchmarks/results/gpu_program_ranks.json.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from multiprocessing.queues import Queue
from statistics import median
from typing import Any

import environment
import gpu
import numpy as np
import real
from gpu_algorithms import DAMPING, Subject, check_components, check_paths, plain, subject_of

from delegraph.kernels.gpu.device import open_device
from delegraph.kernels.gpu.graph import Rows
from delegraph.kernels.gpu_programs import (
    betweenness,
    components,
    pagerank,
    searches,
    shared_paths,
    shared_walks,
)
from delegraph.kernels.gpu_programs import shortest_paths as paths
from delegraph.kernels.gpu_programs.meeting import closed_by_all
from delegraph.kernels.gpu_programs.ranks import Ranks
from delegraph.kernels.gpu_programs.rows import ProgramGraph, cut
from delegraph.pipeline.algorithms.cores import CoresProgram
from delegraph.pipeline.algorithms.forest import ForestProgram
from delegraph.pipeline.algorithms.hits import HitsProgram
from delegraph.pipeline.algorithms.iterations import Stop
from delegraph.pipeline.engines.one_device.operations import (
    DeviceOperations,
    SharedOperationsProgram,
)
from delegraph.pipeline.engines.operations.saving import DeviceSaving, SharedSaving
from delegraph.pipeline.ranks.communicator import barrier, telling_others
from delegraph.pipeline.ranks.nccl import NcclCommunicator
from delegraph.pipeline.ranks.tcp import TcpCommunicator

REPEATS = 5
ITERATIONS = 10
BATCHES = 4  # of 64 searches
PATIENCE = 300.0  # seconds, for a rank to tell of an algorithm

Work = Callable[[ProgramGraph, Ranks], Any]
"""What a rank does; rank 0 gives the result, others anything."""
Check = Callable[[Any], Any]
"""Of the result of one rank, on its device."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Time programs on several GPUs.")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--weak", default="")
    parser.add_argument("--strong", default="")
    parser.add_argument("--algorithms", default=",".join(ALGORITHMS))
    parser.add_argument("--sources", type=int, default=16)
    real.add_option(parser)
    options = parser.parse_args()
    options.found = real.real_graphs(options.data)
    about = gpu.describe(open_device())
    about["gpu"]["count"] = options.ranks
    counts = [1 << i for i in range(options.ranks.bit_length()) if 1 << i <= options.ranks]
    results: list[dict[str, Any]] = []
    for name in filter(None, options.strong.split(",")):
        for result in measure(name, counts, options):
            results.append({"scaling": "strong", **result})
            show(results[-1])
    first: dict[str, float] = {}
    for name, ranks in zip(filter(None, options.weak.split(",")), counts, strict=False):
        for result in measure(name, sorted({1, ranks}), options):
            rate = result["entries_a_second"] / ranks
            if result["ranks"] == ranks:
                of_one = rate / first.setdefault(result["algorithm"], rate)
                results.append({"scaling": "weak", **result, "of_one": of_one})
                show(results[-1])
    environment.keep("gpu_program_ranks", about, results)


def measure(name: str, counts: list[int], options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """By so many ranks, of which one, the first, is what the others' efficiency is of."""
    alone: dict[str, tuple[float, Any]] = {}
    for ranks in counts:
        for algorithm, seconds, sent, (vertices, entries), given in by_processes(
            name, ranks, options
        ):
            spent = median(seconds)
            if ranks == 1:
                alone[algorithm] = spent, given
            else:
                SAME[algorithm](alone[algorithm][1], given)
            yield {
                "graph": name,
                "algorithm": algorithm,
                "ranks": ranks,
                "vertices": vertices,
                "entries": entries,
                "median_ms": 1e3 * spent,
                "worst_ms": 1e3 * max(seconds),
                "entries_a_second": entries / spent,
                "sent": sent,
                "of_one": alone[algorithm][0] / spent / ranks,
            }


def by_processes(name: str, ranks: int, options: argparse.Namespace) -> Iterator[Any]:
    """What rank 0 tells of each algorithm."""
    context = multiprocessing.get_context("spawn")
    queues = [context.Queue() for _ in range(ranks)]
    told = context.Queue()
    processes = [
        context.Process(target=be_rank, args=(rank, queues, told, name, options), daemon=True)
        for rank in range(ranks)
    ]
    for process in processes:
        process.start()
    for _ in options.algorithms.split(","):
        yield told.get(timeout=PATIENCE)
    for process in processes:
        process.join()


def be_rank(
    rank: int, queues: list[Queue], told: Queue, name: str, options: argparse.Namespace
) -> None:
    """A process."""
    device, size = open_device(rank), len(queues)
    below = TcpCommunicator("benchmark", rank, size, "tcp://127.0.0.1", 60.0)
    for queue in queues:
        queue.put((rank, below.address))
    below.join([address for _, address in sorted(queues[rank].get() for _ in queues)])
    communicator = NcclCommunicator(below, device)
    with device.use(), telling_others(rank, communicator):
        subject = subject_of(device, name, options.found, options.sources)
        whole = subject.graph
        part = whole if size == 1 else part_of(whole, rank, size)
        for algorithm in options.algorithms.split(","):
            work, check = ALGORITHMS[algorithm](subject)
            graph = whole if algorithm in DEALT else part
            seconds, sent, given = run(communicator, graph, work)
            if size == 1:
                check(device.cupy.asarray(given))
            if rank == 0:
                size_of = subject.vertices, subject.rows.edges
                told.put((algorithm, seconds, sent, size_of, device.cupy.asnumpy(given)))
    communicator.close()
    below.close()


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
        return replace(graph, cut=made, weights=weights, ranks=ranks)


def run(
    communicator: NcclCommunicator, graph: ProgramGraph, work: Work
) -> tuple[list[float], int, Any]:
    """Seconds, run by run but the first; bytes that all ranks have sent in the last; its result."""
    cupy, seconds, sent, given = graph.device.cupy, [], 0.0, None
    for _ in range(1 + REPEATS):
        rank, size = communicator.rank, communicator.size
        ranks = Ranks(graph.device, rank, size, communicator.exchange, communicator.check)
        given = None
        cupy.cuda.Device().synchronize()
        barrier(communicator)
        began = time.perf_counter()
        given = work(graph, ranks)
        cupy.cuda.Device().synchronize()
        barrier(communicator)
        own, given = given if isinstance(given, tuple) else (time.perf_counter() - began, given)
        seconds.append(own)
        (sent,) = ranks.total([ranks.sent])
    return seconds[1:], int(sent), given


def of_components(subject: Subject) -> tuple[Work, Check]:
    def work(graph: ProgramGraph, ranks: Ranks) -> Any:
        if ranks.size == 1:
            return components.join_all(graph)
        return components.join_shares(graph, ranks)

    return work, lambda forest: check_components(subject, forest)


def of_pagerank(subject: Subject) -> tuple[Work, Check]:
    """A time is of an iteration, the median."""

    def work(graph: ProgramGraph, ranks: Ranks) -> Any:
        graph = plain(graph)
        steps: list[pagerank.Iteration] = []
        if ranks.size == 1:
            walk = pagerank.GpuWalk(graph, DAMPING, None, True)
            while len(steps) < ITERATIONS:  # (a launch ends after some time)
                steps += walk.run(ITERATIONS - len(steps))
        else:
            walk = shared_walks.shared_walk(graph, ranks, DAMPING, None, True)
            while len(steps) < ITERATIONS:
                steps += walk.step(ITERATIONS - len(steps), False)[0]
            found = walk.ranks()
            walk.close()
            ranks.total([])
            ranks.sent = walk.sent // ranks.size
            return median(some.seconds for some in steps), found
        return median(some.seconds for some in steps), walk.ranks()

    return work, lambda ranks: None


def of_paths(subject: Subject) -> tuple[Work, Check]:
    source = subject.sources[0]
    width = subject.mean_weight / max(1.0, subject.rows.edges / subject.vertices)

    def work(graph: ProgramGraph, ranks: Ranks) -> Any:
        if ranks.size == 1:
            found = paths.GpuPaths(graph, source, width, np.inf)
            while not found.done:
                found.run()
        else:
            found = shared_paths.shared_paths(graph, ranks, source, width, np.inf)
            while not found.done:
                found.step(False)
            distance = found.distance.copy()
            found.close()
            ranks.total([])
            return distance
        return found.distance

    return work, lambda distance: check_paths(subject, source, distance)


def of_betweenness(subject: Subject) -> tuple[Work, Check]:
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

    return work, lambda score: None


def of_closeness(subject: Subject) -> tuple[Work, Check]:
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

    return work, lambda total: None


def of_operations(
    program_of: Callable[[Subject], SharedOperationsProgram], column: str, steps: int = 1
) -> Callable[[Subject], tuple[Work, Check]]:
    """A program of operations. steps: those that a time is divided by."""

    def of(subject: Subject) -> tuple[Work, Check]:
        program = program_of(subject)
        order = np.arange(subject.vertices, dtype=np.uint32)

        def work(graph: ProgramGraph, ranks: Ranks) -> Any:
            weighted = isinstance(program, ForestProgram)
            graph = replace(graph if weighted else plain(graph), id_order=lambda: order)
            began = time.perf_counter()
            alone = ranks.size == 1
            saving = DeviceSaving(None) if alone else SharedSaving(ranks, None)
            operations = DeviceOperations(graph, saving, None if alone else ranks)
            with closed_by_all(operations, ranks):
                found = program.run(operations, lambda *_: None).values[column]
                graph.device.cupy.cuda.Device().synchronize()
                return (time.perf_counter() - began) / steps, getattr(found, "own", found)

        return work, lambda found: None

    return of


def of_hits(subject: Subject) -> HitsProgram:
    return HitsProgram(subject.vertices, Stop(ITERATIONS, None), None)


ALGORITHMS: dict[str, Callable[[Subject], tuple[Work, Check]]] = {
    "components": of_components,
    "pagerank": of_pagerank,
    "sssp": of_paths,
    "betweenness": of_betweenness,
    "closeness": of_closeness,
    "hits": of_operations(of_hits, "authority", ITERATIONS),
    "cores": of_operations(lambda subject: CoresProgram(), "core"),
    "forest": of_operations(lambda subject: ForestProgram("uint32"), "weight"),
}
DEALT = "betweenness", "closeness"
SAME: dict[str, Callable[[Any, Any], None]] = {
    "components": np.testing.assert_array_equal,
    "pagerank": partial(np.testing.assert_allclose, rtol=1e-12),
    "sssp": np.testing.assert_array_equal,
    "betweenness": partial(np.testing.assert_allclose, rtol=1e-9, atol=1e-9),
    "closeness": np.testing.assert_array_equal,
    "hits": partial(np.testing.assert_allclose, rtol=1e-12),
    "cores": np.testing.assert_array_equal,
    "forest": np.testing.assert_array_equal,
}
"""Raise where results are not the same."""


def show(result: dict[str, Any]) -> None:
    print(
        f"{result['scaling']:<7}{result['graph']:<20}{result['algorithm']:<12}"
        f"{result['ranks']} GPUs {result['median_ms']:>10.3f} ms, worst {result['worst_ms']:.3f}; "
        f"{result['entries_a_second'] / 1e9:.1f} G entries/s; efficiency {result['of_one']:.2f}; "
        f"{result['sent'] / 1e6:.1f} MB sent",
        flush=True,
    )


if __name__ == "__main__":
    main()
