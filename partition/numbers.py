"""Numbers that people write, in options, job files and the files of other programs.

Python refuses to turn more than 4,300 digits into an integer, with an error that does not say where
they stand, and it takes digits of any script. Here a number is ASCII, and a message shows what it
refuses in short.
"""

from __future__ import annotations

import re

from .errors import InputError

_INTEGER = re.compile(r"[+-]?[0-9]{1,300}", re.ASCII)
_SHOWN = 40


def shown(text: object) -> str:
    """A value as a message quotes it: cut where it is long.

    >>> shown("7" * 5000)
    "'77777777777777777777...' (5,000 characters)"
    """
    whole = str(text)
    if len(whole) <= _SHOWN:
        return repr(text)
    return f"'{whole[: _SHOWN // 2]}...' ({len(whole):,} characters)"


def parse_integer(text: str, least: int | None = None, most: int | None = None) -> int:
    """A whole number from ``least`` to ``most``; InputError says what it is instead."""
    number = int(text) if _INTEGER.fullmatch(text) else None
    if number is None:
        raise InputError(f"{shown(text)} is no whole number")
    if least is not None and number < least:
        raise InputError(f"{shown(text)} is less than {least:,}")
    if most is not None and number > most:
        raise InputError(f"{shown(text)} is more than {most:,}")
    return number
