"""From the rows and targets of a subgraph to vertices: a partition numbers its own its own way."""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray


class Numbering(NamedTuple):
    """Global id of each local one: an entry of a table, or ``local * multiplier + addend``.

    table: uint32, shape (locals,), or (0,) where the rule holds. Either way global ids rise
    with local ones if ``table`` does or is not there.

    >>> NORMALS = Numbering(np.empty(0, np.uint32), 4, 3)  # of partition 3 of 4: 3, 7, 11, ...
    """

    table: NDArray[np.uint32]
    multiplier: int
    addend: int


def by_rule(multiplier: int = 1, addend: int = 0) -> Numbering:
    """The vertices of partition ``addend`` of ``multiplier``; without arguments, all vertices."""
    return Numbering(np.empty(0, np.uint32), multiplier, addend)


def by_table(table: NDArray[np.uint32]) -> Numbering:
    return Numbering(table, 1, 0)


@njit(nogil=True, cache=True)
def to_global(numbering, local):
    """Global id (uint32) of a local one (any integer)."""
    if numbering.table.shape[0]:
        return numbering.table[local]
    return np.uint32(np.int64(local) * numbering.multiplier + numbering.addend)


@njit(nogil=True, cache=True)
def past_word(numbering, local, v):
    """The first local id after ``local`` whose vertex may lie in another bitmap word than ``v``."""
    if numbering.table.shape[0]:
        return local + 1
    next_word = (np.int64(v) | 63) + 1
    return (next_word - numbering.addend + numbering.multiplier - 1) // numbering.multiplier
