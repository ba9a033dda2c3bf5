"""The drawing of a small graph, laid out by NetworkX."""

from __future__ import annotations

from typing import Any
from xml.etree.ElementTree import Element

import numpy as np

from ....partition.input.arrow import numbers_and_nulls
from ....partition.input.id_types import shown_id, stored
from ...questions import FORMS
from ...results.result import Result
from ...summary import shortened
from ..neighbourhood import Neighbourhood
from .markup import tag
from .page import Section

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
    places = _places(sample)
    named = ", ".join(shortened(str(vertex)) for vertex in sample.vertices[: sample.centres])
    told = f"{len(sample.vertices):,} of the vertices, around {named}, and the edges between them."
    if len(sample.vertices) == MOST_VERTICES:
        told += " Others are left out."
    if directed:
        told += " The directions of edges are not drawn."
    lines = (
        tag(
            "line",
            class_="tie",
            x1=_percent(places[start][0]),
            y1=_down(places[start][1]),
            x2=_percent(places[end][0]),
            y2=_down(places[end][1]),
        )
        for start, end in sample.edges
    )
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
    picture = tag(
        "svg",
        tag("title", "The graph around these vertices", id="drawing-title"),
        *lines,
        *marks,
        *names,
        class_="chart drawing",
        role="img",
        aria_labelledby="drawing-title",
        height=_HEIGHT,
    )
    return Section("A part of the graph", [tag("p", told), tag("figure", picture)], wide=True)


def _name(name: str, x: float, y: float) -> Element:
    """Return the name of a vertex, on the side that has more room."""
    side = {"dx": 9} if x < 0.5 else {"dx": -9, "text_anchor": "end"}
    place = {"x": _percent(x), "y": _down(y), "dy": 4, **side}
    return tag("text", shortened(name), class_="axis lane", **place)


def _places(sample: Neighbourhood) -> list[tuple[float, float]]:
    """Return a place for each vertex, from 0 to 1 along both axes."""
    import networkx  # not at the start: other pages do without

    graph = networkx.Graph()
    graph.add_nodes_from(range(len(sample.vertices)))
    graph.add_edges_from(sample.edges)
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
