"""How the ranks of a search talk: a small protocol, so that supersteps are written once.

Every rank calls the same operations in the same order. One rank is all there is so far.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol


class Counters(NamedTuple):
    """What ranks agree on after a superstep: the sums decide direction and end.

    found: vertices reached. forward, backward: edges that leave and that enter them.
    examined: edges looked at.
    """

    found: int
    forward: int
    backward: int
    examined: int


class Communicator(Protocol):
    @property
    def rank(self) -> int: ...

    @property
    def size(self) -> int: ...

    def sum(self, counters: Counters) -> Counters:
        """The sum of every rank's counters, the same on all."""
        ...


class SingleCommunicator:
    """One rank."""

    rank = 0
    size = 1

    def sum(self, counters: Counters) -> Counters:
        return counters
