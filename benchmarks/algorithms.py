"""Programs: delegraph against libraries from PyPI and GAP, in turn.

    python benchmarks/algorithms.py [--graphs kron20,cnr-2000,...] [--data FOLDER] [--runs 3]
        [--tools scipy,duckdb,...] [--limit SECONDS] [--gap FOLDER] [--alone] [--only cores,...]
        [--whole components,leiden,...]

By default the generated graphs and all of FOLDER's real ones, edges taken both ways.

Whole jobs, by default of components and PageRank, go from Parquet to Parquet, a process each.
Prints the median wall time and the worst, the ratio of times to delegraph's, run by run, and peak
memory as end_to_end.py takes it. Every tool has to find as many components and as large a largest
one; its PageRank may differ from delegraph's by 1e-4 in all (L1). Of communities, whose quality
stands with the algorithms alone, only the vertices are compared. A tool that exceeds the time limit
is stopped and says so.

The algorithms alone run on a graph in memory. What is timed: of delegraph the search, by the record
of a call of an open graph, in this process; of GAP's programs the first trial of a process, by its
own clock; of libraries the call, in this process. None reads the graph within it, all make the
arrays of their results. Each edge stands once, each way.

- components.
- pagerank: an iteration; of delegraph the median of all but the first one, of others the time over
  the iterations. GAP's (Gauss-Seidel, 32-bit sums) is given as many as delegraph took.
- sssp: from one of four vertices in turn. Weights are integers from 1 to 255 by a hash of the ends.
  delegraph finds parents too, the others distances alone, which have to be the same. GAP's buckets
  are 2 wide on Kronecker graphs; on others the fastest of DELTAS, tried once.
- betweenness: from the four vertices, as GAP's program picks them (-i 4) where it is at hand.
  igraph's sums have to be delegraph's within 1e-6. NetworKit takes a number of sources only, and
  picks its own; SciPy and python-graphblas have no function for it.
- cores: core numbers, which have to be delegraph's. The libraries' calls return a list.
- harmonic: of 64 random vertices with edges. igraph's values have to be delegraph's. NetworKit
  takes all vertices, or picks some; SciPy and python-graphblas have no function for it.
- degree: the sums of weights, which have to be the same.
- labels: delegraph does ten iterations of synchronous label propagation. NetworKit's vertices
  change one after the other, until fewer than one in 100,000 changes.
- strong: strong components of the directed graph; all must find as many, and a largest one of the
  same size.
- clustering: the local clustering coefficient of each vertex, which has to be delegraph's.
- leiden, louvain: communities. delegraph's first run has seed 1, the next one seed 2, and so on
  (--runs 5 for five seeds). NetworKit's ParallelLeiden and PLM and igraph's Leiden (two iterations)
  draw at random, and igraph's Louvain does. The modularity of all runs is counted by one function;
  printed are the median, the least and the greatest.
- forest: a minimum spanning forest. All must find as many edges, and the same sum of weights.

GAP's programs check themselves (-v), on small graphs. OpenMP's threads sleep while they wait
(environment.share_cores).
"""

from __future__ import annotations

import argparse
import itertools
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import environment
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import real
import search
from algorithm_peers import LIBRARIES, PEERS
from end_to_end import GRAPHS, HERE
from processes import measure

import delegraph
from delegraph.kernels.base.graph import Graph, rows_of_edges
from delegraph.kernels.base.team import Team
from delegraph.kernels.base.threads import available_threads
from delegraph.partition.store.store import open_store

ALGORITHMS = ("components", "pagerank")
APART = 1e-4
"""How far a PageRank may be from delegraph's, summed over vertices."""
ALONE = {
    "scipy": ("components", "pagerank", "sssp", "degree", "strong", "forest"),
    "networkit": (
        "components",
        "pagerank",
        "sssp",
        "betweenness",
        "cores",
        "labels",
        "strong",
        "clustering",
        "leiden",
        "louvain",
    ),
    "python-graphblas": ("components", "pagerank", "degree", "clustering"),
    "igraph": (
        "betweenness",
        "cores",
        "harmonic",
        "degree",
        "clustering",
        "forest",
        "leiden",
        "louvain",
    ),
}
"""What libraries are timed alone with, of those asked for."""
SOURCES = 4
MANY = 64
"""Vertices that harmonic centrality is of."""
DELTAS = (2, 16, 128, 1024)
"""Of GAP's buckets, to choose from."""


class Run(NamedTuple):
    """seconds: of PageRank for an iteration. values: by vertex, None where they are not checked.
    communities: by vertex, None where none are looked for.
    """

    seconds: float
    values: np.ndarray | None = None
    communities: np.ndarray | None = None


Timed = Callable[[], Run]
"""Runs once."""


class Edges(NamedTuple):
    """Each edge of a graph once, src < dst, and its weight."""

    src: np.ndarray
    dst: np.ndarray
    weight: np.ndarray


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--graphs")
    real.add_option(parser)
    parser.add_argument("--tools", default=",".join(PEERS))
    parser.add_argument("--gap", type=Path, help="folder of GAP's programs")
    parser.add_argument("--alone", action="store_true", help="no whole jobs")
    parser.add_argument("--only", help="algorithms to run alone, instead of all, and no whole jobs")
    parser.add_argument("--whole", help="algorithms of whole jobs, and nothing alone")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument(
        "--python",
        default=sys.executable,
        help="interpreter that delegraph is installed for, say without the peers beside it",
    )
    parser.add_argument("--limit", type=float, default=60, help="seconds a run of a peer may take")
    options = parser.parse_args()
    options.tools = [tool for tool in options.tools.split(",") if tool]
    environment.share_cores()
    about = environment.describe(("numba", *options.tools))
    environment.show(about)
    results = []
    for name, edges in real.asked_for(options, "kron20,kron22,grid2000", GRAPHS.__contains__):
        with tempfile.TemporaryDirectory() as folder:
            results += compare(name, edges, Path(folder), options)
    kept = "algorithms_alone" if options.alone or options.only else "algorithms"
    asked = chosen(options) or (options.whole or "").split(",")
    environment.keep("_".join(filter(None, [kept, *asked])), about, results)


def chosen(options) -> list[str]:
    return options.only.split(",") if options.only else []


def compare(name: str, edges: Path | None, folder: Path, options) -> list[dict]:
    """edges: of a real graph; None for one to generate."""
    if edges is None:
        edges = folder / "edges"
        run_delegraph(options, "generate", *GRAPHS[name].split(), "-o", edges)
    results = []
    jobs = options.whole.split(",") if options.whole else ALGORITHMS
    for algorithm in () if options.alone or options.only else jobs:
        results += whole_jobs(name, algorithm, edges, folder, options)
    return results if options.whole else results + alone(name, edges, folder, options)


def run_delegraph(options, *arguments: object) -> None:
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
    """The median, the least, the most, and the median ratio to delegraph's, run by run."""
    ratio = statistics.median(a / b for a, b in zip(times, own, strict=True))
    median = statistics.median(times)
    return {"seconds": median, "least": min(times), "most": max(times), "ratio": ratio}


def answer(path: Path, algorithm: str) -> tuple[np.ndarray, np.ndarray]:
    """Vertices in order, and their values."""
    columns = {"components": "component", "pagerank": "pagerank"}
    column = columns.get(algorithm, "community")
    table = ds.dataset(path).to_table(columns=["vertex", column])
    vertex = table["vertex"].to_numpy()
    order = np.argsort(vertex)
    return vertex[order], table[column].to_numpy()[order]


def check(who: str, algorithm: str, found, expected) -> None:
    """RuntimeError if an answer is not delegraph's."""
    if not np.array_equal(found[0], expected[0]):
        raise RuntimeError(f"{who} has {len(found[0])} vertices, not the {len(expected[0])}")
    if algorithm not in ALGORITHMS:
        return
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
    stores = {order: folder / f"{order}.dg" for order in ("degree", "none", "weighted")}
    for order in ("degree", "none"):
        build = ("build", edges, "-o", stores[order], "--order", order, "--quiet")
        run_delegraph(options, *build)
        stores[f"directed {order}"] = folder / f"directed-{order}.dg"
        build = (*build[:3], stores[f"directed {order}"], *build[4:], "--directed")
        run_delegraph(options, *build)
    graph = open_store(stores["none"]).graph(Team(available_threads()))
    once = edges_of(graph)
    pq.write_table(pa.table(once._asdict()), folder / "weighted.parquet")
    build = ("build", folder / "weighted.parquet", "-o", stores["weighted"], "--weight", "weight")
    run_delegraph(options, *build, "--quiet")
    able = np.flatnonzero(np.diff(graph.offsets.astype(np.int64)))
    many = np.random.default_rng(2).permutation(able)[:MANY].tolist()
    if options.gap:
        search.write_gap(graph, folder / "graph.sg")
        search.write_gap(graph, folder / "graph.wsg", weights)
        sources = sources_of_gap(options.gap, folder)
    else:
        sources = np.random.default_rng(1).choice(able, SOURCES, replace=False).tolist()
    own_graphs = Own(stores, graph.vertices)
    tools = {"delegraph": own(own_graphs, graph.vertices, sources, many)}
    if options.gap:
        iterations = own_graphs.ask("degree", "pagerank").record["pagerank"]
        deltas = (2,) if name.startswith("kron") else DELTAS
        tools["GAP"] = gap(options.gap, folder, iterations["iterations"], sources, deltas)
    directed = open_store(stores["directed none"]).graph(Team(available_threads()))
    graphs = graph, once, directed
    able_peers = [tool for tool in options.tools if tool in ALONE]
    tools |= {tool: peer(tool, *graphs, sources, many) for tool in able_peers}

    print(f"\n{name}, alone: {graph.vertices:,} vertices, {graph.edges // 2:,} edges")
    results = []
    for algorithm in chosen(options) or tools["delegraph"]:
        able_tools = {tool: of[algorithm] for tool, of in tools.items() if algorithm in of}
        times, modularities = in_turn(f"{algorithm} of {name}", able_tools, options.runs, once)
        said = (
            f"{'modularity':>12}{'least':>9}{'greatest':>9}" if any(modularities.values()) else ""
        )
        print(f"{algorithm:18}{'ms':>10}{'least':>10}{'worst':>10}{'ratio':>8}{said}")
        for tool, spent in times.items():
            figures = figures_of(spent, times["delegraph"])
            line = (
                f"  {tool:16}{figures['seconds'] * 1e3:>10.2f}{figures['least'] * 1e3:>10.2f}"
                f"{figures['most'] * 1e3:>10.2f}{figures['ratio']:>8.2f}"
            )
            result: dict[str, Any] = {"graph": name, "algorithm": algorithm}
            result |= {"part": "alone", "tool": tool}
            if found := modularities[tool]:
                result["modularities"] = found
                line += f"{statistics.median(found):>12.5f}{min(found):>9.5f}{max(found):>9.5f}"
            print(line, flush=True)
            results.append({**result, **figures})
    return results


def edges_of(graph: Graph) -> Edges:
    src = rows_of_edges(graph.offsets, 0, graph.edges).astype(np.int32)
    dst = graph.targets.astype(np.int32)
    once = src < dst
    src, dst = src[once], dst[once]
    return Edges(src, dst, weights(src, dst))


def weights(src: np.ndarray, dst: np.ndarray) -> np.ndarray:
    """From 1 to 255, by a hash of both ends, whichever is the source."""
    mixed = np.minimum(src, dst).astype(np.uint64) << np.uint64(32)
    mixed |= np.maximum(src, dst).astype(np.uint64)
    for _ in range(2):
        mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15)
    return ((mixed >> np.uint64(32)) % np.uint64(255)).astype(np.int32) + 1


def in_turn(
    what: str, tools: dict[str, Timed], runs: int, once: Edges
) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Seconds of every run, and the modularity of communities, if the runs find any. RuntimeError
    if values are not delegraph's, which runs first.
    """
    times: dict[str, list[float]] = {tool: [] for tool in tools}
    modularities: dict[str, list[float]] = {tool: [] for tool in tools}
    for _ in range(runs):
        expected = None
        for tool, timed in tools.items():
            run = timed()
            times[tool].append(run.seconds)
            if run.communities is not None:
                modularities[tool].append(modularity(once.src, once.dst, run.communities))
            if expected is None:
                expected = run.values
            elif run.values is not None and not np.allclose(run.values, expected, rtol=1e-6):
                raise RuntimeError(f"{what}: {tool} has found something else than delegraph")
    return times, modularities


def modularity(src: np.ndarray, dst: np.ndarray, communities: np.ndarray) -> float:
    """Return the modularity of communities. Each edge stands once, and there are no self-loops.
    communities: a number for each vertex.
    """
    label = np.unique(communities, return_inverse=True)[1]
    ends = np.concatenate([label[src], label[dst]])
    inside = np.count_nonzero(label[src] == label[dst])
    return inside / len(src) - ((np.bincount(ends) / len(ends)) ** 2).sum()


class Own:
    """delegraph's graphs, which stay in memory once they are asked."""

    def __init__(self, stores: dict[str, Path], n: int) -> None:
        self._stores, self._n = stores, n
        self._graphs: dict[str, Any] = {}

    def ask(self, store: str, algorithm: str, **options: Any) -> delegraph.Result:
        if store not in self._graphs:
            self._graphs[store] = delegraph.open(self._stores[store], device="cpu")
        return getattr(self._graphs[store], algorithm)(**options)

    def run(self, column: str, nowhere: float, *asked: str, **options: Any) -> Run:
        result = self.ask(*asked, **options)
        found = np.full(self._n, nowhere, np.float64)
        found[result["vertex"]] = np.nan_to_num(result[column].to_numpy(False), nan=nowhere)
        return Run(seconds_of(result), found)


def seconds_of(result: delegraph.Result) -> float:
    return result.record["seconds"]["search"]


def own(own_graphs: Own, n: int, sources: list[int], many: list[int]) -> dict[str, Timed]:
    """Timed runs by algorithm. n: vertices. many: those that harmonic centrality is of."""
    turn = itertools.cycle(sources)

    def iteration() -> Run:
        each = own_graphs.ask("degree", "pagerank").record["iterations"]
        return Run(statistics.median(one["seconds"] for one in each[1:] or each))

    def strong() -> Run:
        result = own_graphs.ask("directed degree", "strong")
        return Run(seconds_of(result), np.array(parts(result["component"].to_numpy())))

    def betweenness() -> Run:
        run = own_graphs.run("betweenness", 0, "weighted", "betweenness", sources=sources)
        assert run.values is not None
        others, k = n - 1, len(sources)
        found = run.values * (2 / others)  # pairs twice, of as many sources
        found[sources] *= k - 1  # which do not count their own paths
        found[np.setdiff1d(np.arange(n), sources)] *= k
        return Run(run.seconds, found)

    def harmonic() -> Run:
        run = own_graphs.run("harmonic", 0, "weighted", "harmonic", sources=many)
        assert run.values is not None
        return Run(run.seconds, run.values[many])

    def communities(method: str) -> Timed:
        seeds = itertools.count(1)

        def find() -> Run:
            options = {"unweighted": True, "seed": next(seeds)}
            run = own_graphs.run("community", -1, "weighted", method, **options)
            return Run(run.seconds, communities=run.values)

        return find

    def forest() -> Run:
        record = own_graphs.ask("weighted", "forest").record
        facts = record["forest"]
        return Run(record["seconds"]["search"], np.array([facts["edges"], facts["weight"]]))

    def unchecked(*asked: str) -> Timed:
        return lambda: Run(seconds_of(own_graphs.ask(*asked)))

    run = own_graphs.run
    return {
        "components": unchecked("degree", "components"),
        "pagerank": iteration,
        "sssp": lambda: run("distance", np.inf, "weighted", "sssp", source=next(turn)),
        "betweenness": betweenness,
        "cores": lambda: run("core", 0, "weighted", "cores"),
        "harmonic": harmonic,
        "degree": lambda: run("weighted_degree", 0, "weighted", "degree"),
        "labels": unchecked("degree", "labels"),
        "strong": strong,
        "clustering": lambda: run("clustering", 0, "weighted", "clustering"),
        "forest": forest,
        "leiden": communities("leiden"),
        "louvain": communities("louvain"),
    }


def peer(
    tool: str, graph: Graph, once: Edges, directed: Graph, sources: list[int], many: list[int]
) -> dict[str, Timed]:
    """On edges that were counted once already: all algorithms but strong take the same graph."""
    library = LIBRARIES[tool]
    simple = library.simple(once.src, once.dst, graph.vertices)
    weighted = library.weighted and library.weighted(*once, graph.vertices)
    src = rows_of_edges(directed.offsets, 0, directed.edges).astype(np.int32)
    ends = src, directed.targets.astype(np.int32)
    along = library.directed and library.directed(*ends, directed.vertices)
    turn = itertools.cycle(sources)

    def clocked(function, *arguments) -> tuple[float, Any]:
        started = time.perf_counter()
        result = function(*arguments)
        return time.perf_counter() - started, result

    def iteration() -> Run:
        seconds, (_, iterations) = clocked(library.pagerank, simple)
        return Run(seconds / iterations)

    def sssp() -> Run:
        seconds, found = clocked(library.sssp, weighted, next(turn))
        return Run(seconds, np.where(found < np.finfo(np.float64).max, found, np.inf))

    def strong() -> Run:
        seconds, found = clocked(library.strong, along)
        return Run(seconds, np.array(parts(np.asarray(found))))

    def communities(find) -> Run:
        seconds, found = clocked(find, simple)
        return Run(seconds, communities=np.asarray(found))

    def forest() -> Run:
        seconds, found = clocked(library.forest, weighted)
        return Run(seconds, np.array([len(found), sum(found)]))

    timed: dict[str, Timed] = {
        "components": lambda: Run(clocked(library.components, simple)[0]),
        "pagerank": iteration,
        "sssp": sssp,
        "betweenness": lambda: Run(*clocked(library.betweenness, simple, sources)),
        "cores": lambda: Run(*clocked(library.cores, simple)),
        "harmonic": lambda: Run(*clocked(library.harmonic, simple, many)),
        "degree": lambda: Run(*clocked(library.degree, weighted)),
        "labels": lambda: Run(clocked(library.labels, simple)[0]),
        "strong": strong,
        "clustering": lambda: Run(*clocked(library.clustering, simple)),
        "forest": forest,
        "leiden": lambda: communities(library.leiden),
        "louvain": lambda: communities(library.louvain),
    }
    return {algorithm: timed[algorithm] for algorithm in ALONE[tool]}


def run_gap(program: Path, graph: Path, *arguments: object) -> str:
    command = [program, "-f", graph, "-n", "1", *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def sources_of_gap(programs: Path, folder: Path) -> list[int]:
    """Those that its betweenness begins with: its log says them."""
    said = run_gap(programs / "bc", folder / "graph.sg", "-i", SOURCES, "-l")
    return [int(source) for source in re.findall(r"Source:? *(\d+)", said)]


def gap(
    programs: Path, folder: Path, iterations: int, sources: list[int], deltas: tuple[int, ...]
) -> dict[str, Timed]:
    turn = itertools.cycle(sources)

    def trial(program: str, file: str, *arguments: object) -> float:
        said = run_gap(programs / program, folder / file, *arguments)
        (seconds,) = re.findall(r"Trial Time: *([0-9.]+)", said)
        return float(seconds)

    def sssp(delta: int, source: int) -> float:
        return trial("sssp", "graph.wsg", "-r", source, "-d", delta)

    delta = min(deltas, key=lambda delta: sssp(delta, sources[0])) if deltas[1:] else deltas[0]
    exactly = ("-i", iterations, "-t", 0)
    return {
        "components": lambda: Run(trial("cc", "graph.sg")),
        "pagerank": lambda: Run(trial("pr", "graph.sg", *exactly) / iterations),
        "sssp": lambda: Run(sssp(delta, next(turn))),
        "betweenness": lambda: Run(trial("bc", "graph.sg", "-i", SOURCES)),
    }


if __name__ == "__main__":
    main()
