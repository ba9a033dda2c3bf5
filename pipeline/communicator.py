"""How the ranks of a search talk: a small protocol, so that supersteps are written once.

Every rank calls the same operations in the same order. One rank is all there is so far, and the
protocol holds what its supersteps use; exchanging bitmaps and lists comes with several.
"""

from __future__ import annotations

from typing import Protocol

from ..kernels.backend import Work


class Communicator(Protocol):
    @property
    def size(self) -> int: ...

    def sum(self, work: Work) -> Work:
        """The sum of every rank's work, the same on all: it decides direction and end."""
        ...


class SingleCommunicator:
    """One rank."""

    size = 1

    def sum(self, work: Work) -> Work:
        return work
