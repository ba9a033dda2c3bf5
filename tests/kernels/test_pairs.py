"""Paths between pairs, against their definitions."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from delegraph.kernels.pieces.piece import Piece
from delegraph.kernels.programs.pairs import (
    AHEAD,
    HeapSide,
    forget_levels,
    forget_side,
    hops_between,
    meet,
    trace_floats,
    trace_hops,
    trace_whole,
)
from delegraph.kernels.reference import distances, least_shortest_path, shortest_paths

VERTICES = 9
ENDS = st.integers(0, VERTICES - 1)
EDGES = st.lists(st.tuples(ENDS, ENDS, st.integers(0, 3)), max_size=30)
NUMBERS = st.permutations(range(VERTICES))
TWO_WAYS = [(0, 1, 1), (1, 3, 1), (0, 2, 1), (2, 3, 1)]


class Edges(NamedTuple):
    """Edges, each pair of ends once. number: of each vertex, by which paths are compared."""

    src: np.ndarray
    dst: np.ndarray
    weight: np.ndarray
    number: np.ndarray

    def pieces(self, kind: type = np.uint32) -> tuple[Piece, Piece]:
        ends = (self.src, self.dst), (self.dst, self.src)
        return tuple(rows(*both, self.weight.astype(kind)) for both in ends)  # pyright: ignore

    def least(self, weight: np.ndarray, source: int, target: int) -> list[int]:
        """Return the least shortest path, in vertices."""
        number = self.number
        ends = number[self.src], number[self.dst]
        path = least_shortest_path(*ends, weight, VERTICES, number[source], number[target])
        return np.argsort(number)[np.array(path, np.int64)].tolist()


def edges_of(edges: list[tuple[int, int, int]], number: Any) -> Edges:
    """Return the edges, each pair of ends once."""
    once = np.array([(u, v, w) for (u, v), w in {(u, v): w for u, v, w in edges}.items()], np.int64)
    src, dst, weight = once.reshape(-1, 3).T
    return Edges(src, dst, weight, np.array(number, np.uint32))


def rows(src: np.ndarray, dst: np.ndarray, weight: np.ndarray) -> Piece:
    offsets = np.zeros(VERTICES + 1, np.uint32)
    np.cumsum(np.bincount(src, minlength=VERTICES), out=offsets[1:])
    order = np.argsort(src, kind="stable")
    bits = np.ascontiguousarray(weight[order]).view(np.uint32)
    return Piece(offsets, dst[order].astype(np.uint32), 0, len(src), bits)


@given(edges=EDGES, number=NUMBERS)
@example(edges=TWO_WAYS, number=range(VERTICES))
@example(edges=TWO_WAYS, number=range(VERTICES)[::-1])
@settings(max_examples=15, deadline=None)
def test_hops_and_paths_between_all_pairs(edges: list[tuple[int, int, int]], number: Any) -> None:
    whole = edges_of(edges, number)
    leaving, entering = whole.pieces()
    seen, levels = np.zeros(VERTICES, np.uint8), np.full((2, VERTICES), -1, np.int32)
    queues = np.zeros((2, VERTICES + AHEAD), np.uint32)
    for source in range(VERTICES):
        expected = distances(whole.src, whole.dst, VERTICES, source, directed=True)
        for target in range(VERTICES):
            ends = source, target
            place = seen, *queues, *levels
            hops, count, back, _ = hops_between(leaving, entering, *ends, *place)
            assert hops == expected[target]
            if hops >= 0:
                path = np.zeros(hops + 1, np.uint32)
                lists = *queues, *levels, count, back
                trace_hops(leaving, entering, hops, *lists, whole.number, path)
                assert path.tolist() == whole.least(np.ones(len(whole.src)), *ends)
            forget_levels(seen, queues[0], count, *levels)
            forget_levels(seen, queues[1], back, *levels)
            assert not seen.any()
            assert (levels == -1).all()


def sides() -> list[HeapSide]:
    return [HeapSide(np.zeros(VERTICES), *np.zeros((3, VERTICES), np.uint32)) for _ in range(2)]


@given(edges=EDGES, number=NUMBERS)
@example(edges=TWO_WAYS, number=range(VERTICES))
@example(edges=TWO_WAYS, number=range(VERTICES)[::-1])
@example(edges=[(0, 1, 0), (1, 0, 0), (1, 2, 0), (2, 1, 0)], number=range(VERTICES))
@settings(max_examples=15, deadline=None)
def test_whole_weights_between_all_pairs(edges: list[tuple[int, int, int]], number: Any) -> None:
    whole = edges_of(edges, number)
    leaving, entering = whole.pieces()
    side, back = sides()
    for source in range(VERTICES):
        expected = shortest_paths(whole.src, whole.dst, whole.weight, VERTICES, source)
        for target in range(VERTICES):
            found = meet(leaving, entering, False, source, target, side, back)
            assert found.distance == expected[target]
            done_back = found.done_back
            if math.isfinite(found.distance):
                path, distance = np.zeros(found.hops + 1, np.uint32), np.zeros(found.hops + 1)
                trace = found, source, whole.number, path, distance
                done_back, _ = trace_whole(leaving, side, back, *trace)
                assert path.tolist() == whole.least(whole.weight, source, target)
                assert distance.tolist() == expected[path].tolist()
            forget_side(side, found.open, found.done)
            forget_side(back, found.open_back, done_back)
            assert not side.at.any()
            assert not back.at.any()


@given(edges=EDGES)
@settings(max_examples=15, deadline=None)
def test_float_weights_between_all_pairs(edges: list[tuple[int, int, int]]) -> None:
    """A path's steps are edges, whose weights add up to a distance that is the least but for
    rounding.
    """
    whole = edges_of(edges, range(VERTICES))
    weight = (whole.weight / np.float32(3)).astype(np.float32)
    whole = whole._replace(weight=weight)
    leaving, entering = whole.pieces(np.float32)
    weights = {(u, v): w for u, v, w in zip(*whole[:3], strict=True)}
    side, back = sides()
    for source in range(VERTICES):
        expected = shortest_paths(whole.src, whole.dst, weight.astype(float), VERTICES, source)
        for target in range(VERTICES):
            found = meet(leaving, entering, True, source, target, side, back)
            if math.isfinite(expected[target]):
                path, distance = np.zeros(found.hops + 1, np.uint32), np.zeros(found.hops + 1)
                trace_floats(leaving, entering, side, back, found, path, distance)
                assert [path[0], path[-1]] == [source, target]
                total = 0.0
                for i in range(found.hops):
                    total += float(weights[path[i], path[i + 1]])
                    assert distance[i + 1] == total
                np.testing.assert_allclose(total, expected[target], rtol=1e-12)
            else:
                assert found.distance == math.inf
            forget_side(side, found.open, found.done)
            forget_side(back, found.open_back, found.done_back)
            assert not side.at.any()
            assert not back.at.any()
