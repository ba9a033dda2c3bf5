"""Saving of programs, over one checkpoint (results/checkpoint.py) that rank 0 writes and reads.

A checkpoint has whole vectors, by global id, however many ranks save them: so any number of ranks
may go on from it. The vectors of ranks on CPUs travel window by window, so no rank holds more for
it (``VectorSaving``). Programs on devices have whole arrays: of one device (``DeviceSaving``), of
ranks that share the edges (``SharedSaving``), of ranks that answer sources apart
(``DealtSaving``).
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ....kernels.gpu_programs.ranks import Ranks
from ...ranks.communicator import Communicator, Message
from ...results.checkpoint import Checkpoint, Pieces, SavedArray, State
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


class SavedSteps(NamedTuple):
    """The steps that a run goes on from, and the facts that were saved with them, through JSON."""

    done: int
    facts: Any


class Saving(Protocol):
    """The saving of a program. All ranks call each method, with arrays of the same names."""

    def due(self) -> bool:
        """Return whether to save now. Of ranks that share work only rank 0 knows; all of those that
        answer sources apart do.
        """
        ...

    def load(self, arrays: Mapping[str, NDArray]) -> SavedSteps | None:
        """Fill arrays with what was saved. None where nothing was, and nothing changes."""
        ...

    def save(self, done: int, arrays: Mapping[str, NDArray], facts: Any = None) -> None:
        """Save, after ``done`` steps, the arrays that ``load`` fills. facts: that JSON holds.

        Raises KeyboardInterrupt afterwards, on all ranks, where something has asked for an end.
        """
        ...


def _load(checkpoint: Checkpoint, kinds: Mapping[str, tuple[DTypeLike, int]]) -> State | None:
    with _one_at_a_time:
        saved = checkpoint.load_state(kinds)
    if saved is not None:
        checkpoint.go_on_from(saved.done)
    return saved


def _kinds(arrays: Mapping[str, NDArray]) -> dict[str, tuple[DTypeLike, int]]:
    return {name: (array.dtype, len(array)) for name, array in arrays.items()}


def _save(
    checkpoint: Checkpoint, done: int, arrays: Mapping[str, NDArray | Pieces], facts: Any
) -> bool:
    """Save; return whether something has asked for an end."""
    with _one_at_a_time:
        try:
            checkpoint.save_state(done, arrays, facts)
        except KeyboardInterrupt:
            return True
    return False


class VectorSaving:
    """The saving of one rank on CPUs, of vectors and of arrays that are the same on all ranks.

    checkpoint: on rank 0; None where nothing is to be saved.
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

    def save(self, done: int, values: Values, facts: Any = None) -> None:
        arrays = {name: self._array(value) for name, value in values.items()}
        ends = False
        if self._checkpoint is not None:
            ends = _save(self._checkpoint, done, arrays, facts)
        elif self._graph.rank:
            for array in arrays.values():
                if isinstance(array, Pieces):
                    list(array.pieces)  # sends them to rank 0
        if self._from_first([np.array([ends])])[0][0]:
            raise KeyboardInterrupt

    def save_alone(self, done: int, arrays: Mapping[str, NDArray], facts: Any = None) -> None:
        """Save on rank 0, while the others wait for it in ``end_alone``."""
        if self._checkpoint is not None and _save(self._checkpoint, done, arrays, facts):
            self._from_first([np.array([True])])
            raise KeyboardInterrupt

    def end_alone(self, told: Message) -> Message:
        """End what rank 0 does alone. Returns what it tells, on all ranks; raises KeyboardInterrupt
        on all of them if rank 0 was asked for an end.
        """
        ends, *told = self._from_first([np.array([False]), *told])
        if ends[0]:
            raise KeyboardInterrupt
        return told

    def facts(self) -> Any:
        """Return the facts that were saved; None if nothing was."""
        saved = None
        if self._checkpoint is not None:
            with _one_at_a_time:
                saved = self._checkpoint.load_state({})
        told = b"" if saved is None else json.dumps(saved.facts).encode()
        (came,) = self._from_first([np.frombuffer(told, np.uint8)])
        return json.loads(came.tobytes()) if len(came) else None

    def load(self, values: Values) -> SavedSteps | None:
        arrays: Mapping[str, SavedArray] = {}
        told = b""
        if self._checkpoint is not None:
            kinds = {name: self._kind(value) for name, value in values.items()}
            saved = _load(self._checkpoint, kinds)
            if saved is not None:
                told, arrays = json.dumps([saved.done, saved.facts]).encode(), saved.arrays
        (came,) = self._from_first([np.frombuffer(told, np.uint8)])
        if not len(came):
            return None
        for name, value in values.items():
            if isinstance(value, Vector):
                self._fill(value, arrays.get(name))
            else:
                value[:] = self._from_first([arrays[name].read()] if arrays else [])[0]
        return SavedSteps(*json.loads(came.tobytes()))

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
            mine = [
                vector.own[own_span].copy() for own_span, _ in self._spans(graph.rank, first, last)
            ]
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
        """Fill a vector with saved values, on all ranks together. saved: on rank 0."""
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
            for part, (own_span, _) in zip(parts, spans, strict=True):
                vector.own[own_span] = part
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
            own_span = slice(local * len(held) + i, end * len(held) + i, len(held))
            at = local * graph.partitions + partition - first
            yield own_span, slice(at, last - first, graph.partitions)

    def _delegates_in(self, first: int, last: int) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """Return the global ids of a window's shared vertices, and the places of their values."""
        span = slice(*np.searchsorted(self._delegates, [first, last]).tolist())
        return self._delegates[span], self._order[span]

    def _from_first(self, message: Message) -> Message:
        """Return the message of rank 0."""
        return self._communicator.exchange([message] * self._communicator.size)[0]


class DeviceSaving:
    """The saving of a program on one device. checkpoint: None where nothing is to be saved."""

    def __init__(self, checkpoint: Checkpoint | None) -> None:
        self._checkpoint = checkpoint

    def due(self) -> bool:
        return self._checkpoint is not None and self._checkpoint.due()

    def load(self, arrays: Mapping[str, NDArray]) -> SavedSteps | None:
        saved = self._checkpoint and _load(self._checkpoint, _kinds(arrays))
        if not saved:
            return None
        for name, array in arrays.items():
            array[:] = saved.arrays[name].read()
        return SavedSteps(saved.done, saved.facts)

    def facts(self) -> Any:
        """Return the facts that were saved; None if nothing was."""
        saved = self._checkpoint and self._checkpoint.load_state({})
        return saved.facts if saved else None

    def save(self, done: int, arrays: Mapping[str, NDArray], facts: Any = None) -> None:
        if self._checkpoint is not None:
            self._checkpoint.save_state(done, arrays, facts)


class SharedSaving:
    """The saving of ranks with a device each, which share the edges and have the same whole arrays:
    rank 0 reads, and sends one array after the other. Only its arrays are saved.

    checkpoint: on rank 0; None where nothing is to be saved.
    """

    def __init__(self, ranks: Ranks, checkpoint: Checkpoint | None) -> None:
        self._ranks = ranks
        self._checkpoint = checkpoint

    def due(self) -> bool:
        """Return whether to save, on rank 0, which tells the other ranks; False on these."""
        return self._checkpoint is not None and self._checkpoint.due()

    def load(self, arrays: Mapping[str, NDArray]) -> SavedSteps | None:
        saved = self._checkpoint and _load(self._checkpoint, _kinds(arrays))
        told = json.dumps([saved.done, saved.facts]).encode() if saved else b""
        (came,) = self._ranks.from_first([np.frombuffer(told, np.uint8)])
        if not len(came):
            return None
        for name, array in arrays.items():
            message = [saved.arrays[name].read()] if saved else []
            array[:] = self._ranks.from_first(message)[0]
        return SavedSteps(*json.loads(came.tobytes()))

    def save(self, done: int, arrays: Mapping[str, NDArray], facts: Any = None) -> None:
        ends = self._checkpoint is not None and _save(self._checkpoint, done, arrays, facts)
        if self._ranks.from_first([np.array([ends])])[0][0]:
            raise KeyboardInterrupt


class DealtSaving:
    """The saving of ranks with a device each, which answer sources apart.

    The arrays that ``load`` fills are ``ANSWERED`` and sums: the results of this rank at each save
    and at its end. Ranks save together, in four steps:

    1. A rank whose clock says so calls ``save``, and waits there.
    2. Each other rank joins, by ``save`` after its next sources, or by ``finish`` at its end.
    3. Rank 0 adds up the arrays of all ranks, and writes them in the form of a single device.
    4. All ranks go on, or end where one of them has been asked to.

    checkpoint: on each rank, for its clock; only rank 0's is written.
    """

    def __init__(self, ranks: Ranks, checkpoint: Checkpoint) -> None:
        self._ranks = ranks
        self._checkpoint = checkpoint
        self._mine: Mapping[str, NDArray] = {}

    def due(self) -> bool:
        return self._checkpoint.due()

    def load(self, arrays: Mapping[str, NDArray]) -> SavedSteps | None:
        """Fill the arrays with the saved ones. Rank 0 gets the saved sums, the sums of other ranks
        stay 0, and all ranks get ``ANSWERED``.
        """
        self._mine, done = arrays, None
        if self._ranks.rank == 0:
            done = DeviceSaving(self._checkpoint).load(arrays)
        arrays[ANSWERED][:] = self._ranks.from_first([arrays[ANSWERED]])[0]
        return done

    def save(self, done: int, arrays: Mapping[str, NDArray], facts: Any = None) -> None:
        """Save together with the other ranks."""
        assert arrays is self._mine
        del done, facts
        self._save_together(finished=False)

    def finish(self) -> None:
        """Take part in the saves of other ranks until all ranks have finished."""
        while self._save_together(finished=True):
            pass

    def _save_together(self, finished: bool) -> bool:
        """Save the arrays of all ranks, unless all have finished. Returns whether it saved."""
        going_on, ends = self._ranks.total([not finished, ending.asked()])
        if not going_on:
            return False
        whole = self._sums()
        if self._ranks.rank == 0:
            done = int(np.count_nonzero(whole[ANSWERED]))
            ends = _save(self._checkpoint, done, whole, None) or ends
        if self._ranks.from_first([np.array([bool(ends)])])[0][0]:
            raise KeyboardInterrupt
        self._checkpoint.wait_anew()
        return True

    def _sums(self) -> dict[str, NDArray]:
        """Return the combined arrays of all ranks on rank 0, which receives them one rank after the
        other.
        """
        ranks, nothing = self._ranks, []
        whole = {} if ranks.rank else {name: array.copy() for name, array in self._mine.items()}
        for rank in range(1, ranks.size):
            mine = list(self._mine.values()) if rank == ranks.rank else nothing
            came = ranks.tell([mine, *[nothing] * (ranks.size - 1)])[rank]
            for into, addend in zip(whole.values(), came, strict=bool(whole)):
                fold = np.logical_or if into.dtype == bool else np.add
                fold(into, addend, out=into)
            del came  # before the next message comes
        return whole
