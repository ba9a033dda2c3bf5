"""Graph500's protocol by several workers, each with one GPU: they generate a graph, build it on
their GPUs and search it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...kernels.base.team import Team
from ...kernels.gpu import prepare as gpu_prepare
from ...kernels.gpu.device import Device, open_device
from ...kernels.gpu.search import PUSH_COST
from ...kernels.gpu_ranks.delegate_layout import DelegateLayout
from ...kernels.gpu_ranks.delegate_rows import DelegateRows
from ...kernels.gpu_ranks.grid_layout import GridLayout
from ...kernels.gpu_ranks.search import Search
from ...partition.errors import InputError
from ...partition.store.grid import Grid, LayoutName, grid_of
from ...partition.store.layout import table_1_bytes
from ..build.generate import Recipe
from ..build.generated import Prepared, prepare
from ..ranks.communicator import Communicator, barrier
from ..ranks.jobs import Way
from ..ranks.nccl import device_arrays
from ..run.resources import TIMEOUT_SECONDS
from .device import draw_positions, facts_of, make_edges, measure
from .protocol import Benched, BenchOptions, Measured, run_all
from .searchers import DeviceRankCheck, DeviceRankSearcher, Exchanged, tell


@dataclass(frozen=True)
class Placing:
    """The way ranks share a graph that they generate.

    grid: for layout 2d; None for the squarest. threshold: above which degree vertices are
    delegates; None for the automatic threshold. push_only: whether searches in a grid only push, as
    in the grid's paper. Raises InputError for options that exclude each other.
    """

    layout: LayoutName = "delegate"
    grid: Grid | None = None
    threshold: int | None = None
    push_only: bool = False

    def __post_init__(self) -> None:
        if self.grid is not None and self.layout != "2d":
            raise InputError(f"a grid ({self.grid}) is only for --layout 2d, not {self.layout}")
        if self.threshold is not None and self.layout != "delegate":
            raise InputError(f"--threshold is only for --layout delegate, not {self.layout}")

    def grid_for(self, ranks: int) -> Grid | None:
        """Return the grid for a number of ranks; None for the layout of delegates. Raises
        InputError for a grid of another number of partitions.
        """
        if self.grid is not None and self.grid.partitions != ranks:
            raise InputError(
                f"a grid of {self.grid} needs {self.grid.partitions} ranks, not {ranks}"
            )
        return grid_of(self.layout, ranks, self.grid)


@dataclass(frozen=True)
class BenchJob:
    """A bench of a generated graph. Implements RankJob; on rank 0, ``run`` returns Measured,
    Benched, and Exchanged (None for a single rank).
    """

    recipe: Recipe
    options: BenchOptions
    placing: Placing
    timeout: float = TIMEOUT_SECONDS
    device: str = "cuda"
    device_limit: int | None = None

    @property
    def paths(self) -> list[str]:
        return []

    def for_device(self, device: str, why: str = "") -> BenchJob:
        if device != "cuda":
            raise InputError(f"a generated graph needs GPUs: {why}")
        return replace(self, device=device)

    def fresh_attempt(self) -> BenchJob:
        return self

    def with_extra(self, extra_bytes: int) -> BenchJob:
        return self

    def get_ready(self, rank: int, size: int, threads: int) -> list[Way]:
        device = open_device(0, self.device_limit)
        gpu_prepare.warm_up(device, self.recipe.candidates, False)
        return [Way(0, self)]  # no host memory: the graph is on the devices

    def run(
        self, communicator: Communicator, team: Team
    ) -> tuple[Measured, Benched, Exchanged | None] | None:
        device = open_device(0, self.device_limit)
        if communicator.size == 1:  # a single rank has no delegates
            return *measure(self.recipe, self.options, device), None
        with device_arrays(communicator, device) as communicator:
            return self._run(device, communicator)

    def _run(
        self, device: Device, communicator: Communicator
    ) -> tuple[Measured, Benched, Exchanged | None] | None:
        rank = communicator.rank
        with device.use() as cupy:
            batches = make_edges(self.recipe, device, rank, communicator.size)
            cupy.cuda.Device().synchronize()
            barrier(communicator)
            began = time.perf_counter()
            grid = self.placing.grid_for(communicator.size)
            prepared = prepare(
                device, batches, self.recipe.domain, communicator, self.placing.threshold, grid
            )
            cupy.get_default_memory_pool().free_all_blocks()
            search = self._search(device, prepared, communicator)
        try:
            search.connect(communicator.exchange)
            with device.use() as cupy:
                cupy.cuda.Device().synchronize()
            done = time.perf_counter()
            with_edges = _with_edges(prepared)
            used = sum(m[0].tolist()[0] for m in tell(communicator, with_edges))
            chosen, ids = draw_positions(prepared.id_of_position, used, self.options, device)
            check = DeviceRankCheck(search, communicator, prepared.rows_from)
            searcher = DeviceRankSearcher(search, communicator, check)
            searcher.warm_up(chosen[0])
            compiled = time.perf_counter()
            timings = run_all(searcher, chosen, ids, None)
        finally:
            search.close()
        barrier(communicator)  # all ranks have closed their memory
        exchanged = searcher.exchanged(timings, _table_bytes(prepared, communicator))
        vertices = prepared.rows.numbering.vertices
        facts = facts_of(self.recipe, vertices, prepared.input_rows, prepared.edges)
        facts |= {"partitions": communicator.size, "layout": self.placing.layout}
        threshold = prepared.threshold
        if threshold is None:
            direction = "push" if self.placing.push_only else "push-pull"
            facts |= {"grid": str(grid), "direction": direction}
        else:
            facts |= {
                "threshold": threshold.value,
                "delegates": threshold.delegates,
                "nn_share": threshold.nn_share,
            }
        if rank:
            return None
        benched = Benched(facts, False, ids, self.options.threads, done - began)
        return Measured(timings, 0.0, compiled - done), benched, exchanged

    def _search(
        self, device: Device, prepared: Prepared, communicator: Communicator
    ) -> Search[Any]:
        if isinstance(prepared.rows, DelegateRows):
            return Search(DelegateLayout(device, prepared.rows), communicator.check)
        push_cost = 0.0 if self.placing.push_only else PUSH_COST
        return Search(GridLayout(device, prepared.rows), communicator.check, push_cost)


def _with_edges(prepared: Prepared) -> int:
    """Return the number of vertices of a rank that input rows touch; a delegate counts on the rank
    that owns it.
    """
    return int((prepared.rows_from > 0).sum())


def _table_bytes(prepared: Prepared, communicator: Communicator) -> int | None:
    """Return the bytes of all ranks' graphs by the formula of Table I; None for a grid."""
    if prepared.threshold is None:
        return None
    counts = prepared.entries["nn"], sum(prepared.entries.values())
    nn, entries = np.sum([m[0].tolist() for m in tell(communicator, *counts)], axis=0).tolist()
    vertices, delegates = prepared.rows.numbering.vertices, prepared.threshold.delegates
    return table_1_bytes(vertices, delegates, communicator.size, int(entries), int(nn))
