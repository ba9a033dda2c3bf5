"""LDBC Graphalytics' graphs are converted, and results are written in the format of its answers."""

from __future__ import annotations

from pathlib import Path

import pytest

import delegraph
from delegraph.partition.errors import InputError
from support.interchange import converted, write_compressed


def graph(folder: Path, vertices: str, edges: str, ending: str = "") -> Path:
    write_compressed(folder / f"a.v{ending}", vertices)
    return write_compressed(folder / f"a.e{ending}", edges)


@pytest.mark.parametrize("ending", ["", ".gz", ".zst"])
def test_edges_and_vertices_without_them(tmp_path, ending):
    edges, record = converted(graph(tmp_path, "30\n7\n-5\n12\n", "7 30\n30 12\n", ending))
    assert edges == {"src": [7, 30, -5], "dst": [30, 12, -5]}
    assert (record["isolated"], record["directed"], record["weighted"]) == (1, None, False)
    assert len(record["inputs"]) == 2


def test_weights(tmp_path):
    edges, record = converted(graph(tmp_path, "1\n2\n3\n", "1 2 0.5\n"))
    assert edges == {"src": [1, 3], "dst": [2, 3], "weight": [0.5, 0.0]}
    assert record["weighted"]


@pytest.mark.parametrize(
    ("vertices", "edges", "reason"),
    [
        ("1\n2\n", "1 2\n2 3\n", r"a\.e, line 2: there is no vertex 3: .*a\.v does not list it"),
        ("1\nx\n", "1 2\n", r"a\.v, line 2: 'x' is not a vertex number"),
        ("1\n2\n1\n", "1 2\n", r"a\.v: vertex 1 is listed twice"),
        ("1\n7\n", "1 007\n", r"a\.e, line 1: '007' is not a plain vertex number, such as 7"),
        ("1\n007\n", "1 7\n", r"a\.v, line 2: '007' is not a plain vertex number, such as 7"),
        (
            f"1\n{'9' * 5000}\n",
            "1 1\n",
            r"a\.v, line 2: '99999999999999999999\.\.\.' \(5,000 ",
        ),
        ("1\n2\n", f"1 {'9' * 5000}\n", r"a\.e, line 1: '99999999999999999999\.\.\.' \(5,000 "),
        ("", "1 2\n", r"a\.v: the file has no vertices"),
        ("1\n2\n", "1 2 3 4\n", r"a\.e, line 1: 4 columns, not 2"),
        ("1\n2\n", "1 2 nan\n", r"a\.e, line 1: 'nan' is not a weight"),
    ],
)
def test_refused(tmp_path, vertices, edges, reason):
    path = graph(tmp_path, vertices, edges)
    with pytest.raises(InputError, match=reason):
        converted(path)
    assert {file.name for file in tmp_path.iterdir()} == {"a.e", "a.v"}


def test_vertices_that_are_missing(tmp_path):
    path = write_compressed(tmp_path / "a.e", "1 2\n")
    with pytest.raises(InputError, match=r"a\.v: missing"):
        converted(path)


def test_text_of_other_results(tmp_path, edge_list):
    """Text of a result has every value, and vertex names that a line cannot tell apart are
    refused.
    """
    edges = edge_list(["a", "b", "d"], ["b", "c", "e"])
    delegraph.pagerank(edges, output=tmp_path / "ranks")
    delegraph.convert(tmp_path / "ranks", tmp_path / "ranks.txt")
    lines = [line.split(" ") for line in (tmp_path / "ranks.txt").read_text().splitlines()]
    assert [vertex for vertex, _ in lines] == list("abcde")
    assert sum(float(value) for _, value in lines) == pytest.approx(1)

    delegraph.bfs(edges, output=tmp_path / "each", sources=["a", "b"])
    with pytest.raises(InputError, match="a value for each vertex"):
        delegraph.convert(tmp_path / "each", tmp_path / "each.txt")
    delegraph.components(edge_list(["a b"], ["c"], "blank.parquet"), output=tmp_path / "blank")
    with pytest.raises(InputError, match="holds a blank"):
        delegraph.convert(tmp_path / "blank", tmp_path / "blank.txt")
    assert not list(tmp_path.glob("blank.txt*"))
