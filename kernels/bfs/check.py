"""The rules that make a breadth-first search result right, checked against the graph's edges.

Graph500's five: (1) the parents form a tree rooted at the source; (2) a vertex is one level
below its parent; (3) an edge spans at most one level; (4) everything connected to the source
is reached; (5) a vertex and its parent are joined by an edge. In a directed graph an edge
u -> v may also lead up any number of levels, and only what u reaches counts. A search cut at
a depth leaves the neighbours of its last level unreached.

Together they prove the distances: by (2) and (5) every vertex has a path of that length, by
(3) and (4) none has a shorter one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numba import types
from numpy.typing import NDArray

from ..base.compiled import OFFSETS, boolean, compiled, i32s, i64, kernel, u8s, u32s
from ..base.graph import UNREACHED
from ..base.numbering import NUMBERING, Numbering, renumber
from ..base.team import Team

RULES = {
    1: "the parents form a tree rooted at the source",
    2: "a vertex is one level below its parent",
    3: "an edge spans at most one level",
    4: "every vertex that the source can reach is reached",
    5: "a vertex and its parent are joined by an edge",
}

TREE_BYTES = 25
"""The most bytes for each vertex that ``check_tree`` holds beside its arguments."""


@dataclass
class Violations:
    """The number of times that each rule fails, and for each rule the first vertices found to break
    it.
    """

    count: dict[int, int] = field(default_factory=lambda: dict.fromkeys(RULES, 0))
    example: dict[int, tuple[int, ...]] = field(default_factory=dict)

    def add(self, rule: int, count: int, *vertices: int) -> None:
        if count:
            self.count[rule] += count
            self.example.setdefault(rule, vertices)

    def __iadd__(self, other: Violations) -> Violations:
        for rule, count in other.count.items():
            self.add(rule, count, *other.example.get(rule, ()))
        return self

    def __bool__(self) -> bool:
        return any(self.count.values())


_PIECE = 1 << 20  # vertices that a thread checks at a time


def check_tree(
    distance: NDArray[np.int32],
    parent: NDArray[np.uint32],
    source: int,
    max_depth: int | None,
    violations: Violations,
    team: Team | None = None,
) -> None:
    """Check rules 1 and 2, and that no vertex lies below ``max_depth`` (rule 2)."""
    n, limit = len(distance), _limit(max_depth)

    def check(start: int) -> Violations:
        found = Violations()
        stop = min(start + _PIECE, n)
        rootless, at, wrong, wrong_at = _check_vertices(
            distance, parent, source, limit, start, stop
        )
        found.add(1, rootless, at)
        found.add(2, wrong, wrong_at)
        return found

    before = violations.count[2]
    for found in (team or Team(1)).map(check, range(0, n, _PIECE)):
        violations += found
    if violations.count[2] > before:  # else every parent is one level up, which no cycle can be
        has_parent = parent != UNREACHED
        has_parent[source] = False  # told already
        astray = has_parent & ~leads_to(source, parent)
        count = int(np.count_nonzero(astray))
        violations.add(1, count, int(np.argmax(astray)))


def _limit(max_depth: int | None) -> np.int32:
    return np.int32(2**31 - 1 if max_depth is None else min(max_depth, 2**31 - 1))


@kernel(i32s, u32s, i64, types.int32, i64, i64)
def _check_vertices(distance, parent, source, limit, start, stop):
    rootless = 0
    rootless_at = -1
    wrong = 0
    wrong_at = -1
    n = distance.shape[0]
    for v in range(start, stop):
        level = distance[v]
        above = parent[v]
        has_parent = above != UNREACHED
        # The source has none, everyone else who is reached has one.
        alone = (has_parent or level != 0) if v == source else (level >= 0 and not has_parent)
        if alone:
            if rootless == 0:
                rootless_at = v
            rootless += 1
        apart = level > limit or (level == 0 and v != source)
        if has_parent:
            apart = apart or above >= n or distance[above] < 0 or level != distance[above] + 1
        if apart:
            if wrong == 0:
                wrong_at = v
            wrong += 1
    return rootless, rootless_at, wrong, wrong_at


def leads_to(source: int, parent: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Return, for each vertex, whether following parents from it ends at the source (by pointer
    jumping).
    """
    ancestor = np.where(parent < len(parent), parent, np.arange(len(parent), dtype=np.uint32))
    for _ in range(len(parent).bit_length()):
        ancestor = ancestor[ancestor]
    return ancestor == source


def check_edges(
    sources: NDArray[np.uint32],
    targets: NDArray[np.uint32],
    distance: NDArray[np.int32],
    parent: NDArray[np.uint32],
    max_depth: int | None,
    joined: NDArray[np.uint8],
    violations: Violations,
    both_ways: bool = False,
) -> None:
    """Check rules 3 and 4 over a batch of edges. Marks in ``joined`` the vertices that an edge
    connects to their parent.

    Every edge of the graph must pass through here once, undirected ones in both directions. If a
    batch has undirected edges in one direction only, set ``both_ways``.
    """
    limit = _limit(max_depth)
    found = _check_edges(sources, targets, distance, parent, limit, joined, both_ways)
    _add(violations, *found)


def check_rows(
    offsets: NDArray,
    first: int,
    targets: NDArray[np.uint32],
    rows: Numbering,
    ends: Numbering,
    distance: NDArray[np.int32],
    parent: NDArray[np.uint32],
    max_depth: int | None,
    joined: NDArray[np.uint8],
    violations: Violations,
) -> None:
    """Check rules 3 and 4 over targets of compressed sparse rows, from entry ``first`` on.

    rows, ends: what rows and targets are called where distances and parents stand.
    """
    limit = _limit(max_depth)
    found = _check_rows(offsets, first, targets, rows, ends, distance, parent, limit, joined)
    _add(violations, *found)


def _add(
    violations: Violations, too_far: int, far: tuple[int, int], missed: int, miss: tuple[int, int]
) -> None:
    violations.add(3, too_far, *far)
    violations.add(4, missed, *miss)


FINE, TOO_FAR, MISSED = range(3)


# (Both loops count what they find by themselves: one function for it took four times as long.)
@compiled
def _judge(level, to, limit):
    """Judge an edge from a vertex that is reached, by the distances of both ends: FINE, MISSED or
    TOO_FAR.
    """
    if to < 0:
        return MISSED if level < limit else FINE
    return TOO_FAR if to > level + 1 else FINE


@kernel(u32s, u32s, i32s, u32s, types.int32, u8s, boolean)
def _check_edges(sources, targets, distance, parent, limit, joined, both_ways):
    too_far = 0
    missed = 0
    far = (0, 0)
    miss = (0, 0)
    for i in range(sources.shape[0]):
        u = np.int64(sources[i])
        v = np.int64(targets[i])
        level = distance[u]
        to = distance[v]
        for back in range(2 if both_ways else 1):
            if back:
                u, v = v, u
                level, to = to, level
            if level < 0:
                continue
            verdict = _judge(level, to, limit)
            if verdict == MISSED:
                if missed == 0:
                    miss = (u, v)
                missed += 1
            elif verdict == TOO_FAR:
                if too_far == 0:
                    far = (u, v)
                too_far += 1
            if parent[v] == u:
                joined[v] = 1
    return too_far, far, missed, miss


@kernel(OFFSETS, i64, u32s, NUMBERING, NUMBERING, i32s, u32s, types.int32, u8s)
def _check_rows(offsets, first, targets, rows, ends, distance, parent, limit, joined):
    too_far = 0
    missed = 0
    far = (0, 0)
    miss = (0, 0)
    stop = first + targets.shape[0]
    at = first
    row = np.searchsorted(offsets, at, side="right") - 1
    while at < stop:
        while offsets[row + 1] <= at:
            row += 1
        end = min(np.int64(offsets[row + 1]), stop)
        u = np.int64(renumber(rows, row))
        level = distance[u]
        if level >= 0:
            for i in range(at - first, end - first):
                v = np.int64(renumber(ends, targets[i]))
                verdict = _judge(level, distance[v], limit)
                if verdict == MISSED:
                    if missed == 0:
                        miss = (u, v)
                    missed += 1
                elif verdict == TOO_FAR:
                    if too_far == 0:
                        far = (u, v)
                    too_far += 1
                if parent[v] == u:
                    joined[v] = 1
        at = end
    return too_far, far, missed, miss


def check_joined(
    parent: NDArray[np.uint32], joined: NDArray[np.uint8], violations: Violations
) -> None:
    """Check rule 5, once all edges have passed through ``check_edges``."""
    apart = (parent != UNREACHED) & (joined == 0)
    count = int(np.count_nonzero(apart))
    if count:
        v = int(np.argmax(apart))
        violations.add(5, count, v, int(parent[v]))


@kernel(u32s, u8s, i32s, u32s, i32s, u32s, u8s)
def put_rows(vertex, known, distance, parent, distances, parents, seen):
    """Put rows of a result where the vertices stand that are known; seen: how often, up to two."""
    for i in range(vertex.shape[0]):
        if known[i]:
            v = vertex[i]
            distances[v] = distance[i]
            parents[v] = parent[i]
            if seen[v] < 2:
                seen[v] += 1
