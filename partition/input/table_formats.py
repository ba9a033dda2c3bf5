"""Table formats whose files alone are not the table: a log tells which files count.

The folder of such a table also holds files with deleted or replaced rows. Reading it needs the log.
Other programs can do that, and write the rows as plain Parquet.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from ..disk.remote import listed
from ..disk.urls import Url
from ..errors import DelegraphError, InputError


class TableFormat(NamedTuple):
    """A table format. log: a folder beside the data. marks: endings of names in that folder, one of
    which must be there; if empty, the folder alone shows the format. copy: how another program
    writes the rows; {} stands for the table.
    """

    name: str
    log: str
    marks: tuple[str, ...]
    copy: str


_FORMATS = (
    TableFormat(
        "a Delta table",
        "_delta_log",
        (),
        "with DuckDB: COPY (FROM delta_scan('{}')) TO 'edges.parquet'",
    ),
    TableFormat(
        "an Iceberg table",
        "metadata",
        (".metadata.json", ".metadata.json.gz", "version-hint.text"),
        "with DuckDB: COPY (FROM iceberg_scan('{}')) TO 'edges.parquet'",
    ),
    TableFormat(
        "a Hudi table",
        ".hoodie",
        (),
        "with Spark: spark.read.format('hudi').load('{}').write.parquet('edges')",
    ),
    TableFormat(
        "the output of a Spark stream",
        "_spark_metadata",
        (),
        "with Spark: spark.read.parquet('{}').write.parquet('edges')",
    ),
)


def check_no_table(folder: Path, names: Sequence[str]) -> None:
    """Raise InputError for the folder of a table. names: in the folder."""
    for table in _FORMATS:
        if table.log in names and _is_log(folder, table):
            raise _refusal(str(folder), str(folder), table)


def _is_inside(folder: Path) -> bool:
    """Return whether a folder may be a table's partition, or its folder of data."""
    return "=" in folder.name or folder.name == "data"


def check_no_table_above(folders: Sequence[Path]) -> None:
    """Raise InputError for folders inside a table: its partitions, or its folder of data."""
    above: dict[Path, tuple[Path, Path]] = {}
    for folder in folders:
        whole = Path(os.path.realpath(folder))
        above.setdefault(whole, (folder, folder))
        for parent in (child.parent for child in takewhile(_is_inside, (whole, *whole.parents))):
            above.setdefault(parent, (folder, parent))
    for parent, (folder, root) in above.items():
        for table in _FORMATS:
            if _is_log(parent, table):
                raise _refusal(str(folder), str(root), table)


def check_no_table_among(base: Url, names: Sequence[str], files: Sequence[str]) -> None:
    """Raise InputError for files of a table in an object store. names: all names below ``base``.
    files: those to be read.
    """
    for name in names:
        parts = PurePosixPath(name).parts
        for table in _FORMATS:
            if table.log not in parts:
                continue
            at = parts.index(table.log)
            root = "/".join(parts[:at])
            is_read = any(not root or file.startswith(f"{root}/") for file in files)
            if is_read and _says_so(table, parts[at + 1 :]):
                where = str(base.inside(root) if root else base)
                raise _refusal(where, where, table)
    # Each level above costs a request, so only levels that may be inside a table are asked for.
    parts = base.key.split("/")
    inside = sum(1 for _ in takewhile(lambda part: "=" in part or part == "data", reversed(parts)))
    for up in range(1, min(inside, len(parts) - 1) + 1):
        above = base._replace(key="/".join(parts[:-up]))
        for table in _FORMATS:
            if any(_says_so(table, (name,)) for name in _names_below(above.inside(table.log))):
                raise _refusal(str(base), str(above), table)


def _names_below(folder: Url) -> list[str]:
    """Return the names in a folder; an empty list if there is none, or it may not be listed."""
    try:
        return [entry.name for entry in listed(folder, recursive=False)]
    except DelegraphError:
        return []


def _is_log(folder: Path, table: TableFormat) -> bool:
    log = folder / table.log
    if not os.path.isdir(log):
        return False
    if not table.marks:
        return True
    try:
        return any(_says_so(table, (name,)) for name in os.listdir(log))
    except OSError:
        return False


def _says_so(table: TableFormat, below: Sequence[str]) -> bool:
    """Return whether a name in the log's folder shows the table format. below: the name, in
    parts.
    """
    return not table.marks or (len(below) == 1 and below[0].endswith(table.marks))


def _refusal(asked: str, root: str, table: TableFormat) -> InputError:
    where = asked if asked == root else f"{asked} is inside {root}, which"
    return InputError(
        f"{where} is {table.name} ({table.log}): only its log says which files belong to the "
        f"table; write the rows to other Parquet files first, {table.copy.format(root)}"
    )
