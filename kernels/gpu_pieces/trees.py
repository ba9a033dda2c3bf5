"""Rounds of minimum spanning forests on a device (cuda/pieces/trees.cu)."""

from __future__ import annotations

import numpy as np

from ..gpu.device import Device
from ..gpu.graph import Array
from ..programs.spanning import NO_PAIR

_SOURCE = "pieces/trees.cu"
FUNCTIONS = (
    "set_words",
    "take_weights",
    "take_pairs",
    "append_least",
    "join_pairs",
    "flatten_trees",
)

# Of a vertex: tree; pair and weight of an edge; least weight and pair; its least edge.
_BYTES = 4 + 8 + 4 + 4 + 8 + 8
_SORTED = 2 * 8 + 2 * (8 + 4) + 2 * 4  # of an edge, when they are put in order


class DeviceTrees:
    """The trees of a forest, and its edges so far. Vertices are numbered.

    tree: uint32 (n,), by number, the least vertex of each vertex's tree. pairs, weights: uint64 and
    uint32 (n,): room for edges, in any order.
    """

    def __init__(self, device: Device, vertices: int) -> None:
        self._device = device
        with device.use() as cupy:
            self.tree = cupy.arange(vertices, dtype=np.uint32)
            self.pairs = cupy.zeros(vertices, np.uint64)
            self.weights = cupy.zeros(vertices, np.uint32)
            self._least_weights = cupy.full(vertices, (1 << 32) - 1, np.uint32)
            self._least_pairs = cupy.full(vertices, NO_PAIR, np.uint64)
            self._found = cupy.zeros(1, np.uint32)

    def set_words(self, words: Array, least: Array, numbers: Array) -> None:
        """Set the word of each vertex: its tree in the high half, its number in the low half;
        2^32 - 1 if no edge left its tree in the last round. least: the ``words`` that
        ``join_least`` was given last; zeros before the first round.
        """
        n = len(words)
        with self._device.use():
            self._launch("set_words", n, least, numbers, np.uint32(n), self.tree, words)

    def join_least(self, words: Array, numbers: Array, found: int) -> int:
        """Add the least edge that leaves each tree, and join the trees at its ends. Returns the
        number of edges that are there.

        words: uint64 (n,), of each vertex its least edge that leaves its tree, as
        spanning.least_of_rows has them; NO_PAIR where there is none. numbers: uint32 (n,), of the
        vertices. found: the number of edges before.
        """
        n = len(words)
        least = self._least_weights, self._least_pairs
        with self._device.use():
            self._found.fill(found)
            of_vertices = words, numbers, np.uint32(n), self.tree
            self._launch("take_weights", n, *of_vertices, self._least_weights)
            self._launch("take_pairs", n, *of_vertices, *least)
            edges = self.weights, self.pairs, self._found
            self._launch("append_least", n, self.tree, np.uint32(n), *least, *edges)
            of_round = self.pairs, np.uint32(found), self._found
            self._launch("join_pairs", n, self.tree, *of_round)
            self._launch("flatten_trees", n, self.tree, np.uint32(n), *least)
            return int(self._found.get()[0])

    def _launch(self, function: str, items: int, *arguments: object) -> None:
        self._device.launch(_SOURCE, function, items, arguments)


def warm_up(device: Device) -> None:
    """Compile, or load from the cache, all kernels."""
    for function in FUNCTIONS:
        device.kernel(_SOURCE, function)


def trees_bytes(vertices: int) -> int:
    """Return the bytes that trees hold, and their edges when they are put in order."""
    return (_BYTES + _SORTED) * vertices
