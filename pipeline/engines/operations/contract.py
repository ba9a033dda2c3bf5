"""Contractions of a rank: the edges between labels (kernels/pieces/contract.py).

Each rank goes through the edges that it has, piece by piece. The pairs of a piece are sorted and
added up, and wait until there are a quarter of those that the rank holds already: then they are
merged with these. So a rank holds little more than the distinct pairs of its edges. Pairs that do
not fit memory go to files (spill.py), if the program allows it. In the end rank 0 gets the pairs of
all ranks, part by part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....kernels.base.numbering import Numbering
from ....kernels.base.sort import radix_sort_with
from ....kernels.base.team import Team
from ....kernels.pieces import contract as kernels
from ....kernels.pieces.contract import collect_pairs, count_union, merge_pairs
from ....kernels.pieces.operators import Amounts, reads_weights
from ....kernels.pieces.piece import Piece
from ....partition.disk.memory import format_bytes
from ....partition.errors import LimitError
from ...ranks.communicator import Communicator
from ..ranks.edges import AnyRows
from ..ranks.graph import Adjacency, RankGraph
from .spill import PairRuns, Pairs, Spill, add_up, no_pairs
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

_EDGES_AT_ONCE = 1 << 16
"""The most edges that a thread makes pairs of at once."""

_PAIRS_AT_ONCE = 1 << 18
"""The most pairs that ranks send at once."""

_TURNED_PARTS = 4
"""Pairs are turned in so many parts, so that a sort of them takes as little as other sorts."""


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

    @classmethod
    def of(cls, pairs: Pairs) -> Contracted:
        first, other = (pairs.keys >> np.uint64(32)).astype(np.uint32), pairs.keys.astype(np.uint32)
        return cls(first, other, pairs.sums)


class PairSums:
    """Distinct pairs, with their sums, which threads add to.

    labels: all labels are below this number. extra_bytes: bytes that may be held beside
    ``contraction_bytes``. planned: the number of pairs that the program has planned for. spill:
    takes the pairs that do not fit; None for an error. both_ways: whether it takes each pair of two
    labels in both directions, as rows have them. check: called again and again, by any thread.
    """

    def __init__(
        self,
        labels: int,
        extra_bytes: int,
        planned: int = 0,
        spill: Spill | None = None,
        both_ways: bool = False,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self._bits = max(1, int(labels - 1).bit_length())
        self._most = max(LEAST_PAIRS, planned) + max(0, extra_bytes) // (_COPIES * _PAIR_BYTES)
        self._spill, self._both_ways, self._check = spill, both_ways, check
        self._runs: PairRuns | None = None
        self._held = no_pairs()
        self._waiting: list[Pairs] = []
        self._waiting_count = 0
        self._lock, self._merging = Lock(), Lock()

    def add(self, keys: NDArray[np.uint64], sums: NDArray[np.uint64]) -> None:
        """Add pairs, which may occur several times. Raises LimitError if too many are distinct, and
        there is no spill.
        """
        self._check()
        pairs = add_up([Pairs(keys, sums)], self._bits)
        with self._lock:
            self._waiting.append(pairs)
            self._waiting_count += len(pairs.keys)
            if self._waiting_count < max(LEAST_PAIRS, len(self._held.keys)) // _WAITING:
                return
        with self._merging:  # while one thread merges, others add as many pairs again
            self._merge()

    def held(self) -> Pairs | None:
        """Return all pairs, by rising key; None if some are in files."""
        self._merge()
        return self._held if self._runs is None else None

    def put_away(self) -> PairRuns:
        """Put all pairs into files, and return these."""
        self._merge()
        return self._put_away()

    def _put_away(self) -> PairRuns:
        """Put the pairs that are held into files, but for those that wait."""
        assert self._spill is not None
        if self._runs is None:
            self._runs = PairRuns(self._spill, self._bits, self._most // 2, self._check)
        held, self._held = self._held, no_pairs()
        self._runs.write([held])
        part = -(-len(held.keys) // _TURNED_PARTS)
        for first in range(0, len(held.keys) if self._both_ways else 0, max(1, part)):
            turned = [held.between(first, first + part).turned]
            self._runs.write([add_up(turned, self._bits)])
        return self._runs

    def take(self) -> Iterator[Pairs]:
        """Yield all pairs, in parts by rising key, and hold none of them any more."""
        held = self.held()
        if held is None:
            yield from self.put_away().merged()
            return
        self._held = no_pairs()
        for first in range(0, len(held.keys), _PAIRS_AT_ONCE):
            yield held.between(first, first + _PAIRS_AT_ONCE)

    def _merge(self) -> None:
        with self._lock:
            waiting, self._waiting = self._waiting, []
            self._waiting_count = 0
        if not waiting:
            return
        new, held = add_up(waiting, self._bits), self._held
        count = count_union(held.keys, new.keys)
        into = Pairs(np.empty(count, np.uint64), np.empty(count, np.uint64))
        merge_pairs(*held, *new, *into)
        self._held = into
        if len(self._held.keys) <= self._most:
            return
        if self._spill is None:
            more = format_bytes(_COPIES * _PAIR_BYTES * self._most)
            raise LimitError(
                f"the edges between groups of vertices do not fit the memory limit: there are more "
                f"than {self._most:,}; give {more} more to have room for twice as many"
            )
        del new, held, waiting, into
        self._put_away()


def add_pairs(
    found: PairSums,
    rows: AnyRows,
    team: Team,
    amounts: Amounts,
    ends: tuple[Numbering, NDArray[np.uint32]],
    other_ends: tuple[Numbering, NDArray[np.uint32]],
    directed: bool = False,
    loops: bool = True,
) -> int:
    """Add the pairs that the edges of some rows make. Returns the bytes read.

    ends, other_ends: places of rows and of targets, and labels by place. loops: whether pairs of a
    label with itself are added, too. If the edges are not directed, they stand in both directions,
    and each gives one pair; but edges inside a label give two.
    """

    def collect(piece: Piece, *_: Any) -> None:
        for part in piece.parts(_EDGES_AT_ONCE):
            room = len(part.targets)
            keys, sums = np.empty(room, np.uint64), np.empty(room, np.uint64)
            count = collect_pairs(amounts, part, *ends, *other_ends, directed, loops, keys, sums)
            found.add(keys[:count], sums[:count])

    return rows.every(team, collect).read


def contract(
    found: PairSums,
    graph: RankGraph,
    communicator: Communicator,
    team: Team,
    adjacencies: Sequence[Adjacency],
    directed: bool,
    note: Note,
    labels: Vector,
    amounts: Amounts,
    loops: bool,
) -> int:
    """Add the pairs that the edges of all ranks make, on rank 0. Returns the bytes that this rank
    has sent. The pairs are those of ``add_pairs``.

    adjacencies: subgraphs that have each edge once, in both directions if they are not directed.
    labels: of all vertices that edges of this rank have.
    """
    for adjacency in adjacencies:
        communicator.check()
        rows, source, target = adjacency.rows, adjacency.source, adjacency.target
        if not reads_weights(amounts):
            rows = rows.unweighted
        ends = source.places, labels.at(source.segment, graph)
        other_ends = target.places, labels.at(target.segment, graph)
        read = add_pairs(found, rows, team, amounts, ends, other_ends, directed, loops)
        note(int(rows.offsets[-1]), read)
    return 0 if communicator.size == 1 else _bring_to_first(communicator, found)


def _bring_to_first(communicator: Communicator, found: PairSums) -> int:
    """Bring the pairs of all ranks to rank 0. Returns the bytes that this rank has sent."""
    ranks, is_first, sent = communicator.size, communicator.rank == 0, 0
    parts = iter(()) if is_first else found.take()
    while True:
        part = next(parts, None)
        more = np.array([part is not None])
        told = [more] if part is None else [more, *part]
        came = communicator.exchange([told, *[[more]] * (ranks - 1)])
        sent += 0 if part is None else part.keys.nbytes + part.sums.nbytes
        if not any(message[0][0] for message in came):
            return sent
        for _, *pairs in came if is_first else ():
            if pairs:
                found.add(*pairs)
