"""From the rows and targets of a subgraph to vertices: a partition numbers its own its own way."""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from .compiled import Struct, i64, u32s


class Numbering(NamedTuple):
    """Global id of each local one: an entry of a table, or by a rule.

    table: uint32, shape (locals,), or (0,) where the rule holds: local ids come in runs of
    ``width``, the first one from global id ``addend`` on, the others every ``multiplier``. Either
    way global ids rise with local ones if ``table`` does or is not there.

    >>> NORMALS = by_rule(4, 3)  # of partition 3 of 4: 3, 7, 11, ...
    >>> GRID_ROW = by_rule(6, 3, 3)  # row 1 of a grid of 2 x 3: 3, 4, 5, 9, 10, 11, ...
    """

    table: NDArray[np.uint32]
    multiplier: int
    addend: int
    width: int


NUMBERING = Struct(Numbering, (u32s, i64, i64, i64))


def by_rule(multiplier: int = 1, addend: int = 0, width: int = 1) -> Numbering:
    """Without arguments, all vertices."""
    return Numbering(np.empty(0, np.uint32), multiplier, addend, width)


def by_table(table: NDArray[np.uint32]) -> Numbering:
    return Numbering(table, 1, 0, 1)


@njit(nogil=True, cache=True)
def to_global(numbering, local):
    """Global id (uint32) of a local one (any integer)."""
    if numbering.table.shape[0]:
        return numbering.table[local]
    place = np.int64(local)
    if numbering.width == 1:
        return np.uint32(place * numbering.multiplier + numbering.addend)
    run = place // numbering.width
    within = place - run * numbering.width
    return np.uint32(run * numbering.multiplier + within + numbering.addend)


@njit(nogil=True, cache=True)
def past_word(numbering, local, v):
    """The first local id after ``local`` whose vertex may lie in another bitmap word than ``v``."""
    if numbering.table.shape[0] or numbering.width > 1:
        return local + 1
    next_word = (np.int64(v) | 63) + 1
    return (next_word - numbering.addend + numbering.multiplier - 1) // numbering.multiplier


def all_to_global(numbering: Numbering, local: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Global ids of local ones.

    >>> all_to_global(by_rule(6, 3, 3), np.arange(5, dtype=np.uint32)).tolist()
    [3, 4, 5, 9, 10]
    """
    if len(numbering.table):
        return numbering.table[local]
    multiplier, addend = np.uint32(numbering.multiplier), np.uint32(numbering.addend)
    if numbering.width == 1:
        return local * multiplier + addend
    run, within = np.divmod(local, np.uint32(numbering.width))
    return run * multiplier + within + addend
