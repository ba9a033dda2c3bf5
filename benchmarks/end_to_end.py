"""Parquet in, Parquet out, whole process: delegraph against libraries from PyPI, in turn.

    python benchmarks/end_to_end.py --graphs kron20,kron22,grid2000 --runs 5

Prints the median wall time and peak memory (proportional set size summed over the process
tree, sampled) of each, and the ratio of times to delegraph's, run by run. Every tool has to find
as many vertices, as many reached ones, and the same sum of distances. A tool that exceeds the
time limit is stopped and says so.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import environment
import pyarrow.compute as pc
import pyarrow.dataset as ds
from peers import PEERS
from processes import measure

HERE = Path(__file__).parent
GRAPHS = {
    "kron20": "kronecker --scale 20",
    "kron22": "kronecker --scale 22",
    "urand20": "uniform --scale 20",
    "grid2000": "grid --height 2000 --width 2000",
}


def summary(path: Path) -> tuple[int, int, int]:
    """Vertices, reached, sum of distances."""
    distance = ds.dataset(path).to_table(columns=["distance"])["distance"]
    total = pc.call_function("sum", [distance]).as_py()
    return len(distance), len(distance) - distance.null_count, total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--graphs", default="kron20,kron22,grid2000")
    parser.add_argument("--tools", default=",".join(PEERS))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument(
        "--python",
        default=sys.executable,
        help="interpreter that delegraph is installed for, say without the peers beside it",
    )
    parser.add_argument("--limit", type=float, default=60, help="seconds a run may take")
    options = parser.parse_args()
    about = environment.describe(tuple(PEERS))
    environment.show(about)
    results = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for graph in options.graphs.split(","):
            edges = folder / graph
            generate = [sys.executable, "-m", "delegraph", "generate", *GRAPHS[graph].split()]
            subprocess.run([*generate, "-o", edges], check=True, stdout=subprocess.DEVNULL)
            source = ds.dataset(edges).head(1)["src"][0].as_py()
            results += compare(graph, edges, source, options, folder)
    environment.keep("end_to_end", about, results)


def compare(graph: str, edges: Path, source: int, options, folder: Path) -> list[dict]:
    out = folder / "out.parquet"
    own = f"-m delegraph bfs {edges} --source {source} -o {folder}/out --overwrite --quiet"
    commands = {"delegraph": [options.python, *own.split()]}
    for tool in options.tools.split(","):
        script = [sys.executable, str(HERE / "peers.py"), tool]
        commands[tool] = [*script, str(edges), str(source), str(out)]
    times: dict[str, list[float]] = {tool: [] for tool in commands}
    peaks: dict[str, list[int]] = {tool: [] for tool in commands}
    expected = None
    for _ in range(options.runs):
        for tool, command in commands.items():
            if times[tool][-1:] == [float("inf")]:
                continue
            measured = measure(command, options.limit)
            if measured is None:
                times[tool].append(float("inf"))
                continue
            times[tool].append(measured[0])
            peaks[tool].append(measured[1])
            found = summary(folder / "out" if tool == "delegraph" else out)
            expected = expected or found
            if found != expected:
                raise RuntimeError(f"{tool} found {found} on {graph}, not {expected}")
    print(f"\n{graph}: {os.path.getsize(next(edges.iterdir())) / 1e6:.0f} MB, from {source}")
    print(f"{'':18}{'seconds':>10}{'ratio':>8}{'peak GB':>10}")
    results = []
    for tool in commands:
        if times[tool][-1] == float("inf"):
            print(f"{tool:18}{f'> {options.limit:.0f}':>10}")
            results.append({"graph": graph, "tool": tool, "seconds_over": options.limit})
            continue
        seconds = statistics.median(times[tool])
        ratio = statistics.median(
            other / own for other, own in zip(times[tool], times["delegraph"], strict=False)
        )
        peak = statistics.median(peaks[tool])
        print(f"{tool:18}{seconds:>10.2f}{ratio:>8.2f}{peak / 1e9:>10.2f}", flush=True)
        results.append(
            {"graph": graph, "tool": tool, "seconds": seconds, "ratio": ratio, "peak_bytes": peak}
        )
    return results


if __name__ == "__main__":
    main()
