"""Checkpoints of the ranks of a program: whole vectors, by global id.

Rank 0 writes and reads, window by window, and has a checkpoint (results/checkpoint.py) as a rank
that is alone has one. So no rank holds more for it, and how many ranks go on does not matter.
(Ranks that have whole arrays send these: rank 0 holds one more, and what comes from another.)
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ....kernels.gpu_programs.ranks import Ranks
from ...ranks.communicator import Communicator, Message
from ...results.checkpoint import Checkpoint, Pieces, SavedArray
from ...results.superstep_log import SuperstepLog
from ...run import ending
from ..ranks.graph import RankGraph
from .vectors import Vector

WINDOW = 1 << 17
"""Vertices whose values travel at once."""

Values = Mapping[str, Vector | NDArray]
"""By name. An array is the same on all ranks."""

ANSWERED = "answered"
"""Of a program that goes through sources: bool, by source."""

_one_at_a_time = threading.Lock()
"""An attempt of before may still be saving when the next one looks, on the same worker."""


def _saved(save: Callable[[], None]) -> bool:
    """Whether something has asked for an end, once ``save`` is done."""
    with _one_at_a_time:
        try:
            save()
        except KeyboardInterrupt:
            return True
    return False


class GoneOn(NamedTuple):
    """After ``done`` steps. facts: as they were saved, through JSON."""

    done: int
    facts: Any


class Saving:
    """The checkpoint of one rank. checkpoint: on rank 0; None where nothing is to be saved."""

    def __init__(
        self, graph: RankGraph, communicator: Communicator, checkpoint: Checkpoint | None
    ) -> None:
        self._graph = graph
        self._communicator = communicator
        self._checkpoint = None if communicator.rank else checkpoint
        shared = graph.delegates[: 0 if graph.shared is None else None]
        self._order = np.argsort(shared)
        self._delegates = shared[self._order]

    def due(self) -> bool:
        """On rank 0, whose clock all go by."""
        return self._checkpoint is not None and self._checkpoint.due()

    def save(self, done: int, values: Values, facts: Any) -> bool:
        """On all ranks. Whether they have to end: something has asked for it."""
        arrays = {name: self._array(some) for name, some in values.items()}
        ends = False
        if self._checkpoint is not None:
            ends = _saved(partial(self._checkpoint.save_state, done, arrays, facts))
        elif self._graph.rank:
            for array in arrays.values():
                if isinstance(array, Pieces):
                    list(array.pieces)  # rank 0 gets them
        return bool(self._from_first([np.array([ends])])[0][0])

    def load(self, values: Values) -> GoneOn | None:
        """On all ranks: fill what was saved. None where there is nothing, and nothing changes."""
        arrays: Mapping[str, SavedArray] = {}
        told = b""
        if self._checkpoint is not None:
            kinds = {name: self._kind(some) for name, some in values.items()}
            with _one_at_a_time:
                saved = self._checkpoint.load_state(kinds)
            if saved is not None:
                self._checkpoint.go_on_from(saved.done)
                told, arrays = json.dumps([saved.done, saved.facts]).encode(), saved.arrays
        (came,) = self._from_first([np.frombuffer(told, np.uint8)])
        if not len(came):
            return None
        for name, some in values.items():
            if isinstance(some, Vector):
                self._fill(some, arrays.get(name))
            else:
                some[:] = self._from_first([arrays[name].read()] if arrays else [])[0]
        return GoneOn(*json.loads(came.tobytes()))

    def _array(self, values: Vector | NDArray) -> NDArray | Pieces:
        if isinstance(values, Vector):
            return Pieces(*self._kind(values), self._windows(values))
        return values

    def _kind(self, values: Vector | NDArray) -> tuple[np.dtype, int]:
        if isinstance(values, Vector):
            return values.own.dtype, self._graph.vertices
        return values.dtype, len(values)

    def _windows(self, vector: Vector) -> Iterator[NDArray]:
        """On rank 0; the others give what they have of each, and get nothing."""
        graph = self._graph
        for first in range(0, graph.vertices, WINDOW):
            last = min(first + WINDOW, graph.vertices)
            mine = [vector.own[own].copy() for own, _ in self._spans(graph.rank, first, last)]
            messages: list[Message] = [[] for _ in range(graph.ranks)]
            messages[0] = mine
            came = self._communicator.exchange(messages)
            if graph.rank:
                continue
            window = np.empty(last - first, vector.own.dtype)
            for rank, parts in enumerate(came):
                for part, (_, at) in zip(parts, self._spans(rank, first, last), strict=True):
                    window[at] = part
            known, rows = self._delegates_in(first, last)
            window[known - first] = vector.shared[rows]
            yield window

    def _fill(self, vector: Vector, saved: SavedArray | None) -> None:
        """saved: on rank 0."""
        pieces = saved and saved.pieces()
        unknown = self._graph.delegates_here
        before = vector.own[unknown]
        first = 0
        while first < self._graph.vertices:
            messages: list[Message] = [[] for _ in range(self._graph.ranks)]
            if pieces is not None:
                _, window = next(pieces)
                last = first + len(window)
                known, _ = self._delegates_in(first, last)
                for rank, message in enumerate(messages):
                    message += [np.array([last]), window[known - first]]
                    message += [window[at].copy() for _, at in self._spans(rank, first, last)]
            (last,), shared, *parts = self._communicator.exchange(messages)[0]
            vector.shared[self._delegates_in(first, last)[1]] = shared
            spans = self._spans(self._graph.rank, first, last)
            for part, (own, _) in zip(parts, spans, strict=True):
                vector.own[own] = part
            first = int(last)
        vector.own[unknown] = before

    def _spans(self, rank: int, first: int, last: int) -> Iterator[tuple[slice, slice]]:
        """Return the spans of a window of global ids that a rank owns: in its own values, and in
        the window.
        """
        graph = self._graph
        held = range(rank, graph.partitions, graph.ranks)
        for i, partition in enumerate(held):
            local, end = (-(-(at - partition) // graph.partitions) for at in (first, last))
            own = slice(local * len(held) + i, end * len(held) + i, len(held))
            at = local * graph.partitions + partition - first
            yield own, slice(at, last - first, graph.partitions)

    def _delegates_in(self, first: int, last: int) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """Shared vertices of a window, and where their values stand."""
        some = slice(*np.searchsorted(self._delegates, [first, last]).tolist())
        return self._delegates[some], self._order[some]

    def _from_first(self, message: Message) -> Message:
        """Return the value of rank 0."""
        return self._communicator.exchange([message] * self._communicator.size)[0]


class RanksSaving:
    """The checkpoint of ranks with a device each, which all have whole arrays: rank 0 reads, and
    tells, one at once. checkpoint: on rank 0.
    """

    def __init__(self, ranks: Ranks, checkpoint: Checkpoint | None) -> None:
        self._ranks = ranks
        self._checkpoint = checkpoint

    def due(self) -> bool:
        """On rank 0, which tells the others."""
        return self._checkpoint is not None and self._checkpoint.due()

    def load(self, name: str, kind: tuple[DTypeLike, int]) -> tuple[NDArray, GoneOn] | None:
        """On all ranks: an array, and what was saved with it."""
        message: Message = [np.empty(0, np.uint8)]
        if self._checkpoint is not None:
            with _one_at_a_time:
                saved = self._checkpoint.load_state({name: kind})
            if saved is not None:
                self._checkpoint.go_on_from(saved.done)
                told = json.dumps([saved.done, saved.facts]).encode()
                message = [np.frombuffer(told, np.uint8), saved.arrays[name].read()]
        told, *arrays = self._ranks.from_first(message)
        return (arrays[0], GoneOn(*json.loads(told.tobytes()))) if arrays else None

    def save(self, done: int, name: str, values: NDArray, facts: Any) -> None:
        """On all ranks; values: only rank 0's are looked at. Raises KeyboardInterrupt on all of
        them where something has asked for an end.
        """
        ends = False
        if self._checkpoint is not None:
            ends = _saved(partial(self._checkpoint.save_state, done, {name: values}, facts))
        if self._ranks.from_first([np.array([ends])])[0][0]:
            raise KeyboardInterrupt


class DealtCheckpoint(Checkpoint):
    """The checkpoint of a program that is dealt out to ranks with a device each. Rank 0 saves what
    all of them have found, put together, as a rank that is alone does: so how many ranks go on does
    not matter.

    place: as of Checkpoint. A rank fills ``ANSWERED`` and sums, and these arrays are what it has
    found whenever it saves, and at its end: ranks' sums are added up. Whose time comes first waits
    for the others there.
    """

    def __init__(
        self, ranks: Ranks, place: tuple[Path, float, str], loaded: Callable[[int], None]
    ) -> None:
        super().__init__(*place, loaded=loaded)
        self._ranks = ranks
        self._mine: Mapping[str, NDArray] = {}

    def fill(self, arrays: Mapping[str, NDArray]) -> int:
        """On all ranks: the sums that were saved are rank 0's, the others' stay 0."""
        self._mine, done = arrays, 0
        if self._ranks.rank == 0:
            with _one_at_a_time:
                done = super().fill(arrays)
        arrays[ANSWERED][:] = self._ranks.from_first([arrays[ANSWERED]])[0]
        return done

    def save_state(
        self,
        done: int,
        arrays: Mapping[str, NDArray | Pieces],
        facts: Any = None,
        supersteps: SuperstepLog | None = None,
    ) -> None:
        """On all ranks, or ``finish``. Raises KeyboardInterrupt on all of them where something has
        asked one for an end.
        """
        assert arrays is self._mine
        del done, facts, supersteps
        self._meet(finished=False)

    def finish(self) -> None:
        """Take part in what others save, until all have answered what was theirs."""
        while self._meet(finished=True):
            pass

    def _meet(self, finished: bool) -> bool:
        """Whether any rank had more to do; what all have found is saved then."""
        going_on, ends = self._ranks.total([not finished, ending.asked()])
        if not going_on:
            return False
        whole = self._sums()
        if self._ranks.rank == 0:
            done = int(np.count_nonzero(whole[ANSWERED]))
            ends = _saved(partial(super().save_state, done, whole)) or ends
        if self._ranks.from_first([np.array([bool(ends)])])[0][0]:
            raise KeyboardInterrupt
        self._last = time.monotonic()
        return True

    def _sums(self) -> dict[str, NDArray]:
        """On rank 0, which hears of the others one after the other."""
        ranks, nothing = self._ranks, []
        whole = {} if ranks.rank else {name: some.copy() for name, some in self._mine.items()}
        for rank in range(1, ranks.size):
            mine = list(self._mine.values()) if rank == ranks.rank else nothing
            came = ranks.tell([mine, *[nothing] * (ranks.size - 1)])[rank]
            for into, more in zip(whole.values(), came, strict=bool(whole)):
                fold = np.logical_or if into.dtype == bool else np.add
                fold(into, more, out=into)
            del came  # before others come
        return whole
