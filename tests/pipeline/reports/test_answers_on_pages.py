"""The answers on a result's page: distribution, top, and the drawing of the graph around it."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

import networkx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import delegraph
from delegraph.partition.errors import InputError
from delegraph.partition.input.edges import open_edges
from delegraph.partition.store.store import open_store
from delegraph.pipeline.reports.neighbourhood import neighbourhood
from delegraph.pipeline.reports.page.drawing import MOST_VERTICES
from delegraph.pipeline.reports.page.page import render
from delegraph.pipeline.reports.page.write import page_of
from delegraph.pipeline.results.result import open_result
from delegraph.pipeline.summary import shortened
from support.graphs import grid, random_edges
from support.marks import mostly_slow
from support.pages import PageText


def page(path: Path, graph: Any = None) -> PageText:
    return PageText(render(page_of(path, graph)))


@pytest.fixture(params=mostly_slow(["int64", "string", "uuid"], "string"))
def edges(request, tmp_path) -> Path:
    src, dst = random_edges(3, 500, 3000)
    columns: dict[str, Any] = {}
    for name, ends in (("from", src), ("to", dst)):
        if request.param == "string":
            columns[name] = pa.array([f"<{end}>" for end in ends])
        elif request.param == "uuid":
            columns[name] = pa.array([UUID(int=int(end)).bytes for end in ends], pa.uuid())
        else:
            columns[name] = pa.array(ends)
    pq.write_table(pa.table(columns), tmp_path / "edges.parquet", row_group_size=700)
    return tmp_path / "edges.parquet"


@pytest.mark.parametrize("through", ["edges", "store", "partitions"])
@pytest.mark.parametrize("most", [3, 40, 10_000])
def test_a_neighbourhood_is_a_part_of_the_graph(edges, tmp_path, through, most):
    """It has all edges between its vertices, each of which leads to a centre, and no more vertices
    than asked for.
    """
    columns: Any = {"src": "from", "dst": "to"}
    delegraph.pagerank(edges, output=tmp_path / "ranks", **columns)
    result = open_result(tmp_path / "ranks")
    top = [vertex for vertex, _ in delegraph.info(tmp_path / "ranks")["top"][:3]]
    if through == "edges":
        graph = open_edges(edges, "from", "to")
    else:
        parts = 3 if through == "partitions" else 1
        delegraph.build(edges, tmp_path / "graph.dg", partitions=parts, **columns)
        graph = open_store(tmp_path / "graph.dg")
    found = neighbourhood(graph, result, top, most)
    table = pq.read_table(edges)
    whole = networkx.Graph(
        (str(one), str(other))
        for one, other in zip(table["from"].to_pylist(), table["to"].to_pylist(), strict=True)
        if one != other
    )
    names = [str(vertex) for vertex in found.vertices]
    assert found.vertices[: found.centres] == top
    assert len({*names}) == len(names) <= max(most, found.centres)
    assert len(names) == min(most, len(networkx.node_connected_component(whole, names[0])))
    inside = whole.subgraph(names)
    assert len(found.edges) == len({*found.edges}) == inside.number_of_edges()
    assert all(inside.has_edge(names[one], names[other]) for one, other in found.edges)
    pieces = networkx.connected_components(inside)
    assert all(piece & {*names[: found.centres]} for piece in pieces)


def test_a_neighbourhood_of_few_neighbours_goes_on(edge_list, tmp_path):
    """On a grid, one step from a centre gives four vertices: the sample takes several."""
    path = edge_list(*grid(30))
    delegraph.bfs(path, 435, output=tmp_path / "hops")
    found = neighbourhood(open_edges(path), open_result(tmp_path / "hops"), [435], 40)
    assert len(found.vertices) == 40
    steps = delegraph.bfs(path, 435).to_pandas().set_index("vertex")["distance"]
    assert max(steps[vertex] for vertex in found.vertices) <= 4


def test_a_page_with_a_drawing(ok, delegraph_page, edges, tmp_path):
    ok("pagerank", edges, "-o", tmp_path / "ranks", "--src", "from", "--dst", "to")
    line = ("--graph", edges, "--src", "from", "--dst", "to")
    html = delegraph_page(tmp_path / "ranks", *line)
    again = delegraph_page(tmp_path / "ranks", *line, "--overwrite")
    drawn: Any = html.root.find(".//svg[@class='chart drawing']")
    circles = drawn.findall("circle")
    assert len(circles) == MOST_VERTICES
    assert len(drawn.findall("circle[@class='centre']")) == 5
    top = [vertex for vertex, _ in delegraph.info(tmp_path / "ranks")["top"][:5]]
    assert [text.text for text in drawn.findall("text")] == [shortened(vertex) for vertex in top]
    assert html.text == again.text
    places = [float(circle.get("cx").rstrip("%")) for circle in circles]
    assert 0 < min(places) < 10
    assert 90 < max(places) < 100


@pytest.fixture
def delegraph_page(ok, tmp_path):
    """Return a function that runs ``report`` and parses the page."""

    def run(path: Path, *words: Any) -> PageText:
        ok("report", path, "-o", tmp_path / "page.html", *words)
        return PageText((tmp_path / "page.html").read_bytes())

    return run


def test_a_drawing_needs_the_graph_of_the_result(edge_list, tmp_path):
    edges, other = edge_list([0, 1], [1, 2]), edge_list([0, 1], [1, 3], name="other.parquet")
    words = edge_list(["0", "1"], ["1", "2"], name="words.parquet")
    delegraph.pagerank(edges, output=tmp_path / "ranks")
    delegraph.build(other, tmp_path / "other.dg")
    for graph in (other, words, tmp_path / "other.dg"):
        with pytest.raises(InputError, match="is not the graph of this result"):
            delegraph.report(tmp_path / "ranks", tmp_path / "page.html", graph=graph)
    delegraph.bfs(edges, sources=[0, 1], output=tmp_path / "each")
    with pytest.raises(InputError, match="has no drawing"):
        delegraph.report(tmp_path / "each", tmp_path / "page.html", graph=edges)
    delegraph.build(edges, tmp_path / "graph.dg")
    with pytest.raises(InputError, match="only a result"):
        delegraph.report(tmp_path / "graph.dg", tmp_path / "page.html", graph=edges)
    assert not (tmp_path / "page.html").exists()


def test_a_drawing_of_loops_and_of_weights(edge_list, tmp_path):
    """Vertices without neighbours are drawn, too; a result that goes by weights is of the edge list
    with them.
    """
    edges = edge_list([4, 5], [4, 5], weight=[1, 2])
    delegraph.components(edges, output=tmp_path / "parts")
    delegraph.report(tmp_path / "parts", tmp_path / "parts.html", graph=edges)
    assert "1 of the vertices, around 4, and" in (tmp_path / "parts.html").read_text()
    edges = edge_list([0, 1, 2], [1, 2, 3], name="weighted.parquet", weight=[5, 1, 1])
    delegraph.sssp(edges, 1, weight="weight", output=tmp_path / "paths")
    with pytest.raises(InputError, match="with weight= if the result goes by weights"):
        delegraph.report(tmp_path / "paths", tmp_path / "page.html", graph=edges)
    options: Any = {"graph": edges, "weight": "weight"}
    delegraph.report(tmp_path / "paths", tmp_path / "page.html", **options)
    html = PageText((tmp_path / "page.html").read_bytes())
    assert "4 of the vertices, around 1," in html.text
    delegraph.bfs(edges, sources=[3, 0], together=True, output=tmp_path / "near", directed=True)
    delegraph.report(tmp_path / "near", tmp_path / "near.html", graph=edges)
    html = PageText((tmp_path / "near.html").read_bytes())
    assert "around 0, 3, and the edges between them. The directions" in html.text


QUESTIONS = {
    "bfs": {"source": 0},
    "components": {},
    "pagerank": {},
    "closeness": {},
    "betweenness": {},
    "eccentricity": {},
    "cores": {},
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_answers_stand_first(edge_list, tmp_path, name):
    """A page begins with the distribution, which has a column or a dot for each range, and the top;
    what is said of the run follows.
    """
    src, dst = random_edges(3, 800, 900)
    getattr(delegraph, name)(edge_list(src, dst), output=tmp_path / "out", **QUESTIONS[name])
    html = page(tmp_path / "out")
    document = delegraph.info(tmp_path / "out")
    titles = [title.text or "" for title in html.root.findall(".//section/h2")]
    counted = "Components by vertices" if name == "components" else "Vertices by "
    assert titles[0].startswith(counted)
    assert titles.index("Time by step") > 1
    rows = next(rows for caption, rows in html.tables.items() if caption.startswith(counted))
    assert sum(int(row[-1].replace(",", "")) for row in rows) == sum(
        count for _, _, count in document["distribution"]
    )
    chart: Any = html.root.find(".//svg[@class='chart']")
    assert chart.findtext("title").startswith(counted)
    marks = chart.findall(".//circle") + chart.findall(".//rect")
    assert len(marks) >= 3
    assert all(mark.findtext("title") for mark in marks)


def test_values_that_are_alike_have_no_chart(edge_list, tmp_path):
    edges = edge_list(np.arange(6), np.roll(np.arange(6), 1))
    delegraph.pagerank(edges, output=tmp_path / "ranks")
    html = page(tmp_path / "ranks")
    charts = html.root.findall(".//svg[@class='chart']")
    assert "Vertices by pagerank" not in [chart.findtext("title") for chart in charts]
    assert len(html.tables["The greatest pagerank"]) == 6
