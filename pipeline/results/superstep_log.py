"""The log of a search's supersteps. A path graph has as many levels as vertices, so the log must be
small.

The latest supersteps are kept in arrays; older ones are compressed to about a dozen bytes each.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast, overload

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ...partition.input.arrow import as_arrow, as_numpy, strings
from ..questions.bfs import SuperstepRecord

PACKED = 1 << 14
"""Number of supersteps that are compressed together."""

_NESTED = ("direction", "bytes_sent")
_NUMBERS = ("level", "frontier", "found", "edges_examined", "bytes_read", "blocks_skipped")


class SuperstepLog(Sequence[SuperstepRecord]):
    """A sequence of superstep records that only grows."""

    def __init__(self, steps: Iterable[SuperstepRecord] = ()) -> None:
        self._packs: list[bytes] = []
        self._latest = _Latest()
        self.extend(steps)

    def append(self, step: SuperstepRecord) -> None:
        latest = self._make_room()
        latest.numbers.extend([step[name] for name in _NUMBERS])
        latest.seconds.append(step["seconds"])
        latest.sent.extend(step["bytes_sent"].values())
        latest.tell((tuple(step["direction"].items()), tuple(step["bytes_sent"])))

    def add(
        self, level: int, direction: str, frontier: int, found: int, examined: int, seconds: float
    ) -> None:
        """Append a superstep that has one direction for all edges, reads nothing from disk and
        sends no messages.
        """
        latest = self._make_room()
        latest.numbers.extend((level, frontier, found, examined, 0, 0))
        latest.seconds.append(seconds)
        latest.tell(((("all", direction),), ()))

    def extend(self, steps: Iterable[SuperstepRecord]) -> None:
        for step in steps:
            self.append(step)

    def _make_room(self) -> _Latest:
        if len(self._latest.seconds) == PACKED:
            self._packs.append(_packed(self._latest.table()))
            self._latest = _Latest()
        return self._latest

    def __len__(self) -> int:
        return PACKED * len(self._packs) + len(self._latest.seconds)

    def __iter__(self) -> Iterator[SuperstepRecord]:
        for table in self.tables():
            yield from records_of(table)

    @overload
    def __getitem__(self, at: int) -> SuperstepRecord: ...
    @overload
    def __getitem__(self, at: slice) -> list[SuperstepRecord]: ...
    def __getitem__(self, at: int | slice) -> SuperstepRecord | list[SuperstepRecord]:
        places = range(len(self))[at]
        if isinstance(places, int):
            return self[places : places + 1][0]
        whole = range(min(places, default=0), max(places, default=-1) + 1)
        found = [step for table in self.tables(whole) for step in records_of(table)]
        return [found[place - whole.start] for place in places]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def tables(self, places: range | None = None) -> Iterator[pa.Table]:
        """Yield tables of the supersteps in ``places``; None for all. A table has a row for each
        superstep, and a column for each number, for each subgraph's direction and for each kind of
        message. Tables may differ in their columns.
        """
        wanted = range(len(self)) if places is None else places
        for i in range(len(self._packs) + 1):
            start, stop = max(wanted.start - i * PACKED, 0), min(wanted.stop - i * PACKED, PACKED)
            if start < stop:
                latest = i == len(self._packs)
                table = self._latest.table() if latest else _unpacked(self._packs[i])
                yield table.slice(start, stop - start)

    @property
    def schema(self) -> pa.Schema:
        """Return a schema with the columns of all tables."""
        return pa.unify_schemas([_Latest().table().schema, *(t.schema for t in self.tables())])

    @property
    def found(self) -> NDArray[np.int64]:
        """Return the number of vertices that each superstep found, as int64."""
        packed = (as_numpy(_unpacked(pack)["found"]) for pack in self._packs)
        latest = np.array(self._latest.numbers[_NUMBERS.index("found") :: len(_NUMBERS)], np.int64)
        return np.concatenate([*packed, latest])

    @property
    def reached(self) -> int:
        """Return the number of vertices that the search reached, the source included."""
        return 1 + int(self.found.sum())

    @property
    def depth(self) -> int:
        """Return the greatest distance that the search found."""
        return int(np.count_nonzero(self.found))


class _Latest:
    """The latest supersteps, column by column. numbers: ``_NUMBERS`` of each superstep in turn.
    kinds: for each superstep, the number in ``_kind_numbers`` of its directions and its kinds of
    messages. sent: the bytes of each kind of message, superstep by superstep.
    """

    def __init__(self) -> None:
        self.numbers = array("q")
        self.seconds = array("d")
        self.kinds = array("q")
        self.sent = array("q")
        self._kind_numbers: dict[tuple[tuple[tuple[str, str], ...], tuple[str, ...]], int] = {}

    def tell(self, told: tuple[tuple[tuple[str, str], ...], tuple[str, ...]]) -> None:
        self.kinds.append(self._kind_numbers.setdefault(told, len(self._kind_numbers)))

    def table(self) -> pa.Table:
        numbers = np.array(self.numbers, np.int64).reshape(-1, len(_NUMBERS))
        columns: dict[str, Any] = {name: as_arrow(numbers[:, i]) for i, name in enumerate(_NUMBERS)}
        columns["seconds"] = as_arrow(np.array(self.seconds, np.float64))
        kinds = np.array(self.kinds, np.int64)
        directions = [dict(pairs) for pairs, _ in self._kind_numbers]
        for key in {key: None for mapping in directions for key in mapping}:
            ways = [mapping.get(key) for mapping in directions]
            columns[f"direction.{key}"] = strings([ways[kind] for kind in self.kinds])
        messages = [names for _, names in self._kind_numbers]
        counts = np.array([len(names) for names in messages], np.int64)[kinds]
        first, sent = np.cumsum(counts) - counts, np.array(self.sent, np.int64)
        for key in {key: None for names in messages for key in names}:
            at = np.array([names.index(key) if key in names else -1 for names in messages])[kinds]
            values = sent[np.where(at < 0, 0, first + at)]
            columns[f"bytes_sent.{key}"] = as_arrow(values, at < 0)
        return pa.table(columns)


def records_of(table: pa.Table) -> list[SuperstepRecord]:
    """Return the records in a table of supersteps. Raises KeyError for any other table."""
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


def _unpacked(pack: bytes) -> pa.Table:
    return pq.read_table(pa.BufferReader(pack), use_threads=False)


def _packed(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    repeated = [name for name in table.column_names if name not in ("level", "seconds")]
    pq.write_table(table, sink, compression="lz4", use_dictionary=repeated)  # pyright: ignore
    return sink.getvalue().to_pybytes()
