"""Gather in pieces: each row combines the values of its targets.

PageRank's sums and path counts need that every edge counts exactly once. A row that is cut by two
pieces, or two turns, has a part in each. Parts are kept aside and combined in their order
afterwards, so that a result depends on where edges are cut and never on which thread came first.
Turns have the same edges whatever the number of threads.
"""

import numpy as np
from numpy.typing import NDArray

from ..base.bitmap import contains, mask
from ..base.compiled import compiled, f64s, i64, i64s, kernel, u8s, u32s, u64s
from ..base.intrinsics import fetch_or
from ..base.numbering import NUMBERING, is_identity, renumber
from ..base.turns import come, take
from .operators import (
    BYTE_OR,
    COUNT_SUM,
    INTEGER_SUM,
    MIN,
    OR,
    SUM,
    WEIGHTED_SUM,
    along,
    combine,
    finished,
    merge,
)
from .piece import PIECE, row_of

EDGES_A_TURN = 1 << 16
CUTS = 2
"""Number of rows that a turn may cut."""

SHORT = 8
"""The most edges of a row that is short."""

_ZERO, _ONE, _TWO, _THREE, _FOUR = (np.uintp(count) for count in range(5))

_DIGITS = 12
_ADDED = (1 << _DIGITS) - 8
"""Number of words that can be counted with _DIGITS digits, a multiple of eight."""


@compiled
def _term(operator, x, targets, weights, e):
    return along(operator, x[targets[e]], weights, e)


@compiled
def _combined(operator, value, targets, weights, first, stop, x):
    """Return a value combined with the values of ``targets[first:stop]``. This goes in four chains,
    as a single chain would wait for each addition.

    Edges are counted with unsigned integers here: an index that may be negative is looked at each
    time.
    """
    e = np.uintp(first)
    end = np.uintp(stop)
    if e + _FOUR <= end:
        one = value
        two = three = four = operator.unit
        while e + _FOUR <= end and not finished(operator, value):
            one = combine(operator, one, _term(operator, x, targets, weights, e))
            two = combine(operator, two, _term(operator, x, targets, weights, e + _ONE))
            three = combine(operator, three, _term(operator, x, targets, weights, e + _TWO))
            four = combine(operator, four, _term(operator, x, targets, weights, e + _THREE))
            e += _FOUR
            value = combine(operator, combine(operator, one, two), combine(operator, three, four))
    while e < end and not finished(operator, value):
        value = combine(operator, value, _term(operator, x, targets, weights, e))
        e += _ONE
    return value


@compiled
def _renumbered(operator, value, targets, weights, first, stop, places, x):
    """Combine a value as ``_combined`` does, with targets renumbered by ``places``."""
    for e in range(first, stop):
        if finished(operator, value):
            break
        there = x[renumber(places, targets[np.uintp(e)])]
        value = combine(operator, value, along(operator, there, weights, e))
    return value


@compiled
def _whole_rows(operator, piece, first, last, x, y):
    """Gather rows ``first <= row < last``, whose edges are all at hand.

    Rows and targets are places already.
    """
    offsets, targets, base, _, weights = piece
    before = np.uintp(base)
    row = np.uintp(first)
    stop = np.uintp(offsets[row]) - before
    while row < np.uintp(last):
        edge = stop
        stop = np.uintp(offsets[row + _ONE]) - before
        count = stop - edge
        value = y[row]
        if count >= SHORT:
            value = _combined(operator, value, targets, weights, edge, stop, x)
        elif count > _FOUR:  # a call would take longer
            while edge < stop and not finished(operator, value):
                value = combine(operator, value, _term(operator, x, targets, weights, edge))
                edge += _ONE
        elif count > _ZERO:  # and so would a loop
            value = combine(operator, value, _term(operator, x, targets, weights, edge))
            if count > _ONE:
                value = combine(operator, value, _term(operator, x, targets, weights, edge + _ONE))
                if count > _TWO:
                    third = _term(operator, x, targets, weights, edge + _TWO)
                    value = combine(operator, value, third)
                    if count > _THREE:
                        fourth = _term(operator, x, targets, weights, edge + _THREE)
                        value = combine(operator, value, fourth)
        y[row] = value
        row += _ONE


@compiled
def _gather(operator, piece, first, last, x_places, x, y_places, y, cuts, slot):
    """Gather along the edges ``first <= e < last``, all of which are at hand."""
    offsets, targets, base, _, weights = piece
    rows, values = cuts
    plain = is_identity(x_places)
    by_place = plain and is_identity(y_places)
    row = row_of(offsets, first)
    edge = first
    while edge < last:
        start = np.int64(offsets[row])
        if by_place and edge == start:
            after = row_of(offsets, last)
            _whole_rows(operator, piece, row, after, x, y)
            row = after
            edge = start = np.int64(offsets[row])
            if edge == last:
                break
        stop = np.int64(offsets[row + 1])
        upto = min(stop, last)
        place = renumber(y_places, row)
        cut = edge > start or stop > last
        value = operator.unit if cut else y[place]
        if plain:
            value = _combined(operator, value, targets, weights, edge - base, upto - base, x)
        else:
            edges = targets, weights, edge - base, upto - base
            value = _renumbered(operator, value, *edges, x_places, x)
        if cut:
            rows[slot] = place
            values[slot] = value
            slot += 1
        else:
            y[place] = value
        edge = upto
        row += 1


@kernel(SUM, PIECE, NUMBERING, f64s, NUMBERING, f64s, i64s, f64s)
@kernel(WEIGHTED_SUM, PIECE, NUMBERING, f64s, NUMBERING, f64s, i64s, f64s)
@kernel(INTEGER_SUM, PIECE, NUMBERING, u64s, NUMBERING, u64s, i64s, u64s)
@kernel(COUNT_SUM, PIECE, NUMBERING, u32s, NUMBERING, u32s, i64s, u32s)
@kernel(OR, PIECE, NUMBERING, u64s, NUMBERING, u64s, i64s, u64s)
@kernel(BYTE_OR, PIECE, NUMBERING, u8s, NUMBERING, u8s, i64s, u8s)
@kernel(MIN, PIECE, NUMBERING, u64s, NUMBERING, u64s, i64s, u64s)
def gather_piece(operator, piece, x_places, x, y_places, y, rows, values):
    """Combine ``y[row]`` with ``x[target]`` of each edge of the row that is at hand.

    operator: of operators.py; where nothing changes a row any more, its edges are passed over. x,
    y: values by place. x_places, y_places: of the subgraph's targets and rows. rows, values:
    (CUTS,), receive places and values of rows that are cut; other entries stay as they are.
    """
    cuts = (rows, values)
    _gather(operator, piece, piece.begin, piece.end, x_places, x, y_places, y, cuts, 0)


def starts_of_turns(offsets: NDArray[np.unsignedinteger]) -> NDArray[np.int64]:
    """Return the first row that starts in each turn of ``gather_turns``, and the end: int64 (turns
    + 1,).

    >>> starts_of_turns(np.array([0, 3, 70_000, 70_000, 70_001], np.uint32))
    array([0, 2, 4])
    """
    edges = int(offsets[-1])
    begins = np.arange(0, edges, EDGES_A_TURN, dtype=offsets.dtype)
    starts = np.searchsorted(offsets, begins)
    return np.append(starts, len(offsets) - 1).astype(np.int64)


@compiled
def gather_turn(operator, piece, turn, x_places, x, y_places, y, rows, values):
    """Gather along the edges of one turn of ``gather_turns``."""
    begin = turn * EDGES_A_TURN
    end = min(begin + EDGES_A_TURN, piece.end)
    cuts = (rows, values)
    _gather(operator, piece, begin, end, x_places, x, y_places, y, cuts, turn * CUTS)


@kernel(SUM, PIECE, NUMBERING, f64s, NUMBERING, f64s, i64s, f64s, i64s)
@kernel(WEIGHTED_SUM, PIECE, NUMBERING, f64s, NUMBERING, f64s, i64s, f64s, i64s)
@kernel(INTEGER_SUM, PIECE, NUMBERING, u64s, NUMBERING, u64s, i64s, u64s, i64s)
@kernel(COUNT_SUM, PIECE, NUMBERING, u32s, NUMBERING, u32s, i64s, u32s, i64s)
@kernel(OR, PIECE, NUMBERING, u64s, NUMBERING, u64s, i64s, u64s, i64s)
@kernel(BYTE_OR, PIECE, NUMBERING, u8s, NUMBERING, u8s, i64s, u8s, i64s)
@kernel(MIN, PIECE, NUMBERING, u64s, NUMBERING, u64s, i64s, u64s, i64s)
def gather_turns(operator, piece, x_places, x, y_places, y, rows, values, taken):
    """Gather along all edges, which are at hand, by several threads at once: see turns.py.

    rows, values: (CUTS * turns,). taken: the ``taken`` of a loop of which no turns are taken at
    first.
    """
    thread = come(taken)
    turns = (piece.end + EDGES_A_TURN - 1) // EDGES_A_TURN
    turn = take(taken, thread, turns)
    while turn >= 0:
        gather_turn(operator, piece, turn, x_places, x, y_places, y, rows, values)
        turn = take(taken, thread, turns)


@kernel(SUM, PIECE, u32s, i64, i64, NUMBERING, f64s, NUMBERING, f64s)
def gather_listed(operator, piece, queue, first, last, x_places, x, y_places, y):
    """Gather the rows ``queue[first:last]`` (uint32), all of whose edges are at hand."""
    offsets, targets, begin, _, weights = piece
    plain = is_identity(x_places)
    for i in range(first, last):
        row = np.int64(queue[i])
        start = np.int64(offsets[row]) - begin
        stop = np.int64(offsets[row + 1]) - begin
        place = renumber(y_places, row)
        value = y[place]
        if plain:
            y[place] = _combined(operator, value, targets, weights, start, stop, x)
        else:
            y[place] = _renumbered(operator, value, targets, weights, start, stop, x_places, x)


@kernel(SUM, f64s, i64s, f64s)
@kernel(WEIGHTED_SUM, f64s, i64s, f64s)
@kernel(INTEGER_SUM, u64s, i64s, u64s)
@kernel(COUNT_SUM, u32s, i64s, u32s)
@kernel(OR, u64s, i64s, u64s)
@kernel(BYTE_OR, u8s, i64s, u8s)
@kernel(MIN, u64s, i64s, u64s)
def join_cuts(operator, y, rows, values):
    """Combine rows that were cut, in the order of their parts. rows: places, -1 where there is
    none.
    """
    for i in range(rows.shape[0]):
        if rows[i] >= 0:
            y[rows[i]] = combine(operator, y[rows[i]], values[i])


@kernel(SUM, PIECE, NUMBERING, f64s, NUMBERING, f64s)
@kernel(WEIGHTED_SUM, PIECE, NUMBERING, f64s, NUMBERING, f64s)
@kernel(INTEGER_SUM, PIECE, NUMBERING, u64s, NUMBERING, u64s)
@kernel(COUNT_SUM, PIECE, NUMBERING, u32s, NUMBERING, u32s)
@kernel(OR, PIECE, NUMBERING, u64s, NUMBERING, u64s)
@kernel(BYTE_OR, PIECE, NUMBERING, u8s, NUMBERING, u8s)
@kernel(MIN, PIECE, NUMBERING, u64s, NUMBERING, u64s)
def scatter_piece(operator, piece, x_places, x, y_places, y):
    """Combine ``y[target]`` with ``x[row]`` for each edge at hand: ``gather_piece`` the other way.
    Call it on pieces one after the other, since a target may stand in any row.

    x_places, y_places: of the subgraph's rows and targets.
    """
    offsets, targets, begin, end, weights = piece
    row = row_of(offsets, begin)
    edge = begin
    while edge < end:
        upto = min(np.int64(offsets[row + 1]), end)
        value = x[renumber(x_places, row)]
        for e in range(edge - begin, upto - begin):
            place = renumber(y_places, targets[np.uintp(e)])
            y[place] = combine(operator, y[place], along(operator, value, weights, e))
        edge = upto
        row += 1


@kernel(PIECE, NUMBERING, u32s)
def count_targets(piece, places, counts):
    """Add, to the count of each target, the number of edges at hand that lead to it. Call it on
    pieces one after the other.

    places: of the subgraph's targets. counts: uint32, by place.
    """
    for target in piece.targets:
        counts[renumber(places, target)] += np.uint32(1)


@kernel(INTEGER_SUM, PIECE, u32s, i64, i64, NUMBERING, u64s, NUMBERING, u64s, u64s)
@kernel(COUNT_SUM, PIECE, u32s, i64, i64, NUMBERING, u32s, NUMBERING, u32s, u64s)
@kernel(OR, PIECE, u32s, i64, i64, NUMBERING, u64s, NUMBERING, u64s, u64s)
@kernel(BYTE_OR, PIECE, u32s, i64, i64, NUMBERING, u8s, NUMBERING, u8s, u64s)
@kernel(MIN, PIECE, u32s, i64, i64, NUMBERING, u64s, NUMBERING, u64s, u64s)
def push_piece(operator, piece, queue, first, last, x_places, x, y_places, y, changed):
    """Push the values of rows along their edges at hand, on several pieces at once.

    Each edge at hand of a row is followed once.

    queue: uint32, rows, of which ``queue[first:last]`` are meant; or (0,), for all of
    ``first <= row < last``. x_places, y_places: of the subgraph's rows and targets. changed:
    bitmap, receives the targets whose values are other ones now.
    """
    offsets, targets, begin, end, _ = piece
    listed = queue.shape[0] > 0
    for i in range(first, last):
        row = np.int64(queue[i]) if listed else i
        value = x[renumber(x_places, row)]
        if value == operator.unit:
            continue
        start = max(np.int64(offsets[row]), begin) - begin
        stop = min(np.int64(offsets[row + 1]), end) - begin
        for e in range(start, stop):
            v = renumber(y_places, targets[np.uintp(e)])
            if merge(operator, y, np.intp(v), value) and not contains(changed, v):
                fetch_or(changed, np.intp(v >> np.uint32(6)), mask(v))


@compiled
def _add_three(first, second, third):
    """Count, for each bit, in how many of three words it is set. Returns the lower and the higher
    digit.
    """
    half = first ^ second
    return half ^ third, (first & second) | (half & third)


@compiled
def _carry(digits, digit, carry):
    while carry:
        overlap = digits[digit] & carry
        digits[digit] ^= carry
        carry = overlap
        digit += 1


@kernel(u64s, i64s)
def count_bits(words, counts):
    """Add, for each bit, the number of words in which it is set. counts: int64 (64,).

    This makes 64 sums at once: a word holds one digit of each. Eight words are added up without a
    branch, by a tree of adders (Harley and Seal's: Mula, Kurz, Lemire, Faster Population Counts
    Using AVX2 Instructions, 2018); the carries are added to the fourth digit.
    """
    digits = np.zeros(_DIGITS, np.uint64)
    for first in range(0, words.shape[0], _ADDED):
        batch = words[first : first + _ADDED]
        ones = twos = fours = np.uint64(0)
        eights = batch.shape[0] // 8 * 8
        for i in range(0, eights, 8):
            ones, two_a = _add_three(ones, batch[i], batch[i + 1])
            ones, two_b = _add_three(ones, batch[i + 2], batch[i + 3])
            twos, four_a = _add_three(twos, two_a, two_b)
            ones, two_a = _add_three(ones, batch[i + 4], batch[i + 5])
            ones, two_b = _add_three(ones, batch[i + 6], batch[i + 7])
            twos, four_b = _add_three(twos, two_a, two_b)
            fours, eight = _add_three(fours, four_a, four_b)
            _carry(digits, 3, eight)
        digits[0], digits[1], digits[2] = ones, twos, fours
        for i in range(eights, batch.shape[0]):
            _carry(digits, 0, batch[i])
        for digit in range(_DIGITS):
            word = digits[digit]
            digits[digit] = 0
            for bit in range(64):
                counts[bit] += np.int64(word >> np.uint64(bit) & np.uint64(1)) << digit
