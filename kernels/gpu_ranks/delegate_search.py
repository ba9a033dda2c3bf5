"""One rank of a breadth-first search by several devices: launches
cuda/ranks/delegate_search.cu.

Ranks read each other's mail in each other's memory, where all of them stand in one machine whose
devices can; a whole search is one launch then. Elsewhere a launch ends with a superstep's mail, and
the host has it sent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..base.graph import UNREACHED
from ..gpu.device import Device, pack
from ..gpu.graph import Array
from ..gpu.search import MOST_QUEUED, PUSH_COST, WIDE_LAUNCH, WideKernel
from .delegate_mail import HostedMail, RankMemory
from .delegate_rows import RankRows
from .delegate_structures import ARRIVAL, CONTROL, LEVEL, NAME, PARTS, PEER, RANK
from .launches import RankLaunches
from .numbering import ALIGNED, Segment, parts_of
from .peer_memory import Exchange

KERNEL = WideKernel("ranks/delegate_search.cu", "delegate_search")

MANY_DELEGATES = 1 << 20  # a second round costs 20 us, or 60 where a rank knows 80 million

_LEAST_QUEUED = 1 << 16
_QUEUED_BY_A_WARP = 32 * 32 + 128  # beyond what a queue is to hold, before it looks again


class RankLevel(NamedTuple):
    """What a rank did in a superstep. normals, delegates: found; examined: entries looked at.

    clocks: of a multiprocessor, for each of PHASES: following edges; writing mail; waiting for the
    others; reading theirs; noting what is new.
    """

    direction: str
    normals: int
    delegates: int
    examined: int
    delegate_bytes: int
    normal_bytes: int
    clocks: tuple[int, ...]

    @property
    def found(self) -> int:
        return self.normals + self.delegates

    @property
    def sent(self) -> dict[str, int]:
        """Bytes, by kind."""
        return {"delegates": self.delegate_bytes, "normals": self.normal_bytes}


@dataclass
class GpuRankSearch:
    """Searches of one graph by several ranks, one at a time, all of them together.

    Every rank makes one, then all call ``connect``, ``run`` and ``close`` in the same order.
    parent: uint32, by the rank's numbers (RankRows), global ids, UNREACHED where there is none; of
    delegates that other ranks found it says nothing (``knows``).
    check: raises if another rank is known to have failed.
    many_delegates: unvisited, from which on a pull takes two rounds, and may find much.
    """

    device: Device
    rows: RankRows
    check: Callable[[], None] = lambda: None
    push_cost: float = PUSH_COST
    many_delegates: int = MANY_DELEGATES

    def __post_init__(self) -> None:
        rows, graph = self.rows, self.rows.graph
        ranks = rows.numbering.ranks
        self._own = rows.own_numbers
        self._launches = launches = RankLaunches(
            *(self.device, KERNEL, graph, self._own, CONTROL, LEVEL, self.check)
        )
        with self.device.use() as cupy:
            self._memory = memory = RankMemory(self.device, rows)
            self.parent: Array = memory.parent
            self._frontier = cupy.empty(self._own // 32, np.uint32)
            self._nn_rows, self._nn_offsets = _without_empty_rows(cupy, rows)
            most_queued = min(max(_LEAST_QUEUED, graph.used // 64), MOST_QUEUED)
            warps = self.device.multiprocessors * WIDE_LAUNCH[1] * (WIDE_LAUNCH[0] // 32)
            queued = min(graph.used, most_queued + _QUEUED_BY_A_WARP * warps) + 1
            self._delegates = rows.delegate_ids(cupy)
            self._parts = cupy.asarray(parts_of(_named(rows)).view(np.uint32))
            self._found_here, self._late = cupy.zeros((2, memory.delegate_words), np.uint32)
            self._sent = cupy.zeros(2 * (ranks + 1), np.uint32)
            blocks = rows.numbers // ALIGNED
            self._changed = cupy.zeros((3, -(-blocks // 32)), np.uint32)
        search = launches.search(self.parent, rows.numbers, queued, most_queued, self.push_cost)
        numbering = rows.numbering
        self._rank = pack(
            RANK,
            search=search,
            name=pack(
                NAME,
                parts=pack(PARTS, of=self._parts, partitions=numbering.partitions)[0],
                delegates=self._delegates,
                normals=numbering.first_normal,
            )[0],
            nn_rows=self._nn_rows,
            nn_offsets=self._nn_offsets,
            nn_targets=rows.nn_targets,
            nn_row_count=len(self._nn_rows),
            frontier=self._frontier,
            changed=[blocks.data.ptr for blocks in self._changed],
            found_here=self._found_here,
            late=self._late,
            many_delegates=self.many_delegates,
            **launches.places,
            arrivals=memory.arrivals_at,
            mail=memory.mail_at,
            sent=self._sent,
            rank=rows.rank,
            ranks=ranks,
            region=memory.region_of(rows.rank),
            delegate_words=memory.delegate_words,
            own_words=self._own // 32,
            ghost_words=memory.ghost_words,
        )

    def connect(self, exchange: Exchange, direct: bool = True) -> None:
        """Learn from the others what they know of our vertices, and where their mail stands.

        direct: whether to read each other's memory, if that is possible.
        """
        rows, rank, memory = self.rows, self.rows.rank, self._memory
        ranks = rows.numbering.ranks
        bases = memory.peers.open(exchange, rank, ranks) if direct else None
        self.direct = bases is not None
        self._hosted = HostedMail(self.device, rows, memory, exchange)
        with self.device.use() as cupy:
            places = [*memory.starts, memory.ghost_words]
            messages = [
                [np.array([*places, *memory.ghosts_of(peer)], np.int64), rows.ghosts[peer].get()]
                for peer in range(ranks)
            ]
            told = exchange(messages)
            self.ghost_vertices = [cupy.asarray(message[1]) for message in told]
            peers = np.zeros(ranks, PEER)
            for peer, message in enumerate(told):
                if peer == rank:
                    continue
                theirs = message[0].tolist()
                starts, (all_words, at, words, first) = theirs[:-4], theirs[-4:]
                vertices = self.ghost_vertices[peer]
                own_at, own_words, _ = memory.ghosts_of(peer)
                facts: dict[str, Any] = {"region": memory.region_of(peer)}
                facts |= {"own_ghosts_at": own_at, "own_ghost_words": own_words}
                facts |= {"ghost_words": words, "vertex": vertices.data.ptr}
                if bases is not None:
                    base = bases[peer]
                    facts |= {
                        "mail": [base + start for start in starts[1:3]],
                        "parent": base + starts[3] + 4 * first,
                        "arrivals": base + 2 * rank * ARRIVAL.itemsize,
                        "ghosts_at": at,
                        "all_ghost_words": all_words,
                    }
                else:
                    facts |= self._hosted.open(peer, words)
                for name, value in facts.items():
                    peers[name][peer] = value
            self._peers = cupy.asarray(peers.view(np.uint8))
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
            self._launches.run(self._rank, source, max_level, self._carry)
            if not self.direct:
                self._hosted.fetch_parents(self.ghost_vertices)
                self._launches.end()

    @property
    def distance(self) -> Array:
        """Of the last search: uint8 with 255, or int32 with -1, where unreached. Of delegates that
        others own it says nothing.
        """
        return self._launches.distance

    def seconds(self) -> float:
        """Time on the device of the last search."""
        return self._launches.seconds()

    @property
    def peer_bytes(self) -> int:
        """What others read, on the device beside what its pool holds."""
        return self._memory.peers.size

    def levels(self) -> list[RankLevel]:
        """What each superstep of the last search did."""
        return [
            RankLevel(
                direction="pull" if record["pulled"] else "push",
                normals=int(record["normals"]),
                delegates=int(record["delegates"]),
                examined=int(record["examined"]),
                delegate_bytes=int(record["delegate_bytes"]),
                normal_bytes=int(record["normal_bytes"]),
                clocks=tuple(record["clocks"].tolist()),
            )
            for record in self._launches.records()
        ]

    def knows(self) -> Array:
        """bool, by own number: vertices that this rank has a parent for."""
        cupy = self.device.cupy
        known = self.parent[: self._own] != np.uint32(UNREACHED)
        found = cupy.unpackbits(self._found_here.view(np.uint8), bitorder="little")
        known[: len(found)] &= found.astype(bool)
        return known

    def close(self) -> None:
        self._memory.peers.close()

    def _carry(self, control: np.void) -> None:
        number, fresh = int(control["round"]), int(control["fresh"])
        sent = self._sent.get().reshape(2, -1)[number & 1].tolist()
        self._hosted.carry(number, fresh, sent)


def _without_empty_rows(cupy: Any, rows: RankRows) -> tuple[Array, Array]:
    """The rank's numbers of the vertices that have edges along nn, and where their edges begin."""
    offsets = rows.nn_offsets
    some = cupy.flatnonzero(offsets[1:] > offsets[:-1])
    begins = cupy.append(offsets[some], offsets[-1:])
    return (some + rows.numbering.first_normal).astype(np.uint32), begins


def _named(rows: RankRows) -> list[Segment]:
    """What global ids of a rank's numbers go by: delegates that have a table count, too."""
    numbering = rows.numbering
    delegates = numbering.delegate_segments.values()
    return [*delegates, *numbering.normal_segments(rows.rank).values()]
