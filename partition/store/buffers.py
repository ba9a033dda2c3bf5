"""Arrays of a task that are used again and again: getting memory that was not touched before took a
quarter of the processors' time of a build through files.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike, NDArray


class Buffers:
    """Of one thread."""

    def __init__(self) -> None:
        self._kept: dict[str, NDArray] = {}

    def take(self, name: str, length: int, dtype: DTypeLike) -> NDArray:
        """An array of any content, in place of what was taken by this name before.

        >>> buffers = Buffers()
        >>> first = buffers.take("keys", 3, np.uint32)
        >>> np.shares_memory(first, buffers.take("keys", 2, np.uint32))
        True
        """
        kept = self._kept.pop(name, None)
        if kept is None or len(kept) < length:
            del kept  # before there is a larger one
            kept = np.empty(length, dtype)
        self._kept[name] = kept
        return kept[:length]

    def clear(self) -> None:
        self._kept.clear()
