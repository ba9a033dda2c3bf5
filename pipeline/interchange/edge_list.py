"""Conversion of another program's graph file to a Parquet edge list.

The file is read piece by piece, parsed by all threads, and written in the file's order, so the
output depends on the file alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ...partition.disk.outputs import mark
from ...partition.disk.system_errors import naming_file
from ..run.execute import Executor
from ..run.plan import held_now
from .graph_file import PIECE_BYTES, STEP, WRITER_BYTES, GraphFile, check_room, schema_of

GROUP_ROWS = 1 << 20
GROUP_BYTES = 32 << 20
FILE_ROWS = 1 << 26


def write_edge_list(
    graph: GraphFile, folder: Path, executor: Executor, limit: int, keeps_loops: bool = False
) -> tuple[int, int]:
    """Write a graph file's edges into a folder. Returns the number of rows, and the number of rows
    that are self-loops for isolated vertices.

    limit: bytes of memory. keeps_loops: whether self-loops of the edge list will be kept; edges
    without weights get 1 then, and self-loops for isolated vertices 0, which is told from them.
    Raises LimitError if the limit is too small, InputError if the file is wrong.
    """
    isolated, schema = 0, graph.schema
    adds_weights = keeps_loops and "weight" not in schema.names
    if adds_weights:
        schema = schema_of(schema.field("src").type, pa.int64())

    def weighing(batch: pa.RecordBatch, weight: int) -> pa.RecordBatch:
        if not adds_weights:
            return batch
        weights = pa.repeat(pa.scalar(weight, pa.int64()), batch.num_rows)
        return pa.record_batch([*batch.columns, weights], schema=schema)

    with _Writer(folder, schema) as writer:
        for batch in _edges(graph, executor, limit):
            writer.write(weighing(batch, 1))
        for batch in graph.isolated(writer.rows):
            isolated += batch.num_rows
            writer.write(weighing(batch, 0))
    return writer.rows, isolated


def _edges(graph: GraphFile, executor: Executor, limit: int) -> Iterator[pa.RecordBatch]:
    """Yield the edges. Where memory allows it, the next pieces are parsed while the last ones are
    written.
    """
    check_room(graph.held_bytes, limit)
    base_bytes = graph.held_bytes + WRITER_BYTES
    fitting = (limit - held_now() - base_bytes) // PIECE_BYTES
    held = min(2 * executor.threads, max(1, fitting))
    projected = held_now() + base_bytes + held * PIECE_BYTES
    return executor.stream(
        STEP,
        lambda piece: piece.read(),
        graph.pieces(),
        projected,
        total=graph.bytes,
        held=held,
        size_of=lambda piece: piece.bytes,
    )


class _Writer:
    """Writer of Parquet files of about FILE_ROWS rows, in row groups of about GROUP_ROWS or
    GROUP_BYTES.
    """

    def __init__(self, folder: Path, schema: pa.Schema) -> None:
        self._folder = folder
        self._schema = schema.with_metadata(mark("edge list"))
        self._strings = [field.name for field in schema if pa.types.is_string(field.type)]
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_rows = self._waiting_bytes = 0
        self._file: pq.ParquetWriter | None = None
        self._files = 0
        self._thread = ThreadPoolExecutor(1)
        self._writing: Future[None] | None = None  # a group, while the next one comes
        self.rows = 0

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, kind: object, *error: object) -> None:
        try:
            if kind is None:
                self._write_group()
            self._wait()
        finally:
            self._thread.shutdown()
            self._close()

    def _close(self) -> None:
        if self._file is not None:
            with naming_file(self._path):
                self._file.close()

    @property
    def _path(self) -> Path:
        """Return the path of the file that is being written."""
        return self._folder / f"part-{self._files - 1:05}.parquet"

    def write(self, batch: pa.RecordBatch) -> None:
        self.rows += batch.num_rows
        self._waiting.append(batch)
        self._waiting_rows += batch.num_rows
        self._waiting_bytes += batch.nbytes
        if self._waiting_rows >= GROUP_ROWS or self._waiting_bytes >= GROUP_BYTES:
            self._write_group()

    def _write_group(self) -> None:
        group = pa.Table.from_batches(self._waiting, self._schema)
        self._waiting = []
        self._waiting_rows = self._waiting_bytes = 0
        self._wait()
        if not len(group):
            return
        if self._file is None or self.rows > self._files * FILE_ROWS:
            self._close()
            self._files += 1
            self._file = pq.ParquetWriter(
                self._path,
                self._schema,
                use_dictionary=self._strings,  # pyright: ignore[reportArgumentType] - documented
                compression="snappy",
            )
        self._writing = self._thread.submit(self._file.write_table, group, len(group))

    def _wait(self) -> None:
        """Wait until the last group is written."""
        if self._writing is not None:
            writing, self._writing = self._writing, None
            with naming_file(self._path):
                writing.result()
