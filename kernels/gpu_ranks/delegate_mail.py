"""What ranks of a search by several devices send each other (cuda/mail.cuh), as the host sees it.

A rank's mail and parents stand in memory of its own that others may read. Where they cannot, the
host has what each round wrote sent, and parents at the end.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..gpu.device import Device
from ..gpu.graph import Array
from .delegate_rows import RankRows
from .delegate_structures import ARRIVAL
from .numbering import aligned
from .peer_memory import Exchange, PeerMemory


class RankMemory:
    """A rank's arrivals, mail of even and odd rounds, and parents.

    starts: where each of these begins. parent: uint32, by all numbers of the rank.
    """

    def __init__(self, device: Device, rows: RankRows) -> None:
        self._rows = rows
        ranks = rows.numbering.ranks
        self.delegate_words = rows.numbering.first_normal // 32
        self.ghost_words = (rows.numbers - rows.own_numbers) // 32
        mail = 4 * 2 * (self.delegate_words + self.ghost_words)
        sizes = [2 * ranks * ARRIVAL.itemsize, mail, mail, 4 * rows.numbers]
        starts = np.cumsum([0, *(-(-size // 256) * 256 for size in sizes)]).tolist()
        self.starts: list[int] = starts[:-1]
        self.peers = PeerMemory(device, starts[-1])
        self.parent = self._view(3, rows.numbers)

    @property
    def arrivals_at(self) -> int:
        return self.peers.address

    @property
    def mail_at(self) -> list[int]:
        return [self.peers.address + at for at in self.starts[1:3]]

    def region_of(self, rank: int) -> tuple[int, int]:
        """Where a rank's delegates stand in bitmaps, in words."""
        first, end = self._rows.numbering.own_delegates(rank)
        return first // 32, end // 32

    def ghosts_of(self, peer: int) -> tuple[int, int, int]:
        """Of our ghosts that it owns: words before them in mail, their words, the first of them."""
        first = self._rows.ghost_first[peer]
        words = aligned(len(self._rows.ghosts[peer])) // 32
        return (first - self._rows.own_numbers) // 32, words, first

    def mail(self, parity: int) -> Array:
        """Delegates, as a bitmap and as a list, then ghosts."""
        return self._view(1 + parity, 2 * (self.delegate_words + self.ghost_words))

    def set_arrivals(self, arrivals: NDArray[np.void]) -> None:
        self._view(0, arrivals.nbytes // 4).set(arrivals.view(np.uint32).ravel())

    def _view(self, part: int, length: int) -> Array:
        return self.peers.array(self.starts[part], length, np.uint32)


class _Inbox(NamedTuple):
    """Copies of what a peer sends. wanted: bitmap of its ghosts whose parents are still to come."""

    delegates: Array
    ghosts: Array
    wanted: Array


class HostedMail:
    """Mail of a rank that others cannot read. ``begin`` of each search, ``carry`` of each round,
    ``fetch_parents`` at the end: all ranks together.

    exchange: takes and gives device arrays.
    """

    def __init__(
        self, device: Device, rows: RankRows, memory: RankMemory, exchange: Exchange
    ) -> None:
        self._device = device
        self._rows = rows
        self._memory = memory
        self._exchange = exchange
        self._inboxes: dict[int, _Inbox] = {}

    def open(self, peer: int, words: int) -> dict[str, Any]:
        """What the kernel is to know of a peer. words: of its ghosts that this rank owns."""
        cupy, delegates = self._device.cupy, 2 * self._memory.delegate_words
        inbox = cupy.empty(delegates + 2 * words, np.uint32)
        wanted = cupy.zeros(words, np.uint32)
        self._inboxes[peer] = _Inbox(inbox[:delegates], inbox[delegates:], wanted)
        return {
            "mail": [inbox.data.ptr] * 2,
            "wanted": wanted.data.ptr,
            "all_ghost_words": words,
        }

    def begin(self) -> None:
        for inbox in self._inboxes.values():
            inbox.wanted.fill(0)

    def carry(self, number: int, fresh: int, sent: list[int]) -> None:
        """Send the mail of a round, and put that of the others where the kernel reads it.

        fresh: whether this rank has found anything. sent: vertices for each rank, and delegates.
        """
        memory, ranks, parity = self._memory, self._rows.numbering.ranks, number & 1
        words, mail = memory.delegate_words, memory.mail(parity)
        delegates = _packed(mail[:words], mail[words : 2 * words], sent[ranks])
        ghosts = mail[2 * words :]
        messages = []
        for peer in range(ranks):
            at, own_words, _ = memory.ghosts_of(peer)
            bitmap = ghosts[at : at + own_words]
            listed = ghosts[memory.ghost_words + at : memory.ghost_words + at + own_words]
            head = np.array([fresh, sent[ranks], sent[peer]], np.int64)
            messages.append([head, delegates, _packed(bitmap, listed, sent[peer])])
        told = self._exchange(messages)
        arrivals = np.zeros((ranks, 2), ARRIVAL)
        for peer, inbox in self._inboxes.items():
            (fresh, found, found_ghosts), found_delegates, theirs = told[peer]
            _put(inbox.delegates, found, found_delegates)
            _put(inbox.ghosts, found_ghosts, theirs)
            arrivals[peer, parity] = number, fresh, found, found_ghosts, 0
        memory.set_arrivals(arrivals)

    def fetch_parents(self, ghost_vertices: list[Array]) -> None:
        """Of vertices that another rank found first: it knows their parents.

        ghost_vertices: by rank, our numbers of its ghosts that we own.
        """
        cupy, parent = self._device.cupy, self._memory.parent
        wanted = {
            peer: cupy.flatnonzero(
                cupy.unpackbits(inbox.wanted.view(np.uint8), bitorder="little")
            ).astype(np.uint32)
            for peer, inbox in self._inboxes.items()
        }
        ranks = range(self._rows.numbering.ranks)
        nothing = cupy.empty(0, np.uint32)
        asked = self._exchange([[wanted.get(peer, nothing)] for peer in ranks])
        answers = [
            [parent[self._rows.ghost_first[peer] + places]] for peer, (places,) in enumerate(asked)
        ]
        for peer, (parents,) in enumerate(self._exchange(answers)):
            if len(parents):
                parent[ghost_vertices[peer][wanted[peer]]] = parents


def _packed(bitmap: Array, listed: Array, count: int) -> Array:
    return listed[:count] if count <= len(listed) else bitmap


def _put(inbox: Array, count: int, mail: Array) -> None:
    """A bitmap, or the list after it."""
    words = len(inbox) // 2
    at = words if count <= words else 0
    inbox[at : at + len(mail)] = mail
