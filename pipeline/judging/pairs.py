"""Rows of a result that are of two vertices, ``src`` and ``dst``, as judges read them. A pair is a
key: the first vertex's number in the high half, the other one's in the low half.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...partition.input.id_types import shown_id
from ..results.names import VertexNames
from ..results.result import Result
from .programs import rule_of
from .searches import PlaceLookup, RuleVerdict, named, rows_at_once


class PairBatch(NamedTuple):
    """A batch of a result's rows. src, dst: places of both ends. known: whether both are vertices
    of the graph.
    """

    rows: pa.RecordBatch
    src: NDArray[np.uint32]
    dst: NDArray[np.uint32]
    known: NDArray[np.bool_]

    def ends(self, row: int) -> list[int | str | None]:
        """Return the ids of both ends of a row."""
        return [shown_id(self.rows.column(end)[row].as_py()) for end in ("src", "dst")]


def pair_batches(names: VertexNames, result: Result) -> Iterator[PairBatch]:
    places_of = PlaceLookup(names)
    for rows in result.batches(rows_at_once(names.id_type)):
        (src, known), (dst, other_known) = (places_of(rows.column(end)) for end in ("src", "dst"))
        yield PairBatch(rows, src, dst, known & other_known)


def pair_keys(first: NDArray[np.uint32], other: NDArray[np.uint32]) -> NDArray[np.uint64]:
    return first.astype(np.uint64) << np.uint64(32) | other


def edge_keys(u: NDArray[np.uint32], v: NDArray[np.uint32]) -> NDArray[np.uint64]:
    """Return keys of edges without a direction: the lesser end is the first one."""
    return pair_keys(np.minimum(u, v), np.maximum(u, v))


def find_keys(
    keys: NDArray[np.uint64], wanted: NDArray[np.uint64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return where wanted keys are among rising keys, and which of them are there."""
    at = np.minimum(np.searchsorted(keys, wanted), max(0, len(keys) - 1))
    return at, keys[at] == wanted if len(keys) else np.zeros(len(wanted), np.bool_)


def add_pair_rule(
    rules: list[RuleVerdict],
    names: VertexNames,
    meanings: Mapping[int, str],
    rule: int,
    keys: NDArray[np.uint64],
) -> None:
    """Add the rule to ``rules`` if any pairs break it. keys: of these pairs, of places."""
    if len(keys):
        pair = divmod(int(keys[0]), 1 << 32)
        rules.append(rule_of({**meanings}, rule, len(keys), named(names, pair)))
