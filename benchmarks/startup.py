"""How long the command line takes to begin: imports and help, and questions to a small graph, alone
and by local workers, as whole processes.

    python benchmarks/startup.py [--runs 10] [--workers 2] [--device cpu|cuda]

The graph is kron16, a store of four partitions; kernels are compiled before.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import environment

DELEGRAPH = [sys.executable, "-m", "delegraph"]
COMMANDS = {
    "python": [sys.executable, "-c", ""],
    "import delegraph.cli.main": [sys.executable, "-c", "import delegraph.cli.main"],
    "delegraph --help": [*DELEGRAPH, "--help"],
    "delegraph bfs --help": [*DELEGRAPH, "bfs", "--help"],
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Time to import the command line, and to begin.")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    about = environment.describe(("click", "dask", "distributed"))
    environment.show(about)
    with tempfile.TemporaryDirectory() as folder:
        store, output = Path(folder, "graph.dg"), Path(folder, "out")
        edges = Path(folder, "edges")
        run([*DELEGRAPH, "generate", "kronecker", "--scale", "16", "-o", str(edges)])
        run([*DELEGRAPH, "build", str(edges), "-o", str(store), "--partitions", "4"])
        bfs = [*DELEGRAPH, "bfs", str(store), "--source", "1", "-o", str(output)]
        bfs += ["--device", options.device]
        workers = ["--workers", str(options.workers)]
        questions = {"delegraph bfs": bfs, f"delegraph bfs {' '.join(workers)}": [*bfs, *workers]}
        results = []
        for name, command in {**COMMANDS, **questions}.items():
            seconds = []
            for _ in range(options.runs + 1):  # the first one warms caches
                shutil.rmtree(output, ignore_errors=True)
                seconds.append(run(command))
            median, worst = statistics.median(seconds[1:]), max(seconds[1:])
            print(f"{name:28}{median:8.3f} s, worst {worst:.3f}", flush=True)
            results.append({"command": name, "seconds": median, "worst": worst})
    environment.keep("startup", about, results)


def run(command: list[str]) -> float:
    """Seconds."""
    started = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
