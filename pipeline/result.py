"""The result of a question, in memory: an Arrow table.

    ranks = graph.pagerank()
    ranks.table, ranks["pagerank"], ranks.to_pandas(), ranks.to_polars()
    ranks.write("ranks/")

A result is an Arrow stream: ``polars.DataFrame`` and ``duckdb.sql`` take it as it is.
"""

from __future__ import annotations

import sys
from collections import namedtuple
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib import import_module
from itertools import chain
from types import FrameType, ModuleType
from typing import Any

import pyarrow as pa

from ..kernels.base.team import Team
from ..partition.disk.outputs import check_output
from ..partition.disk.urls import AnyPath, named
from ..partition.disk.work import begin_work
from ..partition.errors import InputError
from ..partition.input.ids import parse_id
from ..partition.numbers import check_whole
from .algorithms import run
from .algorithms.bfs_each import write_batch
from .engines.engine import EngineFacts
from .notebook import Picture, notebook_html
from .python_side.keywords import worded
from .python_side.progress import finish
from .python_side.public import public
from .questions import FORMS
from .results.by_source import RowsBySource
from .results.columns import Columns, OnDevice, fetched_by_row
from .results.findings import TOP, Findings, has_equal_ranges
from .results.names import ids_at
from .results.rows import Rows, VertexRows
from .results.weights import typed
from .run.records import encode_record
from .summary import distribution_head, join_ranges, range_name, shortened, shown, top_rows

_SHOWN = 10
"""Rows, in a notebook."""

_BARS = 40
"""Bars, in a notebook."""

_ROWS = 1 << 12
"""Rows that become Python's objects at the same time."""


@dataclass(frozen=True, repr=False, eq=False)
class Result:
    """The result of a question, in memory.

    It has a row for each vertex, by rising id, and the columns that a result on disk has. Searches
    from several sources have a row for each source and each vertex that it reaches; other results
    whose rows are of two vertices have their order.
    """

    _answer: run.Answer
    _ran: EngineFacts
    _run: run.Run
    _batches: Sequence[RowsBySource] = ()

    def __reduce__(self) -> Any:
        raise TypeError("a result cannot be sent to another process: send its table (result.table)")

    @property
    def name(self) -> str:
        """The name of the question, such as ``"pagerank"``."""
        return self._run.info.algorithm

    @cached_property
    def table(self) -> pa.Table:
        """The rows. They are made when they are first asked for, and kept."""
        if self._batches:
            every = (rows.batches(part) for rows in self._batches for part in rows.parts)
            return pa.Table.from_batches(chain.from_iterable(every), self._batches[0].schema)
        self._columns.clear()
        return self._rows(self._answer.columns)

    def _rows(self, columns: Columns) -> pa.Table:
        """Make the rows, with these columns beside those that say what a row is of."""
        names = self._ran.subject.names
        rows: Rows = self._answer.rows(names, self.name, columns)
        if columns and all(isinstance(one.values, OnDevice) for one in columns):
            by_row = fetched_by_row(columns, names)
            rows = rows if by_row is None else VertexRows(names, by_row, by_row=True)
        return pa.Table.from_batches(self._batches_of(rows), rows.schema)

    def _batches_of(self, rows: Rows) -> Iterator[pa.RecordBatch]:
        """Yield the rows. Several pieces are worked on at the same time."""
        pieces = range(len(rows.pieces))
        team = _team(self._run.options.threads if len(pieces) > 1 else 1)
        if team.threads > 1:
            rows.prepare(team.threads)
        made = team.stream(lambda piece: list(rows.batches(piece)), pieces)
        return chain.from_iterable(made)

    @cached_property
    def record(self) -> Any:
        """The run record, a dict with the keys of the file beside a result on disk."""
        return run.record_of(self._ran, self._answer, self._run, self.found())

    @property
    def notes(self) -> tuple[str, ...]:
        """Messages for people, such as on rows that were left out, as the command prints them."""
        return tuple(map(worded, self._run.notes))

    @property
    def seconds(self) -> float:
        """Seconds that the question took, without loading and writing."""
        return self._run.clock.seconds["search"]

    def __len__(self) -> int:
        """Return the number of rows."""
        if self._batches:
            return sum(rows.count for rows in self._batches)
        if self._answer.pairs is not None:
            return len(self._answer.pairs.first)
        only = self._answer.only
        return sum(self._ran.subject.names.pieces) if only is None else len(only)

    def __getitem__(self, column: str) -> pa.ChunkedArray:
        """Return a column. Without ``table``, other columns are not made for it."""
        wanted = [one for one in self._answer.columns if one.name == column]
        alone = not self._batches and (wanted or column in FORMS[self.name].keys)
        if "table" in self.__dict__ or not alone:
            return self.table[column]
        made = self._columns.get(column)  # another thread may make the table meanwhile
        if made is None:
            made = self._columns[column] = self._column(column, wanted)
        return made

    def _column(self, name: str, wanted: Columns) -> pa.ChunkedArray:
        """Make a column. wanted: the column, or none if it says what a row is of."""
        values = wanted[0].values if wanted else None
        alone = values.column(self._ran.subject.names) if isinstance(values, OnDevice) else None
        return self._rows(wanted)[name] if alone is None else pa.chunked_array([alone])

    @cached_property
    def _columns(self) -> dict[str, pa.ChunkedArray]:
        """Columns that were made on their own."""
        return {}

    @public
    def on_device(self, column: str) -> Any:
        """Return a column on the GPU that found it, as an array of CuPy, in the order of the rows.

        PyTorch, JAX and cuDF take the array without a copy, by DLPack or by CUDA's array interface.
        It stays usable whatever becomes of the result.

        Args:
            column: ``"distance"``, int32, or ``"parent"``, int64: the number of the parent's row,
                from 0 on. Both are -1 where the column is null.

        Raises:
            InputError: if the result was not found on a GPU, or its column is in host memory.
        """
        values = next((one.values for one in self._answer.columns if one.name == column), None)
        if values is None:
            raise InputError(f"a result of {self.name} has no column {shortened(repr(column))}")
        if not isinstance(values, OnDevice):
            raise InputError(
                f"the column {column} of {self.name} is in host memory: take it from there, as "
                f"result[{column!r}]"
            )
        return values.by_row(self._ran.subject.names)

    def found(self, top: int = TOP) -> Any:
        """Return what the result says of the graph, as the record's key ``found`` has it: ``top``
        vertices or groups with their values, and counts. None if rows are not of a vertex each.
        """
        return None if FORMS[self.name].finding is None else self._findings(top).facts()

    def _findings(self, top: int, distributes: bool = False) -> Findings:
        sizes, columns = self._answer.group_sizes, self._answer.columns
        findings = Findings(self.name, [one.name for one in columns], top, distributes)
        columns = columns if sizes is None else (sizes,)
        read = [one for one in columns if one.name == findings.column]
        for batch in self._batches_of(self._answer.rows(self._ran.subject.names, self.name, read)):
            findings.add(batch)
        return findings

    @public
    def top(self, count: int = 10) -> list[tuple[Any, Any]]:
        """Return the vertices at the top with their values, the greatest first.

        Of distances these are the farthest vertices, of components the names and sizes of the
        largest. Of equal values, the least vertices come first.

        Raises:
            InputError: if rows are not of a vertex each, and if ``count`` is negative.
        """
        check_whole("count", count)
        if FORMS[self.name].finding is None:
            raise InputError(f"a result of {self.name} has no top: look at its table")
        return self._findings(count).pairs()

    @public
    def path(self, target: Any) -> list[Any] | None:
        """Return the vertices of the path from the source to a vertex, both included; None if the
        search did not reach the vertex.

        Of several shortest paths it is the one along the column ``parent``.

        Raises:
            InputError: if the result has no column ``parent``, or the vertex is not in the graph.
        """
        parents = next((one for one in self._answer.columns if one.name == "parent"), None)
        if parents is None:
            raise InputError(
                f"a result of {self.name} has no paths: ask bfs or sssp, from a source"
            )
        names = self._ran.subject.names
        try:
            place = names.find(parse_id(typed(target), names.id_type))
        except InputError:  # no id of the graph's type
            place = None
        if place is None:
            raise InputError(f"{shortened(repr(target))} is not a vertex of the graph")
        distances = self._answer.columns[0]
        if distances.values[place] == distances.missing:
            return None
        steps = [place]
        while (parent := int(parents.values[steps[-1]])) != parents.missing:
            steps.append(parent)
        return ids_at(names, steps[::-1])

    def __iter__(self) -> Iterator[Any]:
        """Yield the rows as named tuples.

        ``pandas.DataFrame(result)`` comes here. ``to_pandas`` is faster, and keeps integers that
        may be null integers.
        """
        row = namedtuple("Row", self.table.column_names)  # pyright: ignore - the columns' names
        null = _null_of(sys._getframe(1))
        for batch in self.table.to_batches(_ROWS):
            for values in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                yield row(*(null if value is None else value for value in values))

    def to_arrow(self) -> pa.Table:
        """Return ``table``."""
        return self.table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.table.__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame.

        Columns of integers that may be null have pandas' nullable type (``Int64``), whether or not
        there is a null in them; other columns have NumPy's types.

        Raises:
            InputError: if pandas is not installed.
        """
        _library("pandas")
        return self.table.to_pandas()

    def to_polars(self) -> Any:
        """Return a Polars DataFrame. Columns of numbers are not copied.

        Raises:
            InputError: if Polars is not installed.
        """
        return _library("polars").from_arrow(self.table)

    @public
    def write(self, output: AnyPath, overwrite: bool = False) -> None:
        """Write a result folder, and its run record, as the command does.

        Args:
            output: the folder, or a URL of an object store.
            overwrite: whether to replace a result that exists, once the new one is complete.
        """
        try:
            self._write(named(output), overwrite)
        finally:
            finish(self._run.executor.progress)

    def _write(self, output: str, overwrite: bool) -> None:
        check_output(output, "result", overwrite)
        with begin_work(output, {}, restart=True) as work:
            this, found = replace(self._run, making=work), None
            if self._batches:
                first = 0
                for rows in self._batches:
                    first += len(write_batch(self._ran.subject, rows, first, this))
                work.sync()
            else:
                found = run.write(self._ran.subject, self._answer, this)
            record = run.record_of(self._ran, self._answer, this, found)
            work.publish("result", overwrite, encode_record(record, work.output))

    @property
    def summary(self) -> str:
        """The main facts of the record, in one line."""
        return ", ".join(f"{name} {value}" for name, value in self._told())

    def _told(self) -> list[tuple[str, str]]:
        """Return the main facts of the record as text."""
        facts = self._answer.record[next(iter(self._answer.record))]
        told = ((name, value) for name, value in facts.items() if _is_told(name, value))
        known = [
            (name, f"{value:,}" if _is_number(name, value) else _short(value))
            for name, value in told
        ]
        return [*known, ("converged", "no")] if facts.get("converged") is False else known

    def __repr__(self) -> str:
        return f"<Result of {self.name}: {self.summary}>"

    def _repr_html_(self) -> str:
        """Return what was found as HTML, for a notebook."""
        facts = [("rows", f"{len(self):,}"), *self._told()]
        form = FORMS[self.name]
        if form.finding is None:
            return notebook_html(form.title, facts)
        findings = self._findings(_SHOWN, distributes=True).facts()
        rows = top_rows(self.name, findings, _SHOWN)
        if not findings["distribution"]:
            return notebook_html(form.title, facts, rows)
        ranges = join_ranges(findings["distribution"], _BARS, has_equal_ranges(self.name))
        values, counted = distribution_head(self.name, findings)
        bars = [(range_name(low, high), count) for low, high, count in ranges]
        ends = shown(ranges[0][0]), shown(ranges[-1][1])
        picture = Picture(f"{counted} by {values}", *ends, bars)
        return notebook_html(form.title, facts, rows, picture)


@cache
def _team(threads: int) -> Team:
    """Return a team that is kept: threads that end would slow the next call down."""
    return Team(threads)


def _is_told(name: str, value: Any) -> bool:
    if name in _WORK:
        return False
    return isinstance(value, (int, float, str)) and not isinstance(value, bool)


_WORK = "edges_examined", "bytes_read", "bytes_sent"
"""Facts about the work, which only the record names."""


def _is_number(name: str, value: Any) -> bool:
    """Return whether a fact is a count, printed with separated thousands; an id is no count."""
    return isinstance(value, int) and name != "source"


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else shortened(typed(value))


class BfsResult(Result):
    """The result of a search from one source.

    ``distance`` (int32) and ``parent`` (the type of the ids) are null where the search did not
    reach; the source has distance 0 and no parent.
    """

    @property
    def source(self) -> int | str:
        """The id of the source."""
        return self._answer.record["search"]["source"]

    @property
    def vertex(self) -> pa.ChunkedArray:
        """The column ``vertex``."""
        return self["vertex"]

    @property
    def distance(self) -> pa.ChunkedArray:
        """The column ``distance``."""
        return self["distance"]

    @property
    def parent(self) -> pa.ChunkedArray:
        """The column ``parent``."""
        return self["parent"]

    @property
    def reached(self) -> int:
        """Number of vertices that the search reached, the source included."""
        return self._answer.record["search"]["reached"]

    @property
    def depth(self) -> int:
        """The greatest distance, in hops."""
        return self._answer.record["search"]["depth"]

    @property
    def supersteps(self) -> list[Any]:
        """A dict for each superstep, as in the run record."""
        assert self._answer.supersteps is not None
        return list(self._answer.supersteps())


def _null_of(frame: FrameType) -> Any:
    """Return what stands for null in rows that the code of ``frame`` iterates over.

    pandas makes a column of integers and None a column of floats, which rounds ids above 2^53, but
    leaves integers and its own null as they are.
    """
    if frame.f_globals.get("__name__", "").partition(".")[0] == "pandas":
        return import_module("pandas").NA
    return None


def _library(name: str) -> ModuleType:
    """Import a library that delegraph does not require."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise InputError(f"{error.name} is missing: pip install {name}") from error
