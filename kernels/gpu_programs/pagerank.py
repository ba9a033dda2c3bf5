"""PageRank on a device: the definition is reference.pagerank, the kernel stands in
cuda/programs/pagerank.cu.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..gpu.device import pack
from ..gpu.graph import Array
from . import rows
from .rows import ProgramGraph, blocks_of, c_name, kernel_of

CONTROL = np.dtype(
    [
        ("arrived", "u8"),
        *((name, "f8") for name in ("lost", "change")),
        *((name, "u4") for name in ("done", "turn", "stop")),
    ],
    align=True,
)
WALK = np.dtype(
    [
        ("degree", "u8"),
        ("shares", "u8", 2),
        *((name, "u8") for name in ("likely", "part_sums", "block_sums", "control")),
        *((name, "u8") for name in ("changes", "clocks")),
        *((name, "f8") for name in ("damping", "even", "tolerance")),
        ("time", "u8"),
        *((name, "u4") for name in ("iterations", "keeps")),
    ],
    align=True,
)
SUM = np.dtype([("weights", "u8")], align=True)

_MOST_AT_ONCE = 1024  # iterations of a launch


class Iteration(NamedTuple):
    """change: in L1."""

    change: float
    seconds: float


class GpuWalk:
    """Iterations over one graph. degree, weights of which are there; see Walk of pagerank.cu.

    share: float64 (n,), what each vertex begins with, in host memory, or None for everywhere alike.
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
    ) -> None:
        self._graph = graph
        device, n, blocks = graph.device, graph.cut.vertices, blocks_of(graph.device)
        assert graph.degree is not None
        with device.use() as cupy:
            self._shares: list[Array] = [cupy.empty(n, np.float64) for _ in range(2)]
            self._likely = None if likely is None else cupy.asarray(likely)
            self._made = {
                "part_sums": cupy.empty(graph.cut.parts, np.float64),
                "block_sums": cupy.empty(2 * 2 * blocks, np.float64),
                "changes": cupy.empty(_MOST_AT_ONCE, np.float64),
                "clocks": cupy.empty(_MOST_AT_ONCE, np.uint64),
            }
            self._begin(share)
            ends = cupy.where(graph.degree == 0, self._shares[0], 0.0)
            lost = float(ends.sum()) if keeps else 0.0
            self._control: Array = cupy.asarray(pack(CONTROL, lost=lost).view(np.uint8))
            self._begun, self._ended = cupy.cuda.Event(), cupy.cuda.Event()
        self._turn = 0
        self._rows = graph.cut.packed()
        self._sum = pack(SUM, weights=graph.weights)
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

    def _begin(self, share: np.ndarray | None) -> None:
        own = self._shares[0]
        if share is not None:
            own.set(share)
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
            launched = kernel(self._graph)
            self._begun.record()
            launched(self._rows, self._sum, self._walk)
            self._ended.record()
            control = self._control.get().view(CONTROL)[0]
            done, self._turn = int(control["done"]), int(control["turn"])
            changes, clocks = (self._made[name][:done].get() for name in ("changes", "clocks"))
            seconds = cupy.cuda.get_elapsed_time(self._begun, self._ended) / 1e3
        each = clocks * (seconds / max(1, clocks.sum()))
        return [Iteration(*some) for some in zip(changes.tolist(), each.tolist(), strict=True)]

    def share(self) -> np.ndarray:
        """What each vertex's edges carry now, by their weight: to go on from."""
        with self._graph.device.use():
            return self._shares[self._turn].get()

    def ranks(self) -> np.ndarray:
        """float64 (n,), in host memory. The end: the walk is over."""
        with self._graph.device.use() as cupy:
            share = self._shares[self._turn]
            self._times_degree(share, cupy.multiply)
            return share.get()

    def _times_degree(self, share: Array, by: Any) -> None:
        """Multiply, or divide, by the degree, where there is one."""
        degree, cupy = self._graph.degree, self._graph.device.cupy
        by(share, cupy.where(degree == 0, 1.0, degree), out=share)


def kernel(graph: ProgramGraph) -> Callable[..., None]:
    rows = graph.cut.rows
    operator = "Sum" if graph.weights is None else f"WeightedSum<{c_name(str(graph.weight_type))}>"
    kinds: Sequence[str] = (rows.offset_type, operator, graph.cut.tiered)
    return kernel_of(graph.device, "programs/pagerank.cu", "pagerank", kinds)


def device_bytes(vertices: int, personalized: bool) -> int:
    """That a walk holds beside the graph, its degrees included."""
    degree, shares, likely, while_it_begins = 8, 2 * 8, 8 * personalized, 8 + 1
    return (degree + shares + likely + while_it_begins) * vertices
