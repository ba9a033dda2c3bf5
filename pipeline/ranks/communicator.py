"""Communication between the ranks of a job, behind one small protocol, so that supersteps are
written once.

Every rank calls ``exchange`` in the same order, with one message for each rank. ``exchange`` either
returns the messages of all ranks or raises RankError: no rank waits for a rank that will not come.
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
"""Arrays of one dimension, of any length and type. Sender and receiver agree on their meaning."""

_FAILED = "failed: "


class Failure(NamedTuple):
    """The first failure of a job. lost: whether the rank is gone and could not report its failure.
    no_room: whether the rank's device memory was too small. bad_input: whether a single process
    would report the same error.
    """

    rank: int
    reason: str
    lost: bool = False
    superstep: int | None = None
    no_room: bool = False
    bad_input: bool = False

    @property
    def told(self) -> str:
        """Return the failure as the rank itself has reported it."""
        return self.reason.removeprefix(_FAILED)


class RankError(DelegraphError):
    """The error that a rank of the job has failed, or is gone."""

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
    no_room = any(isinstance(cause, DeviceMemoryError) for cause in (error, error.__cause__))
    reason = f"{_FAILED}{kind}{text}".rstrip(": ")
    return Failure(rank, reason, False, superstep, no_room, isinstance(error, InputError))


class Communicator(Protocol):
    @property
    def rank(self) -> int: ...

    @property
    def size(self) -> int: ...

    def exchange(self, messages: Sequence[Message]) -> list[Message]:
        """Send ``messages[r]`` to each rank r, and return the message that each rank has sent to
        this one, by rank.

        A message to this rank itself is returned as it is. After the call, the caller may change
        sent messages and owns received ones. Raises RankError; sent messages may then still be on
        their way and must not be changed.
        """
        ...

    def check(self) -> None:
        """Raise RankError if a rank is known to have failed."""
        ...

    def abort(self, failure: Failure) -> None:
        """Tell all other ranks that can be reached about a failure: their next exchange or check
        raises it.
        """
        ...

    def close(self) -> None: ...


def barrier(communicator: Communicator) -> None:
    """Wait until all ranks have called this function. Raises RankError."""
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
    """A communicator for ranks that are threads of one process.

    A thread cannot vanish silently: a thread that fails calls ``abort``.
    """

    def __init__(self, rank: int, group: ThreadGroup) -> None:
        self.rank = rank
        self.size = group.size
        self._group = group

    def exchange(self, messages: Sequence[Message]) -> list[Message]:
        boxes = self._group.boxes
        for peer, message in enumerate(messages):
            is_own = peer == self.rank
            boxes[self.rank][peer].put(message if is_own else [array.copy() for array in message])
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
    """The state that ``size`` threads share. communicators: one for each thread."""

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
