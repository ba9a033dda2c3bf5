"""The CPU backend: push and pull on a team of threads."""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..base import bitmap
from ..base.compiled import compile_kernels
from ..base.graph import Graph
from ..base.team import Team
from . import pull as pull_kernels
from . import push as push_kernels
from .pull import WORDS_A_TURN, pull
from .push import AHEAD, EDGES_A_TURN, degree_sums, push_edges, push_levels
from .state import LevelWork, SearchState

# Below this many edges, waking a thread takes longer than following them.
_SHARED_PUSH = 4 * EDGES_A_TURN
_SHARED_WORDS = 4 * WORDS_A_TURN


def _total(results: list[tuple[int, ...]]) -> list[int]:
    return [int(sum(column)) for column in zip(*results, strict=True)]


class CpuBackend:
    name = "cpu"

    def __init__(self, threads: int) -> None:
        self.team = Team(threads)
        self._alone = Team(1)

    def start(self, graph: Graph, source: int) -> SearchState:
        return SearchState.at(graph, source)

    def push(self, state: SearchState, work: int, levels: int) -> list[LevelWork]:
        if work < _SHARED_PUSH:
            return self._push_small(state, work, levels)
        graph, frontier = state.graph, _queue(state)
        found = np.empty(min(work, graph.vertices), np.uint32)
        sums = np.empty(len(frontier) + 1, np.int64)
        degree_sums(graph.offsets, frontier, sums)
        done = self.team.run(
            push_edges,
            graph.offsets,
            graph.targets,
            graph.reverse_offsets,
            frontier,
            sums,
            state.visited,
            state.distance,
            state.parent,
            state.level + 1,
            found,
            np.zeros(2, np.int64),
        )
        count, forward, backward = _total(done)
        state.queue = found[:count]
        state.level += 1
        return [LevelWork(count, forward, backward, work)]

    def _push_small(self, state: SearchState, work: int, levels: int) -> list[LevelWork]:
        graph, frontier = state.graph, _queue(state)
        queue = np.empty(graph.vertices + AHEAD, np.uint32)  # untouched pages cost nothing
        by = np.empty(graph.vertices + 1, np.uint32)
        queue[: len(frontier)] = frontier
        works = np.empty((levels, 3), np.int64)
        done, last = push_levels(
            graph.offsets,
            graph.targets,
            graph.reverse_offsets,
            queue,
            by,
            len(frontier),
            state.visited,
            state.distance,
            state.parent,
            state.level,
            _SHARED_PUSH,
            works,
        )
        counted = []
        for found, forward, backward in works[:done].tolist():
            counted.append(LevelWork(found, forward, backward, examined=work))
            work = forward
        state.queue = queue[last : last + counted[-1].found]
        state.level += done
        return counted

    def pull(self, state: SearchState) -> LevelWork:
        graph = state.graph
        team = self.team if len(state.visited) >= _SHARED_WORDS else self._alone
        work = _total(
            team.run(
                pull,
                graph.reverse_offsets,
                graph.reverse_targets,
                graph.offsets,
                state.visited,
                state.before,
                state.distance,
                state.parent,
                state.level + 1,
                np.zeros(1, np.int64),
            )
        )
        state.visited, state.before = state.before, state.visited
        state.queue = None
        state.level += 1
        return LevelWork(*work)


def _queue(state: SearchState) -> NDArray[np.uint32]:
    if state.queue is None:
        queue = np.empty(state.graph.vertices, np.uint32)
        state.queue = queue[: bitmap.difference(state.visited, state.before, queue)]
    return state.queue


def compile_search(*offsets: DTypeLike) -> None:
    """Compile the kernels of searches of graphs whose offsets have one of these types."""
    compile_kernels(bitmap, push_kernels, pull_kernels, offsets=offsets)
