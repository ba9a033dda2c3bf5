"""Communication between the ranks of a search: one small protocol, so that supersteps are written
once.

Every rank calls ``exchange`` in the same order, with one message for each other rank. ``exchange``
either returns what all ranks sent, or raises RankError: no rank waits for one that will not come.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from numpy.typing import NDArray

from ...kernels.gpu.device import DeviceMemoryError
from ...partition.errors import DelegraphError, InputError

Message = list[NDArray]
"""Arrays of one dimension, any length and type; sender and receiver agree on what they are."""

_FAILED = "failed: "


class Failure(NamedTuple):
    """The first failure of a job. lost: the rank is gone, and could not report its failure.
    no_room: the rank's device memory was too small. bad_input: the error is one that a single
    process would report, too.
    """

    rank: int
    reason: str
    lost: bool = False
    superstep: int | None = None
    no_room: bool = False
    bad_input: bool = False

    @property
    def told(self) -> str:
        """Return the failure that the rank has reported of itself."""
        return self.reason.removeprefix(_FAILED)


class RankError(DelegraphError):
    """Another rank failed, or is gone."""

    def __init__(self, failure: Failure) -> None:
        step = f" in superstep {failure.superstep}" if failure.superstep else ""
        super().__init__(f"rank {failure.rank} {failure.reason}{step}")
        self.failure = failure

    def __reduce__(self):
        return RankError, (self.failure,)


def failure_of(rank: int, error: BaseException, superstep: int | None = None) -> Failure:
    """Describe an exception on a rank as a failure, in one line."""
    text = str(error).strip().split("\n")[0]
    kind = "" if isinstance(error, DelegraphError) else f"{type(error).__name__}: "
    no_room = any(isinstance(some, DeviceMemoryError) for some in (error, error.__cause__))
    reason = f"{_FAILED}{kind}{text}".rstrip(": ")
    return Failure(rank, reason, False, superstep, no_room, isinstance(error, InputError))


class Communicator(Protocol):
    @property
    def rank(self) -> int: ...

    @property
    def size(self) -> int: ...

    def exchange(self, messages: Sequence[Message]) -> list[Message]:
        """Send ``messages[r]`` to each rank r. Returns the message of each rank to this one, by
        rank.

        The message to itself comes back as it is. Once the call returns, sent messages may be
        changed, and received ones are this rank's own. Raises RankError: then sent messages may
        still be on their way.
        """
        ...

    def check(self) -> None:
        """Raise RankError if a rank is known to have failed."""
        ...

    def abort(self, failure: Failure) -> None:
        """Tell all other ranks, if they can be reached: their next exchange, or check, raises."""
        ...

    def close(self) -> None: ...


def barrier(communicator: Communicator) -> None:
    """Wait until all ranks have come so far. Raises RankError."""
    communicator.exchange([[] for _ in range(communicator.size)])


class SingleCommunicator:
    """The communicator of a single rank."""

    rank = 0
    size = 1

    def exchange(self, messages: Sequence[Message]) -> list[Message]:
        return list(messages)

    def check(self) -> None:
        pass

    def abort(self, failure: Failure) -> None:
        pass

    def close(self) -> None:
        pass


class ThreadsCommunicator:
    """Ranks that are threads of one process.

    A thread cannot be gone without a word: one that fails aborts.
    """

    def __init__(self, rank: int, group: ThreadGroup) -> None:
        self.rank = rank
        self.size = group.size
        self._group = group

    def exchange(self, messages: Sequence[Message]) -> list[Message]:
        boxes = self._group.boxes
        for peer, message in enumerate(messages):
            own = peer == self.rank
            boxes[self.rank][peer].put(message if own else [array.copy() for array in message])
        return [self._take(peer) for peer in range(self.size)]

    def _take(self, peer: int) -> Message:
        message = self._group.boxes[peer][self.rank].get()
        if message is None:
            failure = self._group.failure
            assert failure is not None
            raise RankError(failure)
        return message

    def check(self) -> None:
        if self._group.failure is not None:
            raise RankError(self._group.failure)

    def abort(self, failure: Failure) -> None:
        self._group.fail(failure)

    def close(self) -> None:
        pass


class ThreadGroup:
    """State that ``size`` threads share; ``communicators``: one for each."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.failure: Failure | None = None
        self.boxes: list[list[queue.SimpleQueue[Message | None]]] = [
            [queue.SimpleQueue() for _ in range(size)] for _ in range(size)
        ]
        self._lock = threading.Lock()

    @property
    def communicators(self) -> list[ThreadsCommunicator]:
        return [ThreadsCommunicator(rank, self) for rank in range(self.size)]

    def fail(self, failure: Failure) -> None:
        with self._lock:
            if self.failure is None:
                self.failure = failure
        for row in self.boxes:
            for box in row:
                box.put(None)


@contextlib.contextmanager
def telling_others(rank: int, communicator: Communicator | None = None) -> Iterator[None]:
    """Turn an exception of the block into a RankError, and tell the other ranks before this rank
    leaves.
    """
    try:
        yield
    except RankError as error:
        if communicator is not None:
            communicator.abort(error.failure)
        raise
    except BaseException as error:
        failure = failure_of(rank, error)
        if communicator is not None:
            communicator.abort(failure)
        raise RankError(failure) from error
