"""A rank on a device in a grid of partitions (layouts 2d and 1d): what it loads from a store, and
what it finds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ....kernels.base.arrays import total_bytes
from ....kernels.base.team import Team
from ....kernels.gpu.device import Device, DeviceMemoryError
from ....kernels.gpu.graph import MOST_VERTICES, NEXT, SHORT_ROW
from ....kernels.gpu.search import widened
from ....kernels.gpu_ranks import grid_layout, grid_mail
from ....kernels.gpu_ranks import search as rank_search
from ....kernels.gpu_ranks.grid_layout import GridLayout, GridLevel
from ....kernels.gpu_ranks.grid_mail import Letters, inboxes_of
from ....kernels.gpu_ranks.grid_rows import GridNumbering, GridRows, GridRowsMaker
from ....kernels.gpu_ranks.grid_structures import ARRIVAL, CONTROL, LEVEL
from ....kernels.gpu_ranks.numbering import aligned
from ....kernels.gpu_ranks.search import Search
from ....partition.store.layout import kept_subgraphs
from ....partition.store.store import Store
from ...ranks.communicator import Communicator
from ..ranks.result import Part, RankResult
from .needs import Needs


@dataclass(frozen=True)
class GridOfRank:
    """A rank in a grid of partitions. Implements layouts.LayoutOfRank."""

    store: Store
    rank: int
    ranks: int

    kernel = grid_layout.KERNEL

    @property
    def subgraphs(self) -> tuple[str, ...]:
        info = self.store.info
        return tuple(kept_subgraphs(info.grid, info.directed))

    @property
    def numbers(self) -> tuple[int, int]:
        known = self._numbering.known(self.rank)
        return known.own_numbers, known.numbers - known.own_numbers

    def needs(self, device: Device) -> Needs:
        """Return the bytes that a rank needs. All arrays except the targets of its tiles must be on
        the device.
        """
        store, info = self.store, self.store.info
        known = self._numbering.known(self.rank)
        own_numbers, rows, numbers = known.own_numbers, known.row_numbers, known.numbers
        if numbers > MOST_VERTICES:
            raise DeviceMemoryError(
                f"rank {self.rank} of {self.ranks} would know {numbers:,} vertices: too many for "
                "a GPU"
            )
        parts, names = range(self.rank, info.partitions, self.ranks), self.subgraphs
        targets = [
            sum(store.files[file].bytes for p in parts for file in store.shards(p, name))
            for name in names
        ]
        sizes = grid_layout.sizes_of(known)
        long_rows = max(targets) // (4 * SHORT_ROW)
        searching = total_bytes(
            [
                *rank_search.state(sizes, np.uint64, long_rows, CONTROL, LEVEL),
                rank_search.wide_distance(sizes),
                *grid_layout.state(known),
                *grid_layout.tables(known),
                *grid_mail.shared(known, self.ranks),
            ]
        )
        offsets = 8 * len(names) * (3 * rows + len(parts) * (rows + 1))
        columns = 4 * (1 + NEXT) * rows
        empty = rows  # a byte for each row, while empty rows are looked up
        # Messages about a partition that come through the host: bitmap, list, wanted vertices.
        told = inboxes_of(Letters(self._numbering), self.rank)
        inboxes = 3 * sum(aligned(known.at[p].vertices) // 8 for _, p in told)
        held = offsets + columns + empty + inboxes + searching
        return Needs(held, targets, own_numbers, rows)

    def maker(self, device: Device, near: int, team: Team) -> GridRowsMaker:
        return GridRowsMaker(device, self._numbering, self.rank, self.store.info.directed, near)

    def search_of(self, device: Device, rows: GridRows) -> GridLayout:
        return GridLayout(device, rows)

    def result(self, search: Search[GridLayout], communicator: Communicator) -> RankResult:
        known = search.layout.rows.known
        with search.device.use():
            distance = widened(search.distance.get())
            parent = search.parent[: known.own_numbers].get()
        parts = {
            p: Part(distance[first : first + vertices], parent[first : first + vertices])
            for p, first, vertices, _ in known.segments[: known.own]
        }
        no_delegates = Part(np.empty(0, np.int32), np.empty(0, np.uint32))
        return RankResult(parts, None if self.rank else no_delegates)

    def found(self, level: GridLevel) -> int:
        return level.found

    def step(self, direction: str) -> tuple[dict[str, str], int]:
        grid, pulled = self._numbering, direction == "pull"
        expands = 1 + (pulled and grid.columns > 1)
        rounds = expands + ((grid.rows if pulled else grid.columns) > 1)
        return {"all": direction}, rounds * self.ranks * (self.ranks - 1) * ARRIVAL.itemsize

    @property
    def _numbering(self) -> GridNumbering:
        grid = self.store.info.grid
        assert grid is not None
        return GridNumbering(self.ranks, grid.rows, grid.columns, self.store.info.vertices)
