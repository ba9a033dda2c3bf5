"""A rank's data and work in the layout of delegates: for cuda/ranks/delegate_search.cu."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..base import arrays
from ..base.arrays import allocate
from ..base.graph import UNREACHED
from ..gpu.device import Device, pack
from ..gpu.graph import Array
from ..gpu.peer_memory import Exchange
from ..gpu.search import MOST_QUEUED, WIDE_LAUNCH, WideKernel
from .delegate_mail import DelegateMemory, HostedDelegateMail
from .delegate_rows import DelegateRows
from .delegate_structures import ARRIVAL, CONTROL, LEVEL, NAME, PEER, RANK
from .numbering import ALIGNED, origins_of
from .search import Sizes
from .structures import GLOBAL_IDS, ORIGIN

KERNEL = WideKernel("ranks/delegate_search.cu", "delegate_search")

MANY_DELEGATES = 1 << 20  # a second round costs 20 us, or 60 where a rank knows 80 million

_LEAST_QUEUED = 1 << 16
_QUEUED_BY_A_WARP = 32 * 32 + 128  # beyond what a queue is to hold, before it looks again


class DelegateLevel(NamedTuple):
    """A rank's work in a superstep. normals, delegates: the numbers of vertices found. examined:
    entries looked at.

    clocks: of a multiprocessor, for each of structures.PHASES.
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
        """Return the bytes sent, by kind."""
        return {"delegates": self.delegate_bytes, "normals": self.normal_bytes}


def sizes_of(device: Device, own_numbers: int, numbers: int, rows: int) -> Sizes:
    """Return the sizes of a rank's numbers and queues. own_numbers, numbers: where the numbers of
    own vertices, and of all, end. rows: of vertices with edges.
    """
    queued = min(max(_LEAST_QUEUED, rows // 64), MOST_QUEUED)
    warps = device.multiprocessors * WIDE_LAUNCH[1] * (WIDE_LAUNCH[0] // 32)
    return Sizes(own_numbers, numbers, queued, min(rows, queued + _QUEUED_BY_A_WARP * warps) + 1)


def state(sizes: Sizes, delegates: int, ranks: int) -> list[arrays.Array]:
    """Return the arrays that a search writes to beside search.state. delegates: where the
    delegates' numbers end.
    """
    lines = sizes.numbers // ALIGNED
    return [
        arrays.Array("frontier", np.uint32, sizes.own // 32),
        arrays.Array("found_here", np.uint32, delegates // 32, fill=0),
        arrays.Array("late", np.uint32, delegates // 32, fill=0),
        arrays.Array("sent", np.uint32, 2 * (ranks + 1), fill=0),
        *(arrays.Array(f"changed_{i}", np.uint32, -(-lines // 32), fill=0) for i in range(3)),
    ]


def tables(rows: int, delegates: int, own_numbers: int) -> list[arrays.Array]:
    """Return the arrays of a rank's tables of vertices beside its rows, at their longest.

    rows: the number of rows along nn that have edges. delegates, own_numbers: where the numbers of
    delegates, and of all own vertices, end.
    """
    return [
        arrays.Array("nn_rows", np.uint32, rows),
        arrays.Array("nn_offsets", np.uint32, rows + 1),
        arrays.Array("delegate_ids", np.uint32, delegates),
        arrays.Array("origins", ORIGIN, own_numbers // ALIGNED + 1),
    ]


class DelegateLayout:
    """The layout of delegates; see search.RankLayout.

    many_delegates: number of unvisited delegates from which on a pull takes two rounds, and may
    find much. ghost_vertices, once connected: by rank, our numbers of its ghosts that we own.
    """

    kernel = KERNEL
    control = CONTROL
    record = LEVEL
    told = DelegateLevel

    def __init__(
        self, device: Device, rows: DelegateRows, many_delegates: int = MANY_DELEGATES
    ) -> None:
        self.device, self.rows = device, rows
        numbering, graph = rows.numbering, rows.graph
        self.sizes = sizes_of(device, rows.own_numbers, rows.numbers, graph.used)
        self.ghost_vertices: list[Array] = []
        with device.use() as cupy:
            self.memory = memory = DelegateMemory(device, rows)
            self.shared = shared = memory.arrays
            declared = state(self.sizes, numbering.first_normal, rows.ranks)
            self._made = made = allocate(declared, cupy)
            self._nn_rows, self._nn_offsets = _without_empty_rows(cupy, rows)
            self._delegate_ids = rows.delegate_ids(cupy)
            # Delegates that have a table count, too.
            delegates = numbering.delegate_segments.values()
            named = [*delegates, *numbering.normal_segments(rows.rank).values()]
            self._origins = cupy.asarray(origins_of(named).view(np.uint32))
        ids = pack(GLOBAL_IDS, origins=self._origins, partitions=numbering.partitions)
        name = pack(NAME, ids=ids[0], delegates=self._delegate_ids, normals=numbering.first_normal)
        self.structure = pack(
            RANK,
            name=name[0],
            nn_rows=self._nn_rows,
            nn_offsets=self._nn_offsets,
            nn_targets=rows.nn_targets,
            nn_row_count=len(self._nn_rows),
            frontier=made["frontier"],
            changed=[made[f"changed_{i}"].data.ptr for i in range(3)],
            found_here=made["found_here"],
            late=made["late"],
            many_delegates=many_delegates,
            arrivals=shared.address("arrivals"),
            mail=[shared.address("mail_0"), shared.address("mail_1")],
            sent=made["sent"],
            rank=rows.rank,
            ranks=rows.ranks,
            region=memory.region_of(rows.rank),
            delegate_words=memory.delegate_words,
            own_words=rows.own_numbers // 32,
            ghost_words=memory.ghost_words,
        )

    def connect(self, exchange: Exchange, bases: list[int] | None) -> HostedDelegateMail:
        rows, memory, places = self.rows, self.memory, self.shared.places
        cupy, ranks = self.device.cupy, range(rows.ranks)
        own_places = [places[name] for name in ("mail_0", "mail_1", "parent")]
        own_places.append(memory.ghost_words)
        told = exchange(
            [
                [np.array([*own_places, *memory.ghosts_of(peer)]), rows.ghosts[peer].get()]
                for peer in ranks
            ]
        )
        self.ghost_vertices = [cupy.asarray(message[1]) for message in told]
        made = self.ghost_vertices, self._made["sent"]
        mail = HostedDelegateMail(self.device, rows, memory, exchange, *made)
        peers = np.zeros(rows.ranks, PEER)
        for peer, (theirs, _) in enumerate(told):
            if peer == rows.rank:
                continue
            even, odd, parent, all_ghost_words, at, words, first = theirs.tolist()
            own_at, own_words, _ = memory.ghosts_of(peer)
            facts: dict[str, Any] = {
                "region": memory.region_of(peer),
                "own_ghosts_at": own_at,
                "own_ghost_words": own_words,
                "ghost_words": words,
                "vertex": self.ghost_vertices[peer].data.ptr,
            }
            if bases is None:
                facts |= mail.open(peer, words)
            else:
                base = bases[peer]
                facts |= {
                    "mail": [base + even, base + odd],
                    "parent": base + parent + 4 * first,
                    "arrivals": base + 2 * rows.rank * ARRIVAL.itemsize,
                    "ghosts_at": at,
                    "all_ghost_words": all_ghost_words,
                }
            for name, value in facts.items():
                peers[name][peer] = value
        self._peers = cupy.asarray(peers.view(np.uint8))
        self.structure["peers"] = self._peers.data.ptr
        return mail

    def knows(self) -> Array:
        """Return bool, by own number: whether this rank has a parent for the vertex."""
        cupy, parent = self.device.cupy, self.shared.array("parent")
        known = parent[: self.rows.own_numbers] != np.uint32(UNREACHED)
        found = cupy.unpackbits(self._made["found_here"].view(np.uint8), bitorder="little")
        known[: len(found)] &= found.astype(bool)
        return known


def _without_empty_rows(cupy: Any, rows: DelegateRows) -> tuple[Array, Array]:
    """Return the rank's numbers of the vertices that have edges along nn, and where their edges
    begin.
    """
    offsets = rows.nn_offsets
    places = cupy.flatnonzero(offsets[1:] > offsets[:-1])
    begins = cupy.append(offsets.take(places), offsets[-1:])
    return (places + rows.numbering.first_normal).astype(np.uint32), begins
