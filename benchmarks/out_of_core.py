"""What it costs to leave the edges on disk: streamed searches against one in memory.

    python benchmarks/out_of_core.py --graphs kron20,kron22,grid1000 --sources 8

Median milliseconds: in memory; streamed with the store in the page cache; streamed with the
store's pages dropped from it, beside reading all targets once from the disk so. ``read`` is what
a search reads, in multiples of the targets; ``held`` the projected megabytes, streamed and in
memory.
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
from delegraph.pipeline.engines.memory import graph_bytes, search
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
        print(f"{name:<10}" + "".join(f"{figures[key]:>16.2f}" for key in COLUMNS), flush=True)
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
