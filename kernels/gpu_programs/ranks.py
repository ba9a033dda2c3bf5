"""Ranks with a device each that go through one graph, of whose edges each rank has a share.

A rank's share is a graph of all vertices, so that the kernels of one device go through it. A rank's
vectors are whole, and what edges have brought is put together over all ranks. Each rank does this
for its part of the vertices. These parts are ranges, or, for PageRank in memory, follow the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..gpu.device import Device
from ..gpu.graph import Array

Exchange = Callable[[Sequence[list[Any]]], list[list[Any]]]
"""The ``exchange`` of a communicator: it sends and receives arrays of devices."""


class Ranks:
    """A rank's view of all ranks. device: this rank's. check: raises if another rank is known to
    have failed. sent: bytes that this rank has sent to others.
    """

    def __init__(
        self,
        device: Device,
        rank: int,
        size: int,
        exchange: Exchange,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self.device, self.rank, self.size, self.check = device, rank, size, check
        self.sent = 0
        self._exchange = exchange

    def part(self, vertices: int, rank: int | None = None) -> slice:
        """Return the range of ``vertices`` vertices that is a rank's part, by default this rank's.

        >>> Ranks(None, 1, 3, lambda messages: messages).part(10)
        slice(3, 6, None)
        """
        rank = self.rank if rank is None else rank
        return slice(rank * vertices // self.size, (rank + 1) * vertices // self.size)

    def fold(self, values: Array, fold: Callable[..., Any]) -> Array:
        """Combine the values of all ranks, in the order of ranks, and return this rank's part of
        them. fold: a function of CuPy with two arguments and ``out``.
        """
        with self.device.use() as cupy:
            parts = [[values[self.part(len(values), rank)]] for rank in range(self.size)]
            came = [cupy.asarray(message[0]) for message in self.tell(parts)]
            whole = came[0].copy() if self.rank == 0 else came[0]
            for part in came[1:]:
                fold(whole, part, out=whole)
            return whole

    def expand(self, values: Array, part: Array, numbers: Sequence[float] = ()) -> np.ndarray:
        """Fill ``values`` with the parts of all ranks. Returns the numbers of all ranks: float64, a
        row each.
        """
        with self.device.use() as cupy:
            came = self.tell([[part, np.array(numbers, np.float64)]] * self.size)
            for rank, (piece, _) in enumerate(came):
                values[self.part(len(values), rank)] = cupy.asarray(piece)
            return np.stack([told for _, told in came])

    def fold_whole(self, values: Array, fold: Callable[..., Any]) -> None:
        """Combine the values of all ranks, and give every rank all of the combined values, in
        ``values``.
        """
        self.expand(values, self.fold(values, fold))

    def total(self, numbers: Sequence[float]) -> list[float]:
        """Return the sums of all ranks' numbers."""
        came = self.tell([[np.array(numbers, np.float64)]] * self.size)
        return np.sum([told for (told,) in came], axis=0).tolist()

    def tell(self, messages: Sequence[list[Any]]) -> list[list[Any]]:
        """Send a message to each rank. Returns the message that each rank has sent."""
        for rank, message in enumerate(messages):
            if rank != self.rank:
                self.sent += sum(array.nbytes for array in message)
        return self._exchange(messages)

    def to_first(self, message: list[Any]) -> list[list[Any]]:
        """Send rank 0 a message. Returns, for each array of it, those of all ranks on rank 0, and
        an empty one of this rank's on the others.
        """
        nothing: list[Any] = []
        came = self.tell([message if rank == 0 else nothing for rank in range(self.size)])
        if self.rank:
            return [[array[:0]] for array in message]
        return [list(arrays) for arrays in zip(*came, strict=True)]

    def from_first(self, message: list[Any]) -> list[Any]:
        """Return the message of rank 0; the others' messages are not looked at."""
        nothing: list[Any] = []
        return self.tell([message if self.rank == 0 else nothing] * self.size)[0]
