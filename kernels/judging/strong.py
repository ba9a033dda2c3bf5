"""Checks of strong components by one thread, from rows or from edges in any order.

Written apart from the program that is judged, which finds components; here given ones are checked.
Inside a component, paths must lead from the vertex that names it to all of its vertices, and back.
And components can be *put in order*, such that edges between them lead only onwards, if and only if
no cycle leads through several of them (Kahn: Topological Sorting of Large Networks, Communications
of the ACM 5, 1962). Both together hold for strong components alone.
"""

from ..base.compiled import i64s, kernel, u8s, u32s
from ..base.graph import UNREACHED

JUDGING_BYTES = 4 * 4 + 3 * 4 + 8 + 8 * 1
"""Bytes for each vertex that the judge holds beside rows: components and places, lists and a queue,
counts, and marks.
"""


@kernel(i64s, u32s, u32s, u32s, u8s)
def follow_inside(offsets, targets, component, queue, reached):
    """Mark in ``reached`` the vertices to which a path leads from the vertex that names their
    component, through vertices of the component. Vertices that name themselves are marked already.

    queue: uint32, room for all vertices.
    """
    last = 0
    for v in range(reached.shape[0]):
        if reached[v]:
            queue[last] = v
            last += 1
    first = 0
    while first < last:
        u = queue[first]
        first += 1
        for e in range(offsets[u], offsets[u + 1]):
            v = targets[e]
            if component[v] == component[u] and not reached[v]:
                reached[v] = 1
                queue[last] = v
                last += 1


@kernel(i64s, u32s, u32s, u32s, u32s, i64s, u32s, u8s)
def order_components(offsets, targets, component, head, following, entering, queue, ordered):
    """Mark in ``ordered``, by the vertices that name them, the components that can be put in order.

    head, following: uint32: the first vertex of each component, and after each vertex the next one
    of its component; a last one is followed by itself. entering: int64, zeros, receives the number
    of edges that enter a component from components that are not in order. queue: uint32, room for
    all vertices.
    """
    n = component.shape[0]
    for u in range(n):
        for e in range(offsets[u], offsets[u + 1]):
            if component[targets[e]] != component[u]:
                entering[component[targets[e]]] += 1
    last = 0
    for v in range(n):
        if component[v] == v and entering[v] == 0:
            ordered[v] = 1
            queue[last] = v
            last += 1
    first = 0
    while first < last:
        u = head[queue[first]]
        first += 1
        while True:
            for e in range(offsets[u], offsets[u + 1]):
                other = component[targets[e]]
                if other != component[u]:
                    entering[other] -= 1
                    if entering[other] == 0:
                        ordered[other] = 1
                        queue[last] = other
                        last += 1
            if following[u] == u:
                break
            u = following[u]


@kernel(i64s, u32s, i64s, u32s, u32s, i64s, u32s)
def find_components(offsets, targets, back_offsets, sources, component, next_edge, order):
    """Find the component of each vertex, as any vertex of it (Kosaraju and Sharir: A
    Strong-Connectivity Algorithm and its Applications in Data Flow Analysis, 1981).

    offsets, targets: rows of the edges; back_offsets, sources: of the reversed edges. component:
    uint32, full of UNREACHED, receives the components. next_edge: int64, room for all vertices.
    order: uint32, room for all vertices twice.
    """
    n = component.shape[0]
    stack = order[n:]
    finished = 0
    for v in range(n):
        next_edge[v] = -1
    for root in range(n):
        depth = 0
        if next_edge[root] < 0:
            stack[0] = root
            next_edge[root] = offsets[root]
            depth = 1
        while depth:
            u = stack[depth - 1]
            if next_edge[u] == offsets[u + 1]:
                order[finished] = u
                finished += 1
                depth -= 1
                continue
            v = targets[next_edge[u]]
            next_edge[u] += 1
            if next_edge[v] < 0:
                next_edge[v] = offsets[v]
                stack[depth] = v
                depth += 1
    for i in range(n - 1, -1, -1):
        root = order[i]
        if component[root] != UNREACHED:
            continue
        component[root] = root
        stack[0] = root
        depth = 1
        while depth:
            depth -= 1
            u = stack[depth]
            for e in range(back_offsets[u], back_offsets[u + 1]):
                v = sources[e]
                if component[v] == UNREACHED:
                    component[v] = root
                    stack[depth] = v
                    depth += 1


@kernel(u32s, u32s)
def list_components(component, lists):
    """Make the lists of ``order_components``. lists: uint32 (2 * vertices,): head, following."""
    n = component.shape[0]
    head = lists[:n]
    following = lists[n:]
    for v in range(n):
        head[v] = v
        following[v] = v
    for v in range(n):
        name = component[v]
        if name != v:
            following[v] = head[name]
            head[name] = v


@kernel(u32s, u32s, u32s, u8s, u8s)
def scan_inside(sources, targets, component, reached, reaches):
    """Follow each of some edges inside components once, from vertices that are reached, and back
    from vertices that reach. Returns how many vertices are marked for the first time.
    """
    marked = 0
    for e in range(sources.shape[0]):
        u = sources[e]
        v = targets[e]
        if component[u] == component[v]:
            if reached[u] and not reached[v]:
                reached[v] = 1
                marked += 1
            if reaches[v] and not reaches[u]:
                reaches[u] = 1
                marked += 1
    return marked


@kernel(u32s, u32s, u32s, u8s, u8s)
def scan_between(sources, targets, component, ordered, entered):
    """Mark in ``entered`` the components that some edges enter, from components that are not in
    order.
    """
    for e in range(sources.shape[0]):
        source = component[sources[e]]
        target = component[targets[e]]
        if source != target and not ordered[source]:
            entered[target] = 1
