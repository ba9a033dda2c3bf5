"""The vertices that a file says it has, and which of them have edges."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...partition.input.arrow import as_arrow
from .graph_file import EDGES, check_room, self_loops


class Vertices:
    """Ids: a range, or distinct ones, rising. limit: of memory, for the LimitError if it is passed.

    bytes: held, with the ids.
    """

    def __init__(self, ids: range | NDArray[np.int64], limit: int) -> None:
        count = ids.stop - ids.start if isinstance(ids, range) else len(ids)
        self.bytes = count if isinstance(ids, range) else count + ids.nbytes
        check_room(self.bytes, limit)
        self._ids = ids
        self._seen = np.zeros(count, np.bool_)

    def see(self, ids: NDArray) -> NDArray[np.bool_]:
        """Note that vertices have edges; says which of the ids are vertices."""
        if isinstance(self._ids, range):
            known = (ids >= self._ids.start) & (ids < self._ids.stop)
            self._seen[ids[known] - self._ids.start] = True
            return known
        places = np.minimum(np.searchsorted(self._ids, ids), len(self._ids) - 1)
        known = self._ids[places] == ids
        self._seen[places[known]] = True
        return known

    def self_loops(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Of the vertices that no edge was noted of."""
        for first in range(0, len(self._seen), EDGES):
            places = first + np.flatnonzero(~self._seen[first : first + EDGES])
            if len(places):
                ids = self._ids[places] if isinstance(self._ids, np.ndarray) else places
                start = self._ids.start if isinstance(self._ids, range) else 0
                yield self_loops(as_arrow(ids + start), schema)
