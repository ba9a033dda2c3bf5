"""Distances and shortest paths that judges compute anew, from rows of their own, a thread each.

Written apart from the programs that are judged, and simply: rows are made of edges by a counting
sort; 64 searches share the edges of the vertices that they come to at the same level, as lists; and
Brandes' sums follow one search in the order that its vertices were found.

A graph may have more shortest paths between two vertices than a double can say. Where there are
2**512 they are counted again, as pairs: ``count * 2**(512 * power)``, 1 <= count < 2**512. Nothing
but ratios of counts is used.
"""

import numpy as np
from numba import types

from ..base.compiled import (
    boolean,
    booleans,
    compiled,
    f64s,
    i32s,
    i64,
    i64s,
    kernel,
    u8s,
    u32s,
    u64s,
)
from ..base.graph import UNREACHED
from ..base.intrinsics import trailing_zeros

TOGETHER = 64
"""Number of searches that share a word."""

_SELDOM = 6
"""Number of times that searches together look at all edges before they go apart, because they
seldom meet. Searches that meet look at all edges some three times.
"""

SUM_BYTES = 3 * 8 + 2 * 4
"""Bytes of the arrays that ``sum_distances`` is given, for each vertex."""

DEPENDENCY_BYTES = 3 * 4 + 3 * 8
"""Bytes of the arrays that ``add_dependencies`` is given, for each vertex."""

_LARGE = 2.0**512
_SMALL = 2.0**-512

NO_DISTANCE = np.uint32(2**32 - 2)
"""The distance of a vertex for which a result has a value that is no distance."""

_u32_table = types.uint32[:, ::1]


@kernel(u32s, i64s)
def count_ends(ends, counts):
    """Count, for each vertex, the edges that it is an end of."""
    for e in range(ends.shape[0]):
        counts[ends[e]] += 1


@kernel(u32s, u32s, i64s, u32s)
def put_targets(sources, targets, room, rows):
    """Put the target of each edge into its source's row. room: where each row goes on."""
    for e in range(sources.shape[0]):
        u = np.uintp(sources[e])
        rows[room[u]] = targets[e]
        room[u] += 1


@kernel(i64s, u32s, boolean, u32s, u64s, u64s, u64s, u32s, u32s, i64s, i64s, i64s, f64s)
def sum_distances(
    offsets,
    targets,
    both_ways,
    sources,
    seen,
    here,
    then,
    active,
    found,
    reached,
    total,
    farthest,
    harmonic,
):
    """Search from up to 64 different ``sources``. For each source, count the vertices that it
    reaches, itself among them, and compute the sum of their distances, the greatest distance, and
    the sum of 1 over the distances of the others. Returns the number of edges looked at.

    All searches go at once, unless they seldom meet: then each goes by itself, which takes less
    time for an edge. both_ways: whether every edge leads both ways; if so, a level of very many
    edges is looked for from the vertices that it may reach. seen, here, then: uint64, by vertex;
    ``here`` and ``then`` are empty before and after. active, found: uint32, room for all vertices.
    reached, total, farthest: int64, by source. harmonic: float64, by source.
    """
    room = seen, here, then, active, found
    sums = reached, total, farthest, harmonic
    looked, done = _search_together(offsets, targets, both_ways, sources, *room, *sums)
    if not done:
        here[:] = 0
        then[:] = 0
        found[:] = UNREACHED
        for i in range(sources.shape[0]):
            reached[i], total[i], farthest[i], harmonic[i], edges = _search_apart(
                offsets, targets, sources[i], found, active
            )
            looked += edges
    return looked


@compiled
def _search_apart(offsets, targets, source, depth, order):
    """Search from one source by itself. Returns the number of vertices reached, the sum of their
    distances, the greatest distance, the sum of 1 over the distances of the others, and the number
    of edges looked at. depth: UNREACHED everywhere before and after.
    """
    depth[source] = 0
    order[0] = source
    last = 1
    first = 0
    level = np.int64(0)
    total = np.int64(0)
    harmonic = 0.0
    looked = np.int64(0)
    while first < last:
        if depth[order[first]] > level:
            level += 1
            total += level * (last - first)
            harmonic += (last - first) / level
        u = np.uintp(order[first])
        first += 1
        looked += offsets[u + 1] - offsets[u]
        for e in range(offsets[u], offsets[u + 1]):
            v = np.uintp(targets[e])
            if depth[v] == UNREACHED:
                depth[v] = depth[u] + np.uint32(1)
                order[last] = np.uint32(v)
                last += 1
    for i in range(last):
        depth[order[i]] = UNREACHED
    return last, total, level, harmonic, looked


@compiled
def _search_together(
    offsets,
    targets,
    both_ways,
    sources,
    seen,
    here,
    then,
    active,
    found,
    reached,
    total,
    farthest,
    harmonic,
):
    """Search from all sources at the same time. Returns the number of edges looked at, and whether
    the searches were finished; they are not if they seldom meet.
    """
    seen[:] = 0
    count = sources.shape[0]
    searches = np.uint64(0)
    for i in range(count):
        active[i] = sources[i]
        here[sources[i]] = seen[sources[i]] = np.uint64(1) << np.uint64(i)
        searches |= here[sources[i]]
        reached[i] = 1
        total[i] = 0
        farthest[i] = 0
        harmonic[i] = 0
    level = 0
    counts = np.zeros(TOGETHER, np.int64)
    looked = np.int64(0)
    most = _SELDOM * targets.shape[0]
    while count:
        if looked > most and sources.shape[0] > _SELDOM:
            return looked, False
        level += 1
        leaving = np.int64(0)
        for i in range(count):
            leaving += offsets[active[i] + 1] - offsets[active[i]]
        if both_ways and 4 * leaving > targets.shape[0]:
            new_count, edges = _pull_words(offsets, targets, searches, seen, here, then, found)
            for i in range(count):
                here[active[i]] = 0
            looked += edges
        else:
            new_count = _push_words(offsets, targets, seen, here, then, active, count, found)
            looked += leaving
        for i in range(new_count):
            v = np.uintp(found[i])
            seen[v] |= then[v]
            _count_bits(then[v], counts)
        _add_level(counts, level, reached, total, farthest, harmonic)
        here, then = then, here
        active, found = found, active
        count = new_count
    return looked, True


@compiled
def _count_bits(word, counts):
    while word:
        counts[trailing_zeros(word)] += 1
        word &= word - np.uint64(1)


@compiled
def _add_level(counts, level, reached, total, farthest, harmonic):
    """Add the vertices that a level has found to the sums, and clear their counts. Returns whether
    there are any.
    """
    any_found = False
    for i in range(reached.shape[0]):
        if counts[i]:
            any_found = True
            reached[i] += counts[i]
            total[i] += level * counts[i]
            farthest[i] = level
            harmonic[i] += counts[i] / level
            counts[i] = 0
    return any_found


@compiled
def _push_words(offsets, targets, seen, here, then, active, count, found):
    """Follow the edges of ``active[:count]``, whose words are taken from ``here``. Returns the
    number of vertices found, and the number of edges followed.
    """
    new_count = 0
    for i in range(count):
        u = np.uintp(active[i])
        word = here[u]
        here[u] = 0
        for e in range(offsets[u], offsets[u + 1]):
            v = np.uintp(targets[e])
            new = word & ~seen[v]
            if new:
                if not then[v]:
                    found[new_count] = np.uint32(v)
                    new_count += 1
                then[v] |= new
    return new_count


@compiled
def _pull_words(offsets, targets, searches, seen, here, then, found):
    """Look along the edges of the vertices that some search has not seen. Returns the number of
    vertices found, and the number of edges looked at.
    """
    new_count = 0
    edges = np.int64(0)
    for v in range(seen.shape[0]):
        missing = searches & ~seen[v]
        if not missing:
            continue
        new = np.uint64(0)
        for e in range(offsets[v], offsets[v + 1]):
            new |= here[np.uintp(targets[e])]
            edges += 1
            if new & missing == missing:
                break
        new &= missing
        if new:
            then[v] = new
            found[new_count] = v
            new_count += 1
    return new_count, edges


@kernel(u32s, u32s, u64s, u64s, u64s)
def spread_words(sources, targets, here, seen, then):
    """Search one level from many sources along some edges, in any order. Add to ``then``, for each
    target, the searches that are ``here`` at an edge's source and that the target has not ``seen``.
    """
    for e in range(sources.shape[0]):
        word = here[sources[e]]
        if word:
            v = np.uintp(targets[e])
            then[v] |= word & ~seen[v]


@kernel(u64s, u64s, i64, i64s, i64s, i64s, f64s)
def enter_level(then, seen, level, reached, total, farthest, harmonic):
    """Count what a level has found, after all edges have passed. Returns whether it has found any
    vertex. reached, total, farthest, harmonic: (TOGETHER,), as in sum_distances.
    """
    counts = np.zeros(TOGETHER, np.int64)
    for v in range(then.shape[0]):
        seen[v] |= then[v]
        _count_bits(then[v], counts)
    return _add_level(counts, level, reached, total, farthest, harmonic)


@compiled
def _add_paths(v, u, count, power):
    """Add the paths to ``u`` to the paths to ``v``, which they lead on to."""
    apart = power[u] - power[v]
    if apart == 0:
        count[v] += count[u]
    elif apart > 0:
        count[v] = count[u] + (count[v] * _SMALL if apart == 1 else 0.0)
        power[v] = power[u]
    elif apart == -1:
        count[v] += count[u] * _SMALL
    if count[v] >= _LARGE:
        count[v] *= _SMALL
        power[v] += 1


@kernel(i64s, u32s, i64, u32s, u32s, f64s, i32s, f64s, f64s)
def add_dependencies(offsets, targets, source, depth, order, count, power, share, score):
    """Add to ``score`` each vertex's dependency on the shortest paths from a source: over all
    vertices that the source reaches, the sum of the share of paths to each that lead through the
    vertex.

    depth: uint32, UNREACHED everywhere before and after. order: uint32. count, share: float64.
    power: int32. All these are room, by vertex. No edge may stand twice.
    """
    depth[source] = 0
    order[0] = source
    count[source] = 1.0
    last = 1
    first = 0
    most = 1.0
    while first < last:
        u = np.uintp(order[first])
        first += 1
        below = depth[u] + np.uint32(1)
        paths = count[u]
        most = max(most, paths)
        for e in range(offsets[u], offsets[u + 1]):
            v = np.uintp(targets[e])
            if depth[v] == UNREACHED:
                depth[v] = below
                order[last] = np.uint32(v)
                last += 1
                count[v] = paths
            elif depth[v] == below:
                count[v] += paths
    wide = most >= _LARGE
    if wide:
        _count_wide(offsets, targets, depth, order, last, count, power)
    for i in range(last - 1, 0, -1):
        u = np.uintp(order[i])
        if wide:
            total = _total_wide(offsets, targets, depth, power, share, u)
        else:
            below = depth[u] + np.uint32(1)
            total = 0.0
            for e in range(offsets[u], offsets[u + 1]):
                v = np.uintp(targets[e])
                if depth[v] == below:
                    total += share[v]
        dependency = count[u] * total
        score[u] += dependency
        share[u] = (1.0 + dependency) / count[u]
    for i in range(last):
        depth[order[i]] = UNREACHED


@compiled
def _count_wide(offsets, targets, depth, order, last, count, power):
    """Count the paths to ``order[:last]`` again, with powers."""
    for i in range(last):
        count[order[i]] = 0.0
        power[order[i]] = 0
    count[order[0]] = 1.0
    for i in range(last):
        u = np.uintp(order[i])
        for e in range(offsets[u], offsets[u + 1]):
            v = np.uintp(targets[e])
            if depth[v] == depth[u] + np.uint32(1):
                _add_paths(v, u, count, power)


@compiled
def _total_wide(offsets, targets, depth, power, share, u):
    """Sum the shares of the vertices one level behind ``u``, scaled to the power of its paths."""
    total = 0.0
    for e in range(offsets[u], offsets[u + 1]):
        v = np.uintp(targets[e])
        if depth[v] == depth[u] + np.uint32(1):
            apart = power[v] - power[u]
            if apart == 0:
                total += share[v]
            elif apart == 1:
                total += share[v] * _SMALL
    return total


@kernel(u32s, u32s, booleans, i64s, u32s, i64, _u32_table, u8s, i64s)
def put_claims(source, vertex, known, distance, slot, most, claim, wrong, found):
    """Put the distances that some rows of a result claim into ``claim``, by vertex and slot,
    UNREACHED at first.

    source: UNREACHED where it is no vertex. known: whether ``vertex`` is a vertex. slot: by source,
    UNREACHED for sources that are not looked at. most: levels that were searched. wrong: by slot,
    receives 1 where a distance is one that there may not be. found: int64 (3,): adds the number of
    rows that were looked at, of rows for something that is no vertex, and of rows that repeat what
    others had told already.
    """
    for i in range(vertex.shape[0]):
        at = slot[source[i]] if source[i] != UNREACHED else UNREACHED
        if at == UNREACHED:
            continue
        found[0] += 1
        if not known[i]:
            found[1] += 1
            continue
        if claim[vertex[i], at] != UNREACHED:
            found[2] += 1
        if distance[i] < 0 or distance[i] > most:
            wrong[at] = 1
            claim[vertex[i], at] = NO_DISTANCE
        else:
            claim[vertex[i], at] = np.uint32(distance[i])


@kernel(u32s, u32s, _u32_table, _u32_table)
def take_least(sources, targets, claim, least):
    """Take the distance that each edge's source claims into ``least`` of its target, if it is less
    than the distances taken before.
    """
    for e in range(sources.shape[0]):
        u = np.uintp(sources[e])
        v = np.uintp(targets[e])
        for i in range(claim.shape[1]):
            least[v, i] = min(least[v, i], claim[u, i])


@kernel(_u32_table, _u32_table, u32s, i64, u8s, i64s)
def check_claims(claim, least, sources, most, astray, found):
    """Check that each distance is one more than the least distance of the vertices that edges come
    from, and that a source's is 0.

    sources: uint32, by slot. most: levels that were searched. astray: by slot, receives 1 where the
    source is not at 0, or another vertex is. found: int64 (3,): adds the number of wrong distances;
    keeps slot and vertex of one.
    """
    for v in range(claim.shape[0]):
        for i in range(sources.shape[0]):
            right = UNREACHED
            if sources[i] == v:
                right = np.uint32(0)
            elif least[v, i] < most:
                right = least[v, i] + np.uint32(1)
            if claim[v, i] != right:
                if right == 0 or claim[v, i] == 0:
                    astray[i] = 1
                found[0] += 1
                found[1] = i
                found[2] = v
