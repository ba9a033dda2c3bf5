"""Numbers that people write: in options, job files, Python and the files of other programs.

Python refuses to turn more than 4,300 digits into an integer, with an error that does not name
their place, and it accepts digits of any script, "nan" and "1e400". This module accepts only
numbers that are ASCII, finite, and within the range of their type, and its messages shorten what
they quote.
"""

from __future__ import annotations

import contextlib
import math
import re
import sys
from typing import Any

from .errors import InputError
from .secrets import without_secrets

GREATEST = 2**63 - 1
"""The greatest whole number that options accept by default."""

GREATEST_SEED = 2**64 - 1

MOST_SECONDS = 10**9
"""The greatest number of seconds that options accept: no clock of the system can wait longer."""

_INTEGER = re.compile(r"([+-]?)([0-9]+)")
_NUMBER = re.compile(r"[+-]?([0-9]+(?:\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[+-]?(nan|inf|infinity)", re.ASCII | re.IGNORECASE)
_MOST_DIGITS = 300
_SHOWN = 40
_LONGEST_NAME = 200


def shown(value: object) -> str:
    """Return a value as a message quotes it: on one line, and shortened if it is long.

    >>> shown("7" * 5000)
    "'77777777777777777777...' (5,000 characters)"
    """
    if isinstance(value, int) and value.bit_length() > 4 * _SHOWN:
        return f"a number of about {round(value.bit_length() * math.log10(2)):,} digits"
    try:
        whole = value if isinstance(value, str) else repr(value)
    except (ValueError, RecursionError):  # the value holds a huge number, or itself
        return f"a {type(value).__name__}"
    clean = without_secrets(whole)  # before it is cut: half of a secret is not recognized
    if len(whole) <= _SHOWN:
        return repr(value) if clean == whole else repr(clean)
    return f"{clean[: _SHOWN // 2] + '...'!r} ({len(whole):,} characters)"


def quoted(name: str) -> str:
    """Return a name as a message shows it: unchanged, unless it is long or would break the line."""
    return name if name.isprintable() and len(name) <= _LONGEST_NAME else shown(name)


def parse_integer(text: str, least: int | None = None, most: int | None = None) -> int:
    """Return the whole number from ``least`` to ``most`` that a text stands for. Raises InputError,
    which says what is wrong, for any other text.
    """
    found = _INTEGER.fullmatch(text)
    if found is None:
        raise InputError(f"{shown(text)} is not a whole number")
    sign, digits = found[1], found[2].lstrip("0") or "0"
    if len(digits) > _MOST_DIGITS and (least if sign == "-" else most) is None:
        raise InputError(f"{shown(text)} has too many digits")
    number = int(sign + digits[: _MOST_DIGITS + 1])  # enough digits to be outside the range
    if least is not None and number < least:
        raise InputError(f"{shown(text)} is less than {least:,}")
    if most is not None and number > most:
        raise InputError(f"{shown(text)} is more than {most:,}")
    return number


def parse_number(text: str) -> float:
    """Return the finite number that a text stands for as a 64-bit float. Raises InputError for any
    other text, for a number that would become infinite, and for one so close to zero that digits
    would be lost.

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
    """Raise InputError unless the value is None or a whole number from ``least`` to ``most``."""
    if value is None:
        return
    if type(value) is not int or value < least:
        raise InputError(f"{name} must be a whole number of at least {least}, not {shown(value)}")
    if value > most:
        raise InputError(f"{name} must be at most {most:,}, not {shown(value)}")


def check_number(name: str, value: Any, what: str = "a number") -> None:
    """Raise InputError unless the value is a finite number that a 64-bit float holds. what: the
    wanted value, for the message.
    """
    number = math.nan
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        with contextlib.suppress(OverflowError):
            number = float(value)
    if not math.isfinite(number):
        raise InputError(f"{name} must be {what}, not {shown(value)}")
    if _is_too_near_to_zero(number):
        fault = f"{name} must be {what}, not {shown(value)}"
        raise InputError(f"{fault}: it is too close to zero for a 64-bit float")


def _is_too_near_to_zero(number: float) -> bool:
    return 0 < abs(number) < sys.float_info.min
