"""Shortest paths of one edge a step, counted by one thread: levels that are too small to be shared,
or all levels of a source.

Forward, a level counts the paths that lead to each vertex of the next level; backward, it adds up
what depends on its vertices (Brandes, A Faster Algorithm for Betweenness Centrality, 2001). A road
has thousands of levels of a few vertices: one call goes through many.

If one thread takes all levels of a source, vertices are numbered as they are found. A level is a
range of numbers, so one look says whether a neighbour is new, or of the next level, and the values
of a level's vertices stand together.

Counts and sums here are plain floats, and there may be no more than MOST_PATHS paths: wide_paths.py
goes on beyond.
"""

import numpy as np

from ..base.bitmap import contains, mask
from ..base.compiled import f64s, i64, i64s, kernel, u32s, u64s
from ..base.graph import UNREACHED
from ..pieces.piece import PIECE, edges_of

MOST_PATHS = 2.0**900
"""The most paths to a vertex. As a float can also hold 2^32 times as many, it can hold what depends
on one of them, too.
"""


@kernel(PIECE, i64, u64s, f64s, u64s, u32s, i64, i64, i64s)
def count_levels(piece, few, reached, paths, found, places, first, last, ends):
    """Count paths level after level, from the level ``places[first:last]`` on, while a level has at
    most ``few`` edges. Returns (levels done, edges).

    The piece is a whole subgraph at hand, whose rows and targets are places. reached: words, not 0
    where a vertex is reached. paths: the number of paths to each vertex that is reached. found:
    bitmap, empty before and after. places: uint32, as long as there are vertices, receives the
    vertices of the levels. ends: int64, receives where each level ends; no more levels are done
    than it has entries. The last level is empty if there is no other.
    """
    offsets, targets, _, _, _ = piece
    level = 0
    edges = np.int64(0)
    while level < ends.shape[0] and first < last:
        level_edges = edges_of(offsets, places, first, last)
        if level_edges > few:
            break
        edges += level_edges
        end = last
        for i in range(first, last):
            u = places[i]
            for e in range(np.int64(offsets[u]), np.int64(offsets[u + 1])):
                v = targets[np.uintp(e)]
                if not reached[v]:
                    reached[v] = 1
                    found[v >> np.uint32(6)] |= mask(v)
                    paths[v] = paths[u]
                    places[end] = v
                    end += 1
                elif contains(found, v):
                    paths[v] += paths[u]
        for i in range(last, end):
            found[places[i] >> np.uint32(6)] = 0
        ends[level] = end
        level += 1
        first, last = last, end
    return level, edges


@kernel(PIECE, i64, u32s, i64s, i64, f64s, f64s, f64s, f64s)
def add_levels(piece, few, places, ends, level, paths, share, came, score):
    """Add up what depends on the vertices of ``level``, of the level before it, and so on, down to
    level 1, while a level has at most ``few`` edges. Returns (the first level that is not done,
    edges).

    places, ends: of all levels; the vertices of level i stand before ``ends[i + 1]``. share: what
    each vertex of the level after ``level`` tells the vertices before it, 0 elsewhere; afterwards
    the same for the last level that is done. came: room.
    """
    offsets, targets, _, _, _ = piece
    edges = np.int64(0)
    while level:
        first = ends[level]
        last = ends[level + 1]
        level_edges = edges_of(offsets, places, first, last)
        if level_edges > few:
            break
        edges += level_edges
        for i in range(first, last):
            v = places[i]
            total = 0.0
            for e in range(np.int64(offsets[v]), np.int64(offsets[v + 1])):
                total += share[targets[np.uintp(e)]]
            came[v] = total
        if level + 2 < ends.shape[0]:
            for i in range(last, ends[level + 2]):
                share[places[i]] = 0.0
        for i in range(first, last):
            v = places[i]
            dependency = paths[v] * came[v]
            score[v] += dependency
            share[v] = (1 + dependency) / paths[v]
        level -= 1
    return level, edges


@kernel(PIECE, i64, i64, u32s, u32s, f64s, i64s)
def count_alone(piece, source, most, number, places, paths, ends):
    """Count the paths of all levels from a source, unless a level has more than ``most`` edges.
    Returns (levels, or 0 if a level had too many edges; vertices; edges; the most paths that lead
    to a vertex).

    The piece is a subgraph as for ``count_levels``. number: uint32, UNREACHED everywhere, receives
    the number of each vertex. places, paths: by number, as far as vertices are reached. ends:
    int64, receives where levels begin, and where the last one ends; it has two entries more than
    there may be levels.
    """
    offsets, targets, _, _, _ = piece
    number[source] = 0
    places[0] = source
    paths[0] = 1.0
    first = np.int64(0)
    last = np.int64(1)
    levels = 0
    edges = np.int64(0)
    most_paths = 0.0
    while first < last:
        level_edges = edges_of(offsets, places, first, last)
        if level_edges > most:
            return 0, last, edges, most_paths
        edges += level_edges
        ends[levels] = first
        levels += 1
        end = last
        for i in range(first, last):
            u = places[i]
            most_paths = max(most_paths, paths[i])
            for e in range(np.int64(offsets[u]), np.int64(offsets[u + 1])):
                v = targets[np.uintp(e)]
                there = number[v]
                if there == UNREACHED:
                    number[v] = np.uint32(end)
                    places[end] = v
                    paths[end] = paths[i]
                    end += 1
                elif there >= last:
                    paths[there] += paths[i]
        first, last = last, end
    ends[levels] = last
    return levels, last, edges, most_paths


@kernel(PIECE, u32s, u32s, f64s, f64s, i64s, i64)
def depend_alone(piece, number, places, paths, share, ends, levels):
    """Replace ``paths`` by each vertex's dependency on a source of ``count_alone``; the source
    itself gets 0.

    Returns the edges.

    share: room, by number.
    """
    offsets, targets, _, _, _ = piece
    edges = np.int64(0)
    for i in range(ends[levels - 1], ends[levels]):
        share[i] = 1.0 / paths[i]
        paths[i] = 0.0
    for level in range(levels - 2, 0, -1):
        begin = ends[level + 1]
        end = ends[level + 2]
        for i in range(ends[level], begin):
            v = places[i]
            total = 0.0
            for e in range(np.int64(offsets[v]), np.int64(offsets[v + 1])):
                there = number[targets[np.uintp(e)]]
                if there >= begin and there < end:
                    total += share[there]
            edges += np.int64(offsets[v + 1]) - np.int64(offsets[v])
            dependency = paths[i] * total
            share[i] = (1 + dependency) / paths[i]
            paths[i] = dependency
    paths[0] = 0.0
    return edges


@kernel(u32s, u32s, f64s, i64, f64s)
def take_in(number, places, depends, count, score):
    """Add what depends on the first ``count`` numbers to the score, by place, and set ``number`` of
    their vertices to UNREACHED again.
    """
    for i in range(count):
        v = places[i]
        score[v] += depends[i]
        number[v] = UNREACHED
