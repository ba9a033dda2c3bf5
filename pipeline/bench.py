"""Graph500's protocol: many searches from random sources, each validated.

Traversal rate: input rows inside the searched component over the search's time (GTEPS,
10^9 rows a second), averaged harmonically. Time of preparation stands beside it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import harmonic_mean
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from ..kernels.backend import get_backend
from ..kernels.check import Violations, check_edges, check_joined, check_tree
from ..kernels.graph import Graph
from ..kernels.team import Team
from ..partition.arrow import as_arrow, as_numpy
from ..partition.errors import DelegraphError, InputError
from ..partition.outputs import record_path
from ..partition.store import Store, expand_rows, open_store
from .communicator import SingleCommunicator
from .execute import Progress
from .metrics import hardware, versions
from .names import VertexNames, names_of_store
from .superstep import Found, search


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


def bench_store(
    path: str | Path,
    sources: int,
    seed: int,
    threads: int,
    progress: Progress | None = None,
) -> BenchReport:
    """Search a store from ``sources`` random vertices that have an edge to follow.

    Raises DelegraphError if a search's result breaks a rule.
    """
    store = open_store(path)
    team = Team(threads)
    backend = get_backend("cpu", threads)
    started = time.perf_counter()
    graph = store.graph(team)
    loaded = time.perf_counter()
    backend.warm_up(graph)
    compiled = time.perf_counter()
    rows_from = _rows_from_vertex(store, team)
    names = names_of_store(store, team)
    drawn = _draw(graph, names, sources, seed)
    ids = names.decode(as_arrow(np.array(drawn, np.uint32))).to_pylist()
    seconds, rates, depths = [], [], []
    for i, source in enumerate(drawn):
        began = time.perf_counter()
        found = search(graph, source, backend, SingleCommunicator())
        spent = time.perf_counter() - began
        _check(graph, source, found, ids[i])
        rows = int(rows_from[found.distance >= 0].sum())
        seconds.append(spent)
        rates.append((rows if store.info.directed else rows / 2) / spent / 1e9)
        depths.append(found.depth)
        if progress:
            progress("searches", i + 1, len(drawn))
    info = store.info
    return BenchReport(
        graph={
            "path": str(path),
            "fingerprint": info.fingerprint,
            "vertices": info.vertices,
            "rows": info.rows,
            "edges": info.edges,
            "directed": info.directed,
            "partitions": info.partitions,
            "order": info.order,
        },
        versions=versions(),
        hardware=hardware(),
        threads=threads,
        seed=seed,
        sources=ids,
        preparation_seconds=_preparation_seconds(store),
        load_seconds=loaded - started,
        compile_seconds=compiled - loaded,
        search_seconds=_quartiles(seconds),
        gteps=_quartiles(rates),
        gteps_harmonic_mean=harmonic_mean(rates),
        depth=_quartiles(depths),
    )


def _preparation_seconds(store: Store) -> float | None:
    """What the build took, by its record beside the store; None without one."""
    try:
        record = json.loads(record_path(store.path).read_bytes())
        same = record["graph"]["fingerprint"] == store.info.fingerprint
        return float(record["seconds"]) if same else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _rows_from_vertex(store: Store, team: Team) -> NDArray[np.int64]:
    """Input rows that leave each vertex, by global id (undirected: that touch it)."""
    name = "out_degree" if store.info.directed else "degree"
    table = store.vertices(team, ["global_id", name])
    rows = np.empty(store.info.vertices, np.int64)
    rows[as_numpy(table["global_id"])] = as_numpy(table[name])
    return rows


def _draw(graph: Graph, names: VertexNames, sources: int, seed: int) -> list[int]:
    """Vertices with an edge to follow, drawn by user id: the same whatever the store's order."""
    able = names.index[graph.offsets[names.index + np.uint32(1)] != graph.offsets[names.index]]
    if not len(able):
        raise InputError("no vertex has an edge to follow")
    chosen = np.random.default_rng(seed).choice(able, min(sources, len(able)), replace=False)
    return [int(vertex) for vertex in chosen]


def _check(graph: Graph, source: int, found: Found, name: int | str) -> None:
    violations = Violations()
    check_tree(found.distance, found.parent, source, None, violations)
    joined = np.zeros(graph.vertices, np.uint8)
    for block in expand_rows(graph.offsets, graph.targets):
        check_edges(*block, found.distance, found.parent, None, joined, violations)
    check_joined(found.parent, joined, violations)
    if violations:
        broken = {rule: count for rule, count in violations.count.items() if count}
        raise DelegraphError(f"the search from vertex {name} breaks rules {broken}")


def _quartiles(values: Sequence[float]) -> Quartiles:
    low, q1, median, q3, high = (float(q) for q in np.percentile(values, [0, 25, 50, 75, 100]))
    return Quartiles(min=low, q1=q1, median=median, q3=q3, max=high)
