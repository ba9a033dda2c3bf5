"""Validation of a search by Graph500's rules, against the edges of its graph. The rules are in
kernels/bfs/check.py.

All threads stream the result's rows (one thread, if ids are strings or bytes) and the graph's
edges. Memory holds distances, parents and vertex names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple, TypedDict

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ...kernels.base.graph import UNREACHED
from ...kernels.base.lookup import LOOKUP_BYTES, find, lookup_of
from ...kernels.base.team import Team
from ...kernels.bfs import check
from ...kernels.bfs.check import (
    RULES,
    TREE_BYTES,
    Violations,
    check_joined,
    check_rows,
    check_tree,
    put_rows,
)
from ...partition.disk.files import BLOCK_BYTES
from ...partition.errors import InputError
from ...partition.input.arrow import TEXT_BYTES, as_arrow, as_numpy, valid
from ...partition.input.id_types import in_range, is_bytes, is_string, shown_id, stored, told_id
from ...partition.store.store import EdgeBlock, Store
from ..results.names import VertexNames, id_bytes, names_of_store
from ..results.result import Result
from .judge import Judge

ROWS_RULE = "every vertex of the graph has exactly one row, and nothing else has a row"


_ROW = 160  # bytes of a row in a batch: three columns, their converted values, masks of faults
_HASHED = 32  # bytes of a string in Arrow's hash table, beside its characters
_BLOCKS = 2  # blocks of targets that a thread holds


class RuleVerdict(TypedDict):
    """A rule that a result breaks. rule: 0 for the rule about rows, 1 to 5 for Graph500's rules.
    example: vertices, in the user's ids.
    """

    rule: int
    meaning: str
    violations: int
    example: list[int | str | None]


Judgement = Literal["all", "some", "none"]


class Verdict(TypedDict):
    """Verdict on a result. valid: whether no rule is broken, and any value was judged. judged:
    whether all values were judged, some, or none. unjudged: number of values that were judged only
    by their range, or by a sum over all values. same_graph: whether the result names this graph;
    None if it names no graph.
    """

    algorithm: str
    valid: bool
    judged: Judgement
    unjudged: int
    directed: bool
    vertices: int
    same_graph: bool | None
    rules: list[RuleVerdict]


class SearchVerdict(Verdict):
    source: int | str | None
    max_depth: int | None
    reached: int
    depth: int


EdgeCheck = Callable[
    [NDArray[np.int32], NDArray[np.uint32], int | None, NDArray[np.uint8]], Violations
]
"""Function that checks a batch of edges by distance, parent and depth limit, and marks the vertices
that an edge joins to their parent (``check_rows``).
"""


@dataclass
class _Claim:
    """The values of a result, by place. rows: the verdict on its rows. violations: by its
    values.
    """

    distance: NDArray[np.int32]
    parent: NDArray[np.uint32]
    rows: RuleVerdict
    violations: Violations


@dataclass(frozen=True)
class Judged:
    """A graph that results are judged against.

    places: the length of arrays by place. edges: checks of all edges, in batches that any thread
    may take; undirected edges are in both directions.
    """

    names: VertexNames
    places: int
    fingerprint: str
    directed: bool
    edges: Iterable[Sequence[EdgeCheck]]


def judged_store(store: Store, team: Team) -> Judged:
    info = store.info
    names = names_of_store(store, team)
    blocks = store.edge_blocks(team)
    edges = ([partial(_check_block, read) for read in readers] for readers in blocks)
    return Judged(names, info.vertices, info.fingerprint, info.directed, edges)


def _check_block(
    read: Callable[[], EdgeBlock],
    distance: NDArray[np.int32],
    parent: NDArray[np.uint32],
    max_depth: int | None,
    joined: NDArray[np.uint8],
) -> Violations:
    violations = Violations()
    check_rows(*read(), distance, parent, max_depth, joined, violations)
    return violations


def judging_bytes(
    places: int, id_type: pa.DataType, texts: int, result: Result, threads: int
) -> int:
    """Return the bytes that judging holds, beside the graph's edges and names. texts: characters of
    all ids.
    """
    rows = rows_at_once(id_type)
    reading = result.reading(rows)
    batch = _ROW * rows + reading.held
    if _is_hashed(id_type):  # a hash table of all ids, which each batch makes anew
        batch += texts + _HASHED * places + 4 * (TEXT_BYTES + reading.batch)
    else:
        batch += threads * _ROW * rows + LOOKUP_BYTES * places
    ids = texts + id_bytes(id_type) * places  # by rising id; two more copies while they are made
    return (4 + 4 + 1 + 1) * places + max(TREE_BYTES * places, ids + max(batch, 2 * ids))


def reading_store_bytes(
    n: int, id_type: pa.DataType, texts: int, table: int, offsets: int, threads: int
) -> int:
    """Return the bytes that ``judged_store`` and its edges hold. table: bytes of the vertex table.
    offsets: bytes of the largest file of offsets.
    """
    ids = texts + id_bytes(id_type) * n
    return ids + (4 + 4) * n + max(table + ids, offsets + threads * _BLOCKS * BLOCK_BYTES)


def rows_at_once(id_type: pa.DataType) -> int:
    """Return the rows of a result to read at once. Batches are larger for ids that are no integers,
    since each batch makes a hash table of all ids.
    """
    return 1 << 20 if _is_hashed(id_type) else 1 << 16


def _is_hashed(id_type: pa.DataType) -> bool:
    return is_string(id_type) or is_bytes(id_type)


def validate_search(graph: Judged, result: Result, team: Team) -> SearchVerdict:
    """Return the verdict on a search. Raises InputError if the result is of a graph with another
    kind of edges (directed or not), or with other ids.
    """
    names = graph.names
    check_kind(result, graph.directed)
    claim = _read(result, names, graph.places, team)
    if result.info is None:  # another program wrote it: its source has distance 0
        at_zero = np.flatnonzero(claim.distance == 0)
        source = int(at_zero[0]) if len(at_zero) else None
        max_depth = None
    else:
        asked, depth = result.info.options.get("source"), result.info.options.get("max_depth")
        max_depth = depth if isinstance(depth, int) else None
        known = told_id(asked, names.id_type)
        source = None if known is None else names.find(known)
    violations = claim.violations
    if source is None:
        violations.add(1, 1)
    else:
        check_tree(claim.distance, claim.parent, source, max_depth, violations, team)
    joined = np.zeros(len(claim.distance), np.uint8)
    said = claim.distance, claim.parent, max_depth, joined
    for checks in graph.edges:
        for found in team.map(lambda check: check(*said), checks):
            violations += found
    check_joined(claim.parent, joined, violations)

    rules = [claim.rows] if claim.rows["violations"] else []
    rules += [
        RuleVerdict(
            rule=rule,
            meaning=RULES[rule],
            violations=count,
            example=named(names, violations.example.get(rule, ())),
        )
        for rule, count in violations.count.items()
        if count
    ]
    return SearchVerdict(
        algorithm="bfs",
        valid=not rules,
        judged="all",
        unjudged=0,
        source=None if source is None else named(names, (source,))[0],
        max_depth=max_depth,
        directed=graph.directed,
        vertices=len(names.index),
        reached=int(np.count_nonzero(claim.distance >= 0)),
        depth=int(claim.distance.max()),
        same_graph=result.info and result.info.graph == graph.fingerprint,
        rules=rules,
    )


def check_kind(result: Result, directed: bool) -> None:
    """Raise InputError if the result is of directed edges and the graph of undirected ones, or the
    reverse.
    """
    if result.info is not None and result.info.directed != directed:
        kinds = ("undirected", "directed")
        raise InputError(
            f"the result is for {kinds[result.info.directed]} edges, but the graph has "
            f"{kinds[directed]} edges"
        )


def named(names: VertexNames, vertices: tuple[int, ...]) -> list[int | str | None]:
    ids = names.decode(as_arrow(np.array(vertices, np.uint32)))
    return [shown_id(value) for value in ids.to_pylist()]


class _Rows(NamedTuple):
    """A batch of a result's rows, by place. known: whether the vertex is in the graph. strangers:
    the ids that are no vertices. told: errors of the other rows.
    """

    vertex: NDArray[np.uint32]
    known: NDArray[np.uint8]
    distance: NDArray[np.int32]
    parent: NDArray[np.uint32]
    strangers: pa.Array
    told: Violations


def _read(result: Result, names: VertexNames, places: int, team: Team) -> _Claim:
    """Put the result's rows into arrays by place."""
    distance, parent = np.full(places, -1, np.int32), np.full(places, UNREACHED, np.uint32)
    violations = Violations()
    seen = np.zeros(places, np.uint8)
    strangers, example = 0, None
    read = partial(_rows_of, PlaceLookup(names))
    batches = result.batches(rows_at_once(names.id_type))
    by = Team(1) if _is_hashed(names.id_type) else team  # each batch hashes all ids
    for rows in by.stream(read, batches):
        put_rows(rows.vertex, rows.known, rows.distance, rows.parent, distance, parent, seen)
        violations += rows.told
        if len(rows.strangers):
            strangers += len(rows.strangers)
            example = example or rows.strangers[0].as_py()
    return _Claim(distance, parent, rows_verdict(names, seen, strangers, example), violations)


def rows_verdict(
    names: VertexNames, seen: NDArray[np.uint8], strangers: int, stranger: object
) -> RuleVerdict:
    """Return the verdict on the rows of a result. seen: number of rows of each place, 2 for two or
    more. strangers: number of rows whose id is no vertex. stranger: one such id.
    """
    seen = seen[names.index]  # some places belong to no vertex
    count = strangers
    example: list[int | str | None] = [shown_id(stranger)] if strangers else []
    for wrong in (seen > 1, seen == 0):
        wrong_count = int(np.count_nonzero(wrong))
        if wrong_count:
            count += wrong_count
            example = example or named(names, (int(names.index[np.argmax(wrong)]),))
    return RuleVerdict(rule=0, meaning=ROWS_RULE, violations=count, example=example)


def _rows_of(places_of: PlaceLookup, batch: pa.RecordBatch) -> _Rows:
    vertex, known = places_of(batch.column("vertex"))
    distance = as_numpy(batch.column("distance").cast(pa.int64()).fill_null(-1))
    parent, parent_known = places_of(batch.column("parent"))
    told = Violations()
    negative = (distance < 0) & valid(batch.column("distance"))
    nobody = valid(batch.column("parent")) & ~parent_known
    for rule, wrong in ((2, negative & known), (5, nobody & known)):
        if wrong.any():
            told.add(rule, int(wrong.sum()), int(vertex[np.argmax(wrong)]))
    return _Rows(
        vertex,
        known.astype(np.uint8),
        np.clip(distance, -1, 2**31 - 1).astype(np.int32),
        np.where(parent_known, parent, UNREACHED).astype(np.uint32),
        batch.column("vertex").filter(pa.array(~known)),
        told,
    )


class PlaceLookup:
    """Lookup of a column of user ids. Returns their places, and a mask of the ids that are
    vertices.
    """

    def __init__(self, names: VertexNames) -> None:
        self._index = names.index
        self._ids = stored(names.decode(as_arrow(names.index)))
        if is_string(names.id_type):
            self._ids = self._ids.cast(pa.large_string())
        elif not is_bytes(names.id_type):
            self._lookup = lookup_of(_as_int64(self._ids))

    def __call__(self, column: pa.Array) -> tuple[NDArray[np.uint32], NDArray[np.bool_]]:
        id_type = self._ids.type
        column = stored(column)
        found = column.type
        if pa.types.is_dictionary(found):
            found = found.value_type
        if not _same_kind(found, id_type):
            raise InputError(
                f"the result's ids are {column.type}, but the graph's ids are {id_type}"
            )
        try:
            column = column.cast(id_type)
        except pa.ArrowInvalid:  # ids that do not fit the graph's type are no vertices
            fitting = [
                value if isinstance(value, int) and in_range(value, id_type) else None
                for value in column.to_pylist()
            ]
            column = pa.array(fitting, id_type)
        if _is_hashed(id_type):
            place = pc.call_function("index_in", [column], pc.SetLookupOptions(value_set=self._ids))
            known = valid(place)
            at = as_numpy(place.fill_null(0))
        else:
            at, known = find(self._lookup, _as_int64(column.fill_null(0)))
            known &= valid(column)
        return self._index[at], known


def _same_kind(found: pa.DataType, id_type: pa.DataType) -> bool:
    if is_string(id_type):
        return is_string(found)
    return is_bytes(found) if is_bytes(id_type) else pa.types.is_integer(found)


def _as_int64(ids: pa.Array) -> NDArray[np.int64]:
    """Return integers as int64; unsigned 64-bit integers keep their bits."""
    return as_numpy(ids).astype(np.uint64 if ids.type == pa.uint64() else np.int64).view(np.int64)


BFS = Judge(validate_search, graph="search", kernels=(check,))
