"""The search alone, on a graph in memory: delegraph against libraries from PyPI and GAP.

    python benchmarks/search.py [--graphs kron20,cnr-2000,...] [--data FOLDER] [--sources 16]
        [--gap PATH/TO/bfs]

By default the generated graphs and all of FOLDER's real ones, edges followed both ways. All search
from the same vertices, in turn. Prints the median time and the worst, the ratio of each to
delegraph's (of the times source by source the median, and the least), and GTEPS (input rows in the
component over the time, harmonic mean). GAP is the BFS of the GAP benchmark suite, built from its
sources with OpenMP; its vertices keep their order, as it does by default, and its time is the
median of three searches by its own clock, with threads that sleep while they wait or that spin,
whichever is less. It finds parents, delegraph distances and parents, the others distances.
"""

from __future__ import annotations

import argparse
import os
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
import real
from end_to_end import GRAPHS

from delegraph.kernels.base.graph import Graph, rows_of_edges
from delegraph.kernels.base.team import Team
from delegraph.kernels.base.threads import available_threads
from delegraph.kernels.bfs.cpu import CpuBackend, compile_search
from delegraph.partition.input.arrow import as_numpy
from delegraph.partition.store.store import open_store
from delegraph.pipeline.engines.host.search import search

Timed = Callable[[int], float]
"""Searches from a vertex (by id order); returns seconds."""
Weigh = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Integer weights of edges, the same both ways."""
WAITS = ("passive", "active")
"""How GAP's threads wait: the better one depends on the levels of a graph and on other work."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Time the search alone.")
    parser.add_argument("--graphs")
    real.add_option(parser)
    parser.add_argument("--tools", default="scipy,networkit,python-graphblas,igraph")
    parser.add_argument("--gap", type=Path, help="GAP's bfs program")
    parser.add_argument("--sources", type=int, default=16)
    options = parser.parse_args()
    environment.share_cores()
    about = environment.describe(("numba", *options.tools.split(",")))
    environment.show(about)
    results = []
    for name, edges in real.asked_for(options, "kron20,kron22,grid2000", GRAPHS.__contains__):
        with tempfile.TemporaryDirectory() as folder:
            results += compare(name, edges, Path(folder), options)
    environment.keep("search", about, results)


def compare(name: str, edges: Path | None, folder: Path, options) -> list[dict]:
    """edges: of a real graph; None for one to generate."""
    delegraph = [sys.executable, "-m", "delegraph"]
    quiet = {"check": True, "stdout": subprocess.DEVNULL}
    if edges is None:
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
    count = min(options.sources, len(able))
    sources = np.random.default_rng(1).choice(able, count, replace=False)
    times: dict[str, list[float]] = {tool: [] for tool in tools}
    rows = []
    for source in map(int, sources):
        found = search(graphs["degree"], int(number[source]), CpuBackend(1))
        rows.append(int(degree[found.distance[number] >= 0].sum()) // 2)
        for tool, timed in tools.items():
            times[tool].append(timed(source))

    print(f"\n{name}: {len(degree):,} vertices, {graphs['none'].edges // 2:,} edges")
    print(f"{'':18}{'ms':>10}{'worst':>10}{'ratio':>8}{'least':>8}{'GTEPS':>10}")
    results = []
    for tool, seconds in times.items():
        ratios = [a / b for a, b in zip(seconds, times["delegraph"], strict=True)]
        ratio, least = statistics.median(ratios), min(ratios)
        rates = [count / spent / 1e9 for count, spent in zip(rows, seconds, strict=True)]
        median, gteps = statistics.median(seconds), statistics.harmonic_mean(rates)
        print(
            f"{tool:18}{median * 1e3:>10.2f}{max(seconds) * 1e3:>10.2f}{ratio:>8.2f}{least:>8.2f}"
            f"{gteps:>10.3f}",
            flush=True,
        )
        times_and_ratios = {"seconds": median, "most": max(seconds), "ratio": ratio, "least": least}
        results.append({"graph": name, "tool": tool, **times_and_ratios, "gteps": gteps})
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
    src = rows_of_edges(graph.offsets, 0, graph.edges).astype(np.int32)
    dst = graph.targets.astype(np.int32)
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
    write_gap(graph, path)

    def trials(source: int, wait: str) -> float:
        done = subprocess.run(
            [program, "-f", path, "-r", str(source), "-n", "3"],
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, "OMP_WAIT_POLICY": wait},
        )
        return statistics.median(map(float, re.findall(r"Trial Time: *([0-9.]+)", done.stdout)))

    return lambda source: min(trials(source, wait) for wait in WAITS)


def write_gap(graph: Graph, path: Path, weigh: Weigh | None = None) -> None:
    """GAP reads its own file format: directed flag, counts, 64-bit offsets, 32-bit targets.

    weigh: of edges from u to v, numbers of vertices; the weight stands behind its target.
    """
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
            targets = targets[np.lexsort((targets, rows))]
            columns = [targets] if weigh is None else [targets, weigh(rows, targets)]
            np.stack(columns, axis=1).astype(np.int32).tofile(file)


if __name__ == "__main__":
    main()
