"""A share of a graph that a worker keeps loaded for one rank of a command after another."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from ....kernels.gpu_programs.rows import ProgramGraph
from ...ranks.communicator import Communicator
from ..ranks.graph import RankGraph

Loaded = TypeVar("Loaded", RankGraph, ProgramGraph)


class Share:
    """A share of a graph that a worker keeps loaded for one rank of a command after another.

    name: of the command. of: rank, ranks, and the way that edges are read. at_work: one
    communicator, which what is loaded on CPUs asks whether to go on. The client holds a share as
    what a task gives (``keep_share``): it goes when the client does.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.of: tuple[int, int, int] | None = None
        self.graph: RankGraph | ProgramGraph | None = None
        self.at_work: list[Communicator] = []

    def holds(self, rank: int, size: int, ways: Sequence[int]) -> bool:
        """One of these; what is of others is forgotten."""
        if self.of is not None and self.of[:2] == (rank, size) and self.of[2] in ways:
            return True
        self.of = self.graph = None
        return False

    def load(self, of: tuple[int, int, int], graph: Callable[[], Loaded]) -> Loaded:
        """Return the graph that stands there, or that ``graph`` makes."""
        if self.graph is None or self.of != of:
            self.of = self.graph = None  # that is free before
            self.graph, self.of = graph(), of
        return cast(Any, self.graph)

    def __reduce__(self):
        return Share, (self.name,)  # what Dask might copy is empty


_shares: weakref.WeakValueDictionary[str, Share] = weakref.WeakValueDictionary()


def keep_share(name: str) -> Share:
    """A worker's task."""
    _shares[name] = share = Share(name)
    return share


def share_of(name: str) -> Share:
    """The share of a command. Other commands have ended."""
    forget_others(name)
    return _shares.get(name) or Share(name)


def forget_others(name: str) -> None:
    """Let go of what commands of other names have loaded."""
    for share in list(_shares.values()):
        if share.name != name:
            share.of = share.graph = None
