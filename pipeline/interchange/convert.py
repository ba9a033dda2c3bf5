"""The command ``convert``. The input decides the kind of conversion, and a record is written beside
the output.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import fields
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from ...partition.disk.files import file_bytes
from ...partition.disk.memory import return_freed_memory
from ...partition.disk.outputs import (
    FILES,
    MANIFEST,
    Kind,
    check_output,
    check_undamaged,
    facts_of,
    is_store,
    record_path,
)
from ...partition.disk.system_errors import raise_failure, read_metadata
from ...partition.disk.urls import refuse_remote
from ...partition.disk.work import begin_work, clean_up
from ...partition.errors import InputError
from ..run.execute import Executor
from ..run.records import ConvertRecord, command_record, encode_record, file_facts
from ..run.resources import Resources
from .delimited import Choices
from .edge_list import write_edge_list
from .formats import check_choices, files_of, format_of, open_graph_file

_ENDINGS: dict[Kind, str] = {"matrix": ".npz", "text": ".txt"}
"""Endings of the outputs that are single files."""


class Converted(NamedTuple):
    """A finished conversion. already: whether the output existed before, made from this input."""

    record: ConvertRecord
    already: bool

    def __repr__(self) -> str:
        record, how = self.record, "found already" if self.already else "written"
        made = {"edge list": "an edge list", "matrix": "a matrix", "text": "a text"}
        count = f"{record['rows']:,} {'entries' if record['written'] == 'matrix' else 'rows'}"
        return f"<Converted {record['format']} to {made[record['written']]} of {count}; {how}>"


class Written(NamedTuple):
    """Facts of an output; see ConvertRecord."""

    rows: int
    isolated: int
    directed: bool | None
    weighted: bool
    notes: list[str]


class Way(NamedTuple):
    """A conversion of files into another format. files: the input files. write: writes the output
    into a folder, within a memory limit; an output that is a single file has the output's name.
    """

    files: Sequence[str | Path]
    format: str
    kind: Kind
    write: Callable[[Path, Executor, int], Written]


def convert_graph(
    path: str,
    output: Path,
    said: str | None,
    choices: Choices,
    executor: Executor,
    resources: Resources,
    overwrite: bool = False,
    max_unpacked: float | None = None,
) -> Converted:
    """Convert a graph file to an edge list, a store to a matrix, or a result to text.

    said: the format of a graph file; None to tell it by the file's name. max_unpacked: bytes that a
    compressed file may unpack to; ``math.inf`` for any number; None for a limit by its size.
    Without ``overwrite``, an output made from this input with these choices is left unchanged.
    Raises InputError, which names the line, for a file that is not of its format; no output is left
    then.
    """
    started = time.perf_counter()
    refuse_remote(path, "convert reads only from a disk of this machine: copy the file there")
    way = _way(path, output, said, choices, max_unpacked)
    asked = {
        "inputs": _facts(way.files),
        "format": way.format,
        "options": _given(choices),
        "written": way.kind,
    }
    there = None if overwrite else _there(output, asked)
    if there is not None:
        return Converted(there, already=True)
    check_output(output, way.kind, overwrite, path)
    if resources.memory_limit is not None:
        return_freed_memory()
    with begin_work(output, {}, restart=True) as work:
        written = way.write(work.output, executor, resources.limit)
        if _facts(way.files) != asked["inputs"]:
            raise InputError(f"{path}: changed while it was read; run again")
        record = ConvertRecord(
            **command_record(executor.steps, executor.threads, resources.limit),
            **asked,
            **written._asdict(),
            bytes=sum(file.stat().st_size for file in work.output.iterdir()),
            seconds=time.perf_counter() - started,
        )
        work.publish(way.kind, overwrite, encode_record(record, work.output))
    return Converted(record, already=False)


def _way(
    path: str, output: Path, said: str | None, choices: Choices, max_unpacked: float | None
) -> Way:
    kind: Kind = "edge list"
    if os.path.isdir(path):
        kind = "matrix" if is_store(path) else "text"
    ending = _ENDINGS.get(kind, "")
    if ending != (output.suffix if output.suffix in _ENDINGS.values() else ""):
        raise InputError(
            f"{output}: wrong ending: a store becomes a matrix (.npz), a result becomes text "
            "(.txt), and a graph file becomes an edge list (a folder with another name)"
        )
    if kind != "edge list" and (said or _given(choices) or max_unpacked is not None):
        raise InputError(f"{path}: options for formats, columns and types are only for graph files")
    if kind == "matrix":
        return _matrix(path, output.name)
    if kind == "text":
        return _text(path, output.name)
    return _edge_list(path, said, choices, max_unpacked)


def _edge_list(path: str, said: str | None, choices: Choices, max_unpacked: float | None) -> Way:
    name = format_of(path, said)
    check_choices(name, choices)

    def write(folder: Path, executor: Executor, limit: int) -> Written:
        with closing(open_graph_file(path, name, choices, limit, max_unpacked)) as graph:
            keeps = choices.loops == "keep"
            rows, isolated = write_edge_list(graph, folder, executor, limit, keeps)
            if not rows:
                raise InputError(f"{path}: the file has no edges and no vertices")
            weighted = keeps or "weight" in graph.schema.names
            return Written(rows, isolated, graph.directed, weighted, list(graph.notes))

    return Way(files_of(path, name), name, "edge list", write)


def _matrix(path: str, name: str) -> Way:
    from ...partition.store.store import open_store  # a graph file needs no kernels
    from .matrix import write_matrix

    store = open_store(path)

    def write(folder: Path, executor: Executor, limit: int) -> Written:
        entries = write_matrix(store, folder / name, executor, limit)
        return Written(entries, 0, store.info.directed, store.info.weights is not None, [])

    return Way([store.path / MANIFEST], "store", "matrix", write)


def _text(path: str, name: str) -> Way:
    from ..results.result import open_result
    from .result_text import write_result_text

    result = open_result(path)

    def write(folder: Path, executor: Executor, limit: int) -> Written:
        rows = write_result_text(result, folder / name, executor, limit)
        return Written(rows, 0, result.info.directed if result.info else None, False, [])

    return Way(result.files, result.algorithm, "text", write)


def _given(choices: Choices) -> dict[str, str | bool]:
    """Return the choices that differ from their defaults."""
    values = {choice.name: getattr(choices, choice.name) for choice in fields(choices)}
    return {name: value for name, value in values.items() if value != getattr(Choices(), name)}


def _facts(files: Sequence[str | Path]) -> dict[str, str]:
    """Return the size and time of each file."""
    facts = {os.path.abspath(file): os.stat(file) for file in files}
    return {file: file_facts(fact.st_size, fact.st_mtime_ns) for file, fact in facts.items()}


def _there(output: Path, asked: dict[str, object]) -> ConvertRecord | None:
    """Return the record of a complete output that was made for this request; None for any other
    output.
    """
    clean_up(output, {}, None)
    if not os.path.lexists(output):
        return None
    try:
        record = json.loads(file_bytes(record_path(output)))
        if any(record[name] != value for name, value in asked.items()):
            return None
        check_undamaged(output, record)
        if asked["written"] in FILES:
            return record if output.stat().st_size == record["bytes"] else None
        files = [read_metadata(file) for file in output.iterdir() if file.is_file()]
        ours = all(facts_of(file.metadata, "edge list") == {} for file in files)
        rows = sum(file.num_rows for file in files)
        return record if ours and rows == record["rows"] else None
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
        raise_failure(output, error)
        return None
