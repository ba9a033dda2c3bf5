"""Searches for integers in a sorted array."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from delegraph.kernels.base.lookup import find, lookup_of

LEAST, MOST = -(2**63), 2**63 - 1


@given(
    st.lists(st.integers(LEAST, MOST), min_size=1, max_size=60, unique=True),
    st.lists(st.integers(LEAST, MOST), max_size=20),
)
def test_as_a_search_would(values, others):
    integers = np.sort(np.array(values, np.int64))
    wanted = np.array([*values, *others], np.int64)
    places, present = find(lookup_of(integers), wanted)
    assert present.tolist() == np.isin(wanted, integers).tolist()
    assert np.array_equal(integers[places[present]], wanted[present])


@pytest.mark.parametrize("step", [1, 3, 2**40])
def test_evenly_spread(step):
    values = np.arange(5000, dtype=np.int64) * step - 7
    places, present = find(lookup_of(values), values[::-1])
    assert present.all()
    assert np.array_equal(places, np.arange(5000)[::-1])
    assert not find(lookup_of(values), values + 1)[1][:-1].any() or step == 1


def test_clustered():
    """Values nearly all of which share one bucket of the lookup are found."""
    values = np.r_[np.arange(1000), MOST]
    places, present = find(lookup_of(values), np.r_[values, 1000, MOST - 1, -1])
    assert present.tolist() == [True] * 1001 + [False] * 3
    assert np.array_equal(places[:1001], np.arange(1001))


def test_unsigned_ones_by_their_bits():
    values = np.array([0, 5, 2**63, 2**64 - 1], np.uint64)
    wanted = np.array([2**64 - 1, 4, 2**63], np.uint64).view(np.int64)
    places, present = find(lookup_of(values.view(np.int64)), wanted)
    assert present.tolist() == [True, False, True]
    assert places[present].tolist() == [3, 2]
