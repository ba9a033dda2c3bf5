"""Results: a folder of Parquet files, and the run's record beside it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ..kernels.graph import UNREACHED
from ..kernels.team import Team
from ..partition.arrow import as_arrow, as_numpy, valid
from ..partition.edges import is_string
from ..partition.errors import InputError
from ..partition.ids import Ids, find_id
from ..partition.outputs import facts_of, mark, new_folder
from ..partition.store import Store
from .execute import Executor

ROW_GROUP = 1 << 20
FILE_ROWS = 1 << 21


@dataclass(frozen=True)
class VertexNames:
    """The vertices of a graph by rising user id, and what a search calls them.

    index: uint32 (n,); place in the search's arrays of each vertex.
    decode: user ids, as ``id_type``, of an Arrow array of such places (nulls stay nulls).
    find: place of a user id, or None.
    """

    id_type: pa.DataType
    index: NDArray[np.uint32]
    decode: Callable[[pa.Array], pa.Array]
    find: Callable[[int | str], int | None]


def names_of_store(store: Store, team: Team) -> VertexNames:
    """Names for arrays by global id."""
    table = store.vertices(team, ["vertex", "global_id"])
    vertex = table["vertex"]
    id_type = vertex.type
    if is_string(id_type):
        vertex = vertex.cast(pa.large_string())
    ids = vertex.combine_chunks()
    index = as_numpy(table["global_id"])
    position = np.empty(len(index), np.uint32)
    position[index] = np.arange(len(index), dtype=np.uint32)

    def decode(places: pa.Array) -> pa.Array:
        at = position[as_numpy(places.fill_null(0))]
        return ids.take(as_arrow(at, ~valid(places))).cast(id_type)

    def find(value: int | str) -> int | None:
        place = find_id(ids, value)
        return None if place is None else int(index[place])

    return VertexNames(id_type, index, decode, find)


def names_of_ids(ids: Ids, present: NDArray[np.uint8]) -> VertexNames:
    """Names for arrays by dense id."""

    def find(value: int | str) -> int | None:
        dense = ids.find(value)
        return dense if dense is not None and present[dense] else None

    index = np.flatnonzero(present).astype(np.uint32)
    return VertexNames(ids.id_type, index, ids.decode, find)


@dataclass(frozen=True)
class ResultInfo:
    """The essentials, kept in the files' key-value metadata: a result alone can be validated."""

    graph: str
    source: int | str
    directed: bool
    max_depth: int | None
    version: str


def write_result(
    output: Path,
    names: VertexNames,
    distance: NDArray[np.int32],
    parent: NDArray[np.uint32],
    info: ResultInfo,
    executor: Executor,
    overwrite: bool,
) -> None:
    """Write ``vertex``, ``distance``, ``parent``, every vertex once, by rising id."""
    schema = pa.schema(
        [
            pa.field("vertex", names.id_type, nullable=False),
            pa.field("distance", pa.int32()),
            pa.field("parent", names.id_type),
        ],
        metadata=mark("result", **asdict(info)),
    )

    def batch(start: int, stop: int) -> pa.RecordBatch:
        at = names.index[start:stop]
        hops, parents = distance[at], parent[at]
        columns = [
            names.decode(as_arrow(at)),
            as_arrow(hops, hops < 0),
            names.decode(as_arrow(parents, parents == UNREACHED)),
        ]
        return pa.record_batch(columns, schema=schema)

    def write_file(number: int) -> None:
        first = number * FILE_ROWS
        last = min(first + FILE_ROWS, len(names.index))
        with pq.ParquetWriter(
            folder / f"part-{number:05}.parquet",
            schema,
            compression="snappy",
            use_dictionary=["distance"],  # pyright: ignore[reportArgumentType] - documented
        ) as writer:
            for start in range(first, last, ROW_GROUP):
                stop = min(start + ROW_GROUP, last)
                writer.write_batch(batch(start, stop), row_group_size=ROW_GROUP)

    with new_folder(output, "result", overwrite) as folder:
        executor.step("write", write_file, range(-(-len(names.index) // FILE_ROWS)))


@dataclass(frozen=True)
class Result:
    """A result that was opened."""

    files: tuple[Path, ...]
    schema: pa.Schema
    info: ResultInfo | None
    rows: int
    bytes: int

    def batches(self) -> Iterator[pa.RecordBatch]:
        for path in self.files:
            try:
                with pq.ParquetFile(path) as file:
                    yield from file.iter_batches(
                        ROW_GROUP, columns=["vertex", "distance", "parent"], use_threads=False
                    )
            except (pa.ArrowException, OSError) as error:
                raise InputError(f"{path}: cannot be read: {error}") from error


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
            raise InputError(f"{file}: not a Parquet file, or a truncated one") from error
        schema = metadata.schema.to_arrow_schema()
        missing = {"vertex", "distance", "parent"} - set(schema.names)
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
