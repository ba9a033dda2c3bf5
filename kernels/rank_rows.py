"""The rows of one rank of a search by several devices, made on its device (cuda/rank_rows.cu).

A rank numbers what it knows: the delegates; its own normal vertices, as they stand in the global
order; and ghosts, the normal vertices of other ranks that its edges along nn lead to, by owner.
Each kind, and the ghosts of each owner, begin at a multiple of ALIGNED. Algorithm 1 of Pan, Pearce,
Owens (Scalable Breadth-First Search on a GPU Cluster) says which rank has an edge; in numbers of
its own, targets along nn need 32 bits, and a ghost is marked as any vertex is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .device import Device, DeviceError, pack, unsigned_name
from .device_graph import MOST_SHORT, Array, DeviceGraph, Rows, derive

ALIGNED = 1024
"""Vertices whose bits a warp reads at once."""

MOST_NUMBERS = 2**32 - 2 * ALIGNED

_SOURCE = "rank_rows.cu"
_OWNER = np.dtype(
    [(name, "u4") for name in ("parts", "skipped", "first", "before", "ghosts", "unused")]
)
_RANKS = np.dtype(
    [("owners", "u8"), *((name, "u4") for name in ("partitions", "ranks", "rank", "normals"))],
    align=True,
)


def aligned(count: int) -> int:
    """
    >>> aligned(0), aligned(1), aligned(1024)
    (0, 1024, 1024)
    """
    return -(-count // ALIGNED) * ALIGNED


@dataclass(frozen=True)
class RankNumbering:
    """Which vertices each rank owns: those of the partitions p with p mod ranks = rank.

    hubs_first: whether global ids go by degree, so that the first of them are the delegates.

    >>> two = RankNumbering(ranks=2, partitions=3, vertices=10, delegates=0, hubs_first=True)
    >>> two.parts(0), two.normals(0), two.normals(1)
    (2, 7, 3)
    """

    ranks: int
    partitions: int
    vertices: int
    delegates: int
    hubs_first: bool

    def parts(self, rank: int) -> int:
        """Partitions."""
        return len(range(rank, self.partitions, self.ranks))

    def skipped(self, rank: int) -> int:
        """Leading vertices that are delegates, and not numbered among the normal ones."""
        return self._owned(rank, self.delegates) if self.hubs_first else 0

    def normals(self, rank: int) -> int:
        """Vertices that are numbered as its own."""
        return self._owned(rank, self.vertices) - self.skipped(rank)

    @property
    def first_normal(self) -> int:
        """The number of a rank's first own vertex."""
        return aligned(self.delegates)

    def place_of_part(self, rank: int, partition: int) -> tuple[int, int]:
        """(step, first): row i of a partition is the rank's own vertex ``i * step + first``."""
        return self.parts(rank), partition // self.ranks - self.skipped(rank)

    def number(self, rank: int, vertex: int) -> int | None:
        """What a rank calls a vertex by its global id; None if it does not have it.

        Delegates are among them only where hubs are first.
        """
        if self.hubs_first and vertex < self.delegates:
            return vertex
        partition = vertex % self.partitions
        if partition % self.ranks != rank:
            return None
        step, first = self.place_of_part(rank, partition)
        return self.first_normal + vertex // self.partitions * step + first

    def _owned(self, rank: int, below: int) -> int:
        whole, rest = divmod(below, self.partitions)
        return whole * self.parts(rank) + len(range(rank, rest, self.ranks))


@dataclass(frozen=True)
class RankRows:
    """What a rank has on its device.

    graph: rows of dd, dn and nd, of delegates and own vertices. nn_offsets: uint32 (normals + 1,);
    nn_targets: uint32, the rank's numbers. ghosts: of each owner uint32 (g,), as the owner numbers
    them; the rank itself numbers them from ghost_first on. delegates: uint32, their global ids;
    None where these are their numbers.
    """

    numbering: RankNumbering
    rank: int
    graph: DeviceGraph
    nn_offsets: Array
    nn_targets: Array
    ghosts: list[Array]
    ghost_first: list[int]
    delegates: Array | None

    def number(self, vertex: int) -> int | None:
        """What the rank calls a vertex by its global id; None if it does not have it."""
        if self.delegates is not None:
            place = np.flatnonzero(self.delegates.get() == vertex)
            if len(place):
                return int(place[0])
        return self.numbering.number(self.rank, vertex)

    @property
    def own_numbers(self) -> int:
        """Delegates and own vertices, aligned."""
        numbering = self.numbering
        return numbering.first_normal + aligned(numbering.normals(self.rank))

    @property
    def numbers(self) -> int:
        return self.own_numbers + sum(aligned(len(some)) for some in self.ghosts)

    @property
    def bytes(self) -> int:
        """Of the graph: offsets, targets, numbers of ghosts."""
        ghosts = sum(some.nbytes for some in self.ghosts)
        return self.graph.bytes + self.nn_offsets.nbytes + self.nn_targets.nbytes + ghosts


@dataclass
class MergedRows:
    """Rows that are made of several subgraphs. fill: where each row goes on."""

    counts: Array
    offsets: Array = None
    fill: Array = None
    near: Array = None
    far: np.ndarray | None = None

    def begin(self, device: Device, near: int | None) -> None:
        cupy = device.cupy
        edges = int(self.counts.sum(dtype=np.uint64))
        kind = np.uint32 if edges < MOST_SHORT else np.uint64
        self.offsets = cupy.zeros(len(self.counts) + 1, kind)
        self.offsets[1:] = cupy.cumsum(self.counts, dtype=kind)
        self.fill = self.offsets[:-1].copy()
        near = edges if near is None else min(near, edges)
        self.near = cupy.empty(near, np.uint32)
        self.far = device.pinned(edges - near, np.uint32) if near < edges else None

    @property
    def rows(self) -> Rows:
        return Rows(self.offsets, self.near, self.far)


@dataclass
class RankRowsMaker:
    """Takes subgraphs, first their offsets (``count``), then their targets (``place``).

    near: entries of the rows of dd, dn and nd, and of their reverse, that stand on the device; the
    others are pinned in host memory. None: all.
    """

    device: Device
    numbering: RankNumbering
    rank: int
    directed: bool
    near: int | None = None
    _made: dict[str, MergedRows] = field(default_factory=dict)
    _offsets: dict[tuple[int, str], Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        numbering = self.numbering
        normals = numbering.normals(self.rank)
        rows = numbering.first_normal + normals
        with self.device.use() as cupy:
            for name in ("rows", "reverse") if self.directed else ("rows",):
                self._made[name] = MergedRows(cupy.zeros(rows, np.uint64))
            self._made["nn"] = MergedRows(cupy.zeros(normals, np.uint64))

    def count(self, partition: int, name: str, offsets: NDArray | Array) -> None:
        """Take a subgraph's offsets: all of them before the first targets."""
        with self.device.use() as cupy:
            offsets = cupy.asarray(offsets)
            self._offsets[partition, name] = offsets
            self._add(self._making(name).counts, partition, name, offsets)

    def begin(self) -> None:
        """Between the last ``count`` and the first ``place``."""
        with self.device.use():
            for name, making in self._made.items():
                making.begin(self.device, None if name == "nn" else self.near)

    def place(self, partition: int, name: str, begin: int, targets: NDArray[np.uint32]) -> None:
        """Take targets of a subgraph, from entry ``begin`` on."""
        making, offsets = self._making(name), self._offsets[partition, name]
        times, plus = 1, 0
        if name != "nn" and _end_of_targets(name) == "n":
            times, first = self.numbering.place_of_part(self.rank, partition)
            plus = (self.numbering.first_normal + first) % 2**32
        step, first = self._rows_of(partition, name)
        kinds = f"{unsigned_name(making.offsets.dtype)}, {unsigned_name(offsets.dtype)}"
        with self.device.use() as cupy:
            shard = cupy.asarray(targets)
            far = np.uint64(0 if making.far is None else making.far.ctypes.data)
            self.device.launch(
                *(_SOURCE, f"place_targets<{kinds}>", len(targets)),
                (
                    *(shard, np.uint64(begin), np.uint64(len(targets))),
                    *(offsets, np.uint32(len(offsets) - 1), np.uint32(step), np.int64(first)),
                    *(making.fill, np.uint32(times), np.uint32(plus)),
                    *(making.near, np.uint64(len(making.near)), far),
                ),
            )

    def end(self, partition: int, name: str) -> None:
        """A subgraph's targets have all been placed."""
        with self.device.use():
            self._add(self._making(name).fill, partition, name, self._offsets[partition, name])
            del self._offsets[partition, name]

    def finish(self, delegates: NDArray[np.uint32] | None) -> RankRows:
        """delegates: their global ids; None where these are their numbers."""
        with self.device.use() as cupy:
            nn = self._made["nn"]
            ghosts, ghost_first = self._number_ghosts(nn.near)
            rows = self._made["rows"].rows
            reverse = self._made["reverse"].rows if self.directed else None
            graph = derive(self.device, rows, reverse, padded=False)
            table = None if delegates is None else cupy.asarray(delegates)
        if nn.offsets.dtype != np.uint32:
            raise DeviceError(
                f"rank {self.rank} has {len(nn.near):,} edges between normal vertices, and a "
                "device takes 2^32: build the store with a lower --threshold"
            )
        return RankRows(
            *(self.numbering, self.rank, graph, nn.offsets, nn.near, ghosts, ghost_first, table)
        )

    def _making(self, name: str) -> MergedRows:
        if name == "nn":
            return self._made["nn"]
        return self._made["reverse" if name.startswith("reverse-") else "rows"]

    def _rows_of(self, partition: int, name: str) -> tuple[int, int]:
        """(step, first): row i of a subgraph is row ``i * step + first`` of those that are made."""
        if _end_of_rows(name) == "d":
            return 1, 0
        step, first = self.numbering.place_of_part(self.rank, partition)
        return step, first + (0 if name == "nn" else self.numbering.first_normal)

    def _add(self, to: Array, partition: int, name: str, offsets: Array) -> None:
        """Add the lengths of a subgraph's rows."""
        step, first = self._rows_of(partition, name)
        least = 0 if name == "nn" or _end_of_rows(name) == "d" else self.numbering.first_normal
        begin = max(0, -((first - least) // step))  # rows of delegates, which are empty, go before
        lengths = offsets[begin + 1 :] - offsets[begin:-1]
        some = to[begin * step + first :: step][: len(lengths)]
        some += lengths.astype(to.dtype)

    def _number_ghosts(self, targets: Array) -> tuple[list[Array], list[int]]:
        """Targets along nn become the rank's numbers; see RankRows for what is returned."""
        numbering, cupy = self.numbering, self.device.cupy
        owners = np.zeros(numbering.ranks, _OWNER)
        sizes = [numbering.normals(rank) for rank in range(numbering.ranks)]
        words = np.cumsum([0, *(-(-size // 32) for size in sizes)])
        owners["parts"] = [numbering.parts(rank) for rank in range(numbering.ranks)]
        owners["skipped"] = [numbering.skipped(rank) for rank in range(numbering.ranks)]
        owners["first"] = 32 * words[:-1]
        count = np.uint64(len(targets))
        marked = cupy.zeros(int(words[-1]) + 1, np.uint32)
        ranks = self._pack(cupy.asarray(owners.view(np.uint8)))
        self.device.launch(_SOURCE, "mark_ghosts", len(targets), (targets, count, ranks, marked))
        before = cupy.zeros(len(marked) + 1, np.uint32)
        before[1:] = cupy.cumsum(_ones(cupy, marked), dtype=np.uint32)
        ends = before[cupy.asarray(words)].get().astype(np.int64)
        found = np.diff(ends)
        own = numbering.first_normal + aligned(sizes[self.rank])
        first = own + np.cumsum([0, *map(aligned, found.tolist())])
        if first[-1] > MOST_NUMBERS:
            raise DeviceError(
                f"rank {self.rank} knows {first[-1]:,} vertices: too many for a device"
            )
        owners["before"], owners["ghosts"] = ends[:-1], first[:-1]
        ranks = self._pack(cupy.asarray(owners.view(np.uint8)))
        arguments = (targets, count, ranks, marked, before)
        self.device.launch(_SOURCE, "number_targets", len(targets), arguments)
        ghosts = []
        for rank, size in enumerate(found.tolist()):
            some = cupy.empty(size, np.uint32)
            own_words = int(words[rank + 1] - words[rank])
            place = (np.uint64(words[rank]), np.uint64(own_words))
            arguments = (marked, before, *place, np.uint32(numbering.first_normal), some)
            self.device.launch(_SOURCE, "list_ghosts", own_words, arguments)
            ghosts.append(some)
        return ghosts, first[:-1].tolist()

    def _pack(self, owners: Array) -> np.ndarray:
        self._owners = owners  # that a launch reads
        numbering = self.numbering
        return pack(
            _RANKS,
            owners=owners,
            partitions=numbering.partitions,
            ranks=numbering.ranks,
            rank=self.rank,
            normals=numbering.first_normal,
        )


def _end_of_rows(name: str) -> str:
    """Whether a subgraph's rows are those of delegates (d) or normal vertices (n)."""
    return name[-1] if name.startswith("reverse-") else name[-2]


def _end_of_targets(name: str) -> str:
    return name[-2] if name.startswith("reverse-") else name[-1]


def _ones(cupy: Any, words: Array) -> Array:
    """Set bits of each word."""
    words = words - ((words >> 1) & np.uint32(0x55555555))
    words = (words & np.uint32(0x33333333)) + ((words >> 2) & np.uint32(0x33333333))
    words = (words + (words >> 4)) & np.uint32(0x0F0F0F0F)
    return (words * np.uint32(0x01010101)) >> 24
