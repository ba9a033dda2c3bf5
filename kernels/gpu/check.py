"""Graph500's rules, checked on a device. The definition is bfs/check.py; the kernels stand in
cuda/bfs/check.cu.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base.graph import UNREACHED
from ..bfs.check import RULES, Violations
from .device import Device, pack, strip_lanes, unsigned_name
from .graph import Rows

_SOURCE = "bfs/check.cu"
NOWHERE = np.uint64(2**64 - 1)
CLAIM = np.dtype(
    [
        *((name, np.uint64) for name in ("distance", "parent")),
        *((name, np.uint32) for name in ("vertices", "source")),
        ("limit", np.int32),
    ],
    align=True,
)
REPORT = np.dtype([("count", np.uint64), ("first", np.uint64)], align=True)


def check(
    device: Device,
    rows: Rows,
    distance: Any,
    parent: Any,
    source: int,
    max_depth: int | None = None,
) -> Violations:
    """Count how often a result breaks each rule, with the least vertex, or edge, that breaks it.

    rows: the edges, forward if the graph is directed. distance: uint8 (n,), 255 where unreached, or
    int32, -1 where unreached. parent: uint32 (n,), UNREACHED where there is none. Arrays are on the
    device.
    """
    n, edges = len(parent), rows.edges
    kind = {"u": "u8", "i": "int"}[distance.dtype.kind]
    with device.use() as cupy:
        claim = pack(
            CLAIM,
            distance=distance,
            parent=parent,
            vertices=n,
            source=source,
            limit=2**31 - 1 if max_depth is None else min(max_depth, 2**31 - 1),
        )
        count = cupy.zeros(1 + len(RULES), np.uint64)
        first = cupy.full(1 + len(RULES), NOWHERE, np.uint64)
        report = pack(REPORT, count=count, first=first)
        device.launch(_SOURCE, f"check_vertices<{kind}>", n, (claim, report))
        joined = cupy.zeros(n, np.uint8)
        function = f"check_edges<{rows.offset_type}, {kind}>"
        arguments = (rows.offsets, rows.targets(), np.uint64(edges), claim, joined, report)
        device.launch(_SOURCE, function, strip_lanes(edges), arguments)
        device.launch(_SOURCE, "check_joined", n, (parent, joined, np.uint32(n), report))
        counts, places = count.get().tolist(), first.get().tolist()

        violations = Violations()
        for rule in RULES:
            violations.add(rule, counts[rule], *_vertices(rule, places[rule], parent))
        if counts[2]:  # else every parent is one level up, which no cycle can be
            _add_astray(cupy, parent, source, violations)
    return violations


def _vertices(rule: int, place: int, parent: Any) -> tuple[int, ...]:
    """Decode the place of a rule's first violation, as the kernel reports it. Returns both ends of
    an edge (rules 3 and 4), a vertex and its parent (rule 5), or one vertex; an empty tuple if
    nothing breaks the rule.
    """
    if place == NOWHERE:
        return ()
    if rule in (3, 4):
        return place >> 32, place & 0xFFFFFFFF
    return (place, int(parent[place])) if rule == 5 else (place,)


def _add_astray(cupy: Any, parent: Any, source: int, violations: Violations) -> None:
    """Add violations of rule 1: vertices with a parent whose parents do not lead to the source."""
    n = len(parent)
    own = cupy.arange(n, dtype=np.uint32)
    ancestor = cupy.where(parent < n, parent, own)
    for _ in range(n.bit_length()):  # twice as far each time
        ancestor = ancestor[ancestor]
    # The source has no parent, everyone else has: where that is not so, it was told already.
    astray = (parent != UNREACHED) & (own != np.uint32(source)) & (ancestor != np.uint32(source))
    count = int(cupy.count_nonzero(astray))
    if count:
        violations.add(1, count, int(cupy.argmax(astray)))


def reached(device: Device, distance: Any, rows: Any) -> tuple[int, int]:
    """Return the number of vertices that were reached, and the sum of ``rows`` over them (by
    vertex: uint32 or uint64).

    distance: as for ``check``.
    """
    kind = {"u": "u8", "i": "int"}[distance.dtype.kind]
    function = f"count_reached<{kind}, {unsigned_name(rows.dtype)}>"
    with device.use() as cupy:
        found = cupy.zeros(2, np.uint64)
        arguments = (distance, rows, np.uint64(len(distance)), found)
        device.launch(_SOURCE, function, len(distance), arguments)
        vertices, total = found.get().tolist()
    return vertices, total
