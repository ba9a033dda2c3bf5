"""The rows of one rank in a grid of partitions, made on its device (cuda/rows/grid_rows.cu).

Rank r of R holds the partitions p with p mod R = r. It numbers whole partitions, each from a
multiple of ALIGNED on: its own; then those of other ranks in its grid columns, which it has rows
of; then those in its grid rows alone, which are targets and nothing else. So a tile's rows and
targets, which count places in its grid column and row, are numbers of one kind, and several tiles
of a rank are one graph. What an edge's tile is says partition/store/grid.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base.graph import UNREACHED
from ..gpu.device import Device, pack
from ..gpu.graph import Array, DeviceGraph, derive
from ..gpu.made_rows import MadeRows, Shard
from .numbering import Segment, aligned

TURNS = np.dtype([("firsts", "u8"), ("partitions", "u4")], align=True)

_SOURCE = "rows/grid_rows.cu"


@dataclass(frozen=True)
class GridNumbering:
    """The partitions that each rank owns, and those that it knows. rows, columns: of the grid.

    >>> two = GridNumbering(ranks=4, rows=2, columns=2, vertices=10)
    >>> two.own(1), two.in_columns(1), two.in_rows(1)
    ([1], [3], [0])
    """

    ranks: int
    rows: int
    columns: int
    vertices: int

    @property
    def partitions(self) -> int:
        return self.rows * self.columns

    def own(self, rank: int) -> list[int]:
        return list(range(rank, self.partitions, self.ranks))

    def in_columns(self, rank: int) -> list[int]:
        """Return the other partitions of the rank's grid columns."""
        columns = {p % self.columns for p in self.own(rank)}
        return [p for p in self._others(rank) if p % self.columns in columns]

    def in_rows(self, rank: int) -> list[int]:
        """Return the other partitions of the rank's grid rows."""
        rows = {p // self.columns for p in self.own(rank)}
        return [p for p in self._others(rank) if p // self.columns in rows]

    def size(self, partition: int) -> int:
        """Count the vertices of a partition."""
        return len(range(partition, self.vertices, self.partitions))

    def known(self, rank: int) -> Known:
        own_partitions, columns = self.own(rank), self.in_columns(rank)
        in_columns, in_rows = set(columns), set(self.in_rows(rank))
        targets = sorted(in_rows - in_columns)
        segments, at = [], 0
        for p in (*own_partitions, *columns, *targets):
            segments.append(Segment(p, at, self.size(p)))
            at += aligned(self.size(p))
        return Known(
            segments, len(own_partitions), len(own_partitions) + len(columns), in_columns, in_rows
        )

    def number(self, rank: int, vertex: int) -> int | None:
        """Return the rank's number of a vertex of its own by its global id; None if it is
        another's.
        """
        partition = vertex % self.partitions
        if partition % self.ranks != rank:
            return None
        before = range(rank, partition, self.ranks)
        return sum(aligned(self.size(p)) for p in before) + vertex // self.partitions

    def _others(self, rank: int) -> list[int]:
        return [p for p in range(self.partitions) if p % self.ranks != rank]


@dataclass(frozen=True)
class Known:
    """The vertices that a rank numbers: first its own, then other vertices that it has rows of,
    then those that are targets alone.

    own, rows: how many of the segments are of own vertices, and of vertices with rows. in_columns,
    in_rows: partitions of other ranks.
    """

    segments: list[Segment]
    own: int
    rows: int
    in_columns: set[int]
    in_rows: set[int]

    @cached_property
    def at(self) -> dict[int, Segment]:
        return {segment.partition: segment for segment in self.segments}

    @cached_property
    def place(self) -> dict[int, int]:
        """Return the place of a partition among the segments."""
        return {segment.partition: i for i, segment in enumerate(self.segments)}

    @property
    def own_numbers(self) -> int:
        return self._end(self.own)

    @property
    def row_numbers(self) -> int:
        return self._end(self.rows)

    @property
    def numbers(self) -> int:
        return self._end(len(self.segments))

    def _end(self, count: int) -> int:
        return sum(aligned(segment.vertices) for segment in self.segments[:count])


@dataclass(frozen=True)
class GridRows:
    """A rank's rows on its device. graph: a row for each vertex of its grid columns."""

    numbering: GridNumbering
    rank: int
    graph: DeviceGraph

    @cached_property
    def known(self) -> Known:
        return self.numbering.known(self.rank)

    def number(self, vertex: int) -> int | None:
        """Return the rank's number of a vertex of its own by its global id; None if it is
        another's.
        """
        return self.numbering.number(self.rank, vertex)

    def global_ids(self, cupy: Any) -> Array:
        """Return the global ids by the rank's numbers: uint32, UNREACHED where there is no
        vertex.
        """
        partitions = np.uint32(self.numbering.partitions)
        found = cupy.full(self.known.numbers, UNREACHED, np.uint32)
        for p, first, count, _ in self.known.segments:
            ids = cupy.arange(count, dtype=np.uint32) * partitions + np.uint32(p)
            found[first : first + count] = ids
        return found

    def owned_ids(self, cupy: Any) -> Array:
        """Return the global ids, by own number, of the vertices that the rank owns."""
        return self.global_ids(cupy)[: self.own_numbers]

    @property
    def ranks(self) -> int:
        return self.numbering.ranks

    @property
    def own_numbers(self) -> int:
        return self.known.own_numbers

    @property
    def bytes(self) -> int:
        """Count the bytes of the graph: offsets and targets."""
        return self.graph.bytes


@dataclass
class GridRowsMaker:
    """A maker of rows, which takes tiles: first their offsets (``count``), then their targets
    (``place``).

    near: entries of the rows, and of their reverse, that stand on the device; the others are pinned
    in host memory. None: all.
    """

    device: Device
    numbering: GridNumbering
    rank: int
    directed: bool
    near: int | None = None
    _made: dict[str, MadeRows] = field(default_factory=dict)
    _offsets: dict[tuple[int, str], Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._known = self.numbering.known(self.rank)
        with self.device.use() as cupy:
            for name in ("nn", "reverse-nn") if self.directed else ("nn",):
                self._made[name] = MadeRows(cupy.zeros(self._known.row_numbers, np.uint64))

    def count(self, partition: int, name: str, offsets: NDArray | Array) -> None:
        """Take a tile's offsets: all of them before the first targets."""
        with self.device.use() as cupy:
            self._offsets[partition, name] = cupy.asarray(offsets)
            self._add(self._made[name].counts, partition, name)

    def begin(self) -> None:
        """Make room for targets. Call this between the last ``count`` and the first ``place``."""
        with self.device.use():
            for making in self._made.values():
                making.begin(self.device, self.near)

    def place(self, partition: int, name: str, begin: int, targets: NDArray[np.uint32]) -> None:
        """Take targets of a tile, from entry ``begin`` on."""
        making, offsets = self._made[name], self._offsets[partition, name]
        grid = self.numbering
        in_row = [partition // grid.columns * grid.columns + j for j in range(grid.columns)]
        with self.device.use() as cupy:
            there = cupy.asarray(targets)
            column_firsts = cupy.asarray(self._firsts(self._column_of(partition)))
            row_firsts = cupy.asarray(self._firsts(in_row))
            of_rows = pack(TURNS, firsts=column_firsts, partitions=grid.rows)
            of_targets = pack(TURNS, firsts=row_firsts, partitions=grid.columns)
            shard = Shard(there, begin, offsets)
            making.place(self.device, _SOURCE, "place_tile", shard, of_rows, of_targets)

    def end(self, partition: int, name: str) -> None:
        """Note that a tile's targets have all been placed."""
        with self.device.use():
            self._add(self._made[name].fill, partition, name)
            del self._offsets[partition, name]

    def finish(self) -> GridRows:
        forward = self._made["nn"].rows
        reverse = self._made["reverse-nn"].rows if self.directed else None
        graph = derive(self.device, forward, reverse, padded=False)
        return GridRows(self.numbering, self.rank, graph)

    def _column_of(self, partition: int) -> list[int]:
        """Return the partitions of the grid column of a partition."""
        grid = self.numbering
        return [i * grid.columns + partition % grid.columns for i in range(grid.rows)]

    def _firsts(self, partitions: list[int]) -> NDArray[np.uint32]:
        return np.array([self._known.at[p].first for p in partitions], np.uint32)

    def _add(self, to: Array, partition: int, name: str) -> None:
        """Add the lengths of a tile's rows. These belong to the partitions of its column by
        turns.
        """
        offsets = self._offsets[partition, name]
        column = self._column_of(partition)
        lengths = (offsets[1:] - offsets[:-1]).astype(to.dtype)
        for i, p in enumerate(column):
            segment = self._known.at[p]
            row_lengths = to[segment.first : segment.first + segment.vertices]
            row_lengths += lengths[i :: len(column)]
