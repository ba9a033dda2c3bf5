"""METIS's graphs."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delegraph.partition.errors import InputError
from delegraph.pipeline.interchange import text
from support.graphs import graphs
from support.interchange import converted, write_compressed

MANUAL = {  # the graphs of its manual
    "": "7 11\n5 3 2\n1 3 4\n5 4 2 1\n2 3 6 7\n1 3 6\n5 4 7\n6 4\n",
    "edge weights": (
        "7 11 001\n5 1 3 2 2 1\n1 1 3 2 4 1\n5 3 4 2 2 2 1 2\n2 1 3 2 6 2 7 5\n1 1 3 3 6 2\n"
        "5 2 4 2 7 6\n6 6 4 5\n"
    ),
    "vertex weights": (
        "7 11 010 3\n1 2 0 5 3 2\n0 2 2 1 3 4\n4 1 1 5 4 2 1\n2 2 3 2 3 6 7\n1 1 1 1 3 6\n"
        "2 2 1 5 4 7\n1 2 1 6 4\n"
    ),
}
EDGES = {"src": [1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 6], "dst": [5, 3, 2, 3, 4, 5, 4, 6, 7, 6, 7]}
WEIGHTS = [1, 2, 1, 2, 1, 3, 2, 2, 5, 2, 6]


@pytest.mark.parametrize("kind", MANUAL)
@pytest.mark.parametrize("ending", ["", ".gz", ".zst"])
@pytest.mark.parametrize("size", [1, 7, 1 << 21])
def test_the_manual(tmp_path, monkeypatch, kind, ending, size):
    monkeypatch.setattr(text, "BLOCK_BYTES", size)
    edges, record = converted(write_compressed(tmp_path / f"a.graph{ending}", MANUAL[kind]))
    assert edges == EDGES | ({"weight": WEIGHTS} if kind == "edge weights" else {})
    assert record["directed"] is False


def test_comments_and_vertices_without_edges(tmp_path):
    path = write_compressed(tmp_path / "a.metis", "% a\n4 1 0\n\n% b\n4\n% c\n\n2\r\n\n\n% d\n")
    edges, record = converted(path)
    assert edges == {"src": [2, 1, 3], "dst": [4, 1, 3]}
    assert record["isolated"] == 2


@given(graphs(), st.booleans(), st.sampled_from(["", "1", "11", "111"]), st.integers(30, 300))
def test_random_graphs(tmp_path_factory, graph, ends, form, size):
    """Random graphs are read back from lines of any length, cut into blocks anywhere."""
    src, dst, vertices, _ = graph
    edges = {(min(u, v), max(u, v)) for u, v in zip(src.tolist(), dst.tolist(), strict=True)}
    edges = {(u, v): 100 * u + v for u, v in edges if u != v}
    rows: list[list[int]] = [[9] * (form.count("1") - 1) for _ in range(vertices)]
    for (u, v), weight in edges.items():
        for one, other in ((u, v), (v, u)):
            rows[one] += [other + 1, weight] if form else [other + 1]
    lines = [f"{vertices} {len(edges)} {form}", *(" ".join(map(str, row)) for row in rows)]
    path = tmp_path_factory.mktemp("metis") / "a.graph"
    path.write_text("\n".join(lines) + ("\n" if ends or not rows[-1] else ""))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "BLOCK_BYTES", size)
        columns, record = converted(path)
    values = columns.get("weight", [edges.get((u - 1, v - 1), 0) for u, v in _pairs(columns)])
    assert {
        (u - 1, v - 1): weight
        for (u, v), weight in zip(_pairs(columns), values, strict=True)
        if u != v
    } == edges
    assert record["isolated"] == vertices - len({end for edge in edges for end in edge})


def _pairs(columns):
    return list(zip(columns["src"], columns["dst"], strict=True))


REFUSED = [
    ("", "ends before its header"),
    ("3 x\n", "line 1: the header must give the numbers of vertices and edges"),
    ("2 1 5\n2\n1\n", "line 1: '5' is not a format"),
    ("% a\n2 1\n2\nx\n", "line 4: 'x' is not a number"),
    ("2 1\n2\n0x1\n", "line 3: '0x1' is not a number"),
    ("% a\n2 1\n% b\n0\n1\n", "line 4: there is no vertex 0: they are numbered from 1 to 2"),
    ("2 1\n2\n3\n", "line 3: there is no vertex 3"),
    ("2 1\n2\n-1\n", "line 3: there is no vertex -1"),
    ("2 1\n2\n1\n2\n", "line 4: more lines than the 2 vertices of the header"),
    ("3 1\n2\n1\n", "2 lines of vertices, but its header promises 3"),
    ("2 2\n2\n1\n", "2 neighbours, but its header promises 2 edges, two each"),
    (
        "3 2\n2 3\n1\n\n",
        "2 edges are in the line of their smaller vertex, and 1 in the line of the larger",
    ),
    ("2 1 1\n2\n1 5\n", "line 2: no weight follows '2'"),
    ("2 1 1\n2 5\n1", "line 3: no weight follows '1'"),
    (
        "2 1 010 99999999999999999999\n1 2\n1 1\n",
        "line 1: the header must give .*: '99999999999999999999'",
    ),
    ("2 1 010 4611686018427387904\n1 2\n1 1\n", "the line of vertex 1 has 2 words, but its"),
    (
        "2 0 010 5\n1 2\n1 1\n",
        "the line of vertex 1 has 2 words, but its header promises 5 before",
    ),
    (
        f"{'9' * 5000} 1\n2\n1\n",
        "line 1: the header must give .*: '99999999999999999999...' (5,000",
    ),
    (f"2 {'9' * 5000}\n2\n1\n", "line 1: the header must give the numbers of vertices and edges"),
    (
        f"2 1\n{'9' * 5000}\n1\n",
        "line 2: '99999999999999999999...' (5,000 characters) is not a number",
    ),
    (
        "9000000000 1\n2\n1\n",
        "line 1: the header promises 9,000,000,000 vertices, one per line, but the file",
    ),
    ("3 2\n2 3\n1\n2\n", "the lines of the two ends of an edge do not hold the same edges"),
    ("2 1 1\n2 5\n1 6\n", "the lines of the two ends of an edge do not hold the same edges and w"),
    ("2 1\n" + "1" * (3 << 20), "line 2: a word of the line is longer than 1,048,576 bytes"),
    ("2 1\n2\n1\n%" + " 1" * (3 << 20), "line 4: a comment is longer than 1,048,576 bytes"),
]


@pytest.mark.parametrize(("text", "reason"), REFUSED, ids=range(len(REFUSED)))
def test_refused(tmp_path, text, reason):
    path = tmp_path / "a.graph"
    path.write_text(text)
    with pytest.raises(InputError) as refused:
        converted(path)
    assert re.search(re.escape(reason).replace(r"\.\*", ".*"), str(refused.value))
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_comments_without_an_end(tmp_path, monkeypatch):
    """A file that begins with comments without an end is refused: the header has to come within 8
    MiB.
    """
    monkeypatch.setattr(text, "HEADER_BYTES", 1000)
    path = tmp_path / "a.graph"
    path.write_text("%\n" * 490 + "2 1\n2\n1\n")
    assert converted(path)[0] == {"src": [1], "dst": [2]}
    path.write_text("%\n" * 510 + "2 1\n2\n1\n")
    with pytest.raises(InputError, match="line 502: the first 1,000 bytes hold no header"):
        converted(path)
