"""Numberings of vertices, and the way from one to another: by a table, or by a rule.

A subgraph of a partition numbers its rows and its targets in its own way. A store knows global ids.
A rank of a search has numbers of its own.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .compiled import Struct, compiled, i64, kernel, u32s


class Numbering(NamedTuple):
    """A map from old numbers, which count from 0, to new numbers: a table with an entry for each
    old number, or a rule.

    table: uint32, shape (vertices,), or (0,) where the rule holds: old numbers come in runs of
    ``width``, the first one from ``addend`` on, the others every ``multiplier``; within a run new
    numbers rise by ``step``. Either way they rise with old ones if ``table`` does or is not there.

    >>> NORMALS = by_rule(4, 3)  # global ids of partition 3 of 4: 3, 7, 11, ...
    >>> GRID_ROW = by_rule(6, 3, 3)  # of row 1 of a grid of 2 x 3: 3, 4, 5, 9, 10, 11, ...
    """

    table: NDArray[np.uint32]
    multiplier: int
    addend: int
    width: int
    step: int


NUMBERING = Struct(Numbering, (u32s, i64, i64, i64, i64))


@lru_cache(maxsize=1024)  # a superstep of few vertices asks for the same ones again
def by_rule(multiplier: int = 1, addend: int = 0, width: int = 1, step: int = 1) -> Numbering:
    """Make a numbering by a rule. Without arguments, every number stays as it is.

    >>> by_rule(6, 1, 3, 2)[1:]  # runs that join
    (2, 1, 1, 1)
    """
    if width * step == multiplier:
        multiplier, width = step, 1
    return Numbering(np.empty(0, np.uint32), multiplier, addend, width, 1 if width == 1 else step)


def by_table(table: NDArray[np.uint32]) -> Numbering:
    return Numbering(table, 1, 0, 1, 1)


@compiled
def renumber(numbering, number):
    """Return the new number (uint32) of an old one (any integer).

    numbering: None leaves every number as it is, and what is compiled for None looks at no rule.
    """
    if numbering is None:
        return np.uint32(number)
    if numbering.table.shape[0]:
        return numbering.table[number]
    place = np.int64(number)
    if numbering.width == 1:
        return np.uint32(place * numbering.multiplier + numbering.addend)
    run = place // numbering.width
    within = place - run * numbering.width
    return np.uint32(run * numbering.multiplier + within * numbering.step + numbering.addend)


@kernel(NUMBERING)
def is_identity(numbering):
    """Return whether the numbering leaves every number as it is.

    >>> is_identity(by_rule()), is_identity(by_rule(4, 3))
    (True, False)
    """
    by_itself = numbering.multiplier == 1 and numbering.addend == 0 and numbering.width == 1
    return numbering.table.shape[0] == 0 and by_itself


@compiled
def past_word(numbering, number, v):
    """Return the first number after ``number`` whose new number may lie in another bitmap word than
    ``v``.
    """
    if numbering is None:
        return (np.int64(v) | 63) + 1
    if numbering.table.shape[0] or numbering.width > 1:
        return number + 1
    next_word = (np.int64(v) | 63) + 1
    return (next_word - numbering.addend + numbering.multiplier - 1) // numbering.multiplier


def renumber_all(numbering: Numbering, numbers: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return the new numbers of old ones.

    >>> renumber_all(by_rule(6, 3, 3), np.arange(5, dtype=np.uint32)).tolist()
    [3, 4, 5, 9, 10]
    """
    if len(numbering.table):
        return numbering.table[numbers]
    multiplier, addend = np.uint32(numbering.multiplier), np.uint32(numbering.addend)
    if numbering.width == 1:
        return numbers * multiplier + addend
    run, within = np.divmod(numbers, np.uint32(numbering.width))
    return run * multiplier + within * np.uint32(numbering.step) + addend
