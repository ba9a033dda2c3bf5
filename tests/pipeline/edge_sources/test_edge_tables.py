"""Edge lists that are tables in memory."""

from __future__ import annotations

import tempfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import delegraph
from delegraph.partition.errors import InputError
from support.graphs import random_edges
from support.outputs import digest


def pandas_frame(table: pa.Table):
    return table.to_pandas()


def polars_frame(table: pa.Table):
    return pytest.importorskip("polars").from_arrow(table)


def arrow_table(table: pa.Table):
    return table


def arrow_stream(table: pa.Table):
    return pa.RecordBatchReader.from_batches(table.schema, table.to_batches(100))


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path, monkeypatch):
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    yield
    assert not list((tmp_path / "temporary").iterdir())


@pytest.mark.parametrize("kind", [arrow_table, arrow_stream, pandas_frame, polars_frame])
@pytest.mark.parametrize("strings", [False, True])
def test_the_same_store(tmp_path, kind, strings):
    src, dst = random_edges(1, 200, 900)
    ends = [[f"v{x:04}" for x in end] if strings else end for end in (src, dst)]
    table = pa.table([pa.array(end) for end in ends], names=["src", "dst"])
    pq.write_table(table, tmp_path / "edges.parquet")
    delegraph.build(tmp_path / "edges.parquet", tmp_path / "wanted.dg")
    delegraph.build(kind(table), tmp_path / "found.dg")
    with delegraph.open(tmp_path / "wanted.dg") as one, delegraph.open(kind(table)) as other:
        source = table["src"][0].as_py()
        assert one.bfs(source).distance.equals(other.bfs(source).distance)
        frames = (graph.components().to_pandas() for graph in (one, other))
        assert next(frames).equals(next(frames))
    if not (strings and kind in (pandas_frame, polars_frame)):  # whose strings are large ones
        for folder in (tmp_path / "wanted.dg", tmp_path / "found.dg"):
            (folder / "manifest.json").unlink()  # which names the input, by its pages
        assert digest(tmp_path / "wanted.dg") == digest(tmp_path / "found.dg")


@pytest.mark.parametrize("kind", [arrow_table, arrow_stream, pandas_frame, polars_frame])
def test_other_columns_are_left_alone(kind):
    """Other columns of a table are left alone, even columns that Parquet cannot hold."""
    table = pa.table({"src": [0, 1], "dst": [1, 2], "w": [3, 4], "why": [{}, {}]})
    if kind is pandas_frame:
        frame = kind(table)
        frame["why"] = ["x", 3]
        frame.insert(0, "why", [1, 2], allow_duplicates=True)
    else:
        frame = kind(table)
    with delegraph.open(frame, weight="w") as graph:
        assert graph.sssp(0)["distance"].to_pylist() == [0, 3, 7]


def test_categories_of_polars():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"src": ["a", "b"], "dst": ["b", "c"]})
    for kind in (polars.Categorical, polars.Enum(["a", "b", "c"])):
        with delegraph.open(frame.cast(kind)) as graph:
            assert graph.bfs("a").distance.to_pylist() == [0, 1, 2]


def test_what_is_no_edge_list(tmp_path):
    for wrong in ({"src": [1], "dst": [2]}, 3, b"edges", None):
        with pytest.raises(TypeError, match="is not a path, a table, a sparse matrix"):
            delegraph.build(wrong, tmp_path / "graph.dg")  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match="no column named 'src'; it has a, b"):
        delegraph.open(pa.table({"a": [1], "b": [2]}))
    with pytest.raises(InputError, match="no column named 'w'; it has src, dst"):
        delegraph.open(pa.table({"src": [1], "dst": [2]}), weight="w")
    with pytest.raises(TypeError, match="is not a path, a table, a sparse matrix"):
        delegraph.components({1: 2})  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="only questions, open and build take a table"):
        delegraph.validate(pa.table({"src": [1], "dst": [2]}), "out")  # pyright: ignore
    with pytest.raises(InputError, match="limit"):
        delegraph.open(pa.table({"src": [1], "dst": [2]}), memory_limit="1MB")
    assert [path.name for path in tmp_path.iterdir()] == ["temporary"]
