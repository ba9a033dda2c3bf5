"""Records of a search's supersteps: shortened in a run's record, complete in a Parquet file.

A run's record lists up to MOST_LISTED supersteps. If there are more, the record lists the first and
the last ENDS supersteps, and sums over the supersteps between them. A Parquet file (of ``bfs
--profile FILE.parquet``, or in a checkpoint) has a row for each superstep, with a column for each
number, for each subgraph's direction and for each kind of message (``direction.all``,
``bytes_sent.normals``).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from ...partition.disk.lock import writing_alone
from ...partition.disk.outputs import (
    check_above,
    facts_of,
    made_folders,
    mark,
    naming_full_disk,
    publish_file,
    write_file,
)
from ...partition.disk.system_errors import raise_failure, read_metadata
from ...partition.disk.urls import AnyPath, is_remote, refuse_remote
from ...partition.errors import InputError
from ...partition.input.arrow import as_numpy
from ..questions.bfs import BetweenRecord, SuperstepRecord
from .superstep_log import PACKED, SuperstepLog, records_of

Item = TypeVar("Item")

MOST_LISTED = 1000
ENDS = 100
_WAIT_SECONDS = 60.0
"""Longest wait for another search that writes the same file. Without a wait, a finished search
would fail.
"""


class Shortened(NamedTuple):
    """The supersteps in a run's record. listed: all supersteps, or only the first and the last
    ENDS. between: sums over the supersteps that are not listed; None if all are.
    """

    listed: list[SuperstepRecord]
    between: BetweenRecord | None


def ends(items: Sequence[Item]) -> list[Item]:
    """Return all items, or only the first and the last ENDS if there are more than MOST_LISTED."""
    return list(items) if len(items) <= MOST_LISTED else [*items[:ENDS], *items[-ENDS:]]


def shortened(steps: SuperstepLog) -> Shortened:
    if len(steps) <= MOST_LISTED:
        return Shortened(list(steps), None)
    places = range(ENDS, len(steps) - ENDS)
    first, last = steps[places.start]["level"], steps[places.stop - 1]["level"]
    between = BetweenRecord(
        supersteps=len(places),
        first_level=first,
        last_level=last,
        directions={},
        found=0,
        edges_examined=0,
        bytes_read=0,
        blocks_skipped=0,
        bytes_sent={},
        seconds=0.0,
    )
    for table in steps.tables(places):
        _add(between, table)
    return Shortened([*steps[:ENDS], *steps[-ENDS:]], between)


def _add(between: BetweenRecord, table: pa.Table) -> None:
    for name in ("found", "edges_examined", "bytes_read", "blocks_skipped", "seconds"):
        between[name] += as_numpy(table[name]).sum().item()
    for full in table.column_names:
        name, _, key = full.partition(".")
        if name == "bytes_sent":
            sent = int(as_numpy(table[full].fill_null(0)).sum())
            between["bytes_sent"][key] = between["bytes_sent"].get(key, 0) + sent
        elif name == "direction":
            ways = between["directions"].setdefault(key, {})
            for way in table[full].drop_null().value_counts().to_pylist():
                ways[way["values"]] = ways.get(way["values"], 0) + way["counts"]


def write_supersteps(path: Path, steps: SuperstepLog) -> None:
    """Write a file with a row for each superstep. The file appears whole and synced to the disk, or
    not at all.
    """
    schema = steps.schema
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, schema.with_metadata(mark("supersteps"))) as writer:
        for table in steps.tables():
            columns = {
                field.name: table[field.name]
                if field.name in table.column_names
                else pa.nulls(table.num_rows, field.type)
                for field in schema
            }
            writer.write_table(pa.table(columns, schema=writer.schema))
    write_file(path, sink.getvalue())


def read_supersteps(data: bytes | memoryview) -> SuperstepLog:
    """Read a file that ``write_supersteps`` has written. Raises ValueError or KeyError for any
    other file.
    """
    log = SuperstepLog()
    with pq.ParquetFile(pa.BufferReader(data)) as file:
        for batch in file.iter_batches(PACKED, use_threads=False):
            log.extend(records_of(pa.Table.from_batches([batch])))
    return log


class Profile:
    """The file that a user asks for with ``--profile``. Its path is checked before any work."""

    def __init__(self, path: str | os.PathLike[str], graph: str | Path, output: AnyPath) -> None:
        """Check the path. graph: the path of the input. output: the path of the result. Raises
        InputError if the profile is inside either of them, has a wrong suffix, or would replace a
        file that delegraph did not write.
        """
        refuse_remote(path, "--profile must be a path of this machine")
        self.path = Path(path).absolute()
        if self.path.suffix != ".parquet":
            raise InputError(f"--profile {path}: name a file that ends with .parquet")
        check_above(self.path)
        real = os.path.realpath(self.path)
        for place in (str(graph), str(output)):
            if is_remote(place):
                continue
            if os.path.commonpath([real, os.path.realpath(place)]) == os.path.realpath(place):
                raise InputError(f"--profile {path} is inside {place}: name a file elsewhere")
        if os.path.lexists(self.path) and not _is_ours(self.path):
            raise InputError(
                f"--profile {path} exists, but delegraph did not write it: name another file"
            )

    def write(self, steps: SuperstepLog) -> None:
        waiting = writing_alone(self.path, _WAIT_SECONDS)
        with (
            naming_full_disk(self.path, lambda: ""),
            made_folders(self.path.parent),
            waiting as folder,
        ):
            write_supersteps(folder / self.path.name, steps)
            publish_file(folder / self.path.name, self.path)


def _is_ours(path: Path) -> bool:
    try:
        return path.is_file() and facts_of(read_metadata(path).metadata, "supersteps") is not None
    except (pa.ArrowException, OSError) as error:
        raise_failure(path, error)
        return False
