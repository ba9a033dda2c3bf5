"""A hierarchy of communities: the groups of vertices on each level, which nest.

The groups of a level are named by their least vertices. A vertex does not have the name of its
group on each level at hand, but its group on the first level, and each group that of the level
above it: so all levels together take little more than the first one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..engines.operations.vectors import Counts
from ..questions.communities import LEVELS
from ..results.columns import Column
from .labelling import HOST

ARRAYS = ("level_groups", "group_above", "group_vertex")
"""The names of the arrays that a program gives: the number of groups on each level, then what
Hierarchy describes, of all levels one after the other.
"""

_SHRINKS = 2
_MOST_LEVELS = 33  # each has half as many groups as the one before, of less than 2^32 vertices
_COLUMN_BYTES = 1 << 20  # measured bytes that a column takes while it is written


class SavedHierarchy(NamedTuple):
    """A hierarchy as it is saved. entries: uint32, all arrays one after the other. facts: that JSON
    holds; ``entries`` is how many entries there are.
    """

    entries: NDArray[np.uint32]
    facts: dict[str, Any]


class Hierarchy:
    """The groups that each level of a search for communities (levels.py) is contracted to. A level
    is kept if it has at most half as many groups as the last one that is kept.

    group_above: uint32, a list of arrays: for each vertex, then for each group of a level, the
    group that it is in on the next level. Groups are numbered from 0 on. qualities: of the groups
    of each level; None where no edge counts.
    """

    def __init__(self) -> None:
        self.group_above: list[NDArray[np.uint32]] = []
        self.qualities: list[float | None] = []
        self._groups: list[int] = []
        self._left_out: NDArray[np.uint32] | None = None

    def add(self, above: NDArray[np.uint32], groups: int, quality: float | None) -> None:
        """Add a level. above: uint32, the group of each vertex of the graph that the level before
        was contracted to. groups: how many there are.
        """
        above = above if self._left_out is None else above[self._left_out]
        if self._groups and groups * _SHRINKS > self._groups[-1]:
            self._left_out = above
            return
        self.group_above.append(above)
        self.qualities.append(quality)
        self._groups.append(groups)
        self._left_out = None

    def end(self, communities: int) -> None:
        """Leave out the last level if its groups are the communities. communities: how many there
        are.
        """
        if self._groups and self._groups[-1] == communities:
            for of_levels in (self.group_above, self.qualities, self._groups):
                of_levels.pop()

    def saved(self) -> SavedHierarchy:
        """Return what ``of`` makes it of."""
        left_out = [] if self._left_out is None else [self._left_out]
        entries = _joined([*self.group_above, *left_out])
        facts = {"entries": len(entries), "groups": self._groups, "qualities": self.qualities}
        return SavedHierarchy(entries, facts)

    @classmethod
    def of(cls, entries: NDArray[np.uint32], vertices: int, facts: Mapping[str, Any]) -> Hierarchy:
        """Make it of what was saved. vertices: how many there are."""
        made, groups = cls(), facts["groups"]
        made._groups, made.qualities = [*groups], [*facts["qualities"]]
        ends = np.cumsum([vertices, *groups])
        parts = np.split(entries, ends[: len(groups)])
        made.group_above = parts[: len(groups)]
        made._left_out = parts[-1] if groups and len(parts[-1]) else None
        return made

    def arrays(self, order: NDArray[np.uint32]) -> dict[str, NDArray]:
        """Return what ARRAYS says. order: uint32, the place of each vertex: what is told by vertex
        is by place, and vertices are places.
        """
        least, vertices = np.arange(len(order), dtype=np.uint32), []
        for above, groups in zip(self.group_above, self._groups, strict=True):
            least = HOST.least_of_each(above, least, groups)
            vertices.append(order[least])
        group_above = list(self.group_above)
        if group_above:
            group_above[0] = np.empty_like(order)
            group_above[0][order] = self.group_above[0]
        found = np.array(self._groups, np.int64), _joined(group_above), _joined(vertices)
        return dict(zip(ARRAYS, found, strict=True))


def _joined(arrays: list[NDArray[np.uint32]]) -> NDArray[np.uint32]:
    return np.concatenate([np.empty(0, np.uint32), *arrays])


def hierarchy_bytes(counts: Counts) -> int:
    """Return the bytes that a hierarchy holds: less than three numbers for each vertex of groups
    above, and less than two of groups, twice while they are joined; and those of its columns.
    """
    return 4 * (2 * (3 + 2) + 3) * counts.vertices + _MOST_LEVELS * _COLUMN_BYTES


def columns_of(arrays: Mapping[str, Any], vertices: int) -> list[Column]:
    """Return a column for each level, by what ARRAYS says. vertices: how many there are."""
    groups, above, names = (arrays[name] for name in ARRAYS)
    aboves = np.split(above, np.cumsum([vertices, *groups[:-1]])[: len(groups) - 1])
    columns = []
    for level, of_level in enumerate(np.split(names, np.cumsum(groups)[:-1])[: len(groups)]):
        values = _Names(aboves[: level + 1], of_level)
        columns.append(Column(f"{LEVELS}{level}", values, vertices=True, repeats=True))
    return columns


class _Names:
    """The values of a column, by place: the vertex that names the group of each vertex.
    group_above: up to the column's level. names: by group.
    """

    dtype = np.dtype(np.uint32)
    itemsize = 4

    def __init__(
        self, group_above: Sequence[NDArray[np.uint32]], names: NDArray[np.uint32]
    ) -> None:
        self._group_above, self._names = group_above, names

    def __getitem__(self, at: Any, /) -> NDArray[np.uint32]:
        group = self._group_above[0][at]
        for above in self._group_above[1:]:
            group = above[group]
        return self._names[group]
