"""Matrix Market's coordinate format."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given

import delegraph
from delegraph.partition.errors import InputError, LimitError
from support.graphs import graphs
from support.interchange import converted, write_compressed

BANNER = "%%MatrixMarket matrix coordinate"


@pytest.mark.parametrize("ending", ["", ".gz", ".zst"])
def test_what_the_banner_says(tmp_path, ending):
    path = tmp_path / f"a.mtx{ending}"
    write_compressed(path, f"{BANNER} pattern symmetric\n% by hand\n\n3 3 2\n2 1\n3 2\n")
    edges, record = converted(path)
    assert edges == {"src": [2, 3], "dst": [1, 2]}
    assert (record["directed"], record["weighted"], record["isolated"]) == (False, False, 0)
    write_compressed(path, f"{BANNER.upper()} Real General\n4 4 2\n  1 3  -1.5e0\n% late\n3 1 2\n")
    edges, record = converted(path)
    assert edges == {"src": [1, 3, 2, 4], "dst": [3, 1, 2, 4], "weight": [-1.5, 2, 0, 0]}
    assert (record["directed"], record["weighted"], record["isolated"]) == (True, True, 2)
    write_compressed(path, f"{BANNER} integer general\n2 2 1\n2 1 7\n")
    assert converted(path)[0] == {"src": [2], "dst": [1], "weight": [7]}


@given(graphs())
def test_random_graphs(tmp_path_factory, graph):
    src, dst, vertices, directed = graph
    path = tmp_path_factory.mktemp("mtx") / "a.mtx"
    symmetry = "general" if directed else "symmetric"
    lines = [f"{u + 1} {v + 1}" for u, v in zip(src, dst, strict=True)]
    path.write_text(
        "\n".join([f"{BANNER} pattern {symmetry}", f"{vertices} {vertices} {len(lines)}", *lines])
    )
    edges, record = converted(path)
    isolated = np.setdiff1d(np.arange(vertices), np.concatenate([src, dst]))
    assert edges["src"] == [*(src + 1), *(isolated + 1)]
    assert edges["dst"] == [*(dst + 1), *(isolated + 1)]
    assert record["isolated"] == len(isolated)


REFUSED = [
    ("1 2\n", "line 1: not a Matrix Market file"),
    ("%%MatrixMarket matrix array real general\n", "line 1: not a Matrix Market file"),
    (f"{BANNER} complex general\n", "line 1: entries are 'complex'"),
    (f"{BANNER} real skew-symmetric\n", "line 1: the matrix is 'skew-symmetric'"),
    (f"{BANNER} real hermitian\n", "line 1: the matrix is 'hermitian'"),
    (f"{BANNER} pattern general\n%\n", "the file ends before the line with its sizes"),
    (f"{BANNER} pattern general\n%\n3 4 1\n", "line 3: 3 rows and 4 columns"),
    (
        f"{BANNER} pattern general\n3 -3 1\n",
        "line 2: the line must hold the numbers of rows, columns and entries",
    ),
    (
        f"{BANNER} pattern general\n3 3 {'9' * 5000}\n",
        "line 2: the line must hold the numbers of rows, columns and entries",
    ),
    (
        f"{BANNER} pattern general\n3 3\n",
        "line 2: the line must hold the numbers of rows, columns and entries, not",
    ),
    (f"{BANNER} pattern general\n3 3 +1\n1 +2\n", "line 3: '+2' is not a vertex number"),
    (f"{BANNER} pattern general\n3 3 1\n1 0x2\n", "line 3: '0x2' is not a vertex number"),
    (f"{BANNER} pattern general\n2 2 1\n1 {'7' * 5000}\n", "line 3: '77777777777777777777...'"),
    (f"{BANNER} integer general\n2 2 1\n1 2 {'7' * 5000}\n", "line 3: '77777777777777777777..."),
    (f"{BANNER} pattern {'x' * 5000}\n", "line 1: the matrix is 'xxxxxxxxxxxxxxxxxxxx...'"),
    (f"{BANNER} pattern general\n2 2 1\n0 1\n", "line 3: there is no vertex 0"),
    (f"{BANNER} pattern general\n2 2 1\n1 3\n", "there is no vertex 3: they are numbered from 1"),
    (f"{BANNER} pattern general\n2 2 3\n1 2\n", "1 entries, but its header promises 3"),
    (f"{BANNER} pattern general\n2 2 1\n1 2\n2 1\n", "2 entries, but its header promises 1"),
    (f"{BANNER} pattern general\n2 2 1\n1 2 3\n", "line 3: 3 columns, not 2"),
    (f"{BANNER} real general\n2 2 1\n1 2 nan\n", "line 3: 'nan' is not a weight"),
    (f"{BANNER} integer general\n2 2 1\n1 2 .5\n", "line 3: '.5' is not a 64-bit integer"),
]


@pytest.mark.parametrize(("text", "reason"), REFUSED, ids=range(len(REFUSED)))
def test_refused(tmp_path, text, reason):
    path = tmp_path / "a.mtx"
    path.write_text(text)
    with pytest.raises(InputError) as refused:
        converted(path)
    assert reason in str(refused.value)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_a_header_that_promises_more_vertices_than_memory_holds(tmp_path):
    path = tmp_path / "a.mtx"
    path.write_text(f"{BANNER} pattern general\n{10**15} {10**15} 1\n1 2\n")
    with pytest.raises(LimitError, match="memory limit"):
        converted(path, max_unpacked="none")


def test_a_header_that_promises_more_vertices_than_the_file_is_large(tmp_path):
    """A header that promises more vertices than the file is large is refused: a file of 69 bytes
    would make very many rows.
    """
    path = tmp_path / "a.mtx"
    path.write_text(f"{BANNER} pattern general\n900000000 900000000 1\n1 2\n")
    with pytest.raises(
        InputError, match=r"line 2: the header promises 900,000,000 .*max_unpacked="
    ):
        converted(path)
    path.write_text(f"{BANNER} pattern general\n50 50 1\n1 2\n")
    with pytest.raises(InputError, match="line 2: the header promises 50 vertices"):
        converted(path, max_unpacked=399)
    assert converted(path, max_unpacked=400)[1]["rows"] == 49


def test_positions_in_any_spelling(tmp_path):
    """Positions may have leading zeros, as Fortran writes them: rows and columns are counted, so
    002 is 2.
    """
    path = tmp_path / "a.mtx"
    path.write_text(f"{BANNER} integer general\n003 003 002\n001 002 007\n3 1 -0\n")
    assert converted(path)[0] == {"src": [1, 3], "dst": [2, 1], "weight": [7, 0]}


def test_vertices_without_edges_are_told_from_loops_that_are_kept(tmp_path):
    """An edge list for self-loops that are kept has weights: 0 for a vertex without edges."""
    path = tmp_path / "a.mtx"
    path.write_text(f"{BANNER} pattern symmetric\n4 4 2\n2 1\n3 3\n")
    delegraph.convert(path, tmp_path / "edges", loops="keep")
    table = pq.read_table(tmp_path / "edges")
    assert table.to_pydict() == {"src": [2, 3, 4], "dst": [1, 3, 4], "weight": [1, 1, 0]}
    degrees = delegraph.degree(
        tmp_path / "edges", unweighted=True, weight="weight", loops="keep", device="cpu"
    ).table
    assert degrees["degree"].to_pylist() == [1, 1, 2, 0]
    weighted = path.with_name("b.mtx")
    weighted.write_text(f"{BANNER} integer general\n3 3 2\n2 1 7\n2 2 5\n")
    delegraph.convert(weighted, tmp_path / "weighted", loops="keep")
    assert pq.read_table(tmp_path / "weighted")["weight"].to_pylist() == [7, 5, 0]
