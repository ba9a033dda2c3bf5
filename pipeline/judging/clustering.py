"""Validation of triangles and clustering coefficients: both are computed again, from sorted keys of
pairs. The rules are in kernels/judging/programs.py.

An edge stands once, at the end of lesser degree: as a key with this end, the *low* one, before the
*high* one. A triangle has one key between its first two corners, and two from these to its last
one. Keys are cut into ranges of high ends, so that those of two ranges fit in memory; if all fit,
there is one range. Edges are streamed for each pair of ranges.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...kernels.judging import distances, programs
from ...kernels.judging.distances import count_ends
from ...kernels.judging.programs import CLUSTERING_RULES, count_corners
from ...partition.input.arrow import as_numpy
from ..results.result import Result
from .graph import JudgedEdges
from .judge import Judge
from .programs import add_rule, read_column, verdict_of
from .searches import PlaceLookup, Verdict, check_kind

_ENTRY_BYTES = 48
"""Bytes of making a key: of its batch, in a list of all, sorted, without duplicates, and its parts;
of two ranges.
"""

_LEAST_ENTRIES = 1 << 19

_ROUNDING = 1e-12


class ClusteringVerdict(Verdict):
    """Verdict on clustering coefficients. triangles: of the whole graph, each once."""

    triangles: int


def validate_clustering(graph: JudgedEdges, result: Result) -> ClusteringVerdict:
    """Return the verdict on coefficients and triangles. Raises InputError as
    ``validate_components`` does.
    """
    check_kind(result, graph.directed)
    names, index = graph.names, graph.names.index
    clustering, triangles = np.full(graph.places, np.nan), np.full(graph.places, -1, np.int64)
    places_of = PlaceLookup(names)

    def put(at: NDArray[np.uint32], known: NDArray[np.bool_], column: pa.Array) -> None:
        clustering[at] = as_numpy(column.cast(pa.float64()).fill_null(np.nan))[known]

    def put_triangles(at: NDArray[np.uint32], known: NDArray[np.bool_], column: pa.Array) -> None:
        triangles[at] = as_numpy(column.cast(pa.int64(), safe=False).fill_null(-1))[known]

    read_column(graph, result, places_of, "triangles", put_triangles)
    rules = read_column(graph, result, places_of, "clustering", put)
    wrong = ~((clustering[index] >= 0) & (clustering[index] <= 1))
    add_rule(rules, names, CLUSTERING_RULES, 1, wrong)
    counted = _counted(graph)
    add_rule(rules, names, CLUSTERING_RULES, 2, (triangles != counted.triangles)[index])
    pairs = counted.neighbours * (counted.neighbours - 1.0)
    true = np.zeros(graph.places)
    np.divide(counted.edges, pairs, out=true, where=pairs > 0)
    differs = ~(np.abs(clustering - true) <= _ROUNDING * true)[index]
    add_rule(rules, names, CLUSTERING_RULES, 3, differs & ~wrong)
    total = int(counted.triangles.sum()) // 3
    return ClusteringVerdict(**verdict_of(graph, result, rules), triangles=total)


class _Counted(NamedTuple):
    """Counts by place. neighbours: each once. triangles. edges: directed edges between neighbours;
    an undirected edge is two.
    """

    neighbours: NDArray[np.int64]
    triangles: NDArray[np.int64]
    edges: NDArray[np.int64]


class _Pairs(NamedTuple):
    """Pairs of adjacent vertices, by rising low end, then by rising high end. edges: uint8, the
    directed edges between them.
    """

    low: NDArray[np.uint32]
    high: NDArray[np.uint32]
    edges: NDArray[np.uint8]


def _counted(graph: JudgedEdges) -> _Counted:
    counted = _Counted(*(np.zeros(graph.places, np.int64) for _ in range(3)))
    degree = np.zeros(graph.places, np.int64)
    for ends in graph.batches():
        for end in ends:
            count_ends(end, degree)
    high_ends = np.zeros(graph.places, np.int64)
    for _, high in _ends(graph, degree):
        count_ends(high, high_ends)
    most = max(_LEAST_ENTRIES, graph.extra_bytes // _ENTRY_BYTES)
    ranges = list(pairwise(_bounds(high_ends, most)))
    del high_ends
    for one in ranges:
        pairs = _pairs(graph, degree, *one)
        counted.neighbours[:] += np.bincount(pairs.low, minlength=graph.places)
        counted.neighbours[:] += np.bincount(pairs.high, minlength=graph.places)
        for other in ranges:
            others = pairs if other is one else _pairs(graph, degree, *other)
            offsets = np.zeros(graph.places + 1, np.int64)
            count_ends(others.low, offsets[1:])
            np.cumsum(offsets, out=offsets)
            count_corners(*pairs, offsets, others.high, others.edges, *counted[1:])
            del others
    return counted


def _ends(
    graph: JudgedEdges, degree: NDArray[np.int64]
) -> Iterator[tuple[NDArray[np.uint32], NDArray[np.uint32]]]:
    """Yield low and high ends of edges, each edge once."""
    for u, v in graph.batches():
        if not graph.directed:
            once = u < v
            u, v = u[once], v[once]
        is_low = (degree[u] < degree[v]) | ((degree[u] == degree[v]) & (u < v))
        yield np.where(is_low, u, v), np.where(is_low, v, u)


def _bounds(counts: NDArray[np.int64], most: int) -> list[int]:
    """Return the bounds of ranges of places. The counts of a range add up to ``most`` at most, or
    it is one place.
    """
    ends, bounds = np.cumsum(counts), [0]
    while bounds[-1] < len(counts):
        before = int(ends[bounds[-1] - 1]) if bounds[-1] else 0
        bounds.append(max(bounds[-1] + 1, int(np.searchsorted(ends, before + most, "right"))))
    return bounds


def _pairs(graph: JudgedEdges, degree: NDArray[np.int64], first: int, last: int) -> _Pairs:
    """Return the pairs whose high ends have places ``first <= v < last``."""
    parts = [np.empty(0, np.uint64)]
    for low, high in _ends(graph, degree):
        here = (high >= first) & (high < last)
        parts.append(low[here].astype(np.uint64) << np.uint64(32) | high[here])
    keys = np.concatenate(parts)
    parts.clear()
    keys.sort()
    starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[: len(keys)])
    edges = np.diff(starts, append=len(keys)).astype(np.uint8)
    if not graph.directed:
        edges[:] = 2
    keys = keys[starts]
    return _Pairs((keys >> np.uint64(32)).astype(np.uint32), keys.astype(np.uint32), edges)


_VALUES = 2 + 3 + 2 + 2  # of the result, counted, degrees and high ends, and to compare

CLUSTERING = Judge(
    validate_clustering,
    vertex_bytes=8 * _VALUES
    + 2 * _ENTRY_BYTES,  # a vertex may be the high end of all others' edges
    kernels=(programs, distances),
)
