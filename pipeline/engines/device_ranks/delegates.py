"""A rank on a device in the layout of delegates: what it loads from a store, and what it finds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ....kernels.base.arrays import total_bytes
from ....kernels.base.graph import UNREACHED
from ....kernels.base.team import Team
from ....kernels.gpu.device import Device, DeviceMemoryError
from ....kernels.gpu.graph import MOST_SHORT, NEXT, SHORT_ROW
from ....kernels.gpu.search import widened
from ....kernels.gpu_ranks import delegate_layout, delegate_mail
from ....kernels.gpu_ranks import search as rank_search
from ....kernels.gpu_ranks.delegate_layout import DelegateLayout, DelegateLevel
from ....kernels.gpu_ranks.delegate_rows import MOST_NUMBERS, DelegateRows, DelegateRowsMaker
from ....kernels.gpu_ranks.delegate_structures import ARRIVAL, CONTROL, LEVEL
from ....kernels.gpu_ranks.numbering import ALIGNED, DelegateNumbering, aligned
from ....kernels.gpu_ranks.search import Search
from ....partition.store.layout import ends_of, kept_subgraphs, local_rows
from ....partition.store.store import Store
from ...ranks.communicator import Communicator, Message
from ..ranks.result import Part, RankResult
from .needs import Needs


@dataclass(frozen=True)
class DelegatesOfRank:
    """A rank in the layout of delegates. Implements layouts.LayoutOfRank."""

    store: Store
    rank: int
    ranks: int

    kernel = delegate_layout.KERNEL

    @property
    def subgraphs(self) -> list[str]:
        """Return the names of the subgraphs, with delegates as targets first: in a row, delegates
        (hubs) come before normal vertices.
        """
        info = self.store.info
        names = kept_subgraphs(info.grid, info.directed)
        return sorted(names, key=lambda name: ends_of(name)[1] == "n")

    @property
    def numbers(self) -> tuple[int, int]:
        info = self.store.info
        skipped = info.delegates if info.order == "degree" else 0
        normals = sum(
            aligned(
                local_rows(info.vertices, info.partitions, p)
                - local_rows(skipped, info.partitions, p)
            )
            for p in self._parts
        )
        nn = self._target_bytes[0] // 4
        ghosts = aligned(min(nn, info.vertices)) + self.ranks * ALIGNED
        return self._delegates + normals, ghosts

    def needs(self, device: Device) -> Needs:
        """Return the bytes that a rank needs. All arrays must be on the device, the targets of nn
        included, except the targets of dd, dn and nd.
        """
        info, delegates = self.store.info, self._delegates
        nn, forward, reverse = self._target_bytes
        own_numbers, ghosts = self.numbers
        normals, numbers = own_numbers - delegates, own_numbers + ghosts
        if nn // 4 >= MOST_SHORT or numbers > MOST_NUMBERS:
            raise DeviceMemoryError(
                f"rank {self.rank} of {self.ranks} has {nn // 4:,} edges between normal vertices "
                f"and would know up to {numbers:,} vertices: too many for a GPU"
            )
        sizes = delegate_layout.sizes_of(device, own_numbers, numbers, own_numbers)
        long_rows = max(forward, reverse) // (4 * SHORT_ROW)
        searching = total_bytes(
            [
                *rank_search.state(sizes, np.uint64, long_rows, CONTROL, LEVEL),
                rank_search.wide_distance(sizes),
                *delegate_layout.state(sizes, delegates, self.ranks),
                *delegate_layout.tables(min(normals, nn // 4), delegates, own_numbers),
                *delegate_mail.shared(self.ranks, delegates, own_numbers, numbers),
            ]
        )
        # With fill positions.
        offsets = 8 * 2 * (own_numbers * (2 if info.directed else 1) + normals)
        kinds = 4 if info.directed else 2  # subgraphs that have a row for each delegate
        parts = len(self._parts)
        stored_offsets = 8 * (kinds * delegates * parts + 3 * (own_numbers + parts))
        columns = 4 * (1 + NEXT) * own_numbers
        # The owner of a ghost keeps its number, too. Numbering the ghosts needs a bitmap of all
        # vertices and the numbers of delegates.
        numbering = 4 * 2 * ghosts + info.vertices // 4 + 4 * delegates
        held = nn + offsets + stored_offsets + columns + numbering + searching
        targets = [forward, reverse] if info.directed else [forward]
        return Needs(held, targets, own_numbers, own_numbers, 4 * ghosts)

    def maker(self, device: Device, near: int, team: Team) -> DelegateRowsMaker:
        info = self.store.info
        table = None if info.order == "degree" else self.store.delegates(team)
        delegates = info.delegates if table is None else table
        numbering = DelegateNumbering.of(self.ranks, info.partitions, info.vertices, delegates)
        return DelegateRowsMaker(device, numbering, self.rank, info.directed, table, near)

    def search_of(self, device: Device, rows: DelegateRows) -> DelegateLayout:
        return DelegateLayout(device, rows)

    def result(self, search: Search[DelegateLayout], communicator: Communicator) -> RankResult:
        """Return the rank's result. Rank 0 receives the distances of delegates from their owners,
        and their parents from the ranks that found them.
        """
        rows, numbering = search.layout.rows, search.layout.rows.numbering
        rank, end = self.rank, numbering.first_normal
        with search.device.use():
            distance = widened(search.distance.get())
            parent = search.parent[: rows.own_numbers].get()
            has_parent = search.layout.knows()[:end].get()
        parts = {
            p: Part(*_parts(numbering, rank, p, distance, parent)) for p in numbering.own(rank)
        }
        known = np.flatnonzero(has_parent).astype(np.uint32)
        own_span = slice(*numbering.own_delegates(rank))
        told: Message = [distance[own_span], known, parent[known]]
        nothing: Message = []
        peers = range(communicator.size)
        came = communicator.exchange([told if peer == 0 else nothing for peer in peers])
        if rank:
            return RankResult(parts, None)
        parents = np.full(end, UNREACHED, np.uint32)
        for peer, (distances, places, theirs) in enumerate(came):
            distance[slice(*numbering.own_delegates(peer))] = distances
            parents[places] = theirs
        numbers = rows.delegate_numbers(np)
        return RankResult(parts, Part(distance[numbers], parents[numbers]))

    def found(self, level: DelegateLevel) -> int:
        """Return the vertices found in a level. Delegates count on rank 0 only, since all ranks
        have them.
        """
        return level.normals if self.rank else level.found

    def step(self, direction: str) -> tuple[dict[str, str], int]:
        directions = {"nn": "push", "nd": direction, "dn": direction, "dd": direction}
        return directions, self.ranks * (self.ranks - 1) * ARRIVAL.itemsize

    @property
    def _parts(self) -> range:
        return range(self.rank, self.store.info.partitions, self.ranks)

    @property
    def _delegates(self) -> int:
        """Return a bound on the numbers of delegates: those of each partition begin at a multiple
        of ALIGNED.
        """
        return aligned(self.store.info.delegates) + self.store.info.partitions * ALIGNED

    @property
    def _target_bytes(self) -> tuple[int, int, int]:
        """Return the bytes of the targets of nn, of the other forward subgraphs, and of their
        reverses.
        """
        store, info = self.store, self.store.info
        sums = [0, 0, 0]
        for name in kept_subgraphs(info.grid, info.directed):
            kind = 0 if name == "nn" else 2 if name.startswith("reverse-") else 1
            for p in self._parts:
                sums[kind] += sum(store.files[file].bytes for file in store.shards(p, name))
        return sums[0], sums[1], sums[2]


def _parts(
    numbering: DelegateNumbering, rank: int, partition: int, *arrays: NDArray
) -> Iterator[NDArray]:
    """Yield, for each array, the values of a partition's vertices. Values at delegates are
    meaningless.
    """
    _, first, vertices, skipped = numbering.normal_segments(rank)[partition]
    for values in arrays:
        yield np.concatenate([values[:1].repeat(skipped), values[first : first + vertices]])
