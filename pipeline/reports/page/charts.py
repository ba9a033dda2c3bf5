"""Charts, as SVG that is as wide as there is room: places along x are percentages, heights pixels,
so that text keeps its size on a phone.

A chart is a frame and layers upon it. A timeline is a list of rows over one axis. Marks differ in
form or pattern, too, never by colour alone; each says its numbers when it is pointed at.
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

_BAR, _THIN_BAR = 12, 6
_LEAST_BAR = 0.006  # of the width, so that it is seen
_MOST_NAME, _MOST_NOTE = 24, 110
"""Letters of a name and of a note: two lines on a phone."""


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


class Span(NamedTuple):
    """A bar of a timeline. start, stop: from 0 to 1; a greater stop is beyond the axis; None: the
    end is not known. kind: its class. told: its numbers. thin: whether another bar of its row
    matters more.
    """

    start: float
    stop: float | None
    kind: str
    told: str
    thin: bool = False


class Lane(NamedTuple):
    """A row of a timeline. note: a text below the bars, or in their place."""

    name: str
    state: str
    spans: Sequence[Span]
    note: str = ""


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
    drawn = tag(
        "g",
        *_axes(frame),
        *(mark for layer in layers for mark in layer),
        transform=f"translate(0,{_TOP})",
    )
    height = _TOP + frame.height + (_BELOW if frame.along else _BELOW_NOTHING)
    return _picture(frame.title, frame.description, [drawn], "chart", height)


def _picture(
    title: str, description: str, drawn: Layer, kind: str, height: int | None = None
) -> Element:
    names = f"{_slug(title)}-title", f"{_slug(title)}-text"
    return tag(
        "svg",
        tag("title", title, id=names[0]),
        tag("desc", description, id=names[1]),
        *drawn,
        class_=kind,
        role="img",
        aria_labelledby=" ".join(names),
        height=height,
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
    for start, end in pairwise(points):
        yield tag(
            "line",
            class_=kind,
            x1=_percent(start.at),
            x2=_percent(end.at),
            y1=frame.down(start.value),
            y2=frame.down(end.value),
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


def timeline(
    title: str, description: str, along: Sequence[Tick], x_title: str, rows: Sequence[Lane]
) -> Element:
    """Draw bars over one axis of time. A row's name stands left of its bars; on a phone, which has
    no room there, above them (style.css).
    """
    axis = _picture(title, description, _times(along, x_title), "chart times")
    items = (tag("li", *_lane(row)) for row in rows)
    return tag("div", axis, tag("ol", *items, class_="lanes"), class_="timeline")


def _times(along: Sequence[Tick], x_title: str) -> Layer:
    """Draw the axis of time at the lower end of a picture that is as high as there is room."""
    for at, label in along:
        x = _percent(at)
        yield tag("line", class_="grid", x1=x, x2=x, y1=0, y2="100%")
        anchor = "end" if at > 0.9 else "middle"  # a phone has no room beyond the axis
        yield tag("text", label, class_="tick", x=x, y="100%", dy=17, text_anchor=anchor)
    yield tag("line", class_="base", x1=0, x2="100%", y1="100%", y2="100%")
    yield tag("text", x_title, class_="axis", x="100%", y="100%", dy=36, text_anchor="end")


def _lane(row: Lane) -> Layer:
    yield tag("span", _shortened(row.name, _MOST_NAME), class_="name", title=row.name)
    yield tag("span", row.state, class_="state")
    if row.spans:
        marks = (mark for span in row.spans for mark in _span(span))
        yield tag("svg", *marks, class_="bars", height=_BAR, aria_hidden="true")
    if row.note:
        yield tag("span", _shortened(row.note, _MOST_NOTE), class_="note", title=row.note)


def _span(span: Span) -> Layer:
    start, stop, kind, told, thin = span
    height = _THIN_BAR if thin else _BAR
    y = (_BAR - height) / 2
    if stop is not None:
        width = max(_LEAST_BAR, min(1.0, stop) - start)
        yield tag(
            "rect",
            tag("title", told),
            class_=kind,
            x=_percent(min(start, 1 - width)),
            width=_percent(width),
            y=y,
            height=height,
        )
    if stop is None or stop > 1:
        third = height // 3
        torn = f"M0 0H20L15 {third}L20 {2 * third}L15 {height}H0Z"
        drawn = torn if stop is None else f"M0 0L9 {height / 2:g}L0 {height}Z"
        at = _percent(start if stop is None else 1.0)
        end = tag("path", tag("title", told), class_=kind, d=drawn)
        yield tag("svg", end, x=at, y=y, overflow="visible")


def _shortened(words: str, most: int) -> str:
    """Return a text without its middle: names that begin alike differ at the end, and an error
    often begins with a path.

    >>> _shortened("ranks-of-europe", 9)
    'ran\u2026rope'
    """
    half = most // 2
    return words if len(words) <= most else f"{words[: half - 1]}\u2026{words[-half:]}"


def _percent(part: float) -> str:
    return f"{100 * part:.5g}%"
