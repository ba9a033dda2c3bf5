"""PageRank on a device. The definition is reference.pagerank; the kernel stands in
cuda/walks/pagerank.cu (pagerank.cuh).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..gpu.device import pack
from ..gpu.graph import Array
from . import gather, rows
from .gather import SUM, arrange, kernel
from .rows import CutRows, ProgramGraph, blocks_of

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
        *((name, "u8") for name in ("likely", "block_sums", "control", "changes", "clocks")),
        *((name, "f8") for name in ("damping", "even", "tolerance")),
        ("time", "u8"),
        *((name, "u4") for name in ("iterations", "keeps")),
    ],
    align=True,
)
_SOURCE = "walks/pagerank.cu"

_MOST_AT_ONCE = 1024  # iterations of a launch


class Iteration(NamedTuple):
    """An iteration that was done. change: in L1."""

    change: float
    seconds: float


def share_type(single: bool) -> type[np.floating]:
    return np.float32 if single else np.float64


class GpuWalk:
    """Iterations of a walk over one graph, whose degree and weights are there; see Walk of
    pagerank.cuh.

    share: float64 (n,), the shares that vertices begin with, in host memory; or None for the same
    everywhere. single: whether shares are held in 32 bits. tolerance: the change of an iteration
    below which no other iteration follows; None for no such limit. likely: float64 (n,), in host
    memory, the probability that a teleport ends at each vertex; None if it is the same everywhere.
    keeps: whether walks teleport from vertices that no edge leaves, rather than end there. cut:
    rows to gather along, if these are not the graph's own.
    """

    source = _SOURCE
    function = "pagerank"

    def __init__(
        self,
        graph: ProgramGraph,
        damping: float,
        tolerance: float | None,
        keeps: bool,
        likely: np.ndarray | None = None,
        share: np.ndarray | None = None,
        single: bool = False,
        cut: CutRows | None = None,
    ) -> None:
        self._graph, self._kind = graph, share_type(single)
        device, n = graph.device, graph.vertices
        assert graph.degree is not None
        blocks = blocks_of(device)
        rows_read = graph.cut if cut is None else cut
        self._in = arrange(graph, rows_read, graph.weights, self._kind, graph.room)
        # Compiled before any launch is timed.
        self._kernel = kernel(
            graph, graph.cut, self.function, self._kind, self._in.tiling, self.source
        )
        with device.use() as cupy:
            self._likely = None if likely is None else cupy.asarray(likely)
            self._made = {
                "block_sums": cupy.empty(2 * 2 * blocks, np.float64),
                "changes": cupy.empty(_MOST_AT_ONCE, np.float64),
                "clocks": cupy.empty(_MOST_AT_ONCE, np.uint64),
            }
            first = self._first(share)
            ends = cupy.where(graph.degree == 0, first.astype(np.float64, copy=False), 0.0)
            lost = float(ends.sum()) if keeps else 0.0
            del ends
            self._shares = self._hold(first)
            del first
            self._control: Array = cupy.asarray(pack(CONTROL, lost=lost).view(np.uint8))
            self._begun, self._ended = cupy.cuda.Event(), cupy.cuda.Event()
        self._turn = 0
        self._sum = pack(SUM, weights=self._in.weights)
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
            **self._made,
        )

    def _first(self, share: np.ndarray | None) -> Array:
        cupy, n = self._graph.device.cupy, self._graph.vertices
        if share is not None:
            return cupy.asarray(share.astype(self._kind, copy=False))
        first = cupy.full(n, 1 / n, self._kind)
        self._times_degree(first, cupy.divide)
        return first

    def run(self, iterations: int) -> list[Iteration]:
        """Run one iteration or more: at most ``iterations``, until one changes less than the
        tolerance, or for about rows.TIME.
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
        durations = clocks * (seconds / max(1, clocks.sum()))
        return [
            Iteration(*facts) for facts in zip(changes.tolist(), durations.tolist(), strict=True)
        ]

    def _launch(self) -> None:
        self._kernel(self._in.packed, self._sum, self._walk)
        self._ended.record()

    def share(self) -> np.ndarray:
        """Return what each vertex's edges carry now, by their weight: float64 (n,). A walk can go
        on from it.
        """
        with self._graph.device.use():
            return self._now().get().astype(np.float64, copy=False)

    def ranks(self) -> np.ndarray:
        """Return the PageRank of each vertex: float64 (n,), in host memory. The walk is over
        afterwards.
        """
        with self._graph.device.use() as cupy:
            share = self._now().astype(np.float64, copy=False)
            self._times_degree(share, cupy.multiply)
            return share.get()

    def _hold(self, first: Array) -> list[Array]:
        """Return arrays of shares, for two turns or for all. The first array has the shares
        ``first``, by vertex.
        """
        return [first, self._graph.device.cupy.empty_like(first)]

    def _now(self) -> Array:
        """Return the current shares by vertex, shape (n,)."""
        return self._shares[self._turn]

    def _times_degree(self, share: Array, by: Any) -> None:
        """Multiply, or divide, by the degree, where there is one."""
        degree, cupy = self._graph.degree, self._graph.device.cupy
        by(share, cupy.where(degree == 0, 1.0, degree), out=share)


def warm_up(
    graph: ProgramGraph,
    single: bool,
    functions: Sequence[str] = ("pagerank",),
    source: str = _SOURCE,
) -> None:
    """Compile, or load from the cache, all kernels that a walk may call."""
    gather.warm_up(graph, share_type(single), functions, source)


def device_bytes(vertices: int, personalized: bool) -> int:
    """Return the bytes that a walk holds beside the graph at most, its degrees included."""
    degree, shares, likely, while_it_begins = 8, 2 * 8, 8 * personalized, 8 + 1
    return (degree + shares + likely + while_it_begins) * vertices
