"""Results as tables of a database in the same process."""

from __future__ import annotations

from typing import Any, Protocol

import pyarrow as pa

from .edge_sources.kinds import ArrowStream
from .python_side.public import public
from .result import Result


class Connection(Protocol):
    """A connection of DuckDB, or another object that takes tables by name."""

    def register(self, name: str, table: Any, /) -> Any: ...


@public
def register(connection: Connection, **tables: Result | ArrowStream) -> None:
    """Make results tables of a database, so that SQL may name them.

        delegraph.register(connection, ranks=graph.pagerank(), parts=graph.components())
        connection.sql("select component, max(pagerank) from ranks join parts using (vertex) ...")

    Nothing is copied: the database reads the result's Arrow table. A name that exists is replaced.

    Args:
        connection: a connection of DuckDB, the module ``duckdb`` for its default connection, or
            another object with such a method ``register``, as Polars' ``SQLContext``.
        tables: results, or other tables that are Arrow streams, by the names that they get.

    Raises:
        TypeError: for a connection without ``register``, for what is no table, and if there are no
            tables.
    """
    if not tables:
        raise TypeError("name the results: register(connection, ranks=result)")
    if not hasattr(connection, "register"):
        raise TypeError(
            f"{type(connection).__name__} has no method 'register': give a connection of DuckDB"
        )
    made = {name: _table_of(name, table) for name, table in tables.items()}
    for name, table in made.items():
        connection.register(name, table)


def _table_of(name: str, table: Any) -> pa.Table:
    """Return a table that can be read several times, from any number of threads."""
    if isinstance(table, Result):
        return table.table
    if isinstance(table, pa.Table):
        return table
    if hasattr(table, "__arrow_c_stream__"):
        return pa.table(table)
    raise TypeError(
        f"{name} is neither a result nor another table: its type is {type(table).__name__}"
    )
