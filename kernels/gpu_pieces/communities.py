"""Rounds of moves between communities on a device, and the contraction of a graph
(cuda/pieces/communities.cu).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..gpu.device import Device, pack, without_fields
from ..gpu.graph import TARGETS, Array, Rows, offsets_dtype
from ..gpu.prepare import sort_with
from ..gpu_programs.rows import CutRows, Launch, ProgramGraph, blocks_of, cut, kernel_of
from ..pieces.operators import Amounts, ListedAmounts, ScaledWeights
from ..programs.communities import CLASSES
from .tally import SLOT_BYTES, amounts_name, tables_bytes

_SOURCE = "pieces/communities.cu"

_KINDS = 8  # of rows, by their lengths
_BLOCK_EDGES = 1 << 10
"""Most edges of a vertex whose labels are in the table of a block."""

_SOME_EDGES = 1 << 14
"""Most edges of a vertex that has one of the smaller tables in device memory."""

_KINDS_OF_TABLES = 2  # in device memory

_SHARED = 26 << 10
"""Bytes of shared memory that a block takes, in all."""

_LAUNCH = Launch(256, 4)

_MOST_PAIRS = 1 << 24
_FEWEST_PAIRS = 1 << 20
_PAIR_BYTES = 16 + 16 + 8 + 3 * 8 + 16
"""Bytes of a pair while it is listed, put in order and added up."""

_KEPT_BYTES = 16 + 4 + 8 + 8
"""Bytes of a pair of a contracted graph, and while its rows are made."""

AMOUNTS = np.dtype([("weights", "u8"), ("scale", "f8")], align=True)
GRAPH = np.dtype([("offsets", "u8"), ("targets", TARGETS), ("amounts", AMOUNTS)], align=True)
TABLES = np.dtype(
    [("labels", "u8"), ("totals", "u8"), ("bits", "u4"), ("number", "u4")], align=True
)
_OF_PLACES = ("numbers", "mass", "totals", "label", "community", "marks", "alone")
_OF_ROUNDS = ("classes", "listed", "picks", "counts", "done", "arrived")
LEVEL = np.dtype(
    [
        *((name, "u8") for name in (*_OF_PLACES, *_OF_ROUNDS)),
        ("far", TABLES, _KINDS_OF_TABLES),
        ("factor", "f8"),
        ("vertices", "u4"),
    ],
    align=True,
)


class WeighedRows(NamedTuple):
    """Rows on a device, and what their edges amount to. weights: by entry, what ``amounts`` reads;
    None for UnitAmounts. name: of the amounts' type, in C++.
    """

    cut: CutRows
    amounts: Amounts
    weights: Array | None
    name: str

    @property
    def kinds(self) -> tuple[str, str, str]:
        """Return the types that kernels are compiled for."""
        return self.cut.rows.offset_type, self.cut.tiered, self.name

    def packed(self) -> np.ndarray:
        rows, amounts = self.cut.rows, self.packed_amounts()[0]
        return pack(GRAPH, offsets=rows.offsets, targets=rows.targets()[0], amounts=amounts)

    def packed_amounts(self) -> np.ndarray:
        scale = self.amounts.scale if isinstance(self.amounts, ScaledWeights) else 0.0
        return pack(AMOUNTS, weights=self.weights, scale=scale)


def weighed(graph: ProgramGraph, amounts: Amounts) -> WeighedRows:
    """Return the rows of a graph, whose edges amount to as much."""
    if isinstance(amounts, ScaledWeights):
        return WeighedRows(graph.cut, amounts, graph.weights, amounts_name(graph.weight_type))
    return WeighedRows(graph.cut, amounts, None, amounts_name(None))


@dataclass
class Places:
    """The arrays of a level's vertices, on the device, which rounds read and change. A label is the
    number of a vertex.

    numbers: uint32, by place; None where places are numbers. mass: uint64, by place. label: uint32,
    by place: the community of each vertex, or its part. community: the same, while communities are
    divided into parts. totals: uint64, by label, its mass. marks: uint8, by place: 1 if a vertex
    is to be looked at. alone: uint8, by number: 1 if a vertex may still join a part.
    """

    numbers: Array | None
    mass: Array
    label: Array
    community: Array
    totals: Array
    marks: Array
    alone: Array

    def packed(self, factor: float) -> np.ndarray:
        """Return the structure ``Level`` without the fields of rounds. factor: of BestGain."""
        arrays = {name: getattr(self, name) for name in _OF_PLACES}
        return pack(LEVEL, **arrays, factor=factor, vertices=len(self.label))


class Rounds:
    """Rounds over the rows of a level. note: called with the number of edges that were looked at.
    room: bytes that may be held beside ``rounds_bytes``.
    """

    def __init__(
        self, device: Device, rows: WeighedRows, note: Callable[[int], None], room: int = 0
    ) -> None:
        self._device, self._note = device, note
        n = rows.cut.count
        self._graph = without_fields(rows.packed())
        self._do = {joins: _round_kernel(device, rows.kinds, joins) for joins in (False, True)}
        with device.use() as cupy:
            self._listed, self._picks = (cupy.empty(n, np.uint32) for _ in range(2))
            self._classes = cupy.empty(n, np.uint8)
            self._counts = cupy.zeros(2 * CLASSES * _KINDS, np.uint32)
            self._done, self._arrived = cupy.zeros(2, np.uint64), cupy.zeros(1, np.uint64)
            offsets = rows.cut.rows.offsets
            longest = int((offsets[1:] - offsets[:-1]).max()) if n else 0
            room += _KINDS_OF_TABLES * tables_bytes(n, rows.cut.rows.edges)
            blocks = blocks_of(device, launch_of(device))
            self._tables = [
                _make_tables(cupy, min(longest, most), n, blocks, room // _KINDS_OF_TABLES)
                for few, most in ((_BLOCK_EDGES, _SOME_EDGES), (_SOME_EDGES, longest))
                if longest > few
            ]

    def run(self, places: Places, joins: bool, factor: float, stamp: np.uint64) -> int:
        """Do a round: the classes of vertices that are marked, or may join (joins), take turns.
        Returns the number of moves.
        """
        device = self._device
        with device.use():
            level = without_fields(self._packed(places, factor))
            self._do[joins](self._graph, level, stamp)
            moved, edges = (int(number) for number in self._done.get())
            self._done.fill(0)
        self._note(edges)
        return moved

    def _packed(self, places: Places, factor: float) -> np.ndarray:
        packed = places.packed(factor)
        for name in _OF_ROUNDS:
            packed[name] = getattr(self, f"_{name}").data.ptr
        for at, tables in enumerate(self._tables):
            packed["far"][0, at] = tables.packed()[0]
        return packed


class _Tables(NamedTuple):
    """Tables in device memory, of 2^bits slots each. number: of the tables."""

    labels: Array
    totals: Array
    bits: int
    number: int

    def packed(self) -> np.ndarray:
        return pack(TABLES, **self._asdict())


def _make_tables(cupy: Any, longest: int, labels: int, blocks: int, room: int) -> _Tables:
    """Return tables for rows of up to ``longest`` edges: one for each block, as far as there is
    room.
    """
    bits = max(1, (2 * min(longest, labels) - 1).bit_length())
    count = max(1, min(blocks, room // (SLOT_BYTES << bits)))
    slots = count << bits
    return _Tables(cupy.empty(slots, np.uint32), cupy.empty(slots, np.uint64), bits, count)


def sums_within(device: Device, rows: WeighedRows, label: Array | None) -> Array:
    """Return what the edges of each vertex to others with the same label amount to: uint64, by
    place. label: uint32, by place; None if all have the same.
    """
    with device.use() as cupy:
        sums = cupy.zeros(rows.cut.count, np.uint64)
        of_rows = rows.cut.packed(), rows.packed_amounts()
        _sum_kernel(device, rows.kinds)(*of_rows, np.uint64(0) if label is None else label, sums)
        return sums


def find_tied(device: Device, places: Places, factor: float, within: Array) -> None:
    """Set which vertices may join parts: those that are tied to their communities. within: what
    ``sums_within`` gives.
    """
    with device.use():
        device.launch(_SOURCE, "find_tied", len(within), (places.packed(factor), within))


def split(device: Device, rows: WeighedRows, label: Array) -> Array:
    """Return the trees that the edges between vertices with the same label join: uint32, by place,
    the least place of each.
    """
    with device.use() as cupy:
        forest = cupy.arange(rows.cut.count, dtype=np.uint32)
        arrived = cupy.zeros(1, np.uint64)
        _split_kernel(device, rows.kinds)(rows.cut.packed(), label, forest, arrived)
        return forest


def contract(
    device: Device, rows: WeighedRows, label: Array, labels: int, room: int = 0
) -> WeighedRows:
    """Return the graph between labels, without the edges inside them. label: uint32, by place,
    below ``labels``. room: bytes that may be held beside ``contracting_bytes``.

    The rows of vertices with the same label are gone through one after the other, as many of them
    at a time as there is room for. What is left of a label at the end is taken up again.
    """
    n, entries = rows.cut.count, rows.cut.rows.edges
    most = min(max(_FEWEST_PAIRS, room // 2 // _PAIR_BYTES), _MOST_PAIRS, max(1, entries))
    graph = without_fields(rows.packed())
    function = f"list_pairs<{', '.join(rows.kinds)}>"
    found: list[tuple[Array, Array]] = []
    with device.use() as cupy:
        members = cupy.argsort(label).astype(np.uint32)
        offsets = rows.cut.rows.offsets
        starts = cupy.zeros(n + 1, np.uint64)
        starts[1:] = cupy.cumsum((offsets[1:] - offsets[:-1])[members], dtype=np.uint64)
        listed = cupy.zeros(1, np.uint64)
        rest: tuple[Array, Array] | None = None
        for begin in range(0, entries, most):
            end = min(begin + most, entries)
            listed.fill(0)
            keys, amounts = (cupy.empty(end - begin, np.uint64) for _ in range(2))
            span = np.uint32(n), np.uint64(begin), np.uint64(end)
            arguments = graph, label, members, starts, *span, keys, amounts, listed
            device.launch(_SOURCE, function, -(-(end - begin) // 1024) * 32, arguments)
            count = int(listed[0])
            keys, amounts = keys[:count], amounts[:count]
            if rest is not None:
                both = zip(rest, (keys, amounts), strict=True)
                keys, amounts = (cupy.concatenate(ends) for ends in both)
            keys, amounts = added_up(cupy, keys, amounts)
            rest = None
            if end < entries and len(keys):  # the last label may have more edges
                whole = int(cupy.searchsorted(keys, keys[-1:] >> np.uint64(32) << np.uint64(32))[0])
                rest = keys[whole:].copy(), amounts[whole:].copy()
                keys, amounts = keys[:whole].copy(), amounts[:whole].copy()
            found.append((keys, amounts))
        del members, starts
        if rest is not None:
            found.append(rest)
        return _rows_of(device, found, labels)


def added_up(cupy: Any, keys: Array, amounts: Array) -> tuple[Array, Array]:
    """Return the distinct keys, rising, and the sum of the amounts of each."""
    if not len(keys):
        return keys, amounts
    keys, amounts = sort_with(cupy, keys, amounts)
    is_last = cupy.ones(len(keys), np.bool_)
    is_last[:-1] = keys[1:] != keys[:-1]
    last = cupy.flatnonzero(is_last)
    sums = cupy.cumsum(amounts, dtype=np.uint64)[last]  # beyond 2^64 their differences are right
    sums[1:] -= sums[:-1].copy()
    return keys[last], sums


def _rows_of(device: Device, found: list[tuple[Array, Array]], labels: int) -> WeighedRows:
    """Return the rows of rising pairs of labels. found: emptied on the way."""
    with device.use() as cupy:
        nothing = [cupy.empty(0, np.uint64)]
        sums = cupy.concatenate([amounts for _, amounts in found] or nothing)
        keys = cupy.concatenate([keys for keys, _ in found] or nothing)
        found.clear()
        firsts = cupy.arange(labels + 1, dtype=np.uint64) << np.uint64(32)
        offsets = cupy.searchsorted(keys, firsts).astype(offsets_dtype(len(keys)))
        rows = Rows(offsets, keys.astype(np.uint32))
        del keys
        return WeighedRows(cut(device, rows), ListedAmounts(), sums, ListedAmounts.__name__)


def launch_of(device: Device) -> Launch:
    """Return the launch of rounds: as many blocks as have room for their tables."""
    return _LAUNCH._replace(blocks=max(1, min(_LAUNCH.blocks, device.shared_bytes // _SHARED)))


def kinds_of(offset: str, tiered: str, amounts: Iterable[str]) -> list[tuple[str, str, str]]:
    """Return the types that kernels are compiled for: of a graph's rows and of contracted ones.
    amounts: of the graph.
    """
    of_graph = [(offset, tiered, name) for name in amounts]
    widths = ("u32", "u64") if offset == "u64" else ("u32",)
    return of_graph + [(width, "false", ListedAmounts.__name__) for width in widths]


def warm_up(graph: ProgramGraph) -> None:
    """Compile, or load from the cache, the kernels that are called for a graph, and for those that
    it is contracted to.
    """
    device, amounts = graph.device, {amounts_name(kind) for kind in (None, graph.weight_type)}
    several = kinds_of(graph.cut.rows.offset_type, graph.cut.tiered, amounts)
    tasks: list[Callable[[], object]] = [partial(device.kernel, _SOURCE, "find_tied")]
    for some in several:
        tasks += [partial(_sum_kernel, device, some), partial(_split_kernel, device, some)]
        tasks += [partial(_round_kernel, device, some, joins) for joins in (False, True)]
        tasks.append(partial(device.kernel, _SOURCE, f"list_pairs<{', '.join(some)}>"))
    device.together(tasks)


def warm_up_contract(rows: CutRows, device: Device) -> None:
    """Compile, or load from the cache, what a contraction calls, of edges that are all alike."""
    kinds = rows.rows.offset_type, rows.tiered, amounts_name(None)
    device.kernel(_SOURCE, f"list_pairs<{', '.join(kinds)}>")


def rounds_bytes(vertices: int, entries: int) -> int:
    """Return the bytes that rounds hold beside the places."""
    return (4 + 4 + 1) * vertices + _KINDS_OF_TABLES * tables_bytes(vertices, entries)


def contracting_bytes(vertices: int, entries: int) -> int:
    """Return the bytes that a contraction holds, its result included."""
    in_order = (8 + 4 + 8 + 8) * vertices
    pairs = _PAIR_BYTES * min(entries, _FEWEST_PAIRS + vertices)
    return in_order + pairs + _KEPT_BYTES * entries + vertices + entries  # these: to cut rows


def _round_kernel(device: Device, kinds: tuple[str, str, str], joins: bool) -> Callable[..., None]:
    of = (*kinds, str(joins).lower())
    return kernel_of(device, _SOURCE, "do_round", of, launch_of(device))


def _sum_kernel(device: Device, kinds: tuple[str, str, str]) -> Callable[..., None]:
    return kernel_of(device, _SOURCE, "sum_within", kinds)


def _split_kernel(device: Device, kinds: tuple[str, str, str]) -> Callable[..., None]:
    return kernel_of(device, _SOURCE, "join_within", kinds[:2])
