"""Parameters whose tests are left for ``-m slow``, or for ``-m nightly``."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from itertools import combinations, product

import pytest


def slow(*values: object):
    """Return the parameters of one test, marked slow."""
    return pytest.param(*values, marks=pytest.mark.slow)


def nightly(*values: object):
    """Return the parameters of one test, marked as too long for every change."""
    return pytest.param(*values, marks=pytest.mark.nightly)


def mostly_slow(every: Iterable, *others: object) -> list:
    """Return a parameter's values, all marked slow except ``others``."""
    return [value if value in others else slow(value) for value in every]


def mostly_nightly(every: Iterable, *others: object) -> list:
    """Return a parameter's values, all marked as too long for every change except ``others``."""
    return [value if value in others else nightly(value) for value in every]


def partly_nightly(every: Iterable, *rarely: object) -> list:
    """Return a parameter's values, all marked slow, and ``rarely`` marked as too long for every
    change. Tuples are the values of several parameters.
    """
    return [
        (nightly if values in rarely else slow)(
            *(values if isinstance(values, tuple) else [values])
        )
        for values in every
    ]


def drawn(count: int, *every: Iterable, usual: Callable[..., bool] = lambda *values: False) -> list:
    """Return the combinations of the values of several parameters: ``count`` of them are marked
    slow, and all others as too long for every change.

    They are drawn by a fixed seed. Each one has as many pairs of values as can be that no
    combination before it has, so that few combinations have all pairs. usual: whether a combination
    has no mark.
    """
    combined = list(product(*every))
    often = [values for values in combined if usual(*values)]
    left = [values for values in combined if not usual(*values)]
    seen = {pair for values in often for pair in _pairs(values)}
    rng, chosen = random.Random(1), []
    while left and len(chosen) < count:
        rng.shuffle(left)
        chosen.append(max(left, key=lambda values: len(_pairs(values) - seen)))
        left.remove(chosen[-1])
        seen |= _pairs(chosen[-1])
    return [
        pytest.param(*values)
        if values in often
        else slow(*values)
        if values in chosen
        else nightly(*values)
        for values in combined
    ]


def _pairs(values: tuple) -> set[tuple]:
    """Return the pairs of values, each value with its place."""
    return set(combinations(enumerate(values), 2))
