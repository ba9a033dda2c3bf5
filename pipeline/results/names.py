"""Names of vertices: their user ids, and their places in a search's arrays. Names find the source,
and serve to write and to judge results.

Results are written in *pieces* of vertices, by rising id. Decoding parents needs the ids of all
vertices, so these stay in memory while pieces are written.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...kernels.base.team import Team
from ...partition.input.arrow import (
    as_arrow,
    as_numpy,
    numbers_and_nulls,
    string_ends,
    text_cuts,
)
from ...partition.input.id_types import Id, is_string, stored
from ...partition.input.ids import Ids, find_id
from ...partition.store.store import Store

ROW_GROUP = 1 << 20
_FILES, _LEAST_ROWS, _MOST_ROWS = 16, 1 << 18, 1 << 21
PARENT_BYTES = 1 << 22
"""Most bytes of parents' characters that are written at once, as rows of one piece."""


class Names(Protocol):
    """Names of vertices, as writing a result needs them.

    id_type: the type of user ids in results. pieces: the number of vertices in each piece. piece:
    the user ids (``id_type``) of a piece's vertices, rising, and the vertices' places in the
    search's arrays (uint32). decode: the user ids (``id_type``) for an Arrow array of places; nulls
    stay nulls. widths: the bytes (int64) of the ids at these places; None unless ids are strings.
    find: the place of a user id, or None. prepare: loads everything that decode needs, with as many
    threads as files are written at once.
    """

    @property
    def id_type(self) -> pa.DataType: ...
    @property
    def pieces(self) -> Sequence[int]: ...
    def piece(self, number: int) -> tuple[pa.Array, NDArray[np.uint32]]: ...
    def decode(self, places: pa.Array) -> pa.Array: ...
    def widths(self, places: NDArray[np.uint32]) -> NDArray[np.int64] | None: ...
    def find(self, value: Id) -> int | None: ...
    def prepare(self, at_once: int) -> None: ...


@dataclass(frozen=True)
class VertexNames:
    """Names held in memory.

    index: uint32 (n,), the place of each vertex in the search's arrays, by rising user id. decoded,
    measured, found: implement ``decode``, ``widths`` and ``find`` of Names.
    """

    id_type: pa.DataType
    index: NDArray[np.uint32]
    decoded: Callable[[pa.Array], pa.Array]
    measured: Callable[[NDArray[np.uint32]], NDArray[np.int64] | None]
    found: Callable[[Id], int | None]

    @property
    def pieces(self) -> Sequence[int]:
        return np.diff(self._cuts).tolist()

    @cached_property
    def _cuts(self) -> list[int]:
        """Return the bounds of the pieces: the start of each piece, and the end of the last one."""
        cuts = [0]
        rows = min(ROW_GROUP, file_rows(len(self.index)))
        for start in range(0, len(self.index), rows):
            at = self.index[start : start + rows]
            widths = self.widths(at)
            inside = [0, len(at)] if widths is None else text_cuts(widths)
            cuts += [start + cut for cut in inside[1:]]
        return cuts

    def piece(self, number: int) -> tuple[pa.Array, NDArray[np.uint32]]:
        at = self.index[self._cuts[number] : self._cuts[number + 1]]
        return self.decode(as_arrow(at)), at

    def decode(self, places: pa.Array) -> pa.Array:
        return self.decoded(places)

    def widths(self, places: NDArray[np.uint32]) -> NDArray[np.int64] | None:
        return self.measured(places)

    def find(self, value: Id) -> int | None:
        return self.found(value)

    def prepare(self, at_once: int) -> None:
        """Do nothing: the names are in memory already."""


def file_rows(vertices: int) -> int:
    """Return the number of rows in each file of a result. The number is small enough for many
    threads to write files at once.

    >>> [file_rows(n) for n in (1000, 1 << 24, 1 << 30)]
    [262144, 1048576, 2097152]
    """
    rows = min(max(_LEAST_ROWS, vertices // _FILES), _MOST_ROWS)
    return 1 << rows.bit_length() - 1


def id_bytes(id_type: pa.DataType) -> int:
    """Return the bytes that one id takes in memory; a string takes 8 beside its characters."""
    return 8 if is_string(id_type) else id_type.bit_width // 8


def ids_at(names: Names, places: Sequence[int]) -> list[Any]:
    """Return the user ids of a few vertices, as Python's values.

    The ids of all vertices are looked at, a piece at a time.
    """
    if isinstance(names, VertexNames):
        return names.decode(as_arrow(np.array(places, np.uint32))).to_pylist()
    wanted = np.unique(np.array(places, np.uint32))
    found: dict[int, Any] = {}
    for number in range(len(names.pieces)):
        vertices, at = names.piece(number)
        here = np.flatnonzero(np.isin(at, wanted))
        found |= zip(at[here].tolist(), vertices.take(as_arrow(here)).to_pylist(), strict=True)
        if len(found) == len(wanted):
            break
    return [found[place] for place in places]


def numbers_by_id(names: Names) -> NDArray[np.uint32]:
    """Return each vertex's number by rising user id, by place."""
    numbers, first = np.empty(sum(names.pieces), np.uint32), 0
    for piece in range(len(names.pieces)):
        _, places = names.piece(piece)
        numbers[places] = np.arange(first, first + len(places), dtype=np.uint32)
        first += len(places)
    return numbers


def in_id_order(names: Names) -> NDArray[np.uint32]:
    """Return the places of all vertices by rising user id."""
    pieces = range(len(names.pieces))
    return np.concatenate([np.empty(0, np.uint32), *(names.piece(i)[1] for i in pieces)])


def names_of_store(store: Store, team: Team) -> VertexNames:
    """Return the names of a store's vertices, all in memory, for arrays by global id."""
    table = store.vertices(team, ["vertex", "global_id"])
    vertex = table["vertex"]
    id_type = vertex.type
    if is_string(id_type):
        vertex = vertex.cast(pa.large_string())
    ids = stored(vertex)
    index = as_numpy(table["global_id"])
    position = np.empty(len(index), np.uint32)
    position[index] = np.arange(len(index), dtype=np.uint32)

    def decode(places: pa.Array) -> pa.Array:
        numbers, null = numbers_and_nulls(places)
        return ids.take(as_arrow(position[numbers], null)).cast(id_type)

    def widths(places: NDArray[np.uint32]) -> NDArray[np.int64] | None:
        return np.diff(string_ends(ids))[position[places]] if is_string(id_type) else None

    def find(value: Id) -> int | None:
        place = find_id(ids, value)
        return None if place is None else int(index[place])

    return VertexNames(id_type, index, decode, widths, find)


def names_by_position(
    ids: Ids, index: NDArray[np.uint32], dense_of: NDArray[np.uint32]
) -> VertexNames:
    """Return names for arrays by position. index: positions by rising dense id. dense_of: the dense
    id at each position.
    """

    def decode(places: pa.Array) -> pa.Array:
        numbers, null = numbers_and_nulls(places)
        return ids.decode(as_arrow(dense_of[numbers], null))

    def widths(places: NDArray[np.uint32]) -> NDArray[np.int64] | None:
        return ids.widths(dense_of[places]) if is_string(ids.id_type) else None

    def find(value: Id) -> int | None:
        dense = ids.find(value)
        if dense is None:
            return None
        place = bisect_left(index, dense, key=lambda position: dense_of[position])
        known = place < len(index) and dense_of[index[place]] == dense
        return int(index[place]) if known else None

    return VertexNames(ids.id_type, index, decode, widths, find)


def names_of_ids(ids: Ids, present: NDArray[np.uint8]) -> VertexNames:
    """Return names for arrays by dense id."""

    def find(value: Id) -> int | None:
        dense = ids.find(value)
        return dense if dense is not None and present[dense] else None

    index = np.flatnonzero(present).astype(np.uint32)
    return VertexNames(ids.id_type, index, ids.decode, ids.widths, find)
