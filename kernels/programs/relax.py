"""Shortest paths in pieces: follow the edges at hand of some rows, with their weights.

Vertices leave by buckets of distances (Meyer, Sanders 2003). The width of the next bucket follows
from the bucket before: wider, if that one had little to do; narrower, if many vertices left it more
than once.

Distances are floats of 64 bits, none negative. So their bits, as unsigned integers, are in the same
order, and one instruction on unsigned integers takes the least of several distances.
"""

from typing import NamedTuple

import numpy as np
from numba import types

from ..base.bitmap import contains, mask, members, ones
from ..base.compiled import (
    Struct,
    boolean,
    compiled,
    f64,
    i64,
    i64s,
    kernel,
    u32s,
    u64,
    u64s,
)
from ..base.copying import copy_values
from ..base.graph import UNREACHED
from ..base.intrinsics import fetch_min, fetch_or, prefetch, trailing_zeros
from ..base.numbering import NUMBERING, past_word, renumber
from ..base.turns import come, take
from ..pieces.piece import PIECE, edges_of, weight_of

FAR = np.float64(np.inf).view(np.uint64)
"""The distance of a vertex that no path leads to, as bits."""

NARROWEST = 1e-30

ROWS_A_TURN = 1 << 11

_EDGES_AT_ONCE = np.uintp(256)
"""Number of edges that a thread follows before it lists the vertices whose distances have become
less.
"""

_ROWS_AHEAD = np.uintp(4)


class Bucket(NamedTuple):
    """The vertices at distances below ``limit``. Vertices that are nearer than ``begin`` have
    shortened all distances that they can.

    limit: ``begin + width``, or just above ``begin``. number: of buckets up to this one. edges: how
    many were followed. taken: how many vertices left the bucket, counted each time. again: how many
    of these times were not a vertex's first.
    """

    begin: float
    width: float
    limit: float
    number: int = 1
    edges: float = 0.0
    taken: float = 0.0
    again: float = 0.0


class Rule(NamedTuple):
    """Limits by which the next bucket is made wider or narrower. little: if a bucket has fewer
    edges, that is no work, and the next bucket is wider. again: if this share of the vertices that
    leave a bucket leave it again, or more, the next bucket is narrower. beyond: the least distance
    that is too far.
    """

    little: int
    again: float
    beyond: float


BUCKET = Struct(Bucket, (f64, f64, f64, i64, f64, f64, f64))
RULE = Struct(Rule, (i64, f64, f64))


@compiled
def counted(bucket, edges, taken, again):
    """Return a bucket with its counts by now."""
    begin, width, limit, number, _, _, _ = bucket
    return Bucket(begin, width, limit, number, edges, taken, again)


@kernel(BUCKET, RULE, f64)
def next_bucket(bucket, rule, least):
    """Return the bucket after one that is empty. least: the least distance that is left."""
    width = bucket.width
    if bucket.again > rule.again * bucket.taken:
        width = max(width / 2, NARROWEST)
    elif bucket.edges < rule.little:
        width *= 2
    limit = max(least + width, np.nextafter(least, np.inf))
    return Bucket(least, width, limit, bucket.number + 1, 0.0, 0.0, 0.0)


@kernel(PIECE, boolean, u32s, i64, i64, types.none, u64s, u64s, types.none, u64s, u64s)
@kernel(PIECE, boolean, u32s, i64, i64, NUMBERING, u64s, u64s, NUMBERING, u64s, u64s)
def relax_piece(piece, floats, queue, first, last, x_places, x, frontier, y_places, y, better):
    """Let the edges at hand of some rows shorten the distances of their targets; on several pieces
    at once.

    floats: whether weights are floats. queue: uint32, rows, of which ``queue[first:last]`` are
    meant; or (0,), for all of ``first <= row < last``. In either case only rows in ``frontier``, a
    bitmap, are followed. x, y: uint64, bits of distances, by place. x_places, y_places: of the
    subgraph's rows and targets; or both None, if rows and targets are places. better: bitmap,
    receives the targets whose distances have become less.
    """
    offsets, targets, begin, end, weights = piece
    listed = queue.shape[0] > 0
    i = first
    while i < last:
        row = np.int64(queue[i]) if listed else i
        u = renumber(x_places, row)
        word = frontier[u >> np.uint32(6)]
        if word == 0 and not listed:
            i = past_word(x_places, row, u)
            continue
        if word & mask(u):
            distance = np.uint64(x[u]).view(np.float64)
            start = max(np.int64(offsets[row]), begin) - begin
            stop = min(np.int64(offsets[row + 1]), end) - begin
            for e in range(start, stop):
                at = np.uintp(e)
                through = np.float64(distance + weight_of(weights[at], floats)).view(np.uint64)
                v = renumber(y_places, targets[at])
                if (
                    through < y[v]
                    and through < fetch_min(y, np.intp(v), through)
                    and not contains(better, v)
                ):
                    fetch_or(better, np.intp(v >> np.uint32(6)), mask(v))
        i += 1


@compiled
def relax_listed(piece, floats, rows, count, distance, limit, pending, near):
    """Let the edges of ``rows[:count]`` shorten distances, by one thread. Targets whose distances
    have become less are marked in ``pending``. Those below ``limit`` are listed in ``near``, as far
    as they fit; its last place is for those that do not. Returns (the number of those below
    ``limit``, edges).

    Which distances become less is anybody's guess, so there is no branch for it. Targets with such
    distances are kept, and listed afterwards. Distances of the first targets of a row are fetched
    into the cache before the row is read.
    """
    offsets, targets, _, _, weights = piece
    edges = np.int64(0)
    if targets.shape[0] == 0:
        return np.int64(0), edges
    found = np.uintp(0)
    better = np.empty(2 * _EDGES_AT_ONCE, np.uint32)
    before = np.empty(2 * _EDGES_AT_ONCE, np.uint64)
    after = np.empty(2 * _EDGES_AT_ONCE, np.uint64)
    kept = np.uintp(0)
    # Unsigned, as an index that may be negative is looked at each time.
    one = np.uintp(1)
    last_edge = np.uintp(targets.shape[0]) - one
    last_row = np.uintp(count) - one
    for i in range(np.uintp(count)):
        soon = np.uintp(offsets[rows[min(i + _ROWS_AHEAD, last_row)]])
        prefetch(distance, np.intp(targets[min(soon, last_edge)]))
        prefetch(distance, np.intp(targets[min(soon + one, last_edge)]))
        u = np.uintp(rows[i])
        start = np.uintp(offsets[u])
        stop = np.uintp(offsets[u + one])
        edges += np.int64(stop - start)
        here = np.uint64(distance[u]).view(np.float64)
        while start < stop:
            end = min(stop, start + _EDGES_AT_ONCE)
            for e in range(start, end):
                v = targets[e]
                through = np.float64(here + weight_of(weights[e], floats)).view(np.uint64)
                so_far = distance[v]
                less = through < so_far
                better[kept] = v
                before[kept] = so_far
                after[kept] = through
                kept += np.uintp(less)
                distance[v] = through if less else so_far
            start = end
            if kept >= _EDGES_AT_ONCE:
                found = _list_better(better[:kept], before, after, limit, pending, near, found)
                kept = np.uintp(0)
    found = _list_better(better[:kept], before, after, limit, pending, near, found)
    return np.int64(found), edges


@compiled
def _list_better(better, before, after, limit, pending, near, found):
    """Mark the vertices ``better`` in ``pending``, and list in ``near``, after its first ``found``
    entries, those whose distances ``after`` are below ``limit``, unless they were listed before.
    Returns the number of vertices listed by then.
    """
    last = np.uintp(near.shape[0]) - np.uintp(1)
    for k in range(np.uintp(better.shape[0])):
        v = better[k]
        word = pending[v >> np.uint32(6)]
        listed = (before[k] < limit) & ((word & mask(v)) != np.uint64(0))
        pending[v >> np.uint32(6)] = word | mask(v)
        near[min(found, last)] = v
        found += np.uintp((after[k] < limit) & (not listed))
    return found


@compiled
def list_below(marked, distance, limit, near):
    """List the marked vertices that are nearer than ``limit``, as far as they fit. Returns how many
    are nearer.
    """
    count = 0
    for w in range(marked.shape[0]):
        word = marked[w]
        while word:
            v = np.uint32(w) * np.uint32(64) + np.uint32(trailing_zeros(word))
            if distance[v] < limit:
                if count < near.shape[0]:
                    near[count] = v
                count += 1
            word &= word - np.uint64(1)
    return count


@compiled
def least_of(marked, distance):
    """Return the least distance of the marked vertices, as bits."""
    least = FAR
    for w in range(marked.shape[0]):
        word = marked[w]
        while word:
            least = min(least, distance[np.int64(w) * 64 + np.int64(trailing_zeros(word))])
            word &= word - np.uint64(1)
    return least


@kernel(PIECE, boolean, u64s, BUCKET, RULE, u64s, u64s, u64s, u32s, u32s, i64, i64)
def relax_alone(
    piece, floats, distance, bucket, rule, frontier, pending, left, here, there, few, most
):
    """Do round after round, and bucket after bucket, by one thread, from ``frontier`` on, while
    each round has at most ``few`` edges. End if nothing is left to do, if a round has more vertices
    than fit, or if ``most`` edges and words of bitmaps have been looked at. Vertices that are left
    to do are in ``pending`` then, or still in ``frontier`` if no round was done.

    The piece is a whole subgraph at hand, whose rows and targets are places. distance: bits.
    frontier, pending, left: bitmaps; ``left`` receives the vertices that leave a bucket. here,
    there: uint32, of one length, for the vertices of a round and of the next round, and one more.
    Returns (the bucket, rounds, edges).
    """
    offsets = piece.offsets
    begun = members(frontier)
    count = begun.shape[0]
    if edges_of(offsets, begun, 0, count) > few:
        return bucket, 0, np.int64(0)
    copy_values(begun, count, here, 0)
    frontier[:] = 0
    limit = np.float64(min(bucket.limit, rule.beyond)).view(np.uint64)
    edges, taken, again = bucket.edges, bucket.taken, bucket.again
    rounds = 0
    looked = work = np.int64(0)
    while True:
        found, round_edges = relax_listed(
            piece, floats, here, count, distance, limit, pending, there
        )
        edges += round_edges
        looked += round_edges
        work += round_edges
        rounds += 1
        if found == 0:
            least = np.uint64(least_of(pending, distance)).view(np.float64)
            if least >= rule.beyond:
                break
            last_bucket = Bucket(
                bucket.begin, bucket.width, bucket.limit, bucket.number, edges, taken, again
            )
            bucket = next_bucket(last_bucket, rule, least)
            limit = np.float64(min(bucket.limit, rule.beyond)).view(np.uint64)
            edges, taken, again = bucket.edges, bucket.taken, bucket.again
            left[:] = 0
            found = list_below(pending, distance, limit, there)
            work += 3 * pending.shape[0]
        if found >= there.shape[0] or work > most or edges_of(offsets, there, 0, found) > few:
            break
        for i in range(found):
            v = there[i]
            pending[v >> np.uint32(6)] &= ~mask(v)
            again += np.float64(contains(left, v))
            left[v >> np.uint32(6)] |= mask(v)
            first = np.intp(offsets[v])
            prefetch(piece.targets, first)
            prefetch(piece.weights, first)
        taken += found
        count = found
        here, there = there, here
    return counted(bucket, edges, taken, again), rounds, looked


@kernel(
    PIECE,
    boolean,
    u32s,
    i64,
    i64,
    NUMBERING,
    NUMBERING,
    u64s,
    u64s,
    NUMBERING,
    u64s,
    u32s,
    u64s,
    boolean,
)
def adopt_piece(
    piece,
    floats,
    queue,
    first,
    last,
    x_places,
    x_ids,
    x,
    frontier,
    y_places,
    y,
    parent,
    adopted,
    alike,
):
    """Offer rows as parents to the targets that shortest paths reach through them; the least row is
    kept. Run as ``relax_piece``.

    x_ids: numbering from rows to global ids. parent: uint32, of the targets. adopted: bitmap,
    receives the targets that were offered a parent. alike: whether targets at the same distance as
    the row are meant, or targets that are farther: an edge may weigh nothing, or so little that the
    sum is the same.
    """
    offsets, targets, begin, end, weights = piece
    listed = queue.shape[0] > 0
    i = first
    while i < last:
        row = np.int64(queue[i]) if listed else i
        u = renumber(x_places, row)
        word = frontier[u >> np.uint32(6)]
        if word == 0 and not listed:
            i = past_word(x_places, row, u)
            continue
        if word & mask(u):
            here = np.uint64(x[u])
            distance = np.uint64(here).view(np.float64)
            row_id = np.uint32(renumber(x_ids, row))
            start = max(np.int64(offsets[row]), begin) - begin
            stop = min(np.int64(offsets[row + 1]), end) - begin
            for e in range(start, stop):
                at = np.uintp(e)
                v = renumber(y_places, targets[at])
                if (y[v] == here) != alike:
                    continue
                through = np.float64(distance + weight_of(weights[at], floats)).view(np.uint64)
                if through == y[v] and row_id < fetch_min(parent, np.intp(v), row_id):
                    fetch_or(adopted, np.intp(v >> np.uint32(6)), mask(v))
        i += 1


@kernel(PIECE, boolean, u64s, u32s, i64s)
def adopt_rows(piece, floats, distance, parent, taken):
    """Give parents to rows the other way, where each edge stands in the rows of both its ends: rows
    that are reached and have no parent take the first neighbour that is nearer and that a shortest
    path leads through. Run by several threads at once: see turns.py. Returns (edges looked at, rows
    that found no parent).

    The piece is a subgraph as for ``relax_alone``. distance: bits. parent: uint32, UNREACHED for
    rows that have no parent.
    """
    offsets, targets, _, _, weights = piece
    rows = parent.shape[0]
    turns = (rows + ROWS_A_TURN - 1) // ROWS_A_TURN
    looked = np.int64(0)
    orphans = np.int64(0)
    thread = come(taken)
    turn = take(taken, thread, turns)
    while turn >= 0:
        first = turn * ROWS_A_TURN
        for v in range(first, min(first + ROWS_A_TURN, rows)):
            here = distance[v]
            if here == FAR or parent[v] != UNREACHED:
                continue
            orphans += 1
            for e in range(np.int64(offsets[v]), np.int64(offsets[v + 1])):
                looked += 1
                at = np.uintp(e)
                near = np.uint64(distance[targets[at]])
                if near < here:
                    through = near.view(np.float64) + weight_of(weights[at], floats)
                    if np.float64(through).view(np.uint64) == here:
                        parent[v] = targets[at]
                        orphans -= 1
                        break
        turn = take(taken, thread, turns)
    return looked, orphans


@kernel(u64s, u64s, u64, u64s, u64s)
def take_below(marked, distance, limit, taken, left):
    """Move the vertices that are nearer than ``limit`` from one bitmap to another, which is
    overwritten. ``left`` receives them, too. Returns the number of these vertices, the number of
    them that ``left`` had already, and the least distance, as bits, of the vertices that stay.

    distance, limit: bits.
    """
    count = again = 0
    least = FAR
    for w in range(marked.shape[0]):
        word = marked[w]
        moved = np.uint64(0)
        while word:
            bit = trailing_zeros(word)
            here = distance[np.int64(w) * 64 + np.int64(bit)]
            if here < limit:
                moved |= np.uint64(1) << bit
                count += 1
            else:
                least = min(least, here)
            word &= word - np.uint64(1)
        taken[w] = moved
        if moved:
            marked[w] &= ~moved
            again += ones(moved & left[w])
            left[w] |= moved
    return count, again, least
