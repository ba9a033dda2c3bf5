"""Messages between ranks in the layout of delegates (cuda/ranks/mail.cuh), as the host sees them.

A rank's mail and parents stand in memory of its own that others may read. Where others cannot read
it, the host has the mail that each round wrote sent, and parents at the end.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..base import arrays
from ..gpu.device import Device
from ..gpu.graph import Array
from ..gpu.peer_memory import Exchange, PeerArrays
from .delegate_rows import DelegateRows
from .delegate_structures import ARRIVAL
from .numbering import aligned


def shared(ranks: int, delegates: int, own_numbers: int, numbers: int) -> list[arrays.Array]:
    """Return the arrays that ranks share: a rank's arrivals; mail of even and odd rounds
    (delegates, as a bitmap and as a list, then ghosts); and parents by all the rank's numbers.

    delegates, own_numbers, numbers: where numbers of delegates, of own vertices, and of all end.
    """
    mail = 2 * (delegates + numbers - own_numbers) // 32
    return [
        arrays.Array("arrivals", np.uint8, 2 * ranks * ARRIVAL.itemsize),
        arrays.Array("mail_0", np.uint32, mail),
        arrays.Array("mail_1", np.uint32, mail),
        arrays.Array("parent", np.uint32, numbers),
    ]


class DelegateMemory:
    """Places in a rank's bitmaps and mail, in words."""

    def __init__(self, device: Device, rows: DelegateRows) -> None:
        self._rows = rows
        ranks, delegates = rows.ranks, rows.numbering.first_normal
        self.delegate_words = delegates // 32
        self.ghost_words = (rows.numbers - rows.own_numbers) // 32
        self.arrays = PeerArrays(device, shared(ranks, delegates, rows.own_numbers, rows.numbers))

    def region_of(self, rank: int) -> tuple[int, int]:
        """Return where a rank's delegates begin and end in bitmaps, in words."""
        first, end = self._rows.numbering.own_delegates(rank)
        return first // 32, end // 32

    def ghosts_of(self, peer: int) -> tuple[int, int, int]:
        """Return facts about our ghosts that another rank owns: the number of words before them in
        mail, the number of their words, and the first of them.
        """
        first = self._rows.ghost_first[peer]
        words = aligned(len(self._rows.ghosts[peer])) // 32
        return (first - self._rows.own_numbers) // 32, words, first


class _Inbox(NamedTuple):
    """Copies of the mail that a peer sends. wanted: bitmap of its ghosts whose parents are still to
    come.
    """

    delegates: Array
    ghosts: Array
    wanted: Array


class HostedDelegateMail:
    """Mail of a rank that others cannot read (search.Mail).

    ghost_vertices: by rank, our numbers of its ghosts that we own. sent: what the kernel says of
    even and odd rounds: vertices for each rank, and delegates. exchange: takes and gives device
    arrays.
    """

    def __init__(
        self,
        device: Device,
        rows: DelegateRows,
        memory: DelegateMemory,
        exchange: Exchange,
        ghost_vertices: list[Array],
        sent: Array,
    ) -> None:
        self._device = device
        self._rows = rows
        self._memory = memory
        self._exchange = exchange
        self._ghost_vertices = ghost_vertices
        self._sent = sent
        self._inboxes: dict[int, _Inbox] = {}

    def open(self, peer: int, words: int) -> dict[str, Any]:
        """Return the facts of a peer for the kernel. words: of the peer's ghosts that this rank
        owns.
        """
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

    def carry(self, control: np.void) -> None:
        """Send the mail of a round, and put the others' mail where the kernel reads it."""
        number, fresh = int(control["round"]), int(control["fresh"])
        memory, ranks, parity = self._memory, self._rows.ranks, number & 1
        sent = self._sent.get().reshape(2, -1)[parity].tolist()
        words, mail = memory.delegate_words, memory.arrays.array(f"mail_{parity}")
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
        memory.arrays.array("arrivals").set(arrivals.view(np.uint8).ravel())

    def fetch_parents(self) -> None:
        """Fetch the parents of vertices that another rank found first, and so knows."""
        cupy, parent = self._device.cupy, self._memory.arrays.array("parent")
        wanted = {peer: set_bits(cupy, inbox.wanted) for peer, inbox in self._inboxes.items()}
        ranks = range(self._rows.ranks)
        nothing = cupy.empty(0, np.uint32)
        asked = self._exchange([[wanted.get(peer, nothing)] for peer in ranks])
        answers = [
            [parent[self._rows.ghost_first[peer] + places]] for peer, (places,) in enumerate(asked)
        ]
        for peer, (parents,) in enumerate(self._exchange(answers)):
            if len(parents):
                parent[self._ghost_vertices[peer][wanted[peer]]] = parents


def set_bits(cupy: Any, bitmap: Array) -> Array:
    """Return the places of the bits that are set: uint32."""
    bits = cupy.unpackbits(bitmap.view(np.uint8), bitorder="little")
    return cupy.flatnonzero(bits).astype(np.uint32)


def _packed(bitmap: Array, listed: Array, count: int) -> Array:
    return listed[:count] if count <= len(listed) else bitmap


def _put(inbox: Array, count: int, mail: Array) -> None:
    """Put mail into an inbox: as a bitmap, or as the list after it."""
    words = len(inbox) // 2
    at = words if count <= words else 0
    inbox[at : at + len(mail)] = mail
