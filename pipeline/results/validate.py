"""Validation: a result judged by Graph500's rules against the edges of its graph.

Streams the result's rows and the store's edges; holds distances, parents and vertex names,
and a batch of edges at a time (kernels/bfs/check.py has the rules).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ...kernels.base.graph import UNREACHED
from ...kernels.base.team import Team
from ...kernels.bfs.check import RULES, Violations, check_edges, check_joined, check_tree
from ...partition.errors import InputError
from ...partition.input.arrow import as_arrow, as_numpy, valid
from ...partition.input.edges import is_string
from ...partition.input.ids import in_range
from ...partition.store.store import Store, open_store
from .names import VertexNames, names_of_store
from .result import Result, open_result

ROWS_RULE = "every vertex of the graph stands in one row, and nothing else does"


class RuleVerdict(TypedDict):
    """rule: 0 for the rows, 1 to 5 for Graph500's. example: vertices, in the user's ids."""

    rule: int
    meaning: str
    violations: int
    example: list[int | str | None]


class Verdict(TypedDict):
    valid: bool
    source: int | str | None
    max_depth: int | None
    directed: bool
    vertices: int
    reached: int
    depth: int
    same_graph: bool | None
    rules: list[RuleVerdict]


@dataclass
class _Claim:
    """What a result says, by global id, and what was wrong with its rows."""

    distance: NDArray[np.int32]
    parent: NDArray[np.uint32]
    rows: RuleVerdict
    violations: Violations


def validate_result(store_path: str | Path, result_path: str | Path, threads: int = 1) -> Verdict:
    """Judge the result at ``result_path`` against the store it is of."""
    return validate(open_store(store_path), open_result(result_path), threads)


def validate(store: Store, result: Result, threads: int = 1) -> Verdict:
    team = Team(threads)
    names = names_of_store(store, team)
    if result.info is not None and result.info.directed != store.info.directed:
        kinds = ("undirected", "directed")
        raise InputError(
            f"the result is of {kinds[result.info.directed]} edges, the store "
            f"{store.path} of {kinds[store.info.directed]} ones"
        )
    claim = _read(result, names, store.info.vertices)
    if result.info is None:  # written by another program: the source is where it says 0
        at_zero = np.flatnonzero(claim.distance == 0)
        source = int(at_zero[0]) if len(at_zero) else None
        max_depth = None
    else:
        known_as = type(result.info.source) is (str if is_string(names.id_type) else int)
        source = names.find(result.info.source) if known_as else None
        max_depth = result.info.max_depth
    violations = claim.violations
    if source is None:
        violations.add(1, 1)
    else:
        check_tree(claim.distance, claim.parent, source, max_depth, violations)
    joined = np.zeros(len(claim.distance), np.uint8)
    for sources, targets in store.edge_batches(team):
        check_edges(sources, targets, claim.distance, claim.parent, max_depth, joined, violations)
    check_joined(claim.parent, joined, violations)

    rules = [claim.rows] if claim.rows["violations"] else []
    rules += [
        RuleVerdict(
            rule=rule,
            meaning=RULES[rule],
            violations=count,
            example=_named(names, violations.example.get(rule, ())),
        )
        for rule, count in violations.count.items()
        if count
    ]
    return Verdict(
        valid=not rules,
        source=None if source is None else _named(names, (source,))[0],
        max_depth=max_depth,
        directed=store.info.directed,
        vertices=store.info.vertices,
        reached=int(np.count_nonzero(claim.distance >= 0)),
        depth=int(claim.distance.max()),
        same_graph=result.info and result.info.graph == store.info.fingerprint,
        rules=rules,
    )


def _named(names: VertexNames, vertices: tuple[int, ...]) -> list[int | str | None]:
    return names.decode(as_arrow(np.array(vertices, np.uint32))).to_pylist()


def _read(result: Result, names: VertexNames, vertices: int) -> _Claim:
    """Put the result's rows into arrays by global id."""
    claim = _Claim(
        np.full(vertices, -1, np.int32),
        np.full(vertices, UNREACHED, np.uint32),
        RuleVerdict(rule=0, meaning=ROWS_RULE, violations=0, example=[]),
        Violations(),
    )
    seen = np.zeros(vertices, np.uint8)
    places = _Places(names)
    for batch in result.batches():
        vertex, known = places(batch.column("vertex"))
        _report_rows(claim, ~known, batch.column("vertex"))
        distance = as_numpy(batch.column("distance").cast(pa.int64()).fill_null(-1))
        negative = (distance < 0) & valid(batch.column("distance"))
        parent, parent_known = places(batch.column("parent"))
        has_parent = valid(batch.column("parent"))

        at = vertex[known]
        once, times = np.unique(at, return_counts=True)
        seen[once] = np.minimum(seen[once] + times, 2)
        claim.distance[at] = np.clip(distance[known], -1, 2**31 - 1)
        claim.parent[at] = np.where(parent_known, parent, UNREACHED)[known]
        for rule, wrong in ((2, negative & known), (5, has_parent & ~parent_known & known)):
            if wrong.any():
                claim.violations.add(rule, int(wrong.sum()), int(vertex[np.argmax(wrong)]))
    for wrong in (seen > 1, seen == 0):
        count = int(np.count_nonzero(wrong))
        if count:
            claim.rows["violations"] += count
            claim.rows["example"] = claim.rows["example"] or _named(names, (int(np.argmax(wrong)),))
    return claim


def _report_rows(claim: _Claim, wrong: NDArray[np.bool_], vertex: pa.Array) -> None:
    count = int(np.count_nonzero(wrong))
    if count:
        claim.rows["violations"] += count
        claim.rows["example"] = claim.rows["example"] or [vertex[int(np.argmax(wrong))].as_py()]


class _Places:
    """Global ids of a column of user ids, and which of them are vertices at all."""

    def __init__(self, names: VertexNames) -> None:
        self._index = names.index
        self._ids = names.decode(as_arrow(names.index))
        if is_string(names.id_type):
            self._ids = self._ids.cast(pa.large_string())

    def __call__(self, column: pa.Array) -> tuple[NDArray[np.uint32], NDArray[np.bool_]]:
        id_type = self._ids.type
        found = column.type
        if pa.types.is_dictionary(found):
            found = found.value_type
        if not (is_string(found) if is_string(id_type) else pa.types.is_integer(found)):
            raise InputError(f"the result's ids are {column.type}, the graph's {id_type}")
        try:
            column = column.cast(id_type)
        except pa.ArrowInvalid:  # some ids do not fit the graph's type: those are none of its own
            fitting = [
                value if isinstance(value, int) and in_range(value, id_type) else None
                for value in column.to_pylist()
            ]
            column = pa.array(fitting, id_type)
        if is_string(self._ids.type):
            place = pc.call_function("index_in", [column], pc.SetLookupOptions(value_set=self._ids))
            known = valid(place)
            at = as_numpy(place.fill_null(0))
        else:
            ids = as_numpy(self._ids)
            wanted = as_numpy(column.fill_null(0))
            at = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
            known = (ids[at] == wanted) & valid(column)
        return self._index[at], known
