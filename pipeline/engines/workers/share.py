"""A share of a graph that a worker keeps loaded for the ranks of one command."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from ....kernels.gpu_programs.rows import ProgramGraph
from ...ranks.communicator import Communicator
from ..ranks.graph import RankGraph

Loaded = TypeVar("Loaded", RankGraph, ProgramGraph)


class Share:
    """A share of a graph that a worker keeps loaded from one rank of a command to the next.

    name: of the command. of: rank, number of ranks, and way of the loaded share; None if none is
    loaded. at_work: a list with the communicator of the present rank, which a share loaded on CPUs
    asks whether to continue. The client holds the share as the result of a task (``keep_share``),
    so the share is dropped when the client drops the result.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.of: tuple[int, int, int] | None = None
        self.graph: RankGraph | ProgramGraph | None = None
        self.at_work: list[Communicator] = []

    def holds(self, rank: int, size: int, ways: Sequence[int]) -> bool:
        """Return whether the share is that of this rank, in one of these ways. If it is not, the
        loaded graph is dropped.
        """
        if self.of is not None and self.of[:2] == (rank, size) and self.of[2] in ways:
            return True
        self.of = self.graph = None
        return False

    def load(self, of: tuple[int, int, int], graph: Callable[[], Loaded]) -> Loaded:
        """Return the loaded graph if it is the share ``of``; otherwise the graph that ``graph``
        makes.
        """
        if self.graph is None or self.of != of:
            self.of = self.graph = None  # frees the old graph first
            self.graph, self.of = graph(), of
        return cast(Any, self.graph)

    def __reduce__(self):
        return Share, (self.name,)  # a copy that Dask makes is empty


_shares: weakref.WeakValueDictionary[str, Share] = weakref.WeakValueDictionary()


def keep_share(name: str) -> Share:
    """Make a share for a command. The client runs this function as a task on a worker."""
    _shares[name] = share = Share(name)
    return share


def share_of(name: str) -> Share:
    """Return the share of a command. The graphs of other commands, which have ended, are
    dropped.
    """
    forget_others(name)
    return _shares.get(name) or Share(name)


def forget_others(name: str) -> None:
    """Drop the graphs that commands of other names have loaded."""
    for share in list(_shares.values()):
        if share.name != name:
            share.of = share.graph = None
