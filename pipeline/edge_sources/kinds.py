"""The kinds of graphs in memory, and their types for signatures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    from numpy.typing import NDArray


class ArrowStream(Protocol):
    """A table that gives its columns as an Arrow stream: of Arrow, pandas, Polars or DuckDB."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...


class SparseMatrix(Protocol):
    """A sparse matrix or a sparse array of SciPy."""

    @property
    def shape(self) -> Any: ...

    def tocoo(self, copy: bool = ...) -> Any: ...


class NetworkXGraph(Protocol):
    """A graph of NetworkX."""

    def is_directed(self) -> bool: ...
    def is_multigraph(self) -> bool: ...
    def number_of_edges(self) -> int: ...


Pairs: TypeAlias = "Iterable[tuple[Any, ...]] | Iterable[list[Any]] | NDArray[Any]"
"""Edges as ``(u, v)`` or ``(u, v, weight)``, or a NumPy array of the shape (m, 2)."""

EdgeSource: TypeAlias = "ArrowStream | SparseMatrix | NetworkXGraph | Pairs"
"""A graph in memory."""

Kind = Literal["table", "relation", "matrix", "networkx", "array", "pairs"]


def kind_of(source: Any) -> Kind:
    """Return the kind of a graph in memory. Raises TypeError for any other object."""
    modules = [base.__module__ for base in type(source).__mro__]
    libraries = {module.partition(".")[0] for module in modules}
    if "networkx" in libraries and hasattr(source, "is_multigraph"):
        return "networkx"
    if any(module.startswith("scipy.sparse") for module in modules) and hasattr(source, "tocoo"):
        return "matrix"
    if libraries & {"duckdb", "_duckdb"}:
        return "relation"
    if hasattr(source, "__arrow_c_stream__"):
        return "table"
    if "numpy" in libraries and hasattr(source, "dtype"):
        return "array"
    no_pairs = isinstance(source, (str, bytes, bytearray, Mapping))
    if isinstance(source, Set) or (isinstance(source, Iterable) and not no_pairs):
        return "pairs"  # a set first: NetworkX's edges are a mapping, too
    if "polars" in libraries and hasattr(source, "collect"):
        raise TypeError(f"{type(source).__name__} has no rows yet: give frame.collect()")
    raise TypeError(
        f"{type(source).__name__} is not a path, a table, a sparse matrix, a NetworkX graph or "
        "pairs (u, v): convert it to one of these, for example to an Arrow table with a column for "
        "each end of an edge"
    )


def directed_of(source: Any) -> bool | None:
    """Return whether a graph in memory is directed; None if the graph does not say."""
    if isinstance(source, str) or kind_of(source) != "networkx":
        return None
    return source.is_directed()
