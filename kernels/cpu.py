"""The CPU backend: Numba kernels on a team of threads.

The kernels are compiled without the GIL and without Numba's own parallel runtime: a team of
Python threads calls them, and each thread takes its next piece from a shared cursor. So there
is one compiled variant of each, quick to compile, and calling them from several Dask tasks
at once is safe.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from . import bitmap, scan
from .backend import SearchState, Work
from .graph import UNREACHED, Graph
from .pull import WORDS_A_TURN, pull
from .push import EDGES_A_TURN, degree_sums, push_edges, push_vertices

# Below this many edges, waking a thread takes longer than following them.
_SHARED_PUSH = 2 * EDGES_A_TURN
_SHARED_WORDS = 4 * WORDS_A_TURN


class Team:
    """``threads`` threads that run one kernel together; the calling thread is one of them."""

    def __init__(self, threads: int) -> None:
        if threads < 1:
            raise ValueError(f"threads must be positive, not {threads}")
        self.threads = threads
        self._others = ThreadPoolExecutor(threads - 1) if threads > 1 else None

    def run(self, kernel: Callable, *args) -> list:
        """Call ``kernel(*args)`` once a thread; the results, in no order."""
        if self._others is None:
            return [kernel(*args)]
        others = [self._others.submit(kernel, *args) for _ in range(self.threads - 1)]
        mine = kernel(*args)
        return [mine, *(other.result() for other in others)]

    def map(self, function: Callable, items: Sequence) -> list:
        """``function`` of each item, in order, each thread taking the next one."""
        if self._others is None:
            return [function(item) for item in items]
        results: list = [None] * len(items)
        left = iter(range(len(items)))  # next() on it is atomic under the GIL

        def take() -> None:
            for i in left:
                results[i] = function(items[i])

        self.run(take)
        return results


def _total(results: list[tuple[int, ...]]) -> list[int]:
    return [int(sum(column)) for column in zip(*results, strict=True)]


class CpuBackend:
    name = "cpu"

    def __init__(self, threads: int) -> None:
        self.team = Team(threads)
        self._alone = Team(1)

    def start(self, graph: Graph, source: int) -> SearchState:
        return SearchState.at(graph, source)

    def push(self, state: SearchState, work: int) -> Work:
        graph, frontier = state.graph, _queue(state)
        found = np.empty(min(work, graph.vertices), np.uint32)
        level = state.level + 1
        rows = graph.offsets, graph.targets, graph.reverse_offsets
        marks = state.visited, state.distance, state.parent
        if work < _SHARED_PUSH:
            done = self._alone.run(push_vertices, *rows, frontier, *marks, level, found)
        else:
            sums = np.empty(len(frontier) + 1, np.int64)
            degree_sums(graph.offsets, frontier, sums)
            cursors = np.zeros(2, np.int64)
            done = self.team.run(push_edges, *rows, frontier, sums, *marks, level, found, cursors)
        count, forward, backward = _total(done)
        state.queue = found[:count]
        state.level += 1
        return Work(count, forward, backward, work)

    def pull(self, state: SearchState) -> Work:
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
        return Work(*work)

    def warm_up(self, graph: Graph) -> None:
        dtype = graph.offsets.dtype
        tiny = Graph.undirected(np.array([0, 1, 2], dtype), np.array([1, 0], np.uint32))
        if graph.directed:
            tiny = Graph(tiny.offsets, tiny.targets, tiny.offsets.copy(), tiny.targets.copy())
        state = self.start(tiny, 0)
        self.pull(state)
        self.push(state, 1)
        self.push(self.start(tiny, 0), _SHARED_PUSH)


def _queue(state: SearchState) -> NDArray[np.uint32]:
    if state.queue is None:
        queue = np.empty(state.graph.vertices, np.uint32)
        state.queue = queue[: bitmap.difference(state.visited, state.before, queue)]
    return state.queue


class ScanState:
    """A search over edges in no order (kernels/scan.py): what ``SearchState`` is to a graph.

    blocks: pairs of uint32 arrays; overwritten as the search goes on.
    """

    def __init__(
        self,
        blocks: Sequence[tuple[NDArray[np.uint32], NDArray[np.uint32]]],
        vertices: int,
        source: int,
        directed: bool,
    ) -> None:
        self.blocks = blocks
        self.lengths = [len(src) for src, _ in blocks]
        self.directed = directed
        self.distance = np.full(vertices, -1, np.int32)
        self.parent = np.full(vertices, UNREACHED, np.uint32)
        self.visited = bitmap.empty(vertices)
        self.visited[source // bitmap.WORD] |= np.uint64(1 << source % bitmap.WORD)
        self.distance[source] = 0
        self.level = 0

    def advance(self, team: Team) -> tuple[int, int]:
        """One level: returns vertices found and edges examined."""
        examined = sum(self.lengths)

        def scan_block(i: int) -> int:
            src, dst = self.blocks[i]
            return scan.scan(src, dst, self.lengths[i], self.visited, self.parent, self.directed)

        self.lengths = team.map(scan_block, range(len(self.blocks)))
        self.level += 1
        found = sum(
            team.run(
                scan.settle,
                self.visited,
                self.parent,
                self.distance,
                self.level,
                np.zeros(1, np.int64),
            )
        )
        return found, examined


def warm_up_scan() -> None:
    """Compile, or load from the cache, what ``ScanState`` calls."""
    block = (np.zeros(1, np.uint32), np.ones(1, np.uint32))
    ScanState([block], 2, 0, directed=False).advance(Team(1))
