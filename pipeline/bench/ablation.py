"""The gain of each of five optimizations of breadth-first search by masked products, as in Table 2
of Yang, Buluc, Owens: Implementing Push-Pull Efficiently in GraphBLAS. Optimizations are added one
after the other. The bench also measures the loss without each single optimization, and the search's
own kernels.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, fields, replace
from itertools import pairwise
from pathlib import Path
from statistics import fmean, harmonic_mean, median

import numpy as np
from numpy.typing import NDArray

from ...kernels.base.team import Team
from ...partition.disk.memory import machine_bytes
from ...partition.errors import DelegraphError, InputError
from ...partition.store.store import Store, open_store
from ...partition.store.whole import merged_offsets
from ..engines.engine import choose
from ..engines.host.rows import StoreGraph
from ..engines.host.search import HostSearchEngine
from ..engines.operations.products import Switches, compile_search, search, search_bytes
from ..results.names import names_of_store
from ..run.records import hardware, versions
from .device import parse_recipe
from .protocol import (
    BenchOptions,
    CpuSearcher,
    MeasuredReport,
    RatesReport,
    Sources,
    check,
    check_bytes,
    draw_sources,
    facts_of_store,
    preparation_seconds,
    quartiles,
    rates_of,
    rows_from_vertex,
)

OPTIMIZATIONS = tuple(switch.name for switch in fields(Switches))
"""Names of the optimizations, in the order of the paper's table."""


class WayReport(RatesReport):
    """Report of the searches with one set of optimizations. on: the names of the optimizations.
    speed_up: see AblationReport.
    """

    on: list[str]
    edges_examined: float
    speed_up: float | None


class AblationReport(MeasuredReport):
    """Report of an ablation. added: a row without any optimization, then rows with one more each;
    their speed_up is over the row before. without: rows with all optimizations but one, by its
    name; their speed_up is that of all optimizations over the row. by_hand: the search's own
    kernels; its speed_up is over all optimizations.
    """

    added: list[WayReport]
    without: dict[str, WayReport]
    by_hand: WayReport


Way = Switches | None
"""The optimizations of a search by products; None for the search's own kernels."""

ADDED: tuple[Switches, ...] = tuple(
    Switches(*(place < count for place in range(len(OPTIMIZATIONS))))
    for count in range(len(OPTIMIZATIONS) + 1)
)
WITHOUT = {name: replace(Switches(), **{name: False}) for name in OPTIMIZATIONS}
WAYS: tuple[Way, ...] = tuple(dict.fromkeys([None, *ADDED, *WITHOUT.values()]))


@dataclass
class _Timings:
    """Timings of an ablation. rows: the input rows that each search reaches, counted by their ends.
    depths: of each search. seconds, edges: by way, a value for each search.
    """

    rows: list[int] = field(default_factory=list)
    depths: list[int] = field(default_factory=list)
    seconds: dict[Way, list[float]] = field(default_factory=lambda: {way: [] for way in WAYS})
    edges: dict[Way, list[int]] = field(default_factory=lambda: {way: [] for way in WAYS})


def bench_ablation(path: str | Path, options: BenchOptions) -> AblationReport:
    """Search a store in memory from random vertices in every way. All ways must find the same
    distances.

    Raises DelegraphError if a search is wrong.
    """
    if parse_recipe(str(path)) is not None:
        raise InputError(
            "an ablation needs a store: make one of "
            f"{path} with 'delegraph generate' and 'delegraph build'"
        )
    store = open_store(path)
    team = Team(options.threads)
    rows_from = rows_from_vertex(store, team)
    drawn = draw_sources(names_of_store(store, team), rows_from, options)
    began = time.perf_counter()
    compile_search(merged_offsets(store.info), *store.offsets_types())
    engine, _ = choose([_engine(store, options.threads)], machine_bytes(), [])
    compiled = time.perf_counter()
    engine.load()
    loaded = time.perf_counter()
    timings = _time_all(engine, team, rows_from, drawn, options)
    whole = Switches()

    def told(way: Way, slow: Way, fast: Way) -> WayReport:
        return _report(way, timings, store.info.directed, _speed_up(timings, slow, fast))

    baseline = _report(ADDED[0], timings, store.info.directed, None)
    return AblationReport(
        graph=facts_of_store(path, store.info),
        versions=versions(),
        hardware=hardware(),
        device="cpu",
        threads=options.threads,
        seed=options.seed,
        sources=drawn.ids,
        preparation_seconds=preparation_seconds(store),
        load_seconds=loaded - compiled,
        compile_seconds=compiled - began,
        depth=quartiles(timings.depths),
        added=[baseline, *(told(way, before, way) for before, way in pairwise(ADDED))],
        without={name: told(way, way, whole) for name, way in WITHOUT.items()},
        by_hand=told(None, whole, None),
    )


def _engine(store: Store, threads: int) -> HostSearchEngine:
    info = store.info
    products = search_bytes(info.vertices, sum(info.subgraph_edges.values()))
    return HostSearchEngine(StoreGraph(store, None), threads, products + check_bytes(store))


def _time_all(
    engine: HostSearchEngine,
    team: Team,
    rows_from: NDArray[np.int64],
    drawn: Sources,
    options: BenchOptions,
) -> _Timings:
    """Time all ways of one search, then of the next search. Each search begins with another way, so
    that other load of the machine affects all ways. The first source is searched once before in
    every way without being timed, since first searches touch new memory.
    """
    graph, searcher, timings = engine.graph, CpuSearcher(engine, rows_from), _Timings()
    assert graph is not None
    entries = np.ones(graph.edges, np.uint32)

    def once(way: Way, source: int) -> tuple[NDArray[np.int32], float, int]:
        began = time.perf_counter()
        if way is None:
            found = engine.search(source)
            spent = time.perf_counter() - began
            edges = sum(step["edges_examined"] for step in found.supersteps)
            return found.distance, spent, edges
        distance, work = search(graph, source, team, way, entries)
        return distance, time.perf_counter() - began, work.edges

    for way in WAYS:
        once(way, drawn.places[0])
    for i, (source, name) in enumerate(zip(drawn.places, drawn.ids, strict=True)):
        searcher.search(source)
        rows, depth = check(searcher, source, name)
        timings.rows.append(rows)
        timings.depths.append(depth)
        assert searcher.found is not None
        first = i % len(WAYS)
        for way in WAYS[first:] + WAYS[:first]:
            distance, spent, edges = once(way, source)
            if not np.array_equal(distance, searcher.found.distance):
                raise DelegraphError(f"the search from vertex {name} is wrong {_words(way)}")
            timings.seconds[way].append(spent)
            timings.edges[way].append(edges)
        if options.progress:
            options.progress("searches", i + 1, len(drawn.places))
    return timings


def _on(way: Way) -> list[str]:
    return [name for name in OPTIMIZATIONS if getattr(way, name, False)]


def _words(way: Way) -> str:
    on = ", ".join(_on(way)).replace("_", " ")
    return "by its own kernels" if way is None else f"by products with {on or 'nothing'}"


def _report(way: Way, timings: _Timings, directed: bool, speed_up: float | None) -> WayReport:
    seconds = timings.seconds[way]
    rates = rates_of(timings.rows, seconds, directed)
    return WayReport(
        on=_on(way),
        search_seconds=quartiles(seconds),
        gteps=quartiles(rates),
        gteps_harmonic_mean=harmonic_mean(rates),
        edges_examined=fmean(timings.edges[way]),
        speed_up=speed_up,
    )


def _speed_up(timings: _Timings, before: Way, after: Way) -> float:
    """Return the median speed-up over searches. Both times of a search were measured close
    together.
    """
    pairs = zip(timings.seconds[before], timings.seconds[after], strict=True)
    return median(slow / fast for slow, fast in pairs)
