"""Pairs of vertices that a user names, typed or in a Parquet file with the columns ``source`` and
``target``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import xxhash
from numpy.typing import NDArray

from ...partition.errors import InputError
from ...partition.input.arrow import as_numpy, compute
from ...partition.input.id_types import shown_id, stored
from ...partition.input.ids import parse_id
from ..results.names import Names
from ..results.weights import WEIGHT_BYTES, add_pairs, find_places, parse_ids, read_ids, read_table

ENDS = "source", "target"

PAIR_IDS_BYTES = 4 * WEIGHT_BYTES
"""Bytes that a pair takes while pairs are read, compared and looked up."""


class PairIds(NamedTuple):
    """Distinct pairs of user ids, in the order in which they are given.

    given: the place where the user named them, for messages. vertex: user ids, each once. ends:
    int64 (2, pairs), the numbers of sources and targets in ``vertex``. row: int64, the row in which
    each pair was first given, from 1 on. repeated: the number of rows that repeat a pair.
    """

    given: str
    vertex: pa.Array
    ends: NDArray[np.int64]
    row: NDArray[np.int64]
    repeated: int

    @property
    def digest(self) -> str:
        """Return a digest of the pairs in their order."""
        named = xxhash.xxh3_128()
        add_pairs(named, *(self.vertex.take(pa.array(end)) for end in self.ends))
        return named.hexdigest()

    def places(self, names: Names) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """Return the places of sources and targets in the arrays of a graph. Raises InputError for
        a vertex that the graph does not have.
        """
        places, found = find_places(self.vertex, names)
        known = found[self.ends]
        if not known.all():
            pair = int(np.argmin(known.all(axis=0)))
            end = int(np.argmin(known[:, pair]))
            value = shown_id(self.vertex[int(self.ends[end, pair])].as_py())
            where = f"{self.given}: row {self.row[pair]}: " if self.given else ""
            raise InputError(f"{where}{ENDS[end]} {value!r} is not a vertex of the graph")
        source, target = places[self.ends]
        return source, target


def _distinct(given: str, source: pa.Array, target: pa.Array) -> PairIds:
    ids = pa.concat_arrays([stored(source), stored(target)])
    encoded = compute("dictionary_encode", ids)
    numbers = as_numpy(encoded.indices).astype(np.int64).reshape(2, -1)
    _, first = np.unique(numbers[0] << 32 | numbers[1], return_index=True)
    first.sort()
    repeated = len(source) - len(first)
    return PairIds(given, encoded.dictionary, numbers[:, first], first + 1, repeated)


class NamedPairs:
    """Pairs that a user names, which are read at the first ``read``. count: their number, once they
    are read; 0 before.
    """

    def __init__(self) -> None:
        self.count = 0
        self._ids: PairIds | None = None

    def read(self, id_type: pa.DataType) -> PairIds:
        """Read the pairs, or return what an earlier call has read. id_type: the graph's id type.
        Raises InputError for pairs that are none, and for ids that are not of this type.
        """
        if self._ids is None:
            self._ids = self._read(id_type)
            self.count = len(self._ids.row)
        return self._ids

    def told(self, id_type: pa.DataType) -> dict[str, str | int]:
        """Return the pairs as options that decide a result."""
        return {"pairs": self.read(id_type).digest}

    def _read(self, id_type: pa.DataType) -> PairIds:
        raise NotImplementedError


class PairFile(NamedPairs):
    """A file of pairs, local or in an object store."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path

    def _read(self, id_type: pa.DataType) -> PairIds:
        table = read_table(self.path, ENDS)
        for name in ENDS:
            if name not in table.column_names:
                raise InputError(f"{self.path}: column {name!r} is missing")
        if not table.num_rows:
            raise InputError(f"{self.path}: the file has no pairs")
        source, target = (
            read_ids(f"{self.path}: column {name!r}", table[name].combine_chunks(), id_type)
            for name in ENDS
        )
        return _distinct(self.path, source, target)


class TypedPairs(NamedPairs):
    """Pairs of ids as a user types them. given: as in PairIds."""

    def __init__(self, pairs: Sequence[tuple[str, str]], given: str) -> None:
        super().__init__()
        self._pairs = pairs
        self._given = given

    def _read(self, id_type: pa.DataType) -> PairIds:
        if not self._pairs:
            raise InputError(f"{self._given}: no pairs are given")
        source, target = zip(*self._pairs, strict=True)
        return _distinct(self._given, parse_ids(source, id_type), parse_ids(target, id_type))


class OnePair(TypedPairs):
    """A source and a target, as they were typed."""

    def __init__(self, source: str, target: str) -> None:
        super().__init__([(source, target)], "")
        self._ends = source, target

    def told(self, id_type: pa.DataType) -> dict[str, str | int]:
        self.read(id_type)
        ends = zip(ENDS, self._ends, strict=True)
        return {name: shown_id(parse_id(value, id_type)) for name, value in ends}
