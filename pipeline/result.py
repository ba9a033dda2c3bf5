"""The result of a question, in memory: an Arrow table.

    ranks = graph.pagerank()
    ranks.table, ranks["pagerank"], ranks.to_pandas(), ranks.to_polars()
    ranks.write("ranks/")

A result is an Arrow stream: ``polars.DataFrame`` and ``duckdb.sql`` take it as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from importlib import import_module
from itertools import chain
from types import ModuleType
from typing import Any

import pyarrow as pa

from ..partition.disk.outputs import check_output
from ..partition.disk.urls import AnyPath, named
from ..partition.disk.work import begin_work
from ..partition.errors import InputError
from .algorithms import run
from .algorithms.bfs_each import write_batch
from .engines.engine import EngineFacts
from .python_side.keywords import worded
from .python_side.public import public
from .results.by_source import RowsBySource
from .results.columns import Columns, schema_of
from .results.result import batches_of
from .results.weights import typed
from .run.records import encode_record

_SHOWN = 10
"""Rows, in a notebook."""


@dataclass(frozen=True, repr=False, eq=False)
class Result:
    """The result of a question, in memory.

    It has a row for each vertex, by rising id, and the columns that a result on disk has. Searches
    from several sources have a row for each source and each vertex that it reaches.
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
        """Make the rows, with ``vertex`` and these columns."""
        names = self._ran.subject.names
        only = run.chosen(self._answer, names)
        every = (batches_of(names, piece, columns, only) for piece in range(len(names.pieces)))
        return pa.Table.from_batches(chain.from_iterable(every), schema_of(names, columns))

    @cached_property
    def record(self) -> Any:
        """The run record, a dict with the keys of the file beside a result on disk."""
        return run.record_of(self._ran, self._answer, self._run)

    @property
    def notes(self) -> tuple[str, ...]:
        """Messages for people, such as on rows that were left out, as the command prints them."""
        return tuple(map(worded, self._run.notes))

    @property
    def seconds(self) -> float:
        """Seconds that the question took, without loading and writing."""
        return self._run.clock.seconds["search"]

    def __len__(self) -> int:
        return self.table.num_rows

    def __getitem__(self, column: str) -> pa.ChunkedArray:
        """Return a column. Without ``table``, other columns are not made for it."""
        wanted = [one for one in self._answer.columns if one.name == column]
        alone = not self._batches and (wanted or column == "vertex")
        if "table" in self.__dict__ or not alone:
            return self.table[column]
        made = self._columns.get(column)  # another thread may make the table meanwhile
        if made is None:
            made = self._columns[column] = self._rows(wanted)[column]
        return made

    @cached_property
    def _columns(self) -> dict[str, pa.ChunkedArray]:
        """Columns that were made on their own."""
        return {}

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
        output = named(output)
        check_output(output, "result", overwrite)
        with begin_work(output, {}, restart=True) as work:
            this = replace(self._run, making=work)
            if self._batches:
                first = 0
                for rows in self._batches:
                    first += len(write_batch(self._ran.subject, rows, first, this))
                work.sync()
            else:
                run.write(self._ran.subject, self._answer, this)
            record = run.record_of(self._ran, self._answer, this)
            work.publish("result", overwrite, encode_record(record, work.output))

    @property
    def summary(self) -> str:
        """The main facts of the record, in one line."""
        facts = self._answer.record[next(iter(self._answer.record))]
        told = ((name, value) for name, value in facts.items() if _is_told(value))
        return ", ".join(
            f"{name} {value:,}" if _is_number(name, value) else f"{name} {_short(value)}"
            for name, value in told
        )

    def __repr__(self) -> str:
        return f"<Result of {self.name}: {self.summary}>"

    def _repr_html_(self) -> str:
        """Return the first rows as HTML, for a notebook."""
        head = self.table.slice(0, _SHOWN)
        titles = "".join(f"<th>{escape(name)}</th>" for name in head.column_names)
        rows = zip(*(column.to_pylist() for column in head.columns), strict=True)
        cells = ("".join(f"<td>{escape(_short(value))}</td>" for value in row) for row in rows)
        body = "".join(f"<tr>{row}</tr>" for row in cells)
        more = f"{len(self):,} rows; {self.summary}"
        return (
            f"<table><caption>{escape(self.name)}</caption><thead><tr>{titles}</tr></thead>"
            f"<tbody>{body}</tbody></table><p>{escape(more)}</p>"
        )


def _is_told(value: Any) -> bool:
    return isinstance(value, (int, float, str)) and not isinstance(value, bool)


def _is_number(name: str, value: Any) -> bool:
    """Return whether a fact is a count, printed with separated thousands; an id is no count."""
    return isinstance(value, int) and name != "source"


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else typed(value)


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
        """How many vertices the search reached, the source included."""
        return self._answer.record["search"]["reached"]

    @property
    def depth(self) -> int:
        """The greatest distance, in hops."""
        return self._answer.record["search"]["depth"]

    @property
    def supersteps(self) -> list[Any]:
        """A dict for each superstep, as in the run record."""
        assert self._answer.supersteps is not None
        return list(self._answer.supersteps)


def _library(name: str) -> ModuleType:
    """Import a library that delegraph does not require."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise InputError(f"{error.name} is missing: pip install {name}") from error
