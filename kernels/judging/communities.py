"""The single move of a vertex to a neighbour's community that raises the quality most.

Written apart from the program that is judged: one thread, and sorting instead of tables.
"""

import numpy as np

from ..base.compiled import boolean, f64, f64s, i64, i64s, kernel, u32s, u64s

_LABEL = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


@kernel(
    *(u64s, i64s, i64s, boolean, i64),
    *(u32s, f64s, f64s, f64, f64s, i64s),
    allocates=False,
)
def find_best_move(
    keys, order, amounts, by_weights, first, label, mass, totals, factor, gain, move
):
    """Find the best move of some vertices, which have numbers from ``first`` on.

    keys, order, amounts, by_weights: as Noted of pipeline/judging/neighbours.py. label: uint32, the
    community of each vertex. mass: float64, of each vertex. totals: float64, of each community.
    factor: what two masses make one expect, by their product. gain: float64 (2,), the gain of the
    best move so far, and of this move relative to the vertex's edges. move: int64 (2,), its vertex
    and its community. Both change if a move is better.
    """
    begin = 0
    while begin < keys.shape[0]:
        v = keys[order[begin] if by_weights else begin] >> _HALF
        number = first + np.int64(v)
        mine = label[number]
        own = np.int64(0)
        strength = np.int64(0)
        end = begin
        while end < keys.shape[0]:
            at = order[end] if by_weights else end
            if keys[at] >> _HALF != v:
                break
            more = amounts[at] if by_weights else np.int64(1)
            strength += more
            if keys[at] & _LABEL == mine:
                own += more
            end += 1
        expected = factor * mass[number]
        here = np.float64(own) - expected * (totals[mine] - mass[number])
        i = begin
        while i < end:
            key = keys[order[i] if by_weights else i]
            total = np.int64(0)
            while i < end:
                at = order[i] if by_weights else i
                if keys[at] != key:
                    break
                total += amounts[at] if by_weights else np.int64(1)
                i += 1
            other = key & _LABEL
            if other != mine:
                gained = np.float64(total) - expected * totals[np.intp(other)] - here
                if gained > gain[0]:
                    gain[0] = gained
                    gain[1] = gained / np.float64(strength) if strength else np.float64(0)
                    move[0] = number
                    move[1] = np.int64(other)
        begin = end
