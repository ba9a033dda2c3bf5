"""Drawings of small graphs: of a part of a graph, laid out by NetworkX, and of the largest
communities, on a circle.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import cos, pi, sin, sqrt
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np

from ....partition.input.arrow import numbers_and_nulls
from ....partition.input.id_types import shown_id, stored
from ...questions import FORMS
from ...results.result import Result
from ...summary import shortened
from ..neighbourhood import Neighbourhood
from ..numbers import entries, figure, number
from .markup import tag
from .page import Section
from .tables import beside, table

MOST_VERTICES = 120
"""More would cover each other on a phone."""

CENTRES = 5

_HEIGHT = 440


def centres_of(result: Result, found: dict[str, Any]) -> list[Any]:
    """Return the vertices to draw the surroundings of: those at distance 0 of a search, the one
    that names the largest group, or the first ones at the top.
    """
    finding = FORMS[result.algorithm].finding
    if finding is None or finding[0] != "distances":
        most = 1 if finding and finding[0] == "groups" else CENTRES  # apart, groups fill no picture
        return [vertex for vertex, _ in found["top"][:most]]
    if result.info is not None and result.info.options.get("source") is not None:
        return [result.info.options["source"]]
    centres: list[Any] = []
    for batch in result.batches(1 << 20, ("vertex", finding[1])):
        values, null = numbers_and_nulls(batch.column(finding[1]))
        here = np.flatnonzero(values == 0 if null is None else (values == 0) & ~null)
        vertices = stored(batch.column("vertex"))
        centres += [shown_id(vertices[int(i)].as_py()) for i in here[:CENTRES]]
        if len(centres) >= CENTRES:
            break
    return centres[:CENTRES]


def drawing(sample: Neighbourhood, directed: bool) -> Section:
    """Return the section with the picture of a sample of the graph."""
    places = _places(len(sample.vertices), sample.edges)
    named = ", ".join(shortened(str(vertex)) for vertex in sample.vertices[: sample.centres])
    told = f"{len(sample.vertices):,} of the vertices, around {named}, and the edges between them."
    if len(sample.vertices) == MOST_VERTICES:
        told += " Others are left out."
    if directed:
        told += " The directions of edges are not drawn."
    lines = (_line(places[start], places[end]) for start, end in sample.edges)
    marks = (
        tag(
            "circle",
            tag("title", shortened(vertex)),
            class_="centre" if i < sample.centres else "dot",
            cx=_percent(places[i][0]),
            cy=_down(places[i][1]),
            r=6 if i < sample.centres else 3,
        )
        for i, vertex in reversed([*enumerate(sample.vertices)])
    )
    centres = zip(sample.vertices[: sample.centres], places, strict=False)
    names = (_name(str(vertex), x, y) for vertex, (x, y) in centres)
    picture = _picture("The graph around these vertices", *lines, *marks, *names)
    return Section("A part of the graph", [tag("p", told), tag("figure", picture)], wide=True)


def communities_drawing(record: dict[str, Any], found: dict[str, Any]) -> Section | None:
    """Return the section with the picture of the largest communities and what joins them; None if
    the record does not tell. found: the communities at the top, with their sizes.
    """
    sizes = {str(name): float(size) for name, size in found.get("top", ())}
    order = {name: i for i, name in enumerate(sizes)}
    ties = []
    for tie in entries(record, "ties"):
        ends, weight = [str(name) for name in tie.get("communities", ())], number(tie, "weight")
        if len(ends) == 2 and weight and order.keys() >= {*ends}:
            ties.append((order[ends[0]], order[ends[1]], float(weight)))
    if not ties:
        return None
    places = _circle(len(sizes), ties)
    most = max(weight for *_, weight in ties)
    lines = (
        _line(places[one], places[other], stroke_width=f"{1 + 9 * sqrt(weight / most):.2g}")
        for one, other, weight in ties
    )
    greatest = max(sizes.values())
    radii = [round(4 + 24 * sqrt(size / greatest), 1) for size in sizes.values()]
    marks = (
        tag(
            "circle",
            tag("title", f"{shortened(name)}: {figure(size)} vertices"),
            class_="centre",
            cx=_percent(places[i][0]),
            cy=_down(places[i][1]),
            r=radii[i],
        )
        for i, (name, size) in enumerate(sizes.items())
    )
    names = (
        _name(name, x, y, radius + 4, on_right=x >= 0.5)  # outside, where no lines are
        for name, (x, y), radius in zip(sizes, places, radii, strict=True)
    )
    title = "The largest communities and what joins them"
    told = (
        "A circle's area grows with the number of vertices of a community, the width of a line "
        "with the edges between two communities, by weight."
    )
    listed = [*sizes]
    rows = [
        (shortened(listed[one]), shortened(listed[other]), figure(weight))
        for one, other, weight in sorted(ties, key=lambda tie: -tie[2])
    ]
    ties_table = table("Edges between communities", ("community", "community", "edges"), rows)
    return Section(
        title,
        [
            tag("p", told),
            tag("figure", _picture(title, *lines, *marks, *names)),
            beside("Table of edges between communities", ties_table, len(rows)),
        ],
        wide=True,
    )


def _picture(title: str, *drawn: Element) -> Element:
    made = f"drawing-{len(title)}"
    return tag(
        "svg",
        tag("title", title, id=made),
        *drawn,
        class_="chart drawing",
        role="img",
        aria_labelledby=made,
        height=_HEIGHT,
    )


def _line(start: tuple[float, float], end: tuple[float, float], **look: str) -> Element:
    (x1, y1), (x2, y2) = start, end
    ends = {"x1": _percent(x1), "y1": _down(y1), "x2": _percent(x2), "y2": _down(y2)}
    return tag("line", class_="tie", **ends, **look)


def _name(
    name: str, x: float, y: float, beside: float = 9, on_right: bool | None = None
) -> Element:
    """Return the name of a vertex. beside: at this distance. on_right: on which side; None for the
    one that has more room.
    """
    is_right = x < 0.5 if on_right is None else on_right
    side = {"dx": beside} if is_right else {"dx": -beside, "text_anchor": "end"}
    place = {"x": _percent(x), "y": _down(y), "dy": 4, **side}
    return tag("text", shortened(name), class_="axis lane", **place)


def _circle(count: int, ties: Sequence[tuple[int, int, float]]) -> list[tuple[float, float]]:
    """Return places on a circle, from 0 to 1 along both axes. Each stands beside one that it has
    a great tie with, if it has any.
    """
    weights = {frozenset(ends): weight for *ends, weight in ties}
    row = [0]
    while len(row) < count:
        left = [i for i in range(count) if i not in row]
        row.append(max(left, key=lambda i: weights.get(frozenset((i, row[-1])), 0.0)))
    angles = {i: 2 * pi * at / count for at, i in enumerate(row)}
    return [(0.5 + 0.34 * cos(angles[i]), 0.5 + 0.42 * sin(angles[i])) for i in range(count)]


def _places(count: int, edges: Sequence[tuple[int, int]]) -> list[tuple[float, float]]:
    """Return a place for each of ``count`` vertices, from 0 to 1 along both axes."""
    import networkx  # not at the start: other pages do without

    graph = networkx.Graph()
    graph.add_nodes_from(range(count))
    graph.add_edges_from(edges)
    laid = networkx.spring_layout(graph, seed=1, iterations=100)
    columns = [[float(laid[i][axis]) for i in graph] for axis in (0, 1)]
    spans = [(min(values), max(values) - min(values) or 1.0) for values in columns]
    scaled = [
        [(value - least) / span for value in values]
        for values, (least, span) in zip(columns, spans, strict=True)
    ]
    return [(x, y) for x, y in zip(*scaled, strict=True)]


def _percent(part: float) -> str:
    return f"{2 + 96 * part:.4g}%"


def _down(part: float) -> float:
    return round(12 + (_HEIGHT - 24) * part, 1)
