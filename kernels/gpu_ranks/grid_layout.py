"""A rank's data and work in a grid of partitions (layouts 2d and 1d): for
cuda/ranks/grid_search.cu.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..base import arrays
from ..base.arrays import allocate
from ..gpu.device import Device, pack
from ..gpu.graph import Array
from ..gpu.peer_memory import Exchange
from ..gpu.search import MOST_QUEUED, WideKernel
from .grid_mail import GridMemory, HostedGridMail, Kind, Letters, segments_of
from .grid_rows import GridRows, Known
from .grid_structures import CONTROL, LEVEL, NAME, RANK, SEGMENT
from .numbering import ALIGNED, aligned, origins_of
from .search import Sizes
from .structures import GLOBAL_IDS, ORIGIN

KERNEL = WideKernel("ranks/grid_search.cu", "grid_search")


class GridLevel(NamedTuple):
    """A rank's work in a superstep. found: the number of its own vertices found. examined: entries
    looked at.

    clocks: of a multiprocessor, for each of structures.PHASES.
    """

    direction: str
    found: int
    examined: int
    expand_bytes: int
    fold_bytes: int
    clocks: tuple[int, ...]

    @property
    def sent(self) -> dict[str, int]:
        """Return the bytes sent, by kind."""
        return {"expand": self.expand_bytes, "fold": self.fold_bytes}


def sizes_of(known: Known) -> Sizes:
    queued = min(aligned(known.row_numbers), MOST_QUEUED)
    return Sizes(known.own_numbers, known.numbers, queued, queued + 1)


def state(known: Known) -> list[arrays.Array]:
    """Return the arrays that a search writes to beside search.state."""
    return [
        arrays.Array("frontier", np.uint32, known.row_numbers // 32, fill=0),
        arrays.Array("told", np.uint32, known.own_numbers // 32),
    ]


def tables(known: Known) -> list[arrays.Array]:
    """Return the arrays of a rank's tables of vertices and partitions beside its rows."""
    return [
        arrays.Array("barren", np.uint32, known.row_numbers // 32),
        arrays.Array("origins", ORIGIN, known.numbers // ALIGNED + 1),
        arrays.Array("segments", SEGMENT, len(known.segments)),
    ]


class GridLayout:
    """The layout of a grid; see search.RankLayout. letters: which partitions ranks tell each other
    of.
    """

    kernel = KERNEL
    control = CONTROL
    record = LEVEL
    told = GridLevel

    def __init__(self, device: Device, rows: GridRows) -> None:
        self.device, self.rows = device, rows
        numbering, known = rows.numbering, rows.known
        self.sizes = sizes_of(known)
        self.letters = letters = Letters(numbering)
        with device.use() as cupy:
            self.memory = GridMemory(device, letters, rows.rank)
            self.shared = shared = self.memory.arrays
            self._made = made = allocate(state(known), cupy)
            self._barren, own_rows, own_edges = _rows_to_pull(cupy, rows)
            self._origins = cupy.asarray(origins_of(known.segments).view(np.uint32))
            segments = np.array(segments_of(letters, known, rows.rank), SEGMENT)
            self._segments = cupy.asarray(segments.view(np.uint32))
        ids = pack(GLOBAL_IDS, origins=self._origins, partitions=numbering.partitions)
        self.structure = pack(
            RANK,
            name=pack(NAME, ids=ids[0])[0],
            barren=self._barren,
            frontier=made["frontier"],
            told=made["told"],
            segments=self._segments,
            arrivals=shared.address("arrivals"),
            mail=[shared.address("mail_0"), shared.address("mail_1")],
            sent=shared.address("sent"),
            own_edges=own_edges,
            own_rows=own_rows,
            own_segments=known.own,
            segment_count=len(known.segments),
            rank=rows.rank,
            ranks=rows.ranks,
            own_words=known.own_numbers // 32,
            row_words=known.row_numbers // 32,
            words=known.numbers // 32,
            grid_rows=numbering.rows,
            grid_columns=numbering.columns,
        )

    def connect(self, exchange: Exchange, bases: list[int] | None) -> HostedGridMail:
        memory, cupy = self.memory, self.device.cupy
        rank, ranks = self.rows.rank, self.rows.ranks
        mail = HostedGridMail(self.device, self.letters, rank, memory, exchange)
        peers = [(rank + i) % ranks for i in range(1, ranks)]  # not all read from one
        letters = [
            [
                mail.letter_from(sender, p)
                if bases is None
                else memory.letter_from(sender, bases[sender], p)
                for sender in peers
                for p in self.letters.of(kind, sender, rank)
            ]
            for kind in Kind
        ]
        self._told_by = [
            cupy.asarray(np.concatenate(kind_letters).view(np.uint8)) if kind_letters else None
            for kind_letters in letters
        ]
        places = [memory.arrivals_in(base) for base in bases or []]
        self._peers = cupy.asarray(np.array(places or [0], np.uint64))
        told = [0 if array is None else array.data.ptr for array in self._told_by]
        self.structure["letters"] = told
        self.structure["letter_counts"] = [len(kind_letters) for kind_letters in letters]
        self.structure["peers"] = self._peers.data.ptr
        return mail


def _rows_to_pull(cupy: Any, rows: GridRows) -> tuple[Array, int, int]:
    """Return the bitmap of the rows that have no edges to pull along; then, of the rows of own
    vertices, how many have such edges, and the number of these edges.
    """
    offsets, own_numbers = rows.graph.reverse.offsets, rows.known.own_numbers
    empty = offsets[1:] == offsets[:-1]
    own_rows = own_numbers - int(cupy.count_nonzero(empty[:own_numbers]))
    bitmap = cupy.packbits(empty.view(np.uint8), bitorder="little").view(np.uint32)
    return bitmap, own_rows, int(offsets[own_numbers])
