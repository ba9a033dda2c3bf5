"""Findings: the few facts in which a person reads what a result says of the graph. A form of a
question declares their kind (``Form.finding``).

    values       the vertices with the greatest values, and how the values are distributed
    distances    what a search reached, the farthest vertices, and how distances are distributed
    groups       how many groups of vertices there are, the largest, and how sizes are distributed

Findings take batches of rows, by rising vertex, as they are written or read. Their memory does not
grow with the rows, except that of ``GroupSizes``.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, frexp, ldexp
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...partition.errors import InputError
from ...partition.input.arrow import compute, numbers_and_nulls
from ...partition.input.id_types import shown_id
from ..questions import FORMS

SIZE = "vertices"
"""The column of a group's size, in batches with a row for each group: ``vertex`` names it."""

TOP = 10
"""Vertices that are kept, unless more are asked for."""

_PARTS = 4
"""Ranges between two powers of two."""

_STEPS = 128
"""The most equal ranges."""

_WINDOW = 1 << 14
"""Rows that are looked at together: after the first ones, few are above the least at the top."""

_LEAST = 2.0**-1000
"""Values below this count as 0."""

_MOST_HOPS = 1 << 32
"""Integers that are counted one by one are below this, as the number of vertices is."""

_MOST_RANGES = 1 << 12
"""Ranges of integers that are counted one by one."""

Range = tuple[float, float, int]
"""The least and the greatest value of a range, and how many values are in it. Of floats, the
greatest one is left out.
"""


class TopRows:
    """The rows with the greatest values; of equal values, those of the least vertices."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._values = np.zeros(0)
        self._vertices: list[Any] = []

    def add(self, values: NDArray, vertices: pa.Array) -> None:
        """Add rows. Negative values stand for rows that have none."""
        for first in range(0, len(values) if self._count else 0, _WINDOW):
            window = slice(first, first + _WINDOW)
            self._add(values[window], vertices[window])

    def _add(self, values: NDArray, vertices: pa.Array) -> None:
        full = len(self._vertices) == self._count
        at = np.flatnonzero(values > self._values[-1] if full else values >= 0)
        if len(at) > self._count:
            candidates = values[at]
            least = np.partition(candidates, len(at) - self._count)[len(at) - self._count]
            above = at[candidates > least]
            at = np.concatenate([above, at[candidates == least][: self._count - len(above)]])
            at.sort()
        if len(at):
            self._keep(values[at], [vertices[int(i)].as_py() for i in at])

    def merge(self, later: TopRows) -> None:
        """Add the rows of another part, whose vertices are greater."""
        if later._vertices:
            self._keep(later._values, later._vertices)

    def _keep(self, values: NDArray, vertices: list[Any]) -> None:
        all_values = np.concatenate([self._values, values]) if len(self._values) else values
        names = self._vertices + vertices
        # Backwards before and after: the stable sort leaves equal values in their order.
        order = np.argsort(all_values[::-1], kind="stable")[::-1][: self._count]
        order = len(all_values) - 1 - order
        self._values = all_values[order]
        self._vertices = [names[i] for i in order]

    def pairs(self) -> list[tuple[Any, Any]]:
        """Return each vertex with its value."""
        return list(zip(self._vertices, self._values.tolist(), strict=True))


class Integers:
    """A count of values that are 0, 1, 2, ..."""

    def __init__(self) -> None:
        self.counts = np.zeros(0, np.int64)

    def add(self, values: NDArray) -> None:
        """Add values, none of which is negative."""
        if len(values) and values.max() >= _MOST_HOPS:
            raise InputError("the result holds a number of hops that no graph has")
        counts = np.bincount(values.astype(np.int64), minlength=len(self.counts))
        counts[: len(self.counts)] += self.counts
        self.counts = counts

    def ranges(self) -> list[Range]:
        """Return the values that occur, rising; in equal ranges where there are very many."""
        length = 1
        while len(self.counts) > length * _MOST_RANGES:
            length *= 2
        counts = np.add.reduceat(self.counts, np.arange(0, len(self.counts), length))
        there = np.flatnonzero(counts).tolist()
        return [(i * length, (i + 1) * length - 1, int(counts[i])) for i in there]


class Steps:
    """A count of values in each of at most 128 equal ranges, which begin at 0. The length of the
    ranges is a power of two, so that the order in which values come changes nothing.
    """

    def __init__(self) -> None:
        self._counts = np.zeros(_STEPS, np.int64)
        self._length = 0.0
        self._whole = True

    def add(self, values: NDArray) -> None:
        """Add values, none of which is negative."""
        if not len(values):
            return
        self._whole = self._whole and values.dtype.kind in "iu"
        greatest = float(values.max())
        if greatest < _LEAST:
            self._counts[0] += len(values)
            return
        length = ldexp(1.0, frexp(greatest / _STEPS)[1])
        length = max(length, 1.0) if self._whole else length
        if self._length and length > self._length:
            together = int(length / self._length) if length / self._length < _STEPS else _STEPS
            counts = self._counts.reshape(-1, together).sum(axis=1)
            self._counts = np.pad(counts, (0, _STEPS - len(counts)))
        self._length = max(length, self._length)
        places = (values / self._length).astype(np.int64)
        self._counts += np.bincount(places, minlength=_STEPS)

    def ranges(self) -> list[Range]:
        """Return the ranges that hold values, by rising value."""
        if not self._length:
            return [(0, 0, int(self._counts[0]))] if self._counts[0] else []
        made: list[Range] = []
        for i in np.flatnonzero(self._counts).tolist():
            low, high = i * self._length, (i + 1) * self._length
            made.append(_range(low, high, self._whole, self._counts[i]))
        return made


class Octaves:
    """A count of values that are 0, and of values in each of the four ranges between two
    neighbouring powers of two.
    """

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self._zeros = 0
        self._whole = True

    def add(self, values: NDArray) -> None:
        """Add values, none of which is negative."""
        self._whole = self._whole and values.dtype.kind in "iu"
        there = values[values >= _LEAST]
        self._zeros += len(values) - len(there)
        fractions, powers = np.frexp(there.astype(np.float64))
        parts = ((fractions - 0.5) * (2 * _PARTS)).astype(np.int64)
        keys, counts = np.unique(powers * _PARTS + parts, return_counts=True)
        for key, count in zip(keys.tolist(), counts.tolist(), strict=True):
            self._counts[key] = self._counts.get(key, 0) + count

    def ranges(self) -> list[Range]:
        """Return the ranges that hold values, by rising value."""
        made: list[Range] = [(0, 0, self._zeros)] if self._zeros else []
        for key in sorted(self._counts):
            power, part = divmod(key, _PARTS)
            unit = 2.0**power / (2 * _PARTS)
            low, high = (_PARTS + part) * unit, (_PARTS + part + 1) * unit
            made.append(_range(low, high, self._whole, self._counts[key]))
        return made


def _range(low: float, high: float, whole: bool, count: int) -> Range:
    return (ceil(low), ceil(high) - 1, int(count)) if whole else (low, high, int(count))


def distribution(form: str) -> Integers | Steps | Octaves:
    """Return what counts the numbers of a form's finding."""
    declared = FORMS[form].finding
    assert declared is not None
    kind, column = declared
    if kind != "groups" and FORMS[form].columns[column] == "integer":
        return Integers()
    return Steps() if kind == "distances" else Octaves()


def has_equal_ranges(form: str) -> bool:
    """Return whether the ranges of a form's distribution have equal lengths."""
    return FORMS[form].finding is None or not isinstance(distribution(form), Octaves)


class Findings:
    """Findings of one result. form: the name of its form. columns: those of the result, beside
    ``vertex``; none for all that the form declares. top: how many vertices to keep.

    distributes: whether to count how values are distributed. read: the column that a person reads.
    column: the column of numbers in the batches that ``add`` takes.
    """

    def __init__(
        self,
        form: str,
        columns: Sequence[str] = (),
        top: int = TOP,
        distributes: bool = False,
    ) -> None:
        declared = FORMS[form]
        self.kind = self.read = ""
        if declared.finding is not None:
            self.kind = declared.finding[0]
            self.read = declared.finding_in(columns or [*declared.columns])
        self.column = SIZE if self.kind == "groups" else self.read
        self._form, self._columns, self._count = form, columns, top
        self._top = TopRows(top)
        self.distribution = distribution(form) if distributes else None
        self._rows = self._missing = self._alone = 0

    def part(self) -> Findings:
        """Return new findings, for some of the rows; ``merge`` takes them back."""
        assert self.distribution is None
        return Findings(self._form, self._columns, self._count)

    def add(self, batch: pa.RecordBatch) -> None:
        """Add rows. A null is a vertex that was not reached, or that names no group.

        Raises InputError for a negative number, which no question gives.
        """
        values, null = numbers_and_nulls(batch.column(self.column))
        check_values(values if null is None else values[~null], self.column)
        values = values.astype(np.float64 if values.dtype.kind == "f" else np.int64, copy=False)
        there = values if null is None else values[~null]
        self._rows += len(values)
        self._missing += len(values) - len(there)
        if self.kind == "groups":
            self._alone += int(np.count_nonzero(there == 1))
        if null is not None:
            values = np.where(null, values.dtype.type(-1), values)
        self._top.add(values, batch.column("vertex"))
        if self.distribution is not None:
            self.distribution.add(there)

    def merge(self, later: Findings) -> None:
        """Add the findings of another part, whose vertices are greater."""
        self._rows += later._rows
        self._missing += later._missing
        self._alone += later._alone
        self._top.merge(later._top)

    def pairs(self) -> list[tuple[Any, Any]]:
        """Return the vertices or groups at the top with their values, the greatest first."""
        return self._top.pairs()

    def facts(self) -> dict[str, Any]:
        """Return the findings, as JSON can hold them: ``column``, ``top`` and, if it was counted,
        ``distribution``; of distances also ``reached`` and ``unreached``, of groups ``groups`` and
        ``alone``, the number of groups of one vertex.
        """
        there = self._rows - self._missing
        found: dict[str, Any] = {}
        if self.kind == "distances":
            found = {"reached": there, "unreached": self._missing}
        elif self.kind == "groups":
            found = {"groups": there, "alone": self._alone}
        found["column"] = self.read
        found["top"] = [[shown_id(vertex), value] for vertex, value in self.pairs()]
        if self.distribution is not None:
            ranges = [list(value_range) for value_range in self.distribution.ranges()]
            if ranges and found["top"]:  # the last range ends at the greatest value
                ranges[-1][1] = found["top"][0][1]
            found["distribution"] = ranges
        return found


def check_values(values: NDArray, column: str) -> None:
    """Raise InputError for numbers that no question gives: negative, not finite or too large."""
    limit = 2.0**1023 if values.dtype.kind == "f" else 2**62
    if len(values) and not (values.min() >= 0 and values.max().item() < limit):
        raise InputError(
            f"the result holds a {column} that is negative, not finite or too large: check it with "
            "'delegraph validate'"
        )


class GroupSizes:
    """Sizes of groups, from the name of each vertex's group. kind: the type of the names."""

    def __init__(self, kind: pa.DataType) -> None:
        self._counted = [pa.table({"vertex": pa.nulls(0, kind), SIZE: pa.nulls(0, pa.int64())})]
        self._rows = 0

    def add(self, names: pa.Array) -> None:
        """Count the vertices of each name. Nulls name no group."""
        counted = compute("value_counts", names.drop_null())
        columns = {"vertex": counted.field("values"), SIZE: counted.field("counts")}
        self._counted.append(pa.table(columns))
        self._rows += len(counted)
        if self._rows > 2 * len(self._counted[0]) + (1 << 20):
            self._counted = [self._summed()]
            self._rows = len(self._counted[0])

    def batches(self) -> list[pa.RecordBatch]:
        """Return the groups by rising name, with ``vertex`` and the size."""
        return self._summed().sort_by("vertex").to_batches()

    def _summed(self) -> pa.Table:
        counted = pa.concat_tables(self._counted)
        summed = counted.group_by("vertex", use_threads=False).aggregate([(SIZE, "sum")])
        return summed.rename_columns({"vertex": "vertex", f"{SIZE}_sum": SIZE})
