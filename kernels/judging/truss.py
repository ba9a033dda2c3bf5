"""Truss numbers by one thread, written apart from the program that is judged: edges are kept sorted
by the number of their triangles, and leave one by one (Wang and Cheng, Truss Decomposition in
Massive Networks, VLDB 2012).
"""

from ..base.compiled import compiled, i64s, kernel, u8s, u32s, u64s

EDGE_BYTES = 7 * 8
"""Bytes for each edge while keys are sorted: in both directions, as they come, joined and sorted,
and each once. What is kept of an edge later takes no more.
"""


@kernel(u64s, i64s, i64s, u32s, u32s)
def list_edges(keys, offsets, room, ends, edges):
    """List the neighbours of each vertex by rising vertex, and the edges to them.

    keys: uint64, rising; the high half is the lesser end of an edge. offsets: int64 (n + 1,),
    zeros, receives the bounds of the lists. room: int64 (n,). ends, edges: uint32 (2 * edges,).
    """
    for key in keys:
        offsets[(key >> 32) + 1] += 1
        offsets[(key & 0xFFFFFFFF) + 1] += 1
    for v in range(room.shape[0]):
        offsets[v + 1] += offsets[v]
        room[v] = offsets[v]
    for e in range(keys.shape[0]):
        u = keys[e] >> 32
        v = keys[e] & 0xFFFFFFFF
        ends[room[u]] = v
        edges[room[u]] = e
        room[u] += 1
        ends[room[v]] = u
        edges[room[v]] = e
        room[v] += 1


@compiled
def _move_down(edge, support, place, order, starts):
    """Take a triangle from the support of an edge, which moves to the front of the edges of its old
    support and becomes the last one of the new.
    """
    was = support[edge]
    first = order[starts[was]]
    order[place[edge]] = first
    place[first] = place[edge]
    order[starts[was]] = edge
    place[edge] = starts[was]
    starts[was] += 1
    support[edge] = was - 1


@kernel(u64s, i64s, u32s, u32s, u32s, u32s, u32s, i64s, u8s)
def truss_numbers(keys, offsets, ends, edges, support, place, order, starts, gone):
    """Find the truss number, less 2, of each edge.

    keys, offsets, ends, edges: as of ``list_edges``. support: uint32 (edges,), receives the
    numbers. place, order: uint32 (edges,). starts: int64 (n + 1,), zeros; supports are below n.
    gone: uint8 (edges,), zeros.
    """
    for e in range(keys.shape[0]):
        u = keys[e] >> 32
        v = keys[e] & 0xFFFFFFFF
        i = offsets[u]
        j = offsets[v]
        count = 0
        while i < offsets[u + 1] and j < offsets[v + 1]:
            if ends[i] == ends[j]:
                count += 1
                i += 1
                j += 1
            elif ends[i] < ends[j]:
                i += 1
            else:
                j += 1
        support[e] = count
        starts[count + 1] += 1
    for count in range(1, starts.shape[0]):
        starts[count] += starts[count - 1]
    for e in range(keys.shape[0]):
        place[e] = starts[support[e]]
        order[place[e]] = e
        starts[support[e]] += 1
    for count in range(starts.shape[0] - 1, 0, -1):
        starts[count] = starts[count - 1]
    starts[0] = 0
    for at in range(keys.shape[0]):
        e = order[at]
        gone[e] = 1
        starts[support[e]] = at + 1
        u = keys[e] >> 32
        v = keys[e] & 0xFFFFFFFF
        i = offsets[u]
        j = offsets[v]
        while i < offsets[u + 1] and j < offsets[v + 1]:
            if ends[i] < ends[j]:
                i += 1
            elif ends[j] < ends[i]:
                j += 1
            else:
                if not gone[edges[i]] and not gone[edges[j]]:
                    for other in (edges[i], edges[j]):
                        if support[other] > support[e]:
                            _move_down(other, support, place, order, starts)
                i += 1
                j += 1
