"""Messages between ranks in a grid of partitions (cuda/ranks/grid.cuh), as the host sees them.

A rank's mail, its counts and the parents that it knows stand in memory of its own that others may
read. Where others cannot read it, the host carries the mail that each round wrote, and parents at
the end.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from ..base import arrays
from ..gpu.device import Device, pack
from ..gpu.graph import Array
from ..gpu.peer_memory import Exchange, PeerArrays, places_of
from .delegate_mail import set_bits
from .grid_rows import GridNumbering, Known
from .grid_structures import ARRIVAL, LETTER
from .numbering import aligned

EXPAND_COLUMNS, EXPAND_ROWS, FOLD = 1, 2, 3  # enum Round
PULL = 1  # enum Step


class Kind(IntEnum):
    """The kind of a letter (cuda/ranks/grid.cuh)."""

    FRONTIER_OF_COLUMNS = 0
    VISITED_OF_ROWS = 1
    FOUND_IN_ROWS = 2
    FOUND_IN_COLUMNS = 3


class Letters:
    """Lists of the partitions that each rank's mail tells each other rank of, in the order of the
    mail.
    """

    def __init__(self, numbering: GridNumbering) -> None:
        self.known = [numbering.known(rank) for rank in range(numbering.ranks)]
        self._own = [numbering.own(rank) for rank in range(numbering.ranks)]

    def of(self, kind: Kind, sender: int, receiver: int) -> list[int]:
        """Return the partitions that letters of this kind from ``sender`` tell ``receiver`` of.

        >>> four = Letters(GridNumbering(ranks=4, rows=2, columns=2, vertices=10))
        >>> [four.of(kind, 0, 1) for kind in Kind]  # side by side in the grid
        [[], [0], [1], []]
        """
        told = kind in (Kind.FRONTIER_OF_COLUMNS, Kind.VISITED_OF_ROWS)
        owner, peer = (sender, receiver) if told else (receiver, sender)
        by_column = kind in (Kind.FRONTIER_OF_COLUMNS, Kind.FOUND_IN_COLUMNS)
        known = self.known[peer]
        among = known.in_columns if by_column else known.in_rows
        return [p for p in self._own[owner] if p in among]

    def readers(self, kind: Kind, partition: int, owner: int) -> int:
        """Count the other ranks that have a partition's grid column, or row."""
        return sum(
            partition in self.of(kind, owner, rank)
            for rank in range(len(self.known))
            if rank != owner
        )


def inboxes_of(letters: Letters, rank: int) -> set[tuple[int, int]]:
    """Return the pairs of another rank and a partition that it tells this rank of, in whatever
    round.
    """
    senders = [sender for sender in range(len(letters.known)) if sender != rank]
    return {
        (sender, p) for kind in Kind for sender in senders for p in letters.of(kind, sender, rank)
    }


def shared(known: Known, ranks: int) -> list[arrays.Array]:
    """Return the arrays that ranks share: a rank's arrivals; counts (vertices, by segment) and mail
    (a bitmap and a list of all numbers) of even and odd rounds; and parents by all the rank's
    numbers.
    """
    mail = 2 * known.numbers // 32
    return [
        arrays.Array("arrivals", np.uint8, 2 * ranks * ARRIVAL.itemsize),
        arrays.Array("sent", np.uint32, 2 * len(known.segments)),
        arrays.Array("mail_0", np.uint32, mail),
        arrays.Array("mail_1", np.uint32, mail),
        arrays.Array("parent", np.uint32, known.numbers),
    ]


class GridMemory:
    """Mail in the memory that ranks share. The places of arrays in another rank's memory follow
    from the vertices that this other rank knows.
    """

    def __init__(self, device: Device, letters: Letters, rank: int) -> None:
        self._letters = letters
        self._rank = rank
        self.known = letters.known[rank]
        self.arrays = PeerArrays(device, shared(self.known, len(letters.known)))

    def arrivals_in(self, base: int) -> int:
        """Return the address at which this rank writes in another rank's memory, which begins at
        ``base``.
        """
        return base + 2 * self._rank * ARRIVAL.itemsize

    def letter_from(self, sender: int, base: int, partition: int) -> np.ndarray:
        """Return a rank's message about a partition, in its memory, which begins at ``base``."""
        known = self._letters.known[sender]
        places = places_of(shared(known, len(self._letters.known)))
        segment = known.at[partition]
        counts = base + places["sent"] + 4 * known.place[partition]
        return pack(
            LETTER,
            mail=[base + places[name] + segment.first // 8 for name in ("mail_0", "mail_1")],
            count=[counts, counts + 4 * len(known.segments)],
            parent=base + places["parent"] + 4 * segment.first,
            words=aligned(segment.vertices) // 32,
            to_list=known.numbers // 32,
            at=self.known.at[partition].first // 32,
        )

    def sent(self, parity: int) -> list[int]:
        """Return the number of vertices of each segment that mail tells of."""
        return self.arrays.array("sent").get().reshape(2, -1)[parity].tolist()

    def mail(self, parity: int, partition: int, count: int) -> Array:
        """Return the mail of a partition, which tells of ``count`` vertices: a list, or a
        bitmap.
        """
        segment, words = self.known.at[partition], self.known.numbers // 32
        mail = self.arrays.array(f"mail_{parity}")
        at, size = segment.first // 32, aligned(segment.vertices) // 32
        return mail[words + at : words + at + count] if count <= size else mail[at : at + size]


class _Inbox(NamedTuple):
    """Another rank's message about a partition. wanted: bitmap of the partition's vertices whose
    parents are still to come.
    """

    count: Array
    bitmap: Array
    listed: Array
    wanted: Array


class HostedGridMail:
    """Mail of a rank that others cannot read (search.Mail)."""

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
        """Return the part of a partition's mail from another rank that the kernel reads."""
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
        """Send the mail of a round, and put the others' mail where the kernel reads it."""
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
            for p, count, letter in zip(told, head[3:].tolist(), mail, strict=True):
                inbox = self._inboxes[peer, p]
                inbox.count.fill(count)
                into = inbox.listed if count <= len(inbox.bitmap) else inbox.bitmap
                into[: len(letter)] = letter
        self._memory.arrays.array("arrivals").set(arrivals.view(np.uint8).ravel())

    def fetch_parents(self) -> None:
        """Fetch the parents of vertices that another rank found first, and so knows."""
        cupy, parent = self._device.cupy, self._memory.arrays.array("parent")
        known = self._memory.known
        ranks = range(len(self._letters.known))
        wanted = {
            place: set_bits(cupy, inbox.wanted)
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
        """Return the owner's partitions of which the finder may know parents."""
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
    """Return the kernel's ``Segment`` of each partition that a rank knows."""
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
