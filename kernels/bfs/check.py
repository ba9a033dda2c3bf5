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

from ..base.compiled import i32s, kernel, u8s, u32s
from ..base.graph import UNREACHED

RULES = {
    1: "the parents form a tree rooted at the source",
    2: "a vertex is one level below its parent",
    3: "an edge spans at most one level",
    4: "everything that the source reaches is reached",
    5: "a vertex and its parent are joined by an edge",
}

TREE_BYTES = 25
"""Of a vertex, that ``check_tree`` holds at most beside what it is given."""


@dataclass
class Violations:
    """How often each rule fails, and for each the first vertices found to break it."""

    count: dict[int, int] = field(default_factory=lambda: dict.fromkeys(RULES, 0))
    example: dict[int, tuple[int, ...]] = field(default_factory=dict)

    def add(self, rule: int, count: int, *vertices: int) -> None:
        if count:
            self.count[rule] += count
            self.example.setdefault(rule, vertices)

    def __bool__(self) -> bool:
        return any(self.count.values())


def check_tree(
    distance: NDArray[np.int32],
    parent: NDArray[np.uint32],
    source: int,
    max_depth: int | None,
    violations: Violations,
) -> None:
    """Rules 1 and 2, and that no vertex lies below ``max_depth`` (rule 2)."""
    n = len(distance)
    has_parent = parent != UNREACHED
    reached = distance >= 0
    root = np.zeros(n, bool)
    root[source] = True

    rootless = has_parent == root  # the source has none, everyone else reached has one
    rootless &= reached | has_parent | root
    rootless |= root & (distance != 0)
    _report(violations, 1, rootless)

    vertices = np.flatnonzero(has_parent)
    wrong = np.zeros(n, bool)
    wrong[vertices] = distance[vertices] != distance[parent[vertices]] + 1
    wrong[vertices] |= distance[parent[vertices]] < 0
    wrong |= ~root & (distance == 0)
    if max_depth is not None:
        wrong |= distance.astype(np.int64) > max_depth
    _report(violations, 2, wrong)

    if wrong.any():  # else every parent is one level up, which no cycle can be
        _report(violations, 1, has_parent & ~rootless & ~_leads_to(source, parent))


def _leads_to(source: int, parent: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Whether following parents from each vertex ends at the source (pointer jumping)."""
    ancestor = np.where(parent == UNREACHED, np.arange(len(parent), dtype=np.uint32), parent)
    for _ in range(len(parent).bit_length()):
        ancestor = ancestor[ancestor]
    return ancestor == source


def _report(violations: Violations, rule: int, wrong: NDArray[np.bool_]) -> None:
    count = int(np.count_nonzero(wrong))
    if count:
        violations.add(rule, count, int(np.argmax(wrong)))


def check_edges(
    sources: NDArray[np.uint32],
    targets: NDArray[np.uint32],
    distance: NDArray[np.int32],
    parent: NDArray[np.uint32],
    max_depth: int | None,
    joined: NDArray[np.uint8],
    violations: Violations,
) -> None:
    """Rules 3 and 4 over a batch of edges; marks in ``joined`` whose parent it connects them to.

    Every edge of the graph must pass through here once, undirected ones in both directions.
    """
    limit = np.int32(2**31 - 1 if max_depth is None else min(max_depth, 2**31 - 1))
    too_far, missed, far_at, missed_at = _check_edges(
        sources, targets, distance, parent, limit, joined
    )
    if too_far:
        violations.add(3, too_far, int(sources[far_at]), int(targets[far_at]))
    if missed:
        violations.add(4, missed, int(sources[missed_at]), int(targets[missed_at]))


@kernel(u32s, u32s, i32s, u32s, types.int32, u8s)
def _check_edges(sources, targets, distance, parent, limit, joined):
    too_far = 0
    missed = 0
    far_at = -1
    missed_at = -1
    for i in range(sources.shape[0]):
        u = sources[i]
        v = targets[i]
        from_source = distance[u]
        if from_source < 0:
            continue
        to = distance[v]
        if to < 0:
            if from_source < limit:
                if missed == 0:
                    missed_at = i
                missed += 1
        elif to > from_source + 1:
            if too_far == 0:
                far_at = i
            too_far += 1
        if parent[v] == u:
            joined[v] = 1
    return too_far, missed, far_at, missed_at


def check_joined(
    parent: NDArray[np.uint32], joined: NDArray[np.uint8], violations: Violations
) -> None:
    """Rule 5, once all edges have passed through ``check_edges``."""
    apart = (parent != UNREACHED) & (joined == 0)
    count = int(np.count_nonzero(apart))
    if count:
        v = int(np.argmax(apart))
        violations.add(5, count, v, int(parent[v]))
