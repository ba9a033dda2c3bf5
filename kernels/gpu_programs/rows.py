"""A graph's rows on a device, cut so that all of its warps share them (cuda/programs/rows.cuh)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..base.arrays import Array as Declared
from ..base.arrays import allocate, total_bytes
from ..gpu.device import Device, pack
from ..gpu.graph import TARGETS, Array, Rows


class Launch(NamedTuple):
    """The size of a launch. threads: of a block; blocks: of a multiprocessor."""

    threads: int
    blocks: int


LAUNCH = Launch(256, 4)
"""The launch of kernels whose warps share little."""

TIME = 1 << 29
"""Clocks that a launch takes, about: a third of a second. After a launch the host tells how far a
run is, saves what it has, and can be ended.
"""

_SOURCE = "programs/rows.cu"
_LEAST_TURN, _MOST_TURN = 64, 1024
_RESERVE = 8
_TURNS_A_WARP = 4  # at least, where a turn is longer than the least one

ROWS = np.dtype(
    [
        ("offsets", "u8"),
        ("targets", TARGETS),
        *((name, "u8") for name in ("turn_rows", "long_rows", "first_parts")),
        *((name, "u4") for name in ("rows", "turns", "longs", "parts", "turn")),
    ],
    align=True,
)

CUTS = np.dtype([(name, "u4") for name in ("dense", "columns", "shift")], align=True)

MOST_PIECES = 1 << 31
"""The most rows, and parts of rows: they are numbered with 32 bits."""


@dataclass(frozen=True)
class CutRows:
    """The members of the structure ``Rows`` of cuda/programs/rows.cuh: uint32 arrays on the
    device.
    """

    rows: Rows
    turn: int
    turn_rows: Array
    long_rows: Array
    first_parts: Array

    @property
    def count(self) -> int:
        return len(self.rows.offsets) - 1

    @property
    def parts(self) -> int:
        return int(self.first_parts[-1])

    @property
    def tiered(self) -> str:
        """Return whether some targets stand in host memory, as a word of C++ ("true" or
        "false").
        """
        return str(self.rows.far is not None).lower()

    def packed(self) -> np.ndarray:
        return pack(
            ROWS,
            offsets=self.rows.offsets,
            targets=self.rows.targets()[0],
            turn_rows=self.turn_rows,
            long_rows=self.long_rows,
            first_parts=self.first_parts,
            rows=self.count,
            turns=len(self.turn_rows) - 1,
            longs=len(self.long_rows),
            parts=self.parts,
            turn=self.turn,
        )


@dataclass(frozen=True)
class ProgramGraph:
    """The graph that a program goes through on a device: the rows of all vertices, by global id.

    back: rows of the other direction, for programs that read both of a directed graph. weights,
    back_weights: uint32, by entry, the bits of weights of type ``weight_type``; None if they are
    not asked for. degree: float64, by vertex, the number of edges that leave it, or the sum of
    their weights; None if it is not asked for. twice: whether every edge stands in the rows of both
    ends, whatever rank has these rows. extra_bytes: bytes of the device that a program may hold
    beyond its declared ones. ranks: the number of ranks with a share of the edges each; then the
    degree is over all of them. id_order: returns the vertices by rising user id, uint32 (n,), in
    host memory. loops: returns the self-loops that the graph keeps, by ``vertices`` (uint32) and
    ``weights``, in host memory; None if it keeps none.
    """

    device: Device
    cut: CutRows
    twice: bool
    weights: Array | None = None
    weight_type: str | None = None
    degree: Array | None = None
    extra_bytes: int = 0
    ranks: int = 1
    back: CutRows | None = None
    back_weights: Array | None = None
    id_order: Callable[[], np.ndarray] | None = None
    loops: Callable[[], Any] | None = None

    @property
    def vertices(self) -> int:
        return self.cut.count

    @property
    def room(self) -> int:
        """Return the extra bytes, less a part that is left for code and for what the pool rounds
        up.
        """
        return self.extra_bytes - self.extra_bytes // _RESERVE


def cut(device: Device, rows: Rows) -> CutRows:
    n, entries, kind = len(rows.offsets) - 1, rows.edges, rows.offset_type
    turn = _turn(device, n + entries)
    turns = -(-(n + entries) // turn)
    with device.use() as cupy:
        turn_rows = cupy.empty(turns + 1, np.uint32)
        arguments = (rows.offsets, np.uint32(n), np.uint32(turn), np.uint32(turns), turn_rows)
        device.launch(_SOURCE, f"cut_turns<{kind}>", turns + 1, arguments)
        listed, count = cupy.empty(entries // turn + 1, np.uint32), cupy.zeros(1, np.uint32)
        arguments = (rows.offsets, np.uint32(n), np.uint32(turn), listed, count)
        device.launch(_SOURCE, f"list_long_rows<{kind}>", n, arguments)
        long_rows = cupy.sort(listed[: int(count[0])])
        # (For an operator between an array and a number, CuPy imports all that SciPy has.)
        ends = rows.offsets.take(cupy.add(long_rows, np.uint32(1)))
        lengths = (ends - rows.offsets.take(long_rows)).astype(np.uint64)
        first_parts = cupy.zeros(len(long_rows) + 1, np.uint32)
        parts = cupy.floor_divide(cupy.add(lengths, np.uint64(turn - 1)), np.uint64(turn))
        if len(long_rows):
            first_parts[1:] = cupy.cumsum(parts)
    return CutRows(rows, turn, turn_rows, long_rows, first_parts)


class Cuts(NamedTuple):
    """Columns into which targets are cut: ``columns`` of 2^shift vertices. dense: rows from there
    on are not cut.
    """

    dense: int
    columns: int
    shift: int

    @property
    def pieces(self) -> int:
        """Return the number of pieces of rows that are cut."""
        return self.dense * self.columns


def in_columns(
    device: Device, whole: CutRows, cuts: Cuts, weights: Array | None = None
) -> tuple[CutRows, Array | None] | None:
    """Return the rows as they are cut, column after column, then the rows that are not cut, and the
    weights of all entries. Returns None if targets do not rise along the rows.

    whole: rows that stand on the device. weights: by entry. Holds ``columns_bytes`` meanwhile.
    """
    n, dense, rows, kind = whole.count, cuts.dense, whole.rows, whole.rows.offset_type
    with device.use() as cupy:
        starts = cupy.empty((cuts.columns + 1, dense), rows.offsets.dtype)
        unsorted = cupy.zeros(1, np.uint32)
        threads = (whole.parts + len(whole.turn_rows) - 1) * 32
        of = whole.packed(), pack(CUTS, **cuts._asdict())
        device.launch(_SOURCE, f"find_columns<{kind}>", threads, (*of, starts, unsorted))
        if int(unsorted[0]):
            return None
        offsets = cupy.zeros(cuts.pieces + n - dense + 1, starts.dtype)
        lengths = offsets[1 : cuts.pieces + 1].reshape(cuts.columns, dense)
        cupy.subtract(starts[1:], starts[:-1], out=lengths)
        cupy.cumsum(offsets, out=offsets)
        offsets[cuts.pieces :] = rows.offsets[dense:]
        targets = rows.near.copy()
        moved = None if weights is None else weights.copy()
        none = np.uint64(0)
        to = targets, none if moved is None else moved
        places = starts, offsets, none if weights is None else weights
        device.launch(_SOURCE, f"move_to_columns<{kind}>", threads, (*of, *places, *to))
        del starts, lengths
        return cut(device, Rows(offsets, targets)), moved


def warm_up_columns(device: Device, offset_type: str) -> None:
    """Compile, or load from the cache, the kernels that ``in_columns`` calls."""
    with device.use():
        for function in ("find_columns", "move_to_columns"):
            device.kernel(_SOURCE, f"{function}<{offset_type}>")


def columns_bytes(device: Device, whole: CutRows, cuts: Cuts, weighted: bool) -> int:
    n, entries, size = whole.count, whole.rows.edges, whole.rows.offsets.dtype.itemsize
    pieces = cuts.pieces + n
    offsets, starts = (pieces + 1) * size, (cuts.pieces + n) * size
    return 4 * entries * (1 + weighted) + 2 * offsets + starts + cut_bytes(device, pieces, entries)


def cut_bytes(device: Device, vertices: int, entries: int) -> int:
    """Return the most bytes that ``cut`` holds, beside the rows."""
    units = (vertices + entries) // _turn(device, vertices + entries) + 2
    return 4 * 4 * units + 8 * 4 * units  # those listed, sorted, and the parts of each


def degrees_of(
    device: Device, offsets: Array, weights: Array | None, weight_type: str | None
) -> Array:
    """Return, for each row as float64, the number of its entries, or the sum of their weights.

    weights: uint32, bits of this type; a type of None counts entries.
    """
    with device.use() as cupy:
        if weight_type is None:
            return (offsets[1:] - offsets[:-1]).astype(np.float64)
        n = len(offsets) - 1
        sums = cupy.empty(n, np.float64)
        function = f"add_weights<{_unsigned(offsets)}, {c_name(weight_type)}>"
        device.launch(_SOURCE, function, 32 * n, (offsets, weights, np.uint32(n), sums))
        return sums


def rows_at(cupy: Any, offsets: Array, entries: Array) -> Array:
    """Return the row that each entry stands in: int64. entries: their numbers."""
    above = cupy.searchsorted(offsets, entries.astype(offsets.dtype, copy=False), "right")
    return cupy.subtract(above, 1).astype(np.int64, copy=False)


def c_name(kind: str) -> str:
    """Return the name in C++ of a type of weights, or of shares."""
    return {"float32": "float", "float64": "double", "uint32": "u32"}[kind]


def allocate_gangs(device: Device, declared: Sequence[Declared], count: int) -> dict[str, Array]:
    """Allocate the arrays of ``count`` gangs, by name. Each gang has a row of an array."""
    whole = [declaration._replace(length=count * declaration.length) for declaration in declared]
    found = allocate(whole, device.cupy)
    return {name: array.reshape(count, -1) for name, array in found.items()}


def pool_bytes(declared: Sequence[Declared]) -> int:
    """Return the bytes of arrays, with what the pool rounds up."""
    return total_bytes(declared) + 512 * len(declared)


def blocks_of(device: Device, launch: Launch = LAUNCH) -> int:
    """Return the number of blocks of a launch that fills the device."""
    return device.multiprocessors * launch.blocks


def kernel_of(
    device: Device,
    source: str,
    function: str,
    kinds: Sequence[str],
    launch: Launch = LAUNCH,
    shared_bytes: int = 0,
) -> Callable[..., None]:
    """Return ``function<kinds..., threads, blocks>``, to be called with its arguments. Its blocks
    run all at once, and may meet. Compiles the kernel, once. shared_bytes: dynamic shared memory of
    a block.
    """
    with device.use():
        of = ", ".join([*kinds, str(launch.threads), str(launch.blocks)])
        name = f"{function}<{of}>"
        kernel = device.kernel(source, name, shared_bytes, cooperative=True)
    grid = (blocks_of(device, launch),), (launch.threads,)
    return lambda *arguments: kernel(*grid, arguments, shared_mem=shared_bytes)


def _turn(device: Device, cost: int) -> int:
    """Return the length of a turn: long enough to pay, and short enough for each warp to have some
    turns.
    """
    turn_cost = cost // (_TURNS_A_WARP * blocks_of(device) * LAUNCH.threads // 32)
    return min(max(_LEAST_TURN, 1 << turn_cost.bit_length()), _MOST_TURN)


def _unsigned(offsets: Array) -> str:
    return Rows(offsets, offsets[:0]).offset_type
