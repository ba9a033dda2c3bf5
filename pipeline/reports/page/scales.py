"""Scales of axes: from a value to its place between 0 and 1, with ticks at round numbers; and round
times of day.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain, takewhile
from math import ceil, floor, log10

_MOST_TICKS = 5
_LEAST = 1e-300  # what is less counts as nothing
_DAY = 86400
_CLOCK = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200)
"""Seconds, round by a clock."""


@dataclass(frozen=True)
class Scale:
    """A scale of an axis. low, high: values at both ends. log: whether equal distances are equal
    ratios rather than differences.
    """

    low: float
    high: float
    ticks: tuple[float, ...]
    log: bool = False

    def place(self, value: float) -> float:
        """Return the place of a value on the scale, from 0 to 1."""
        low, high = self.low, self.high
        if self.log:
            low, high, value = log10(low), log10(high), log10(max(value, self.low))
        return min(1.0, max(0.0, (value - low) / (high - low)))


def linear(most: float, whole: bool = False) -> Scale:
    """Return a scale from 0 to a round number that is not less than ``most``. whole: whether values
    are counts.

    >>> linear(17).ticks, linear(0.3).high, linear(2, whole=True).ticks
    ((0.0, 5.0, 10.0, 15.0, 20.0), 0.3, (0.0, 1.0, 2.0))
    """
    if most < _LEAST:
        return Scale(0, 1, (0.0, 1.0))
    tenth = 10.0 ** floor(log10(most / _MOST_TICKS))
    steps = (tenth * factor for factor in (1, 2, 2.5, 5, 10, 20, 50, 100))
    step = next(
        step
        for step in steps
        if (step == int(step) or not whole) and ceil(round(most / step, 9)) <= _MOST_TICKS
    )
    count = ceil(round(most / step, 9))
    ticks = tuple(round(i * step, 12) if step > 1e-9 else i * step for i in range(count + 1))
    return Scale(0, ticks[-1], ticks)


def logarithmic(least: float, most: float) -> Scale:
    """Return a scale by powers of ten, or between few of them by 1, 2, 5. It begins below the least
    value, which is then visible above the axis.

    >>> logarithmic(1, 2500).ticks, logarithmic(3, 19).ticks
    ((1.0, 10.0, 100.0, 1000.0, 10000.0), (2.0, 5.0, 10.0, 20.0))
    """
    low, high = floor(log10(least)), ceil(log10(most))
    if high - low > 2:
        apart = ceil((high - low + 1) / (_MOST_TICKS + 1))
        ticks = [10.0**power for power in range(low, high + 1, apart)]
    else:
        candidates = [
            factor * 10.0**power for power in range(low, high + 1) for factor in (1, 2, 5)
        ]
        first = max(tick for tick in candidates if tick <= least * 1.000001)
        last = min(tick for tick in candidates if tick >= most * 0.999999 and tick > first)
        ticks = [tick for tick in candidates if first <= tick <= last]
    return Scale(ticks[0] * 10**-0.2, max(ticks[-1], 1.0 * most), tuple(ticks), log=True)


def integers(first: int, last: int, most: int = 6) -> list[int]:
    """Return at most ``most`` round numbers from ``first`` to ``last``, both included.

    >>> integers(1, 5), integers(1, 100), integers(0, 4000)
    ([1, 2, 3, 4, 5], [1, 20, 40, 60, 80, 100], [0, 1000, 2000, 3000, 4000])
    """
    if last - first < most:
        return list(range(first, last + 1))
    powers = (factor * 10**power for power in range(20) for factor in (1, 2, 5))
    step = next(step for step in powers if (last - first) / step <= most - 1)
    start = (first // step + 1) * step
    round_ones = takewhile(lambda value: value <= last - step // 2, range(start, last, step))
    inner = [value for value in round_ones if value - first >= step // 2]
    return [first, *inner, last]


def moments(first: int, last: int) -> list[tuple[int, str]]:
    """Return at most five round times from ``first`` to ``last``, in seconds since 1970, and their
    text as clocks show it; midnight has its date. All times are in UTC.

    >>> moments(5, 10)
    [(6, '00:00:06'), (8, '00:00:08'), (10, '00:00:10')]
    >>> moments(80_000, 90_000)
    [(82800, '23:00'), (86400, '01-02'), (90000, '01:00')]
    """
    days = (_DAY * factor * 10**power for power in range(20) for factor in (1, 2, 5))
    step = next(step for step in chain(_CLOCK, days) if last - first <= (_MOST_TICKS - 1) * step)
    return [(at, _called(at, step)) for at in range(-(-first // step) * step, last + 1, step)]


def _called(at: int, step: int) -> str:
    moment = datetime.fromtimestamp(at, UTC)
    if at % _DAY == 0:
        return f"{moment:%m-%d}"
    return f"{moment:%H:%M}" if step >= 60 else f"{moment:%H:%M:%S}"
