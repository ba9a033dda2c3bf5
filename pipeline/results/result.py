"""Results: a folder of Parquet files, and the run's record beside it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ...kernels.base.graph import UNREACHED
from ...partition.disk.outputs import facts_of, mark
from ...partition.errors import InputError, one_line
from ...partition.input.arrow import TEXT_BYTES, as_arrow, text_cuts
from ...partition.input.pages import Reading, of_all, reading_of, rows_at_once
from ...partition.store.store import Store
from ..run.execute import Executor
from .names import PARENT_BYTES, Names
from .store_names import names_bytes

COLUMNS = ("vertex", "distance", "parent")
FILE_ROWS = 1 << 21
_WRITER_BYTES = (
    24 << 20
)  # of a Parquet file in the making, by measurement, however short its pieces


@dataclass(frozen=True)
class ResultInfo:
    """The essentials, kept in the files' key-value metadata: a result alone can be validated."""

    graph: str
    source: int | str
    directed: bool
    max_depth: int | None
    version: str


def schema_of(names: Names) -> pa.Schema:
    return pa.schema(
        [
            pa.field("vertex", names.id_type, nullable=False),
            pa.field("distance", pa.int32()),
            pa.field("parent", names.id_type),
        ]
    )


def batches_of(
    names: Names, piece: int, distance: NDArray[np.int32], parent: NDArray[np.uint32]
) -> Iterator[pa.RecordBatch]:
    """The rows of one piece of the vertices: at once, unless their parents have long names."""
    vertex, at = names.piece(piece)
    hops, parents, none = distance[at], parent[at], parent[at] == UNREACHED
    widths = names.widths(np.where(none, np.uint32(0), parents))
    cuts = [0, len(at)] if widths is None else text_cuts(np.where(none, 0, widths), PARENT_BYTES)
    for start, stop in pairwise(cuts):
        rows = slice(start, stop)
        columns = [
            vertex[rows],
            as_arrow(hops[rows], hops[rows] < 0),
            names.decode(as_arrow(parents[rows], none[rows])),
        ]
        yield pa.record_batch(columns, schema=schema_of(names))


def write_result(
    folder: Path,
    names: Names,
    distance: NDArray[np.int32],
    parent: NDArray[np.uint32],
    info: ResultInfo,
    executor: Executor,
    at_once: int | None = None,
    projected_bytes: int = 0,
) -> None:
    """Write ``vertex``, ``distance``, ``parent``, every vertex once, by rising id.

    at_once: files that are written at the same time. projected_bytes: held meanwhile.
    """
    schema = schema_of(names).with_metadata(mark("result", **asdict(info)))
    pieces = names.pieces
    parts = _parts(pieces)

    def write_file(number: int) -> None:
        with pq.ParquetWriter(
            folder / f"part-{number:05}.parquet",
            schema,
            compression="snappy",
            use_dictionary=["distance"],  # pyright: ignore[reportArgumentType] - documented
        ) as writer:
            for piece in parts[number]:
                for batch in batches_of(names, piece, distance, parent):
                    writer.write_batch(batch, row_group_size=max(1, len(batch)))

    executor.step("write", write_file, range(len(parts)), projected_bytes, at_once=at_once)


def _parts(pieces: Sequence[int]) -> list[range]:
    """The pieces of each file: at most FILE_ROWS vertices, or one piece.

    >>> _parts([1 << 20] * 3 + [1 << 22])
    [range(0, 2), range(2, 3), range(3, 4)]
    """
    parts: list[range] = []
    rows = FILE_ROWS
    for i, more in enumerate(pieces):
        if rows + more > FILE_ROWS:
            parts.append(range(i, i))
            rows = 0
        parts[-1] = range(parts[-1].start, i + 1)
        rows += more
    return parts


def writing_bytes(store: Store, tasks: int) -> int:
    """What writing the result of a search of a store holds, so many files at once, distances and
    parents included.
    """
    return store.info.vertices * (4 + 4) + names_bytes(store, tasks) + tasks * _WRITER_BYTES


@dataclass(frozen=True)
class Result:
    """A result that was opened."""

    files: tuple[Path, ...]
    schema: pa.Schema
    info: ResultInfo | None
    rows: int
    bytes: int

    def batches(self, rows: int, columns: tuple[str, ...] = COLUMNS) -> Iterator[pa.RecordBatch]:
        """Some columns in batches of about so many rows; of fewer, about TEXT_BYTES, where ids are
        long.
        """
        some: list[pa.RecordBatch] = []
        for batch in self._read(rows, columns):
            some.append(batch)
            held = sum(part.num_rows for part in some), sum(part.nbytes for part in some)
            if held[0] >= rows or held[1] >= TEXT_BYTES:
                yield pa.concat_batches(some)
                some = []
        if some:
            yield pa.concat_batches(some)

    def _read(self, rows: int, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
        for path in self.files:
            try:
                with pq.ParquetFile(
                    path, pre_buffer=False, page_checksum_verification=True
                ) as file:
                    for group in range(file.num_row_groups):
                        fitting = rows_at_once(path, file.metadata, group, columns, rows)
                        yield from file.iter_batches(
                            fitting, row_groups=[group], columns=list(columns), use_threads=False
                        )
            except (pa.ArrowException, OSError) as error:
                raise InputError(f"{path}: cannot be read: {one_line(error)}") from error

    def reading(self, rows: int) -> Reading:
        """What ``batches`` of so many rows hold."""
        metadata = ((str(path), pq.read_metadata(path)) for path in self.files)
        return of_all(reading_of(path, facts, COLUMNS, rows) for path, facts in metadata)


def open_result(path: str | os.PathLike) -> Result:
    """Open a folder (or file) of results; reads footers only.

    Raises InputError if it holds no Parquet with the three columns.
    """
    path = Path(path)
    files = tuple(sorted(path.glob("*.parquet"))) if path.is_dir() else (path,)
    if not files or not all(file.is_file() for file in files):
        raise InputError(f"{path}: no result here: no folder with Parquet files, and no file")
    rows, size, schema, info = 0, 0, None, None
    for file in files:
        try:
            metadata = pq.read_metadata(file)
        except (pa.ArrowException, OSError) as error:
            told = one_line(error)
            raise InputError(f"{file}: not a Parquet file, or a damaged one: {told}") from error
        schema = metadata.schema.to_arrow_schema()
        missing = set(COLUMNS) - set(schema.names)
        if missing:
            raise InputError(f"{file}: no result: column {', '.join(sorted(missing))} is missing")
        if not pa.types.is_integer(schema.field("distance").type):
            raise InputError(f"{file}: no result: column 'distance' does not hold integers")
        info = info or _info(schema.metadata)
        rows += metadata.num_rows
        size += file.stat().st_size
    assert schema is not None
    return Result(files, schema, info, rows, size)


def _info(metadata: dict[bytes, bytes] | None) -> ResultInfo | None:
    """The essentials, None where another program has dropped them."""
    facts = facts_of(metadata, "result")
    try:
        return None if facts is None else ResultInfo(**facts)
    except TypeError:
        return None
