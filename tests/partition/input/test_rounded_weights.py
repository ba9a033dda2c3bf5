"""Weights rounded to 32 bits: rounded ones are counted, and one that would be lost is refused."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from delegraph.partition.errors import InputError
from delegraph.partition.input.weights import Rounding, bits_of, total_rounding

LEAST = 2.0**-149  # that 32 bits hold
MOST = float(np.finfo(np.float32).max)


def weights_of(column: pa.Array, rounding: Rounding | None = None) -> list[float]:
    return bits_of(column, "float32", "edges: column 'w'", rounding).view(np.float32).tolist()


def test_what_32_bits_change_is_counted():
    weights = [16777217.0, 0.1 + 0.2, 0.5, 0.0, -0.0, 3 * LEAST, 16777216.0, 1.5 * LEAST]
    rounding = Rounding()
    assert weights_of(pa.array(weights), rounding) == [float(np.float32(w)) for w in weights]
    assert rounding.rounded == 3
    assert rounding.greatest_change == pytest.approx(1 / 3)  # of the last one
    rounding = Rounding()
    weights_of(pa.array(weights[:7]), rounding)
    wanted = max(1 / 16777217, abs(float(np.float32(0.1 + 0.2)) - (0.1 + 0.2)) / (0.1 + 0.2))
    assert (rounding.rounded, rounding.greatest_change) == (2, wanted)


@pytest.mark.parametrize("kind", [pa.float32(), pa.float16()])
def test_narrow_floats_are_as_they_are(kind):
    rounding = Rounding()
    column = pa.array(np.array([0.1, 0.2, 7.0], kind.to_pandas_dtype()))
    assert weights_of(column, rounding) == column.cast(pa.float64()).to_pylist()
    assert rounding == Rounding()


@pytest.mark.parametrize(("kind", "large"), [(pa.int64(), 2**53 + 1), (pa.uint64(), 2**64 - 1)])
def test_integers_beside_floats_of_other_files_are_counted(kind, large):
    rounding = Rounding()
    assert weights_of(pa.array([16777217, 2**24, large, 0], kind), rounding)[0] == 16777216
    assert rounding.rounded == 2


def test_encoded_weights_are_counted_by_row():
    rounding = Rounding()
    weights_of(pa.array([0.1, 0.5, 0.1]).dictionary_encode(), rounding)
    assert rounding.rounded == 2


def test_counts_of_parts_add_up_in_any_order():
    weights = np.random.default_rng(5).random(1000)
    whole = Rounding()
    weights_of(pa.array(weights), whole)
    parts = []
    for share in np.split(weights, [17, 400, 401]):
        part = Rounding()
        weights_of(pa.array(share), part)
        parts.append(part.as_tuple())
    assert total_rounding(parts) == total_rounding(parts[::-1]) == whole
    assert 0 < whole.rounded <= 1000


@pytest.mark.parametrize(
    ("weight", "became"),
    [
        (1e-46, "0"),
        (LEAST / 2, "0"),
        (5e-324, "0"),
        (1e39, "infinite"),
        (MOST * (1 + 2.0**-24), "infinite"),
        (1.7e308, "infinite"),
    ],
)
def test_what_32_bits_would_lose_is_refused_with_what_helps(weight, became):
    column = pa.array([1.0, weight, 0.0])
    with pytest.raises(InputError) as error:
        weights_of(column)
    text = str(error.value)
    assert text.startswith(f"edges: column 'w': the weight {weight!r} would become {became} in 32 ")
    assert "\n" not in text
    scale = float(text.split("by ")[1].split(" ")[0])
    (scaled,) = weights_of(pa.array([weight * scale]))
    assert scaled == pytest.approx(weight * scale, rel=1e-6)
    assert scaled > 0


@pytest.mark.parametrize("weight", [float("nan"), float("inf"), -float("inf"), -1.0, -1e-50])
def test_what_is_no_weight_is_refused_as_such(weight):
    with pytest.raises(InputError, match=r"weights must be numbers from 0 to 3\.4e\+38, not "):
        weights_of(pa.array([0.1, weight]))


def test_the_ends_of_what_32_bits_hold_are_kept():
    weights = [LEAST, 2.0**-127, MOST, MOST * (1 + 2.0**-26)]
    assert weights_of(pa.array(weights)) == [LEAST, 2.0**-127, MOST, MOST]
