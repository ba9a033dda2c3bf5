"""A step of a random walk at each vertex: what PageRank does between two gathers, in one pass."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..base.compiled import Struct, boolean, booleans, compiled, f64, f64s, i64s, kernel, u32s
from ..base.numbering import NUMBERING
from ..base.turns import come, take
from ..pieces.gather import EDGES_A_TURN, gather_turn
from ..pieces.operators import SUM, WEIGHTED_SUM
from ..pieces.piece import PIECE


class Teleport(NamedTuple):
    """The ways in which a walk goes on otherwise than along an edge.

    likely: float64, the probability that a teleport ends at each vertex; or (0,), and ``anywhere``
    is the amount for each vertex. damping: the probability that the walk takes an edge. anywhere:
    the amount that teleports. keeps: whether the walk teleports from vertices without edges.
    """

    likely: NDArray[np.float64]
    damping: float
    anywhere: float
    keeps: bool


TELEPORT = Struct(Teleport, (f64s, f64, f64, boolean))

_TOGETHER = 256
"""Number of vertices whose changes are kept before they are added up. The steps before that are
done several vertices at a time then, and sums still do not depend on how many a processor takes.
"""


@compiled
def _sum(values):
    """Sum the values in four chains, as a single chain would wait for each addition."""
    one = two = three = four = 0.0
    count = values.shape[0]
    whole = count - count % 4
    for i in range(0, whole, 4):
        one += values[i]
        two += values[i + 1]
        three += values[i + 2]
        four += values[i + 3]
    for i in range(whole, count):
        one += values[i]
    return (one + two) + (three + four)


@compiled
def _advance(counted, came, share, degree, teleport, first, last):
    likely, damping, anywhere, keeps = teleport
    change = 0.0
    lost = 0.0
    changes = np.empty(_TOGETHER)
    for begin in range(first, last, _TOGETHER):
        end = min(begin + _TOGETHER, last)
        # Slices, as an index that may be negative is looked at each time.
        moved, new, old = changes[: end - begin], came[begin:end], share[begin:end]
        edges, there = degree[begin:end], likely[begin:end]
        for i in range(end - begin):
            shares = np.float64(edges[i])
            shares = shares if shares != 0.0 else 1.0
            rank = damping * new[i]
            rank += anywhere * there[i] if likely.shape[0] else anywhere
            moved[i] = abs(rank - old[i] * shares)
            new[i] = np.divide(rank, shares)  # not zero: a look whether it is would take longer
        if counted.shape[0]:
            for i in range(end - begin):
                if not counted[begin + i]:
                    moved[i] = 0.0
        change += _sum(moved)
        if keeps:
            lost += _at_ends(counted[begin:end], new, edges)
    return change, lost


@kernel(booleans, f64s, f64s, u32s, TELEPORT)
@kernel(booleans, f64s, f64s, f64s, TELEPORT)
def advance(counted, came, share, degree, teleport):
    """Make new shares of what came to the vertices; all arrays have the same length. Returns (the
    change of all ranks, the amount that is lost at ends).

    A vertex's PageRank is its share times its degree, or its share if no edge leads out of it.
    counted: the vertices for which the numbers are added up; (0,) for all. came: sums of shares;
    receives new shares. share: the old shares.
    """
    return _advance(counted, came, share, degree, teleport, 0, share.shape[0])


@kernel(SUM, PIECE, NUMBERING, i64s, f64s, f64s, u32s, TELEPORT, i64s, f64s, f64s, i64s)
@kernel(WEIGHTED_SUM, PIECE, NUMBERING, i64s, f64s, f64s, f64s, TELEPORT, i64s, f64s, f64s, i64s)
def gather_and_advance(
    operator, piece, places, starts, came, share, degree, teleport, rows, values, sums, taken
):
    """Gather shares as ``gather_turns`` does, and ``advance`` turn by turn, while the sums are in
    the cache. Rows that are cut do not advance.

    The piece is a subgraph whose rows and targets are ``places`` as they are. starts: as
    ``starts_of_turns`` returns them. came: may have any content before. sums: (2 * turns,),
    receives for each turn what ``advance`` returns.
    """
    everything = np.empty(0, np.bool_)
    turns = starts.shape[0] - 1
    thread = come(taken)
    turn = take(taken, thread, turns)
    while turn >= 0:
        first = starts[turn]
        last = starts[turn + 1]
        came[first:last] = operator.unit
        gather_turn(operator, piece, turn, places, share, places, came, rows, values)
        if last > first and np.int64(piece.offsets[last]) > (turn + 1) * EDGES_A_TURN:
            last -= 1
        change, lost = _advance(everything, came, share, degree, teleport, first, last)
        sums[2 * turn] = change
        sums[2 * turn + 1] = lost
        turn = take(taken, thread, turns)


@compiled
def _at_ends(counted, share, degree):
    held = 0.0
    for i in range(share.shape[0]):
        if degree[i] == 0 and (counted.shape[0] == 0 or counted[i]):
            held += share[i]
    return held


@kernel(booleans, f64s, u32s)
@kernel(booleans, f64s, f64s)
def at_ends(counted, share, degree):
    """Add up the shares of vertices without edges out of them, as ``advance`` does."""
    return _at_ends(counted, share, degree)
