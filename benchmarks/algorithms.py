"""Components and PageRank: delegraph against libraries from PyPI and GAP, in turn.

    python benchmarks/algorithms.py [--graphs kron20,cnr-2000,...] [--data FOLDER] [--runs 3]
        [--tools scipy,duckdb,...] [--limit SECONDS] [--gap FOLDER]

By default the generated graphs and all of FOLDER's real ones, edges taken both ways.

Whole jobs go from Parquet to Parquet, a process each. Prints the median wall time and the worst,
the ratio of times to delegraph's, run by run, and peak memory as end_to_end.py takes it. Every tool
has to find as many components and as large a largest one; its PageRank may differ from delegraph's
by 1e-4 in all (L1). A tool that exceeds the time limit is stopped and says so.

The algorithms alone run on a graph in memory: delegraph on a store that is built once, by its runs'
records, each run a process of its own; libraries on the store's edges, in this process, without
reading; GAP's programs by their own clock. Prints milliseconds of components, and of an iteration
of PageRank: of delegraph the median of all but the first one, of others the time over the
iterations. GAP's PageRank (Gauss-Seidel) is given as many iterations as delegraph took.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import environment
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import real
import search
from algorithm_peers import LIBRARIES, PEERS
from end_to_end import GRAPHS, HERE, measure

from delegraph.kernels.base.graph import Graph
from delegraph.kernels.base.team import Team
from delegraph.partition.store.store import open_store, rows_of_edges
from delegraph.pipeline.run.execute import available_threads

ALGORITHMS = ("components", "pagerank")
APART = 1e-4
"""How far a PageRank may be from delegraph's, summed over vertices."""
ALONE = ("scipy", "networkit", "python-graphblas")
"""Libraries that are timed alone, of those asked for."""

Timed = Callable[[], float]
"""Runs once; returns seconds, of PageRank for an iteration."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Time components and PageRank.")
    parser.add_argument("--graphs")
    real.add_option(parser)
    parser.add_argument("--tools", default=",".join(PEERS))
    parser.add_argument("--gap", type=Path, help="folder of GAP's programs cc and pr")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument(
        "--python",
        default=sys.executable,
        help="interpreter that delegraph is installed for, say without the peers beside it",
    )
    parser.add_argument("--limit", type=float, default=60, help="seconds a run of a peer may take")
    options = parser.parse_args()
    options.tools = [tool for tool in options.tools.split(",") if tool]
    about = environment.describe(("numba", *options.tools))
    environment.show(about)
    results = []
    found = real.real_graphs(options.data)
    for name in (options.graphs or ",".join(["kron20,kron22,grid2000", *found])).split(","):
        if name not in GRAPHS and name not in found:
            print(f"{name}: skipped, it is not in {options.data}")
            continue
        with tempfile.TemporaryDirectory() as folder:
            results += compare(name, found.get(name), Path(folder), options)
    environment.keep("algorithms", about, results)


def compare(name: str, edges: Path | None, folder: Path, options) -> list[dict]:
    """edges: of a real graph; None for one to generate."""
    if edges is None:
        edges = folder / "edges"
        delegraph(options, "generate", *GRAPHS[name].split(), "-o", edges)
    results = []
    for algorithm in ALGORITHMS:
        results += whole_jobs(name, algorithm, edges, folder, options)
    return results + alone(name, edges, folder, options)


def delegraph(options, *arguments: object) -> None:
    command = [options.python, "-m", "delegraph", *map(str, arguments)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def whole_jobs(name: str, algorithm: str, edges: Path, folder: Path, options) -> list[dict]:
    """Parquet to Parquet, tools in turn, run by run."""
    own = f"-m delegraph {algorithm} {edges} -o {folder}/out --overwrite --quiet"
    commands = {"delegraph": [options.python, *own.split()]}
    for tool in options.tools:
        script = [sys.executable, str(HERE / "algorithm_peers.py"), tool]
        commands[tool] = [*script, algorithm, str(edges), str(folder / "out.parquet")]
    times: dict[str, list[float]] = {tool: [] for tool in commands}
    peaks: dict[str, list[int]] = {tool: [] for tool in commands}
    expected = None
    for _ in range(options.runs):
        for tool, command in commands.items():
            if times[tool][-1:] == [float("inf")]:
                continue
            is_own = tool == "delegraph"  # all others are held against it: it has no limit
            measured = measure(command, float("inf") if is_own else options.limit)
            if measured is None:
                times[tool].append(float("inf"))
                continue
            times[tool].append(measured[0])
            peaks[tool].append(measured[1])
            found = answer(folder / ("out" if is_own else "out.parquet"), algorithm)
            expected = expected or found
            check(f"{tool} on {name}", algorithm, found, expected)
    print(f"\n{name}, {algorithm}, Parquet to Parquet")
    print(f"{'':18}{'seconds':>10}{'worst':>10}{'ratio':>8}{'peak GB':>10}")
    results = []
    for tool in commands:
        result = {"graph": name, "algorithm": algorithm, "part": "whole", "tool": tool}
        if times[tool][-1] == float("inf"):
            print(f"{tool:18}{f'> {options.limit:.0f}':>10}")
            results.append({**result, "seconds_over": options.limit})
            continue
        figures = figures_of(times[tool], times["delegraph"])
        peak = statistics.median(peaks[tool])
        print(
            f"{tool:18}{figures['seconds']:>10.2f}{figures['most']:>10.2f}{figures['ratio']:>8.2f}"
            f"{peak / 1e9:>10.2f}",
            flush=True,
        )
        results.append({**result, **figures, "peak_bytes": peak})
    return results


def figures_of(times: list[float], own: list[float]) -> dict[str, float]:
    """The median, the most, and the median ratio to delegraph's, run by run."""
    ratio = statistics.median(a / b for a, b in zip(times, own, strict=True))
    return {"seconds": statistics.median(times), "most": max(times), "ratio": ratio}


def answer(path: Path, algorithm: str) -> tuple[np.ndarray, np.ndarray]:
    """Vertices in order, and their values."""
    column = algorithm if algorithm == "pagerank" else "component"
    table = ds.dataset(path).to_table(columns=["vertex", column])
    vertex = table["vertex"].to_numpy()
    order = np.argsort(vertex)
    return vertex[order], table[column].to_numpy()[order]


def check(who: str, algorithm: str, found, expected) -> None:
    """RuntimeError if an answer is not delegraph's."""
    if not np.array_equal(found[0], expected[0]):
        raise RuntimeError(f"{who} has {len(found[0])} vertices, not the {len(expected[0])}")
    if algorithm == "components":
        pairs = parts(found[1]), parts(expected[1])
        if pairs[0] != pairs[1]:
            raise RuntimeError(f"{who} found components {pairs[0]}, not {pairs[1]}")
        return
    apart = np.abs(found[1] - expected[1]).sum()
    if not apart <= APART:
        raise RuntimeError(f"PageRank of {who} is {apart} from delegraph's")


def parts(labels: np.ndarray) -> tuple[int, int]:
    """Components, vertices of the largest."""
    counts = pc.call_function("value_counts", [pa.array(labels)]).field("counts").to_numpy()
    return len(counts), int(counts.max())


def alone(name: str, edges: Path, folder: Path, options) -> list[dict]:
    """On a graph in memory, tools in turn, run by run."""
    stores = {order: folder / f"{order}.dg" for order in ("degree", "none")}
    for order, store in stores.items():
        delegraph(options, "build", edges, "-o", store, "--order", order, "--quiet")
    graph = open_store(stores["none"]).graph(Team(available_threads()))
    iterations = own_record(stores["degree"], "pagerank", folder, options)["pagerank"]["iterations"]
    tools = {"delegraph": own(stores["degree"], folder, options)}
    if options.gap:
        tools["GAP"] = gap(options.gap, graph, folder / "graph.sg", iterations)
    tools |= {tool: peer(tool, graph) for tool in options.tools if tool in ALONE}
    times: dict[str, dict[str, list[float]]] = {
        algorithm: {tool: [] for tool in tools} for algorithm in ALGORITHMS
    }
    for _ in range(options.runs):
        for algorithm, of_tools in times.items():
            for tool, spent in of_tools.items():
                spent.append(tools[tool][algorithm]())

    print(f"\n{name}, alone: {graph.vertices:,} vertices, {graph.edges // 2:,} edges")
    print(f"{'':18}{'components ms':>16}{'worst':>10}{'ratio':>8}", end="")
    print(f"{'iteration ms':>16}{'worst':>10}{'ratio':>8}")
    results = []
    for tool in tools:
        print(f"{tool:18}", end="")
        for algorithm, of_tools in times.items():
            figures = figures_of(of_tools[tool], of_tools["delegraph"])
            print(f"{figures['seconds'] * 1e3:>16.2f}{figures['most'] * 1e3:>10.2f}", end="")
            print(f"{figures['ratio']:>8.2f}", end="")
            result = {"graph": name, "algorithm": algorithm, "part": "alone", "tool": tool}
            results.append({**result, **figures})
        print(flush=True)
    return results


def own_record(store: Path, algorithm: str, folder: Path, options) -> dict:
    delegraph(options, algorithm, store, "-o", folder / "out", "--overwrite", "--quiet")
    return json.loads((folder / "out.run.json").read_text())


def own(store: Path, folder: Path, options) -> dict[str, Timed]:
    def iteration() -> float:
        each = own_record(store, "pagerank", folder, options)["iterations"]
        return statistics.median(one["seconds"] for one in each[1:] or each)

    return {
        "components": lambda: own_record(store, "components", folder, options)["seconds"]["search"],
        "pagerank": iteration,
    }


def peer(tool: str, graph: Graph) -> dict[str, Timed]:
    """On edges that were counted once already: both algorithms take the same graph."""
    src = rows_of_edges(graph.offsets, 0, graph.edges).astype(np.int32)
    dst = graph.targets.astype(np.int32)
    once = src < dst
    library = LIBRARIES[tool]
    simple = library.simple(src[once], dst[once], graph.vertices)

    def components() -> float:
        started = time.perf_counter()
        library.components(simple)
        return time.perf_counter() - started

    def iteration() -> float:
        started = time.perf_counter()
        iterations = library.pagerank(simple)[1]
        return (time.perf_counter() - started) / iterations

    return {"components": components, "pagerank": iteration}


def gap(programs: Path, graph: Graph, path: Path, iterations: int) -> dict[str, Timed]:
    search.gap(programs / "bfs", graph, path)  # writes the graph; the search is not run

    def trial(program: str, *arguments: str) -> float:
        command = [programs / program, "-f", path, "-n", "3", *arguments]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        return statistics.median(map(float, re.findall(r"Trial Time: *([0-9.]+)", done.stdout)))

    exactly = ("-i", str(iterations), "-t", "0")
    return {
        "components": lambda: trial("cc"),
        "pagerank": lambda: trial("pr", *exactly) / iterations,
    }


if __name__ == "__main__":
    main()
