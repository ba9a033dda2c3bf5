"""What it costs to leave the edges on disk: streamed searches against one in memory.

    python benchmarks/out_of_core.py --graphs kron20,kron22,grid1000 --sources 8

Median milliseconds: in memory; streamed with the store in the page cache; streamed with the
store's pages dropped from it, beside reading all targets once from the disk so. ``read`` is what
a search reads, in multiples of the targets; ``held`` the projected megabytes, streamed and in
memory. Then iterations of PageRank, streamed, warm and cold, and beside each cold one reading all
targets so: the part of the disk's rate that an iteration has.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import environment
import numpy as np
from direction import GRAPHS

from delegraph.kernels.base.team import Team
from delegraph.kernels.bfs.cpu import CpuBackend, compile_search
from delegraph.partition.store.store import Store, open_store
from delegraph.pipeline.algorithms.pagerank import PageRankProgram
from delegraph.pipeline.engines.host.programs import HostProgramEngine
from delegraph.pipeline.engines.host.rows import StoreRows
from delegraph.pipeline.engines.host.search import graph_bytes, search
from delegraph.pipeline.engines.ranks.edges import stream_team
from delegraph.pipeline.engines.ranks.graph import RankGraph
from delegraph.pipeline.engines.ranks.search import (
    RankFound,
    load_rank,
    rank_stream_bytes,
    search_rank,
    warm_up,
)
from delegraph.pipeline.ranks.communicator import SingleCommunicator

ITERATIONS = 5
COLUMNS = ("memory", "warm", "cold", "disk", "read", "held", "held in memory")


def main() -> None:
    parser = argparse.ArgumentParser(description="Streamed searches against one in memory.")
    parser.add_argument("--graphs", default="kron20,kron22,grid1000")
    parser.add_argument("--sources", type=int, default=8)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    about = environment.describe(("numba",))
    environment.show(about)
    results = []
    delegraph = [sys.executable, "-m", "delegraph"]
    print(f"\n{'graph':<10}" + "".join(f"{name:>16}" for name in COLUMNS))
    for name in options.graphs.split(","):
        with tempfile.TemporaryDirectory() as folder:
            edges, path = f"{folder}/edges", f"{folder}/graph.dg"
            quiet = {"check": True, "stdout": subprocess.DEVNULL}
            subprocess.run([*delegraph, "generate", *GRAPHS[name].split(), "-o", edges], **quiet)
            subprocess.run([*delegraph, "build", edges, "-o", path], **quiet)
            figures = measure(open_store(path), options.sources, options.threads)
            figures |= measure_pagerank(open_store(path), options.threads)
        print(f"{name:<10}" + "".join(f"{figures[key]:>16.2f}" for key in COLUMNS))
        print(
            f"{'':<10}an iteration of PageRank: warm {figures['iteration warm']:.0f} ms, cold "
            f"{figures['iteration cold']:.0f} ms: {figures['of the disk']:.2f} of the disk's rate "
            f"(worst {figures['of the disk, worst']:.2f})",
            flush=True,
        )
        results.append({"graph": name, **figures})
    environment.keep("out_of_core", about, results)


def measure(store: Store, sources: int, threads: int) -> dict[str, float]:
    in_memory = store.graph(Team(threads))
    backend = CpuBackend(threads)
    compile_search(in_memory.offsets.dtype)
    able = np.flatnonzero(np.diff(in_memory.offsets.astype(np.int64)))
    drawn = np.random.default_rng(1).choice(able, sources, replace=False)
    team = stream_team(threads)
    warm_up(store.offsets_types())
    targets = [store.path / name for name in store.files if "targets" in name]
    size = sum(path.stat().st_size for path in targets)
    seconds: dict[str, list[float]] = {name: [] for name in COLUMNS[:4]}
    read = []
    for source in map(int, drawn):
        clock = seconds["memory"]
        expected = timed(clock, lambda s=source: search(in_memory, s, backend))
        graph = load_rank(store, 0, 1, Team(threads), on_disk=True)

        def streamed(source: int = source, graph: RankGraph = graph) -> RankFound:
            return search_rank(graph, source, SingleCommunicator(), team)

        drop_pages(store)
        timed(seconds["cold"], streamed)
        drop_pages(store)
        timed(seconds["disk"], lambda: [_read(path) for path in targets])
        found = timed(seconds["warm"], streamed)
        assert np.array_equal(graph.own.distance, expected.distance)
        read.append(sum(step["bytes_read"] for step in found.supersteps) / size)
    return {
        **{name: 1e3 * statistics.median(some) for name, some in seconds.items()},
        "read": statistics.median(read),
        "held": rank_stream_bytes(store, 0, 1, threads) / 1e6,
        "held in memory": graph_bytes(store) / 1e6,
    }


def measure_pagerank(store: Store, threads: int) -> dict[str, float]:
    program = PageRankProgram(store.info.vertices, 0.85, None, 1, "even", None)
    rows = StoreRows(store, None, threads, "disk", program.weighted)
    engine = HostProgramEngine(rows, program, threads)
    engine.load()
    engine.compile()
    targets = [store.path / name for name in store.files if "targets" in name]
    warm: list[float] = []
    cold: list[float] = []
    disk: list[float] = []
    for clock in (warm, cold) * (1 + ITERATIONS):
        if clock is cold:
            drop_pages(store)
            timed(disk, lambda: [_read(path) for path in targets])
            drop_pages(store)
        record = engine.run(None, lambda *_: None).record
        clock.append(record["iterations"][0]["seconds"])
    ratios = [whole / some for whole, some in zip(disk[1:], cold[1:], strict=True)]
    return {
        "iteration warm": 1e3 * statistics.median(warm[1:]),
        "iteration cold": 1e3 * statistics.median(cold[1:]),
        "of the disk": statistics.median(ratios),
        "of the disk, worst": min(ratios),
    }


def timed(seconds: list[float], work: Callable):
    started = time.perf_counter()
    result = work()
    seconds.append(time.perf_counter() - started)
    return result


def _read(path: Path) -> None:
    with open(path, "rb", buffering=0) as file:
        while file.read(1 << 22):
            pass


def drop_pages(store: Store) -> None:
    """Take a store's files out of the page cache."""
    os.sync()
    for name in store.files:
        descriptor = os.open(store.path / name, os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


if __name__ == "__main__":
    main()
