"""Intersect: the common neighbours of the ends of all edges, counted at the corners of triangles.

Vertices stand in an order, by falling degree, and each row holds only the neighbours that come
before its vertex. So rows are short, at most the square root of twice the edges, and a triangle is
found once, from its last corner (Latapy: Main-memory Triangle Computations for Very Large
(Sparse (Power-Law)) Graphs, Theoretical Computer Science 407, 2008, algorithm "compact-forward").
A vertex's place in this order is its *position*.

Common neighbours are looked up in a small table of the last corner's row, or searched for in the
middle corner's row if that one is much longer. What is counted are whole numbers, so the counts are
the same for any threads, ranks and cuts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from ..base.bitmap import WORD, mask
from ..base.compiled import Struct, boolean, f64s, i64, i64s, inlined, kernel, u8s, u32s
from ..base.intrinsics import fetch_add
from ..base.numbering import NUMBERING, renumber
from ..base.turns import come, take
from .piece import PIECE, row_of

ENTRIES_A_TURN = 1 << 12
"""Number of entries of rows that a thread takes at once."""

_SLOTS = 1 << 16
_MASK = np.uint32(_SLOTS - 1)

_SEARCHED_FOR_PASSED = 8
"""Number of entries that are passed in the time that a search for one entry takes."""


class Earlier(NamedTuple):
    """Rows of the vertices from position ``first`` on, with the neighbours that come before them.

    starts, ends: int64, the bounds of each row in ``targets``. targets: uint32, positions, rising
    in each row once it is sorted. twice: uint8, whether the edge to each target has both
    directions; (0,) if the graph is undirected.
    """

    first: int
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    targets: NDArray[np.uint32]
    twice: NDArray[np.uint8]


class Corners(NamedTuple):
    """Counts by position. neighbours: int64, of each vertex, once. triangles: int64. edges: int64,
    directed edges between neighbours; (0,) if the graph is undirected, where these are the
    triangles.
    """

    neighbours: NDArray[np.int64]
    triangles: NDArray[np.int64]
    edges: NDArray[np.int64]


class Lookup(NamedTuple):
    """A table of one row, and what is found at its entries; of a thread.

    slots: uint32 (_SLOTS,), by a target's last bits one more than the place of such an entry in the
    row, 0 where there is none; zeros between rows. others: uint32, for each entry the next one in
    its slot. found, edges: int64, what is found at each entry.
    """

    slots: NDArray[np.uint32]
    others: NDArray[np.uint32]
    found: NDArray[np.int64]
    edges: NDArray[np.int64]


EARLIER = Struct(Earlier, (i64, i64s, i64s, u32s, u8s))
CORNERS = Struct(Corners, (i64s, i64s, i64s))
LOOKUP = Struct(Lookup, (u32s, u32s, i64s, i64s))


def make_lookup(longest: int) -> Lookup:
    """Return a table for rows of at most ``longest`` entries."""
    room = np.empty(longest, np.int64)
    others = np.empty(longest, np.uint32)
    return Lookup(np.zeros(_SLOTS, np.uint32), others, room, np.empty_like(room))


def lookup_bytes(longest: int) -> int:
    return 4 * _SLOTS + (4 + 8 + 8) * longest


@inlined
def _position(positions, v):
    return positions[v] if positions.shape[0] else np.uint32(v)


@kernel(boolean, PIECE, u32s, i64, i64, NUMBERING, NUMBERING, u32s, i64, i64, i64s, u32s)
@kernel(
    boolean,
    PIECE,
    u32s,
    i64,
    i64,
    types.none,
    types.none,
    u32s,
    i64,
    i64,
    i64s,
    u32s,
    allocates=False,
)
def collect_piece(
    of_rows,
    piece,
    queue,
    first,
    last,
    row_ids,
    target_ids,
    positions,
    low,
    high,
    ends,
    targets,
):
    """Collect the edges at hand for the rows of ``Earlier``, on several pieces at once.

    of_rows: whether the edges are collected for the vertices of the piece's rows; otherwise for
    those of its targets. queue, first, last: rows as in push_piece; all rows at hand if ``last`` is
    0. row_ids, target_ids: numberings to global ids; both None if all numbers are global ids.
    positions: by global id; (0,) if they are the global ids. low, high: positions of the vertices
    that are meant. ends: int64, where the next entry of each of these goes; moves on. targets:
    receives the entries; if it is (0,), they are only counted.
    """
    offsets, piece_targets, begin, end, _ = piece
    listed = queue.shape[0] > 0
    if last == 0 and begin < end:
        first = row_of(offsets, begin)
        last = row_of(offsets, end - 1) + 1
    only_counts = targets.shape[0] == 0
    for i in range(first, last):
        row = np.int64(queue[i]) if listed else np.int64(i)
        start = np.uintp(max(np.int64(offsets[row]), begin) - begin)
        stop = np.uintp(max(min(np.int64(offsets[row + 1]), end), begin) - begin)
        if start >= stop:
            continue
        v = _position(positions, renumber(row_ids, row))
        if not of_rows:
            for e in range(start, stop):
                u = np.int64(_position(positions, renumber(target_ids, piece_targets[e])))
                if low <= u < high and np.int64(v) < u:
                    at = fetch_add(ends, u - low, 1)
                    if not only_counts:
                        targets[at] = v
            continue
        if np.int64(v) < low or np.int64(v) >= high:
            continue
        count = np.int64(0)
        for e in range(start, stop):
            count += _position(positions, renumber(target_ids, piece_targets[e])) < v
        if count:
            at = np.uintp(fetch_add(ends, np.int64(v) - low, count))
            if only_counts:
                continue
            for e in range(start, stop):
                u = _position(positions, renumber(target_ids, piece_targets[e]))
                if u < v:
                    targets[at] = u
                    at += np.uintp(1)


@kernel(NUMBERING, u32s, i64, i64, i64)
def mark_rows(row_ids, positions, low, high, count):
    """Return a bitmap of the rows whose vertices have positions ``low <= v < high``. count: of
    rows. The other arguments are those of collect_piece.
    """
    words = np.zeros((count + WORD - 1) // WORD, np.uint64)
    for row in range(count):
        if low <= np.int64(_position(positions, renumber(row_ids, row))) < high:
            words[row >> 6] |= mask(np.uint32(row))
    return words


@kernel(EARLIER, i64s, u32s, allocates=False)
def append_rows(part, ends, targets):
    """Append the rows of a part of the edges to rows of the same vertices. ends: as in
    collect_piece.
    """
    _, starts, part_ends, entries, _ = part
    for row in range(starts.shape[0]):
        at = ends[row]
        for e in range(starts[row], part_ends[row]):
            targets[at] = entries[e]
            at += 1
        ends[row] = at


@inlined
def _sort(targets, start, stop):
    """Sort a row (Shell's sort): most rows are sorted already, or a few sorted runs."""
    rises = True
    for e in range(start + 1, stop):
        rises &= targets[e - 1] <= targets[e]
    gap = np.int64(1) if rises else stop - start
    while gap > 1:
        gap = max(np.int64(1), gap * 5 // 11)
        for e in range(start + gap, stop):
            target = targets[e]
            at = e
            while at >= start + gap and targets[at - gap] > target:
                targets[at] = targets[at - gap]
                at -= gap
            targets[at] = target


@kernel(EARLIER, i64s, i64s, i64s, allocates=False)
def sort_turns(rows, neighbours, turns, taken):
    """Sort rows, by several threads at once: see turns.py.

    In a directed graph two edges between the same vertices become one entry, with ``twice`` set.
    neighbours: int64, by position, which counts such vertices twice and is set right; or (0,).
    turns: int64, the first row of each turn, and the end.
    """
    first, starts, ends, targets, twice = rows
    directed = twice.shape[0] > 0
    counts = neighbours.shape[0] > 0
    thread = come(taken)
    turn = take(taken, thread, turns.shape[0] - 1)
    while turn >= 0:
        for row in range(turns[turn], turns[turn + 1]):
            start, stop = starts[row], ends[row]
            _sort(targets, start, stop)
            if not directed or start == stop:
                continue
            at = start
            twice[at] = 0
            for e in range(start + 1, stop):
                if targets[e] == targets[at]:
                    twice[at] = 1
                    if counts:
                        fetch_add(neighbours, np.int64(targets[at]), -1)
                else:
                    at += 1
                    targets[at] = targets[e]
                    twice[at] = 0
            ends[row] = at + 1
            if counts and at + 1 < stop:
                fetch_add(neighbours, first + row, at + 1 - stop)
        turn = take(taken, thread, turns.shape[0] - 1)


@inlined
def _at_or_after(targets, low, high, target):
    """Return the first entry ``low <= e < high`` that is not before a target, or ``high``."""
    while low < high:
        middle = (low + high) >> 1
        if targets[middle] < target:
            low = middle + 1
        else:
            high = middle
    return low


@kernel(EARLIER, EARLIER, CORNERS, LOOKUP, i64s, i64s, allocates=False)
def intersect_turns(rows, others, corners, lookup, turns, taken):
    """Count the triangles whose last corner has a row in ``rows`` and whose middle corner has one
    in ``others``, by several threads at once: see turns.py. Returns the number of entries that this
    thread looked at.

    turns: as in sort_turns. lookup: of this thread.
    """
    first, starts, ends, targets, twice = rows
    other_first, other_starts, other_ends, other_targets, other_twice = others
    _, triangles, edges = corners
    slots, chained, found, found_edges = lookup
    directed = edges.shape[0] > 0
    other_last = other_first + other_starts.shape[0]
    looked = np.int64(0)
    thread = come(taken)
    turn = take(taken, thread, turns.shape[0] - 1)
    while turn >= 0:
        for row in range(turns[turn], turns[turn + 1]):
            start = starts[row]
            count = ends[row] - start
            if count < 2:
                continue
            row_start = np.uintp(start)
            begin = start  # of the middle corners that have rows in ``others``
            if other_first:
                begin = _at_or_after(targets, start, ends[row], np.uint32(other_first))
            filled = False
            here = np.int64(0)
            here_edges = np.int64(0)
            for i in range(begin - start, count):
                middle = np.int64(targets[start + i])
                if middle >= other_last:
                    break
                e = other_starts[middle - other_first]
                stop = other_ends[middle - other_first]
                if e == stop or i == 0:
                    continue
                if not filled:
                    filled = True
                    for j in range(count):
                        slot = targets[start + j] & _MASK
                        chained[j] = slots[slot]
                        slots[slot] = j + 1
                        found[j] = 0
                        found_edges[j] = 0
                both = np.int64(0)
                if i * _SEARCHED_FOR_PASSED < stop - e:
                    looked += i
                    for j in range(i):
                        target = targets[start + j]
                        e = _at_or_after(other_targets, e, stop, target)
                        if e == stop:
                            break
                        if other_targets[e] == target:
                            both += 1
                            found[j] += 1
                            if directed:
                                here_edges += 1 + other_twice[e]
                                found_edges[j] += 1 + twice[start + i]
                                found_edges[i] += 1 + twice[start + j]
                else:
                    looked += stop - e
                    for at in range(np.uintp(e), np.uintp(stop)):
                        target = other_targets[at]
                        k = slots[target & _MASK]
                        while k:
                            place = np.uintp(k - np.uint32(1))
                            if targets[row_start + place] == target:
                                both += 1
                                found[place] += 1
                                if directed:
                                    here_edges += 1 + other_twice[at]
                                    found_edges[place] += 1 + twice[start + i]
                                    found_edges[i] += 1 + twice[row_start + place]
                                break
                            k = chained[place]
                found[i] += both
                here += both
            if not filled:
                continue
            for j in range(count):
                target = np.int64(targets[start + j])
                slots[targets[start + j] & _MASK] = 0
                if found[j]:
                    fetch_add(triangles, target, found[j])
                    if directed:
                        fetch_add(edges, target, found_edges[j])
            if here:
                fetch_add(triangles, first + row, here)
                if directed:
                    fetch_add(edges, first + row, here_edges)
        turn = take(taken, thread, turns.shape[0] - 1)
    return looked


@kernel(i64s, i64s, f64s, allocates=False)
def share_joined(neighbours, joined, shares):
    """Compute the share of the pairs of each vertex's neighbours that are joined: float64, 0 where
    there are no pairs. Returns the sums of the numbers of pairs, of their high halves and of their
    low ones.
    """
    high = np.int64(0)
    low = np.int64(0)
    for v in range(neighbours.shape[0]):
        count = neighbours[v]
        half = count >> 1  # (the product of both factors may be more than 63 bits can say)
        pairs = count * half if count & 1 else half * (count - 1)
        shares[v] = joined[v] / pairs if pairs > 0 else 0.0
        high += pairs >> 32
        low += pairs & 0xFFFFFFFF
    return high, low
