"""Results: a folder of Parquet files, with the record of the run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ...partition.disk.outputs import facts_of, mark
from ...partition.disk.remote import buffer_size, source_of
from ...partition.disk.system_errors import parquet_writer, raise_failure, read_metadata
from ...partition.disk.uploads import files_of
from ...partition.disk.urls import AnyPath, is_remote, named, url_of
from ...partition.errors import InputError, one_line
from ...partition.input.arrow import TEXT_BYTES
from ...partition.input.other_formats import not_parquet
from ...partition.input.pages import Reading, of_all, reading_of, rows_at_once
from ...partition.store.store import Store
from ..questions import FORMS
from ..questions.question import ColumnType
from ..run.execute import Executor
from .findings import Findings
from .names import file_rows
from .rows import Rows
from .store_names import names_bytes

_WRITER_BYTES = (
    24 << 20
)  # measured bytes of one Parquet writer; pieces of any length take about as much

Option = str | int | float | bool | None


@dataclass(frozen=True)
class ResultInfo:
    """The facts that identify a result. They are stored in the key-value metadata of its files, so
    a result can be validated without its record.

    graph: the graph's fingerprint. options: the algorithm's options that decide the result.
    version: the version of delegraph that has written the result. measured: what the run has
    measured of its result as a whole, which ``validate`` measures again.
    """

    algorithm: str
    graph: str
    directed: bool
    options: dict[str, Option]
    version: str
    measured: Mapping[str, float] = field(default_factory=dict)

    @property
    def facts(self) -> dict[str, Any]:
        """Return the facts as JSON holds them."""
        return {name: value for name, value in asdict(self).items() if value or name != "measured"}


def write_result(
    folder: Path,
    rows: Rows,
    info: ResultInfo,
    executor: Executor,
    findings: Findings | None = None,
    at_once: int | None = None,
    projected_bytes: int = 0,
    unwritten: str | None = None,
) -> None:
    """Write rows into files.

    findings: receives the rows. at_once: the number of files that are written at the same time;
    None: as many as the executor has threads. projected_bytes: bytes held meanwhile. unwritten: a
    column that only the findings receive.
    """
    schema = rows.schema
    if unwritten is not None:
        schema = schema.remove(schema.get_field_index(unwritten))
    schema = schema.with_metadata({**(schema.metadata or {}), **mark("result", **info.facts)})
    parts = parts_of(rows.pieces)
    found = [] if findings is None else [findings.part() for _ in parts]

    def write_file(number: int) -> None:
        with parquet_writer(
            folder / f"part-{number:05}.parquet",
            schema,
            compression="snappy",
            use_dictionary=rows.repeated,
        ) as writer:
            for piece in parts[number]:
                for batch in rows.batches(piece):
                    if found:
                        found[number].add(batch)
                    written = batch.select(schema.names)
                    writer.write_batch(written, row_group_size=max(1, len(batch)))

    rows.prepare(at_once or executor.threads)
    executor.step("write", write_file, range(len(parts)), projected_bytes, at_once=at_once)
    for one in found:
        assert findings is not None
        findings.merge(one)


def parts_of(pieces: Sequence[int]) -> list[range]:
    """Return the range of pieces that each file gets. A file has at most ``file_rows`` rows, or a
    single piece.

    >>> parts_of([1 << 17] * 3 + [1 << 22])
    [range(0, 2), range(2, 3), range(3, 4)]
    """
    parts: list[range] = []
    most, rows = file_rows(sum(pieces)), 0
    for i, more in enumerate(pieces):
        if not parts or rows + more > most:
            parts.append(range(i, i))
            rows = 0
        parts[-1] = range(parts[-1].start, i + 1)
        rows += more
    return parts


def writing_bytes(store: Store, tasks: int) -> int:
    """Return the bytes that writing a store's result holds when ``tasks`` files are written at
    once. The result's columns are included, at up to eight bytes a vertex.
    """
    return store.info.vertices * (4 + 4) + names_bytes(store, tasks) + tasks * _WRITER_BYTES


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind)


_OF_TYPE: dict[ColumnType, Callable[[pa.DataType], bool] | None] = {
    "id": None,
    "integer": pa.types.is_integer,
    "count": pa.types.is_integer,
    "float": pa.types.is_floating,
    "number": _is_number,
}

COLUMNS: dict[str, dict[str, Callable[[pa.DataType], bool] | None]] = {
    name: {column: _OF_TYPE[kind] for column, kind in form.columns.items()}
    for name, form in FORMS.items()
}
"""Columns that results of each form may have beside ids that rows are of, each with a check of its
type; None for a column of ids.
"""


@dataclass(frozen=True)
class Result:
    """An opened result. algorithm: deduced from the columns if ``info`` is None. values: its
    columns beside those that say what a row is of.
    """

    files: tuple[str, ...]
    schema: pa.Schema
    info: ResultInfo | None
    algorithm: str
    values: tuple[str, ...]
    rows: int
    bytes: int

    @property
    def columns(self) -> tuple[str, ...]:
        return (*FORMS[self.algorithm].keys, *self.values)

    def batches(
        self, rows: int, columns: tuple[str, ...] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield all columns, or the named ones, in batches of about ``rows`` rows. Batches with
        long ids are shorter: about TEXT_BYTES each.
        """
        some: list[pa.RecordBatch] = []
        for batch in self._read(rows, columns or self.columns):
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
                    source_of(path),
                    buffer_size=buffer_size(path) if is_remote(path) else 0,
                    pre_buffer=False,
                    page_checksum_verification=True,
                ) as file:
                    for group in range(file.num_row_groups):
                        fitting = rows_at_once(path, file.metadata, group, columns, rows)
                        yield from file.iter_batches(
                            fitting, row_groups=[group], columns=list(columns), use_threads=False
                        )
            except (pa.ArrowException, OSError) as error:
                raise_failure(path, error)
                raise InputError(f"{path}: cannot be read: {one_line(error)}") from error

    def reading(self, rows: int) -> Reading:
        """Return the bytes that ``batches`` of this many rows hold."""
        metadata = ((path, read_metadata(source_of(path))) for path in self.files)
        return of_all(reading_of(path, facts, self.columns, rows) for path, facts in metadata)


def open_result(path: AnyPath) -> Result:
    """Open a result: a folder of Parquet files, or one file. Only footers are read.

    Raises InputError if there is no Parquet file with the columns of a result.
    """
    files = _files_at(named(path))
    if not files:
        raise InputError(f"{path}: not a result: neither a folder of Parquet files nor a file")
    rows, schema, info, algorithm, values = 0, None, None, "", None
    for file in files:
        try:
            metadata = read_metadata(source_of(file))
        except (pa.ArrowException, OSError) as error:
            raise_failure(file, error)
            raise not_parquet(file, error, "a damaged one") from error
        schema = metadata.schema.to_arrow_schema()
        info = info or _info(schema.metadata)
        algorithm = algorithm or (info.algorithm if info else _algorithm_of(schema))
        values = values or FORMS[algorithm].columns_in(schema.names)
        _check_columns(file, schema, algorithm, values)
        rows += metadata.num_rows
    assert schema is not None
    assert values is not None
    return Result(tuple(files), schema, info, algorithm, values, rows, sum(files.values()))


def _files_at(name: str) -> dict[str, int]:
    """Return the paths and sizes in bytes of a result's files; an empty dict if there is none."""
    if is_remote(name):
        return files_of(url_of(name))
    path = Path(name)
    files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    if not all(file.is_file() for file in files):
        return {}
    return {str(file): file.stat().st_size for file in files}


def _algorithm_of(schema: pa.Schema) -> str:
    """Return the algorithm of a result that does not name it: the first one whose columns the
    result has; if there is none, the first algorithm of all. Edges with values may be anything.
    """
    known = {name: form for name, form in FORMS.items() if "vertex" in form.keys}
    whole = (name for name, form in known.items() if form.columns_in(schema.names))
    return next(whole, next(iter(FORMS)))


def _check_columns(
    file: str, schema: pa.Schema, algorithm: str, values: tuple[str, ...] | None
) -> None:
    form = FORMS[algorithm]
    wanted = values or (form.alternatives or (tuple(form.columns),))[-1]
    missing = {*form.keys, *wanted} - set(schema.names)
    if missing:
        raise InputError(f"{file}: not a result: column {', '.join(sorted(missing))} is missing")
    for name in wanted:
        fits = COLUMNS[algorithm].get(name)  # numbered columns have ids
        if fits is not None and not fits(schema.field(name).type):
            held = "integers" if fits is pa.types.is_integer else "numbers"
            raise InputError(f"{file}: not a result: column '{name}' does not hold {held}")


def _info(metadata: dict[bytes, bytes] | None) -> ResultInfo | None:
    """Return the facts that the metadata holds; None if another program has dropped them or they
    name no known algorithm.
    """
    facts = facts_of(metadata, "result")
    try:
        if facts is None:
            return None
        if "algorithm" not in facts:  # older versions had only bfs
            options = {name: facts.pop(name) for name in ("source", "max_depth")}
            facts |= {"algorithm": "bfs", "options": options}
        info = ResultInfo(**facts)
        return info if info.algorithm in COLUMNS else None
    except (TypeError, KeyError):
        return None
