"""Rows of all vertices on a device, made from stored subgraphs (cuda/rows/stored_rows.cu)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..base.numbering import Numbering, is_identity
from ..gpu.device import Device, pack
from ..gpu.graph import Array, Rows
from ..gpu.made_rows import MadeRows, Shard

_SOURCE = "rows/stored_rows.cu"
_SORTED = 1 << 24  # entries at once, about
_SORT_BYTES, _MOVE_BYTES = 24, 40  # of each of them, and where weights go along

NUMBERING = np.dtype(
    [("table", "u8"), *((name, "u4") for name in ("multiplier", "addend", "width", "step"))],
    align=True,
)


class Subgraph(NamedTuple):
    """A stored subgraph's numberings: the global ids of its rows, and of the targets of its
    entries. reversed: whether the targets are to be the rows.
    """

    rows: Numbering
    targets: Numbering
    reversed: bool = False


class RowsMaker:
    """A maker of rows, which takes ``subgraphs`` subgraphs: all of them to count, then all of them
    again, with their entries.

    near: entries that stand on the device; the others are pinned in host memory. weighted: whether
    weights come along; then all are near.
    """

    def __init__(
        self, device: Device, vertices: int, near: int, weighted: bool, subgraphs: int
    ) -> None:
        self._device, self._near, self._weighted = device, near, weighted
        self._vertices, self._subgraphs = vertices, subgraphs
        self._tables: dict[int, Array] = {}
        self._whole_offsets: Array = None  # of the only subgraph, whose rows are those wanted
        self._made: MadeRows | None = None
        self._rows: Any = None
        self._weights: Array | None = None

    def count(self, subgraph: Subgraph, offsets: NDArray) -> None:
        with self._device.use() as cupy:
            if self._is_all(subgraph):
                self._whole_offsets = cupy.asarray(offsets)
            else:
                self.add(self._counted().counts, subgraph.rows, _lengths(cupy.asarray(offsets)))

    def count_reversed(self, subgraph: Subgraph, targets: NDArray[np.uint32]) -> None:
        """Count the entries of a subgraph that is reversed."""
        counts = self._counted().counts
        with self._device.use() as cupy:
            self._device.launch(
                _SOURCE,
                "count_targets",
                len(targets),
                (
                    cupy.asarray(targets),
                    np.uint64(len(targets)),
                    self._packed(subgraph.targets),
                    counts,
                ),
            )

    def begin(self) -> None:
        """Make room for the entries. Call this between counting and placing."""
        if self._whole_offsets is None:
            made = self._counted()
            made.begin(self._device, self._near, self._weighted)
            self._rows, self._weights = made.rows, made.weights
            return
        with self._device.use() as cupy:
            self._rows = Rows.with_room(self._device, self._whole_offsets, self._near)
            self._weights = cupy.empty(self._rows.edges, np.uint32) if self._weighted else None

    @contextmanager
    def placing(
        self, subgraph: Subgraph, read_offsets: Callable[[], NDArray]
    ) -> Iterator[Callable[[int, NDArray[np.uint32], NDArray[np.uint32] | None], None]]:
        """Give a function that takes all entries of a subgraph, some at a time: the place of the
        first one, the targets, and the bits of their weights. read_offsets: returns the subgraph's
        offsets.
        """
        if self._is_all(subgraph):
            yield self._put_all
            return
        with self._device.use() as cupy:
            offsets = cupy.asarray(read_offsets())
        yield partial(self._place, subgraph, offsets)
        if not subgraph.reversed:
            with self._device.use():
                self.add(self._counted().fill, subgraph.rows, _lengths(offsets))

    def _is_all(self, subgraph: Subgraph) -> bool:
        """Return whether the subgraph's rows are the very rows that are wanted."""
        alone = self._subgraphs == 1 and not subgraph.reversed
        return alone and is_identity(subgraph.rows) and is_identity(subgraph.targets)

    def _counted(self) -> MadeRows:
        if self._made is None:
            with self._device.use() as cupy:
                self._made = MadeRows(cupy.zeros(self._vertices, np.uint64))
        return self._made

    def _put_all(
        self, begin: int, targets: NDArray[np.uint32], weights: NDArray[np.uint32] | None
    ) -> None:
        self._rows.put(self._device, begin, targets)
        if weights is not None:
            with self._device.use():
                to: Array = self._weights
                to[begin : begin + len(weights)].set(weights)

    def _place(
        self,
        subgraph: Subgraph,
        offsets: Array,
        begin: int,
        targets: NDArray[np.uint32],
        weights: NDArray[np.uint32] | None,
    ) -> None:
        with self._device.use() as cupy:
            on_device = cupy.asarray(targets), None if weights is None else cupy.asarray(weights)
            shard = Shard(on_device[0], begin, offsets, on_device[1])
            numbers = self._packed(subgraph.rows), self._packed(subgraph.targets)
            kernel = "place_reversed" if subgraph.reversed else "place_entries"
            self._counted().place(self._device, _SOURCE, kernel, shard, *numbers)

    def finish(self) -> tuple[Rows, Array | None]:
        """Return the rows, and weights by entry. Targets of rows made from several subgraphs
        rise.
        """
        self._made = None
        if self._subgraphs > 1:
            self._sort()
        return self._rows, self._weights

    def add(self, values: Array, numbering: Numbering, addends: Array) -> None:
        """Add an addend to the value of each of a subgraph's rows. values: by global id."""
        if len(numbering.table):
            values[self._table(numbering)] += addends.astype(values.dtype)
            return
        for i in range(numbering.width):
            first = numbering.addend + i * numbering.step
            piece = addends[i :: numbering.width]
            values[first :: numbering.multiplier][: len(piece)] += piece.astype(values.dtype)

    def _sort(self) -> None:
        """Sort the entries of the rows, some rows at a time."""
        device, rows = self._device, self._rows
        with device.use() as cupy:
            marks = np.arange(0, rows.edges, _SORTED).astype(rows.offsets.dtype)
            cuts = cupy.searchsorted(rows.offsets, cupy.asarray(marks)).get().tolist()
            cuts = sorted({*cuts, len(rows.offsets) - 1})
            ends = rows.offsets.take(cupy.asarray(np.array(cuts))).get().tolist()
            for first, last, begin, end in zip(cuts, cuts[1:], ends, ends[1:], strict=False):
                if begin == end:
                    continue
                keys = cupy.empty(end - begin, np.uint64)
                span = np.uint32(first), np.uint32(last - first), np.uint64(begin)
                of = rows.offsets, rows.targets(), *span, np.uint64(end - begin), keys
                device.launch(_SOURCE, f"key_entries<{rows.offset_type}>", end - begin, of)
                if self._weights is None:
                    keys.sort()
                else:
                    order = cupy.argsort(keys)
                    keys = keys.take(order)
                    self._weights[begin:end] = self._weights[begin:end].take(order)
                self._write(begin, keys.astype(np.uint32))

    def _write(self, at: int, targets: Array) -> None:
        rows = self._rows
        here = max(0, min(len(targets), len(rows.near) - at))
        rows.near[at : at + here] = targets[:here]
        if here < len(targets):
            rows.put(self._device, at + here, targets[here:].get())

    def _packed(self, numbering: Numbering) -> np.ndarray:
        table = self._table(numbering) if len(numbering.table) else None
        return pack(NUMBERING, **numbering._asdict() | {"table": table})

    def _table(self, numbering: Numbering) -> Array:
        """Return a numbering's table on the device, copied there once. The table that it was copied
        from stays with its subgraph.
        """
        key = numbering.table.ctypes.data
        if key not in self._tables:
            self._tables[key] = self._device.cupy.asarray(numbering.table)
        return self._tables[key]


def making_bytes(vertices: int, entries: int, several: bool, weighted: bool) -> int:
    """Return the bytes that making rows holds on the device at most, beside the rows, a shard of
    each array, and a subgraph's offsets. several: whether there are several subgraphs.
    """
    counts, fill = 8 * vertices, 8 * vertices
    at_once = min(entries, _SORTED) + min(vertices, entries)  # a row is not cut
    sorting = (_MOVE_BYTES if weighted else _SORT_BYTES) * at_once
    return max(counts + fill, sorting) if several else 0


def _lengths(offsets: Array) -> Any:
    return offsets[1:] - offsets[:-1]
