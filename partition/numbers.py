"""Numbers that people write, in options, job files, Python and the files of other programs.

Python refuses to turn more than 4,300 digits into an integer, with an error that does not say where
they stand, and it takes digits of any script, "nan" and "1e400". Here a number is ASCII, finite and
no longer than its type, and a message shows what it refuses in short.
"""

from __future__ import annotations

import math
import re
import sys
from typing import Any

from .errors import InputError
from .secrets import without_secrets

GREATEST = 2**63 - 1
"""The greatest whole number that options take, unless they say otherwise."""

GREATEST_SEED = 2**64 - 1

MOST_SECONDS = 10**9
"""More is taken by no clock of the system that waits."""

_INTEGER = re.compile(r"([+-]?)([0-9]+)")
_NUMBER = re.compile(r"[+-]?([0-9]+(?:\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[+-]?(nan|inf|infinity)", re.ASCII | re.IGNORECASE)
_MOST_DIGITS = 300
_SHOWN = 40
_LONGEST_NAME = 200


def shown(value: object) -> str:
    """A value as a message quotes it: in one line, and cut where it is long.

    >>> shown("7" * 5000)
    "'77777777777777777777...' (5,000 characters)"
    """
    if isinstance(value, int) and value.bit_length() > 4 * _SHOWN:
        return f"a number of about {round(value.bit_length() * math.log10(2)):,} digits"
    try:
        whole = value if isinstance(value, str) else repr(value)
    except (ValueError, RecursionError):  # it holds such a number, or itself
        return f"a {type(value).__name__}"
    clean = without_secrets(whole)  # before it is cut: half of a secret looks like none
    if len(whole) <= _SHOWN:
        return repr(value) if clean == whole else repr(clean)
    return f"{clean[: _SHOWN // 2] + '...'!r} ({len(whole):,} characters)"


def quoted(name: str) -> str:
    """A name as a message has it: as it is, unless it is long or would break the line."""
    return name if name.isprintable() and len(name) <= _LONGEST_NAME else shown(name)


def parse_integer(text: str, least: int | None = None, most: int | None = None) -> int:
    """A whole number from ``least`` to ``most``; InputError says what it is instead."""
    found = _INTEGER.fullmatch(text)
    if found is None:
        raise InputError(f"{shown(text)} is not a whole number")
    sign, digits = found[1], found[2].lstrip("0") or "0"
    if len(digits) > _MOST_DIGITS and (least if sign == "-" else most) is None:
        raise InputError(f"{shown(text)} has too many digits")
    number = int(sign + digits[: _MOST_DIGITS + 1])  # as far outside as all of them are
    if least is not None and number < least:
        raise InputError(f"{shown(text)} is less than {least:,}")
    if most is not None and number > most:
        raise InputError(f"{shown(text)} is more than {most:,}")
    return number


def parse_number(text: str) -> float:
    """A finite number as a float of 64 bits. InputError: it is none, or such a float is infinite,
    or has not all its digits, as those that are too near to zero have not.

    >>> parse_number("1.5e3")
    1500.0
    """
    found = _NUMBER.fullmatch(text)
    if found is None:
        kind = "not a finite number" if _NOT_FINITE.fullmatch(text) else "not a number"
        raise InputError(f"{shown(text)} is {kind}")
    number = float(text)
    if math.isinf(number):
        raise InputError(f"{shown(text)} is too large for a 64-bit float")
    if _is_too_near_to_zero(number) or (number == 0 and found[1].strip("0.")):
        raise InputError(f"{shown(text)} is too close to zero for a 64-bit float")
    return number


def check_whole(name: str, value: Any, least: int = 0, most: int = GREATEST) -> None:
    """InputError for what is no whole number from ``least`` to ``most``; None is none."""
    if value is None:
        return
    if type(value) is not int or value < least:
        raise InputError(f"{name} must be a whole number of at least {least}, not {shown(value)}")
    if value > most:
        raise InputError(f"{name} must be at most {most:,}, not {shown(value)}")


def check_number(name: str, value: Any, what: str = "a number") -> None:
    """InputError for what is no finite number that a float of 64 bits holds. what: is wanted."""
    fault = f"{name} must be {what}, not {shown(value)}"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InputError(fault)
    try:
        number = float(value)
    except OverflowError:
        raise InputError(fault) from None
    if not math.isfinite(number):
        raise InputError(fault)
    if _is_too_near_to_zero(number):
        raise InputError(f"{fault}: it is too close to zero for a 64-bit float")


def _is_too_near_to_zero(number: float) -> bool:
    return 0 < abs(number) < sys.float_info.min
