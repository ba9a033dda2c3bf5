"""PageRank on a device: the definition is reference.pagerank, the kernel stands in
cuda/programs/pagerank.cu.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ..gpu.device import pack
from ..gpu.graph import Array
from . import rows
from .rows import CutRows, Cuts, ProgramGraph, blocks_of, c_name, kernel_of

CONTROL = np.dtype(
    [
        ("arrived", "u8"),
        *((name, "f8") for name in ("lost", "change")),
        *((name, "u4") for name in ("done", "turn", "stop", "stopped")),
        ("round", "u8"),
    ],
    align=True,
)
WALK = np.dtype(
    [
        ("degree", "u8"),
        ("shares", "u8", 2),
        *((name, "u8") for name in ("likely", "part_sums", "column_sums", "block_sums", "control")),
        *((name, "u8") for name in ("changes", "clocks")),
        *((name, "f8") for name in ("damping", "even", "tolerance")),
        ("time", "u8"),
        *((name, "u4") for name in ("dense", "columns", "iterations", "keeps")),
    ],
    align=True,
)
SUM = np.dtype([("weights", "u8")], align=True)

SOURCE = "programs/pagerank.cu"

_MOST_AT_ONCE = 1024  # iterations of a launch

_NARROW = 14
"""Two to it: vertices whose shares the cache of a multiprocessor holds, and room is left."""

_CACHED = 3
"""The part of the second-level cache that a column's shares take at most: what streams past them
takes some, too, and either half of the cache has its own copy of what all multiprocessors read.
"""

MOST_PIECES = 1 << 31  # rows are numbered with 32 bits

_SAMPLES = 1 << 16
_FEW_SAVED = 1 << 22  # sectors of an iteration that are not worth it
_PAID_BACK = 6  # an iteration saves at least this part of the entries, as cutting moves them all
_MISSED = 2  # sectors of a cache that take as long as one of memory does beyond that
_PIECE = 1  # sectors that a piece of a row takes: its offset, and a sum that is written and read


class Iteration(NamedTuple):
    """change: in L1."""

    change: float
    seconds: float


def share_type(single: bool) -> type[np.floating]:
    return np.float32 if single else np.float64


def cuts_of(graph: ProgramGraph, kind: DTypeLike) -> Cuts | None:
    """How cutting the rows into columns saves most, if it saves anything, by where their targets
    lead, of which some are looked at. kind: of shares.

    All is counted in sectors of the second-level cache that are read: one an entry, but for those
    of a cache nearer by; what misses that cache takes as long as some more. What is not cut has the
    first vertices, the hubs, in the caches: theirs are no savings. Where all shares stay in the
    second-level cache, rows of real graphs are the faster ones as they are.
    """
    device, rows, n = graph.device, graph.cut.rows, graph.cut.vertices
    shift = (device.cache_bytes // _CACHED // np.dtype(kind).itemsize).bit_length() - 1
    if rows.far is not None or n <= 1 << shift:
        return None
    with device.use() as cupy:
        samples = cupy.sort(rows.near[:: max(1, rows.edges // _SAMPLES)]).get()
        lengths = rows.offsets[1:] - rows.offsets[:-1]

        def count_longer(least: int) -> tuple[int, int]:
            """(rows, the first ones, of so many entries; their entries)"""
            dense = int(cupy.count_nonzero(lengths >= least))
            return dense, int(rows.offsets[dense])

        def leading_beyond(vertex: int) -> float:
            """The share of entries."""
            return 1.0 - float(np.searchsorted(samples, vertex) / len(samples))

        best, most = None, max(_FEW_SAVED, rows.edges / _PAID_BACK)
        for narrow in (0, 4, 8, 16, 32):
            narrow = min(narrow, -(-n // (1 << _NARROW)))
            first = min(n, narrow << _NARROW)
            for wide, by in ((1, 31), (-(-(n - first) // (1 << shift)), shift)):
                count = narrow + (wide if first < n else 0)
                if count < 2:
                    continue
                dense, entries = count_longer(2 * count)
                near = leading_beyond(1 << _NARROW) - leading_beyond(first) if narrow else 0.0
                missed = leading_beyond(1 << shift) if by == shift else 0.0
                saved = entries * (near + _MISSED * missed) - _PIECE * dense * count
                if saved > most and dense * count + n < MOST_PIECES:
                    best, most = Cuts(dense, count, narrow, _NARROW, by), saved
    return best


class GpuWalk:
    """Iterations over one graph. degree, weights of which are there; see Walk of pagerank.cu.

    share: float64 (n,), what each vertex begins with, in host memory, or None for everywhere alike.
    single: whether shares are held in 32 bits.
    tolerance: of the change of an iteration, after which none follows; None: none. likely: float64
    (n,), in host memory, how likely a walk is where when it teleports; None: everywhere alike.
    keeps: whether walks teleport from vertices that no edge leaves, rather than end there.
    """

    def __init__(
        self,
        graph: ProgramGraph,
        damping: float,
        tolerance: float | None,
        keeps: bool,
        likely: np.ndarray | None = None,
        share: np.ndarray | None = None,
        single: bool = False,
    ) -> None:
        self._graph, self._kind = graph, share_type(single)
        device, n = graph.device, graph.cut.vertices
        assert graph.degree is not None
        blocks = blocks_of(device)
        rows_cut, weights, cuts = _cut(graph, self._kind)
        with device.use() as cupy:
            self._shares: list[Array] = [cupy.empty(n, self._kind) for _ in range(2)]
            self._likely = None if likely is None else cupy.asarray(likely)
            self._made = {
                "part_sums": cupy.empty(rows_cut.parts, np.float64),
                "column_sums": cupy.empty(cuts.pieces, np.float64),
                "block_sums": cupy.empty(2 * 2 * blocks, np.float64),
                "changes": cupy.empty(_MOST_AT_ONCE, np.float64),
                "clocks": cupy.empty(_MOST_AT_ONCE, np.uint64),
            }
            self._begin(share)
            ends = cupy.where(
                graph.degree == 0, self._shares[0].astype(np.float64, copy=False), 0.0
            )
            lost = float(ends.sum()) if keeps else 0.0
            self._control: Array = cupy.asarray(pack(CONTROL, lost=lost).view(np.uint8))
            self._begun, self._ended = cupy.cuda.Event(), cupy.cuda.Event()
        self._turn = 0
        self._cut, self._weights = rows_cut, weights  # which stay while they are in use
        self._rows = rows_cut.packed()
        self._sum = pack(SUM, weights=weights)
        self._walk = pack(
            WALK,
            degree=graph.degree,
            shares=[share.data.ptr for share in self._shares],
            likely=self._likely,
            control=self._control,
            damping=damping,
            even=1 / n,
            tolerance=-1.0 if tolerance is None else tolerance,
            time=rows.TIME,
            keeps=keeps,
            dense=cuts.dense,
            columns=cuts.columns,
            **self._made,
        )

    def _begin(self, share: np.ndarray | None) -> None:
        own = self._shares[0]
        if share is not None:
            own.set(share.astype(self._kind, copy=False))
            return
        own.fill(1 / len(own))
        self._times_degree(own, self._graph.device.cupy.divide)

    def run(self, iterations: int) -> list[Iteration]:
        """One, or some: at most so many, until one changes less than the tolerance, or for about
        rows.TIME.
        """
        device = self._graph.device
        self._walk["iterations"] = min(iterations, _MOST_AT_ONCE)
        with device.use() as cupy:
            self._begun.record()
            self._launch()
            control = self._control.get().view(CONTROL)[0]
            done, self._turn = int(control["done"]), int(control["turn"])
            changes, clocks = (self._made[name][:done].get() for name in ("changes", "clocks"))
            seconds = cupy.cuda.get_elapsed_time(self._begun, self._ended) / 1e3
        each = clocks * (seconds / max(1, clocks.sum()))
        return [Iteration(*some) for some in zip(changes.tolist(), each.tolist(), strict=True)]

    def _launch(self) -> None:
        kernel(self._graph, "pagerank", self._kind)(self._rows, self._sum, self._walk)
        self._ended.record()

    def share(self) -> np.ndarray:
        """float64 (n,): what each vertex's edges carry now, by their weight: to go on from."""
        with self._graph.device.use():
            return self._shares[self._turn].get().astype(np.float64, copy=False)

    def ranks(self) -> np.ndarray:
        """float64 (n,), in host memory. The end: the walk is over."""
        with self._graph.device.use() as cupy:
            share = self._shares[self._turn].astype(np.float64, copy=False)
            self._times_degree(share, cupy.multiply)
            return share.get()

    def _times_degree(self, share: Array, by: Any) -> None:
        """Multiply, or divide, by the degree, where there is one."""
        degree, cupy = self._graph.degree, self._graph.device.cupy
        by(share, cupy.where(degree == 0, 1.0, degree), out=share)


def _cut(graph: ProgramGraph, kind: DTypeLike) -> tuple[CutRows, Array | None, Cuts]:
    """Rows, in columns where that pays and there is room, with their weights."""
    cuts, device, weighted = cuts_of(graph, kind), graph.device, graph.weights is not None
    if cuts is not None:
        needed = rows.columns_bytes(device, graph.cut, cuts, weighted) + 8 * cuts.pieces
        if needed <= graph.spare:
            made = rows.in_columns(device, graph.cut, cuts, graph.weights)
            if made is not None:
                return *made, cuts
    return graph.cut, graph.weights, Cuts(0, 0, 0, 0, 0)


def warm_up(graph: ProgramGraph, single: bool, functions: Sequence[str] = ("pagerank",)) -> None:
    """Compile, or load from the cache, all that a walk may call."""
    kind = share_type(single)
    for function in functions:
        kernel(graph, function, kind)
    if cuts_of(graph, kind) is not None:
        rows.warm_up_columns(graph.device, graph.cut.rows.offset_type)


def kernel(graph: ProgramGraph, function: str, share: DTypeLike) -> Callable[..., None]:
    whole = graph.cut.rows
    operator = "Sum" if graph.weights is None else f"WeightedSum<{c_name(str(graph.weight_type))}>"
    kinds: Sequence[str] = (
        whole.offset_type,
        operator,
        graph.cut.tiered,
        c_name(np.dtype(share).name),
    )
    return kernel_of(graph.device, SOURCE, function, kinds)


def device_bytes(vertices: int, personalized: bool) -> int:
    """That a walk holds beside the graph, its degrees included, at most."""
    degree, shares, likely, while_it_begins = 8, 2 * 8, 8 * personalized, 8 + 1
    return (degree + shares + likely + while_it_begins) * vertices
