"""Sections about what a result says of the graph: how its numbers are distributed, and the vertices
or groups at the top by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise, zip_longest
from typing import Any
from xml.etree.ElementTree import Element

from ...questions.facts import plural
from ...results.findings import Range, has_equal_ranges
from ...summary import distribution_head, finding_of, join_ranges, shortened
from ..numbers import compact, figure
from .charts import MOST_COLUMNS, Column, Frame, Point, Tick, chart, columns, dots, joined
from .markup import tag
from .page import Section
from .scales import linear, logarithmic
from .tables import Bar, bars, table

_MOST_POINTS = 60
_LEAST_POINTS = 3


def distribution(form: str, found: dict[str, Any]) -> Section | None:
    """Return the section on how numbers are distributed; None if they are all alike.

    Numbers that spread over powers of ten are drawn as a survival curve on logarithmic axes, others
    as a histogram.
    """
    ranges: list[Range] = [(low, high, count) for low, high, count in found["distribution"]]
    if len(ranges) < 2:
        return None
    values, counted = distribution_head(form, found)
    drawn = _histogram if has_equal_ranges(form) else _survival
    return drawn(values, counted, ranges)


def _histogram(values: str, counted: str, ranges: Sequence[Range]) -> Section:
    """Return a histogram of ranges of equal lengths."""
    bins = join_ranges(ranges, MOST_COLUMNS, True)
    width = 1 / len(bins)
    first, last = bins[0][0], bins[-1][1]
    made = [
        Column(i * width, (i + 1) * width, count, "plain", _told(values, counted, low, high, count))
        for i, (low, high, count) in enumerate(bins)
    ]
    whole = isinstance(first, int)
    several = bins[0][1] - first + whole > 1 if whole else True
    axis_title = f"{counted} in each column" if several else counted
    length = (bins[1][0] - first) if len(bins) > 1 else last - first or 1
    middle = 0 if several else 0.5  # a single value stands in the middle of its column
    ticks = [
        Tick(((value - first) / length + middle) * width, compact(value))
        for value in linear(last, whole=whole).ticks
        if first <= value <= first + length * (len(bins) - middle)
    ]
    frame = Frame(
        f"{counted.capitalize()} by {values}",
        f"{len(bins):,} columns from {figure(first)} to {figure(last)}; the table has the numbers.",
        linear(max(column.value for column in made), whole=True),
        axis_title,
        ticks,
        values,
    )
    low, high, most = max(bins, key=lambda bin_range: bin_range[2])
    total = sum(count for _, _, count in bins)
    told = f"The most common {values} is {_name(low, high)}: {most:,} of {total:,} {counted}."
    return _section(frame.title, told, chart(frame, columns(frame, made)), values, counted, bins)


def _survival(values: str, counted: str, ranges: Sequence[Range]) -> Section:
    """Return a curve of how many have at least a value, on logarithmic axes."""
    drawn = [value_range for value_range in ranges if value_range[0] > 0]
    if len(drawn) < _LEAST_POINTS:
        return _section(f"{counted.capitalize()} by {values}", None, None, values, counted, ranges)
    bins = join_ranges(drawn, _MOST_POINTS, False)
    above = list(accumulate(count for _, _, count in reversed(bins)))[::-1]
    most = bins[-1][1]
    along, up = logarithmic(bins[0][0], most), logarithmic(1, max(2, above[0]))
    points = [
        Point(along.place(low), count, f"{values} of at least {figure(low)}: {count:,} {counted}")
        for (low, _, _), count in zip(bins, above, strict=True)
    ]
    frame = Frame(
        f"{counted.capitalize()} by {values}",
        "A dot for each value: how many have at least that much; the table has the numbers.",
        up,
        f"{counted} with at least as much",
        [Tick(along.place(tick), compact(tick)) for tick in along.ticks],
        values,
    )
    total = sum(count for _, _, count in ranges)
    told = f"For each number of {values}, how many {counted} have at least as many."
    if isinstance(bins[0][0], float):
        told = f"For each value of {values}, how many {counted} have at least as much."
    told += " Both axes are logarithmic."
    if total > above[0]:
        told += f" {total - above[0]:,} have 0, and no dot."
    steps = [Point(left.at, right.value, "") for left, right in pairwise(points)]
    line = [point for pair in zip_longest(points, steps) for point in pair if point is not None]
    drawn_chart = chart(frame, joined(frame, line, "line"), dots(frame, points))
    return _section(frame.title, told, drawn_chart, values, counted, join_ranges(ranges, 24, False))


def _section(
    title: str,
    told: str | None,
    drawn: Element | None,
    values: str,
    counted: str,
    bins: Sequence[Range],
) -> Section:
    """Return the section. The table is folded if there is a chart."""
    rows = [(_name(low, high), f"{count:,}") for low, high, count in bins if count]
    made = table(title, (values, counted), rows)
    if drawn is None:
        return Section(title, [made], wide=True)
    folded = tag("details", tag("summary", f"Table of {counted} by {values}"), made)
    return Section(title, [tag("p", told), tag("figure", drawn), folded], wide=True)


def _name(low: float, high: float) -> str:
    return figure(low) if low == high else f"{figure(low)} to {figure(high)}"


def _told(values: str, counted: str, low: float, high: float, count: int) -> str:
    return f"{values} {_name(low, high)}: {count:,} {counted}"


def top(form: str, found: dict[str, Any]) -> Section | None:
    """Return a table of the vertices or groups at the top; None if there are none."""
    if not found.get("top"):
        return None
    kind, column = finding_of(form, found)
    name, numbers = (column, "vertices") if kind == "groups" else ("vertex", column)
    rows = [Bar(shortened(vertex), float(value), figure(value)) for vertex, value in found["top"]]
    title, caption = _TOP[kind]
    told = plural(column) if kind == "groups" else column
    return Section(title.format(told), [bars(caption.format(told), (name, numbers), rows)])


_TOP = {
    "values": ("Vertices at the top", "The greatest {}"),
    "distances": ("Vertices farthest away", "The greatest {}"),
    "groups": ("Largest {}", "The {} by size"),
}
"""Title and caption, by the kind of finding; both name the column, or the groups."""
