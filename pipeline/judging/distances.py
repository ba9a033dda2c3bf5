"""Judges' own computation of sums of distances from vertices, and of shares of shortest paths.

If rows fit the memory limit, they are searched, by each thread for a group of sources; otherwise
edges are streamed once for each level. At most about ``MOST_LOOKED`` edges are examined: a result
that would take more is judged in part (kernels/judging/distances.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...kernels.base.graph import UNREACHED
from ...kernels.judging.distances import (
    DEPENDENCY_BYTES,
    SUM_BYTES,
    TOGETHER,
    add_dependencies,
    enter_level,
    spread_words,
    sum_distances,
)
from .graph import JudgedEdges

MOST_LOOKED = 1 << 34
"""Number of edges after which no more searches begin; they take a minute or two on one core."""

WORD_BYTES = 3 * 8
"""Bytes for each vertex, for searches over streamed edges."""


class DistanceSums(NamedTuple):
    """Sums of distances from the sources whose searches were done. at: indexes of these sources.
    reached: number of vertices reached, the source included. total: sum of their distances.
    farthest: the greatest distance. harmonic: the sum of 1 over the distances of the others.
    """

    at: NDArray[np.int64]
    reached: NDArray[np.int64]
    total: NDArray[np.int64]
    farthest: NDArray[np.int64]
    harmonic: NDArray[np.float64]


_Sums = Sequence[NDArray]
"""The sums of some sources, in the order of DistanceSums."""


def _no_sums(sources: int) -> _Sums:
    return *np.zeros((3, sources), np.int64), np.zeros(sources)


class _SearchBuffers:
    """Buffers for the searches of one thread: three arrays of words, and two lists of vertices."""

    def __init__(self, places: int) -> None:
        self.words = [np.zeros(places, np.uint64) for _ in range(3)]
        self.lists = [np.empty(places, np.uint32) for _ in range(2)]


def sums_anew(graph: JudgedEdges, sources: NDArray[np.uint32], along: bool) -> DistanceSums:
    """Compute sums of distances from ``sources``, which are distinct vertices, along edges or
    against them. Random groups of sources are searched until all are done or ``MOST_LOOKED`` edges
    are examined.
    """
    width = max(
        1, min(TOGETHER, -(-len(sources) // graph.team.threads))
    )  # so that each thread has a group
    groups = [np.arange(len(sources))[i : i + width] for i in range(0, len(sources), width)]
    groups = [groups[i] for i in np.random.default_rng(len(groups)).permutation(len(groups))]
    rows, threads = graph.rows(along), 0
    if rows is not None:
        most = min(graph.team.threads, len(groups))
        while threads < most and graph.take(SUM_BYTES * graph.places):
            threads += 1
    if rows is None or not threads:
        return _sums_streamed(graph, sources, along, groups)
    rooms = [_SearchBuffers(graph.places) for _ in range(threads)]

    def search(job: tuple[_SearchBuffers, NDArray[np.int64]]) -> tuple[_Sums, int]:
        room, group = job
        sums = _no_sums(len(group))
        both_ways = not graph.directed
        looked = sum_distances(*rows, both_ways, sources[group], *room.words, *room.lists, *sums)
        return sums, looked

    done, sums, looked = 0, [_no_sums(0)], 0
    while done < len(groups) and looked < MOST_LOOKED:
        next_groups = groups[done : done + threads]
        jobs = list(zip(rooms, next_groups, strict=False))
        for group_sums, group_looked in graph.team.map(search, jobs):
            sums.append(group_sums)
            looked += group_looked
        done += len(next_groups)
    return _put_together(groups[:done], sums)


def _put_together(groups: list[NDArray[np.int64]], sums: list[_Sums]) -> DistanceSums:
    at = np.concatenate([np.zeros(0, np.int64), *groups])
    return DistanceSums(at, *map(np.concatenate, zip(*sums, strict=True)))


def _sums_streamed(
    graph: JudgedEdges,
    sources: NDArray[np.uint32],
    along: bool,
    groups: list[NDArray[np.int64]],
) -> DistanceSums:
    """Compute the sums with a pass over all edges for each level of a group of sources."""
    seen, here, then = (np.zeros(graph.places, np.uint64) for _ in range(3))
    done, all_sums, looked = 0, [_no_sums(0)], 0
    for group in groups:
        for words in (seen, here, then):
            words[:] = 0
        here[sources[group]] = np.uint64(1) << np.arange(len(group), dtype=np.uint64)
        seen[:] = here
        sums = _no_sums(TOGETHER)
        sums[0][:] = 1
        level, is_unfinished = 0, True
        while is_unfinished and looked < MOST_LOOKED:
            level += 1
            for ends in graph.batches():
                spread_words(*(ends[:2] if along else ends[1::-1]), here, seen, then)
                looked += len(ends[0])
            is_unfinished = enter_level(then, seen, level, *sums)
            here, then = then, here
            then[:] = 0
        if is_unfinished:
            break
        done += 1
        all_sums.append([column[: len(group)] for column in sums])
    return _put_together(groups[:done], all_sums)


class _PathBuffers:
    """Buffers for the shortest paths of one thread, and their sums (score)."""

    def __init__(self, places: int) -> None:
        self.depth = np.full(places, UNREACHED)
        self.order = np.empty(places, np.uint32)
        self.count = np.empty(places)
        self.power = np.empty(places, np.int32)
        self.share = np.empty(places)
        self.score = np.zeros(places)


def dependencies_anew(
    graph: JudgedEdges, sources: NDArray[np.uint32]
) -> NDArray[np.float64] | None:
    """Compute the sum over ``sources`` of the shares of shortest paths that lead through each
    vertex, by place.

    Returns None if that would examine more than ``MOST_LOOKED`` edges, or if rows do not fit the
    memory limit. The graph has every edge once.
    """
    if 2 * len(sources) * graph.edges > MOST_LOOKED:
        return None
    extra_bytes, threads = graph.extra_bytes, 0
    rows = graph.rows(along=True)
    most = min(graph.team.threads, len(sources))
    while rows is not None and threads < most and graph.take(DEPENDENCY_BYTES * graph.places):
        threads += 1
    if rows is None or not threads:
        graph.extra_bytes = extra_bytes
        return None
    rooms = [_PathBuffers(graph.places) for _ in range(threads)]

    def count(job: tuple[_PathBuffers, NDArray[np.uint32]]) -> None:
        room, group = job
        for source in group.tolist():
            add_dependencies(*rows, source, *vars(room).values())

    shares = [sources[i::threads] for i in range(threads)]
    graph.team.map(count, list(zip(rooms, shares, strict=True)))
    score = rooms[0].score
    for room in rooms[1:]:
        score += room.score
    return score
