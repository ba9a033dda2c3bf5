"""Files without rows, whose columns and types do not matter."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delegraph.partition.errors import InputError
from delegraph.partition.input.edges import open_edges
from support.outputs import distances_of

EMPTY = {
    "null": pa.table({"src": pa.nulls(0), "dst": pa.nulls(0), "w": pa.nulls(0)}),
    "double": pa.table({"src": pa.array([], pa.float64()), "dst": pa.array([], pa.float64())}),
    "string": pa.table({"src": pa.array([], pa.string()), "dst": pa.array([], pa.date32())}),
    "no column": pa.table({"other": pa.array([], pa.int64())}),
    "two columns": pa.Table.from_arrays([pa.nulls(0)] * 3, names=["src", "src", "dst"]),
}


@pytest.mark.parametrize("kind", EMPTY)
def test_they_refuse_nothing(ok, edge_list, tmp_path, kind):
    """Files without rows refuse nothing, whichever file comes first."""
    edge_list([7, 8], [8, 9], "in/b.parquet", pa.int32(), w=[1.5, 2.5])
    for name in ("a", "c"):
        pq.write_table(EMPTY[kind], tmp_path / "in" / f"{name}.parquet")
    edges = open_edges(tmp_path / "in", weight="w")
    assert (edges.id_type, edges.rows, edges.bounds) == (pa.int32(), 2, (7, 9))
    for graph in (tmp_path / "in", tmp_path / "graph.dg"):
        if graph.name == "graph.dg":
            ok("build", tmp_path / "in", "-o", graph, "--weight", "w")
        run = ok("bfs", graph, "--source", 7, "-o", tmp_path / "out", "--overwrite")
        assert distances_of(tmp_path / "out") == {7: 0, 8: 1, 9: 2}
        if graph.name == "in":
            names = ", ".join(str(tmp_path / "in" / f"{name}.parquet") for name in ("a", "c"))
            notes = [line for line in run.err.splitlines() if "without rows" in line]
            wanted = (
                "2 files without rows are ignored, although their columns are missing or have "
                f"other types: {names}"
            )
            assert notes == ([] if kind == "double" else [wanted])  # which may hold ids


def test_what_pandas_writes_of_an_empty_frame(ok, edge_list, tmp_path):
    pandas = pytest.importorskip("pandas")
    edge_list([7, 8], [8, 9], "in/a.parquet")
    pandas.DataFrame({"src": [], "dst": []}).to_parquet(tmp_path / "in" / "b.parquet")
    pandas.DataFrame({"src": [], "dst": []}, dtype=object).to_parquet(tmp_path / "in/c.parquet")
    pandas.DataFrame().to_parquet(tmp_path / "in" / "d.parquet")
    ok("components", tmp_path / "in", "-o", tmp_path / "out")
    assert open_edges(tmp_path / "in").id_type == pa.int64()


@pytest.mark.parametrize("kind", EMPTY)
def test_all_of_them_are_empty(delegraph, tmp_path, kind):
    (tmp_path / "in").mkdir()
    for name in ("a", "b"):
        pq.write_table(EMPTY[kind], tmp_path / "in" / f"{name}.parquet")
    run = delegraph("info", tmp_path / "in")
    assert run.code == 2
    assert run.err.endswith("zero rows: a graph without vertices cannot be searched\n")


def test_one_row_does_matter(edge_list, tmp_path):
    edge_list([7, 8], [8, 9], "in/a.parquet")
    pq.write_table(pa.table({"src": pa.nulls(1), "dst": [1]}), tmp_path / "in" / "b.parquet")
    with pytest.raises(InputError, match=r"b.parquet: column 'src' holds only nulls"):
        open_edges(tmp_path / "in")
    pq.write_table(pa.table({"other": [1]}), tmp_path / "in" / "b.parquet")
    with pytest.raises(InputError, match=r"b.parquet: no column named 'src'"):
        open_edges(tmp_path / "in")
