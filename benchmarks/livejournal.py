"""PageRank and components of a graph of LiveJournal's size: Parquet in, Parquet out, whole process.

    python benchmarks/livejournal.py [--edges soc-LiveJournal1.parquet] [--scale 22] [--runs 3]
        [--tools duckdb,networkit,scipy,igraph,graphframes] [--limit 600]

The graph is the Parquet edge list of --edges (columns src, dst), say SNAP's soc-LiveJournal1
(4,847,571 vertices, 68,993,773 directed rows). Without it, a Kronecker graph is generated: 67
million rows at scale 22. Before the measurement its repeated rows and self-loops are dropped and
the rest is sorted, as SNAP's lists are: no contender has to look for repeats, and delegraph, which
looks for them all the same, gains nothing.

All do the same work: PageRank of the directed rows with damping 0.85 and exactly 20 iterations, and
components of the undirected graph. livejournal_peers.py says how, and where igraph and GraphFrames
differ. Every answer is held against delegraph's, the first one: the same vertices, the same
partition into components, the distance (L1) of PageRank vectors that sum up to one.

Prints a Markdown table for each algorithm: the median wall time, the processor time and the peak
memory (see processes.Run), and their ratios to
delegraph's. Contenders take turns. One that passes --limit, or a share of the machine's memory, is
stopped and says so; one that takes longer than --once seconds runs once. A peer that is not
installed is left out, and named.

delegraph's kernels are compiled by a run that is not counted; the first run of all, on an empty
cache, is printed apart.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import environment
import numpy as np
import processes
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from algorithms import answer
from end_to_end import HERE
from livejournal_peers import ITERATIONS, PEERS

from delegraph.partition.disk.memory import trim_freed_memory

ALGORITHMS = {
    "pagerank": ["--directed", "--iterations", str(ITERATIONS)],
    "components": [],
}
"""The questions, and delegraph's options for each."""
OWN = "delegraph"
MEMORY_SHARE = 0.85
"""Share of the memory that is free at a contender's start, beyond which it is stopped."""
PACKAGES = ("numba", "duckdb", "networkit", "scipy", "igraph", "pyspark", "graphframes-py")
HEADER = "| | seconds | x | processor s | peak GB | x | answer |\n|---|--:|--:|--:|--:|--:|---|"


class GraphFile(NamedTuple):
    """A Parquet file of distinct directed rows without self-loops.

    source: where the rows come from, in words. given: rows before repeats and loops were dropped.
    """

    path: Path
    source: str
    given: int
    rows: int
    vertices: int


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--edges", type=Path, help="Parquet edge list, columns src and dst")
    parser.add_argument("--scale", type=int, default=22, help="of the graph to generate")
    parser.add_argument("--tools", default=",".join(PEERS))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--limit", type=float, default=600, help="seconds a run may take")
    parser.add_argument(
        "--once", type=float, default=120, help="seconds above which one run is all"
    )
    parser.add_argument("--folder", type=Path, help="keeps the graph; a temporary one by default")
    parser.add_argument("--graphframes-jar", type=Path, help="its Scala part; else from Maven")
    parser.add_argument("--graphframes-memory", default="12g", help="heap of its JVM")
    parser.add_argument(
        "--python",
        default=sys.executable,
        help="interpreter that delegraph is installed for, say without the peers beside it",
    )
    options = parser.parse_args()
    environment.share_cores()
    os.environ["GRAPHFRAMES_MEMORY"] = options.graphframes_memory
    if options.graphframes_jar:
        os.environ["GRAPHFRAMES_JAR"] = str(options.graphframes_jar.resolve())
    about = environment.describe(PACKAGES)
    about["java"] = java_version()
    environment.show(about)
    print(f"Java: {about['java'] or 'none'}")
    tools = [tool for tool in options.tools.split(",") if tool and is_installed(tool)]
    with tempfile.TemporaryDirectory() as name:
        graph = graph_file(options, options.folder or Path(name))
        about["graph"] = {**graph._asdict(), "path": graph.path.name}
        print(
            f"\n{graph.source}: {graph.vertices:,} vertices, {graph.given:,} rows; "
            f"{graph.rows:,} of them distinct and no self-loops",
            flush=True,
        )
        trim_freed_memory()  # contenders shall have all of it
        results: list[dict] = []
        for algorithm in ALGORITHMS:
            results += compare(algorithm, graph, tools, options, Path(name))
            environment.keep("livejournal", about, results)


def java_version() -> str | None:
    """The first line that Java says of itself; None where there is no Java."""
    java = shutil.which("java")
    if java is None:
        return None
    return subprocess.run([java, "-version"], capture_output=True, text=True).stderr.split("\n")[0]


def is_installed(tool: str) -> bool:
    """Whether a peer can run; says what is missing if not."""
    missing = [name for name in PEERS[tool] if importlib.util.find_spec(name) is None]
    if tool == "graphframes" and shutil.which("java") is None:
        missing.append("Java")
    if missing:
        print(f"{tool} is left out: not installed ({', '.join(missing)})")
    return not missing


def graph_file(options: argparse.Namespace, folder: Path) -> GraphFile:
    """The graph of --edges or a generated one, repeats and self-loops dropped, sorted."""
    folder.mkdir(parents=True, exist_ok=True)
    if options.edges:
        rows, source = options.edges, f"{options.edges.name} (given)"
    else:
        rows, source = (
            folder / f"kron{options.scale}",
            f"Kronecker graph {options.scale} (generated)",
        )
        if not rows.exists():
            environment.delegraph("generate", "kronecker", "--scale", options.scale, "-o", rows)
    table = ds.dataset(rows).to_table(columns=["src", "dst"])
    ends = [table[name].to_numpy().astype(np.int64) for name in ("src", "dst")]
    if min(end.min() for end in ends) < 0 or max(end.max() for end in ends) >= 1 << 31:
        raise SystemExit(f"{rows}: ids have to be from 0 to {(1 << 31) - 1:,}")
    given, joined = table.num_rows, (ends[0] << 32) | ends[1]
    joined = joined[ends[0] != ends[1]]
    del table, ends
    joined.sort()
    joined = joined[np.concatenate([[True], joined[1:] != joined[:-1]])]
    src, dst = joined >> 32, joined & 0xFFFFFFFF
    present = np.zeros(int(max(src[-1], dst.max())) + 1, bool)
    present[src] = True
    present[dst] = True
    path = folder / "distinct.parquet"
    pq.write_table(pa.table({"src": src, "dst": dst}), path)
    return GraphFile(path, source, given, len(src), int(present.sum()))


def compare(
    algorithm: str,
    graph: GraphFile,
    tools: list[str],
    options: argparse.Namespace,
    folder: Path,
) -> list[dict]:
    """Contenders in turn, run by run; prints the table."""
    outs = {tool: folder / f"{tool}.parquet" for tool in tools} | {OWN: folder / "own"}
    own = ["-m", "delegraph", algorithm, str(graph.path), "-o", str(outs[OWN]), "--overwrite"]
    commands = {OWN: [options.python, *own, "--restart", "--quiet", *ALGORITHMS[algorithm]]}
    for tool in tools:
        script = [sys.executable, str(HERE / "livejournal_peers.py"), tool, algorithm]
        commands[tool] = [*script, str(graph.path), str(outs[tool])]
    with tempfile.TemporaryDirectory() as cache:
        first = processes.run(commands[OWN], environment={"NUMBA_CACHE_DIR": cache})
    processes.run(commands[OWN])  # compiles, where the kernels are kept
    runs: dict[str, list[processes.Run]] = {tool: [] for tool in commands}
    notes = dict.fromkeys(commands, "")
    expected = None
    for _ in range(options.runs):
        for tool, command in commands.items():
            if runs[tool] and (runs[tool][-1].stopped or runs[tool][-1].seconds > options.once):
                continue
            run = attempt(command, options.limit, tool)
            runs[tool].append(run)
            print(
                f"  {algorithm}, {tool}: {run.stopped or f'{run.seconds:.1f} s'}", file=sys.stderr
            )
            if run.stopped:
                continue
            found = answer(outs[tool], algorithm)
            expected = expected or found
            notes[tool] = agreement(algorithm, found, expected) if tool != OWN else "reference"
    print(f"\n{algorithm}, Parquet to Parquet\n\n{HEADER}")
    results = [figures(algorithm, tool, runs, notes[tool]) for tool in commands]
    for result in results:
        print(row(result), flush=True)
    print(
        f"\nFirst run of delegraph {algorithm}, kernels compiled: {first.seconds:.1f} s, "
        f"{first.processor:.1f} processor s, {first.peak / 1e9:.2f} GB",
        flush=True,
    )
    first_run = {"algorithm": algorithm, "tool": OWN, "part": "first run, empty cache"}
    return [*results, {**first_run, **first._asdict()}]


def attempt(command: list[str], limit: float, tool: str) -> processes.Run:
    """A run within the limits; one that fails is a run that was stopped."""
    try:
        return processes.run(command, limit, MEMORY_SHARE * available_bytes())
    except RuntimeError as error:
        print(f"{tool} failed: {error}", file=sys.stderr)
        return processes.Run(0, 0, 0, "failed")


def available_bytes() -> int:
    """Memory that processes can have without swapping."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable"))


def agreement(algorithm: str, found, expected) -> str:
    """How an answer agrees with delegraph's, in words."""
    if not np.array_equal(found[0], expected[0]):
        return f"WRONG: {len(found[0]):,} vertices, not {len(expected[0]):,}"
    if algorithm == "components":
        same = np.array_equal(first_members(found[1]), first_members(expected[1]))
        return "same partition" if same else "WRONG: another partition"
    ranks = [values / values.sum() for values in (found[1], expected[1])]
    return f"L1 distance {np.abs(ranks[0] - ranks[1]).sum():.0e}"


def first_members(labels: np.ndarray) -> np.ndarray:
    """For each vertex, the first vertex of its component: equal where partitions are."""
    _, first, component = np.unique(labels, return_index=True, return_inverse=True)
    return first[component]


def figures(
    algorithm: str, tool: str, runs: dict[str, list[processes.Run]], note: str
) -> dict[str, object]:
    """Medians of a contender, and of its ratios to delegraph's runs."""
    finished = [run for run in runs[tool] if not run.stopped]
    result: dict[str, object] = {"algorithm": algorithm, "tool": tool, "runs": len(runs[tool])}
    if not finished:
        last = runs[tool][-1]
        return {**result, "stopped": last.stopped, "peak": last.peak, "processor": last.processor}
    pairs = list(zip(runs[tool], runs[OWN], strict=False))
    return {
        **result,
        "seconds": statistics.median(run.seconds for run in finished),
        "every_run": [run.seconds for run in finished],
        "processor": statistics.median(run.processor for run in finished),
        "peak": statistics.median(run.peak for run in finished),
        "ratio": statistics.median(run.seconds / own.seconds for run, own in pairs),
        "peak_ratio": statistics.median(run.peak / own.peak for run, own in pairs),
        "answer": note,
    }


def row(result: dict) -> str:
    """A line of the Markdown table."""
    tool = result["tool"] + (" (one run)" if result["runs"] == 1 else "")
    if "stopped" in result:
        peak = f"{result['peak'] / 1e9:.1f}" if result["peak"] else ""
        return f"| {tool} | {result['stopped']} | | {result['processor']:.0f} | {peak} | | |"
    return (
        f"| {tool} | {result['seconds']:.1f} | {result['ratio']:.1f} | {result['processor']:.1f} "
        f"| {result['peak'] / 1e9:.2f} | {result['peak_ratio']:.1f} | {result['answer']} |"
    )


if __name__ == "__main__":
    main()
