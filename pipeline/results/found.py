"""The outcome of a search: distances, parents, and the log of its supersteps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .columns import Values
from .superstep_log import SuperstepLog


class SearchOutcome(Protocol):
    """The outcome of a search, wherever it is.

    distance: int32 (n,), -1 for vertices not reached. parent: uint32 (n,), UNREACHED for the source
    and for vertices not reached.
    """

    @property
    def distance(self) -> Values: ...
    @property
    def parent(self) -> Values: ...
    @property
    def supersteps(self) -> SuperstepLog: ...


@dataclass(frozen=True)
class Found:
    """The outcome of a search, in host memory (see SearchOutcome)."""

    distance: NDArray[np.int32]
    parent: NDArray[np.uint32]
    supersteps: SuperstepLog
