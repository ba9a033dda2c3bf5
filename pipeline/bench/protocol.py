"""Graph500's protocol: many searches from random sources, each validated.

Traversal rate: input rows inside the searched component over the search's time (GTEPS,
10^9 rows a second), averaged harmonically. Time of preparation stands beside it. On a GPU the time
of a search is the device's, by events.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import harmonic_mean
from typing import Any, NamedTuple, Protocol, TypedDict

import numpy as np
from numpy.typing import NDArray

from ...kernels.base.graph import Graph
from ...kernels.base.team import Team
from ...kernels.bfs.check import TREE_BYTES, Violations, check_edges, check_joined, check_tree
from ...kernels.bfs.cpu import CpuBackend, compile_search
from ...kernels.gpu.device import Device, DeviceMemoryError
from ...partition.disk.outputs import record_path
from ...partition.errors import DelegraphError, InputError
from ...partition.input.arrow import as_arrow, as_numpy
from ...partition.store.store import EDGE_BATCH, GraphInfo, Store, expand_rows, open_store
from ..engines.device import DeviceSearcher, Room, load, room_for, searcher_bytes
from ..engines.memory import search
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


class BenchReport(TypedDict):
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
    search_seconds: Quartiles
    gteps: Quartiles
    gteps_harmonic_mean: float
    depth: Quartiles


class Timings(NamedTuple):
    """What was measured, a value a search. rows: input rows in the searched component."""

    seconds: list[float]
    rows: list[float]
    depths: list[int]


def bench_store(
    path: str | Path,
    sources: int,
    seed: int,
    threads: int,
    progress: Progress | None = None,
    device: Device | None = None,
    must_fit: bool = True,
) -> BenchReport:
    """Search a store from ``sources`` random vertices that have an edge to follow.

    device: to search on; None for the CPU, which also takes what does not fit the device unless it
    ``must_fit``. Raises DelegraphError if a search's result breaks a
    rule.
    """
    store = open_store(path)
    info = store.info
    team = Team(threads)
    names = names_of_store(store, team)
    rows_from = rows_from_vertex(store, team)
    drawn = draw_sources(names, rows_from, sources, seed)
    started = time.perf_counter()
    room = None
    if device is not None:
        try:
            room = room_for(store, device, beside=searcher_bytes(info.vertices))
        except DeviceMemoryError:
            if must_fit:
                raise
            device = None
    searcher = searcher_of(store, team, device, room, rows_from)
    loaded = time.perf_counter()
    searcher.warm_up()
    compiled = time.perf_counter()
    runs = run_all(searcher, drawn.places, drawn.ids, progress)
    return report(
        runs,
        graph=facts_of_store(path, info),
        device=device,
        threads=threads,
        seed=seed,
        sources=drawn.ids,
        directed=info.directed,
        preparation_seconds=preparation_seconds(store),
        load_seconds=loaded - started,
        compile_seconds=compiled - loaded,
    )


def searcher_of(
    store: Store,
    team: Team,
    device: Device | None,
    room: Room | None,
    rows_from: NDArray[np.int64],
) -> CpuSearcher | DeviceSearcher:
    """Load a store, to be searched on a device that has room for it, or by the CPU (None)."""
    if device is None or room is None:
        return CpuSearcher(store.graph(team), rows_from, team.threads)
    return DeviceSearcher(device, load(store, device, room, team), rows_from)


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


class CpuSearcher:
    """Searches of a graph in host memory. rows_from: input rows that leave each vertex."""

    def __init__(self, graph: Graph, rows_from: NDArray[np.integer], threads: int) -> None:
        self.graph = graph
        self.rows_from = rows_from
        self.backend = CpuBackend(threads)
        self.found: Found | None = None

    def warm_up(self) -> None:
        compile_search(self.graph.offsets.dtype)

    def search(self, source: int) -> float:
        """Search from a vertex; gives its seconds."""
        began = time.perf_counter()
        self.found = search(self.graph, source, self.backend)
        return time.perf_counter() - began

    def check(self, source: int) -> tuple[Violations, int, int]:
        """Rules that the last search broke, rows (by their ends) that it reached, its depth."""
        found, graph = self.found, self.graph
        assert found is not None
        violations = Violations()
        check_tree(found.distance, found.parent, source, None, violations)
        joined = np.zeros(graph.vertices, np.uint8)
        for batch in expand_rows(graph.offsets, graph.targets):
            check_edges(*batch, found.distance, found.parent, None, joined, violations)
        check_joined(found.parent, joined, violations)
        return violations, int(self.rows_from[found.distance >= 0].sum()), found.depth


class Sources(NamedTuple):
    """places: global ids. ids: the user's."""

    places: list[int]
    ids: list[int | str]


def draw_sources(
    names: VertexNames, rows_from: NDArray[np.int64], sources: int, seed: int
) -> Sources:
    """Vertices to search from, each of which has an edge to follow.

    rows_from: input rows that leave each vertex, by global id.
    """
    able = names.index[rows_from[names.index] > 0]
    if not len(able):
        raise InputError("no vertex has an edge to follow")
    places = able[draw(len(able), sources, seed)]
    return Sources(places.tolist(), names.decode(as_arrow(places)).to_pylist())


def check_bytes(store: Store) -> int:
    """Bytes that ``CpuSearcher.check`` holds at most beside the graph and what was found."""
    n = store.info.vertices
    # An edge's row and its repeats; of a row of a batch, number, bounds and length.
    return n + max(2 * 4 * EDGE_BATCH + 28 * n, TREE_BYTES * n)


def rows_bytes(store: Store) -> int:
    """Bytes that ``rows_from_vertex`` holds at most."""
    return store.files["vertices.parquet"].bytes + 32 * store.info.vertices


def draw(able: int, sources: int, seed: int) -> NDArray[np.int64]:
    """Which of so many vertices, by rising user id, to search from."""
    return np.random.default_rng(seed).choice(able, min(sources, able), replace=False)


class Searcher(Protocol):
    """Searches of one graph.

    check: of the last one the rules broken, rows (by their ends) that were reached, its depth.
    """

    def search(self, source: int) -> float: ...

    def check(self, source: int) -> tuple[Violations, int, int]: ...


def run_all(
    searcher: Searcher,
    sources: Sequence[int],
    names: Sequence[int | str],
    progress: Progress | None,
) -> Timings:
    """Search from each of the sources. Raises DelegraphError if a result breaks a rule.

    names: of the sources, for the message.
    """
    runs = Timings([], [], [])
    for i, source in enumerate(sources):
        runs.seconds.append(searcher.search(source))
        violations, rows, depth = searcher.check(source)
        if violations:
            broken = {rule: count for rule, count in violations.count.items() if count}
            raise DelegraphError(f"the search from vertex {names[i]} breaks rules {broken}")
        runs.rows.append(rows)
        runs.depths.append(depth)
        if progress:
            progress("searches", i + 1, len(sources))
    return runs


def report(
    runs: Timings,
    *,
    graph: dict[str, Any],
    device: Device | str | None,
    threads: int,
    seed: int,
    sources: list[int | str],
    directed: bool,
    preparation_seconds: float | None,
    load_seconds: float,
    compile_seconds: float,
) -> BenchReport:
    ends = 1 if directed else 2  # an undirected row leaves both of its ends
    rates = [
        rows / ends / seconds / 1e9 for rows, seconds in zip(runs.rows, runs.seconds, strict=True)
    ]
    return BenchReport(
        graph=graph,
        versions=versions() | (device.versions() if isinstance(device, Device) else {}),
        hardware=hardware(),
        device=str(device) if device else "cpu",
        threads=threads,
        seed=seed,
        sources=sources,
        preparation_seconds=preparation_seconds,
        load_seconds=load_seconds,
        compile_seconds=compile_seconds,
        search_seconds=_quartiles(runs.seconds),
        gteps=_quartiles(rates),
        gteps_harmonic_mean=harmonic_mean(rates),
        depth=_quartiles(runs.depths),
    )


def preparation_seconds(store: Store) -> float | None:
    """What the build took, by its record beside the store; None without one."""
    try:
        record = json.loads(record_path(store.path).read_bytes())
        same = record["graph"]["fingerprint"] == store.info.fingerprint
        return float(record["seconds"]) if same else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def rows_from_vertex(store: Store, team: Team) -> NDArray[np.int64]:
    """Input rows that leave each vertex, by global id (undirected: that touch it)."""
    name = "out_degree" if store.info.directed else "degree"
    table = store.vertices(team, ["global_id", name])
    rows = np.empty(store.info.vertices, np.int64)
    rows[as_numpy(table["global_id"])] = as_numpy(table[name])
    return rows


def _quartiles(values: Sequence[float]) -> Quartiles:
    low, q1, median, q3, high = (float(q) for q in np.percentile(values, [0, 25, 50, 75, 100]))
    return Quartiles(min=low, q1=q1, median=median, q3=q3, max=high)
