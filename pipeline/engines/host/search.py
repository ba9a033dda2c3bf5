"""Searches of a graph in the memory of one process. Supersteps of one level each go on until no
vertex is found.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ....kernels.base.arrays import total_bytes
from ....kernels.base.graph import Graph
from ....kernels.bfs.cpu import CpuBackend, compile_search
from ....kernels.bfs.state import Backend, SearchState, level_arrays, state_arrays
from ....partition.store.store import Store
from ...results.checkpoint import Checkpoint
from ...results.found import Found
from ...results.superstep_log import SuperstepLog
from ..direction import Direction, choose
from ..engine import Engine, Footprint, Need, Subject, need_of
from .rows import GraphLoader, graph_footprint

_LEVELS_AT_ONCE = 256  # tiny levels between two readings of the clock


class Outlook(NamedTuple):
    """The counts that decide the next superstep.

    frontier: vertices in the frontier. forward: edges that leave the frontier. unvisited: unvisited
    vertices that have incoming edges. unvisited_edges: those incoming edges.
    """

    frontier: int
    forward: int
    unvisited: int
    unvisited_edges: int


def search(
    graph: Graph,
    source: int,
    backend: Backend,
    max_depth: int | None = None,
    direction: Callable[[int, int, int], Direction] = choose,
    checkpoint: Checkpoint | None = None,
) -> Found:
    """Search breadth-first from ``source`` (a global id), with a direction chosen for each level.

    max_depth: the most levels to search; None for all. direction: a rule like direction.choose.
    checkpoint: the search resumes from its saved state, and saves to it.
    """
    saved = checkpoint.load(graph.vertices) if checkpoint else None
    if saved is not None:
        state = SearchState.saved(graph, saved.distance, saved.parent, saved.level)
        steps = saved.supersteps
        return resume(state, backend, max_depth, direction, checkpoint, steps)
    forward = int(graph.offsets[source + 1]) - int(graph.offsets[source])
    backward = int(graph.reverse_offsets[source + 1]) - int(graph.reverse_offsets[source])
    outlook = Outlook(
        frontier=1,
        forward=forward,
        unvisited=graph.vertices_with_incoming - (backward > 0),
        unvisited_edges=graph.edges - backward,
    )
    state = backend.start(graph, source)
    return _run(state, outlook, backend, max_depth, direction, checkpoint, SuperstepLog())


def resume(
    state: SearchState,
    backend: Backend,
    max_depth: int | None = None,
    direction: Callable[[int, int, int], Direction] = choose,
    checkpoint: Checkpoint | None = None,
    supersteps: SuperstepLog | None = None,
) -> Found:
    """Continue a search from the frontier of ``state``, which another kind of search or a
    checkpoint left.

    checkpoint: to save to. supersteps: the records of earlier supersteps.
    """
    graph = state.graph
    assert state.queue is not None
    leaving = graph.offsets[state.queue + np.uint32(1)] - graph.offsets[state.queue]
    entering = np.diff(graph.reverse_offsets)[state.distance < 0]
    outlook = Outlook(
        frontier=len(state.queue),
        forward=int(leaving.sum(dtype=np.int64)),
        unvisited=int(np.count_nonzero(entering)),
        unvisited_edges=int(entering.sum(dtype=np.int64)),
    )
    steps = SuperstepLog() if supersteps is None else supersteps
    return _run(state, outlook, backend, max_depth, direction, checkpoint, steps)


def _run(
    state: SearchState,
    outlook: Outlook,
    backend: Backend,
    max_depth: int | None,
    direction: Callable[[int, int, int], Direction],
    checkpoint: Checkpoint | None,
    supersteps: SuperstepLog,
) -> Found:
    frontier, forward, unvisited, unvisited_edges = outlook
    while frontier and forward and (max_depth is None or state.level < max_depth):
        started = time.perf_counter()
        towards = direction(forward, unvisited, unvisited_edges)
        level = state.level
        if towards == "pull":
            works = [backend.pull(state)]
        else:
            levels = _LEVELS_AT_ONCE
            if max_depth is not None:
                levels = min(levels, max_depth - level)
            works = backend.push(state, forward, levels)
        # Levels of one push share its time equally: no clock is fine enough for each.
        seconds = (time.perf_counter() - started) / len(works)
        for work in works:
            level += 1
            supersteps.add(level, towards, frontier, work.found, work.examined, seconds)
            frontier = work.found
            forward = work.forward
            unvisited -= work.found
            unvisited_edges -= work.backward
        if checkpoint:
            checkpoint.passed(level, frontier)
            if checkpoint.due():
                checkpoint.save(state.distance, state.parent, state.level, supersteps)
    return Found(state.distance, state.parent, supersteps)


class HostSearchEngine:
    """The engine that searches a graph whose rows are all in memory.

    reserved_bytes: bytes that the caller holds while it searches.
    """

    method = "push-pull"
    device = None
    ranks = 1
    in_memory = True

    def __init__(self, loader: GraphLoader, threads: int, reserved_bytes: int = 0) -> None:
        self.loader = loader
        self.backend = CpuBackend(threads)
        self._reserved_bytes = reserved_bytes

    @property
    def subject(self) -> Subject | None:
        return self.loader.subject

    @property
    def graph(self) -> Graph | None:
        return self.loader.graph

    def need(self) -> Need:
        return need_of(self.loader, _running_bytes, self._reserved_bytes)

    def compile(self) -> None:
        self.loader.compile()
        compile_search(*self.loader.offsets_types())

    def load(self) -> None:
        self.loader.load(self.backend.team)

    def search(
        self, source: int, max_depth: int | None = None, checkpoint: Checkpoint | None = None
    ) -> Found:
        assert self.loader.graph is not None
        return search(self.loader.graph, source, self.backend, max_depth, checkpoint=checkpoint)

    def take_over(self, other: Engine) -> bool:
        return isinstance(other, HostSearchEngine) and self.loader.take_over(other.loader)

    def close(self) -> None:
        self.loader.close()


def _running_bytes(footprint: Footprint) -> int:
    return search_bytes(footprint.vertices)


def search_bytes(vertices: int) -> int:
    """Return the bytes of a search, beside its graph."""
    return total_bytes([*state_arrays(vertices), *level_arrays(vertices)])


def graph_bytes(store: Store) -> int:
    """Return the most bytes that loading the whole graph of a store and searching it hold."""
    footprint = graph_footprint(store)
    return max(footprint.making, footprint.staying + search_bytes(footprint.vertices))
