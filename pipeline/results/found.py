"""The outcome of a search: distances, parents, and the log of its supersteps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .superstep_log import SuperstepLog


@dataclass(frozen=True)
class Found:
    """The outcome of a search.

    distance: int32 (n,), -1 for vertices not reached. parent: uint32 (n,), UNREACHED for the source
    and for vertices not reached.
    """

    distance: NDArray[np.int32]
    parent: NDArray[np.uint32]
    supersteps: SuperstepLog

    @property
    def reached(self) -> int:
        return 1 + int(self.supersteps.found.sum())

    @property
    def depth(self) -> int:
        return int(np.count_nonzero(self.supersteps.found))
