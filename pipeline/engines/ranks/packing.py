"""Sets of vertices in messages: a list of uint32 or, if it is shorter, a bitmap."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ....kernels.base import bitmap
from ....kernels.pieces.vertices import to_bitmap

NONE = np.empty(0, np.uint32)


def joined(lists: Iterable[NDArray[np.uint32]]) -> NDArray[np.uint32]:
    """Return the lists as one array. If only one list is not empty, that list itself is
    returned.
    """
    parts = [part for part in lists if len(part)]
    return parts[0] if len(parts) == 1 else np.concatenate([NONE, *parts])


def packed(
    vertices: NDArray[np.uint32], parents: NDArray[np.uint32], of: int
) -> tuple[NDArray, NDArray[np.uint32]]:
    """Pack a set of vertices below ``of`` for a message. Returns the packed set, and the parents in
    the order in which ``unpacked`` gives the vertices.
    """
    if not _bitmap_is_shorter(len(vertices), of):
        return vertices, parents
    words = np.zeros(-(-of // bitmap.WORD), np.uint64)
    ordered = np.empty_like(parents)
    to_bitmap(vertices, parents, words, np.empty(len(words), np.int64), ordered)
    return words, ordered


def unpacked(packed: NDArray, count: int, of: int) -> NDArray[np.uint32]:
    """Return the vertices of a packed set. count: the number of packed vertices. of: as in
    ``packed``.
    """
    return bitmap.members(packed) if _bitmap_is_shorter(count, of) else packed


def _bitmap_is_shorter(count: int, of: int) -> bool:
    return 4 * count > 8 * -(-of // bitmap.WORD)
