"""Validation of distances and paths between pairs of vertices. The rules are in
kernels/judging/programs.py.

The judge searches from each target, against edges, and follows the least path from the source
(kernels/judging/pair_paths.py). It has all edges in memory. At most about ``MOST_LOOKED`` edges are
examined: a result that would take more is judged in part.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import xxhash
from numpy.typing import NDArray

from ...kernels.judging import distances, pair_paths, programs
from ...kernels.judging.distances import count_ends
from ...kernels.judging.pair_paths import (
    EDGE_BYTES,
    SEARCH_BYTES,
    check_steps,
    follow_least,
    label_from,
    put_edges,
)
from ...kernels.judging.programs import PAIR_RULES, STEP_RULES
from ...partition.input.arrow import as_numpy
from ...partition.input.id_types import told_id
from ..results.names import numbers_by_id
from ..results.result import Result
from ..results.weights import add_pairs
from .distances import MOST_LOOKED
from .graph import JudgedEdges
from .judge import Judge
from .programs import is_by_weights, rule_of, verdict_of
from .searches import (
    Judgement,
    PlaceLookup,
    RuleVerdict,
    Verdict,
    check_kind,
    named,
    rows_at_once,
)

_ROUNDING = 1e-9
"""Relative rounding error of sums of floats, added in any order."""

ROW_BYTES = 80
"""Bytes for each row: its cells, and which rules it breaks."""


class PathsVerdict(Verdict):
    """Verdict on paths. rows: of the result. pairs: that the rows are of."""

    rows: int
    pairs: int


class _Rows(NamedTuple):
    """Rows of a result. source, target, vertex: places. known: whether all of these are vertices of
    the graph. distance: NaN for null. step: -1 for null. Without paths, vertex and step are empty.
    """

    source: NDArray[np.uint32]
    target: NDArray[np.uint32]
    known: NDArray[np.bool_]
    distance: NDArray[np.float64]
    vertex: NDArray[np.uint32]
    step: NDArray[np.int64]


class _Edges(NamedTuple):
    """Compressed sparse rows with weights."""

    offsets: NDArray[np.int64]
    rows: NDArray[np.uint32]
    heavy: NDArray[np.float64]


def validate_pairs(graph: JudgedEdges, result: Result) -> PathsVerdict:
    """Return the verdict on distances between pairs. Raises InputError as ``validate_components``
    does.
    """
    check_kind(result, graph.directed)
    told, digest = _read(graph, result)
    rules: list[RuleVerdict] = []
    astray = ~told.known | _repeats(told)
    if not _as_asked(graph, result, told, digest):
        astray[:] = True
    _add(rules, graph, told, PAIR_RULES, 1, astray)
    wrong = np.zeros(len(astray), np.bool_)
    pairs = np.flatnonzero(told.known)
    judge = _Again(graph, result)
    judged = 0
    for some in judge.by_target(told.target[pairs]):
        at = pairs[some]
        expected = judge.distance[told.source[at]]
        same = np.isclose(told.distance[at], expected, rtol=judge.slack, atol=0)
        wrong[at] = ~np.where(np.isinf(expected), np.isnan(told.distance[at]), same)
        judged += len(at)
    _add(rules, graph, told, PAIR_RULES, 2, wrong)
    verdict = verdict_of(graph, result, rules, *_share(judged, len(pairs)))
    return PathsVerdict(**verdict, rows=result.rows, pairs=result.rows)


def validate_nodes(graph: JudgedEdges, result: Result) -> PathsVerdict:
    """Return the verdict on paths between pairs. Errors are those of ``validate_pairs``."""
    check_kind(result, graph.directed)
    told, digest = _read(graph, result)
    rules: list[RuleVerdict] = []
    begins, broken = _structure(told)
    first = np.flatnonzero(begins)
    pairs = _Rows._make(values[first] for values in told)
    broken[first] |= _repeats(pairs)
    if result.info and "source" in result.info.options and len(first):
        broken[first] |= not _as_asked(graph, result, pairs, digest)
    _add(rules, graph, told, STEP_RULES, 1, broken)
    judge = _Again(graph, result)
    wrong = np.zeros(len(broken), np.bool_)
    check_steps(*judge.leaving, told.vertex, told.distance, begins, judge.slack, wrong)
    wrong[first] = told.distance[first] != 0
    _add(rules, graph, told, STEP_RULES, 2, wrong)
    ends = np.append(first[1:], len(broken))
    faults = np.concatenate([[0], np.cumsum(broken | wrong)])
    whole = np.flatnonzero(faults[ends] == faults[first])
    longer, judged = np.zeros(len(broken), np.bool_), 0
    for some in judge.by_target(pairs.target[whole]):
        for pair in whole[some].tolist():
            span = slice(first[pair], ends[pair])
            longer[first[pair]] = not judge.is_least(told.vertex[span], told.distance[span])
        judged += len(some)
    _add(rules, graph, told, STEP_RULES, 3, longer)
    verdict = verdict_of(graph, result, rules, *_share(judged, len(whole)))
    return PathsVerdict(**verdict, rows=result.rows, pairs=len(first))


def _share(judged: int, pairs: int) -> tuple[Judgement, int]:
    """Return whether all pairs were judged, and how many were not."""
    how: Judgement = "all" if judged == pairs else "some" if judged else "none"
    return how, pairs - judged


def _structure(told: _Rows) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which rows begin a path, and which rows break the rule on how a path's rows stand."""
    count = len(told.known)
    if not count:
        return np.zeros(0, np.bool_), np.zeros(0, np.bool_)
    begins = np.concatenate([[True], told.step[1:] == 0])
    ends = np.append(begins[1:], True)
    broken = ~told.known | (ends & (told.vertex != told.target))
    broken |= begins & ((told.vertex != told.source) | (told.step != 0))
    for values, step in ((told.source, 0), (told.target, 0), (told.step, 1)):
        broken[1:] |= ~begins[1:] & (values[1:].astype(np.int64) != values[:-1] + step)
    return begins, broken


def _repeats(told: _Rows) -> NDArray[np.bool_]:
    """Return which rows are of a pair that an earlier row is of."""
    keys = told.source.astype(np.uint64) << np.uint64(32) | told.target
    again = np.ones(len(keys), np.bool_)
    again[np.unique(keys, return_index=True)[1]] = False
    return again & told.known


def _as_asked(graph: JudgedEdges, result: Result, told: _Rows, digest: str) -> bool:
    """Return whether the pairs are those that were asked for, as far as the result says."""
    if result.info is None:
        return True
    options = result.info.options
    if "source" not in options:
        return options.get("pairs") == digest
    names = graph.names
    known = (told_id(options[end], names.id_type) for end in ("source", "target"))
    ends = [None if value is None else names.find(value) for value in known]
    return [told.source.tolist(), told.target.tolist()] == [[end] for end in ends]


def _read(graph: JudgedEdges, result: Result) -> tuple[_Rows, str]:
    """Return the result's rows, and the digest of its pairs."""
    places_of, has_steps = PlaceLookup(graph.names), "step" in result.values
    ids = ("source", "target", "vertex") if has_steps else ("source", "target")
    digest = xxhash.xxh3_128()
    parts: list[list[NDArray]] = [[] for _ in _Rows._fields]
    for rows in result.batches(rows_at_once(graph.names.id_type)):
        places, there = zip(*(places_of(rows.column(name)) for name in ids), strict=True)
        add_pairs(digest, rows.column("source"), rows.column("target"))
        vertex, step = np.zeros(0, np.uint32), np.zeros(0, np.int64)
        if has_steps:
            vertex = np.where(there[2], places[2], 0).astype(np.uint32)
            step = as_numpy(rows.column("step").cast(pa.int64()).fill_null(-1))
        distance = as_numpy(rows.column("distance").cast(pa.float64()).fill_null(np.nan))
        source, target = (np.where(there[i], places[i], 0).astype(np.uint32) for i in range(2))
        values = source, target, np.logical_and.reduce(there), distance, vertex, step
        for part, some in zip(parts, values, strict=True):
            part.append(some)
    kinds = np.uint32, np.uint32, np.bool_, np.float64, np.uint32, np.int64
    none = (np.zeros(0, kind) for kind in kinds)
    told = (np.concatenate([empty, *part]) for empty, part in zip(none, parts, strict=True))
    return _Rows._make(told), digest.hexdigest()


def _add(
    rules: list[RuleVerdict],
    graph: JudgedEdges,
    told: _Rows,
    meanings: dict[int, str],
    rule: int,
    broken: NDArray[np.bool_],
) -> None:
    """Add the rule to ``rules`` if any rows break it."""
    if broken.any():
        known = np.flatnonzero(broken & told.known)
        pair = [(int(told.source[row]), int(told.target[row])) for row in known[:1]]
        example = named(graph.names, pair[0]) if pair else []
        rules.append(rule_of(meanings, rule, int(np.count_nonzero(broken)), example))


def _is_weighted(result: Result) -> bool:
    return result.info is not None and is_by_weights(result)


class _Again:
    """Searches of the judge's own. leaving: all edges. distance, hops: to the last target, by
    place. slack: relative rounding error of distances.
    """

    def __init__(self, graph: JudgedEdges, result: Result) -> None:
        self._weighted = _is_weighted(result)
        self._graph = graph
        self._number = numbers_by_id(graph.names)
        self.slack = _ROUNDING if self._weighted and graph.float_weights else 0.0
        self.leaving = self._edges(along=True)
        self._entering = self._edges(along=False) if graph.directed else self.leaving
        self.distance, self._hops = np.empty(graph.places), np.zeros(graph.places, np.uint32)
        self._queue = np.zeros(graph.places, np.uint32)
        self._waits = np.zeros(graph.places, np.bool_)

    def _batches(self) -> Iterator[tuple[NDArray[Any], ...]]:
        batches = self._graph.weighted_batches if self._weighted else self._graph.batches
        assert batches is not None
        for src, dst, *weight in batches():
            yield src, dst, weight[0] if weight else np.ones(len(src))

    def _edges(self, along: bool) -> _Edges:
        offsets = np.zeros(self._graph.places + 1, np.int64)
        for ends in self._batches():
            count_ends(ends[0 if along else 1], offsets[1:])
        np.cumsum(offsets, out=offsets)
        rows, heavy = np.empty(int(offsets[-1]), np.uint32), np.empty(int(offsets[-1]))
        room = offsets[:-1].copy()
        for src, dst, weight in self._batches():
            ends = (src, dst) if along else (dst, src)
            put_edges(*ends, weight, room, rows, heavy)
        return _Edges(offsets, rows, heavy)

    def by_target(self, targets: NDArray[np.uint32]) -> Iterator[NDArray[np.int64]]:
        """Search from each of ``targets``, in random order, until ``MOST_LOOKED`` edges are looked
        at. Yields after each search which of ``targets`` are its vertex.
        """
        order = np.argsort(targets, kind="stable")
        distinct, first = np.unique(targets[order], return_index=True)
        groups, looked = np.split(order, first[1:]), 0
        for i in np.random.default_rng(len(groups)).permutation(len(distinct)).tolist():
            if looked >= MOST_LOOKED:
                return
            self.distance.fill(np.inf)
            labels = self.distance, self._hops, self._queue, self._waits
            looked += label_from(*self._entering, int(distinct[i]), *labels)
            yield groups[i]

    def is_least(self, vertex: NDArray[np.uint32], distance: NDArray[np.float64]) -> bool:
        """Return whether a path to the last target is the least shortest one; by float weights,
        whether it is a shortest one.
        """
        least = self.distance[vertex[0]]
        if self.slack:
            return bool(np.isclose(distance[-1], least, rtol=self.slack, atol=0))
        if distance[-1] != least or int(self._hops[vertex[0]]) != len(vertex) - 1:
            return False
        path = np.zeros(len(vertex), np.uint32)
        labels = self._number, self.distance, self._hops
        follow_least(*self.leaving, *labels, int(vertex[0]), path)
        return np.array_equal(path, vertex)


_NEEDS = {
    "vertex_bytes": SEARCH_BYTES + 2 * 3 * 8 + 4,
    "edge_bytes": EDGE_BYTES,
    "row_bytes": ROW_BYTES,
    "kernels": (programs, pair_paths, distances),
    "needs_weights": _is_weighted,
}
PATH = Judge(validate_pairs, **_NEEDS)
PATH_NODES = Judge(validate_nodes, **_NEEDS)
