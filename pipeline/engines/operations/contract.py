"""Contractions of a rank: the edges between labels (kernels/pieces/contract.py).

Each rank goes through the edges that it has, piece by piece. The pairs of a piece are sorted and
added up, and wait until there are a quarter of those that the rank holds already: then they are
merged with these. So a rank holds little more than the distinct pairs of its edges. In the end rank
0 gets the pairs of all ranks, part by part.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....kernels.base.sort import radix_sort_with
from ....kernels.base.team import Team
from ....kernels.pieces import contract as kernels
from ....kernels.pieces.contract import (
    add_up_pairs,
    collect_pairs,
    count_union,
    merge_pairs,
)
from ....kernels.pieces.operators import Amounts
from ....kernels.pieces.piece import Piece
from ....partition.disk.memory import format_bytes
from ....partition.errors import LimitError
from ...ranks.communicator import Communicator
from ..ranks.graph import Adjacency, RankGraph
from .tally import Note
from .vectors import Vector

CONTRACTING = kernels, radix_sort_with
"""The kernels that contractions call."""

_PAIR_BYTES = 8 + 8
_COPIES = 4
"""Copies that a rank holds of its pairs: themselves, those that wait, what a sort of these takes,
and all of them merged.
"""
_WAITING = 4
"""Pairs are merged once so many times the waiting ones are as many as those that are held."""

LEAST_PAIRS = 1 << 18
"""Number of pairs that a rank may always hold."""

_PAIRS_AT_ONCE = 1 << 18
"""The most pairs that ranks send at once."""


def contraction_bytes(pairs: int = 0) -> int:
    """Return the bytes that a contraction holds beside its vector, with so many distinct pairs."""
    return _COPIES * _PAIR_BYTES * max(LEAST_PAIRS, pairs)


class Contracted(NamedTuple):
    """The edges between labels, by rising label of the first end, then of the other. first, other:
    uint32 (m,), labels. sums: uint64 (m,), what the edges of a pair amount to.
    """

    first: NDArray[np.uint32]
    other: NDArray[np.uint32]
    sums: NDArray[np.uint64]


class _Pairs(NamedTuple):
    """Pairs of labels with sums. keys: uint64, as kernels/pieces/contract.py has them."""

    keys: NDArray[np.uint64]
    sums: NDArray[np.uint64]


class _PairSums:
    """Distinct pairs, with their sums, which threads add to. labels: all labels are below this
    number. most: the most distinct pairs.
    """

    def __init__(self, labels: int, most: int) -> None:
        self._bits = max(1, int(labels - 1).bit_length())
        self._most = most
        self._held = _no_pairs()
        self._waiting: list[_Pairs] = []
        self._waiting_count = 0
        self._lock = Lock()

    def add(self, keys: NDArray[np.uint64], sums: NDArray[np.uint64]) -> None:
        """Add pairs, which may occur several times. Raises LimitError if too many are distinct."""
        pairs = self._add_up([_Pairs(keys, sums)])
        with self._lock:
            self._waiting.append(pairs)
            self._waiting_count += len(pairs.keys)
            if self._waiting_count >= max(LEAST_PAIRS, len(self._held.keys)) // _WAITING:
                self._merge()

    def take(self) -> _Pairs:
        """Return all pairs, by rising key, and hold none of them any more."""
        self._merge()
        taken, self._held = self._held, _no_pairs()
        return taken

    def _merge(self) -> None:
        if not self._waiting:
            return
        new, held = self._add_up(self._waiting), self._held
        self._waiting_count = 0
        count = count_union(held.keys, new.keys)
        into = _Pairs(np.empty(count, np.uint64), np.empty(count, np.uint64))
        merge_pairs(*held, *new, *into)
        self._held = into
        if len(self._held.keys) > self._most:
            more = format_bytes(_COPIES * _PAIR_BYTES * self._most)
            raise LimitError(
                f"the edges between groups of vertices do not fit the memory limit: there are more "
                f"than {self._most:,}; give {more} more to have room for twice as many"
            )

    def _add_up(self, some: list[_Pairs]) -> _Pairs:
        """Return the distinct pairs of some lists, which are emptied."""
        keys, sums = (np.concatenate(arrays) for arrays in zip(*some, strict=True))
        some.clear()
        count = len(keys)
        places, scratch = np.arange(count, dtype=np.uint32), np.empty(count, np.uint32)
        bits = self._bits, self._bits
        order = radix_sort_with(keys, places, np.empty(count, np.uint64), scratch, *bits)
        into = _Pairs(np.empty(count, np.uint64), np.empty(count, np.uint64))
        distinct = add_up_pairs(*order, sums, *into)
        return _Pairs(into.keys[:distinct].copy(), into.sums[:distinct].copy())


def contract(
    graph: RankGraph,
    communicator: Communicator,
    team: Team,
    adjacencies: Sequence[Adjacency],
    directed: bool,
    extra_bytes: int,
    note: Note,
    labels: Vector,
    amounts: Amounts,
    loops: bool,
    planned: int,
) -> tuple[Contracted, int]:
    """Return the edges between labels, on rank 0, and the bytes that this rank has sent.

    adjacencies: subgraphs that have each edge once, in both directions if they are not directed.
    extra_bytes: bytes that may be held beside ``contraction_bytes``. labels: of all vertices that
    edges of this rank have. loops: whether the edges inside a label are told. planned: the number
    of pairs that the program has planned for.
    """
    most = max(LEAST_PAIRS, planned) + extra_bytes // (_COPIES * _PAIR_BYTES)
    found = _PairSums(graph.vertices, most)
    for adjacency in adjacencies:
        communicator.check()
        rows, source, target = adjacency.rows, adjacency.source, adjacency.target
        ends = source.places, labels.at(source.segment, graph)
        other_ends = target.places, labels.at(target.segment, graph)

        def collect(
            piece: Piece, *_: Any, ends: tuple = ends, other_ends: tuple = other_ends
        ) -> None:
            room = len(piece.targets)
            keys, sums = np.empty(room, np.uint64), np.empty(room, np.uint64)
            given = amounts, piece, *ends, *other_ends, directed, loops
            count = collect_pairs(*given, keys, sums)
            found.add(keys[:count], sums[:count])

        note(int(rows.offsets[-1]), rows.every(team, collect).read)
    sent = 0 if communicator.size == 1 else _bring_to_first(communicator, found)
    keys, sums = found.take()
    first, other = (keys >> np.uint64(32)).astype(np.uint32), keys.astype(np.uint32)
    if loops and not directed:
        sums[first == other] //= np.uint64(2)  # these edges stand in both directions
    return Contracted(first, other, sums), sent


def _no_pairs() -> _Pairs:
    return _Pairs(np.empty(0, np.uint64), np.empty(0, np.uint64))


def _bring_to_first(communicator: Communicator, found: _PairSums) -> int:
    """Bring the pairs of all ranks to rank 0. Returns the bytes that this rank has sent."""
    ranks, is_first = communicator.size, communicator.rank == 0
    keys, sums = _no_pairs() if is_first else found.take()
    count = np.array([len(keys)])
    most = max(int(came[0][0]) for came in communicator.exchange([[count]] * ranks))
    for first in range(0, most, _PAIRS_AT_ONCE):
        part = slice(first, first + _PAIRS_AT_ONCE)
        told = [] if is_first else [keys[part], sums[part]]
        came = communicator.exchange([told, *[[]] * (ranks - 1)])
        for pairs in came[1:] if is_first else ():
            found.add(*pairs)
    return keys.nbytes + sums.nbytes
