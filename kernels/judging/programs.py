"""Rules that show whether results of programs are right, from the edges in any order.

The rules are written apart from the programs: one thread, and no sampling, sharing or cutting.

Components: (1) each component is named by one of its own vertices; (2) an edge joins vertices of
one component; (3) no vertex of a component comes before the vertex that names it; (4) there are as
many components as the edges leave. By (2) a component of the result is made of whole components,
and by (4) of a single one.

Betweenness: (1) no value is negative; (2) no path leads through a vertex that edges lead only to,
or only from, or that has one neighbour; (3) all values together are what lies between the ends of
shortest paths, by distances that are found anew; (4) each value is the one that follows from counts
of paths that are found anew. If there is only one source, its value is null, and no other value is.

Closeness, harmonic centrality and eccentricity: (1) every value is a number that it may be; (2) it
is the value that follows from distances that are found anew (distances.py); (3) the vertices that
were asked for have a row, and no others.

Core numbers: (1) every value is a number that it may be; (2) it is the one that is found anew
(cores.py); (3) a vertex has as many neighbours of its core number or a greater one as its core
number says, which no value that is too great does for long; (4) the vertices of the core that was
asked for have a row, and no others.

Shortest paths (Graph500's rules for its third kernel): (1) the parents form a tree; (2) distances
are numbers in their range; (3) no edge is a shortcut; (4) no edge leads from a vertex that is
reached to one that is not; (5) every vertex but the source has its distance by an edge from its
parent.

Several searches, each by itself: (1) every distance is one that it may be; (2) the sources asked
for, and they alone, are at 0; (3) every other distance is one more than the least distance of the
vertices that edges come from. Only true distances obey these rules: each has one less before it,
down to 0, and none is less than its path. Several searches together: (3) an edge leads one level on
at most; (4) a vertex that is no source has edges from the level before, and its nearest source is
the first of the nearest sources of the vertices that these edges come from.

Degrees: (1) every degree is the number of edges, counted anew; (2) every weighted degree is the sum
of their weights, added up anew.

HITS, eigenvector and Katz centrality: (1) every score is a number from 0 to 1; (2) it is the one
that follows from as many iterations, done anew.

Label propagation: (1) every label is the id of a vertex; (2) it is the one that follows from as
many iterations, done anew.

Strong components: (1) each component is named by one of its own vertices; (2) paths inside it lead
from this vertex to all of its vertices, and back; (3) no vertex of a component comes before the
vertex that names it; (4) no cycle leads through several components. By (2) a component of the
result is a part of a strong one, and by (4) all of it.

Local clustering: (1) every coefficient is a number from 0 to 1; (2) each number of triangles and
(3) each coefficient is the one that is counted anew.

PageRank: (1) every value is a share; (2) they add up to 1; (3) one more iteration changes no more
than the walk's damping allows after the last one; (4) no value is less than jumps make it.
"""

import numpy as np
from numba import types

from ..base.compiled import compiled, f64s, i32s, i64, i64s, kernel, u8s, u32s

COMPONENT_RULES = {
    1: "a component is named after one of its own vertices",
    2: "an edge joins vertices of one component",
    3: "a component is named after its least vertex",
    4: "the number of components is the number that the edges give",
}

DISTANCE_RULES = {
    1: "every value is a number in its range",
    2: "every value equals the value computed again",
    3: "exactly the requested vertices have a row",
}

EACH_RULES = {
    0: "every row names a source and a vertex of the graph, and no pair occurs twice",
    1: "every distance is a number in its range",
    2: "exactly the requested sources are at distance 0 from themselves",
    3: "every distance is one more than the least distance of a vertex with an edge to it",
}

TOGETHER_RULES = {
    1: "every distance is a number in its range",
    2: "exactly the requested sources are at distance 0, each with itself as the nearest",
    3: "an edge leads at most one level further",
    4: "a vertex has a neighbour one level before, and its nearest is their first nearest",
}

BETWEENNESS_RULES = {
    1: "every value is a number and is not negative",
    2: "a vertex that no path can lead through has the value 0",
    3: "all values add up to the number of vertices between the ends of shortest paths",
    4: "every value equals the value computed again",
}

PAGERANK_RULES = {
    1: "every value is a number from 0 to 1",
    2: "all values add up to 1",
    3: "one more iteration changes the scores no more than the damping allows",
    4: "no value is less than the share of jumps to the vertex",
}

SCORES_RULES = {
    1: "every score is a number from 0 to 1",
    2: "every score equals the score computed again",
}

LABEL_RULES = {
    1: "every label is the id of a vertex",
    2: "every label equals the label computed again",
}

COMMUNITY_RULES = {
    1: "a community is named after one of its own vertices",
    2: "a community is named after its least vertex",
    3: "edges inside a community connect its vertices",
    4: "each quality is the one that the run has measured",
    5: "a group of a level is named after its least vertex, and in one group of the next level",
    6: "edges inside a group of a level connect its vertices",
    7: "no single move of a vertex raises the quality, where the run has called the result stable",
}

CORE_RULES = {
    1: "every core number is a number in its range",
    2: "every core number equals the number computed again",
    3: "a vertex has at least as many neighbours in its core as its core number",
    4: "exactly the vertices with the least core number asked for, or more, have a row",
}

DEGREE_RULES = {
    1: "every degree is the number of the vertex's edges, counted again",
    2: "every weighted degree is the sum of the edges' weights, added up again",
}

STRONG_RULES = {
    1: "a component is named after one of its own vertices",
    2: "paths inside a component lead from the vertex that names it to all others, and back",
    3: "a component is named after its least vertex",
    4: "no cycle leads through several components or comes before the vertex's component",
}

CONDENSATION_RULES = {
    1: "both ends of a row are strong components, each named by its least vertex",
    2: "no two rows are of the same two components",
    3: "edges lead from the first to the second component of a row, as many as it says",
    4: "components that edges lead between have a row",
}

PAIR_RULES = {
    1: "the rows are of the pairs of vertices that were asked for, each once",
    2: "every distance equals the distance found again, and is null where there is no path",
}

STEP_RULES = {
    1: "a path's rows stand together, step by step from its source to its target, once",
    2: "a path begins at distance 0, and every step is an edge that adds its weight",
    3: "every path is a shortest one; of several, unless weights are floats, the one with the "
    "fewest edges, then the least ids",
}

FOREST_RULES = {
    1: "every row is an edge of the minimum spanning forest, its lesser end first",
    2: "every edge of the minimum spanning forest has a row",
    3: "no two rows are the same edge",
    4: "every weight is that of the edge",
}

TRUSS_RULES = {
    1: "a row is an edge of the graph, its lesser end first, and no other row is the same edge",
    2: "every edge of the graph has a row",
    3: "every truss number equals the number computed again",
}

CLUSTERING_RULES = {
    1: "every coefficient is a number from 0 to 1",
    2: "every number of triangles equals the number counted again",
    3: "every coefficient equals the coefficient computed again",
}

PATH_RULES = {
    1: "the parents form a tree rooted at the source",
    2: "every distance is the length of a possible path, and the source's is 0",
    3: "no edge shortens a distance",
    4: "every vertex that the source can reach is reached",
    5: "an edge from its parent gives a vertex's distance",
}

_SLACK = 1e-9
"""Relative difference up to which distances are taken as equal: others may add up in another
order.
"""


@compiled
def _root(parent, v):
    while parent[v] != v:
        parent[v] = parent[parent[v]]
        v = parent[v]
    return v


@kernel(u32s, u32s, u32s, u32s, i64s)
def check_components(sources, targets, component, parent, found):
    """Check whether each of some edges joins vertices of one component, and join their ends in
    ``parent``.

    component, parent: uint32, by place; in ``parent`` every vertex is its own parent at first.
    found: int64 (4,): adds the number of edges that join two components, and of trees that edges
    joined; keeps the ends of one edge that joins two components.
    """
    for e in range(sources.shape[0]):
        u = sources[e]
        v = targets[e]
        if component[u] != component[v]:
            found[0] += 1
            found[2] = u
            found[3] = v
        u_root = _root(parent, u)
        v_root = _root(parent, v)
        if u_root != v_root:
            parent[max(u_root, v_root)] = min(u_root, v_root)
            found[1] += 1


@kernel(u32s, f64s, f64s)
def add_weights(sources, weights, degree):
    """Add the weights of some edges to their sources."""
    for e in range(sources.shape[0]):
        degree[sources[e]] += weights[e]


@kernel(u32s, u32s, f64s, f64s, f64s)
def add_weighted_shares(sources, targets, weights, share, came):
    """Add to ``came[target]``, for each edge, ``share[source]`` times the edge's weight."""
    for e in range(sources.shape[0]):
        came[targets[e]] += share[np.uintp(sources[e])] * weights[e]


@kernel(u32s, f64s)
def count_edges(ends, degree):
    """Count, for each vertex, the edges that it is an end of, and add this to ``degree``. ends:
    uint32, sources or targets.
    """
    for e in range(ends.shape[0]):
        degree[ends[e]] += 1.0


@kernel(u32s, u32s, i64s, i64s)
def count_inside(sources, targets, core, inside):
    """Add to ``inside``, for each of some edges, 1 at each end whose core number is not greater
    than that of the other end.
    """
    for e in range(sources.shape[0]):
        u = sources[e]
        v = targets[e]
        inside[u] += core[u] <= core[v]
        inside[v] += core[v] <= core[u]


@kernel(u32s, u32s, f64s, f64s)
def add_shares(sources, targets, share, came):
    """Add ``share[source]`` to ``came[target]`` for each of some edges."""
    for e in range(sources.shape[0]):
        came[targets[e]] += share[np.uintp(sources[e])]


@kernel(u32s, u32s, f64s, f64s, u32s, types.float64, u8s, i64s)
def check_paths(sources, targets, weights, distance, parent, limit, joined, found):
    """Check some edges by rules 3 and 4. Marks in ``joined`` the vertices whose distance follows
    from an edge from their parent.

    distance: float64, infinite where unreached. limit: of distances. found: int64 (6,): adds the
    number of times that rule 3 fails, and keeps the ends of one such edge; then the same for rule
    4.
    """
    for e in range(sources.shape[0]):
        u = sources[e]
        v = targets[e]
        here = distance[u]
        if here == np.inf:
            continue
        through = here + weights[e]
        slack = _SLACK * through
        there = distance[v]
        if there == np.inf:
            if through + slack < limit:
                found[3] += 1
                found[4] = u
                found[5] = v
        elif through + slack < there:
            found[0] += 1
            found[1] = u
            found[2] = v
        elif parent[v] == u and through - slack <= there:
            joined[v] = 1


@kernel(u32s, u32s, i32s, u32s, i64, u32s, i64s)
def check_levels(sources, targets, distance, rank, most, least, found):
    """Check whether each of some edges leads one level on at most, and take what it tells its
    target.

    distance: int32, -1 where unreached. rank: uint32, of the nearest source among all vertices by
    user id. most: levels that were searched. least: uint32, UNREACHED at first; receives the least
    rank over the edges from the level before. found: int64 (3,): adds the number of edges that lead
    further; keeps the ends of one.
    """
    for e in range(sources.shape[0]):
        u = sources[e]
        v = targets[e]
        if distance[u] < 0 or distance[u] >= most:
            continue
        if distance[v] < 0 or distance[v] > distance[u] + 1:
            found[0] += 1
            found[1] = u
            found[2] = v
        elif distance[v] == distance[u] + 1:
            least[v] = min(least[v], rank[u])


@kernel(u32s, u32s, u8s, i64s, u32s, u8s, i64s, i64s)
def count_corners(low, high, edges, offsets, targets, target_edges, triangles, between):
    """Count triangles, at their three corners: of the two vertices of each pair and a third one
    that both have in their rows.

    low, high: adjacent vertices. edges: the number of directed edges between them. offsets,
    targets, target_edges: rows of third vertices, rising, and the number of edges to each.
    triangles, between: by vertex; add the triangles, and the edges that are between neighbours.
    """
    for i in range(low.shape[0]):
        u = low[i]
        v = high[i]
        a = offsets[u]
        b = offsets[v]
        while a < offsets[u + np.uint32(1)] and b < offsets[v + np.uint32(1)]:
            if targets[a] < targets[b]:
                a += 1
            elif targets[a] > targets[b]:
                b += 1
            else:
                w = targets[a]
                triangles[u] += 1
                triangles[v] += 1
                triangles[w] += 1
                between[u] += target_edges[b]
                between[v] += target_edges[a]
                between[w] += edges[i]
                a += 1
                b += 1
