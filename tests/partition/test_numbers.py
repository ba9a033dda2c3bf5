"""Numbers that people write: of any length, in any script, finite or not."""

from __future__ import annotations

import sys

import pytest

from delegraph.partition.disk.memory import as_bytes, parse_bytes
from delegraph.partition.errors import InputError
from delegraph.partition.numbers import (
    check_number,
    check_whole,
    parse_integer,
    parse_number,
    shown,
)

LONG = "9" * 5000


@pytest.mark.parametrize(
    ("text", "limits", "reason"),
    [
        (LONG, (1, 9), "is more than 9"),
        (f"-{LONG}", (1, 9), "is less than 1"),
        (LONG, (), "has too many digits"),
        ("10", (1, 9), "'10' is more than 9"),
        ("٣", (), "is not a whole number"),
        ("1_000", (), "is not a whole number"),
        ("1.0", (), "is not a whole number"),
        ("", (), "is not a whole number"),
        ("9" * 200_000 + "x", (), "is not a whole number"),
    ],
    ids=lambda value: shown(value)[:30],
)
def test_what_is_no_integer(text, limits, reason):
    with pytest.raises(InputError, match=reason) as raised:
        parse_integer(text, *limits)
    assert len(str(raised.value)) < 100


def test_integers():
    assert parse_integer("+0042", 0, 42) == 42
    assert parse_integer("0" * 5000 + "7") == 7
    assert parse_integer("-9223372036854775808") == -(2**63)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("nan", "is not a finite number"),
        ("-inf", "is not a finite number"),
        ("1e400", "is too large for a 64-bit float"),
        (LONG, "is too large for a 64-bit float"),
        ("1e-320", "is too close to zero"),
        ("1e-400", "is too close to zero"),
        ("-0.0000001e-310", "is too close to zero"),
        ("1e" + LONG, "is too large for a 64-bit float"),
        ("0x10", "is not a number"),
        ("1,5", "is not a number"),
        ("٣.5", "is not a number"),
        ("1_0.0", "is not a number"),
        ("9" * 200_000 + "x", "is not a number"),
    ],
    ids=lambda value: shown(value)[:30],
)
def test_what_is_no_number(text, reason):
    with pytest.raises(InputError, match=reason) as raised:
        parse_number(text)
    assert len(str(raised.value)) < 100


def test_numbers():
    assert [parse_number(text) for text in ("0", "-0e9", ".5", "5.", "+1E-3")] == [
        0.0,
        0.0,
        0.5,
        5.0,
        0.001,
    ]
    assert parse_number(repr(sys.float_info.min)) == sys.float_info.min


@pytest.mark.parametrize("text", ["9" * 400, "0", "0.4", "1e3", "٣GB", "nan", "9" * 5000, "1 I B"])
def test_what_is_no_size(text):
    with pytest.raises(InputError, match="is not a size"):
        parse_bytes(text)


def test_sizes_of_python():
    assert as_bytes(4e9) == 4_000_000_000
    assert as_bytes(None) is None
    for wrong in (0, -1, 1.5, float("nan"), float("inf"), 10**5000, True, [1]):
        with pytest.raises(InputError, match="memory_limit must be"):
            as_bytes(wrong, "memory_limit")  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("value", [10**5000, 1.0, "1", True, [10**5000], 2**63, -1], ids=type)
def test_whole_numbers_of_python(value):
    with pytest.raises(InputError, match="some must be"):
        check_whole("some", value)


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), 10**5000, 1e-320, "1", True, [10**5000]], ids=shown
)
def test_numbers_of_python(value):
    with pytest.raises(InputError, match="some must be a number"):
        check_number("some", value)


def test_shown_in_one_line():
    itself: list = []
    itself.append(itself)
    for value in ("a\nb" * 99, "\x1b[31m" * 99, 10**5000, -(10**5000), [10**5000], itself):
        text = shown(value)
        assert len(text) < 100
        assert text.isprintable()
    assert shown(10**5000) == "a number of about 5,000 digits"
