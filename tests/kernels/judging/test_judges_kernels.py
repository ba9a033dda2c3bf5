"""The judge's own kernels against facts of a graph that are known in another way."""

from __future__ import annotations

import networkx
import numpy as np
import pytest

from delegraph.kernels.base.graph import UNREACHED
from delegraph.kernels.judging.distances import (
    TOGETHER,
    add_dependencies,
    count_ends,
    enter_level,
    put_targets,
    spread_words,
    sum_distances,
)


def rows_of(src, dst, n):
    src, dst = np.asarray(src, np.uint32), np.asarray(dst, np.uint32)
    offsets = np.zeros(n + 1, np.int64)
    count_ends(src, offsets[1:])
    np.cumsum(offsets, out=offsets)
    targets = np.empty(len(src), np.uint32)
    put_targets(src, dst, offsets[:-1].copy(), targets)
    return offsets, targets


def dependencies(offsets, targets, sources):
    n = len(offsets) - 1
    depth, order, power = np.full(n, UNREACHED), np.empty(n, np.uint32), np.empty(n, np.int32)
    count, share, score = np.empty(n), np.empty(n), np.zeros(n)
    for source in sources:
        add_dependencies(offsets, targets, source, depth, order, count, power, share, score)
        assert (depth == UNREACHED).all()
    return score


def random_graph(directed):
    graph = networkx.gnm_random_graph(200, 420, seed=3, directed=directed)
    ends = np.array(graph.edges).T
    if not directed:
        ends = np.concatenate([ends, ends[::-1]], axis=1)
    return graph, ends


def no_sums(sources):
    return [*np.zeros((3, sources), np.int64), np.zeros(sources)]


def sums_of(distance):
    return [len(distance), distance.sum(), distance.max(), (1 / distance[distance > 0]).sum()]


def check_sums(sums, wanted):
    """Check sums by source: whole numbers exactly, fractions up to rounding."""
    *whole, harmonic = zip(*wanted, strict=True)
    assert [column.tolist() for column in sums[:3]] == [[*column] for column in whole]
    np.testing.assert_allclose(sums[3], harmonic, rtol=1e-12)


@pytest.mark.parametrize("directed", [False, True])
def test_sums_of_distances(directed):
    graph, (src, dst) = random_graph(directed)
    n, sources = len(graph), np.arange(3, 3 + TOGETHER, dtype=np.uint32)
    wanted = [networkx.single_source_shortest_path_length(graph, int(s)) for s in sources]
    wanted = [sums_of(np.array([*lengths.values()])) for lengths in wanted]
    seen, here, then = (np.zeros(n, np.uint64) for _ in range(3))
    lists, sums = [np.empty(n, np.uint32) for _ in range(2)], no_sums(TOGETHER)
    offsets, targets = rows_of(src, dst, n)
    for _ in range(2):  # nothing is left behind
        sum_distances(offsets, targets, not directed, sources, seen, here, then, *lists, *sums)
        check_sums(sums, wanted)
        assert not here.any()
        assert not then.any()
    here[sources] = np.uint64(1) << np.arange(TOGETHER, dtype=np.uint64)
    seen[:] = here
    sums = no_sums(TOGETHER)
    sums[0][:] = 1
    level, more = 0, True
    while more:
        level += 1
        for rows in np.array_split(np.arange(len(src)), 3):
            ends = src[rows].astype(np.uint32), dst[rows].astype(np.uint32)
            spread_words(*ends, here, seen, then)
        more = enter_level(then, seen, level, *sums)
        here, then = then, np.zeros(n, np.uint64)
    check_sums(sums, wanted)


def test_searches_that_seldom_meet():
    """Searches of a path run apart because they seldom meet; a later batch of searches that meet is
    right all the same.
    """
    n = 1000
    at = np.arange(n - 1)
    offsets, targets = rows_of(np.append(at, at + 1), np.append(at + 1, at), n)
    seen, here, then = (np.zeros(n, np.uint64) for _ in range(3))
    lists = [np.empty(n, np.uint32) for _ in range(2)]
    for apart, sources in ((True, np.arange(0, 640, 10)), (False, np.array([3, 4]))):
        ids = sources.astype(np.uint32)
        sums = no_sums(len(ids))
        edge_counts = sum_distances(offsets, targets, True, ids, seen, here, then, *lists, *sums)
        assert (edge_counts > len(ids) * len(targets)) == apart
        distance = np.abs(np.arange(n) - sources[:, None])
        check_sums(sums, [sums_of(row) for row in distance])
        assert not here.any()
        assert not then.any()


@pytest.mark.parametrize("directed", [False, True])
def test_dependencies(directed):
    graph, (src, dst) = random_graph(directed)
    score = dependencies(*rows_of(src, dst, len(graph)), range(len(graph)))
    wanted = networkx.betweenness_centrality(graph, normalized=False)
    assert score / (1 if directed else 2) == pytest.approx([wanted[v] for v in range(len(graph))])


def test_more_paths_than_a_double_can_say():
    """A chain of diamonds has 2 ** 1030 shortest paths, and a plain path of the same length beside
    the chain has counts smaller by that factor.
    """
    diamonds = 1030
    first, n = 3 * diamonds + 1, 3 * diamonds + 1 + 2 * diamonds
    joint = 3 * np.arange(diamonds)
    src = [joint, joint, joint + 1, joint + 2]
    dst = [joint + 1, joint + 2, joint + 3, joint + 3]
    plain = np.array([0, *range(first, n)])
    src, dst = np.concatenate([*src, plain[:-1]]), np.concatenate([*dst, plain[1:]])
    score = dependencies(*rows_of(src, dst, n), [0])
    after = 3 * (diamonds - 1 - np.arange(diamonds))  # vertices behind the end of each diamond
    assert score[1 : 3 * diamonds : 3] == pytest.approx((1 + after) / 2)
    assert score[2 : 3 * diamonds : 3] == pytest.approx((1 + after) / 2)
    assert score[3 : 3 * diamonds + 1 : 3] == pytest.approx(after)
    assert score[plain[1:]] == pytest.approx(np.arange(2 * diamonds)[::-1])
    # The last edge of the plain path leads to where the diamonds end: they have nearly all paths.
    src, dst = np.append(src[:-1], n - 2), np.append(dst[:-1], 3 * diamonds)
    score = dependencies(*rows_of(src, dst, n), [0])
    assert score[3 * diamonds - 1] == pytest.approx(0.5)
    assert score[n - 2] == 0
