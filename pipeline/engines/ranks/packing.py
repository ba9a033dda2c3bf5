"""Sets of vertices in messages: as a list or, where that is shorter, as a bitmap."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ....kernels.base import bitmap
from ....kernels.base.numbering import Numbering, is_identity
from ....kernels.pieces.vertices import list_bits, to_bitmap

NONE = np.empty(0, np.uint32)


def as_list(words: NDArray[np.uint64]) -> NDArray[np.uint32]:
    """The vertices of a bitmap, rising."""
    vertices = np.empty(_held(words), np.uint32)
    bitmap.difference(words, np.zeros_like(words), vertices)
    return vertices


def numbers_in(words: NDArray[np.uint64], numbering: Numbering, count: int) -> NDArray[np.uint32]:
    """The numbers below ``count``, rising, whose places by ``numbering`` are in a bitmap."""
    if is_identity(numbering):
        numbers = as_list(words)
        return numbers[: numbers.searchsorted(count)]
    numbers = np.empty(_held(words), np.uint32)
    return numbers[: list_bits(words, numbering, count, numbers)]


def _held(words: NDArray[np.uint64]) -> int:
    return int(np.bitwise_count(words).sum())


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
