"""Ways that a search may go, and what it gives against Graph500's rules."""

from __future__ import annotations

import numpy as np

from delegraph.kernels.bfs.check import Violations, check_edges, check_joined, check_tree
from delegraph.pipeline.engines.direction import choose

DIRECTIONS = {
    "chosen": choose,
    "push": lambda *_: "push",
    "pull": lambda *_: "pull",
    "alternating": lambda forward, *_: ("push", "pull")[forward % 2],
}

PUSH, PULL = 1e-9, 1e9
"""What makes every level of a device's search go that way, as the cost of a push."""


def violations_of(src, dst, directed, distance, parent, source, max_depth=None) -> Violations:
    violations = Violations()
    check_tree(distance, parent, source, max_depth, violations)
    joined = np.zeros(len(distance), np.uint8)
    blocks = [(src, dst)] if directed else [(src, dst), (dst, src)]
    for u, v in blocks:
        args = np.asarray(u, np.uint32), np.asarray(v, np.uint32)
        check_edges(*args, distance, parent, max_depth, joined, violations)
    check_joined(parent, joined, violations)
    return violations
