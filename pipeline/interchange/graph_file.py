"""What a format makes of a file: pieces of edges, and what the file says about all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

import pyarrow as pa

from ..run.plan import fits, too_little

STEP = "convert"
EDGES = 1 << 18
"""Edges of a piece, where the format knows how many there are."""

PIECE_BYTES = 96 << 20
"""What a piece holds at most: its text, copies of it, where its words stand, its columns."""

WRITER_BYTES = 96 << 20
"""Of a row group in the making, and its encoded pages."""


class Piece(NamedTuple):
    """Some edges. bytes: of the file. read: their columns; may be called from any thread."""

    bytes: int
    read: Callable[[], pa.RecordBatch]


class GraphFile(Protocol):
    """A graph file that was opened, its header read.

    schema: ``src``, ``dst`` and, where it has them, ``weight``. directed: None where the format
    does not say. bytes: of all pieces. held_bytes: as long as it is open, beside the pieces.
    notes: for the user, on what was chosen.
    """

    schema: pa.Schema
    directed: bool | None
    bytes: int
    held_bytes: int
    notes: tuple[str, ...]

    def pieces(self) -> Iterator[Piece]:
        """All edges, in the file's order."""
        ...

    def isolated(self, edges: int) -> Iterator[pa.RecordBatch]:
        """A self-loop for each vertex without edges, once all pieces were read.

        edges: how many that were. Raises InputError where the file promised other counts.
        """
        ...

    def close(self) -> None: ...


def check_room(need: int, limit: int) -> None:
    """Raises LimitError unless so many bytes fit beside a piece of the file, and its writing."""
    need += PIECE_BYTES + WRITER_BYTES
    if not fits(need, limit):
        raise too_little(STEP, need, limit)


def schema_of(id_type: pa.DataType, weight_type: pa.DataType | None) -> pa.Schema:
    fields = [pa.field(name, id_type, nullable=False) for name in ("src", "dst")]
    if weight_type is not None:
        fields.append(pa.field("weight", weight_type, nullable=False))
    return pa.schema(fields)


def self_loops(ids: pa.Array, schema: pa.Schema) -> pa.RecordBatch:
    """An edge list keeps a vertex without edges as a self-loop, which a build drops; of weight 0.

    >>> schema = schema_of(pa.int64(), pa.float64())
    >>> self_loops(pa.array([7]), schema).to_pylist()
    [{'src': 7, 'dst': 7, 'weight': 0.0}]
    """
    columns = [ids, ids]
    if "weight" in schema.names:
        columns.append(pa.repeat(pa.scalar(0, schema.field("weight").type), len(ids)))
    return pa.record_batch(columns, schema=schema)
