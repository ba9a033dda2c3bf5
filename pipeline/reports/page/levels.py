"""Section about the levels of a search: frontier, edges examined and time, by the supersteps of its
record.

A chart has at most MOST_COLUMNS columns. Where there are more levels, a column is the mean of
several. Levels of which a record has only the sums (supersteps_between) are a gap in the chart and
a row of the table, and the page says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from typing import Any
from xml.etree.ElementTree import Element

from ..numbers import (
    UNKNOWN,
    at,
    duration,
    entries,
    figure,
    number,
    numbers,
    share,
    size,
    time_unit,
)
from .charts import MOST_COLUMNS, Column, Frame, Tick, band, chart, columns
from .markup import tag
from .page import Section
from .scales import integers, linear
from .tables import beside, table

_GAP = (0.44, 0.56)  # where levels are left out

WAYS = ("push", "pull", "scan", "mixed", "plain")
"""Directions, several of them, and none that is known."""

_DRAWN = {
    "frontier": "vertices in the frontier",
    "edges_examined": "edges examined",
    "seconds": "time",
}
_COUNTS = ("frontier", "found", "edges_examined", "bytes_read", "seconds")


@dataclass(frozen=True)
class Bin:
    """Levels in a row. ways: the directions of these levels. sums: by key, None: not known."""

    first: int
    last: int
    ways: frozenset[str]
    sums: dict[str, float | None]

    @property
    def count(self) -> int:
        return self.last - self.first + 1

    @property
    def kind(self) -> str:
        if len(self.ways) > 1:
            return "mixed"
        way = next(iter(self.ways), "plain")
        return way if way in WAYS else "plain"

    @property
    def name(self) -> str:
        return f"{self.first:,}" if self.count == 1 else f"{self.first:,} to {self.last:,}"

    def mean(self, key: str) -> float | None:
        value = self.sums[key]
        return None if value is None else value / self.count


def levels(document: Any, subject: str = "") -> Section | None:
    """Return the section on a search's levels; None where the document has no supersteps. subject:
    a sentence that says which search it is.
    """
    found = entries(document, "supersteps")
    if not any(key in step for step in found for key in _DRAWN):
        return None
    split = _split(found)
    a_column = ceil(len(found) / MOST_COLUMNS)
    parts = [_bins(part, a_column) for part in split]
    summed = at(document, "supersteps_between")
    between = _as_bin(summed) if len(parts) > 1 and isinstance(summed, dict) else None
    bins = [level_bin for part in parts for level_bin in part]
    told = [subject + _told([*bins, between] if between else bins)]
    if a_column > 1:
        told.append(f"Each column shows the mean of {a_column:,} levels.")
    if len(parts) > 1:
        left_out = f"{parts[0][-1].last + 1:,} to {parts[1][0].first - 1:,}"
        kept = "Only the sums" if between else "No figures"
        told.append(
            f"{kept} of levels {left_out} are recorded: the axis is cut, without columns there."
        )
    known = [key for key in _DRAWN if any(level_bin.sums[key] is not None for level_bin in bins)]
    panels = [_panel(parts, key, last=key == known[-1]) for key in known]
    ways = [way for way in WAYS if any(level_bin.kind == way for level_bin in bins)]
    legend = (tag("span", _swatch(way), _MEANING[way]) for way in ways)
    return Section(
        "Level by level",
        [
            tag("p", " ".join(told)),
            tag("figure", tag("div", *legend, class_="legend"), *panels),
            _table(parts, between),
        ],
        wide=True,
    )


_MEANING = {
    "push": "push: from the frontier",
    "pull": "pull: from what is unvisited",
    "scan": "scan of all edges",
    "mixed": "several directions",
    "plain": "direction not known",
}


def _swatch(way: str) -> Element:
    drawn = tag("rect", class_=way, width=14, height=14)
    return tag("svg", drawn, width=14, height=14, aria_hidden="true")


def _split(found: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Split the supersteps in two, where levels are left out."""
    numbered = [number(step, "level") for step in found]
    for i, (level, next_level) in enumerate(pairwise(numbered), 1):
        if level is not None and next_level is not None and next_level > level + 1:
            return [found[:i], found[i:]]
    return [found]


def _bins(found: Sequence[dict[str, Any]], a_column: int) -> list[Bin]:
    made = []
    for start in range(0, len(found), a_column):
        steps = found[start : start + a_column]
        first = int(number(steps[0], "level") or start + 1)
        values = {key: [number(step, key) for step in steps] for key in _COUNTS}
        sums = {key: _sum(counts) for key, counts in values.items()}
        sums["bytes_sent"] = sum(sum(numbers(step, "bytes_sent").values()) for step in steps)
        ways = frozenset(way for step in steps for way in _ways(step))
        made.append(Bin(first, first + len(steps) - 1, ways, sums))
    return made


def _ways(step: dict[str, Any]) -> list[str]:
    direction = step.get("direction")
    return [str(way) for way in (direction.values() if isinstance(direction, dict) else ())]


def _sum(values: Sequence[float | None]) -> float | None:
    return None if None in values else sum(value for value in values if value is not None)


def _told(bins: Sequence[Bin]) -> str:
    """Say which levels took most of the time."""
    whole = sum(level_bin.sums["seconds"] or 0 for level_bin in bins)
    if not whole:
        return "How long levels took is not known."
    longest = max(bins, key=lambda level_bin: level_bin.sums["seconds"] or 0)
    time = f"{share(longest.sums['seconds'] or 0, whole)} of {duration(whole)}"
    levels = "level" if longest.count == 1 else "levels"
    return f"Most time went into {levels} {longest.name}: {time}."


def _panel(parts: Sequence[Sequence[Bin]], key: str, last: bool) -> Element:
    """Draw a chart of one key. last: whether the panel has the axis of all panels."""
    name = _DRAWN[key]
    values = [level_bin.mean(key) or 0 for part in parts for level_bin in part]
    unit = time_unit(max(values)) if key == "seconds" else None
    scale, title = (unit.scale, f"{name}, {unit.name}") if unit else (1, name)
    a_level = any(level_bin.count > 1 for part in parts for level_bin in part)
    bars, ticks = [], []
    for part, (start, stop) in zip(parts, _places(len(parts)), strict=True):
        width = (stop - start) / len(part)
        bars += [
            Column(
                start + i * width,
                start + (i + 1) * width,
                (level_bin.mean(key) or 0) / scale,
                level_bin.kind,
                _pointed(level_bin, key, name),
            )
            for i, level_bin in enumerate(part)
        ]
        first = part[0].first
        final = first + sum(level_bin.count for level_bin in part) - 1
        marked = integers(first, final) if len(parts) == 1 else sorted({first, final})
        ticks += [
            Tick(start + (stop - start) * (level - first + 0.5) / (final - first + 1), f"{level:,}")
            for level in marked
        ]
    frame = Frame(
        f"{name.capitalize()} by level",
        f"{len(bars):,} columns, for a level each or several; the table has the numbers.",
        linear(max(values) / scale, whole=key != "seconds"),
        f"{title}{', a level' if a_level else ''}",
        ticks if last else [],
        "level",
        height=110,
    )
    gap = band(frame, *_GAP, "levels of which only the sums are known") if len(parts) > 1 else ()
    return chart(frame, gap, columns(frame, bars))


def _places(parts: int) -> list[tuple[float, float]]:
    return [(0, 1)] if parts == 1 else [(0, _GAP[0]), (_GAP[1], 1)]


def _pointed(level_bin: Bin, key: str, name: str) -> str:
    value = level_bin.mean(key)
    told = duration(value) if key == "seconds" else figure(_whole(value))
    return f"level {level_bin.name}, {'/'.join(sorted(level_bin.ways)) or UNKNOWN}: {name} {told}"


def _whole(value: float | None) -> float | None:
    return int(value) if value is not None and value == int(value) else value


def _table(parts: Sequence[Sequence[Bin]], between: Bin | None) -> Element:
    """Return the table of the chart's values; a row of several levels has their sums. Keys without
    information are left out.
    """
    bins = [level_bin for part in parts for level_bin in part]
    counts = ("frontier", "found", "edges_examined")
    keys = [key for key in counts if any(level_bin.sums[key] is not None for level_bin in bins)]
    keys += [
        key
        for key in ("bytes_read", "bytes_sent")
        if any(level_bin.sums[key] for level_bin in bins)
    ]
    head = ["level", "direction", *(key.replace("_", " ") for key in keys), "time"]
    rows = [[_row(level_bin, keys) for level_bin in part] for part in parts]
    if between:
        rows.insert(1, [_row(between, keys)])
    several = between is not None or any(level_bin.count > 1 for level_bin in bins)
    caption = "Supersteps; sums for several levels" if several else "Supersteps"
    made = [row for part in rows for row in part]
    return beside(f"All {len(made):,} rows of the table", table(caption, head, made), len(made))


def _as_bin(between: Any) -> Bin:
    """Return the levels that are left out as a bin."""
    directions = at(between, "directions")
    groups = directions.values() if isinstance(directions, dict) else ()
    ways = frozenset(str(way) for ways in groups if isinstance(ways, dict) for way in ways)
    sums = {key: number(between, key) for key in _COUNTS}
    sums["bytes_sent"] = sum(numbers(between, "bytes_sent").values())
    first, last = (int(number(between, key) or 0) for key in ("first_level", "last_level"))
    return Bin(first, last, ways, sums)


def _row(level_bin: Bin, keys: Sequence[str]) -> list[str]:
    told = [
        size(level_bin.sums[key]) if "bytes" in key else figure(level_bin.sums[key]) for key in keys
    ]
    way = "/".join(sorted(level_bin.ways)) or UNKNOWN
    return [level_bin.name, way, *told, duration(level_bin.sums["seconds"])]
