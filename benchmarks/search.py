"""The search alone, on a graph in memory: delegraph against libraries from PyPI and GAP.

    python benchmarks/search.py --graphs kron20,kron22,grid2000 --sources 16 [--gap PATH/TO/bfs]

All search from the same vertices, in turn. Prints the median time, its ratio to delegraph's
(median of the ratios source by source) and GTEPS (input rows in the component over the time,
harmonic mean). GAP is the BFS of the GAP benchmark suite, built from its sources with OpenMP;
its vertices keep their order, as it does by default. GAP finds parents, delegraph distances and
parents, the others distances.
"""

from __future__ import annotations

import argparse
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
import peers
from end_to_end import GRAPHS

from delegraph.kernels.base.graph import Graph
from delegraph.kernels.base.team import Team
from delegraph.kernels.bfs.cpu import CpuBackend, compile_search
from delegraph.partition.input.arrow import as_numpy
from delegraph.partition.store.store import expand_rows, open_store
from delegraph.pipeline.engines.memory import search
from delegraph.pipeline.run.execute import available_threads

Timed = Callable[[int], float]
"""Searches from a vertex (by id order); returns seconds."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Time the search alone.")
    parser.add_argument("--graphs", default="kron20,kron22,grid2000")
    parser.add_argument("--tools", default="scipy,networkit,python-graphblas,igraph")
    parser.add_argument("--gap", type=Path, help="GAP's bfs program")
    parser.add_argument("--sources", type=int, default=16)
    options = parser.parse_args()
    about = environment.describe(("numba", *options.tools.split(",")))
    environment.show(about)
    results = []
    for name in options.graphs.split(","):
        with tempfile.TemporaryDirectory() as folder:
            results += compare(name, Path(folder), options)
    environment.keep("search", about, results)


def compare(name: str, folder: Path, options) -> list[dict]:
    delegraph = [sys.executable, "-m", "delegraph"]
    quiet = {"check": True, "stdout": subprocess.DEVNULL}
    edges = folder / "edges"
    subprocess.run([*delegraph, "generate", *GRAPHS[name].split(), "-o", edges], **quiet)
    team = Team(available_threads())
    graphs = {}
    for order in ("degree", "none"):
        store = folder / f"{order}.dg"
        subprocess.run([*delegraph, "build", edges, "-o", store, "--order", order], **quiet)
        graphs[order] = open_store(store).graph(team)
    table = open_store(folder / "degree.dg").vertices(team, ["global_id", "degree"])
    number, degree = as_numpy(table["global_id"]), as_numpy(table["degree"]).astype(np.int64)

    tools: dict[str, Timed] = {"delegraph": own(graphs["degree"], number, available_threads())}
    if options.gap:
        tools["GAP"] = gap(options.gap, graphs["none"], folder / "graph.sg")
    for tool in filter(None, options.tools.split(",")):
        tools[tool] = peer(tool, graphs["none"])
    able = np.flatnonzero(degree)
    sources = np.random.default_rng(1).choice(able, options.sources, replace=False)
    times: dict[str, list[float]] = {tool: [] for tool in tools}
    rows = []
    for source in map(int, sources):
        found = search(graphs["degree"], int(number[source]), CpuBackend(1))
        rows.append(int(degree[found.distance[number] >= 0].sum()) // 2)
        for tool, timed in tools.items():
            times[tool].append(timed(source))

    print(f"\n{name}: {len(degree):,} vertices, {graphs['none'].edges // 2:,} edges")
    print(f"{'':18}{'ms':>10}{'ratio':>8}{'GTEPS':>10}")
    results = []
    for tool, seconds in times.items():
        ratio = statistics.median(a / b for a, b in zip(seconds, times["delegraph"], strict=True))
        rates = [count / spent / 1e9 for count, spent in zip(rows, seconds, strict=True)]
        median, gteps = statistics.median(seconds), statistics.harmonic_mean(rates)
        print(f"{tool:18}{median * 1e3:>10.2f}{ratio:>8.2f}{gteps:>10.3f}", flush=True)
        results.append(
            {"graph": name, "tool": tool, "seconds": median, "ratio": ratio, "gteps": gteps}
        )
    return results


def clocked(function: Callable[[int], object]) -> Timed:
    def timed(source: int) -> float:
        started = time.perf_counter()
        function(source)
        return time.perf_counter() - started

    return timed


def own(graph: Graph, number: np.ndarray, threads: int) -> Timed:
    backend = CpuBackend(threads)
    compile_search(graph.offsets.dtype)
    return clocked(lambda source: search(graph, int(number[source]), backend))


def peer(tool: str, graph: Graph) -> Timed:
    pairs = list(expand_rows(graph.offsets, graph.targets))
    src = np.concatenate([sources for sources, _ in pairs]).astype(np.int32)
    dst = np.concatenate([targets for _, targets in pairs]).astype(np.int32)
    n = graph.vertices
    if tool == "scipy":  # both directions are stored: searched as directed, it makes no transpose
        matrix = peers.scipy_matrix(src, dst, n)
        return clocked(lambda source: peers.scipy_search(matrix, source, directed=True))
    once = src < dst
    if tool == "networkit":
        nk_graph = peers.networkit_graph(src[once], dst[once], n)
        return clocked(lambda source: peers.networkit_search(nk_graph, source))
    if tool == "igraph":
        i_graph = peers.igraph_graph(src[once], dst[once], n)
        return clocked(lambda source: peers.igraph_search(i_graph, source))
    gb_matrix = peers.graphblas_matrix(src[once], dst[once], n)
    return clocked(lambda source: peers.graphblas_search(gb_matrix, source))


def gap(program: Path, graph: Graph, path: Path) -> Timed:
    """GAP reads its own file format: directed flag, counts, 64-bit offsets, 32-bit targets."""
    with open(path, "wb") as file:
        file.write(b"\0")
        np.array([graph.edges, graph.vertices], np.int64).tofile(file)
        graph.offsets.astype(np.int64).tofile(file)
        for u in range(0, graph.vertices, 1 << 16):  # GAP sorts neighbours by number
            stop = min(u + (1 << 16), graph.vertices)
            rows = np.repeat(
                np.arange(u, stop), np.diff(graph.offsets[u : stop + 1].astype(np.int64))
            )
            targets = graph.targets[graph.offsets[u] : graph.offsets[stop]].astype(np.int64)
            targets[np.lexsort((targets, rows))].astype(np.int32).tofile(file)

    def timed(source: int) -> float:
        done = subprocess.run(
            [program, "-f", path, "-r", str(source), "-n", "3"],
            check=True,
            capture_output=True,
            text=True,
        )
        return statistics.median(map(float, re.findall(r"Trial Time: *([0-9.]+)", done.stdout)))

    return timed


if __name__ == "__main__":
    main()
