"""Shortest paths that are too many for a 64-bit float: their number has an exponent of its own.

A chain of diamonds doubles the number of paths with each diamond, and a grid nearly does with each
level. Here a number of paths is ``value * 2**exponent``, with a value from 1 up to 2. One thread
counts the paths from a source again, over the levels that are known, and adds up dependencies
(Brandes 2001). Dependencies are made of ratios of counts alone, so they stay plain floats. A power
of two changes no rounding: where plain counts would do, both ways give the same bits.
"""

import math

import numpy as np

from ..base.compiled import compiled, f64s, i32s, i64, i64s, kernel, u32s
from ..pieces.piece import PIECE

DIGITS = 53
"""Number of bits of the mantissa of a 64-bit float. A number that is less by more powers of two
adds nothing.
"""


@compiled
def _add(value, exponent, addend, addend_exponent):
    """Return the sum of two numbers; a value of 0 is no number yet."""
    if value == 0.0:
        return addend, addend_exponent
    if addend_exponent > exponent:
        value, exponent, addend, addend_exponent = addend, addend_exponent, value, exponent
    if exponent - addend_exponent <= DIGITS + 1:
        value += math.ldexp(addend, addend_exponent - exponent)
    if value >= 2.0:
        return 0.5 * value, exponent + 1
    return value, exponent


@kernel(PIECE, u32s, u32s, f64s, i32s, i64s, i64)
def count_again(piece, number, places, paths, exponents, ends, levels):
    """Count paths from a source whose levels ``count_alone`` has found, with its arrays.

    paths, exponents: by number, receive the paths to each vertex. ends: where levels begin, and
    where the last one ends. Returns the edges.
    """
    offsets, targets, _, _, _ = piece
    edges = np.int64(0)
    for i in range(ends[levels]):
        paths[i] = 0.0
    paths[0] = 1.0
    exponents[0] = 0
    for level in range(levels - 1):
        begin = ends[level + 1]
        end = ends[level + 2]
        for i in range(ends[level], begin):
            u = places[i]
            for e in range(np.int64(offsets[u]), np.int64(offsets[u + 1])):
                v = number[targets[np.uintp(e)]]
                if v >= begin and v < end:
                    paths[v], exponents[v] = _add(paths[v], exponents[v], paths[i], exponents[i])
            edges += np.int64(offsets[u + 1]) - np.int64(offsets[u])
    return edges


@kernel(PIECE, u32s, u32s, f64s, i32s, f64s, i64s, i64)
def depend_wide(piece, number, places, paths, exponents, share, ends, levels):
    """Replace ``paths`` by each vertex's dependency on a source of ``count_again``; the source
    itself gets 0.

    Returns the edges. share: room, by number: the value that a vertex sends to the vertices before
    it, divided by 2**exponent.
    """
    offsets, targets, _, _, _ = piece
    edges = np.int64(0)
    for i in range(ends[levels - 1], ends[levels]):
        share[i] = 1.0 / paths[i]
        paths[i] = 0.0
    for level in range(levels - 2, 0, -1):
        begin = ends[level + 1]
        end = ends[level + 2]
        for i in range(ends[level], begin):
            u = places[i]
            total = 0.0
            for e in range(np.int64(offsets[u]), np.int64(offsets[u + 1])):
                v = number[targets[np.uintp(e)]]
                if v >= begin and v < end:
                    total += math.ldexp(share[v], exponents[i] - exponents[v])
            edges += np.int64(offsets[u + 1]) - np.int64(offsets[u])
            dependency = paths[i] * total
            share[i] = (1 + dependency) / paths[i]
            paths[i] = dependency
    paths[0] = 0.0
    return edges
