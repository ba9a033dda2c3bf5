"""The definition of every result, in NumPy, which every other backend is tested against.

This code is written to be read and believed, not to be fast.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .base import bitmap
from .base.graph import Graph
from .bfs.state import LevelWork, SearchState


def distances(
    src: NDArray, dst: NDArray, vertices: int, source: int, directed: bool = False
) -> NDArray[np.int32]:
    """Return the hop distance of every vertex from ``source`` by edges in any order, -1 where
    unreached.

    >>> distances(np.array([0, 1]), np.array([1, 2]), 4, source=0).tolist()
    [0, 1, 2, -1]
    """
    if not directed:
        src, dst = np.concatenate([src, dst]), np.concatenate([dst, src])
    distance = np.full(vertices, -1, np.int32)
    distance[source] = 0
    level = 0
    while True:
        reached = dst[distance[src] == level]
        reached = reached[distance[reached] < 0]
        if not len(reached):
            return distance
        level += 1
        distance[reached] = level


def shortest_paths(
    src: NDArray, dst: NDArray, weight: NDArray, vertices: int, source: int
) -> NDArray[np.float64]:
    """Return the least sum of weights of a path along directed edges to each vertex; infinite if
    there is no path.

    >>> shortest_paths(np.array([0, 0, 1]), np.array([1, 2, 2]), np.array([1, 5, 2]), 4, 0).tolist()
    [0.0, 1.0, 3.0, inf]
    """
    distance = np.full(vertices, np.inf)
    distance[source] = 0
    while True:
        before = distance.copy()
        np.minimum.at(distance, dst, before[src] + weight.astype(np.float64))
        if (distance == before).all():
            return distance


def least_shortest_path(
    src: NDArray, dst: NDArray, weight: NDArray, vertices: int, source: int, target: int
) -> list[int]:
    """Return the vertices of a shortest path along directed edges, with whole weights; none if
    there is no path. Of several shortest paths it is one with the fewest edges, and of these the
    lexicographically least. Fewest edges rule out cycles, those of weight zero too.

    >>> src, dst = np.array([0, 0, 1, 2]), np.array([2, 1, 3, 3])
    >>> least_shortest_path(src, dst, np.ones(4), 4, 0, 3)
    [0, 1, 3]
    """
    to_target = shortest_paths(dst, src, weight, vertices, target)
    if np.isinf(to_target[source]):
        return []
    on_path = np.isfinite(to_target[dst]) & (to_target[src] == weight + to_target[dst])
    src, dst = src[on_path], dst[on_path]
    edges_left = distances(dst, src, vertices, target, directed=True)
    path = [source]
    while path[-1] != target:
        follows = (src == path[-1]) & (edges_left[dst] == edges_left[path[-1]] - 1)
        path.append(int(dst[follows].min()))
    return path


def nearest(
    src: NDArray, dst: NDArray, vertices: int, sources: NDArray
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return every vertex's distance in hops, along directed edges, from the nearest of
    ``sources``, and that source; of several, the first in ``sources``. Both are -1 where no source
    reaches.

    >>> [found.tolist() for found in nearest(np.array([0, 2]), np.array([1, 1]), 4, [2, 0])]
    [[0, 1, 0, -1], [0, 2, 2, -1]]
    """
    distance, which = np.full(vertices, -1), np.full(vertices, -1)
    for source in sources:
        hops = distances(src, dst, vertices, int(source), directed=True)
        nearer = (hops >= 0) & ((distance < 0) | (hops < distance))
        distance[nearer] = hops[nearer]
        which[nearer] = source
    return distance, which


def components(src: NDArray, dst: NDArray, vertices: int) -> NDArray[np.int64]:
    """Return, for each vertex, the least vertex of its weakly connected component.

    >>> components(np.array([3, 1]), np.array([2, 2]), 5).tolist()
    [0, 1, 1, 1, 4]
    """
    least = np.arange(vertices)
    while True:
        before = least.copy()
        np.minimum.at(least, src, before[dst])
        np.minimum.at(least, dst, before[src])
        if (least == before).all():
            return least


def harmonic(src: NDArray, dst: NDArray, vertices: int) -> NDArray[np.float64]:
    """Return, for each vertex, the sum of 1 over the distances of the other vertices that reach it,
    in hops along directed edges.

    >>> harmonic(np.array([0, 1]), np.array([1, 2]), 4).tolist()
    [0.0, 1.0, 1.5, 0.0]
    """
    sums = np.zeros(vertices)
    for vertex in range(vertices):
        distance = distances(dst, src, vertices, vertex, directed=True)
        sums[vertex] = (1 / distance[distance > 0]).sum()
    return sums


def strong_components(src: NDArray, dst: NDArray, vertices: int) -> NDArray[np.int64]:
    """Return, for each vertex, the least vertex of its strong component, by directed edges.

    >>> strong_components(np.array([0, 1, 2, 2]), np.array([1, 2, 1, 3]), 4).tolist()
    [0, 1, 1, 3]
    """
    component = np.full(vertices, -1)
    for v in range(vertices):
        if component[v] < 0:
            there = distances(src, dst, vertices, v, directed=True) >= 0
            back = distances(dst, src, vertices, v, directed=True) >= 0
            component[there & back] = v
    return component


def pagerank(
    src: NDArray,
    dst: NDArray,
    vertices: int,
    damping: float = 0.85,
    iterations: int = 20,
    teleport: NDArray | None = None,
    dangling: bool = True,
    weight: NDArray | None = None,
) -> NDArray[np.float64]:
    """Return the PageRank of each vertex, along directed edges. An edge counts as often as it
    occurs, or by its weight. teleport: how likely a random jump ends at each vertex.

    >>> pagerank(np.array([0, 1]), np.array([1, 0]), 2).tolist()
    [0.5, 0.5]
    """
    to = np.full(vertices, 1 / vertices) if teleport is None else teleport
    counts = np.ones(len(src)) if weight is None else weight.astype(np.float64)
    degree = np.bincount(src, weights=counts, minlength=vertices)
    rank = np.full(vertices, 1 / vertices)
    for _ in range(iterations):
        share = np.divide(rank, degree, out=np.zeros(vertices), where=degree > 0)
        lost = rank[degree == 0].sum() if dangling else 0.0
        came = np.bincount(dst, weights=share[src] * counts, minlength=vertices)
        rank = (1 - damping) * to + damping * (came + lost * to)
    return rank


def truss_numbers(src: NDArray, dst: NDArray) -> dict[tuple[int, int], int]:
    """Return the truss number of each edge, whatever its direction, by its ends, the lesser first.

    >>> truss_numbers(np.array([0, 1, 2, 0, 3]), np.array([1, 2, 0, 0, 0]))
    {(0, 1): 3, (0, 2): 3, (0, 3): 2, (1, 2): 3}
    """
    ends = zip(np.minimum(src, dst).tolist(), np.maximum(src, dst).tolist(), strict=True)
    left = {(u, v) for u, v in ends if u != v}
    number = dict.fromkeys(sorted(left), 2)
    k = 3
    while left:
        near: dict[int, set[int]] = {}
        for u, v in left:
            near.setdefault(u, set()).add(v)
            near.setdefault(v, set()).add(u)
        removed = {(u, v) for u, v in left if len(near[u] & near[v]) < k - 2}
        left -= removed
        if not removed:
            number.update(dict.fromkeys(left, k))
            k += 1
    return number


def contract(
    src: NDArray,
    dst: NDArray,
    label: NDArray,
    directed: bool,
    loops: bool,
    amount: NDArray | None = None,
) -> tuple[NDArray, NDArray, NDArray]:
    """Return the edges between labels, each pair once: both labels, and the sum of what the edges
    amount to. If the edges are not directed, the first label is the lesser one. loops: whether the
    edges inside a label are told, too.

    >>> ends = np.array([0, 1, 2, 3, 3]), np.array([1, 2, 0, 0, 1])
    >>> contract(*ends, np.array([0, 0, 2, 3]), True, True)
    (array([0, 0, 2, 3]), array([0, 2, 0, 0]), array([1, 1, 1, 2]))
    >>> contract(*ends, np.array([0, 0, 2, 3]), False, False)
    (array([0, 0]), array([2, 3]), array([2, 2]))
    """
    amounts = np.ones(len(src), np.int64) if amount is None else amount
    first, other = label[src].astype(np.int64), label[dst].astype(np.int64)
    if not directed:
        first, other = np.minimum(first, other), np.maximum(first, other)
    told = np.flatnonzero(loops | (first != other))
    pairs = np.stack([first[told], other[told]], axis=1)
    distinct, at = np.unique(pairs, axis=0, return_inverse=True)
    sums = np.zeros(len(distinct), amounts.dtype)
    np.add.at(sums, at.ravel(), amounts[told])
    return distinct[:, 0], distinct[:, 1], sums


def label_propagation(
    src: NDArray,
    dst: NDArray,
    vertices: int,
    iterations: int,
    amount: NDArray | None = None,
) -> NDArray[np.int64]:
    """Return the label of each vertex after some iterations. Each vertex begins with its own
    number. In each iteration every vertex takes the label with the greatest sum of amounts among
    its neighbours in either direction; of several, the least label. amount: of edges, whole numbers
    up to 2^62 together; None for ones.

    >>> label_propagation(np.array([0, 0, 1, 3]), np.array([1, 2, 2, 4]), 6, 2).tolist()
    [0, 0, 0, 3, 4, 5]
    """
    ends, neighbours = np.concatenate([src, dst]), np.concatenate([dst, src])
    amounts = np.ones(len(ends), np.int64) if amount is None else np.tile(amount, 2)
    label = np.arange(vertices)
    for _ in range(iterations):
        pairs, at = np.unique(ends * vertices + label[neighbours], return_inverse=True)
        sums = np.zeros(len(pairs), np.int64)
        np.add.at(sums, at, amounts)
        vertex, other = np.divmod(pairs, vertices)
        worst_first = np.lexsort((-other, sums, vertex))
        label = label.copy()
        label[vertex[worst_first]] = other[worst_first]  # the last one stays
    return label


def hits(
    src: NDArray, dst: NDArray, vertices: int, iterations: int, weight: NDArray | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return hub and authority scores after some iterations along directed edges. Either adds up to
    1, or is 0 everywhere if there are no edges.

    >>> [scores.tolist() for scores in hits(np.array([0, 0]), np.array([1, 2]), 3, 1)]
    [[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]]
    """
    hub, authority = np.full(vertices, 1 / vertices), np.zeros(vertices)
    for _ in range(iterations):
        authority = sums(src, dst, hub, weight)
        came = sums(dst, src, authority, weight)
        hub = came / (came.sum() or 1.0)
    return hub, authority / (authority.sum() or 1.0)


def eigenvector(
    src: NDArray, dst: NDArray, vertices: int, iterations: int, weight: NDArray | None = None
) -> NDArray[np.float64]:
    """Return eigenvector centrality after some iterations along directed edges.

    >>> eigenvector(np.array([0, 1]), np.array([1, 0]), 2, 1).round(6).tolist()
    [0.707107, 0.707107]
    """
    score = np.full(vertices, 1 / vertices)
    for _ in range(iterations):
        came = score + sums(src, dst, score, weight)
        score = came / np.linalg.norm(came)
    return score


def katz(
    src: NDArray,
    dst: NDArray,
    vertices: int,
    alpha: float,
    iterations: int,
    weight: NDArray | None = None,
) -> NDArray[np.float64]:
    """Return Katz centrality after some iterations along directed edges.

    >>> katz(np.array([0]), np.array([1]), 2, 0.5, 9).round(6).tolist()
    [0.5547, 0.83205]
    """
    score = np.zeros(vertices)
    for _ in range(iterations):
        score = alpha * sums(src, dst, score, weight) + 1.0
    return score / np.linalg.norm(score)


def sums(src: NDArray, dst: NDArray, x: NDArray, weight: NDArray | None = None) -> NDArray:
    """Return, for each vertex, the sum of ``x`` over the edges that enter it: floats, or exact
    integers.

    >>> sums(np.array([0, 0, 2]), np.array([1, 2, 1]), np.array([1, 5, 7], np.uint64)).tolist()
    [0, 8, 1]
    """
    came = np.zeros_like(x)
    np.add.at(came, dst, x[src] if weight is None else x[src] * weight)
    return came


def spanning_forest(
    src: NDArray, dst: NDArray, vertices: int, weight: NDArray | None = None
) -> tuple[NDArray, NDArray, NDArray]:
    """Return both ends, the lesser first, and the weight (None: zeros) of each edge of the minimum
    spanning forest, by rising ends. Edges count by weight, then by their ends; directions count for
    nothing.

    >>> edges = spanning_forest(np.array([0, 2, 0]), np.array([1, 1, 2]), 3, np.array([5, 1, 5]))
    >>> [column.tolist() for column in edges]
    [[0, 1], [1, 2], [5, 1]]
    """
    weight = np.zeros(len(src), np.uint32) if weight is None else weight
    low, high = np.minimum(src, dst), np.maximum(src, dst)
    tree, taken = np.arange(vertices), []
    for e in np.lexsort([high, low, weight]):
        first, other = tree[low[e]], tree[high[e]]
        if first != other:
            tree[tree == other] = first
            taken.append(e)
    edges = np.array(taken, np.int64)
    edges = edges[np.lexsort([high[edges], low[edges]])]
    return low[edges], high[edges], weight[edges]


def cores(src: NDArray, dst: NDArray, vertices: int) -> tuple[NDArray[np.int64], int]:
    """Return the core number of each vertex, and the number of rounds. The edges are directed, each
    once and no self-loop, and the degree counts both ends: give undirected edges in one direction.

    A round removes all vertices whose degree is at most k. k becomes the least degree that is left
    once there are none.

    >>> cores(np.array([0, 1, 2, 2]), np.array([1, 2, 0, 3]), 5)[0].tolist()
    [2, 2, 2, 1, 0]
    """
    core, left = np.zeros(vertices, np.int64), np.ones(vertices, np.bool_)
    k = rounds = 0
    while left.any():
        inside = left[src] & left[dst]
        degree = np.bincount(np.r_[src[inside], dst[inside]], minlength=vertices)
        removed = left & (degree <= k)
        if removed.any():
            core[removed], left[removed] = k, False
            rounds += k > 0
        else:
            k = int(degree[left].min())
    return core, rounds


def degrees(
    src: NDArray, dst: NDArray, vertices: int, weight: NDArray | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the number of directed edges that enter each vertex, and of those that leave it; or
    the sums of their weights.

    >>> [found.tolist() for found in degrees(np.array([0, 0]), np.array([1, 2]), 3)]
    [[0.0, 1.0, 1.0], [2.0, 0.0, 0.0]]
    """
    ones = np.ones(vertices)
    return sums(src, dst, ones, weight), sums(dst, src, ones, weight)


def betweenness(src: NDArray, dst: NDArray, vertices: int, sources: NDArray) -> NDArray[np.float64]:
    """Return the sum of the shares of shortest paths from ``sources`` that lead through each
    vertex, along directed edges, each of which counts once.

    >>> betweenness(np.array([0, 1]), np.array([1, 2]), 3, np.array([0, 1, 2])).tolist()
    [0.0, 1.0, 0.0]
    """
    total = np.zeros(vertices)
    for source in sources:
        distance = distances(src, dst, vertices, int(source), directed=True)
        onward = (distance[src] >= 0) & (distance[dst] == distance[src] + 1)
        u, v = src[onward], dst[onward]
        paths = np.full(vertices, 0, object)  # integers of any size
        paths[source] = 1
        for level in range(distance.max()):
            step = distance[u] == level
            np.add.at(paths, v[step], paths[u[step]])
        dependency = np.zeros(vertices)
        for level in range(distance.max() - 1, 0, -1):
            step = distance[u] == level
            ratio = (paths[u[step]] / paths[v[step]]).astype(np.float64)
            share = ratio * (1 + dependency[v[step]])
            np.add.at(dependency, u[step], share)
        total += dependency
    return total


def clustering(
    src: NDArray, dst: NDArray, vertices: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the local clustering coefficient of each vertex, and the number of triangles at it.

    The coefficient is the number of directed edges between a vertex's neighbours in either
    direction, over the most that there can be: LDBC Graphalytics' definition. In an undirected
    graph, whose edges are given both ways, it is the usual one. Triangles are those of the graph
    without directions. Self-loops are left out, and a repeated edge counts once.

    >>> share, triangles = clustering(np.array([0, 1, 2, 2]), np.array([1, 2, 0, 3]), 4)
    >>> share.round(3).tolist(), triangles.tolist()
    ([0.5, 0.5, 0.167, 0.0], [1, 1, 1, 0])
    """
    edge = np.zeros((vertices, vertices), np.bool_)
    edge[src, dst] = src != dst
    either = edge | edge.T
    share, triangles = np.zeros(vertices), np.zeros(vertices, np.int64)
    for v in range(vertices):
        near = np.flatnonzero(either[v])
        triangles[v] = np.count_nonzero(either[np.ix_(near, near)]) // 2
        if len(near) > 1:
            between = np.count_nonzero(edge[np.ix_(near, near)])
            share[v] = between / (len(near) * (len(near) - 1))
    return share, triangles


def degree_order(degree: NDArray) -> NDArray[np.uint32]:
    """Return the vertices by falling degree, ties by number.

    >>> degree_order(np.array([1, 3, 3, 2])).tolist()
    [1, 2, 3, 0]
    """
    return np.argsort(-degree.astype(np.int64), kind="stable").astype(np.uint32)


def compressed_rows(
    src: NDArray, dst: NDArray, vertices: int
) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Return offsets and targets of the directed edges, each once, without self-loops, targets
    rising.

    >>> offsets, targets = compressed_rows(np.array([0, 0, 0, 2]), np.array([2, 1, 2, 2]), 3)
    >>> offsets.tolist(), targets.tolist()
    ([0, 2, 2, 2], [1, 2])
    """
    pairs = np.unique(np.stack([src, dst], axis=1)[src != dst].astype(np.uint32), axis=0)
    offsets = np.zeros(vertices + 1, np.uint32)
    np.cumsum(np.bincount(pairs[:, 0], minlength=vertices), out=offsets[1:])
    return offsets, np.ascontiguousarray(pairs[:, 1])


class ReferenceBackend:
    name = "reference"

    def start(self, graph: Graph, source: int) -> SearchState:
        return SearchState.at(graph, source)

    def push(self, state: SearchState, work: int, levels: int) -> list[LevelWork]:
        graph = state.graph
        frontier = np.flatnonzero(state.distance == state.level)
        edges = _row_edges(graph.offsets, frontier)
        sources = np.repeat(frontier, np.diff(graph.offsets)[frontier])
        targets = graph.targets[edges]
        new = state.distance[targets] < 0
        return [_found(state, targets[new], sources[new], len(edges))]

    def pull(self, state: SearchState) -> LevelWork:
        graph = state.graph
        unvisited = np.flatnonzero(state.distance < 0)
        edges = _row_edges(graph.reverse_offsets, unvisited)
        targets = np.repeat(unvisited, np.diff(graph.reverse_offsets)[unvisited])
        sources = graph.reverse_targets[edges]
        hit = state.distance[sources] == state.level
        # The first hit of each vertex ends its search: later ones are not looked at.
        found, first = np.unique(targets[hit], return_index=True)
        parents = sources[hit][first]
        degree = np.diff(graph.reverse_offsets)[unvisited].astype(np.int64)
        examined = int(degree.sum())
        if len(found):
            stop = np.flatnonzero(hit)[first]
            starts = (np.cumsum(degree) - degree)[np.searchsorted(unvisited, found)]
            examined += int((stop - starts + 1).sum())
            examined -= int(np.diff(graph.reverse_offsets)[found].astype(np.int64).sum())
        return _found(state, found, parents, examined)


def _row_edges(offsets: NDArray, rows: NDArray) -> NDArray[np.int64]:
    """Return the indices into ``targets`` of all edges of ``rows``, row after row."""
    ranges = [np.arange(int(offsets[u]), int(offsets[u + 1])) for u in rows]
    return np.concatenate([np.empty(0, np.int64), *ranges]).astype(np.int64)


def _found(state: SearchState, vertices: NDArray, parents: NDArray, examined: int) -> LevelWork:
    graph = state.graph
    state.level += 1
    state.distance[vertices] = state.level
    state.parent[vertices] = parents
    found = np.unique(vertices)
    state.queue = found.astype(np.uint32)
    marked = np.zeros(len(state.visited) * bitmap.WORD, np.uint8)
    marked[found] = 1
    state.visited |= np.packbits(marked, bitorder="little").view(np.uint64)
    forward = int(np.diff(graph.offsets)[found].astype(np.int64).sum())
    backward = int(np.diff(graph.reverse_offsets)[found].astype(np.int64).sum())
    return LevelWork(len(found), forward, backward, examined)
