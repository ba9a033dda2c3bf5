"""What the supersteps of a search did, where there are many: shortened in a record, else Parquet.

A record lists up to MOST_LISTED of them. Of more it lists the first and the last ENDS, and the sums
of those between. A file (``bfs --profile FILE.parquet``, and in a checkpoint) has a row for each,
with a column for each number, and for each subgraph's direction and each kind of message
(``direction.all``, ``bytes_sent.normals``).
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

import pyarrow as pa
import pyarrow.parquet as pq

from ...partition.disk.outputs import facts_of, mark, naming_full_disk, write_file
from ...partition.errors import InputError
from ..run.records import BetweenRecord, SuperstepRecord

Item = TypeVar("Item")

MOST_LISTED = 1000
ENDS = 100

_NESTED = ("direction", "bytes_sent")
_NUMBERS = ("level", "frontier", "found", "edges_examined", "bytes_read", "blocks_skipped")


class Shortened(NamedTuple):
    """listed: all supersteps, or those at both ends; between: the sums of the others, if any."""

    listed: list[SuperstepRecord]
    between: BetweenRecord | None


def ends(items: Sequence[Item]) -> list[Item]:
    """All of them, or where there are more than MOST_LISTED, the first and the last ENDS."""
    return list(items) if len(items) <= MOST_LISTED else [*items[:ENDS], *items[-ENDS:]]


def shortened(steps: Sequence[SuperstepRecord]) -> Shortened:
    listed = ends(steps)
    if len(listed) == len(steps):
        return Shortened(listed, None)
    left_out = steps[ENDS:-ENDS]
    between = BetweenRecord(
        supersteps=len(left_out),
        first_level=left_out[0]["level"],
        last_level=left_out[-1]["level"],
        directions={
            name: dict(Counter(way for step in left_out if (way := step["direction"].get(name))))
            for name in _keys(left_out, "direction")
        },
        found=sum(step["found"] for step in left_out),
        edges_examined=sum(step["edges_examined"] for step in left_out),
        bytes_read=sum(step["bytes_read"] for step in left_out),
        blocks_skipped=sum(step["blocks_skipped"] for step in left_out),
        bytes_sent={
            kind: sum(step["bytes_sent"].get(kind, 0) for step in left_out)
            for kind in _keys(left_out, "bytes_sent")
        },
        seconds=sum(step["seconds"] for step in left_out),
    )
    return Shortened(listed, between)


def _keys(steps: Sequence[SuperstepRecord], name: str) -> list[str]:
    """Of all of them: a search may have been begun by one engine, and gone on with by another."""
    return list({key: None for step in steps for key in step[name]})


def write_supersteps(path: Path, steps: Sequence[SuperstepRecord]) -> None:
    """Write a row for each superstep; the file is whole, and on the disk, or not there."""
    columns: dict[str, pa.Array] = {
        name: pa.array([step[name] for step in steps], pa.int64()) for name in _NUMBERS
    }
    columns["seconds"] = pa.array([step["seconds"] for step in steps], pa.float64())
    for name, kind in zip(_NESTED, (pa.string(), pa.int64()), strict=True):
        for key in _keys(steps, name):
            columns[f"{name}.{key}"] = pa.array([step[name].get(key) for step in steps], kind)
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns).replace_schema_metadata(mark("supersteps")), sink)
    write_file(path, sink.getvalue())


def read_supersteps(data: bytes | memoryview) -> list[SuperstepRecord]:
    """What ``write_supersteps`` wrote. Raises ValueError, or KeyError, for anything else."""
    table = pq.read_table(pa.BufferReader(data))
    columns = {name: table[name].to_pylist() for name in table.column_names}
    nested: dict[str, dict[str, list[Any]]] = {name: {} for name in _NESTED}
    for full, values in columns.items():
        name, dot, key = full.partition(".")
        if dot:
            nested[name][key] = values
    return [
        cast(
            SuperstepRecord,
            {
                **{name: columns[name][i] for name in (*_NUMBERS, "seconds")},
                **{
                    name: {
                        key: values[i]
                        for key, values in nested[name].items()
                        if values[i] is not None
                    }
                    for name in _NESTED
                },
            },
        )
        for i in range(table.num_rows)
    ]


class Profile:
    """The file that a user asks for with ``--profile``; checked before any work."""

    def __init__(self, path: str | os.PathLike[str], graph: str | Path, output: Path) -> None:
        """graph: what is read; output: the result. Neither may get a file more."""
        self.path = Path(path).absolute()
        if self.path.suffix != ".parquet":
            raise InputError(f"--profile {path}: name a file that ends with .parquet")
        if not self.path.parent.is_dir():
            raise InputError(f"--profile {path}: no such folder as {self.path.parent}")
        real = os.path.realpath(self.path)
        for place in (str(graph), str(output)):
            if os.path.commonpath([real, os.path.realpath(place)]) == os.path.realpath(place):
                raise InputError(f"--profile {path}: {place} is no place for it")
        if os.path.lexists(self.path) and not _is_ours(self.path):
            raise InputError(f"--profile {path} exists and holds no supersteps: name another file")

    def write(self, steps: Sequence[SuperstepRecord]) -> None:
        with naming_full_disk(self.path, lambda: ""):
            write_supersteps(self.path, steps)


def _is_ours(path: Path) -> bool:
    try:
        return facts_of(pq.read_metadata(path).metadata, "supersteps") is not None
    except (pa.ArrowException, OSError):
        return False
