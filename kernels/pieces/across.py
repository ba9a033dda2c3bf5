"""Gather by both ends: an edge gives its vertex a value that depends on the values of both ends and
on its weight.

A vertex may take no part, by its own value (``takes_part``): nothing is combined into its entry,
and its row is passed over. Rows may be cut by pieces, and targets stand in any row, so values are
merged as other threads do it, too: operators are such that the order does not count.
"""

import numpy as np

from ..base.compiled import kernel, u64s
from ..base.numbering import NUMBERING, renumber
from .operators import (
    LISTED_WITHIN,
    WEIGHTED_WITHIN,
    WITHIN,
    across,
    combine,
    merge,
    takes_part,
)
from .piece import PIECE, WIDE_PIECE, row_of


@kernel(WITHIN, PIECE, NUMBERING, u64s, NUMBERING, u64s, u64s)
@kernel(WEIGHTED_WITHIN, PIECE, NUMBERING, u64s, NUMBERING, u64s, u64s)
@kernel(LISTED_WITHIN, WIDE_PIECE, NUMBERING, u64s, NUMBERING, u64s, u64s)
def gather_across(operator, piece, row_places, x_rows, target_places, x_targets, y):
    """Combine ``y[row]`` with what each edge at hand gives to its row, on several pieces at once.

    x_rows, x_targets: values by place of the rows and of the targets. y: by place of the rows.
    """
    offsets, targets, begin, end, weights = piece
    row = row_of(offsets, begin)
    edge = begin
    while edge < end:
        upto = min(np.int64(offsets[row + 1]), end)
        place = renumber(row_places, row)
        here = x_rows[place]
        if takes_part(operator, here):
            value = operator.unit
            for e in range(np.uintp(edge - begin), np.uintp(upto - begin)):
                there = x_targets[renumber(target_places, targets[e])]
                value = combine(operator, value, across(operator, here, there, weights, e))
            merge(operator, y, np.intp(place), value)
        edge = upto
        row += 1


@kernel(WITHIN, PIECE, NUMBERING, u64s, NUMBERING, u64s, u64s)
@kernel(WEIGHTED_WITHIN, PIECE, NUMBERING, u64s, NUMBERING, u64s, u64s)
def scatter_across(operator, piece, row_places, x_rows, target_places, x_targets, y):
    """Combine ``y[target]`` with what each edge at hand gives to its target: ``gather_across`` the
    other way. y: by place of the targets.
    """
    offsets, targets, begin, end, weights = piece
    row = row_of(offsets, begin)
    edge = begin
    while edge < end:
        upto = min(np.int64(offsets[row + 1]), end)
        there = x_rows[renumber(row_places, row)]
        for e in range(np.uintp(edge - begin), np.uintp(upto - begin)):
            place = renumber(target_places, targets[e])
            here = x_targets[place]
            if takes_part(operator, here):
                value = across(operator, here, there, weights, e)
                merge(operator, y, np.intp(place), value)
        edge = upto
        row += 1
