"""Numbers for people, with separated thousands and units; and lookup of numbers in JSON documents,
which may lack them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

UNKNOWN = "not known"
_MOST = 1e300


def at(document: Any, *keys: str) -> Any:
    """Return the value under nested keys; None where there is none."""
    for key in keys:
        document = document.get(key) if isinstance(document, dict) else None
    return document


def number(document: Any, *keys: str) -> float | None:
    """Return a number that can be drawn; None for any other value."""
    value = at(document, *keys)
    fits = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _MOST
    return value if fits else None


def entries(document: Any, *keys: str) -> list[dict[str, Any]]:
    """Return the objects of a list."""
    value = at(document, *keys)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def numbers(document: Any, *keys: str) -> dict[str, float]:
    """Return the numbers of an object, by name."""
    value = at(document, *keys)
    found = ((key, number(value, key)) for key in (value if isinstance(value, dict) else ()))
    return {key: amount for key, amount in found if amount is not None}


def text(value: Any) -> str:
    """Return the text of a fact of any type.

    >>> text(1234567), text(True), text(None), text(0.85), text([1, "a"])
    ('1,234,567', 'yes', 'none', '0.85', '1, a')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return figure(value)
    if isinstance(value, list | tuple):
        return ", ".join(str(item) for item in value)
    if isinstance(value, dict):
        return ", ".join(f"{key} {text(fact)}" for key, fact in value.items())
    return "none" if value is None else str(value)


def figure(value: float | None) -> str:
    """Return the text of a number: a count in full, a fraction to four digits.

    >>> figure(1234567), figure(1234.5), figure(0.123456), figure(None)
    ('1,234,567', '1,234', '0.1235', 'not known')
    """
    if value is None:
        return UNKNOWN
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e15 else _powers(f"{value:.4g}")


def _powers(written: str) -> str:
    """Write the exponent of a number in text as a power of ten.

    >>> _powers("8.183e-09"), _powers("1e-05"), _powers("0.25")
    ('8.183·10⁻⁹', '10⁻⁵', '0.25')
    """
    digits, e, power = written.partition("e")
    if not e:
        return written
    raised = f"10{str(int(power)).translate(_RAISED)}"
    return raised if digits == "1" else f"{digits}·{raised}"


_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def size(value: float | None) -> str:
    """Return the text of a number of bytes, to three digits.

    >>> size(12), size(2_110_000), size(25_281_000_000), size(3.2e15)
    ('12 B', '2.11 MB', '25.3 GB', '3,200 TB')
    """
    if value is None:
        return UNKNOWN
    for unit, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if value >= unit:
            return f"{_three(value / unit)} {name}"
    return f"{figure(value)} B"


def _three(value: float) -> str:
    """Return the digits of a number that is at least 1."""
    return f"{value:,.{0 if value >= 100 else 1 if value >= 10 else 2}f}"


def share(part: float, whole: float) -> str:
    """Return a share as a percentage in text.

    >>> share(1, 8), share(1, 3000), share(1, 10**9), share(0, 0)
    ('12.5%', '0.03%', 'less than 0.01%', '0%')
    >>> share(9999, 10_000), share(1, 1)
    ('99.99%', '100%')
    """
    ratio = part / whole if whole else 0
    if 0 < ratio < 0.0001:
        return "less than 0.01%"
    if 0.9999 < ratio < 1:
        return "more than 99.99%"
    if ratio in (0, 1):
        return f"{ratio:.0%}"
    digits = 1 if 0.01 <= ratio <= 0.999 or ratio > 1 else 2
    return f"{ratio:.{digits}%}"


def duration(seconds: float | None) -> str:
    """Return a duration as text.

    >>> duration(0.0000123), duration(0.25), duration(1.5), duration(75), duration(3725)
    ('12.3 µs', '250 ms', '1.50 s', '1 min 15 s', '1 h 02 min')
    """
    if seconds is None:
        return UNKNOWN
    if seconds >= 3600:
        return f"{int(seconds) // 3600:,} h {int(seconds) % 3600 // 60:02} min"
    if seconds >= 60:
        return f"{int(seconds) // 60} min {int(seconds) % 60:02} s"
    unit = time_unit(seconds)
    return f"{_three(seconds / unit.scale)} {unit.name}" if seconds else "0 s"


class Unit(NamedTuple):
    """Unit of an axis. scale: divides the axis' numbers."""

    scale: float
    name: str


def time_unit(most: float) -> Unit:
    """Return the unit in which times up to ``most`` seconds are short numbers."""
    return Unit(1, "s") if most >= 1 else Unit(1e-3, "ms") if most >= 1e-3 else Unit(1e-6, "µs")


def compact(value: float) -> str:
    """Return the text of a number at an axis, where there is little room.

    >>> compact(0), compact(2500), compact(1e6), compact(0.001), compact(1e-5)
    ('0', '2.5 k', '1 M', '0.001', '10⁻⁵')
    """
    for name, scale in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(value) >= scale:
            return f"{value / scale:g} {name}"
    return _powers(f"{value:g}")
