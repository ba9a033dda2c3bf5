"""Communities of a graph in memory: vertices move in rounds, and a graph is contracted.

Of a *round*, each vertex is in one of CLASSES classes by a hash, and the classes take turns. All
vertices of a class pick at once, by the communities before (Traag, Waltman, van Eck: From Louvain
to Leiden, Scientific Reports 9, 2019, have one vertex move after the other). So the moves depend
neither on threads nor on the order of edges. Only vertices of which a neighbour has moved are
looked at again.

All arrays are by place, but those that are said to be by label or by number. A label is the number
of a vertex; numbers follow the user's ids.
"""

from __future__ import annotations

import numpy as np

from ..base.compiled import booleans, f64, i64, i64s, inlined, kernel, u8s, u32s, u64, u64s
from ..base.intrinsics import prefetch
from ..base.turns import come, take
from ..pieces.operators import BEST_GAIN, LISTED_AMOUNTS, SCALED_WEIGHTS, UNIT_AMOUNTS, amount
from ..pieces.piece import PIECE, WIDE_PIECE
from ..pieces.tally import (
    NO_LABEL,
    TABLE,
    add_edges,
    add_sum,
    empty_table,
    mask_of,
    pick_of_row,
    pick_of_table,
    take_sums,
)

CLASSES = 8
VERTICES_A_TURN = 1 << 5
"""Few, since the first vertices of a graph may have most of its edges."""

_AHEAD = 4
_ENTRIES_AHEAD = 64
_ENTRIES_A_LINE = 16

_SHIFTS = np.uint64(33), np.uint64(61)
_FACTORS = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)


@inlined
def _class_of(number, stamp):
    """Return the class of a vertex in the round with a stamp: MurmurHash3's finalizer (Appleby)."""
    hashed = np.uint64(number) + stamp
    hashed ^= hashed >> _SHIFTS[0]
    hashed *= _FACTORS[0]
    hashed ^= hashed >> _SHIFTS[0]
    hashed *= _FACTORS[1]
    return np.int64(hashed >> _SHIFTS[1])


@kernel(u32s, u64, u8s)
def find_classes(numbers, stamp, classes):
    """Find the class of each vertex in a round. classes: uint8, receives them."""
    for i in range(numbers.shape[0]):
        classes[i] = _class_of(numbers[i], stamp)


@kernel(u8s, u32s, u64, i64s, u32s)
def list_by_class(marked, numbers, stamp, bounds, listed):
    """List the marked vertices by their classes in a round. bounds: int64 (CLASSES + 1,), receives
    the bounds of the classes in ``listed``, uint32 (n,).
    """
    classes = np.empty(marked.shape[0], np.uint8)
    bounds[:] = 0
    for place in range(marked.shape[0]):
        if marked[place]:
            classes[place] = _class_of(numbers[place], stamp)
            bounds[classes[place] + 1] += 1
    for i in range(CLASSES):
        bounds[i + 1] += bounds[i]
    for place in range(marked.shape[0]):
        if marked[place]:
            i = classes[place]
            listed[bounds[i]] = place
            bounds[i] += 1
    for i in range(CLASSES, 0, -1):
        bounds[i] = bounds[i - 1]
    bounds[0] = 0


@kernel(PIECE, u32s, i64, allocates=False)
def has_more_edges(piece, places, most):
    """Return whether some vertices, and their edges, are more than ``most`` in all."""
    left = most - places.shape[0]
    for i in range(places.shape[0]):
        left -= np.int64(piece.offsets[places[i] + 1]) - np.int64(piece.offsets[places[i]])
        if left < 0:
            break
    return left < 0


@inlined
def _pick(rule, amounts, piece, place, label, communities, keys, sums, used):
    """Return the community that a vertex prefers, as ``pick_of_row`` does, but neighbours outside
    the vertex's community are left out while this is divided into parts.
    """
    offsets, targets, _, _, weights = piece
    begin = np.int64(offsets[place])
    end = np.int64(offsets[place + 1])
    mask = mask_of(keys, end - begin)
    bounded = communities.shape[0] > 0
    part = communities[place] if bounded else np.uint32(0)
    count = np.int64(0)
    for e in range(np.uintp(begin), np.uintp(end)):
        target = targets[e]
        if bounded and communities[target] != part:
            continue
        more = add_sum(keys, sums, used, mask, count, label[target], amount(amounts, weights, e))
        if more < 0:
            empty_table(sums, used, count)
            none = offsets[:0], targets[:0], weights[:0]
            row = offsets, targets, weights, 0, *none, place, None, label, place
            return pick_of_row(rule, amounts, *row, 0, 1, keys, sums, used)[0]
        count = more
    return pick_of_table(rule, place, keys, sums, used, count, NO_LABEL, np.uint64(0))[0]


@inlined
def _fetch_ahead(rule, piece, label, listed, i):
    """Have the cache fetch what the vertices that are listed soon after the i-th need: their places
    in memory are at random.
    """
    offsets, targets, _, _, _ = piece
    last = listed.shape[0] - 1
    place = listed[min(i + 3 * _AHEAD, last)]
    prefetch(offsets, np.intp(place))
    prefetch(rule.numbers, np.intp(place))
    place = listed[min(i + 2 * _AHEAD, last)]
    number = np.intp(rule.numbers[place])
    prefetch(label, np.intp(place))
    prefetch(rule.mass, number)
    if rule.parts.shape[0]:
        prefetch(rule.parts, number)
    begin = np.intp(offsets[place])
    for e in range(
        begin, min(begin + _ENTRIES_AHEAD, np.intp(offsets[place + 1])), _ENTRIES_A_LINE
    ):
        prefetch(targets, e)
    place = listed[min(i + _AHEAD, last)]
    prefetch(rule.totals, np.intp(label[place]))


@inlined
def _pick_listed(
    rule, amounts, piece, listed, first, last, label, communities, marked, picks, table
):
    """Pick a community for each vertex that is listed from ``first`` on, before ``last``, and take
    its mark away. Returns how many edges it has looked at.
    """
    keys, sums, used = table
    offsets = piece.offsets
    edges = np.int64(0)
    for i in range(first, last):
        place = np.int64(listed[i])
        _fetch_ahead(rule, piece, label, listed, i)
        marked[place] = 0
        edges += np.int64(offsets[place + 1]) - np.int64(offsets[place])
        picks[i] = _pick(rule, amounts, piece, place, label, communities, keys, sums, used)
    return edges


@kernel(BEST_GAIN, UNIT_AMOUNTS, PIECE, u32s, u32s, u32s, u8s, u32s, TABLE, i64s)
@kernel(BEST_GAIN, SCALED_WEIGHTS, PIECE, u32s, u32s, u32s, u8s, u32s, TABLE, i64s)
@kernel(
    BEST_GAIN,
    LISTED_AMOUNTS,
    WIDE_PIECE,
    u32s,
    u32s,
    u32s,
    u8s,
    u32s,
    TABLE,
    i64s,
    allocates=False,
)
def pick_moves(rule, amounts, piece, listed, label, communities, marked, picks, table, taken):
    """Pick a community for each listed vertex, by several threads at once: see turns.py. Returns
    how many edges the thread looked at.

    communities: uint32, while these are divided into parts, else empty. marked: uint8, where the
    marks of the listed vertices are taken away. picks: uint32, receives a label, or NO_LABEL, for
    each entry of ``listed``. table: of this thread.
    """
    edges = np.int64(0)
    thread = come(taken)
    count = listed.shape[0]
    turns = (count + VERTICES_A_TURN - 1) // VERTICES_A_TURN
    turn = take(taken, thread, turns)
    while turn >= 0:
        first, last = turn * VERTICES_A_TURN, min((turn + 1) * VERTICES_A_TURN, count)
        edges += _pick_listed(
            rule, amounts, piece, listed, first, last, label, communities, marked, picks, table
        )
        turn = take(taken, thread, turns)
    return edges


@inlined
def _move(v, to, label, mass, totals):
    """Move a vertex to a community. All arrays are by number."""
    totals[label[v]] -= mass[v]
    totals[to] += mass[v]
    label[v] = to


@kernel(u32s, u32s, u32s, u64s, u64s)
def do_moves(vertices, labels, label, mass, totals):
    """Move vertices to communities. label: uint32, the community of each vertex, is changed.
    totals: uint64, the mass of each community, is changed. All arrays are by number.
    """
    for i in range(vertices.shape[0]):
        _move(vertices[i], labels[i], label, mass, totals)


@kernel(u32s, u32s)
def number_labels(label, number):
    """Number the labels that occur from 0 on, by rising label. Returns how many there are. number:
    uint32, by label, zeros; receives the numbers.
    """
    for i in range(label.shape[0]):
        number[label[i]] = 1
    labels = np.int64(0)
    for i in range(number.shape[0]):
        if number[i]:
            number[i] = labels
            labels += 1
    return labels


@kernel(u32s, u32s, u32s)
def least_by_label(label, values, least):
    """Find the least value of each label. least: uint32, by label, as great as any value; receives
    it.
    """
    for i in range(label.shape[0]):
        if values[i] < least[label[i]]:
            least[label[i]] = values[i]


@kernel(u32s, u64s, u64s)
def add_by_label(label, values, sums):
    """Add the values of each label to ``sums``, uint64, by label."""
    for i in range(label.shape[0]):
        sums[label[i]] += values[i]


@inlined
def _move_listed(listed, picks, first, last, numbers, places_label, label, mass, totals):
    moves = first
    for i in range(first, last):
        place = listed[i]
        to = picks[i]
        if to == NO_LABEL or to == places_label[place]:
            continue
        _move(numbers[place], to, label, mass, totals)
        places_label[place] = to
        picks[moves] = place
        moves += 1
    return moves - first


@kernel(u32s, u32s, u32s, u32s, u32s, u64s, u64s)
def move_picked(listed, picks, numbers, places_label, label, mass, totals):
    """Move the listed vertices to the communities that they have picked. Returns how many move.

    picks: as ``pick_moves`` makes them; receives the places of those that move. places_label,
    label: uint32, the community of each vertex by place and by number, are changed; they may be one
    array if places and numbers are the same. totals: uint64, the mass of each community, by its
    number, is changed.
    """
    last = listed.shape[0]
    return _move_listed(
        listed, picks, np.int64(0), last, numbers, places_label, label, mass, totals
    )


@kernel(u32s, u64s, u64s, u64s, u32s, f64, booleans)
def find_alone(numbers, within, mass, totals, label, factor, alone):
    """Find which vertices may join others of their communities: those that are connected with them
    well enough. numbers: of vertices. within: uint64, what their edges to others of their
    communities amount to. alone: bool, by number, receives it.
    """
    for i in range(numbers.shape[0]):
        v = numbers[i]
        others = np.float64(totals[label[v]] - mass[v])
        expected = np.float64(mass[v]) * factor * others
        alone[v] = within[i] > 0 and np.float64(within[i]) >= expected


@inlined
def _choose_listed(listed, first, last, numbers, alone, groups):
    joining = np.int64(0)
    for i in range(first, last):
        v = numbers[listed[i]]
        if alone[v]:
            groups[v] = NO_LABEL
            joining += 1
    return joining


@kernel(u32s, u32s, booleans, u32s)
def choose_joining(listed, numbers, alone, groups):
    """Take the listed vertices that are still alone out of their groups. Returns how many are.
    groups: uint32, by number, the community of each vertex; receives NO_LABEL.
    """
    return _choose_listed(listed, np.int64(0), listed.shape[0], numbers, alone, groups)


@inlined
def _join_listed(
    listed, picks, first, last, numbers, places_part, part, mass, totals, alone, label, groups
):
    joined = first
    for i in range(first, last):
        place = listed[i]
        v = numbers[place]
        if groups[v] != NO_LABEL:
            continue
        groups[v] = label[v]
        to = picks[i]
        if to == NO_LABEL or to == places_part[place]:
            continue
        _move(v, to, part, mass, totals)
        places_part[place] = to
        picks[joined] = v
        joined += 1
    for i in range(first, joined):
        v = picks[i]
        alone[v] = False
        alone[part[v]] = False
    return joined - first


@kernel(u32s, u32s, u32s, u32s, u32s, u64s, u64s, booleans, u32s, u32s)
def join_picked(listed, picks, numbers, places_part, part, mass, totals, alone, label, groups):
    """Have the vertices that ``choose_joining`` has chosen join the parts that they have picked,
    and put them back into their groups. Returns how many join others. The first arguments are those
    of ``move_picked``.
    """
    return _join_listed(
        listed,
        picks,
        np.int64(0),
        listed.shape[0],
        numbers,
        places_part,
        part,
        mass,
        totals,
        alone,
        label,
        groups,
    )


@inlined
def _mark_listed(piece, moved, first, last, marked):
    """Mark the neighbours of vertices. Returns how many edges these have."""
    offsets, targets, _, _, _ = piece
    edges = np.int64(0)
    for i in range(first, last):
        begin = np.uintp(offsets[moved[i]])
        end = np.uintp(offsets[moved[i] + 1])
        edges += np.int64(end - begin)
        for e in range(begin, end):
            marked[targets[e]] = 1
    return edges


_ROUND = u32s, i64s, u32s, u8s, u32s, TABLE


@kernel(BEST_GAIN, UNIT_AMOUNTS, PIECE, *_ROUND)
@kernel(BEST_GAIN, SCALED_WEIGHTS, PIECE, *_ROUND)
@kernel(BEST_GAIN, LISTED_AMOUNTS, WIDE_PIECE, *_ROUND, allocates=False)
def move_round(rule, amounts, piece, listed, bounds, label, marked, picks, table):
    """Do a round of moves on one thread: class after class, listed vertices pick (pick_moves), move
    (move_picked) and mark their neighbours. Returns how many move, and how many edges were looked
    at.

    listed, bounds: as list_by_class makes them. label: by place. picks: uint32, as long as
    ``listed``.
    """
    none = label[:0]
    by_number = rule.numbers, label, rule.mine, rule.mass, rule.totals
    moves = np.int64(0)
    edges = np.int64(0)
    for i in range(bounds.shape[0] - 1):
        first, last = bounds[i], bounds[i + 1]
        edges += _pick_listed(
            rule, amounts, piece, listed, first, last, label, none, marked, picks, table
        )
        moved = _move_listed(listed, picks, first, last, *by_number)
        edges += _mark_listed(piece, picks, first, first + moved, marked)
        moves += moved
    return moves, edges


@kernel(BEST_GAIN, UNIT_AMOUNTS, PIECE, *_ROUND, u32s, booleans)
@kernel(BEST_GAIN, SCALED_WEIGHTS, PIECE, *_ROUND, u32s, booleans)
@kernel(BEST_GAIN, LISTED_AMOUNTS, WIDE_PIECE, *_ROUND, u32s, booleans, allocates=False)
def join_round(
    rule, amounts, piece, listed, bounds, part, marked, picks, table, communities, alone
):
    """Do a round of joining on one thread, as ``move_round`` does one of moves: listed vertices are
    chosen (choose_joining), pick, and join others (join_picked). part: by place. communities: as in
    ``pick_moves``. alone: by number. The groups are the rule's.
    """
    by_number = (
        rule.numbers,
        part,
        rule.mine,
        rule.mass,
        rule.totals,
        alone,
        rule.parts,
        rule.groups,
    )
    joined = np.int64(0)
    edges = np.int64(0)
    for i in range(bounds.shape[0] - 1):
        first, last = bounds[i], bounds[i + 1]
        if not _choose_listed(listed, first, last, rule.numbers, alone, rule.groups):
            continue
        edges += _pick_listed(
            rule, amounts, piece, listed, first, last, part, communities, marked, picks, table
        )
        joined += _join_listed(listed, picks, first, last, *by_number)
    return joined, edges


@kernel(PIECE, u32s, u8s, i64s, allocates=False)
def mark_neighbours(piece, moved, marked, taken):
    """Mark the neighbours of the listed vertices, by several threads at once. Returns how many
    edges the thread looked at.
    """
    edges = np.int64(0)
    thread = come(taken)
    count = moved.shape[0]
    turns = (count + VERTICES_A_TURN - 1) // VERTICES_A_TURN
    turn = take(taken, thread, turns)
    while turn >= 0:
        first, last = turn * VERTICES_A_TURN, min((turn + 1) * VERTICES_A_TURN, count)
        edges += _mark_listed(piece, moved, first, last, marked)
        turn = take(taken, thread, turns)
    return edges


@kernel(UNIT_AMOUNTS, PIECE, u32s, u64s, i64s)
@kernel(SCALED_WEIGHTS, PIECE, u32s, u64s, i64s)
@kernel(LISTED_AMOUNTS, WIDE_PIECE, u32s, u64s, i64s, allocates=False)
def add_inside(amounts, piece, label, inside, taken):
    """Add up, for each vertex, its edges to vertices with the same label, by several threads at
    once. inside: uint64, receives the sums.
    """
    offsets, targets, _, _, weights = piece
    thread = come(taken)
    count = label.shape[0]
    turns = (count + VERTICES_A_TURN - 1) // VERTICES_A_TURN
    turn = take(taken, thread, turns)
    while turn >= 0:
        for place in range(turn * VERTICES_A_TURN, min((turn + 1) * VERTICES_A_TURN, count)):
            total = np.uint64(0)
            for e in range(np.uintp(offsets[place]), np.uintp(offsets[place + 1])):
                if label[targets[e]] == label[place]:
                    total += amount(amounts, weights, e)
            inside[place] = total
        turn = take(taken, thread, turns)


@kernel(u32s, i64s, u32s)
def list_members(label, bounds, members):
    """List the vertices of each label. bounds: int64 (labels + 1,), receives the bounds of the
    lists in ``members``, uint32 (n,).
    """
    bounds[:] = 0
    for place in range(label.shape[0]):
        bounds[label[place] + 1] += 1
    for i in range(bounds.shape[0] - 1):
        bounds[i + 1] += bounds[i]
    for place in range(label.shape[0]):
        members[bounds[label[place]]] = place
        bounds[label[place]] += 1
    for i in range(bounds.shape[0] - 1, 0, -1):
        bounds[i] = bounds[i - 1]
    bounds[0] = 0


@inlined
def _add_members(amounts, piece, members, first, stop, label, keys, sums, used):
    """Add up the edges of some vertices by the labels of their neighbours. Returns the number of
    labels that the table has then.
    """
    offsets, targets, _, _, weights = piece
    count = np.int64(0)
    for i in range(first, stop):
        place = np.int64(members[i])
        begin = np.int64(offsets[place])
        end = np.int64(offsets[place + 1])
        mask = mask_of(keys, end - begin)
        count = add_edges(
            None,
            amounts,
            targets,
            weights,
            begin,
            end,
            None,
            label,
            0,
            1,
            keys,
            sums,
            used,
            mask,
            count,
        )
    return count


@kernel(UNIT_AMOUNTS, PIECE, u32s, i64s, u32s, i64s, TABLE, i64s)
@kernel(SCALED_WEIGHTS, PIECE, u32s, i64s, u32s, i64s, TABLE, i64s)
@kernel(LISTED_AMOUNTS, WIDE_PIECE, u32s, i64s, u32s, i64s, TABLE, i64s, allocates=False)
def count_contracted(amounts, piece, label, bounds, members, degrees, table, taken):
    """Count the other labels that vertices of each label have edges to, by several threads at once.

    bounds, members: as ``list_members`` makes them. degrees: int64, by label, receives the numbers.
    table: of this thread, with sums by label.
    """
    keys, sums, used = table
    thread = come(taken)
    count = degrees.shape[0]
    turns = (count + VERTICES_A_TURN - 1) // VERTICES_A_TURN
    turn = take(taken, thread, turns)
    while turn >= 0:
        for v in range(turn * VERTICES_A_TURN, min((turn + 1) * VERTICES_A_TURN, count)):
            found = _add_members(
                amounts, piece, members, bounds[v], bounds[v + 1], label, keys, sums, used
            )
            is_inside = sums[v] != np.uint64(0)
            degrees[v] = found - np.int64(is_inside)
            for i in range(found):
                take_sums(sums, used, i)
        turn = take(taken, thread, turns)


@kernel(UNIT_AMOUNTS, PIECE, u32s, i64s, u32s, i64s, u32s, u64s, u64s, TABLE, i64s)
@kernel(SCALED_WEIGHTS, PIECE, u32s, i64s, u32s, i64s, u32s, u64s, u64s, TABLE, i64s)
@kernel(
    LISTED_AMOUNTS,
    WIDE_PIECE,
    u32s,
    i64s,
    u32s,
    i64s,
    u32s,
    u64s,
    u64s,
    TABLE,
    i64s,
    allocates=False,
)
def fill_contracted(
    amounts, piece, label, bounds, members, into, targets, of_edges, inside, table, taken
):
    """Fill the rows of the contracted graph, by several threads at once.

    into: int64, by label, where its row begins. targets, of_edges: receive the labels at the other
    ends of edges, and what the edges amount to. inside: uint64, by label, receives what the edges
    inside a label amount to, each counted in both directions.
    """
    keys, sums, used = table
    thread = come(taken)
    count = inside.shape[0]
    turns = (count + VERTICES_A_TURN - 1) // VERTICES_A_TURN
    turn = take(taken, thread, turns)
    while turn >= 0:
        for v in range(turn * VERTICES_A_TURN, min((turn + 1) * VERTICES_A_TURN, count)):
            found = _add_members(
                amounts, piece, members, bounds[v], bounds[v + 1], label, keys, sums, used
            )
            at = into[v]
            for i in range(found):
                other = used[i]
                total = take_sums(sums, used, i)
                if other == v:
                    inside[v] = total
                else:
                    targets[at] = other
                    of_edges[at] = total
                    at += 1
        turn = take(taken, thread, turns)


@kernel(u32s, u32s, u64s, i64s, u32s, u64s)
def fill_rows(first, other, sums, into, targets, of_edges):
    """Fill rows with pairs of labels, each in both directions. into: int64, by label, where the
    rest of its row begins; moves to its end. targets, of_edges: as in ``fill_contracted``.
    """
    for i in range(first.shape[0]):
        u = first[i]
        v = other[i]
        targets[into[u]] = v
        of_edges[into[u]] = sums[i]
        into[u] += 1
        targets[into[v]] = u
        of_edges[into[v]] = sums[i]
        into[v] += 1
