"""Bulk-synchronous supersteps: one level of a search each, until nothing more is found."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..kernels.backend import Backend
from ..kernels.graph import Graph
from .communicator import Communicator, Counters
from .direction import Direction, choose
from .metrics import SuperstepRecord


@dataclass(frozen=True)
class Found:
    """The outcome of a search.

    distance: int32 (n,), -1 where unreached. parent: uint32 (n,), UNREACHED for the source and
    where unreached.
    """

    distance: NDArray[np.int32]
    parent: NDArray[np.uint32]
    supersteps: list[SuperstepRecord]

    @property
    def reached(self) -> int:
        return 1 + sum(step["found"] for step in self.supersteps)

    @property
    def depth(self) -> int:
        return sum(step["found"] > 0 for step in self.supersteps)


def search(
    graph: Graph,
    source: int,
    backend: Backend,
    communicator: Communicator,
    max_depth: int | None = None,
    direction: Callable[[int, int, int], Direction] = choose,
) -> Found:
    """Breadth-first search from ``source`` (a global id), direction-optimizing.

    max_depth: levels to search at most; None for all. direction: the rule of direction.choose.
    """
    state = backend.start(graph, source)
    forward = int(graph.offsets[source + 1]) - int(graph.offsets[source])
    backward = int(graph.reverse_offsets[source + 1]) - int(graph.reverse_offsets[source])
    unvisited = graph.vertices_with_incoming - (backward > 0)
    unvisited_edges = graph.edges - backward
    frontier = 1
    supersteps: list[SuperstepRecord] = []
    while frontier and forward and (max_depth is None or state.level < max_depth):
        started = time.perf_counter()
        towards = direction(forward, unvisited, unvisited_edges)
        work = backend.push(state, forward) if towards == "push" else backend.pull(state)
        total = communicator.sum(Counters(*work))
        supersteps.append(
            superstep_record(state.level, towards, frontier, total, time.perf_counter() - started)
        )
        frontier = total.found
        forward = total.forward
        unvisited -= total.found
        unvisited_edges -= total.backward
    return Found(state.distance, state.parent, supersteps)


def superstep_record(
    level: int, direction: str, frontier: int, total: Counters, seconds: float
) -> SuperstepRecord:
    """The record of a superstep that read nothing from disk and sent nothing."""
    return SuperstepRecord(
        level=level,
        direction={"all": direction},
        frontier=frontier,
        found=total.found,
        edges_examined=total.examined,
        bytes_read=0,
        blocks_skipped=0,
        bytes_sent={},
        seconds=seconds,
    )
