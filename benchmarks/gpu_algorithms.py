"""One GPU: components, PageRank, HITS, eigenvector and Katz centrality, spanning forests,
triangles, truss numbers, shortest paths, betweenness and searches from 64 vertices at once, of
graphs made, or read, there.

    python benchmarks/gpu_algorithms.py [--graphs kron22,cnr-2000,...] [--algorithms components,...]
        [--sources 16] [--data FOLDER]

Graphs are named as in gpu.py: by default the generated ones below, and all Parquet files of FOLDER
and FOLDER/real, undirected. Weights are integers from 1 to 255, drawn by an edge's ends. Rows stand
on the device, of NAME-host targets in host memory; a time is a whole call up to the device's end of
it, its arrays made anew: the median of several, and the worst; of PageRank an iteration's by the
device's clocks; of HITS, eigenvector and Katz centrality an iteration's by the clock, once entries
stand as they are gathered (``first_ms``: a first run of all iterations); of betweenness all
sources; shortest paths with their parents. Of 64 searches three: with sums (closeness), with
distances, to the nearest; ratios are to searches one by one, which find parents, too, by
``bench``'s clock. Every result is checked: see the functions
``check_...``. Goals are those that we set ourselves for one NVIDIA H200; beside them what cuGraph
26.10 took there.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from statistics import median
from typing import Any, NamedTuple

import environment
import gpu
import numpy as np
import real
from scipy.sparse import coo_matrix  # pyright: ignore[reportMissingImports]
from scipy.sparse.csgraph import connected_components  # pyright: ignore[reportMissingImports]

from delegraph.kernels.gpu.device import Device, open_device
from delegraph.kernels.gpu.graph import Rows
from delegraph.kernels.gpu_pieces import truss
from delegraph.kernels.gpu_programs import (
    betweenness,
    components,
    pagerank,
    searches,
    shortest_paths,
)
from delegraph.kernels.gpu_programs.rows import ProgramGraph, cut
from delegraph.pipeline.algorithms.clustering import ClusteringProgram
from delegraph.pipeline.algorithms.eigenvector import EigenvectorProgram
from delegraph.pipeline.algorithms.forest import ForestProgram
from delegraph.pipeline.algorithms.hits import HitsProgram
from delegraph.pipeline.algorithms.iterations import ScoresProgram, ScoresStep, Stop
from delegraph.pipeline.algorithms.katz import KatzProgram
from delegraph.pipeline.bench.protocol import DeviceSearcher, run_all
from delegraph.pipeline.engines.one_device.operations import DeviceOperations
from delegraph.pipeline.engines.one_device.search import search_of
from delegraph.pipeline.engines.operations.program import ProgramResult
from delegraph.pipeline.engines.operations.saving import DeviceSaving

GENERATED = "kron22,kron24,urand24"
PUBLISHED = ["kron22", "kron24", "urand24", "cnr-2000", "luxembourg-osm"]
# Milliseconds of cuGraph, and our goals, of the graphs above.
FIGURES = {
    "components": ((27, 42, 188, 23, 26), (1.0, 3, 6, 0.25, 0.5)),
    "pagerank": ((0.92, 3.31, 9.33, 0.12, 0.08), (0.4, 1.5, 4.5, 0.05, 0.03)),
    "pagerank-single": ((None,) * 5, (0.4, 1.5, 4.5, 0.05, 0.03)),
    "hits": ((4.5, 14, None, 0.69, 0.129), (None,) * 5),
    "eigenvector": ((1.13, 4, None, 0.127, 0.093), (None,) * 5),
    "katz": ((1.07, 3.86, None, 0.125, 0.044), (None,) * 5),
    "forest": ((None,) * 5, (None,) * 5),
    "clustering": ((782, 5030, None, 10, 47), (None,) * 5),
    "truss": ((3552, None, None, 43, 46), (None,) * 5),  # cuGraph: the 3-truss alone
    "sssp": ((63, 96, 113, 103, 528), (4, 12, 20, 5, 15)),
    "betweenness": ((513, 2058, 3523, 54, 716), (80, 300, 600, 12, 60)),
    "searches": ((None,) * 5, (None, 4, 20, None, None)),
}
REPEATS = 5
ITERATIONS = 20
DAMPING = 0.85
PIECE = 1 << 26  # entries that a check looks at together
CHECKED = 64  # vertices whose triangles a check counts


class Timed(NamedTuple):
    """milliseconds: of runs. facts: what the last one did."""

    milliseconds: list[float]
    facts: dict[str, Any]


class Subject(NamedTuple):
    """graph: with degrees and weights. sources: by position; many: as many as go together, and what
    they take one by one. mean_weight: of its entries.
    """

    graph: ProgramGraph
    sources: list[int]
    many: np.ndarray
    alone_ms: float
    mean_weight: float

    @property
    def vertices(self) -> int:
        return self.graph.vertices

    @property
    def rows(self) -> Rows:
        return self.graph.cut.rows

    def pieces(self) -> Iterator[tuple[Any, Any, slice]]:
        """(row, target) of some entries, and which these are."""
        cupy, rows = self.graph.device.cupy, self.rows
        for first in range(0, rows.edges, PIECE):
            some = slice(first, min(first + PIECE, rows.edges))
            entries = cupy.arange(some.start, some.stop, dtype=rows.offsets.dtype)
            row = (cupy.searchsorted(rows.offsets, entries, "right") - 1).astype(np.uint32)
            yield row, rows.near[some] if rows.far is None else cupy.asarray(rows.far[some]), some


def main() -> None:
    parser = argparse.ArgumentParser(description="Time programs on one GPU.")
    parser.add_argument("--graphs")
    parser.add_argument("--algorithms", default=",".join(MEASURED))
    parser.add_argument("--sources", type=int, default=16)
    real.add_option(parser)
    options = parser.parse_args()
    device = open_device()
    about = gpu.describe(device)
    found = real.real_graphs(options.data)
    results = []
    for name, _ in real.asked_for(options, GENERATED, gpu.recipe_of):
        subject = subject_of(device, name, found, options.sources)
        for algorithm in options.algorithms.split(","):
            results.append(measure(name, algorithm, subject))
            show(results[-1])
        del subject
        with device.use() as cupy:
            cupy.get_default_memory_pool().free_all_blocks()
    environment.keep("gpu_algorithms", about, results)


def subject_of(device: Device, name: str, found: dict[str, Any], sources: int) -> Subject:
    loaded = gpu.load(device, name, found)
    chosen = gpu.choose_sources(loaded, max(sources, searches.WIDTH), device)
    many = chosen[: searches.WIDTH]
    prepared = loaded.prepared
    with device.use() as cupy:
        searcher = DeviceSearcher(search_of(device, loaded.graph, "auto"), prepared.rows_from)
        searcher.warm_up()
        alone = 1e3 * sum(run_all(searcher, many, many, None).seconds)
        del searcher
        rows = Rows(prepared.offsets, prepared.targets)
        if name.endswith("-host"):
            far = device.pinned(rows.edges, np.uint32)
            far[:] = prepared.targets.get()
            rows = Rows(prepared.offsets, prepared.targets[:0], far)
        weights = cupy.empty(rows.edges, np.uint32)
        degree = (rows.offsets[1:] - rows.offsets[:-1]).astype(np.float64)
        extra_bytes = device.memory_bytes // 2
        graph = ProgramGraph(
            device, cut(device, rows), True, weights, "uint32", degree, extra_bytes
        )
        subject = Subject(
            graph, chosen[:sources], np.array(many, np.uint32), alone, mean_weight=128
        )
        for row, target, some in subject.pieces():
            least, most = cupy.minimum(row, target), cupy.maximum(row, target)
            mixed = least.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + most
            mixed *= np.uint64(0xBF58476D1CE4E5B9)
            weights[some] = (mixed >> np.uint64(40)) % np.uint64(255) + np.uint64(1)
    return subject


def measure(name: str, algorithm: str, subject: Subject) -> dict[str, Any]:
    with subject.graph.device.use():
        timed = MEASURED[algorithm](subject)
    known = dict(zip(PUBLISHED, zip(*FIGURES[algorithm], strict=True), strict=True))
    cugraph, goal = known.get(name, (None, None))
    return {
        "graph": name,
        "algorithm": algorithm,
        "vertices": subject.vertices,
        "entries": subject.rows.edges,
        "median_ms": median(timed.milliseconds),
        "worst_ms": max(timed.milliseconds),
        "goal_ms": goal,
        "cugraph_ms": cugraph,
        **timed.facts,
    }


def show(result: dict[str, Any]) -> None:
    ms, goal, peer = (result[f"{of}_ms"] for of in ("median", "goal", "cugraph"))
    print(
        f"{result['graph']:<20}{result['algorithm']:<16}{ms:>10.3f} ms, worst "
        f"{result['worst_ms']:.3f}"
        + (f"; goal {goal}: {ms / goal:.2f} of it" if goal else "")
        + (f"; cuGraph's {peer / ms:.1f} times" if peer else "")
        + "; "
        + ", ".join(f"{fact} {value}" for fact, value in list(result.items())[8:]),
        flush=True,
    )


def clock(device: Device, run: Callable[[], Any]) -> tuple[float, Any]:
    """Milliseconds until the device is through, and what ``run`` gave."""
    cupy = device.cupy
    cupy.cuda.Device().synchronize()
    began = time.perf_counter()
    given = run()
    cupy.cuda.Device().synchronize()
    return 1e3 * (time.perf_counter() - began), given


def measure_components(subject: Subject) -> Timed:
    graph = subject.graph
    components.kernel(graph)
    runs = [clock(graph.device, lambda: components.join_all(graph)) for _ in range(1 + REPEATS)]
    count = check_components(subject, runs[-1][1])
    return Timed([spent for spent, _ in runs[1:]], {"components": count})


def check_components(subject: Subject, forest: Any) -> int:
    """One label along each edge, which is a vertex that has it, the least of them; how many labels.
    That no two components share one, tests show on small graphs.
    """
    cupy = subject.graph.device.cupy
    assert bool((forest[forest] == forest).all())
    assert bool((forest <= cupy.arange(subject.vertices, dtype=np.uint32)).all())
    for row, target, _ in subject.pieces():
        assert bool((forest[row] == forest[target]).all())
    roots = cupy.flatnonzero(forest == cupy.arange(subject.vertices, dtype=np.uint32))
    return len(roots)


def measure_pagerank(subject: Subject, single: bool = False) -> Timed:
    graph = plain(subject.graph)
    pagerank.warm_up(graph, single)
    walk = pagerank.GpuWalk(graph, DAMPING, None, True, single=single)
    walk.run(ITERATIONS)
    times = [1e3 * some.seconds for some in walk.run(ITERATIONS)]
    check_walk(subject, graph, single)
    return Timed(times, {"iterations": ITERATIONS})


def measure_scores(subject: Subject, name: str) -> Timed:
    graph = plain(subject.graph)
    program = SCORES[name](subject.vertices, Stop(ITERATIONS, None), None)
    program.compile_on(graph)
    operations = DeviceOperations(graph, DeviceSaving(None))

    def run() -> ScoresStep:
        step = program.begin(operations)
        for _ in range(ITERATIONS):
            step.run()
        return step

    first, _ = clock(graph.device, run)
    runs = [clock(graph.device, run) for _ in range(1 + REPEATS)]
    check_next(subject, name, runs[-1][1])
    times = [spent / ITERATIONS for spent, _ in runs[1:]]
    return Timed(times, {"iterations": ITERATIONS, "first_ms": round(first, 3)})


def measure_forest(subject: Subject) -> Timed:
    graph = subject.graph
    order = np.arange(subject.vertices, dtype=np.uint32)
    graph = replace(graph, id_order=lambda: order)
    program = ForestProgram("uint32")
    program.compile_on(graph)

    def run() -> ProgramResult:
        return program.run(DeviceOperations(graph, DeviceSaving(None)), lambda *_: None)

    runs = [clock(graph.device, run) for _ in range(1 + REPEATS)]
    found = runs[-1][1]
    trees = check_components(subject, components.join_all(graph))
    check_forest(subject, found.values, trees)
    return Timed([spent for spent, _ in runs[1:]], {"rounds": found.record["rounds"]})


def check_forest(subject: Subject, found: Mapping[str, Any], trees: int) -> None:
    """The edges join what all edges join, and none is too many. That their weights are the least,
    tests show on small graphs.
    """
    src, dst = (np.asarray(found[end].get(), np.int64) for end in ("src", "dst"))
    assert len(src) == subject.vertices - trees
    ones = np.ones(len(src), np.uint8)
    joined = coo_matrix((ones, (src, dst)), (subject.vertices, subject.vertices))
    assert connected_components(joined, directed=False)[0] == trees


def measure_clustering(subject: Subject) -> Timed:
    graph, program = plain(subject.graph), ClusteringProgram()
    program.compile_on(graph)

    def run() -> ProgramResult:
        return program.run(DeviceOperations(graph, DeviceSaving(None)), lambda *_: None)

    runs = [clock(graph.device, run) for _ in range(1 + REPEATS)]
    found = runs[-1][1]
    triangles = found.values["triangles"].get()
    check_triangles(subject, triangles)
    facts = {"triangles": int(triangles.sum()) // 3, "looked": found.record["edges"]}
    return Timed([spent for spent, _ in runs[1:]], facts)


def measure_truss(subject: Subject) -> Timed:
    graph = plain(subject.graph)
    truss.warm_up(graph)

    def run() -> truss.Peeling:
        peeling = truss.Peeling(graph)
        for _ in peeling.groups():
            pass
        return peeling

    runs = [clock(graph.device, run) for _ in range(1 + REPEATS)]
    peeling = runs[-1][1]
    check_truss(subject, peeling)
    facts = {"largest": int(peeling.support.max()) + 2, "rounds": peeling.rounds}
    return Timed([spent for spent, _ in runs[1:]], facts)


def check_truss(subject: Subject, peeling: truss.Peeling) -> None:
    """Some edges are in enough triangles of edges with numbers as great. That numbers are the
    greatest, tests show on small graphs.
    """
    one, other = (end.get().astype(np.uint64) for end in peeling.edges())
    support = peeling.support.get()
    keys = np.minimum(one, other) << np.uint64(32) | np.maximum(one, other)
    order = np.argsort(keys)
    keys, support = keys[order], support[order]
    offsets, targets = subject.rows.offsets.get(), subject.rows.near.get()

    def numbers(vertex: int) -> dict[int, int]:
        ends = targets[offsets[vertex] : offsets[vertex + 1]].astype(np.uint64)
        of = np.minimum(ends, vertex) << np.uint64(32) | np.maximum(ends, vertex)
        return dict(zip(ends.tolist(), support[np.searchsorted(keys, of)].tolist(), strict=True))

    for edge in np.random.default_rng(1).integers(0, len(keys), CHECKED):
        ends = int(keys[edge] >> np.uint64(32)), int(keys[edge] & np.uint64(0xFFFFFFFF))
        of_one, of_other = map(numbers, ends)
        both = (min(of_one[w], of_other[w]) for w in of_one.keys() & of_other.keys())
        assert sum(number >= support[edge] for number in both) >= support[edge]


def check_triangles(subject: Subject, found: np.ndarray) -> None:
    """The neighbours of some vertices have as many edges among them."""
    offsets, targets = subject.rows.offsets.get(), subject.rows.near.get()
    among = np.zeros(subject.vertices, np.bool_)
    for vertex in np.random.default_rng(1).integers(0, subject.vertices, CHECKED):
        row = targets[offsets[vertex] : offsets[vertex + 1]]
        among[row] = True
        ends = (targets[offsets[other] : offsets[other + 1]] for other in row.tolist())
        assert sum(int(among[end].sum()) for end in ends) == 2 * found[vertex]
        among[row] = False


ALPHA = 1e-5
SCORES: dict[str, Callable[..., ScoresProgram]] = {
    "hits": HitsProgram,
    "eigenvector": EigenvectorProgram,
    "katz": partial(KatzProgram, alpha=ALPHA),
}


def check_next(subject: Subject, name: str, step: ScoresStep) -> None:
    """The definition's next scores are those of the next step."""
    (before,) = (vector.own.copy() for vector in step.saved().values())
    step.run()
    (after,) = (vector.own for vector in step.saved().values())
    came = _sums(subject, before)
    if name == "hits":
        came = _sums(subject, came)
        wanted = came / came.sum()
    elif name == "eigenvector":
        came += before
        wanted = came / float((came * came).sum()) ** 0.5
    else:
        wanted = ALPHA * came + 1
    assert bool((abs(wanted - after) <= 1e-12 * wanted).all()), float(abs(wanted / after - 1).max())


def _sums(subject: Subject, x: Any) -> Any:
    cupy = subject.graph.device.cupy
    came = cupy.zeros(subject.vertices)
    for row, target, _ in subject.pieces():
        came += cupy.bincount(row, x[target], subject.vertices)
    return came


def plain(graph: ProgramGraph) -> ProgramGraph:
    """The same without weights."""
    return replace(graph, weights=None, weight_type=None)


def check_walk(subject: Subject, graph: ProgramGraph, single: bool) -> None:
    """The definition's next iteration of some ranks is the next iteration's."""
    cupy, n, close = graph.device.cupy, subject.vertices, 1e-6 if single else 1e-12
    before, after = (_ranks(graph, count, single) for count in (ITERATIONS, ITERATIONS + 1))
    degree = graph.degree
    share = before / cupy.where(degree == 0, 1, degree)
    came = cupy.zeros(n)
    for row, target, _ in subject.pieces():
        came += cupy.bincount(row, share[target], n)
    lost = before[degree == 0].sum()
    wanted = DAMPING * (came + lost / n) + (1 - DAMPING) / n
    assert bool((abs(wanted - after) <= close * wanted).all()), float(abs(wanted / after - 1).max())
    assert abs(float(after.sum()) - 1) < (1e-6 if single else 1e-9)


def _ranks(graph: ProgramGraph, iterations: int, single: bool) -> Any:
    walk = pagerank.GpuWalk(graph, DAMPING, None, True, single=single)
    done = 0
    while done < iterations:
        done += len(walk.run(iterations - done))
    return graph.device.cupy.asarray(walk.ranks())


def measure_sssp(subject: Subject) -> Timed:
    graph, times, facts = subject.graph, [], {}
    shortest_paths.warm_up(graph)
    width = subject.mean_weight / max(1.0, subject.rows.edges / subject.vertices)
    for source in [subject.sources[0], *subject.sources]:
        spent, paths = clock(graph.device, lambda source=source: follow(graph, source, width))
        check_paths(subject, source, paths.distance)
        times.append(spent)
        facts = {"rounds": paths.rounds, "buckets": paths.buckets, "edges": paths.edges}
    return Timed(times[1:], facts)


def follow(graph: ProgramGraph, source: int, width: float) -> shortest_paths.GpuPaths:
    """Distances and parents."""
    paths = shortest_paths.GpuWholePaths(graph, source, width, np.inf)
    while not paths.done:
        paths.run()
    assert not paths.beyond
    paths.adopt()
    return paths


def check_paths(subject: Subject, source: int, distance: Any) -> None:
    """Of each vertex the least that an edge leads to it by, as no edge weighs nothing."""
    cupy, weights = subject.graph.device.cupy, subject.graph.weights
    assert weights is not None
    far = np.uint64(1 << 60)
    whole = cupy.where(cupy.isfinite(distance), distance, 0).astype(np.uint64)
    whole[~cupy.isfinite(distance)] = far
    least = cupy.full(subject.vertices, far, np.uint64)
    for row, target, some in subject.pieces():
        through = cupy.minimum(whole[target] + weights[some], far)
        cupy.minimum.at(least, row, through)
    least[source] = 0
    assert bool((least == whole).all())


def measure_betweenness(subject: Subject) -> Timed:
    graph = subject.graph
    betweenness.warm_up(graph)
    sources = np.array(subject.sources, np.uint32)

    def run() -> betweenness.GpuBrandes:
        state, done = betweenness.GpuBrandes(graph), 0
        while done < len(sources):
            done += state.run(sources[done:])
        return state

    runs = [clock(graph.device, run) for _ in range(1 + REPEATS)]
    state = runs[-1][1]
    check_scores(subject, sources, state.score())
    spent = [spent for spent, _ in runs[1:]]
    return Timed(spent, {"sources": len(sources), "edges": state.edges})


def check_scores(subject: Subject, sources: np.ndarray, score: np.ndarray) -> None:
    """A shortest path of d edges depends on d - 1 vertices, one path or many."""
    wanted = 0.0
    for source in sources.tolist():
        distance = hops(subject, source)
        wanted += float((distance[distance > 0] - 1.0).sum())
    assert abs(score.sum() - wanted) <= 1e-9 * max(1.0, wanted), (score.sum(), wanted)


def hops(subject: Subject, source: int) -> Any:
    """Distances in edges, from paths along edges that all weigh one."""
    graph = subject.graph
    one = graph.device.cupy.ones(subject.rows.edges, np.uint32)
    alike = ProgramGraph(graph.device, graph.cut, True, one, "uint32")
    distance = follow(alike, source, 1.0).distance
    distance[~graph.device.cupy.isfinite(distance)] = -1
    return distance


def measure_searches(subject: Subject) -> Timed:
    """Of sums; then, in the facts, of distances, and of the nearest."""
    graph, many = subject.graph, subject.many
    searches.warm_up(graph)
    searches.warm_up_nearest(graph)
    sums = [clock(graph.device, lambda: add_up(graph, many)) for _ in range(1 + REPEATS)]
    bits = [clock(graph.device, lambda: keep(graph, many)) for _ in range(1 + REPEATS)]
    near = [clock(graph.device, lambda: searches.nearest(graph, many)) for _ in range(1 + REPEATS)]
    (hops, apart), (distances, _), found = (runs[-1][1] for runs in (sums, bits, near))
    check_searches(subject, hops, distances, found)
    spent = [spent for spent, _ in sums[1:]]
    facts = {"sources": len(many), "together": not apart, "ratio": subject.alone_ms / median(spent)}
    for name, runs in (("distances", bits), ("nearest", near)):
        facts[f"{name}_ms"] = median(spent for spent, _ in runs[1:])
    return Timed(spent, {key: round(value, 3) for key, value in facts.items()})


def add_up(graph: ProgramGraph, many: np.ndarray) -> tuple[np.ndarray, bool]:
    """Sums by source, and whether searches went apart."""
    state = searches.GpuSearches(graph, len(many))
    met = state.together(many)
    if met.outcome != searches.SELDOM_MEET:
        return met.hops, False
    hops = state.apart(many)
    assert hops is not None
    return hops, True


def keep(graph: ProgramGraph, many: np.ndarray) -> tuple[dict[int, Any], bool]:
    """Distances, all together (0) or by source, as they come; and whether searches went apart."""
    state, kept = searches.GpuSearches(graph, len(many), distances=True), {}
    met = state.together(many)
    if met.outcome == searches.FOUND:
        return {0: met}, False
    state.apart(many, take=lambda i, distance: kept.update({i: distance.astype(np.uint32).get()}))
    return kept, True


def check_searches(
    subject: Subject, sums: np.ndarray, kept: dict[int, Any], found: searches.Near
) -> None:
    """Of four sources distances in edges, by shortest paths; the nearest of all by its rule: beside
    each vertex one that is a level nearer, and none that is nearer than that.
    """
    for i, source in list(enumerate(subject.many.tolist()))[::16]:
        distance = hops(subject, source).get().astype(np.int64)
        reached = distance[distance >= 0]
        assert sums[i]["reached"] == len(reached)
        assert sums[i]["total"] == reached.sum()
        assert sums[i]["farthest"] == reached.max()
        own = kept_distance(kept, i)
        assert (own == distance).all()
    cupy = subject.graph.device.cupy
    distance, nearest = cupy.asarray(found.distance), cupy.asarray(found.nearest)
    far = np.uint32(1 << 31)
    near = cupy.minimum(distance, far)
    least = cupy.full(subject.vertices, far, np.uint32)
    own = cupy.full(subject.vertices, far, np.uint32)
    for row, target, _ in subject.pieces():
        cupy.minimum.at(least, row, near[target] + np.uint32(1))
        before = near[target] + np.uint32(1) == near[row]
        cupy.minimum.at(own, row[before], nearest[target[before]])
    many = cupy.asarray(subject.many)
    assert bool((near[many] == 0).all())
    assert bool((nearest[many] == cupy.arange(len(many), dtype=np.uint32)).all())
    others = cupy.ones(subject.vertices, bool)
    others[many] = False
    assert bool((near == cupy.minimum(least, far))[others].all())
    reached = others & (near < far)
    assert bool((nearest == own)[reached].all())


def kept_distance(kept: dict[int, Any], i: int) -> np.ndarray:
    """Of a source, -1 where unreached."""
    met = kept[0]
    if not isinstance(met, searches.Met):
        return kept[i].view(np.int32)
    own = np.where(met.reached.get() >> np.uint64(i) & np.uint64(1), 0, -1)
    for digit, some in enumerate(met.bits.get()):
        own |= (some >> np.uint64(i) & np.uint64(1)).astype(np.int64) << digit
    return own


MEASURED: dict[str, Callable[[Subject], Timed]] = {
    "components": measure_components,
    "pagerank": measure_pagerank,
    "pagerank-single": partial(measure_pagerank, single=True),
    **{name: partial(measure_scores, name=name) for name in SCORES},
    "forest": measure_forest,
    "clustering": measure_clustering,
    "truss": measure_truss,
    "sssp": measure_sssp,
    "betweenness": measure_betweenness,
    "searches": measure_searches,
}

if __name__ == "__main__":
    main()
