"""A graph file that is open for reading: its edges in pieces, and facts about all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

import pyarrow as pa

from ..run.plan import fits, too_little

STEP = "convert"
EDGES = 1 << 18
"""Number of edges in a piece, if the format tells how many edges there are."""

PIECE_BYTES = 96 << 20
"""Most bytes that a piece holds: its text, copies of it, positions of words, columns."""

WRITER_BYTES = 128 << 20
"""Bytes of an unfinished row group, and of one that is written with its encoded pages."""


class Piece(NamedTuple):
    """A part of a file's edges. bytes: size in the file. read: returns the edges' columns; any
    thread may call it.
    """

    bytes: int
    read: Callable[[], pa.RecordBatch]


class GraphFile(Protocol):
    """A graph file that is open, with its header read.

    schema: ``src``, ``dst`` and, for weighted edges, ``weight``. directed: None if the format does
    not say. bytes: of all pieces. held_bytes: memory held while the file is open, without pieces.
    notes: lines for the user about chosen types and columns.
    """

    schema: pa.Schema
    directed: bool | None
    bytes: int
    held_bytes: int
    notes: tuple[str, ...]

    def pieces(self) -> Iterator[Piece]:
        """Yield all edges, in the file's order."""
        ...

    def isolated(self, edges: int) -> Iterator[pa.RecordBatch]:
        """Yield a self-loop for each vertex without edges. Called after all pieces were read.

        edges: number of edges in the pieces. Raises InputError if the file contradicts itself, such
        as by counts in its header.
        """
        ...

    def close(self) -> None: ...


def check_room(need: int, limit: int) -> None:
    """Raise LimitError unless ``need`` bytes fit beside a piece of the file and the writing of the
    output.
    """
    need += PIECE_BYTES + WRITER_BYTES
    if not fits(need, limit):
        raise too_little(STEP, need, limit)


def schema_of(id_type: pa.DataType, weight_type: pa.DataType | None) -> pa.Schema:
    fields = [pa.field(name, id_type, nullable=False) for name in ("src", "dst")]
    if weight_type is not None:
        fields.append(pa.field("weight", weight_type, nullable=False))
    return pa.schema(fields)


def self_loops(ids: pa.Array, schema: pa.Schema) -> pa.RecordBatch:
    """Return a self-loop of weight 0 for each id. An edge list keeps a vertex without edges as a
    self-loop; a build drops the loop and keeps the vertex.

    >>> schema = schema_of(pa.int64(), pa.float64())
    >>> self_loops(pa.array([7]), schema).to_pylist()
    [{'src': 7, 'dst': 7, 'weight': 0.0}]
    """
    columns = [ids, ids]
    if "weight" in schema.names:
        columns.append(pa.repeat(pa.scalar(0, schema.field("weight").type), len(ids)))
    return pa.record_batch(columns, schema=schema)
