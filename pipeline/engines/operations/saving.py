"""Checkpoints of the ranks of a program: whole vectors, by global id.

Rank 0 reads and writes the checkpoint window by window, in the same form as a single rank
(results/checkpoint.py). So no rank needs more memory for it, and a run may resume with another
number of ranks. (Ranks that have whole arrays send whole arrays: rank 0 then holds one array more,
and the message from another rank.)
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
"""Number of vertices whose values are sent at once."""

Values = Mapping[str, Vector | NDArray]
"""Values to save, by name. An array is the same on all ranks."""

ANSWERED = "answered"
"""Name of the array (bool, by source) of finished sources, in a program that goes through
sources.
"""

_one_at_a_time = threading.Lock()
"""Lock around saving and loading: an earlier attempt may still be saving on the same worker when
the next one loads.
"""


def _saved(save: Callable[[], None]) -> bool:
    """Call ``save``, and return whether the run has been asked to end."""
    with _one_at_a_time:
        try:
            save()
        except KeyboardInterrupt:
            return True
    return False


class GoneOn(NamedTuple):
    """The state of a run after ``done`` steps. facts: as they were saved, through JSON."""

    done: int
    facts: Any


class Saving:
    """The checkpoint of one rank. checkpoint: used on rank 0 only; None if nothing is to be
    saved.
    """

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
        """Return whether to save, on rank 0, whose clock decides for all ranks; False on other
        ranks.
        """
        return self._checkpoint is not None and self._checkpoint.due()

    def save(self, done: int, values: Values, facts: Any) -> bool:
        """Save the values; all ranks call this function. Returns whether the ranks must end, since
        the run has been asked to.
        """
        arrays = {name: self._array(some) for name, some in values.items()}
        ends = False
        if self._checkpoint is not None:
            ends = _saved(partial(self._checkpoint.save_state, done, arrays, facts))
        elif self._graph.rank:
            for array in arrays.values():
                if isinstance(array, Pieces):
                    list(array.pieces)  # sends them to rank 0
        return bool(self._from_first([np.array([ends])])[0][0])

    def load(self, values: Values) -> GoneOn | None:
        """Fill the values with the saved ones; all ranks call this function. Returns None, and
        changes nothing, if nothing was saved.
        """
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
        """Yield a vector's values window by window on rank 0. Other ranks send their own values of
        each window, and yield nothing.
        """
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
        """Fill a vector with saved values, which rank 0 reads and sends. saved: None on other
        ranks.
        """
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
        """Yield, for each partition of a rank, the vertices of a window of global ids: as a slice
        of the rank's own values, and as a slice of the window.
        """
        graph = self._graph
        held = range(rank, graph.partitions, graph.ranks)
        for i, partition in enumerate(held):
            local, end = (-(-(at - partition) // graph.partitions) for at in (first, last))
            own = slice(local * len(held) + i, end * len(held) + i, len(held))
            at = local * graph.partitions + partition - first
            yield own, slice(at, last - first, graph.partitions)

    def _delegates_in(self, first: int, last: int) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """Return the global ids of a window's shared vertices, and the places of their values."""
        some = slice(*np.searchsorted(self._delegates, [first, last]).tolist())
        return self._delegates[some], self._order[some]

    def _from_first(self, message: Message) -> Message:
        """Return the message of rank 0."""
        return self._communicator.exchange([message] * self._communicator.size)[0]


class RanksSaving:
    """The checkpoint of ranks that have a device each and all hold whole arrays. Rank 0 reads and
    writes, and sends a loaded array to all ranks at once. checkpoint: used on rank 0.
    """

    def __init__(self, ranks: Ranks, checkpoint: Checkpoint | None) -> None:
        self._ranks = ranks
        self._checkpoint = checkpoint

    def due(self) -> bool:
        """Return whether to save, on rank 0, which tells the other ranks; False on these."""
        return self._checkpoint is not None and self._checkpoint.due()

    def load(self, name: str, kind: tuple[DTypeLike, int]) -> tuple[NDArray, GoneOn] | None:
        """Return a saved array and the state saved with it, or None; all ranks call this
        function.
        """
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
        """Save rank 0's values; all ranks call this function. Raises KeyboardInterrupt on all ranks
        if the run has been asked to end.
        """
        ends = False
        if self._checkpoint is not None:
            ends = _saved(partial(self._checkpoint.save_state, done, {name: values}, facts))
        if self._ranks.from_first([np.array([ends])])[0][0]:
            raise KeyboardInterrupt


class DealtCheckpoint(Checkpoint):
    """The checkpoint of a program that is dealt out to ranks with a device each. Rank 0 saves the
    combined results of all ranks in the form of a single rank's results, so a run may resume with
    another number of ranks.

    place: as in Checkpoint. A rank fills the array ``ANSWERED`` and arrays of sums, which hold its
    results at each save and at its end. The sums of ranks are added up. A rank whose time to save
    has come waits for the other ranks to save.
    """

    def __init__(
        self, ranks: Ranks, place: tuple[Path, float, str], loaded: Callable[[int], None]
    ) -> None:
        super().__init__(*place, loaded=loaded)
        self._ranks = ranks
        self._mine: Mapping[str, NDArray] = {}

    def fill(self, arrays: Mapping[str, NDArray]) -> int:
        """Fill the arrays with the saved state; all ranks call this function. Rank 0 gets the saved
        sums, other ranks' sums stay 0, and all ranks get ``ANSWERED``.
        """
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
        """Save together with the other ranks, which call this function or ``finish``. Raises
        KeyboardInterrupt on all ranks if one of them has been asked to end.
        """
        assert arrays is self._mine
        del done, facts, supersteps
        self._meet(finished=False)

    def finish(self) -> None:
        """Take part in the saves of other ranks until all ranks have finished."""
        while self._meet(finished=True):
            pass

    def _meet(self, finished: bool) -> bool:
        """Save the combined results of all ranks, unless all ranks have finished. Returns whether
        it saved.
        """
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
        """Return the combined arrays of all ranks on rank 0, which receives them one rank after the
        other.
        """
        ranks, nothing = self._ranks, []
        whole = {} if ranks.rank else {name: some.copy() for name, some in self._mine.items()}
        for rank in range(1, ranks.size):
            mine = list(self._mine.values()) if rank == ranks.rank else nothing
            came = ranks.tell([mine, *[nothing] * (ranks.size - 1)])[rank]
            for into, more in zip(whole.values(), came, strict=bool(whole)):
                fold = np.logical_or if into.dtype == bool else np.add
                fold(into, more, out=into)
            del came  # before the next message comes
        return whole
