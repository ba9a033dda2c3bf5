"""Shortest paths in pieces: follow the edges at hand of some rows, with their weights.

Distances are floats of 64 bits, none negative: so their bits rise with them, and the least of
several is taken by one instruction on unsigned integers.
"""

import numpy as np

from ..base.bitmap import contains, mask, members
from ..base.compiled import boolean, i64, kernel, u32s, u64, u64s
from ..base.graph import UNREACHED
from ..base.intrinsics import fetch_min, fetch_or, trailing_zeros
from ..base.numbering import NUMBERING, past_word, renumber
from .piece import PIECE, edges_of, weight_of

FAR = np.float64(np.inf).view(np.uint64)
"""The distance of what no path leads to."""


@kernel(PIECE, boolean, u32s, i64, i64, NUMBERING, u64s, u64s, NUMBERING, u64s, u64s)
def relax_piece(piece, floats, queue, first, last, x_places, x, frontier, y_places, y, better):
    """Let the edges at hand of some rows shorten the distances of their targets; on several pieces
    at once.

    floats: whether weights are. queue: uint32, rows, of which ``queue[first:last]`` are meant; or
    (0,), for all of ``first <= row < last``; in either case those in ``frontier``, a bitmap. x, y:
    uint64, bits of distances, by place; x_places, y_places: of the subgraph's rows and targets.
    better: bitmap, receives the targets whose distances have become less.
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
                if through < y[v] and through < fetch_min(y, np.intp(v), through):
                    fetch_or(better, np.intp(v >> np.uint32(6)), mask(v))
        i += 1


@kernel(PIECE, boolean, u64s, u64, u64s, u64s, u64s, u32s, u32s, i64, i64)
def relax_rounds(piece, floats, distance, limit, frontier, pending, left, here, there, few, most):
    """Round after round of a bucket by one thread, from ``frontier`` on, while each has ``few``
    edges at most: until nothing nearer than ``limit`` is left to do, the next has more vertices
    than fit, or ``most`` are done. What is left to do is ``pending`` then, or still ``frontier``.

    Of a subgraph whose rows and targets are places, all of it at hand. distance, limit: bits.
    frontier, pending, left: bitmaps; ``left`` receives what is taken. here, there: uint32, of one
    length, for the vertices of a round and of the next. Returns (rounds, edges, vertices taken
    after the first round, those of them that had left before).
    """
    offsets, targets, _, _, weights = piece
    begun = members(frontier)
    count = begun.shape[0]
    if edges_of(offsets, begun, 0, count) > few:
        return 0, np.int64(0), 0, 0
    here[:count] = begun
    frontier[:] = 0
    rounds = 0
    edges = np.int64(0)
    taken = 0
    again = 0
    while count:
        more = 0
        for i in range(count):
            u = here[i]
            near = np.uint64(distance[u]).view(np.float64)
            for e in range(np.int64(offsets[u]), np.int64(offsets[u + 1])):
                at = np.uintp(e)
                v = targets[at]
                through = np.float64(near + weight_of(weights[at], floats)).view(np.uint64)
                if through < distance[v]:
                    listed = distance[v] < limit and contains(pending, v)
                    distance[v] = through
                    pending[v >> np.uint32(6)] |= mask(v)
                    if through < limit and not listed:
                        if more < there.shape[0]:
                            there[more] = v
                        more += 1
            edges += np.int64(offsets[u + 1]) - np.int64(offsets[u])
        rounds += 1
        if more > there.shape[0] or rounds == most or edges_of(offsets, there, 0, more) > few:
            break
        count = more
        for i in range(count):
            v = there[i]
            pending[v >> np.uint32(6)] &= ~mask(v)
            again += np.int64(contains(left, v))
            left[v >> np.uint32(6)] |= mask(v)
        taken += count
        here, there = there, here
    return rounds, edges, taken, again


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
    """Offer rows as parents to the targets that shortest paths reach through them; the least one is
    kept. Run as ``relax_piece``.

    x_ids: from rows to global ids. parent: uint32, of the targets. adopted: bitmap, receives them.
    alike: whether those of the same distance as the row are meant, or those that are farther: an
    edge may weigh nothing, or so little that the sum is the same.
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
            own = np.uint32(renumber(x_ids, row))
            start = max(np.int64(offsets[row]), begin) - begin
            stop = min(np.int64(offsets[row + 1]), end) - begin
            for e in range(start, stop):
                at = np.uintp(e)
                v = renumber(y_places, targets[at])
                if (y[v] == here) != alike:
                    continue
                through = np.float64(distance + weight_of(weights[at], floats)).view(np.uint64)
                if through == y[v] and own < fetch_min(parent, np.intp(v), own):
                    fetch_or(adopted, np.intp(v >> np.uint32(6)), mask(v))
        i += 1


@kernel(PIECE, boolean, i64, i64, u64s, u32s)
def adopt_rows(piece, floats, first, last, distance, parent):
    """The other way, where each edge stands in the rows of both its ends: those of the rows
    ``first <= row < last`` that are reached and have no parent take the first neighbour that is
    nearer and that a shortest path leads through. Returns the edges looked at.

    Of a subgraph as ``relax_rounds`` has it. distance: bits. parent: uint32, UNREACHED of those
    that have none.
    """
    offsets, targets, _, _, weights = piece
    looked = np.int64(0)
    for v in range(first, last):
        here = distance[v]
        if here == FAR or parent[v] != UNREACHED:
            continue
        for e in range(np.int64(offsets[v]), np.int64(offsets[v + 1])):
            looked += 1
            at = np.uintp(e)
            near = np.uint64(distance[targets[at]])
            if near < here:
                through = near.view(np.float64) + weight_of(weights[at], floats)
                if np.float64(through).view(np.uint64) == here:
                    parent[v] = targets[at]
                    break
    return looked


@kernel(u64s, u64s, u64, u64s)
def take_below(marked, distance, limit, taken):
    """Move the vertices that are nearer than ``limit`` from one bitmap to another, which is
    overwritten; how many these are, and the least distance of those that stay: its bits.

    distance, limit: bits.
    """
    count = 0
    least = FAR
    for w in range(marked.shape[0]):
        word = marked[w]
        some = np.uint64(0)
        while word:
            bit = trailing_zeros(word)
            here = distance[np.int64(w) * 64 + np.int64(bit)]
            if here < limit:
                some |= np.uint64(1) << bit
                count += 1
            else:
                least = min(least, here)
            word &= word - np.uint64(1)
        taken[w] = some
        marked[w] &= ~some
    return count, least
