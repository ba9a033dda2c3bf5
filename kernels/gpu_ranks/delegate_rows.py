"""The rows of one rank with delegates, made on its device (cuda/rows/delegate_rows.cu).

Algorithm 1 of Pan, Pearce, Owens (Scalable Breadth-First Search on a GPU Cluster) says which rank
has an edge. In numbers of its own (numbering.py) targets along nn need 32 bits, and a ghost is
marked as any vertex is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base.graph import UNREACHED
from ..gpu.device import Device, DeviceError, pack
from ..gpu.graph import Array, DeviceGraph, Rows, derive
from ..gpu.made_rows import MadeRows, Shard
from .numbering import ALIGNED, DelegateNumbering, aligned, origins_of

MOST_NUMBERS = 2**32 - 2 * ALIGNED

_SOURCE = "rows/delegate_rows.cu"
NUMBERS = np.dtype([("table", "u8"), ("plus", "i8")])
_OWNER = np.dtype([(name, "u4") for name in ("first", "marked", "before", "ghosts")])
_OWNERS = np.dtype(
    [("of", "u8"), *((name, "u4") for name in ("partitions", "ranks", "rank", "normals"))],
    align=True,
)


@dataclass(frozen=True)
class DelegateRows:
    """A rank's rows on its device.

    graph: rows of dd, dn and nd, of delegates and own vertices. nn_offsets: uint32, a row for each
    number of a normal vertex; nn_targets: uint32, the rank's numbers. ghosts: of each owner uint32
    (g,), as the owner numbers them; the rank itself numbers them from ghost_first on. delegates:
    uint32, their global ids, as a store has them; None where hubs are first.
    """

    numbering: DelegateNumbering
    rank: int
    graph: DeviceGraph
    nn_offsets: Array
    nn_targets: Array
    ghosts: list[Array]
    ghost_first: list[int]
    delegates: NDArray[np.uint32] | None

    def number(self, vertex: int) -> int | None:
        """Return the rank's number of a vertex by its global id; None if it does not have the
        vertex.
        """
        if self.delegates is not None:
            place = np.flatnonzero(self.delegates == vertex)
            if len(place):
                partitions = self.numbering.partitions
                peers = self.delegates[: place[0]] % partitions == vertex % partitions
                first = self.numbering.delegate_segments[vertex % partitions].first
                return first + int(np.count_nonzero(peers))
        return self.numbering.number(self.rank, vertex)

    def delegate_numbers(self, xp: Any) -> Array:
        """Return the rank's numbers of delegates: see DelegateNumbering."""
        return self.numbering.delegate_numbers(xp, self.delegates)

    def delegate_ids(self, xp: Any) -> Array | None:
        """Return the global ids of delegates by number: uint32, UNREACHED where there is no
        delegate. Returns None where hubs are first.
        """
        if self.delegates is None:
            return None
        ids = xp.full(self.numbering.first_normal, UNREACHED, np.uint32)
        ids[self.delegate_numbers(xp)] = xp.asarray(self.delegates)
        return ids

    def global_ids(self, cupy: Any) -> Array:
        """Return the global ids by the rank's numbers: uint32, UNREACHED where there is no
        vertex.
        """
        numbering = self.numbering
        found = cupy.full(self.numbers, UNREACHED, np.uint32)
        segments = [*numbering.normal_segments(self.rank).values()]
        delegates = self.delegate_ids(cupy)
        if delegates is None:
            segments += numbering.delegate_segments.values()
        else:
            found[: numbering.first_normal] = delegates
        for partition, first, vertices, skipped in segments:
            places = cupy.arange(skipped, skipped + vertices, dtype=np.uint32)
            ids = places * np.uint32(numbering.partitions) + np.uint32(partition)
            found[first : first + vertices] = ids
        for owner, ghosts in enumerate(self.ghosts):
            at = self.ghost_first[owner]
            found[at : at + len(ghosts)] = _ghost_ids(cupy, numbering, owner, ghosts)
        return found

    def owned_ids(self, cupy: Any) -> Array:
        """Return the global ids, by own number, of the vertices that the rank owns."""
        ids = self.global_ids(cupy)[: self.own_numbers]
        first, end = self.numbering.own_delegates(self.rank)
        ids[:first] = UNREACHED
        ids[end : self.numbering.first_normal] = UNREACHED
        return ids

    @property
    def ranks(self) -> int:
        return self.numbering.ranks

    @property
    def own_numbers(self) -> int:
        """Return the number of delegates and own normal vertices, where their numbers end."""
        return self.numbering.own_numbers(self.rank)

    @property
    def numbers(self) -> int:
        return self.own_numbers + sum(aligned(len(vertices)) for vertices in self.ghosts)

    @property
    def bytes(self) -> int:
        """Count the bytes of the graph: offsets, targets, numbers of ghosts."""
        ghosts = sum(vertices.nbytes for vertices in self.ghosts)
        return self.graph.bytes + self.nn_offsets.nbytes + self.nn_targets.nbytes + ghosts


@dataclass
class DelegateRowsMaker:
    """A maker of rows, which takes subgraphs: first their offsets (``count``), then their targets
    (``place``).

    delegates: their global ids; None where hubs are first. near: entries of the rows of dd,
    dn and nd, and of their reverse, that stand on the device; the others are pinned in host memory.
    None: all.
    """

    device: Device
    numbering: DelegateNumbering
    rank: int
    directed: bool
    delegates: NDArray[np.uint32] | None = None
    near: int | None = None
    _made: dict[str, MadeRows] = field(default_factory=dict)
    _offsets: dict[tuple[int, str], Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        numbering = self.numbering
        rows = numbering.own_numbers(self.rank)
        self._segments = numbering.normal_segments(self.rank)
        with self.device.use() as cupy:
            self._delegate_numbers = numbering.delegate_numbers(cupy, self.delegates)
            for name in ("rows", "reverse") if self.directed else ("rows",):
                self._made[name] = MadeRows(cupy.zeros(rows, np.uint64))
            self._made["nn"] = MadeRows(cupy.zeros(rows - numbering.first_normal, np.uint64))

    def count(self, partition: int, name: str, offsets: NDArray | Array) -> None:
        """Take a subgraph's offsets: all of them before the first targets."""
        with self.device.use() as cupy:
            offsets = cupy.asarray(offsets)
            self._offsets[partition, name] = offsets
            self._add(self._making(name).counts, partition, name, offsets)

    def begin(self) -> None:
        """Make room for targets. Call this between the last ``count`` and the first ``place``."""
        with self.device.use():
            for name, making in self._made.items():
                making.begin(self.device, None if name == "nn" else self.near)

    def place(self, partition: int, name: str, begin: int, targets: NDArray[np.uint32]) -> None:
        """Take targets of a subgraph, from entry ``begin`` on."""
        making, offsets = self._making(name), self._offsets[partition, name]
        segment, first_row = self._segments[partition], self._first_row(name)
        row_plus = segment.first - segment.skipped - first_row
        plus = 0 if name == "nn" else segment.first - segment.skipped
        table = {"d": self._delegate_numbers, "n": None}
        of_rows = pack(NUMBERS, table=table[_end_of_rows(name)], plus=row_plus)
        of_targets = pack(NUMBERS, table=table[_end_of_targets(name)], plus=plus)
        with self.device.use() as cupy:
            there = cupy.asarray(targets)
            shard = Shard(there, begin, offsets)
            making.place(self.device, _SOURCE, "place_targets", shard, of_rows, of_targets)

    def end(self, partition: int, name: str) -> None:
        """Note that a subgraph's targets have all been placed."""
        with self.device.use():
            self._add(self._making(name).fill, partition, name, self._offsets[partition, name])
            del self._offsets[partition, name]

    def finish(self) -> DelegateRows:
        with self.device.use():
            nn: Rows = self._made["nn"].rows
            ghosts, ghost_first = self._number_ghosts(nn.near)
            rows = self._made["rows"].rows
            reverse = self._made["reverse"].rows if self.directed else None
            graph = derive(self.device, rows, reverse, padded=False)
        if nn.offsets.dtype != np.uint32:
            raise DeviceError(
                f"rank {self.rank} has {len(nn.near):,} edges between normal vertices, but a GPU "
                "takes at most 2^32: build the store with a lower --threshold"
            )
        return DelegateRows(
            numbering=self.numbering,
            rank=self.rank,
            graph=graph,
            nn_offsets=nn.offsets,
            nn_targets=nn.near,
            ghosts=ghosts,
            ghost_first=ghost_first,
            delegates=self.delegates,
        )

    def _making(self, name: str) -> MadeRows:
        if name == "nn":
            return self._made["nn"]
        return self._made["reverse" if name.startswith("reverse-") else "rows"]

    def _first_row(self, name: str) -> int:
        """Return the number of the vertex that has the first of the rows that are made."""
        return self.numbering.first_normal if name == "nn" else 0

    def _add(self, to: Array, partition: int, name: str, offsets: Array) -> None:
        """Add the lengths of a subgraph's rows."""
        lengths = (offsets[1:] - offsets[:-1]).astype(to.dtype)
        if _end_of_rows(name) == "d":
            to[self._delegate_numbers] += lengths
            return
        segment = self._segments[partition]
        begin = segment.first - self._first_row(name)
        row_lengths = to[begin : begin + segment.vertices]
        row_lengths += lengths[segment.skipped :]  # rows of delegates, which are empty, go before

    def _number_ghosts(self, targets: Array) -> tuple[list[Array], list[int]]:
        """Replace targets along nn by the rank's numbers. Returns the ghosts of each owner, and the
        rank's number of each owner's first ghost: see DelegateRows.
        """
        numbering, cupy = self.numbering, self.device.cupy
        normals = numbering.first_normal
        sizes = [numbering.own_numbers(rank) - normals for rank in range(numbering.ranks)]
        words = np.cumsum([0, *(size // 32 for size in sizes)])
        owners = np.zeros(numbering.partitions, _OWNER)
        owner = np.arange(numbering.partitions) % numbering.ranks
        owners["marked"] = 32 * words[owner]
        for rank in range(numbering.ranks):
            for segment in numbering.normal_segments(rank).values():
                owners["first"][segment.partition] = segment.first - segment.skipped
        count = np.uint64(len(targets))
        marked = cupy.zeros(int(words[-1]) + 1, np.uint32)
        packed = self._pack(cupy.asarray(owners.view(np.uint8)))
        self.device.launch(_SOURCE, "mark_ghosts", len(targets), (targets, count, packed, marked))
        before = cupy.zeros(len(marked) + 1, np.uint32)
        before[1:] = cupy.cumsum(_ones(marked), dtype=np.uint32)
        ends = before[cupy.asarray(words)].get().astype(np.int64)
        found = np.diff(ends)
        first = numbering.own_numbers(self.rank) + np.cumsum([0, *map(aligned, found.tolist())])
        if first[-1] > MOST_NUMBERS:
            raise DeviceError(f"rank {self.rank} knows {first[-1]:,} vertices: too many for a GPU")
        owners["before"], owners["ghosts"] = ends[owner], first[owner]
        packed = self._pack(cupy.asarray(owners.view(np.uint8)))
        arguments = (targets, count, packed, marked, before)
        self.device.launch(_SOURCE, "number_targets", len(targets), arguments)
        ghosts = []
        for rank, size in enumerate(found.tolist()):
            rank_ghosts = cupy.empty(size, np.uint32)
            own_words = int(words[rank + 1] - words[rank])
            place = (np.uint64(words[rank]), np.uint64(own_words))
            arguments = (marked, before, *place, np.uint32(normals), rank_ghosts)
            self.device.launch(_SOURCE, "list_ghosts", own_words, arguments)
            ghosts.append(rank_ghosts)
        return ghosts, first[:-1].tolist()

    def _pack(self, owners: Array) -> np.ndarray:
        self._owners = owners  # that a launch reads
        numbering = self.numbering
        return pack(
            _OWNERS,
            of=owners,
            partitions=numbering.partitions,
            ranks=numbering.ranks,
            rank=self.rank,
            normals=numbering.first_normal,
        )


def _end_of_rows(name: str) -> str:
    """Return "d" if a subgraph's rows are those of delegates, and "n" if they are those of normal
    vertices.
    """
    return name[-1] if name.startswith("reverse-") else name[-2]


def _end_of_targets(name: str) -> str:
    return name[-2] if name.startswith("reverse-") else name[-1]


def _ghost_ids(cupy: Any, numbering: DelegateNumbering, owner: int, ghosts: Array) -> Array:
    """Return the global ids of ghosts, which are given as their owner numbers them."""
    origins = origins_of(numbering.normal_segments(owner).values())
    place = (ghosts - np.uint32(numbering.first_normal)) // np.uint32(ALIGNED)
    first, partition = (
        cupy.asarray(origins[name].copy())[place] for name in ("first", "partition")
    )
    return (ghosts - first) * np.uint32(numbering.partitions) + partition


def _ones(words: Array) -> Array:
    """Count the set bits of each word."""
    words = words - ((words >> 1) & np.uint32(0x55555555))
    words = (words & np.uint32(0x33333333)) + ((words >> 2) & np.uint32(0x33333333))
    words = (words + (words >> 4)) & np.uint32(0x0F0F0F0F)
    return (words * np.uint32(0x01010101)) >> 24
