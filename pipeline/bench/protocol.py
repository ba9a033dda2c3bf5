"""Graph500's protocol: many searches from random sources, each validated.

The traversal rate is the number of input rows inside the searched component over the search's time,
in GTEPS (10^9 rows a second). Rates are averaged harmonically. The time of preparation is reported
beside them. On a GPU the time of a search is the device's, by events.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import harmonic_mean
from typing import Any, NamedTuple, Protocol, TypedDict

import numpy as np
from numpy.typing import NDArray

from ...kernels.base.numbering import by_rule
from ...kernels.base.team import Team
from ...kernels.bfs.check import TREE_BYTES, Violations, check_joined, check_rows, check_tree
from ...kernels.gpu import check as gpu_check
from ...kernels.gpu.device import Device
from ...kernels.gpu.search import GpuSearch
from ...partition.disk.memory import machine_bytes
from ...partition.disk.outputs import read_record
from ...partition.errors import DelegraphError, InputError
from ...partition.input.arrow import as_arrow, as_numpy
from ...partition.input.id_types import shown_id
from ...partition.store.store import EDGE_BATCH, GraphInfo, Store, open_store
from ..engines.engine import Engine, Strategy, check_strategy, choose
from ..engines.host.rows import StoreGraph
from ..engines.host.search import HostSearchEngine
from ..engines.one_device.search import DeviceSearchEngine, StoreGraphOnDevice
from ..results.found import Found
from ..results.names import VertexNames, names_of_store
from ..run.execute import Progress
from ..run.records import hardware, versions


class Quartiles(TypedDict):
    min: float
    q1: float
    median: float
    q3: float
    max: float


class MeasuredReport(TypedDict):
    """Report of searches of one graph: the fields that every measurement has."""

    graph: dict[str, Any]
    versions: dict[str, str]
    hardware: dict[str, str | int]
    device: str
    threads: int
    seed: int
    sources: list[int | str]
    preparation_seconds: float | None
    load_seconds: float
    compile_seconds: float
    depth: Quartiles


class RatesReport(TypedDict):
    search_seconds: Quartiles
    gteps: Quartiles
    gteps_harmonic_mean: float


class BenchReport(MeasuredReport, RatesReport):
    method: str


@dataclass(frozen=True)
class BenchOptions:
    """Options of a measurement. sources: the number of searches, from vertices drawn by ``seed``.
    threads: cores to use. strategy: the form of the graph that a search on one GPU goes over.
    """

    sources: int = 64
    seed: int = 1
    threads: int = 1
    progress: Progress | None = None
    strategy: Strategy = "auto"

    def __post_init__(self) -> None:
        if self.sources < 1:
            raise InputError(f"{self.sources} searches: at least one is needed")


class Timings(NamedTuple):
    """Timings of searches, a value for each search. rows: input rows in the searched component,
    counted by their ends.
    """

    seconds: list[float]
    rows: list[float]
    depths: list[int]


class Measured(NamedTuple):
    """The measured searches of a graph that was loaded for them. method: as in a search's
    record.
    """

    timings: Timings
    load_seconds: float
    compile_seconds: float
    method: str = "push-pull"


class Benched(NamedTuple):
    """Facts of a graph and its searches, for a report. graph: facts of the graph. sources: as user
    ids. preparation_seconds: None if unknown.
    """

    graph: dict[str, Any]
    directed: bool
    sources: list[int | str]
    threads: int
    preparation_seconds: float | None


def bench_store(
    path: str | Path, options: BenchOptions, device: Device | None = None, must_fit: bool = True
) -> BenchReport:
    """Search a store from random vertices that have an edge to follow.

    device: the device to search on; None for the CPU. must_fit: whether a graph that does not fit
    the device is an error; if not, the CPU searches it. Raises DelegraphError if a search's result
    breaks a rule.
    """
    store = open_store(path)
    team = Team(options.threads)
    rows_from = rows_from_vertex(store, team)
    drawn = draw_sources(names_of_store(store, team), rows_from, options)
    check_strategy(options.strategy, device)
    engines = timed_engines(store, device, options.threads, options.strategy)
    engine, _ = choose(engines[:1] if must_fit else engines, machine_bytes(), [])
    measured = measure(engine, rows_from, drawn, options.progress)
    facts, built = facts_of_store(path, store.info), preparation_seconds(store)
    benched = Benched(facts, store.info.directed, drawn.ids, options.threads, built)
    return report(measured, benched, options.seed, engine.device)


def timed_engines(
    store: Store, device: Device | None, threads: int, strategy: Strategy = "rows"
) -> list[Engine]:
    """Return the engines that search a store in one process and hold all of it, the best first."""
    in_memory = HostSearchEngine(StoreGraph(store, None), threads)
    if device is None:
        return [in_memory]
    reserved_bytes = searcher_bytes(store.info.vertices)
    graph = StoreGraphOnDevice(store, None, device, threads, reserved_bytes)
    return [DeviceSearchEngine(graph, device, strategy), in_memory]


def measure(
    engine: Engine, rows_from: NDArray[np.int64], drawn: Sources, progress: Progress | None = None
) -> Measured:
    """Load a graph, and search from all sources. rows_from: the number of input rows that leave
    each vertex.
    """
    began = time.perf_counter()
    engine.load()
    searcher: CpuSearcher | DeviceSearcher
    if isinstance(engine, DeviceSearchEngine):
        assert engine.gpu is not None
        searcher = DeviceSearcher(engine.gpu, rows_from)
    else:
        assert isinstance(engine, HostSearchEngine)
        searcher = CpuSearcher(engine, rows_from)
    loaded = time.perf_counter()
    searcher.warm_up()
    compiled = time.perf_counter()
    timings = run_all(searcher, drawn.places, drawn.ids, progress)
    return Measured(timings, loaded - began, compiled - loaded, engine.method)


def facts_of_store(path: str | Path, info: GraphInfo) -> dict[str, Any]:
    return {
        "path": str(path),
        "fingerprint": info.fingerprint,
        "vertices": info.vertices,
        "rows": info.rows,
        "edges": info.edges,
        "directed": info.directed,
        "partitions": info.partitions,
        "order": info.order,
    }


_BUSY = 1 << 24  # words that keep a device busy for some microseconds


class CpuSearcher:
    """Searches of a graph in host memory. rows_from: the number of input rows that leave each
    vertex.
    """

    def __init__(self, engine: HostSearchEngine, rows_from: NDArray[np.integer]) -> None:
        self.engine = engine
        self.rows_from = rows_from
        self.found: Found | None = None

    def warm_up(self) -> None:
        self.engine.compile()

    def search(self, source: int) -> float:
        """Search from a vertex, and return the seconds."""
        began = time.perf_counter()
        self.found = self.engine.search(source)
        return time.perf_counter() - began

    def check(self, source: int) -> tuple[Violations, int, int]:
        """Check the last search. Returns the violations, the number of input rows reached (counted
        by their ends), and the depth.
        """
        found, graph = self.found, self.engine.graph
        assert found is not None
        assert graph is not None
        violations, team = Violations(), self.engine.backend.team
        check_tree(found.distance, found.parent, source, None, violations, team)
        joined = np.zeros(graph.vertices, np.uint8)

        def check(start: int) -> Violations:
            some = Violations()
            targets = graph.targets[start : start + EDGE_BATCH]
            rows = graph.offsets, start, targets, by_rule(), by_rule()
            check_rows(*rows, found.distance, found.parent, None, joined, some)
            return some

        for some in team.map(check, range(0, graph.edges, EDGE_BATCH)):
            violations += some
        check_joined(found.parent, joined, violations)
        return violations, int(self.rows_from[found.distance >= 0].sum()), found.supersteps.depth


def searcher_bytes(vertices: int) -> int:
    """Return the bytes that a DeviceSearcher holds on the device beside the graph and its
    search.
    """
    return 4 * _BUSY + (8 + 1) * vertices


class DeviceSearcher:
    """Searches of a graph on a device, timed and checked there (see CpuSearcher).

    rows_from: by vertex, in host memory or on the device.
    """

    def __init__(self, gpu: GpuSearch, rows_from: Any) -> None:
        self.gpu = gpu
        self.device = gpu.device
        with gpu.device.use() as cupy:
            self._rows_from = cupy.asarray(rows_from).astype(np.uint64)
            self._busy = cupy.zeros(_BUSY, np.uint32)

    def warm_up(self) -> None:
        self.gpu.warm_up()
        self.gpu.run(0)  # the first launch loads code, which must not count as search time

    def search(self, source: int) -> float:
        with self.device.use():
            # Other work keeps the device busy until the search's launch is queued, so that the
            # measured time is the device's, not this process's.
            self._busy += np.uint32(1)
            self.gpu.run(source)
        return self.gpu.seconds()

    def check(self, source: int) -> tuple[Violations, int, int]:
        forward, gpu = self.gpu.graph.forward, self.gpu
        violations = gpu_check.check(self.device, forward, gpu.distance, gpu.parent, source)
        _, rows = gpu_check.reached(self.device, gpu.distance, self._rows_from)
        return violations, rows, gpu.depth()


class Sources(NamedTuple):
    """Sources of searches. places: global ids. ids: user ids."""

    places: list[int]
    ids: list[int | str]


def draw_sources(
    names: VertexNames, rows_from: NDArray[np.int64], options: BenchOptions
) -> Sources:
    """Draw the vertices to search from, each of which has an edge to follow.

    rows_from: the number of input rows that leave each vertex, by global id. Raises InputError if
    no vertex has an edge.
    """
    able = names.index[rows_from[names.index] > 0]
    if not len(able):
        raise InputError("no vertex has an edge to follow")
    places = able[draw(len(able), options)]
    ids = names.decode(as_arrow(places)).to_pylist()
    return Sources(places.tolist(), list(map(shown_id, ids)))


def check_bytes(store: Store) -> int:
    """Return the most bytes that ``CpuSearcher.check`` holds, beside the graph and the search's
    result.
    """
    n = store.info.vertices
    return n + TREE_BYTES * n


def rows_bytes(store: Store) -> int:
    """Return the most bytes that ``rows_from_vertex`` holds."""
    return store.files["vertices.parquet"].bytes + 32 * store.info.vertices


def draw(able: int, options: BenchOptions) -> NDArray[np.int64]:
    """Draw the indexes of sources among ``able`` vertices by rising user id."""
    drawn = min(options.sources, able)
    return np.random.default_rng(options.seed).choice(able, drawn, replace=False)


class Searcher(Protocol):
    """Searches of one graph.

    search: returns the seconds. check: checks the last search; returns the violations, the number
    of input rows reached (counted by their ends), and the depth.
    """

    def search(self, source: int) -> float: ...

    def check(self, source: int) -> tuple[Violations, int, int]: ...


def run_all(
    searcher: Searcher,
    sources: Sequence[int],
    names: Sequence[int | str],
    progress: Progress | None,
) -> Timings:
    """Search from each of the sources, and check each search. Raises DelegraphError if a result
    breaks a rule.

    names: of the sources, for the error's message.
    """
    timings = Timings([], [], [])
    for i, source in enumerate(sources):
        timings.seconds.append(searcher.search(source))
        rows, depth = check(searcher, source, names[i])
        timings.rows.append(rows)
        timings.depths.append(depth)
        if progress:
            progress("searches", i + 1, len(sources))
    return timings


def check(searcher: Searcher, source: int, name: int | str) -> tuple[int, int]:
    """Check the last search. Returns the number of input rows (counted by their ends) that it
    reached, and its depth. Raises DelegraphError if the search breaks a rule.
    """
    violations, rows, depth = searcher.check(source)
    if violations:
        broken = {rule: count for rule, count in violations.count.items() if count}
        raise DelegraphError(f"the search from vertex {name} breaks rules {broken}")
    return rows, depth


def report(
    measured: Measured, benched: Benched, seed: int, device: Device | str | None
) -> BenchReport:
    """Return the report of searches. seed: of the random choice of sources. device: where searches
    ran; for several ranks, their devices as text; None for the CPU.
    """
    timings = measured.timings
    rates = rates_of(timings.rows, timings.seconds, benched.directed)
    return BenchReport(
        graph=benched.graph,
        versions=versions() | (device.versions() if isinstance(device, Device) else {}),
        hardware=hardware(),
        device=str(device) if device else "cpu",
        method=measured.method,
        threads=benched.threads,
        seed=seed,
        sources=benched.sources,
        preparation_seconds=benched.preparation_seconds,
        load_seconds=measured.load_seconds,
        compile_seconds=measured.compile_seconds,
        search_seconds=quartiles(timings.seconds),
        gteps=quartiles(rates),
        gteps_harmonic_mean=harmonic_mean(rates),
        depth=quartiles(timings.depths),
    )


def rates_of(rows: Sequence[float], seconds: Sequence[float], directed: bool) -> list[float]:
    """Return the rates of searches in GTEPS. rows: counted by their ends."""
    ends = 1 if directed else 2  # an undirected row leaves both of its ends
    return [some / ends / spent / 1e9 for some, spent in zip(rows, seconds, strict=True)]


def preparation_seconds(store: Store) -> float | None:
    """Return the seconds of the build, from its record beside the store; None without a record."""
    try:
        record = read_record(store.path)
        same = record["graph"]["fingerprint"] == store.info.fingerprint
        return float(record["seconds"]) if same else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def rows_from_vertex(store: Store, team: Team) -> NDArray[np.int64]:
    """Return the number of input rows that leave each vertex (undirected: that touch it), by global
    id.
    """
    name = "out_degree" if store.info.directed else "degree"
    table = store.vertices(team, ["global_id", name])
    rows = np.empty(store.info.vertices, np.int64)
    rows[as_numpy(table["global_id"])] = as_numpy(table[name])
    return rows


def quartiles(values: Sequence[float]) -> Quartiles:
    low, q1, median, q3, high = (float(q) for q in np.percentile(values, [0, 25, 50, 75, 100]))
    return Quartiles(min=low, q1=q1, median=median, q3=q3, max=high)
