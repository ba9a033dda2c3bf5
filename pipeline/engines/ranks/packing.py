"""Sets of vertices in messages: as a list or, where that is shorter, as a bitmap."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ....kernels.base import bitmap
from ....kernels.base.numbering import Numbering, by_rule
from ....kernels.pieces.vertices import list_bits, to_bitmap


def as_list(
    words: NDArray[np.uint64], numbers: Numbering | None = None, count: int | None = None
) -> NDArray[np.uint32]:
    """The vertices of a bitmap, rising; or those of the numbers below ``count`` that are there.

    numbers: from these to places in the bitmap.
    """
    held = int(np.bitwise_count(words).sum())
    vertices = np.empty(held, np.uint32)
    if not held:
        return vertices
    if numbers is None or count is None:
        numbers, count = by_rule(), bitmap.WORD * len(words)
    return vertices[: list_bits(words, numbers, count, vertices)]


def packed(
    vertices: NDArray[np.uint32], parents: NDArray[np.uint32], of: int
) -> tuple[NDArray, NDArray[np.uint32]]:
    """Some of so many vertices, and their parents in the order in which ``unpacked`` gives them."""
    if not _bitmap_is_shorter(len(vertices), of):
        return vertices, parents
    words = np.zeros(-(-of // bitmap.WORD), np.uint64)
    ordered = np.empty_like(parents)
    to_bitmap(vertices, parents, words, np.empty(len(words), np.int64), ordered)
    return words, ordered


def unpacked(packed: NDArray, count: int, of: int) -> NDArray[np.uint32]:
    """``count``: of the vertices that were packed."""
    return as_list(packed) if _bitmap_is_shorter(count, of) else packed


def _bitmap_is_shorter(count: int, of: int) -> bool:
    return 4 * count > 8 * -(-of // bitmap.WORD)
