"""PageRank by ranks with a share of the edges each. Each rank has a part of the vertices advance,
and tells others of these vertices. If the edges to a vertex are in several shares, what comes to it
is added up over their ranks. The kernels stand in cuda/walks/shared_walks.cu.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import DTypeLike

from ..base.arrays import Array as Declared
from ..gpu.device import pack
from ..gpu.graph import Array, Rows
from .meeting import MEETING, Meeting, open_meeting
from .pagerank import CONTROL, GpuWalk, Iteration, share_type
from .pagerank import warm_up as warm_up_walk
from .ranks import Ranks
from .rows import CutRows, ProgramGraph, blocks_of, c_name, cut, kernel_of

DEALING = np.dtype([("part", "u8"), ("ranks", "u4"), ("each", "u4")], align=True)
SHARED = np.dtype(
    [
        *((name, "u8") for name in ("came", "own_came")),
        ("shares", "u8", 2),
        *((name, "u8") for name in ("rows", "own_split")),
        ("meeting", MEETING),
        ("dealing", DEALING),
        *((name, "u4") for name in ("listed", "own_splits", "splits")),
    ],
    align=True,
)

_SOURCE = "walks/shared_walks.cu"
_SHARES = "even shares", "odd shares"
_MOST_RANKS = 31  # that a role has bits for
_LINE = 16  # values of a line of the cache
_TOLD = 3  # numbers, by each rank in an iteration


class SharedWalk(Protocol):
    """A walk as a GpuWalk is, over the shares of several ranks."""

    @property
    def sent(self) -> int:
        """Return the bytes that all ranks send in an iteration."""
        ...

    def step(self, iterations: int, due: bool) -> tuple[list[Iteration], bool]:
        """Run some iterations, as ``run`` does. due: whether this rank wants to save. Also returns
        whether any rank wants to save.
        """
        ...

    def share(self) -> np.ndarray:
        """Return the shares of a GpuWalk, on rank 0."""
        ...

    def ranks(self) -> np.ndarray:
        """Return the PageRank of a GpuWalk, on rank 0."""
        ...

    def close(self) -> None:
        """Close the walk. All ranks call this together."""
        ...


def shared_walk(
    graph: ProgramGraph,
    ranks: Ranks,
    damping: float,
    tolerance: float | None,
    keeps: bool,
    likely: np.ndarray | None = None,
    share: np.ndarray | None = None,
    single: bool = False,
) -> SharedWalk:
    """Open the walk of two or more ranks: in their memory where they can read each other's, else by
    messages.
    """
    of = damping, keeps, likely, share, single
    dealt = ranks.size * _each(graph, ranks)
    arrays = [Declared("came", np.float64, dealt)]
    arrays += [Declared(name, share_type(single), dealt) for name in _SHARES]
    meeting = open_meeting(ranks, arrays) if ranks.size <= _MOST_RANKS else None
    if meeting is None:
        return _WalkByMessages(graph, ranks, *of)
    try:
        return _WalkInMemory(graph, ranks, meeting, tolerance, *of)
    except BaseException:
        meeting.close()
        raise


class _Ownership(NamedTuple):
    """The vertices that this rank owns, which it has advance, and its rows: those rows of the graph
    whose vertices this rank owns or has entries of. The other ranks' rows stay out of its way.

    rows: uint32 (rows, 2), vertices and their roles, as the kernel says. cut: the entries in these
    rows. own_split: uint32, the rows of own vertices that stand in several shares. splits: whether
    any rank has such rows. sent: bytes that all ranks send in an iteration.
    """

    rows: Array
    cut: CutRows
    own_split: Array
    splits: bool
    sent: int

    @classmethod
    def of(cls, graph: ProgramGraph, ranks: Ranks, share_bytes: int) -> _Ownership:
        """Find out which vertices and rows are this rank's. share_bytes: of one share."""
        whole, n = graph.cut.rows, graph.vertices
        with graph.device.use() as cupy:
            marks = [cupy.zeros(-(-n // 32), np.uint32) for _ in range(2)]
            _mark_entries(graph)(graph.cut.packed(), *marks)
            came = ranks.tell([marks] * ranks.size)
            all_words = cupy.concatenate(
                [cupy.asarray(words) for message in came for words in message]
            )
            del marks, came
            of = all_words, np.uint32(n), np.uint32(ranks.rank), np.uint32(ranks.size)
            firsts = [cupy.zeros(-(-n // 32) + 1, np.uint32) for _ in range(2)]
            told = cupy.zeros(1, np.uint64)
            _count_roles(graph)(*of, *firsts, told)
            for first in firsts:
                cupy.cumsum(first, out=first)
            listed, own_splits = (int(first[-1]) for first in firsts)
            rows, own_split = cupy.empty((listed, 2), np.uint32), cupy.empty(own_splits, np.uint32)
            offsets = cupy.full(listed + 1, whole.edges, whole.offsets.dtype)
            _list_rows(graph)(*of, *firsts, whole.offsets, rows, offsets, own_split)
            del of, all_words, firsts
            sent = share_bytes * int(told[0]) + 8 * (ranks.size - 1) * own_splits
            sent, splits = ranks.total([sent, own_splits])
            own_cut = cut(graph.device, Rows(offsets, whole.near, whole.far))
            return cls(rows, own_cut, own_split, splits > 0, int(sent))


class _WalkInMemory(GpuWalk):
    """A walk of ranks that write shares in each other's memory, and read there what has come to
    split rows. Many iterations are one launch, as for one device. The values of vertices stand in
    the order in which vertices are dealt out to ranks (cuda/programs/values.cuh).
    """

    source, function = _SOURCE, "pagerank_shares"

    def __init__(
        self,
        graph: ProgramGraph,
        ranks: Ranks,
        meeting: Meeting,
        tolerance: float | None,
        damping: float,
        keeps: bool,
        likely: np.ndarray | None,
        share: np.ndarray | None,
        single: bool,
    ) -> None:
        self._ranks, self._meeting = ranks, meeting
        owned = _Ownership.of(graph, ranks, np.dtype(share_type(single)).itemsize)
        super().__init__(graph, damping, tolerance, keeps, likely, share, single, owned.cut)
        self._ended = meeting.ended
        self._owned, self.sent = owned, owned.sent
        self._tables = [meeting.table(name) for name in ("came", *_SHARES)]
        self._shared = pack(
            SHARED,
            came=self._tables[0],
            own_came=meeting.array("came"),
            shares=[table.data.ptr for table in self._tables[1:]],
            rows=owned.rows,
            own_split=owned.own_split,
            meeting=meeting.packed(),
            dealing=pack(
                DEALING,
                part=-(-(1 << 64) // ranks.size),
                ranks=ranks.size,
                each=_each(graph, ranks),
            ),
            listed=len(owned.rows),
            own_splits=len(owned.own_split),
            splits=owned.splits,
        )
        ranks.total([])  # none waits in a kernel for one that still makes what it needs

    def step(self, iterations: int, due: bool) -> tuple[list[Iteration], bool]:
        done = self.run(iterations)
        (wants,) = self._ranks.total([due])
        return done, wants > 0

    def _hold(self, first: Array) -> list[Array]:
        shares = [self._meeting.array(name) for name in _SHARES]
        for held, of in self._dealt(shares[0]):
            held[:] = first[of]
        return shares

    def _now(self) -> Array:
        found = self._graph.device.cupy.empty(self._graph.vertices, self._kind)
        for held, of in self._dealt(self._shares[self._turn]):
            found[of] = held
        return found

    def _dealt(self, values: Array) -> Iterator[tuple[Array, slice]]:
        """Yield, for each rank, its values, and the slice of the vertices that these belong to."""
        n, size, share = self._graph.vertices, self._ranks.size, _each(self._graph, self._ranks)
        for rank in range(size):
            yield values[rank * share :][: len(range(rank, n, size))], slice(rank, None, size)

    def _launch(self) -> None:
        of = self._in.packed, self._sum, self._walk, self._shared
        self._meeting.run(lambda: self._kernel(*of))

    def close(self) -> None:
        self._meeting.close()


class _WalkByMessages(GpuWalk):
    """A walk of ranks that send messages. An iteration is two launches, and two exchanges."""

    source, function = _SOURCE, "gather_shares"

    def __init__(
        self,
        graph: ProgramGraph,
        ranks: Ranks,
        damping: float,
        keeps: bool,
        likely: np.ndarray | None,
        share: np.ndarray | None,
        single: bool,
    ) -> None:
        super().__init__(graph, damping, None, keeps, likely, share, single)
        self._ranks = ranks
        with graph.device.use() as cupy:
            self._came: Array = cupy.empty(graph.vertices, np.float64)
        self._lost = float(self._control.get().view(CONTROL)[0]["lost"])
        self._damping = damping
        vertex_bytes = 8 + self._shares[0].itemsize
        self.sent = (ranks.size - 1) * (vertex_bytes * graph.vertices + 8 * _TOLD * ranks.size)

    def _hold(self, first: Array) -> list[Array]:
        return [first]  # others tell of theirs once all have read it

    def step(self, iterations: int, due: bool) -> tuple[list[Iteration], bool]:
        """Run one iteration."""
        began = time.perf_counter()
        graph, ranks = self._graph, self._ranks
        (share,), came = self._shares, self._came
        span = ranks.part(len(share))
        count = span.stop - span.start
        with graph.device.use() as cupy:
            self._kernel(self._in.packed, self._sum, self._walk, came)
            part, following = ranks.fold(came, cupy.add), cupy.empty(count, self._kind)
            anywhere = np.float64(1 - self._damping + self._damping * self._lost)
            _advance(graph, self._kind)(
                self._walk, np.uint32(span.start), np.uint32(count), anywhere, part, following
            )
            blocks = self._made["block_sums"][: 2 * blocks_of(graph.device)]
            moved = blocks.reshape(-1, 2).sum(axis=0).get().tolist()
            told = ranks.expand(share, following, [*moved, due])
            assert told.shape[1] == _TOLD
        change, self._lost, wants = told.sum(axis=0).tolist()
        return [Iteration(change, time.perf_counter() - began)], wants > 0

    def close(self) -> None:
        """Do nothing: this rank holds no memory of others."""


def warm_up(graph: ProgramGraph, single: bool) -> None:
    """Compile, or load from the cache, all kernels that a walk may call."""
    warm_up_walk(graph, single, ("pagerank_shares", "gather_shares"), _SOURCE)
    _advance(graph, share_type(single))
    for get_kernel in (_mark_entries, _count_roles, _list_rows):
        get_kernel(graph)


def _mark_entries(graph: ProgramGraph) -> Callable[..., None]:
    kinds = graph.cut.rows.offset_type, graph.cut.tiered
    return kernel_of(graph.device, _SOURCE, "mark_entries", kinds)


def _count_roles(graph: ProgramGraph) -> Callable[..., None]:
    return kernel_of(graph.device, _SOURCE, "count_roles", ())


def _list_rows(graph: ProgramGraph) -> Callable[..., None]:
    return kernel_of(graph.device, _SOURCE, "list_rows", (graph.cut.rows.offset_type,))


def _advance(graph: ProgramGraph, share: DTypeLike) -> Callable[..., None]:
    return kernel_of(graph.device, _SOURCE, "advance_part", (c_name(np.dtype(share).name),))


def _each(graph: ProgramGraph, ranks: Ranks) -> int:
    """Return the number of places of a rank if vertices are dealt out in turn, and each rank's
    places begin where a line of the cache begins.
    """
    return -(-graph.vertices // (_LINE * ranks.size)) * _LINE


def exchange_bytes(vertices: int) -> int:
    """Return the bytes that a share holds besides. By messages, it holds what comes from others in
    an iteration, and what goes to them. In memory, which takes more, it holds what comes to split
    rows; own rows, their offsets, and which of them are split; and, while the walk begins or ends,
    shares by vertex. While roles are found it holds, besides, no more than any walk holds while it
    begins.
    """
    came, rows, offsets, own_split, shares = 8, 8, 8, 4, 8
    return (came + rows + offsets + own_split + shares) * vertices
