"""What the layouts differ in when several ranks search: one superstep of a rank."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from ..direction import Direction
from .edges import Looked
from .remote_vertices import RemoteVertices

Choose = Callable[[int, int, int], Direction]
"""As direction.choose."""


class Superstep(NamedTuple):
    """What a rank did in one.

    entered: vertices of the next frontier, each of which counts on one rank alone. sent: bytes to
    other ranks by kind, the same kinds always. more: whether there may be another superstep, in
    which all ranks agree.
    """

    entered: int
    looked: Looked
    directions: dict[str, Direction]
    sent: dict[str, int]
    more: bool


class Supersteps(Protocol):
    """remote: what was sent to owners, whose parents are told in the end."""

    remote: RemoteVertices

    def superstep(self, level: int) -> Superstep:
        """Find the vertices at distance ``level``, with all other ranks. Raises RankError."""
        ...
