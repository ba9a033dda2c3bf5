"""How long the first run of each question takes on a machine that has compiled nothing.

    python benchmarks/first_run.py [--delegraph PATH ...] [--runs 3]

Each run is a whole process with an empty cache, over an edge list of kron10. delegraph: programs to
compare, run in turn. Prints medians: processor seconds, wall seconds, and the peak of memory.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import environment
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

QUESTIONS = {
    "bfs": ["--source", "1"],
    "components": [],
    "closeness": ["--sources", "9"],
    "betweenness": ["--sources", "2"],
    "pagerank": [],
    "sssp": ["--weight", "weight", "--source", "1"],
}


def run(program: str, *words: str | Path, cache: Path) -> tuple[float, float, float]:
    """Return the processor seconds, wall seconds and peak bytes of one process."""
    began = os.times().elapsed
    process = subprocess.Popen(
        [program, *map(str, words)],
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{program} {' '.join(map(str, words))}: exit code {process.returncode}")
    seconds = os.times().elapsed - began
    return usage.ru_utime + usage.ru_stime, seconds, usage.ru_maxrss * 1024


def main() -> None:
    parser = argparse.ArgumentParser(description="Time of first runs, with an empty cache.")
    parser.add_argument("--delegraph", action="append", help="a program; may be given repeatedly")
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    programs = options.delegraph or [str(Path(sys.executable).with_name("delegraph"))]
    environment.show(environment.describe(("numba", "llvmlite")))
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        rows, edges = folder / "rows", folder / "edges.parquet"
        cache, output = folder / "cache", folder / "output"
        run(programs[0], "generate", "kronecker", "--scale", "10", "-o", rows, cache=cache)
        table = pq.read_table(rows)
        weights = np.random.default_rng(1).integers(1, 256, len(table))
        pq.write_table(table.append_column("weight", pa.array(weights)), edges)
        for name, words in QUESTIONS.items():
            measured: dict[str, list[tuple[float, float, float]]] = {}
            for _ in range(options.runs):
                for program in programs:
                    shutil.rmtree(cache, ignore_errors=True)
                    asked = name, edges, *words, "-o", output, "--overwrite"
                    measured.setdefault(program, []).append(run(program, *asked, cache=cache))
            for program, runs in measured.items():
                processor, wall, peak = (
                    statistics.median(some) for some in zip(*runs, strict=True)
                )
                print(
                    f"{name:12} {processor:6.1f} s of processors {wall:6.1f} s "
                    f"{peak / 1e6:6.0f} MB  {program}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
