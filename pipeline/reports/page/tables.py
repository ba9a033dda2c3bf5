"""Tables, lists of facts, and tables with bars: companions of charts, or sections without a
chart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from xml.etree.ElementTree import Element

from .markup import Content, tag

MOST_ROWS = 12
"""Longer tables are folded."""


class Bar(NamedTuple):
    """A row with a bar. label: its subject. value: the bar's length; None: not known. told: the
    value in words. more: further cells.
    """

    label: str
    value: float | None
    told: str
    more: tuple[str, ...] = ()
    kind: str = "plain"


def facts(rows: Sequence[tuple[str, Content]]) -> Element:
    pairs = (tag("div", tag("dt", name), tag("dd", value)) for name, value in rows)
    return tag("dl", *pairs, class_="facts")


def table(caption: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> Element:
    """Return a table. The first cell of a row names it; the others are numbers, or words as
    short.
    """
    body = (
        tag("tr", tag("th", cells[0], scope="row"), *(tag("td", cell) for cell in cells[1:]))
        for cells in rows
    )
    return _framed(caption, [tag("th", name, scope="col") for name in head], list(body))


def bars(
    caption: str, head: Sequence[str], rows: Sequence[Bar], most: float | None = None
) -> Element:
    """Return a table with bars. head: of the label, of the bar with its words, and of more cells.
    most: the longest bar; by default that of the greatest value. Longer bars are cut, and marked.
    """
    longest = most or max((row.value or 0 for row in rows), default=0) or 1
    body = [
        tag(
            "tr",
            tag("th", row.label, scope="row"),
            tag("td", _bar(row, longest), class_="bar"),
            tag("td", row.told),
            *(tag("td", cell) for cell in row.more),
        )
        for row in rows
    ]
    names = [
        tag("th", head[0], scope="col"),
        tag("th", head[1], scope="colgroup", colspan=2),
        *(tag("th", name, scope="col") for name in head[2:]),
    ]
    return _framed(caption, names, body)


def _bar(row: Bar, longest: float) -> Element:
    value = row.value or 0
    drawn = tag(
        "rect", class_=row.kind, height=12, width=f"{max(0, min(100, 100 * value / longest)):.4g}%"
    )
    cut = tag("path", class_="cut", d="M0 0l5 6l-5 6") if value > longest else None
    beyond = cut if cut is None else tag("svg", cut, x="100%", overflow="visible")
    return tag("svg", drawn, beyond, width="100%", height=12, aria_hidden="true")


def _framed(caption: str, head: Sequence[Element], body: Sequence[Element]) -> Element:
    made = tag(
        "table",
        tag("caption", caption),
        tag("thead", tag("tr", *head)),
        tag("tbody", *body),
        class_="narrow" if len(head) == 2 and len(body[0] if body else ()) == 2 else None,
    )
    # Wide ones are scrolled on their own, by the keyboard as well.
    return tag("div", made, class_="wide", tabindex=0, role="region", aria_label=caption)


def beside(summary: str, made: Element, rows: int) -> Element:
    """Return a chart's table, folded where it is long."""
    return tag("details", tag("summary", summary), made) if rows > MOST_ROWS else made
