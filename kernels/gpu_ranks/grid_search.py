"""One rank of a breadth-first search by several devices in a grid of partitions (layouts 2d and
1d): launches cuda/ranks/grid_search.cu.

As with delegates (delegate_search.py), ranks read each other's mail in each other's memory where
they can, and a search is one launch then; elsewhere the host carries it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..gpu.device import Device, pack
from ..gpu.graph import Array
from ..gpu.search import MOST_QUEUED, PUSH_COST, WideKernel
from .delegate_structures import PARTS
from .grid_mail import GridMemory, HostedGridMail, Kind, Letters, segments_of
from .grid_rows import GridRows
from .grid_structures import CONTROL, LEVEL, NAME, RANK, SEGMENT
from .launches import RankLaunches
from .numbering import aligned, parts_of
from .peer_memory import Exchange

KERNEL = WideKernel("ranks/grid_search.cu", "grid_search")


class GridLevel(NamedTuple):
    """What a rank did in a superstep. found: of its own vertices; examined: entries looked at.

    clocks: as RankLevel has them.
    """

    direction: str
    found: int
    examined: int
    expand_bytes: int
    fold_bytes: int
    clocks: tuple[int, ...]

    @property
    def sent(self) -> dict[str, int]:
        """Bytes, by kind."""
        return {"expand": self.expand_bytes, "fold": self.fold_bytes}


@dataclass
class GpuGridSearch:
    """Searches of one graph by several ranks, one at a time, all of them together.

    Every rank makes one, then all call ``connect``, ``run`` and ``close`` in the same order.
    parent: uint32, by the rank's numbers (Known), global ids, UNREACHED where there is none.
    letters: what ranks tell each other.
    check: raises if another rank is known to have failed. push_cost: the same on all ranks; 0: they
    only push.
    """

    device: Device
    rows: GridRows
    check: Callable[[], None] = lambda: None
    push_cost: float = PUSH_COST

    def __post_init__(self) -> None:
        rows, graph, known = self.rows, self.rows.graph, self.rows.known
        numbering = rows.numbering
        self.letters = letters = Letters(numbering)
        self._launches = launches = RankLaunches(
            *(self.device, KERNEL, graph, known.own_numbers, CONTROL, LEVEL, self.check)
        )
        queued = min(aligned(known.row_numbers), MOST_QUEUED)
        with self.device.use() as cupy:
            self._memory = memory = GridMemory(self.device, letters, rows.rank)
            self.parent: Array = memory.parent
            self._frontier = cupy.zeros(known.row_numbers // 32, np.uint32)
            self._told = cupy.empty(known.own_numbers // 32, np.uint32)
            self._barren, own_rows, own_edges = _rows_to_pull(cupy, rows)
            self._parts = cupy.asarray(parts_of(known.segments).view(np.uint32))
            segments = np.array(segments_of(letters, known, rows.rank), SEGMENT)
            self._segments = cupy.asarray(segments.view(np.uint32))
        search = launches.search(self.parent, known.numbers, queued + 1, queued, self.push_cost)
        parts = pack(PARTS, of=self._parts, partitions=numbering.partitions)
        self._rank = pack(
            RANK,
            search=search,
            name=pack(NAME, parts=parts[0])[0],
            barren=self._barren,
            frontier=self._frontier,
            told=self._told,
            **launches.places,
            segments=self._segments,
            arrivals=memory.arrivals_at,
            mail=memory.mail_at,
            sent=memory.sent_at,
            own_edges=own_edges,
            own_rows=own_rows,
            own_segments=known.own,
            segment_count=len(known.segments),
            rank=rows.rank,
            ranks=numbering.ranks,
            own_words=known.own_numbers // 32,
            row_words=known.row_numbers // 32,
            words=known.numbers // 32,
            grid_rows=numbering.rows,
            grid_columns=numbering.columns,
        )

    def connect(self, exchange: Exchange, direct: bool = True) -> None:
        """Learn where the others' mail stands.

        direct: whether to read each other's memory, if that is possible.
        """
        memory, rank = self._memory, self.rows.rank
        ranks = self.rows.numbering.ranks
        bases = memory.peers.open(exchange, rank, ranks) if direct else None
        self.direct = bases is not None
        self._hosted = HostedGridMail(self.device, self.letters, rank, memory, exchange)
        others = [(rank + i) % ranks for i in range(1, ranks)]  # not all read from one
        with self.device.use() as cupy:
            letters = [
                [
                    memory.letter_from(sender, bases[sender], p)
                    if bases is not None
                    else self._hosted.letter_from(sender, p)
                    for sender in others
                    for p in self.letters.of(kind, sender, rank)
                ]
                for kind in Kind
            ]
            self._told_by = [
                cupy.asarray(np.concatenate(some).view(np.uint8)) if some else None
                for some in letters
            ]
            places = [memory.arrivals_in(base) for base in bases or []]
            self._peers = cupy.asarray(np.array(places or [0], np.uint64))
        self._rank["letters"] = [0 if some is None else some.data.ptr for some in self._told_by]
        self._rank["letter_counts"] = [len(some) for some in letters]
        self._rank["peers"] = self._peers.data.ptr
        self._rank["hosted"] = not self.direct
        # A search may begin once all have what they are told with.
        exchange([[] for _ in range(ranks)])

    def warm_up(self) -> None:
        """Compile, or load from the cache, the kernel of a search."""
        self._launches.warm_up()

    def align(self) -> None:
        """See RankLaunches."""
        if self.direct:
            self._launches.align(self._rank)

    def run(self, source: int | None, max_level: int | None = None) -> None:
        """Search, with all other ranks. source: this rank's number of it; None if it has none."""
        with self.device.use():
            self._hosted.begin()
            self._launches.run(self._rank, source, max_level, self._hosted.carry)
            if not self.direct:
                self._hosted.fetch_parents()
                self._launches.end()

    @property
    def distance(self) -> Array:
        """Of the last search: uint8 with 255, or int32 with -1, where unreached; by own number."""
        return self._launches.distance

    def seconds(self) -> float:
        """Time on the device of the last search."""
        return self._launches.seconds()

    @property
    def peer_bytes(self) -> int:
        """What others read, on the device beside what its pool holds."""
        return self._memory.peers.size

    def levels(self) -> list[GridLevel]:
        """What each superstep of the last search did."""
        return [
            GridLevel(
                direction="pull" if record["pulled"] else "push",
                found=int(record["found"]),
                examined=int(record["examined"]),
                expand_bytes=int(record["expand_bytes"]),
                fold_bytes=int(record["fold_bytes"]),
                clocks=tuple(record["clocks"].tolist()),
            )
            for record in self._launches.records()
        ]

    def close(self) -> None:
        self._memory.peers.close()


def _rows_to_pull(cupy: Any, rows: GridRows) -> tuple[Array, int, int]:
    """Bitmap of the rows that have no edges to pull along; of own vertices, rows that have some,
    and their edges.
    """
    offsets, own = rows.graph.reverse.offsets, rows.known.own_numbers
    empty = offsets[1:] == offsets[:-1]
    own_rows = own - int(cupy.count_nonzero(empty[:own]))
    bitmap = cupy.packbits(empty.view(np.uint8), bitorder="little").view(np.uint32)
    return bitmap, own_rows, int(offsets[own])
