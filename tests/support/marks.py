"""Parameters whose tests are left for ``-m slow``, or for ``-m nightly``."""

from __future__ import annotations

from collections.abc import Iterable

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
