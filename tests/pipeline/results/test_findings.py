"""Findings against their definitions: the top by sorting, distributions by counting."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from delegraph.partition.errors import InputError
from delegraph.pipeline.results.findings import (
    SIZE,
    Findings,
    GroupSizes,
    Integers,
    Octaves,
    Steps,
    TopRows,
)
from delegraph.pipeline.summary import join_ranges

INTEGERS = st.lists(st.integers(0, 12) | st.integers(0, 2**53), max_size=60)
FLOATS = st.lists(
    st.sampled_from([0.0, 5e-324, 1e-300, 0.25, 1.0, 1e300])
    | st.floats(0, 1e12, allow_subnormal=False),
    max_size=60,
)


def cut(values: list, cuts: list[int]) -> list[np.ndarray]:
    dtype = np.int64 if all(isinstance(value, int) for value in values) else np.float64
    return np.split(np.array(values, dtype), sorted(c % (len(values) + 1) for c in cuts))


@given(INTEGERS | FLOATS, st.lists(st.integers(0, 60), max_size=4), st.integers(0, 9))
def test_top_rows(values, cuts, count):
    """The greatest values, of equal ones those that come first, however rows are cut."""
    wanted = sorted(enumerate(values), key=lambda pair: (-pair[1], pair[0]))[:count]
    first, parts = 0, []
    for some in cut(values, cuts):
        part = TopRows(count)
        for half in np.array_split(some, 2):
            part.add(half, pa.array(range(first, first + len(half))))
            first += len(half)
        parts.append(part)
    whole = TopRows(count)
    for part in parts:
        whole.merge(part)
    assert whole.pairs() == wanted


def test_rows_without_a_value_are_not_at_the_top():
    top = TopRows(5)
    top.add(np.array([-1, 3, -1, 0]), pa.array(["a", "b", "c", "d"]))
    assert top.pairs() == [("b", 3), ("d", 0)]


@pytest.mark.parametrize("counter", [Integers, Steps, Octaves])
@given(values=st.lists(st.integers(0, 5000), max_size=60), cuts=st.lists(st.integers(0, 60)))
def test_distributions_of_integers(counter, values, cuts):
    check_distribution(counter, values, cuts)


@pytest.mark.parametrize("counter", [Steps, Octaves])
@given(values=INTEGERS | FLOATS, cuts=st.lists(st.integers(0, 60), max_size=4))
def test_distributions(counter, values, cuts):
    check_distribution(counter, values, cuts)


def check_distribution(counter, values, cuts):
    """Every value is in one range, ranges rise, and neither cuts nor order change them."""
    values = [value if value >= 2.0**-1000 else 0 * value for value in values]
    made, whole, back = counter(), counter(), counter()
    for some in cut(values, cuts):
        made.add(some)
    whole.add(cut(values, [])[0])
    back.add(cut(values[::-1], [])[0])
    ranges = made.ranges()
    integers = all(isinstance(value, int) for value in values)
    if not any(len(some) == 0 for some in cut(values, cuts)):  # an empty part has no type
        assert ranges == whole.ranges() == back.ranges()
    for low, high, count in ranges:
        inside = [low <= v <= high if integers or low == high else low <= v < high for v in values]
        assert sum(inside) == count > 0
    assert sum(count for _, _, count in ranges) == len(values)
    assert all(one[1] <= other[0] for one, other in pairwise(ranges))
    for most in (1, 3, 24):
        joined = join_ranges(ranges, most, equal=counter is not Octaves)
        assert sum(count for _, _, count in joined) == len(values)
        assert len(joined) <= most + 2  # 0, and what is less than 1, stay apart
        assert all(one[1] <= other[0] for one, other in pairwise(joined))


@pytest.mark.parametrize("wrong", [-0.5, np.nan, np.inf, 1.7e308])
def test_values_that_no_question_gives_are_refused(wrong):
    batch = pa.record_batch({"vertex": [1, 2], "pagerank": [0.5, wrong]})
    with pytest.raises(InputError, match="is negative, not finite or too large"):
        Findings("pagerank").add(batch)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_zeros_of_single_precision(dtype):
    findings = Findings("pagerank", distributes=True)
    values = pa.array(np.array([0, 0.125, 0], dtype))
    findings.add(pa.record_batch({"vertex": [1, 2, 3], "pagerank": values}))
    assert findings.facts()["distribution"] == [[0, 0, 2], [0.125, 0.125, 1]]


def test_very_many_distances_are_counted_in_ranges():
    counter = Integers()
    counter.add(np.arange(100_000))
    ranges = counter.ranges()
    assert len(ranges) <= 4096
    assert ranges[0] == (0, 31, 32)
    assert sum(count for _, _, count in ranges) == 100_000


@given(st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=30), max_size=6))
def test_group_sizes(parts):
    sizes = GroupSizes(pa.string())
    for part in parts:
        sizes.add(pa.array([*part, None], pa.string()))
    every = [name for part in parts for name in part]
    schema = pa.schema([("vertex", pa.string()), (SIZE, pa.int64())])
    found = pa.Table.from_batches(sizes.batches(), schema).to_pydict()
    assert found["vertex"] == sorted({*every})
    assert found[SIZE] == [every.count(name) for name in found["vertex"]]
