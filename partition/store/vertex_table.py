"""The table of a store's vertices. It is checked as it is read, since a file with right checksums
may still hold values that no build writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ...kernels.base.team import Team
from ..disk.files import wrong_contents
from ..disk.system_errors import raise_failure
from ..errors import one_line
from ..input.arrow import as_numpy, compute
from ..input.id_types import is_bytes, is_string, stored, type_name
from .manifest import GraphInfo

LOOP = "loop"
"""The column of the weights of self-loops, 0 for none; only in a store that keeps them."""

_LOOP_TYPES = {"uint32": "uint32", "float32": "float"}


class KeptLoops(NamedTuple):
    """The loops that a graph keeps, one for each vertex that has any, by rising user id. numbers:
    uint32, of the vertices by rising user id. vertices: uint32, their global ids. weights: uint32
    or float32.
    """

    numbers: NDArray[np.uint32]
    vertices: NDArray[np.uint32]
    weights: NDArray[np.uint32] | NDArray[np.float32]


@contextmanager
def opened(path: Path, source: Any, info: GraphInfo) -> Iterator[pq.ParquetFile]:
    """Open the table in ``source``, a path or buffer that Arrow reads files from.

    Raises InputError, which names ``path``, for another graph's table, and for data that Arrow
    cannot read.
    """
    try:
        with pq.ParquetFile(source) as file:
            _check_columns(path, file, info)
            yield file
    except (pa.ArrowException, OSError, ValueError) as error:
        raise_failure(path, error)
        raise wrong_contents(path, one_line(error)) from error


def _check_columns(path: Path, file: pq.ParquetFile, info: GraphInfo) -> None:
    degrees = ["degree", "out_degree"] if info.directed else ["degree"]
    loops = [] if info.loops is None else [LOOP]
    schema = file.schema_arrow
    if schema.names != ["vertex", "global_id", *degrees, *loops]:
        raise wrong_contents(path, f"columns {', '.join(map(repr, schema.names))}")
    allowed = [{info.id_type}, {"uint32"}, *[{"uint32", "uint64"} for _ in degrees]]
    allowed += [{_LOOP_TYPES[info.weights.kind if info.weights else "uint32"]} for _ in loops]
    for field, types in zip(schema, allowed, strict=True):
        if type_name(field.type) not in types or field.nullable:
            raise wrong_contents(path, f"column {field.name!r} of {type_name(field.type)}")
    if file.metadata.num_rows != info.vertices:
        raise wrong_contents(
            path, f"{file.metadata.num_rows:,} rows for {info.vertices:,} vertices"
        )


def read_vertices(
    path: Path, data: NDArray[np.uint8], info: GraphInfo, columns: Sequence[str], team: Team
) -> pa.Table:
    """Return columns of all rows. Ids and global ids are checked if they are among the columns.

    data: the file. Arrow's own threads are not used: one that releases Python's lock while the
    interpreter ends would abort the process (apache/arrow#34314).
    """

    def column(name: str) -> pa.ChunkedArray:
        with opened(path, pa.py_buffer(data), info) as file:
            return file.read([name], use_threads=False)[name]

    table = pa.table(team.map(column, columns), list(columns)).combine_chunks()
    if len(table) != info.vertices:
        raise wrong_contents(path, f"{len(table):,} rows for {info.vertices:,} vertices")
    if "vertex" in columns:
        check_ids(path, table["vertex"])
    if "global_id" in columns:
        places = as_numpy(table["global_id"])
        check_places(path, places, info.vertices)
        seen = np.zeros(info.vertices, np.bool_)
        seen[places] = True
        check_all_seen(path, seen)
    return table


def read_id_order(path: Path, info: GraphInfo) -> NDArray[np.uint32]:
    """Return the global ids of all vertices by rising user id, checked. Nothing else is held."""
    order = np.empty(info.vertices, np.uint32)
    seen = np.zeros(info.vertices, np.bool_)
    first = 0
    with opened(path, path, info) as file:
        for batch in file.iter_batches(columns=["global_id"], use_threads=False):
            places = as_numpy(batch["global_id"])
            check_places(path, places, info.vertices)
            order[first : first + len(places)] = places
            seen[places] = True
            first += len(places)
    check_all_seen(path, seen)
    return order


def read_loops(path: Path, info: GraphInfo) -> KeptLoops:
    """Return the loops that the graph keeps, checked. Nothing else is held but a row group."""
    assert info.loops is not None
    numbers, vertices = (np.empty(info.loops, np.uint32) for _ in range(2))
    weights = np.empty(info.loops, info.weights.kind if info.weights else np.uint32)
    first = count = 0
    with opened(path, path, info) as file:
        for batch in file.iter_batches(columns=["global_id", LOOP], use_threads=False):
            values = as_numpy(batch[LOOP])
            if not (np.isfinite(values) & (values >= 0)).all():
                raise wrong_contents(path, "self-loops with weights that no store keeps")
            places = np.flatnonzero(values)
            end = count + len(places)
            if end > info.loops:
                break
            numbers[count:end] = places + first
            vertices[count:end] = as_numpy(batch["global_id"])[places]
            weights[count:end] = values[places]
            first, count = first + len(values), end
        else:
            if count == info.loops:
                check_places(path, vertices, info.vertices)
                return KeptLoops(numbers, vertices, weights)
    raise wrong_contents(path, f"not the {info.loops:,} self-loops that the manifest tells of")


def check_ids(path: Path, ids: pa.Array | pa.ChunkedArray) -> None:
    """Raise InputError unless user ids rise, and strings are UTF-8."""
    try:
        if is_string(ids.type) or is_bytes(ids.type):
            ids.validate(full=True)
            ids = stored(ids)
            rise = compute("all", compute("less", ids[:-1], ids[1:]))
            fits = rise.as_py() is not False  # null for fewer than two ids
        else:
            numbers = as_numpy(ids)
            fits = bool((numbers[:-1] < numbers[1:]).all())
    except pa.ArrowException as error:
        raise wrong_contents(path, one_line(error)) from error
    if not fits:
        raise wrong_contents(path, "the ids are not in rising order")


def check_places(path: Path, places: NDArray[np.uint32], vertices: int) -> None:
    """Raise InputError for a global id that no vertex has."""
    most = int(places.max(initial=0))
    if most >= vertices:
        raise wrong_contents(path, f"global id {most:,}, but only {vertices:,} vertices")


def check_all_seen(path: Path, seen: NDArray[np.bool_]) -> None:
    """Raise InputError unless every global id is in a row. seen: by global id, whether it is in a
    row.
    """
    if not seen.all():
        raise wrong_contents(path, f"no vertex has the global id {int(seen.argmin()):,}")
