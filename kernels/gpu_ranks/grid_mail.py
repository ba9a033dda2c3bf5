"""What ranks of a search in a grid of partitions send each other (cuda/grid.cuh), as the host sees
it.

A rank's mail, its counts and the parents that it knows stand in memory of its own that others may
read. Where they cannot, the host carries what each round wrote, and parents at the end.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from ..gpu.device import Device, pack
from ..gpu.graph import Array
from .grid_rows import GridNumbering, Known
from .grid_structures import ARRIVAL, LETTER
from .numbering import aligned
from .peer_memory import Exchange, PeerMemory

EXPAND_COLUMNS, EXPAND_ROWS, FOLD = 1, 2, 3  # enum Round
PULL = 1  # enum Step


class Kind(IntEnum):
    """Of letters (cuda/grid.cuh)."""

    FRONTIER_OF_COLUMNS = 0
    VISITED_OF_ROWS = 1
    FOUND_IN_ROWS = 2
    FOUND_IN_COLUMNS = 3


class Letters:
    """Which partitions each rank's mail tells each other one of, in the order in which it does."""

    def __init__(self, numbering: GridNumbering) -> None:
        self.known = [numbering.known(rank) for rank in range(numbering.ranks)]
        self._own = [numbering.own(rank) for rank in range(numbering.ranks)]

    def of(self, kind: Kind, sender: int, receiver: int) -> list[int]:
        """
        >>> four = Letters(GridNumbering(ranks=4, rows=2, columns=2, vertices=10))
        >>> [four.of(kind, 0, 1) for kind in Kind]  # side by side in the grid
        [[], [0], [1], []]
        """
        told = kind in (Kind.FRONTIER_OF_COLUMNS, Kind.VISITED_OF_ROWS)
        owner, other = (sender, receiver) if told else (receiver, sender)
        by_column = kind in (Kind.FRONTIER_OF_COLUMNS, Kind.FOUND_IN_COLUMNS)
        known = self.known[other]
        among = known.in_columns if by_column else known.in_rows
        return [p for p in self._own[owner] if p in among]

    def readers(self, kind: Kind, partition: int, owner: int) -> int:
        """Other ranks that have a partition's grid column, or row."""
        return sum(
            partition in self.of(kind, owner, rank)
            for rank in range(len(self.known))
            if rank != owner
        )


def inboxes_of(letters: Letters, rank: int) -> set[tuple[int, int]]:
    """Other ranks, and the partitions that each tells this one of, in whatever round."""
    others = [sender for sender in range(len(letters.known)) if sender != rank]
    return {
        (sender, p) for kind in Kind for sender in others for p in letters.of(kind, sender, rank)
    }


class GridMemory:
    """A rank's arrivals, counts and mail of even and odd rounds, and parents by all its numbers.

    What stands where in another rank's memory follows from what it knows.
    """

    def __init__(self, device: Device, letters: Letters, rank: int) -> None:
        self._letters = letters
        self._rank = rank
        self.known = letters.known[rank]
        self._starts = self._starts_of(rank)
        self.peers = PeerMemory(device, self._starts[-1])
        self.parent = self._view(4, self.known.numbers)

    @property
    def arrivals_at(self) -> int:
        return self.peers.address

    @property
    def sent_at(self) -> int:
        return self.peers.address + self._starts[1]

    @property
    def mail_at(self) -> list[int]:
        return [self.peers.address + at for at in self._starts[2:4]]

    def arrivals_in(self, base: int) -> int:
        """Where this rank writes in another one's memory, which begins at ``base``."""
        return base + 2 * self._rank * ARRIVAL.itemsize

    def letter_from(self, sender: int, base: int, partition: int) -> np.ndarray:
        """What a rank says of a partition, in its memory, which begins at ``base``."""
        starts, known = self._starts_of(sender), self._letters.known[sender]
        segment, place = known.at[partition], known.place[partition]
        counts = base + starts[1] + 4 * place
        return pack(
            LETTER,
            mail=[base + at + segment.first // 8 for at in starts[2:4]],
            count=[counts, counts + 4 * len(known.segments)],
            parent=base + starts[4] + 4 * segment.first,
            words=aligned(segment.vertices) // 32,
            to_list=known.numbers // 32,
            at=self.known.at[partition].first // 32,
        )

    def sent(self, parity: int) -> list[int]:
        """Vertices of each segment that mail tells of."""
        return self._view(1, 2 * len(self.known.segments)).get().reshape(2, -1)[parity].tolist()

    def mail(self, parity: int, partition: int, count: int) -> Array:
        """Of a partition, of which it tells ``count`` vertices: a list, or a bitmap."""
        segment, words = self.known.at[partition], self.known.numbers // 32
        mail = self._view(2 + parity, 2 * words)
        at, own = segment.first // 32, aligned(segment.vertices) // 32
        return mail[words + at : words + at + count] if count <= own else mail[at : at + own]

    def set_arrivals(self, arrivals: np.ndarray) -> None:
        self._view(0, arrivals.nbytes // 4).set(arrivals.view(np.uint32).ravel())

    def _view(self, part: int, length: int) -> Array:
        return self.peers.array(self._starts[part], length, np.uint32)

    def _starts_of(self, rank: int) -> list[int]:
        known = self._letters.known[rank]
        mail = 4 * 2 * (known.numbers // 32)
        arrivals = 2 * len(self._letters.known) * ARRIVAL.itemsize
        sizes = [arrivals, 2 * 4 * len(known.segments), mail, mail, 4 * known.numbers]
        return np.cumsum([0, *(-(-size // 256) * 256 for size in sizes)]).tolist()


class _Inbox(NamedTuple):
    """What another rank says of a partition. wanted: those of it whose parents are to come."""

    count: Array
    bitmap: Array
    listed: Array
    wanted: Array


class HostedGridMail:
    """Mail of a rank that the host carries. ``begin`` of each search, ``carry`` of each round,
    ``fetch_parents`` at the end: all ranks together.
    """

    def __init__(
        self, device: Device, letters: Letters, rank: int, memory: GridMemory, exchange: Exchange
    ) -> None:
        self._device = device
        self._letters = letters
        self._rank = rank
        self._memory = memory
        self._exchange = exchange
        self._inboxes: dict[tuple[int, int], _Inbox] = {}

    def letter_from(self, sender: int, partition: int) -> np.ndarray:
        """What the kernel reads of a partition's mail that comes from another rank."""
        segment = self._memory.known.at[partition]
        words = aligned(segment.vertices) // 32
        if (sender, partition) not in self._inboxes:
            cupy = self._device.cupy
            inbox = cupy.zeros(1 + 3 * words, np.uint32)
            parts = cupy.split(inbox, [1, 1 + words, 1 + 2 * words])
            self._inboxes[sender, partition] = _Inbox(*parts)
        inbox = self._inboxes[sender, partition]
        return pack(
            LETTER,
            mail=[inbox.bitmap.data.ptr] * 2,
            count=[inbox.count.data.ptr] * 2,
            wanted=inbox.wanted.data.ptr,
            words=words,
            to_list=words,
            at=segment.first // 32,
        )

    def begin(self) -> None:
        for inbox in self._inboxes.values():
            inbox.wanted.fill(0)

    def carry(self, control: np.void) -> None:
        """Send the mail of a round, and put that of the others where the kernel reads it."""
        number = int(control["round"])
        kind, sent = _kind_of(control), self._memory.sent(number & 1)
        place = self._memory.known.place
        counters = [int(control[name]) for name in ("own_push_work", "own_pull_work", "own_found")]
        ranks = range(len(self._letters.known))
        messages = []
        for peer in ranks:
            told = self._letters.of(kind, self._rank, peer) if peer != self._rank else []
            counts = [sent[place[p]] for p in told]
            mail = [
                self._memory.mail(number & 1, p, count)
                for p, count in zip(told, counts, strict=True)
            ]
            messages.append([np.array([*counters, *counts], np.int64), *mail])
        arrivals = np.zeros((len(ranks), 2), ARRIVAL)
        for peer, (head, *mail) in enumerate(self._exchange(messages)):
            if peer == self._rank:
                continue
            arrivals[peer, number & 1] = number, *head[:3].tolist(), 0
            told = self._letters.of(kind, peer, self._rank)
            for p, count, some in zip(told, head[3:].tolist(), mail, strict=True):
                inbox = self._inboxes[peer, p]
                inbox.count.fill(count)
                into = inbox.listed if count <= len(inbox.bitmap) else inbox.bitmap
                into[: len(some)] = some
        self._memory.set_arrivals(arrivals)

    def fetch_parents(self) -> None:
        """Of vertices that another rank found first: it knows their parents."""
        cupy, parent = self._device.cupy, self._memory.parent
        known = self._memory.known
        ranks = range(len(self._letters.known))
        wanted = {
            place: cupy.flatnonzero(
                cupy.unpackbits(inbox.wanted.view(np.uint8), bitorder="little")
            ).astype(np.uint32)
            for place, inbox in self._inboxes.items()
            if place[1] in known.at and place[1] % len(ranks) == self._rank
        }
        asked = self._exchange(
            [[wanted[peer, p] for p in self._asked(self._rank, peer)] for peer in ranks]
        )
        answers = [
            [
                parent[known.at[p].first + places]
                for p, places in zip(self._asked(peer, self._rank), message, strict=True)
            ]
            for peer, message in enumerate(asked)
        ]
        for peer, message in enumerate(self._exchange(answers)):
            for p, parents in zip(self._asked(self._rank, peer), message, strict=True):
                if len(parents):
                    parent[known.at[p].first + wanted[peer, p]] = parents

    def _asked(self, owner: int, finder: int) -> list[int]:
        """The owner's partitions of which the finder may know parents."""
        if owner == finder:
            return []
        kinds = (Kind.FOUND_IN_ROWS, Kind.FOUND_IN_COLUMNS)
        return sorted({p for kind in kinds for p in self._letters.of(kind, finder, owner)})


def _kind_of(control: np.void) -> Kind:
    if control["pending"] == EXPAND_COLUMNS:
        return Kind.FRONTIER_OF_COLUMNS
    if control["pending"] == EXPAND_ROWS:
        return Kind.VISITED_OF_ROWS
    return Kind.FOUND_IN_COLUMNS if control["step"] == PULL else Kind.FOUND_IN_ROWS


def segments_of(letters: Letters, known: Known, rank: int) -> list[tuple[int, int, int, int]]:
    """The kernel's ``Segment`` of each partition that a rank knows."""
    found = []
    for i, segment in enumerate(known.segments):
        p = segment.partition
        if i < known.own:
            columns = letters.readers(Kind.FRONTIER_OF_COLUMNS, p, rank)
            rows = letters.readers(Kind.VISITED_OF_ROWS, p, rank)
        else:
            columns, rows = int(p in known.in_columns), int(p in known.in_rows)
        found.append((segment.first // 32, aligned(segment.vertices) // 32, columns, rows))
    return found
