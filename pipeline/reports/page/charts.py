"""Charts, as SVG that is as wide as there is room: places along x are percentages, heights pixels,
so that text keeps its size on a phone.

A chart is a frame and layers upon it. Marks differ in form or pattern, too, never by colour alone;
each says its numbers when it is pointed at.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple
from xml.etree.ElementTree import Element

from ..numbers import compact
from .markup import tag
from .scales import Scale

Layer = Iterable[Element]

MOST_COLUMNS = 200
"""More are put together, so that each is seen on a phone, and a page stays small."""

_TOP = 26
_BELOW, _BELOW_NOTHING = 42, 14  # room for what stands along x
_GUTTER = 52  # as wide as style.css has it

LANE = 42
"""Pixels of a row of a timeline: its name, and the bar below."""

_BAR = 12
_LEAST_BAR = 0.006  # of the width, so that it is seen
_MOST_LETTERS = 24  # of a name, on a phone


class Tick(NamedTuple):
    """A tick of an axis. at: from 0 to 1."""

    at: float
    label: str


class Column(NamedTuple):
    """A bar from ``start`` to ``stop``, from 0 to 1. kind: its class. told: its numbers."""

    start: float
    stop: float
    value: float
    kind: str
    told: str


class Point(NamedTuple):
    at: float
    value: float
    told: str


class Lane(NamedTuple):
    """A row of a timeline. start, stop: from 0 to 1; greater values are beyond the axis; stop None:
    the end is not known. told: its numbers; without a start, the text in place of a bar.
    """

    name: str
    state: str
    start: float | None
    stop: float | None
    kind: str
    told: str


@dataclass(frozen=True)
class Frame:
    """Frame of a chart. title, description: for readers who cannot see it. along: the axis of x;
    none where a chart below has the same.
    """

    title: str
    description: str
    y: Scale
    y_title: str
    along: Sequence[Tick]
    x_title: str
    height: int = 180

    def down(self, value: float) -> float:
        return round(self.height * (1 - self.y.place(value)), 1)


def chart(frame: Frame, *layers: Layer) -> Element:
    names = f"{_slug(frame.title)}-title", f"{_slug(frame.title)}-text"
    return tag(
        "svg",
        tag("title", frame.title, id=names[0]),
        tag("desc", frame.description, id=names[1]),
        tag(
            "g",
            *_axes(frame),
            *(mark for layer in layers for mark in layer),
            transform=f"translate(0,{_TOP})",
        ),
        class_="chart",
        role="img",
        aria_labelledby=" ".join(names),
        height=_TOP + frame.height + (_BELOW if frame.along else _BELOW_NOTHING),
    )


def _slug(title: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in title.lower())


def _axes(frame: Frame) -> Layer:
    yield tag("text", frame.y_title, class_="axis", x=-_GUTTER, y=-14)
    for value in frame.y.ticks:
        y = frame.down(value)
        yield tag("line", class_="grid", x1=0, x2="100%", y1=y, y2=y)
        label = tag(
            "text", compact(value), class_="tick", x=-8, y=y, text_anchor="end", dy="0.32em"
        )
        yield label
    yield tag("line", class_="base", x1=0, x2="100%", y1=frame.height, y2=frame.height)
    for at, label in frame.along:
        yield tag(
            "text", label, class_="tick", x=_percent(at), y=frame.height + 17, text_anchor="middle"
        )
    if frame.along:
        y = frame.height + 36
        yield tag("text", frame.x_title, class_="axis", x="100%", y=y, text_anchor="end")


def columns(frame: Frame, bars: Sequence[Column]) -> Layer:
    """Draw bars from 0 on."""
    gap = 0.16 if len(bars) <= 60 else 0
    for start, stop, value, kind, told in bars:
        y, width = frame.down(value), stop - start
        yield tag(
            "rect",
            tag("title", told),
            class_=kind,
            x=_percent(start + width * gap / 2),
            width=_percent(width * (1 - gap)),
            y=y,
            height=round(frame.height - y, 1),
        )


def stems(frame: Frame, points: Sequence[Point]) -> Layer:
    """Draw the stems of dots, on a scale without 0, where a bar's length would mean nothing."""
    for at, value, _ in points:
        x = _percent(at)
        yield tag("line", class_="stem", x1=x, x2=x, y1=frame.down(value), y2=frame.height)


def joined(frame: Frame, points: Sequence[Point], kind: str) -> Layer:
    for one, other in pairwise(points):
        yield tag(
            "line",
            class_=kind,
            x1=_percent(one.at),
            x2=_percent(other.at),
            y1=frame.down(one.value),
            y2=frame.down(other.value),
        )


def dots(frame: Frame, points: Sequence[Point]) -> Layer:
    radius = 3.5 if len(points) <= 60 else 1.8
    for at, value, told in points:
        yield tag(
            "circle",
            tag("title", told),
            class_="dot",
            cx=_percent(at),
            cy=frame.down(value),
            r=radius,
        )


def across(frame: Frame, value: float, label: str) -> Layer:
    """Draw a line at a value, with its name above the left end."""
    y = frame.down(value)
    yield tag("line", class_="mark", x1=0, x2="100%", y1=y, y2=y)
    yield tag("text", label, class_="named", x=6, y=y - 5)


def upright(frame: Frame, at: float, label: str) -> Layer:
    """Draw a line at a place of x, with its name on the side that has more room."""
    x = _percent(at)
    yield tag("line", class_="mark", x1=x, x2=x, y1=0, y2=frame.height)
    side = {"dx": 6} if at < 0.5 else {"dx": -6, "text_anchor": "end"}
    yield tag("text", label, class_="named", x=x, y=11, **side)


def band(frame: Frame, start: float, stop: float, label: str) -> Layer:
    """Draw a part of the chart that has no values."""
    yield tag(
        "rect",
        tag("title", label),
        class_="gap",
        x=_percent(start),
        width=_percent(stop - start),
        y=0,
        height=frame.height,
    )


def lanes(frame: Frame, rows: Sequence[Lane]) -> Layer:
    """Draw rows one below the other, each with its name above its bar: a phone has no room beside
    the bar.
    """
    for at, _ in frame.along:
        yield tag("line", class_="grid", x1=_percent(at), x2=_percent(at), y1=0, y2=frame.height)
    for top, lane in zip(range(0, frame.height, LANE), rows, strict=True):
        name, state, start, stop, kind, told = lane
        words = f"{_shortened(name)}: {state}"
        yield tag("text", words, class_="axis lane", x=-_GUTTER, y=top + 14)
        y = top + 18
        if start is None:
            yield tag("text", told, class_="lane", x=-_GUTTER, y=y + 10)
            continue
        if stop is not None:
            width = max(_LEAST_BAR, min(1.0, stop) - start)
            x = _percent(min(start, 1 - width))
            yield tag(
                "rect",
                tag("title", told),
                class_=kind,
                x=x,
                width=_percent(width),
                y=y,
                height=_BAR,
            )
        if stop is None or stop > 1:
            drawn = "M0 0H20L15 4L20 8L15 12H0Z" if stop is None else "M0 0L9 6L0 12Z"
            at = _percent(start if stop is None else 1.0)
            end = tag("path", tag("title", told), class_=kind, d=drawn)
            yield tag("svg", end, x=at, y=y, overflow="visible")


def _shortened(name: str) -> str:
    """Return a name without its middle: names that begin alike differ at the end."""
    half = _MOST_LETTERS // 2
    return name if len(name) <= _MOST_LETTERS else f"{name[: half - 1]}\u2026{name[-half:]}"


def _percent(part: float) -> str:
    return f"{100 * part:.5g}%"
