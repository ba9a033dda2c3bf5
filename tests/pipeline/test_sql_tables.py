"""Results as tables of a database."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import delegraph

EDGES = [(1, 2), (2, 3), (5, 6)]


def test_tables_of_duckdb():
    """Results are joined by their vertices, as often as SQL names them; a name is replaced."""
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    with delegraph.open(EDGES) as graph:
        ranks, parts = graph.pagerank(), graph.components()
        reader = parts.table.to_reader()
        delegraph.register(connection, ranks=ranks, parts=parts, read=reader)
    asked = (
        "select component, sum(pagerank) from ranks join {} using (vertex) group by 1 order by 1"
    )
    for parts_name in ("parts", "parts", "read", "read"):
        found = connection.sql(asked.format(parts_name)).fetchall()
        assert [component for component, _ in found] == [1, 5]
        assert sum(rank for _, rank in found) == pytest.approx(1)
    delegraph.register(connection, parts=pa.table({"x": [7]}))
    assert connection.sql("from parts").fetchall() == [(7,)]


def test_default_connection_of_duckdb():
    duckdb: Any = pytest.importorskip("duckdb")
    delegraph.register(duckdb, hops_of_the_test=delegraph.bfs(EDGES, 1))
    try:
        asked = "select vertex, distance from hops_of_the_test where distance > 1"
        assert duckdb.sql(asked).fetchall() == [(3, 2)]
    finally:
        duckdb.unregister("hops_of_the_test")


def test_tables_of_polars():
    polars = pytest.importorskip("polars")
    context = polars.SQLContext()
    delegraph.register(context, parts=delegraph.components(EDGES))
    assert context.execute("select count(*) from parts").collect().item() == 5


def test_no_tables():
    with pytest.raises(TypeError, match="name the results: register"):
        delegraph.register(pytest.importorskip("duckdb").connect())


def test_what_is_no_table():
    """Nothing is registered if one of the tables is none."""

    class Connection:
        def __init__(self) -> None:
            self.names: list[str] = []

        def register(self, name: str, table: Any) -> None:
            self.names.append(name)

    connection, wrong = Connection(), {"ranks": 3}
    with pytest.raises(
        TypeError, match="ranks is neither a result nor another table: its type is int"
    ):
        delegraph.register(connection, parts=delegraph.components(EDGES), **wrong)  # pyright: ignore
    assert not connection.names
    with pytest.raises(TypeError, match="str has no method 'register'"):
        delegraph.register("graph.db", parts=delegraph.components(EDGES))  # pyright: ignore
