"""Parameters whose tests are left for ``-m slow``, or for ``-m nightly``."""

from __future__ import annotations

from collections.abc import Iterable

import pytest


def slow(*values: object):
    """The parameters of one test that is slow."""
    return pytest.param(*values, marks=pytest.mark.slow)


def nightly(*values: object):
    """The parameters of one test that is too long for every change."""
    return pytest.param(*values, marks=pytest.mark.nightly)


def mostly_slow(every: Iterable, *others: object) -> list:
    """A parameter's values, of which all are slow but the others."""
    return [value if value in others else slow(value) for value in every]
