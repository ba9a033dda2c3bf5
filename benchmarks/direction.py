"""Which factor should switch from push to pull: search time over a sweep of it.

    python benchmarks/direction.py --graphs kron20,urand20,grid1000 --sources 16

For each factor, the median and the worst search time relative to the best factor's median.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import environment
import numpy as np

from delegraph.kernels.base.team import Team
from delegraph.kernels.bfs.cpu import CpuBackend, compile_search
from delegraph.partition.store.store import open_store
from delegraph.pipeline.engines import direction
from delegraph.pipeline.engines.host.search import search

GRAPHS = {
    "kron18": "kronecker --scale 18",
    "kron20": "kronecker --scale 20",
    "kron22": "kronecker --scale 22",
    "urand20": "uniform --scale 20",
    "grid1000": "grid --height 1000 --width 1000",
}
FACTORS = (0.0, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, float("inf"))


def main() -> None:
    parser = argparse.ArgumentParser(description="Search time by direction factor.")
    parser.add_argument("--graphs", default="kron20,urand20,grid1000")
    parser.add_argument("--sources", type=int, default=16)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    about = environment.describe(("numba",))
    environment.show(about)
    results = []
    delegraph = [sys.executable, "-m", "delegraph"]
    for name in options.graphs.split(","):
        with tempfile.TemporaryDirectory() as folder:
            edges, store = f"{folder}/edges", f"{folder}/graph.dg"
            quiet = {"check": True, "stdout": subprocess.DEVNULL}
            subprocess.run([*delegraph, "generate", *GRAPHS[name].split(), "-o", edges], **quiet)
            subprocess.run([*delegraph, "build", edges, "-o", store], **quiet)
            graph = open_store(Path(store)).graph(Team(options.threads))
        backend = CpuBackend(options.threads)
        compile_search(graph.offsets.dtype)
        able = np.flatnonzero(np.diff(graph.offsets.astype(np.int64)))
        sources = np.random.default_rng(1).choice(able, options.sources, replace=False)
        times: dict[float, list[float]] = {factor: [] for factor in FACTORS}
        for source in sources:
            for factor in FACTORS:
                direction.PUSH_FACTOR = factor
                search(graph, int(source), backend)  # same cache for all
                started = time.perf_counter()
                search(graph, int(source), backend)
                times[factor].append(time.perf_counter() - started)
        best = min(statistics.median(seconds) for seconds in times.values())
        print(f"\n{name}\n{'factor':>8}{'median':>10}{'worst':>10}")
        for factor, seconds in times.items():
            median, worst = statistics.median(seconds) / best, max(seconds) / best
            print(f"{factor:>8}{median:>10.2f}{worst:>10.2f}", flush=True)
            results.append({"graph": name, "factor": factor, "median": median, "worst": worst})
    environment.keep("direction", about, results)


if __name__ == "__main__":
    main()
