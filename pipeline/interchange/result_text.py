"""Conversion of a result to text in the form of LDBC Graphalytics' reference answers: each line has
a vertex and its value. A vertex that a breadth-first search has not reached has the value
9223372036854775807; a vertex that no path leads to, ``infinity``.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyarrow import csv as arrow_csv

from ...partition.disk.system_errors import naming_file
from ...partition.errors import InputError
from ...partition.input.arrow import strings
from ...partition.input.id_types import is_bytes, shown_id
from ..questions import FORMS
from ..results.result import Result
from ..run.execute import Executor
from ..run.plan import fits, held_now, too_little
from .graph_file import STEP

ROWS = 1 << 18
_ROW_BYTES = 128  # bytes of a row: its numbers as columns, as text, and as lines
_UNREACHED = {"bfs": "9223372036854775807", "bfs-together": "9223372036854775807"}
_NO_PATH = "infinity"


def write_result_text(result: Result, path: Path, executor: Executor, limit: int) -> int:
    """Write the text. Returns the number of lines. limit: bytes of memory. Raises LimitError if the
    limit is too small, InputError for values that a line of two words cannot hold.
    """
    if FORMS[result.algorithm].finding is None:
        raise InputError(
            f"{_place(result)}: text holds a value for each vertex, but rows of a result of "
            f"{result.algorithm} are of several vertices"
        )
    need = sum(result.reading(ROWS)[:2]) + ROWS * _ROW_BYTES
    if not fits(need, limit):
        raise too_little(STEP, need, limit)
    executor.once(STEP, lambda: _write(result, path), held_now() + need)
    return result.rows


def _write(result: Result, path: Path) -> None:
    value = result.values[0]
    missing = _UNREACHED.get(result.algorithm, _NO_PATH)
    kind = result.schema.field("vertex").type
    kind = pa.string() if is_bytes(kind) else kind
    schema = pa.schema([("vertex", kind), ("value", pa.string())])
    options = arrow_csv.WriteOptions(include_header=False, delimiter=" ", quoting_style="none")
    try:
        with naming_file(path), arrow_csv.CSVWriter(path, schema, write_options=options) as writer:
            for batch in result.batches(ROWS, ("vertex", value)):
                vertex, values = _as_text(batch.column(0)), batch.column(1)
                values = values.cast(pa.string()).fill_null(missing)
                writer.write_batch(pa.record_batch([vertex, values], schema=schema))
    except pa.ArrowInvalid as error:
        told = "the name of a vertex holds a blank or a quotation mark, which the text cannot hold"
        raise InputError(f"{_place(result)}: {told}") from error


def _as_text(ids: pa.Array) -> pa.Array:
    """Return UUIDs, as UUID type or as bytes, as text; other ids unchanged."""
    return strings(list(map(shown_id, ids.to_pylist()))) if is_bytes(ids.type) else ids


def _place(result: Result) -> Path:
    return Path(result.files[0]).parent
