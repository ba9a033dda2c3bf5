"""A row with weights and too many edges to be sorted at once, built in parts of its targets.

Its keys are fetched from the runs once for each part, and once more to choose the cuts. If a single
target has more keys than fit, because rows of the input repeat the edge, its weights are combined
as they are fetched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from ...kernels.base.sort import radix_sort_with
from ...kernels.prepare.weights import (
    EXPONENTS,
    Combining,
    add_weights,
    combined,
    rows_from_sorted_with,
)
from ..errors import InputError
from .runs import Slice

CELLS = 1 << 16

Fetch = Callable[[], Iterator[Slice]]
"""Function that yields the keys of the row, which is alone in its bucket."""

Edges = tuple[NDArray[np.uint32], NDArray[np.uint32]]
"""Positions of targets, rising, and the bits of their weights."""


def built(fetch: Fetch, vertices: int, combining: Combining, most: int) -> Iterator[Edges]:
    """Yield the row's edges, each once, in parts. most: keys that are held at once."""
    for low, high, keys in _parts(fetch, 0, vertices, most):
        if keys > most:
            yield _one(fetch, low, combining)
        else:
            yield _some(fetch, low, high, keys, combining)


def _parts(fetch: Fetch, low: int, high: int, most: int) -> Iterator[tuple[int, int, int]]:
    """Yield parts of the targets ``low <= position < high``, each with its number of keys: at most
    ``most`` keys, or one target.
    """
    width = -(-(high - low) // CELLS)
    counts = np.zeros(-(-(high - low) // width), np.int64)
    for part in fetch():
        targets = part.targets[(part.targets >= low) & (part.targets < high)]
        counts += np.bincount((targets - np.uint32(low)) // width, minlength=len(counts))
    first = held = 0
    for cell, keys in enumerate(counts.tolist()):
        if held and held + keys > most:
            yield low + first * width, low + cell * width, held
            first, held = cell, 0
        if keys <= most:
            held += keys
            continue
        begin = low + cell * width
        end = min(begin + width, high)
        yield from [(begin, end, keys)] if width == 1 else _parts(fetch, begin, end, most)
        first, held = cell + 1, 0
    if held:
        yield low + first * width, high, held


def _some(fetch: Fetch, low: int, high: int, count: int, combining: Combining) -> Edges:
    keys, weights = np.empty(count, np.uint64), np.empty(count, np.uint32)
    at = 0
    for part in fetch():
        here = (part.targets >= low) & (part.targets < high)
        end = at + int(np.count_nonzero(here))
        keys[at:end], weights[at:end] = part.targets[here], part.weights[here]
        at = end
    bits = (high - 1).bit_length()
    spare = np.empty_like(keys), np.empty_like(weights)
    keys, weights = radix_sort_with(keys, weights, *spare, bits, 0)
    return without_duplicates(keys, weights, combining)


def without_duplicates(
    keys: NDArray[np.uint64],
    weights: NDArray[np.uint32],
    combining: Combining,
    rows: NDArray[np.uint32] | None = None,
) -> Edges:
    """Combine the weights of equal keys in sorted keys. rows: receives the number of targets of
    each row.

    Raises InputError if a sum is too large.
    """
    counts = np.zeros(1, np.uint32) if rows is None else rows
    positions = np.empty(len(keys), np.uint32)
    left = rows_from_sorted_with(keys, weights, combining, counts, positions)
    _check(left)
    return positions[:left], weights[:left]


def _one(fetch: Fetch, position: int, combining: Combining) -> Edges:
    state, first = np.zeros(EXPONENTS, np.int64), True
    for part in fetch():
        weights = part.weights[part.targets == position]
        if len(weights):
            add_weights(combining, weights, first, state)
            first = False
    bits = combined(combining, state)
    _check(bits)
    return np.array([position], np.uint32), np.array([bits], np.uint32)


def _check(found: int) -> None:
    if found < 0:
        raise too_large_a_sum()


def too_large_a_sum() -> InputError:
    return InputError(
        "the weights of rows that name the same edge add up to more than 32 bits can hold: scale "
        "the weights, or keep the least with --duplicates min"
    )
