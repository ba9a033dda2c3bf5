"""Results opened with pandas and other tools: no id becomes a float."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

import delegraph as dg
from delegraph.pipeline.results import names

pandas = pytest.importorskip("pandas")

BIG = 2**53 + 1
NULLABLE = {
    "bfs": {"distance": "Int32", "parent": "Int64"},
    "bfs together": {"distance": "Int32", "nearest": "Int64"},
    "sssp": {"distance": "Int64", "parent": "Int64"},
    "bfs each": {},
    "components": {},
    "pagerank": {},
}
"""Columns that may hold nulls, and their types, even if a graph has no null; all other columns have
NumPy's types.
"""
ASKED = {
    "bfs": ("bfs", {"source": BIG}),
    "bfs together": ("bfs", {"sources": [BIG], "together": True}),
    "bfs each": ("bfs", {"sources": [BIG]}),
    "sssp": ("sssp", {"source": BIG}),
    "components": ("components", {}),
    "pagerank": ("pagerank", {}),
}


@pytest.fixture(params=["one component", "two components"])
def edges(request, tmp_path):
    """Write edges with ids that doubles do not hold, with and without unreached vertices."""
    far = [7, 8] if request.param == "two components" else [BIG + 4, BIG + 6]
    src, dst = [BIG, BIG + 2, far[0]], [BIG + 2, BIG + 4, far[1]]
    path = tmp_path / "edges.parquet"
    pq.write_table(pa.table({"src": src, "dst": dst, "w": [1, 2, 3]}), path)
    return path


def same_as(frame, table: pa.Table, question: str) -> None:
    """Check each value of a frame, and that column types do not depend on the values."""
    for name in table.column_names:
        values = [None if value is pandas.NA else value for value in frame[name].tolist()]
        if pa.types.is_integer(table[name].type):
            assert values == table[name].to_pylist()
            wanted = NULLABLE[question].get(name, str(table[name].type))
            assert str(frame[name].dtype) == wanted
    assert list(frame.columns) == table.column_names
    assert list(frame.index) == list(range(len(table)))


@pytest.mark.parametrize("question", ASKED)
def test_in_memory_and_of_files(edges, tmp_path, monkeypatch, question):
    """Frames of results in memory, of a folder of files and of each file have the same types and
    values.
    """
    monkeypatch.setattr(names, "ROW_GROUP", 2)
    monkeypatch.setattr("delegraph.pipeline.results.result.file_rows", lambda vertices: 2)
    name, options = ASKED[question]
    with dg.open(edges, weight="w") as graph:
        result = getattr(graph, name)(**options)
        same_as(result.to_pandas(), result.table, question)
        same_as(result.table.to_pandas(), result.table, question)
        result.write(tmp_path / "out")
    table = pq.read_table(tmp_path / "out")
    same_as(pandas.read_parquet(tmp_path / "out"), table, question)
    files = sorted((tmp_path / "out").glob("*.parquet"))
    assert len(files) > 1 or question in ("bfs each", "bfs together")
    for file in files:
        same_as(pandas.read_parquet(file), pq.read_table(file), question)
    for column in NULLABLE[question]:
        alone = pandas.read_parquet(tmp_path / "out", columns=[column])
        assert str(alone[column].dtype) == NULLABLE[question][column]
    assert pandas.read_parquet(tmp_path / "out", columns=["vertex"])["vertex"].dtype == "int64"


def test_unsigned_ids(tmp_path):
    src, dst = pa.array([2**64 - 1, 3], pa.uint64()), pa.array([2**63 + 1, 4], pa.uint64())
    with dg.open(pa.table({"src": src, "dst": dst})) as graph:
        frame = graph.bfs(2**63 + 1).to_pandas()
    assert str(frame["parent"].dtype) == "UInt64"
    assert frame["parent"].dropna().tolist() == [2**63 + 1]
    assert frame["vertex"].dtype == "uint64"


def test_other_ids(tmp_path):
    """Frames have strings and UUIDs as pandas has them."""
    from uuid import UUID

    table = pa.table({"src": ["a", "c"], "dst": ["b", "d"]})
    with dg.open(table) as graph:
        frame = graph.bfs("a").to_pandas()
    assert frame["parent"].dropna().tolist() == ["a"]
    ids = pa.array([UUID(int=value).bytes for value in range(4)], pa.binary(16)).cast(pa.uuid())
    with dg.open(pa.table({"src": ids[:2], "dst": ids[2:]})) as graph:
        frame = graph.bfs(UUID(int=0)).to_pandas()
        graph.bfs(UUID(int=0)).write(tmp_path / "out")
    assert frame["vertex"].tolist() == [UUID(int=value) for value in range(4)]
    assert frame["parent"].dropna().tolist() == [UUID(int=0)]
    assert pandas.read_parquet(tmp_path / "out").equals(frame)


def test_other_readers_see_no_difference(edges, tmp_path):
    duckdb, polars = pytest.importorskip("duckdb"), pytest.importorskip("polars")
    dg.bfs(edges, BIG, output=tmp_path / "out")
    table = pq.read_table(tmp_path / "out")
    rows = table.to_pydict()
    assert table.schema.types == [pa.int64(), pa.int32(), pa.int64()]
    assert pyarrow.dataset.dataset(tmp_path / "out").to_table().to_pydict() == rows
    frame = polars.read_parquet(tmp_path / "out" / "*.parquet")
    assert frame.to_dict(as_series=False) == rows
    assert frame.dtypes == [polars.Int64, polars.Int32, polars.Int64]
    relation = duckdb.sql(f"SELECT * FROM '{tmp_path}/out/*.parquet'")
    assert [str(kind) for kind in relation.types] == ["BIGINT", "INTEGER", "BIGINT"]
    assert relation.fetchall() == list(zip(*rows.values(), strict=True))
    with dg.open(edges) as graph:
        assert graph.bfs(BIG).to_polars().dtypes == [polars.Int64, polars.Int32, polars.Int64]
