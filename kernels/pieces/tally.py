"""Tally: each vertex adds up the weights of its edges by the labels of its neighbours, and a rule
picks one label.

Sums are whole numbers of 64 bits, and a rule prefers one label to another by their sums and
themselves: so what is picked depends neither on the order of edges nor on threads. Sums stand in a
table that each thread has: by label where all labels fit, else in slots by a hash of the label
(as the collision-free and the hashed tables of Sahu, GVE-LPA, 2023). A row with more labels than
slots is gone through several times, each time for the labels of one *class*.

A row whose edges are in several places gives *entries* instead: a place, a label, a sum. Whoever
owns the vertex adds them up.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..base.compiled import Struct, boolean, i64, i64s, inlined, kernel, u8s, u32s, u64s
from ..base.graph import UNREACHED
from ..base.intrinsics import prefetch
from ..base.numbering import NUMBERING, renumber
from ..base.turns import come, take
from .operators import (
    BEST_GAIN,
    LISTED_AMOUNTS,
    MOST_COMMON,
    SCALED_WEIGHTS,
    UNIT_AMOUNTS,
    amount,
    counts_alone,
    fetch_label,
    fetch_worth,
    may_be_worth,
    outranks,
    picker,
    worth,
)
from .piece import PIECE, WIDE_PIECE, row_of

NO_LABEL = UNREACHED

EDGES_A_TURN = 1 << 13
MOST_SLOTS = 1 << 16
"""The most slots of a hashed table: they fit a core's cache."""

_FEW_EDGES = 6
"""Most edges of a row that is compared edge by edge, without a table."""

_SOME_EDGES = 32
"""Most edges of a row whose labels are counted by comparing all: processors compare several at
once.
"""

_EDGES_AHEAD = 48
"""Number of edges by which labels are fetched ahead of rows of few edges, across these rows."""

_AHEAD = np.uintp(8)
"""Labels are at random places in memory: so many of them are fetched ahead."""

_LEAST_SLOTS = 1 << 8
_SLOT_BYTES = 4 + 8 + 2
_LABEL_BYTES = 8 + 4
_PRESENT = np.uint64(1 << 63)
_EMPTY, _ONE = np.uint64(0), np.uint64(1)
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


class Table(NamedTuple):
    """Sums by label, which one thread uses for one row after the other; empty between rows.

    keys: uint32, the label of each slot; (0,) if sums stand by label. sums: uint64, 0 where there
    is none, else the sum with the highest bit set. used: uint32, room for the numbers of the slots
    that have sums; as many sums fit, or all labels and one more number, if sums stand by label.
    """

    keys: NDArray[np.uint32]
    sums: NDArray[np.uint64]
    used: NDArray[np.uint32]


class Entries(NamedTuple):
    """Sums of parts of rows. places: uint32, of the rows' vertices. labels: uint32. sums: uint64.
    A label may occur several times for a place.
    """

    places: NDArray[np.uint32]
    labels: NDArray[np.uint32]
    sums: NDArray[np.uint64]


class Picks(NamedTuple):
    """The label that each vertex prefers so far, or NO_LABEL. labels: uint32. sums: uint64."""

    labels: NDArray[np.uint32]
    sums: NDArray[np.uint64]


TABLE = Struct(Table, (u32s, u64s, u32s))
ENTRIES = Struct(Entries, (u32s, u32s, u64s))
PICKS = Struct(Picks, (u32s, u64s))


class Among(NamedTuple):
    """The vertices that pick. turns: uint8, by place; a vertex picks in one of several turns. (0,)
    if all vertices pick. turn: the one that it is now.
    """

    turns: NDArray[np.uint8]
    turn: int


ALL = Among(np.empty(0, np.uint8), 0)
AMONG = Struct(Among, (u8s, i64))


@inlined
def _is_among(among, place):
    return among.turns.shape[0] == 0 or among.turns[place] == among.turn


def make_table(labels: int, room: int) -> Table:
    """Return an empty table for labels below ``labels``. room: the bytes that it may hold; it holds
    a few kilobytes at least.
    """
    if labels * _LABEL_BYTES <= room:
        return Table(
            np.empty(0, np.uint32), np.zeros(labels, np.uint64), np.empty(labels + 1, np.uint32)
        )
    slots = _LEAST_SLOTS
    while slots < MOST_SLOTS and 2 * slots * _SLOT_BYTES <= room:
        slots *= 2
    return Table(
        np.empty(slots, np.uint32), np.zeros(slots, np.uint64), np.empty(slots // 2, np.uint32)
    )


@inlined
def _hash(label):
    return np.uint64(label) * _MULTIPLIER


@inlined
def _is_in_class(label, label_class, classes):
    """Return whether a label is in a class. label_class: its number, below ``classes``."""
    if classes == 1:
        return True
    low = _hash(label) & np.uint64(0xFFFFFFFF)
    return (low * np.uint64(classes)) >> np.uint64(32) == np.uint64(label_class)


# What follows takes the arrays of a table one by one: they stay in registers.


@inlined
def mask_of(keys, edges):
    """Return the mask of the slots that a row of so many edges needs: few slots stay in cache."""
    slots = np.uint64(8)
    while slots < np.uint64(keys.shape[0]) and slots < np.uint64(2 * edges):
        slots <<= _ONE
    return slots - _ONE


@inlined
def _slot(keys, sums, mask, label):
    """Return the slot of a label, which is empty if the label has no sum."""
    if keys.shape[0] == 0:
        return np.uint64(label)
    at = (_hash(label) >> np.uint64(33)) & mask
    while sums[at] != _EMPTY and keys[at] != label:
        at = (at + _ONE) & mask
    return at


@inlined
def add_sum(keys, sums, used, mask, count, label, added):
    """Add to the sum of a label. count: the number of labels that have sums. Returns the new
    number, or -1 if no more labels fit.
    """
    at = _slot(keys, sums, mask, label)
    before = sums[at]
    if keys.shape[0] == 0:  # without a branch on what is there, which processors foresee badly
        used[np.uintp(count)] = at
        sums[at] = (before | _PRESENT) + added
        return count + np.int64(before == _EMPTY)
    if before == _EMPTY:
        if count == used.shape[0]:
            return np.int64(-1)
        keys[at] = label
        used[np.uintp(count)] = at
        count += 1
        before = _PRESENT
    sums[at] = before + added
    return count


@inlined
def label_at(keys, at):
    return keys[at] if keys.shape[0] else np.uint32(at)


@inlined
def pick_of_table(rule, place, keys, sums, used, count, label, total):
    """Return the preferred one of a label and all labels of a table, with its sum. The table is
    empty afterwards.
    """
    vertex = picker(rule, place)
    best = worth(rule, vertex, label, total)
    for i in range(np.uintp(count)):
        fetch_worth(rule, keys, used, min(i + _AHEAD, np.uintp(count - 1)))
        at = np.uintp(used[i])
        other_total = take_sums(sums, used, i)
        if not may_be_worth(rule, other_total, best):
            continue
        other = label_at(keys, at)
        other_worth = worth(rule, vertex, other, other_total)
        if outranks(vertex, other, other_worth, label, best):
            label = other
            total = other_total
            best = other_worth
    return label, total


@inlined
def take_sums(sums, used, i):
    """Take a sum from the table: that of the i-th of its labels. Returns it."""
    at = np.uintp(used[i])
    total = sums[at] ^ _PRESENT
    sums[at] = _EMPTY
    return total


@inlined
def empty_table(sums, used, count):
    for i in range(np.uintp(count)):
        sums[np.uintp(used[i])] = _EMPTY


@inlined
def degree_of(offsets, row):
    """Return the number of edges of a row; 0 if there are no offsets."""
    if offsets.shape[0] == 0:
        return np.int64(0)
    return np.int64(offsets[row + 1]) - np.int64(offsets[row])


@inlined
def add_edges(
    rule,
    amounts,
    targets,
    weights,
    first,
    stop,
    x_places,
    x,
    label_class,
    classes,
    keys,
    sums,
    used,
    mask,
    count,
):
    """Add the edges ``first <= e < stop`` whose labels are of a class. Returns as ``_add`` does; if
    no more labels fit, the table is empty then.
    """
    for e in range(np.uintp(first), np.uintp(stop)):
        fetch_label(rule, x_places, x, targets, min(e + _AHEAD, np.uintp(stop - 1)))
        label = x[renumber(x_places, targets[e])]
        if _is_in_class(label, label_class, classes):
            added = amount(amounts, weights, e)
            more = add_sum(keys, sums, used, mask, count, label, added)
            if more < 0:
                empty_table(sums, used, count)
                return more
            count = more
    return count


@inlined
def pick_of_row(
    rule,
    amounts,
    offsets,
    targets,
    weights,
    begin,
    entering,
    sources,
    entering_weights,
    row,
    x_places,
    x,
    place,
    label_class,
    classes,
    keys,
    sums,
    used,
):
    """Return the label of a class that a vertex prefers, with its sum; NO_LABEL if it has none.

    offsets, targets, weights, begin: of a piece that has the whole row. entering, sources,
    entering_weights: the same of the edges that enter the vertex, all of which are at hand, or
    empty.
    """
    degree = degree_of(offsets, row)
    first = np.int64(offsets[row]) - begin
    in_degree = degree_of(entering, row)
    first_in = np.int64(entering[row]) if in_degree else np.int64(0)
    mask = mask_of(keys, degree + in_degree)
    parts = 1  # of the class
    while True:
        label = NO_LABEL
        total = _EMPTY
        part = 0
        while part < parts:
            share = label_class * parts + part, classes * parts
            count = np.int64(0)
            count = add_edges(
                rule,
                amounts,
                targets,
                weights,
                first,
                first + degree,
                x_places,
                x,
                *share,
                keys,
                sums,
                used,
                mask,
                count,
            )
            if count >= 0 and in_degree:
                count = add_edges(
                    rule,
                    amounts,
                    sources,
                    entering_weights,
                    first_in,
                    first_in + in_degree,
                    x_places,
                    x,
                    *share,
                    keys,
                    sums,
                    used,
                    mask,
                    count,
                )
            if count < 0:
                break
            label, total = pick_of_table(rule, place, keys, sums, used, count, label, total)
            part += 1
        if part == parts:
            return label, total
        parts *= 2


@inlined
def _pick_of_few(rule, amounts, targets, weights, first, stop, x, place):
    """Return the label that a vertex of few edges, ``first <= e < stop``, prefers. The edges of a
    label are added up at its first edge.
    """
    vertex = picker(rule, place)
    best = worth(rule, vertex, NO_LABEL, _EMPTY)
    picked = NO_LABEL
    for e in range(first, stop):
        prefetch(x, np.uintp(targets[min(e + _EDGES_AHEAD, targets.shape[0] - 1)]))
        other = x[targets[e]]
        is_first = True
        for before in range(first, e):
            is_first &= x[targets[before]] != other
        if not is_first:
            continue
        total = amount(amounts, weights, e)
        for after in range(e + 1, stop):
            if x[targets[after]] == other:
                total += amount(amounts, weights, after)
        other_worth = worth(rule, vertex, other, total)
        if outranks(vertex, other, other_worth, picked, best):
            picked = other
            best = other_worth
    return picked


@kernel(PIECE, PIECE, i64, i64s, i64s, allocates=False)
def cut_rows(leaving, entering, most, starts, long_rows):
    """Cut the rows of a whole graph into turns of EDGES_A_TURN edges, or more by a row. Returns the
    number of turns, and of long rows.

    leaving, entering: as in tally_turns. starts: int64 (edges // EDGES_A_TURN + 2,), receives the
    first row of each turn, and the end. long_rows: int64 (edges // most + 1,), receives the rows
    with more edges than ``most``, which no turn counts.
    """
    rows = leaving.offsets.shape[0] - 1
    turns = 0
    count = 0
    edges = np.int64(0)
    full = np.int64(0)
    for row in range(rows):
        if edges >= full:
            starts[turns] = row
            turns += 1
            full = edges + EDGES_A_TURN
        degree = degree_of(leaving.offsets, row) + degree_of(entering.offsets, row)
        if degree > most:
            long_rows[count] = row
            count += 1
        else:
            edges += degree
    starts[turns] = rows
    return turns, count


@inlined
def _copy_labels(targets, first, stop, x, told, count):
    """Copy the labels at the ends of some edges to ``told``, from ``count`` on. Returns the number
    of labels that are there.
    """
    for e in range(first, stop):
        prefetch(x, np.uintp(targets[min(e + _EDGES_AHEAD, targets.shape[0] - 1)]))
        told[np.uintp(count)] = x[targets[e]]
        count += 1
    return count


@inlined
def _pick_by_count(rule, told, count, place):
    """Return the label that a vertex prefers of ``told[:count]``, by how many are alike."""
    vertex = picker(rule, place)
    best = worth(rule, vertex, NO_LABEL, _EMPTY)
    picked = NO_LABEL
    for i in range(np.uintp(count)):
        label = told[i]
        alike = np.uint32(0)
        for k in range(np.uintp(count)):
            alike += np.uint32(told[k] == label)
        label_worth = worth(rule, vertex, label, np.uint64(alike))
        if outranks(vertex, label, label_worth, picked, best):
            picked = label
            best = label_worth
    return picked


_ROWS = PIECE, PIECE, i64s, i64, AMONG, u32s, u32s, TABLE, i64s


@kernel(BEST_GAIN, UNIT_AMOUNTS, *_ROWS)
@kernel(BEST_GAIN, SCALED_WEIGHTS, *_ROWS)
@kernel(MOST_COMMON, UNIT_AMOUNTS, *_ROWS)
@kernel(MOST_COMMON, SCALED_WEIGHTS, *_ROWS, allocates=False)
def tally_turns(rule, amounts, leaving, entering, starts, most, among, x, y, table, taken):
    """Tally all rows of a graph, whose edges are at hand, by several threads at once: see turns.py.

    leaving, entering: the rows; ``entering`` has no offsets if the graph is undirected. starts:
    int64, the first row of each turn, and the end. most: rows with more edges are left out. among:
    the vertices that pick. x: labels by place. y: receives the label that each vertex prefers,
    unless it has no edges. table: of this thread.
    """
    offsets, targets, _, _, weights = leaving
    in_offsets, sources, _, _, in_weights = entering
    keys, sums, used = table
    some = min(_SOME_EDGES, used.shape[0])
    thread = come(taken)
    turns = starts.shape[0] - 1
    turn = take(taken, thread, turns)
    while turn >= 0:
        for row in range(starts[turn], starts[turn + 1]):
            edges = degree_of(offsets, row) + degree_of(in_offsets, row)
            if edges == 0 or edges > most or not _is_among(among, row):
                continue
            if counts_alone(rule, amounts) and edges <= some:
                count = np.int64(0)
                ends = np.int64(offsets[row]), np.int64(offsets[row + 1])
                count = _copy_labels(targets, *ends, x, used, count)
                if in_offsets.shape[0]:
                    ends = np.int64(in_offsets[row]), np.int64(in_offsets[row + 1])
                    count = _copy_labels(sources, *ends, x, used, count)
                y[row] = _pick_by_count(rule, used, count, row)
            elif edges <= _FEW_EDGES and in_offsets.shape[0] == 0:
                ends = np.int64(offsets[row]), np.int64(offsets[row + 1])
                y[row] = _pick_of_few(rule, amounts, targets, weights, *ends, x, row)
            else:
                y[row], _ = pick_of_row(
                    rule,
                    amounts,
                    offsets,
                    targets,
                    weights,
                    0,
                    in_offsets,
                    sources,
                    in_weights,
                    row,
                    None,
                    x,
                    row,
                    0,
                    1,
                    keys,
                    sums,
                    used,
                )
        turn = take(taken, thread, turns)


_LONG_ROW = PIECE, PIECE, i64, i64, i64, u32s, TABLE


@kernel(BEST_GAIN, UNIT_AMOUNTS, *_LONG_ROW)
@kernel(BEST_GAIN, SCALED_WEIGHTS, *_LONG_ROW)
@kernel(MOST_COMMON, UNIT_AMOUNTS, *_LONG_ROW)
@kernel(MOST_COMMON, SCALED_WEIGHTS, *_LONG_ROW, allocates=False)
def tally_class(rule, amounts, leaving, entering, row, label_class, classes, x, table):
    """Return the label of a class that the vertex of a long row prefers, with its sum; NO_LABEL if
    it has none. The other arguments are those of ``tally_turns``.
    """
    offsets, targets, _, _, weights = leaving
    in_offsets, sources, _, _, in_weights = entering
    keys, sums, used = table
    return pick_of_row(
        rule,
        amounts,
        offsets,
        targets,
        weights,
        0,
        in_offsets,
        sources,
        in_weights,
        row,
        None,
        x,
        row,
        label_class,
        classes,
        keys,
        sums,
        used,
    )


@inlined
def _note(places, labels, noted, done, place, keys, sums, used, count):
    """Move the sums of a table to the end of the entries. Returns the number of entries, or -1 if
    there is no room.
    """
    if done < 0 or done + count > places.shape[0]:
        empty_table(sums, used, count)
        return np.int64(-1)
    for i in range(np.uintp(count)):
        places[done] = place
        labels[done] = label_at(keys, np.uintp(used[i]))
        noted[done] = take_sums(sums, used, i)
        done += 1
    return done


_PART = i64, i64, AMONG, NUMBERING, u32s, NUMBERING, i64, i64, TABLE, ENTRIES
_LISTED = u32s, i64, i64, boolean, u32s, *_PART


@kernel(BEST_GAIN, UNIT_AMOUNTS, PIECE, *_LISTED)
@kernel(BEST_GAIN, SCALED_WEIGHTS, PIECE, *_LISTED)
@kernel(BEST_GAIN, LISTED_AMOUNTS, WIDE_PIECE, *_LISTED)
@kernel(MOST_COMMON, UNIT_AMOUNTS, PIECE, *_LISTED)
@kernel(MOST_COMMON, SCALED_WEIGHTS, PIECE, *_LISTED, allocates=False)
def tally_piece(
    rule,
    amounts,
    piece,
    queue,
    first,
    last,
    whole,
    y,
    low,
    high,
    among,
    x_places,
    x,
    y_places,
    label_class,
    classes,
    table,
    entries,
):
    """Tally rows of a piece. Returns the number of entries; -1 if there is no room for them.

    queue, first, last: rows as in push_piece; of these, rows whose places are not ``low <= place <
    high``, or not ``among``, are left out. whole: whether a row of the subgraph has all edges of
    its vertex. If such a row is at hand as a whole, ``y`` receives the label that the vertex
    prefers. Other rows give entries for the labels of a class. x, y: labels by place. x_places,
    y_places: of the subgraph's
    targets and rows.
    """
    offsets, targets, begin, end, weights = piece
    keys, sums, used = table
    places, labels, noted = entries
    no_offsets, no_targets, no_weights = offsets[:0], targets[:0], weights[:0]
    listed = queue.shape[0] > 0
    done = 0
    for i in range(first, last):
        row = np.int64(queue[i]) if listed else i
        start = max(np.int64(offsets[row]), begin)
        stop = min(np.int64(offsets[row + 1]), end)
        place = renumber(y_places, row)
        if start >= stop or np.int64(place) < low or np.int64(place) >= high:
            continue
        if not _is_among(among, place):
            continue
        if whole and stop - start == degree_of(offsets, row):
            if label_class == 0:
                y[place], _ = pick_of_row(
                    rule,
                    amounts,
                    offsets,
                    targets,
                    weights,
                    begin,
                    no_offsets,
                    no_targets,
                    no_weights,
                    row,
                    x_places,
                    x,
                    place,
                    0,
                    1,
                    keys,
                    sums,
                    used,
                )
            continue
        mask = mask_of(keys, stop - start)
        count = np.int64(0)
        for e in range(np.uintp(start - begin), np.uintp(stop - begin)):
            fetch_label(rule, x_places, x, targets, min(e + _AHEAD, np.uintp(stop - begin - 1)))
            label = x[renumber(x_places, targets[e])]
            if _is_in_class(label, label_class, classes):
                added = amount(amounts, weights, e)
                more = add_sum(keys, sums, used, mask, count, label, added)
                if more < 0:
                    done = _note(places, labels, noted, done, place, keys, sums, used, count)
                    more = add_sum(keys, sums, used, mask, np.int64(0), label, added)
                count = more
        done = _note(places, labels, noted, done, place, keys, sums, used, count)
        if done < 0:
            return done
    return done


_SCATTERED = PIECE, i64, i64, AMONG, NUMBERING, u32s, NUMBERING, i64, i64, ENTRIES


@kernel(UNIT_AMOUNTS, *_SCATTERED)
@kernel(SCALED_WEIGHTS, *_SCATTERED, allocates=False)
def scatter_labels(
    amounts, piece, low, high, among, x_places, x, y_places, label_class, classes, entries
):
    """Make an entry of each edge at hand, for its target, with the label of its row. Returns the
    number of entries.

    low, high: places of the targets that are meant. among: those of them that pick, by place. The
    other arguments are those of ``tally_piece``, with x_places of the subgraph's rows, and y_places
    of its targets.
    """
    offsets, targets, begin, end, weights = piece
    places, labels, sums = entries
    done = 0
    row = row_of(offsets, begin)
    edge = begin
    while edge < end:
        upto = min(np.int64(offsets[row + 1]), end)
        label = x[renumber(x_places, row)]
        if _is_in_class(label, label_class, classes):
            for e in range(np.uintp(edge - begin), np.uintp(upto - begin)):
                place = renumber(y_places, targets[e])
                if low <= np.int64(place) < high and _is_among(among, place):
                    places[done] = place
                    labels[done] = label
                    sums[done] = amount(amounts, weights, e)
                    done += 1
        edge = upto
        row += 1
    return done


@kernel(ENTRIES, i64, i64s, ENTRIES, allocates=False)
def group_entries(entries, low, offsets, grouped):
    """Group entries by place. grouped: receives them. offsets: int64 (places + 1,), zeros; receives
    the bounds of the groups of the places from ``low`` on.
    """
    places, labels, sums = entries
    into_places, into_labels, into_sums = grouped
    for i in range(places.shape[0]):
        offsets[places[i] - low + 1] += 1
    for place in range(1, offsets.shape[0]):
        offsets[place] += offsets[place - 1]
    for i in range(places.shape[0]):
        at = offsets[places[i] - low]  # rises to the end of the group
        offsets[places[i] - low] += 1
        into_places[at] = places[i]
        into_labels[at] = labels[i]
        into_sums[at] = sums[i]
    for place in range(offsets.shape[0] - 1, 0, -1):
        offsets[place] = offsets[place - 1]
    offsets[0] = 0


@kernel(BEST_GAIN, ENTRIES, i64s, i64, i64, i64, PICKS, TABLE)
@kernel(MOST_COMMON, ENTRIES, i64s, i64, i64, i64, PICKS, TABLE, allocates=False)
def pick_of_entries(rule, entries, offsets, low, first, last, picks, table):
    """Set the pick of each group ``first <= i < last`` to what its vertex prefers of the pick
    before and the labels of its entries. entries, offsets, low: as ``group_entries`` leaves them.
    """
    _, labels, noted = entries
    keys, sums, used = table
    picked, picked_sums = picks
    for i in range(first, last):
        start, stop = offsets[i], offsets[i + 1]
        if start == stop:
            continue
        mask = mask_of(keys, stop - start)
        parts = 1  # of the labels: entries of a vertex hardly repeat one
        while keys.shape[0] and parts * np.int64(used.shape[0]) < stop - start:
            parts *= 2
        while True:
            label = picked[i]
            total = picked_sums[i]
            part = 0
            while part < parts:
                count = np.int64(0)
                for e in range(start, stop):
                    if _is_in_class(labels[e], part, parts):
                        more = add_sum(keys, sums, used, mask, count, labels[e], noted[e])
                        if more < 0:
                            empty_table(sums, used, count)
                            count = more
                            break
                        count = more
                if count < 0:
                    break
                label, total = pick_of_table(rule, low + i, keys, sums, used, count, label, total)
                part += 1
            if part == parts:
                break
            parts *= 2
        picked[i] = label
        picked_sums[i] = total
