"""Search out of core: vertex state in memory, edges read from the store in runs of pages.

Each level marks the pages that hold edges of active rows (push: of the frontier; pull: of
unvisited vertices), and reads those alone. A team has twice as many threads as there are cores,
each with a buffer of its own: while some wait for the disk others compute, which is all the
reading ahead that is needed, and memory is bounded by the buffers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ...kernels.base import bitmap
from ...kernels.base.graph import UNREACHED
from ...kernels.base.numbering import by_rule
from ...kernels.base.team import Team
from ...kernels.pieces.block_pull import pull_block
from ...kernels.pieces.block_push import push_block
from ...kernels.pieces.mark_pages import mark_pages
from ...kernels.pieces.rows import Marks, next_level
from ...partition.store.edge_stream import PageRun, run_bytes, stream_index_bytes
from ...partition.store.store import Store, stem_of
from ..results.checkpoint import Checkpoint
from ..results.found import Found
from ..run.records import SuperstepRecord
from .direction import Direction, Pullable, choose
from .streamed_graph import Marked, StreamedGraph, StreamedRows, subgraphs_of


class _Task(NamedTuple):
    """A run to read, and what to do with it."""

    kernel: Callable[..., tuple[int, int]]
    subgraph: StreamedRows
    run: PageRun


def stream_team(threads: int) -> Team:
    """The threads that read and compute, for ``threads`` cores."""
    return Team(2 * threads)


def stream_search(
    graph: StreamedGraph,
    source: int,
    team: Team,
    max_depth: int | None = None,
    direction: Callable[[int, int, int], Direction] = choose,
    checkpoint: Checkpoint | None = None,
) -> Found:
    """Breadth-first search from ``source`` (a global id), direction-optimizing by flow.

    Arguments as superstep.search's; goes on from what ``checkpoint`` holds, and saves to it.
    Raises InputError, naming the file, where a block that it reads is damaged.
    """
    saved = checkpoint.load(graph.vertices) if checkpoint else None
    if saved is None:
        distance = np.full(graph.vertices, -1, np.int32)
        distance[source] = 0
        parent = np.full(graph.vertices, UNREACHED, np.uint32)
        search = _Search(graph, team, distance, parent, 0, [])
    else:
        search = _Search(graph, team, *saved)
    while max_depth is None or search.level < max_depth:
        if not search.advance(direction):
            break
        if checkpoint and checkpoint.due():
            checkpoint.save(search.marks.distance, search.marks.parent, search.level, search.steps)
    return Found(search.marks.distance, search.marks.parent, search.steps)


def warm_up(offset_types: Iterable[DTypeLike]) -> None:
    """Compile, or load from the cache, what a search calls; offset_types: of the subgraphs."""
    one = np.zeros(1, np.uint64)
    numbering = by_rule()
    marks = Marks(one, one.copy(), one.copy(), np.zeros(1, np.int32), np.zeros(1, np.uint32))
    edges = np.zeros(1, np.uint8).repeat(4).view(np.uint32)
    for dtype in offset_types:
        offsets = np.array([0, 1], dtype)
        active, starts = np.zeros(1, np.uint8), np.array([0, 1])
        mark_pages(offsets, 0, 1, numbering, one, np.uint64(0), starts, active, True)
        for kernel in (push_block, pull_block):
            kernel(offsets, edges, 0, 1, numbering, numbering, marks, 1)
    next_level(*marks[:3])
    bitmap.add_where(one, marks.distance, 0, 0)


class _Search:
    """A search between two levels. level: distance of the frontier. steps: records so far."""

    def __init__(
        self,
        graph: StreamedGraph,
        team: Team,
        distance: NDArray[np.int32],
        parent: NDArray[np.uint32],
        level: int,
        steps: list[SuperstepRecord],
    ) -> None:
        self.level = level
        self.steps = steps
        self._graph = graph
        self._team = team
        visited, frontier, found = (bitmap.empty(graph.vertices) for _ in range(3))
        frontier[-1] = found[-1] = 0  # the bits past the last vertex are set in ``visited`` alone
        bitmap.add_where(visited, distance, 0, level - 1)
        # What a pull can find is counted once, the frontier included: ``_enter`` takes it off.
        self._pullable = [
            _total(graph.subgraphs[i].marked(visited, team, inverted=True) for i in flow.backward)
            for flow in graph.flows
        ]
        bitmap.add_where(visited, distance, level, level)
        bitmap.add_where(frontier, distance, level, level)
        self.marks = Marks(visited, frontier, found, distance, parent)
        self._frontier = int(np.count_nonzero(distance == level))
        self._buffers = [np.empty(run_bytes(), np.uint8) for _ in range(team.threads)]

    def advance(self, direction: Callable[[int, int, int], Direction]) -> bool:
        """Search one level; False if no edge leaves the frontier."""
        started = time.perf_counter()
        leaving = self._enter()
        if not any(marked.edges for marked in leaving):
            return False
        tasks: list[_Task] = []
        skipped = 0
        directions = {}
        for flow, pullable in zip(self._graph.flows, self._pullable, strict=True):
            forward = _total(leaving[i] for i in flow.forward).edges
            towards = direction(forward, *pullable) if flow.backward else "push"
            directions[flow.name] = towards
            for i in flow.forward if towards == "push" else flow.backward:
                subgraph = self._graph.subgraphs[i]
                if towards == "push":
                    kernel, pages = push_block, leaving[i].pages
                else:
                    kernel = pull_block
                    pages = subgraph.pages_apart(self.marks.visited, self._team)
                tasks += [_Task(kernel, subgraph, run) for run in subgraph.stream.runs(pages)]
                skipped += subgraph.stream.idle_blocks(pages)
        done = self._team.map(self._do, tasks)
        found, examined, read = (sum(column) for column in zip((0, 0, 0), *done, strict=True))
        self.level += 1
        self.steps.append(
            SuperstepRecord(
                level=self.level,
                direction={"all": directions["nn"]} if len(directions) == 1 else directions,
                frontier=self._frontier,
                found=found,
                edges_examined=examined,
                bytes_read=read,
                blocks_skipped=skipped,
                bytes_sent={},
                seconds=time.perf_counter() - started,
            )
        )
        self._frontier = found
        next_level(*self.marks[:3])
        return True

    def _enter(self) -> list[Marked]:
        """The frontier's rows in every subgraph; they are no longer there for a pull to find."""
        frontier, subgraphs = self.marks.frontier, self._graph.subgraphs
        if len(subgraphs) < self._team.threads:  # few and large
            leaving = [rows.marked(frontier, self._team) for rows in subgraphs]
        else:
            alone = Team(1)
            leaving = self._team.map(lambda rows: rows.marked(frontier, alone), subgraphs)
        for at, flow in enumerate(self._graph.flows):
            rows, edges = self._pullable[at]
            entering = _total(leaving[i] for i in flow.backward)
            self._pullable[at] = Pullable(rows - entering.rows, edges - entering.edges)
        return leaving

    def _do(self, task: _Task) -> tuple[int, int, int]:
        """Vertices found, edges examined, bytes read."""
        subgraph = task.subgraph
        buffer = self._buffers.pop()
        try:
            start, edges, read = subgraph.stream.read(task.run, buffer)
            found, examined = task.kernel(
                *(subgraph.offsets, edges, start, start + len(edges)),
                *(subgraph.rows, subgraph.targets, self.marks, self.level + 1),
            )
        finally:
            self._buffers.append(buffer)
        return found, examined, read


def _total(marked: Iterable[Marked]) -> Pullable:
    """Rows and edges of several subgraphs."""
    rows = edges = 0
    for one in marked:
        rows += one.rows
        edges += one.edges
    return Pullable(rows, edges)


def stream_bytes(store: Store, threads: int) -> int:
    """What stream_search holds on a team for ``threads`` cores (stream_team), names beside."""
    n = store.info.vertices
    state = n * (4 + 4) + 3 * 8 * -(-n // bitmap.WORD)
    buffers = 2 * threads * run_bytes()
    index = sum(stream_index_bytes(store, *place) for place in subgraphs_of(store))
    files = [f"{stem_of(*place)}.offsets.npy" for place in subgraphs_of(store)]
    if store.info.grid is None:
        files.append("delegates.npy")
    return state + sum(store.files[name].bytes for name in files) + index + buffers
