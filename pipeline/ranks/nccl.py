"""Exchange of device arrays between ranks, from device to device by NCCL, if each rank has a device
of its own.

Another communicator brings ranks together, carries host arrays, and reports which rank has failed.
NCCL has no timeouts, and any NCCL call may wait for a rank that is gone. So all its calls are made
in threads, while the rank's own thread watches the other ranks. Without NCCL, the host carries
device arrays.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from typing import Any

import numpy as np

from ...kernels.gpu.device import Device, DeviceError
from ...kernels.gpu.graph import Array
from ...kernels.gpu.peer_memory import place_of
from ..run.devices import device_errors
from .communicator import Communicator, Failure, Message, RankError, barrier, telling_others

PATIENCE_SECONDS = 120.0
"""Seconds that NCCL may take to connect all ranks. A transfer gets more time by its bytes."""

_SLOWEST = 10e6  # bytes a second of the slowest transfer that is waited for
_GRACE_SECONDS = 10.0  # from abort until all NCCL calls must have ended
_LOOK_SECONDS = 0.02
_MOMENT_SECONDS = 1.0  # for the other communicator to notice a failure that NCCL reports
_ON_HOST = -1  # stands for the length of a host array

Sent = Sequence[tuple[int, Array]]
"""Pairs of a rank and an array that is sent to it, or received from it."""


class StuckError(RankError):
    """The error that NCCL does not end its work for this rank, and nothing can make it.

    A thread waits in NCCL, or a kernel of NCCL holds the device: only the end of the process helps.
    """


class NcclCommunicator:
    """The communicator of one rank whose ``exchange`` takes device arrays as well as host arrays. A
    device array arrives as a device array.

    communicator: carries everything else; this class does not close it. device: this rank's.
    patience: seconds, see PATIENCE_SECONDS. NCCL is set up when device arrays are first sent, by
    all ranks together.
    """

    def __init__(
        self, communicator: Communicator, device: Device, patience: float = PATIENCE_SECONDS
    ) -> None:
        self.rank = communicator.rank
        self.size = communicator.size
        self._communicator = communicator
        self._device = device
        self._patience = patience
        self._nccl: Any = None  # CuPy's module, if ranks use NCCL
        self._agreed = False  # whether ranks have decided on using NCCL
        self._made: Any = None
        self._ended = False
        self._lock = threading.Lock()
        self._calls: set[Future[None]] = set()

    @property
    def by_nccl(self) -> bool:
        """Return whether device arrays travel by NCCL."""
        return self._nccl is not None

    def exchange(self, messages: Sequence[Message]) -> list[Message]:
        if self.size == 1:
            return list(messages)
        try:
            # Other ranks are told first: abort ends only if they abort, too.
            with telling_others(self.rank, self._communicator), device_errors():
                return self._exchange(messages)
        except RankError as error:
            self._end(error.failure)
            raise

    def check(self) -> None:
        self._communicator.check()

    def abort(self, failure: Failure) -> None:
        self._communicator.abort(failure)

    def close(self) -> None:
        """Close the communicator; all ranks call this together. Raises StuckError."""
        if self._made is None:
            return
        try:
            self.check()
            barrier(self._communicator)  # no other rank's device still communicates
        except RankError as error:
            self._end(error.failure)
        else:
            self._end()

    def _exchange(self, messages: Sequence[Message]) -> list[Message]:
        self.check()
        with self._device.use() as cupy:
            on_devices, told = self._tell(messages)
            if on_devices and not self._agreed:
                self._set_up(cupy)
                if not self.by_nccl:
                    _, told = self._tell(messages)
            came: list[Message] = []
            sent, received = [], []
            for peer, (lengths, bodies) in enumerate(told):
                if peer == self.rank:
                    came.append(messages[peer])
                    continue
                came.append(bodies)
                for i, (length, body) in enumerate(zip(lengths, bodies, strict=True)):
                    if length == _ON_HOST:
                        continue
                    if self.by_nccl:
                        bodies[i] = cupy.empty(length, body.dtype)
                        received.append((peer, bodies[i]))
                    else:
                        bodies[i] = cupy.asarray(body)
                for array in filter(_on_device, messages[peer]):
                    sent.append((peer, cupy.ascontiguousarray(array)))
            if self.by_nccl:
                self._carry(_not_empty(sent), _not_empty(received))
            return came

    def _tell(self, messages: Sequence[Message]) -> tuple[bool, list[tuple[list[int], Message]]]:
        """Exchange host arrays; of device arrays, exchange lengths, and types as empty arrays.

        Returns whether any rank sends device arrays, and the lengths and arrays of each rank. If
        ranks have agreed not to use NCCL, device arrays are sent as host arrays.
        """
        has_device_arrays = any(_on_device(array) for message in messages for array in message)
        hosted = self._agreed and not self.by_nccl
        told = []
        for peer, message in enumerate(messages):
            if peer == self.rank:
                message = []
            head = [len(array) if _on_device(array) else _ON_HOST for array in message]
            bodies = [_body(array, hosted) for array in message]
            told.append([np.array([has_device_arrays, *head], np.int64), *bodies])
        came = [(head.tolist(), bodies) for head, *bodies in self._communicator.exchange(told)]
        return any(head[0] for head, _ in came), [(head[1:], bodies) for head, bodies in came]

    def _set_up(self, cupy: Any) -> None:
        """Agree with all ranks on NCCL, and connect. It is not used if two ranks share a device, or
        one has no NCCL.
        """
        nccl = self._device.nccl
        place = np.frombuffer(place_of(cupy), np.uint8)
        facts = self._communicator.exchange([[np.array([nccl is not None]), place]] * self.size)
        places = {place.tobytes() for _, place in facts}
        self._agreed = True
        if len(places) < self.size or not all(able[0] for able, _ in facts):
            return
        # Making the id starts a listener on rank 0, so all ranks must be known to come.
        message = [np.frombuffer(nccl.get_unique_id() if self.rank == 0 else b"", np.uint8)]
        unique_id = self._communicator.exchange([message] * self.size)[0][0].tobytes()
        self._nccl = nccl
        self._stream = cupy.cuda.Stream(non_blocking=True)
        self._ready = cupy.cuda.Event()
        self._watch(lambda: self._make(cupy, unique_id), self._patience)

    def _make(self, cupy: Any, unique_id: bytes) -> None:
        made = self._nccl.NcclCommunicator(self.size, unique_id, self.rank)
        with self._lock:
            if self._ended:  # the rank has given up meanwhile
                made.abort()
                return
            self._made = made
        # NCCL connects two ranks at their first transfer: do it now, rather than in a search.
        sent = cupy.zeros(1, np.uint8)
        received = cupy.empty(self.size, np.uint8)
        peers = [peer for peer in range(self.size) if peer != self.rank]
        self._ready.record()
        self._send(
            [(peer, sent) for peer in peers],
            [(peer, received[peer : peer + 1]) for peer in peers],
        )

    def _carry(self, sent: Sent, received: Sent) -> None:
        if not sent and not received:
            return
        # This thread's stream may still write arrays to send, or read memory to receive into.
        # NCCL has another stream, which waits for this one.
        self._ready.record()
        seconds = self._patience + sum(array.nbytes for _, array in (*sent, *received)) / _SLOWEST
        self._watch(lambda: self._send(sent, received), seconds)

    def _send(self, sent: Sent, received: Sent) -> None:
        """Send and receive by NCCL until all arrays are transferred, so no array must be kept alive
        for NCCL afterwards.
        """
        nccl, made, stream = self._nccl, self._made, self._stream
        stream.wait_event(self._ready)
        nccl.groupStart()
        for peer, array in sent:
            made.send(array.data.ptr, array.nbytes, nccl.NCCL_UINT8, peer, stream.ptr)
        for peer, array in received:
            made.recv(array.data.ptr, array.nbytes, nccl.NCCL_UINT8, peer, stream.ptr)
        nccl.groupEnd()
        stream.synchronize()

    def _watch(self, call: Callable[[], None], seconds: float) -> None:
        """Run a call that may never return from NCCL. Raises RankError if it takes too long or
        another rank fails; the call then stays behind in its thread.
        """
        doing = self._begin(call)
        until = time.monotonic() + seconds
        while not wait([doing], _LOOK_SECONDS).done:
            self.check()
            if time.monotonic() > until:
                told = f"has waited for NCCL for {seconds:.0f} s (NCCL_DEBUG=INFO tells more)"
                raise RankError(Failure(self.rank, told))
        error = doing.exception()
        if isinstance(error, self._nccl.NcclError):
            self._look_for_failure()
            told = f"{self._device} failed: {error} (NCCL_DEBUG=INFO tells more)"
            raise DeviceError(told) from error
        if error is not None:
            raise error
        self._calls.discard(doing)

    def _look_for_failure(self) -> None:
        """Look for another rank's failure: NCCL may notice a failure first, but does not know its
        cause.
        """
        until = time.monotonic() + _MOMENT_SECONDS
        while time.monotonic() < until:
            self.check()
            time.sleep(_LOOK_SECONDS)

    def _begin(self, call: Callable[[], None]) -> Future[None]:
        doing: Future[None] = Future()

        def work() -> None:
            try:
                with self._device.use():
                    call()
            except BaseException as error:
                doing.set_exception(error)
            else:
                doing.set_result(None)

        self._calls.add(doing)
        threading.Thread(target=work, daemon=True).start()
        return doing

    def _end(self, failure: Failure | None = None) -> None:
        """End NCCL; after a failure, abort its calls. Raises StuckError if they do not end."""
        with self._lock:
            self._ended = True
            made, self._made = self._made, None
        if made is not None:
            self._begin(made.destroy if failure is None else made.abort)
        stuck = wait(self._calls, _GRACE_SECONDS).not_done
        self._calls.clear()
        if stuck:
            raise StuckError(failure or Failure(self.rank, "is stuck in NCCL"))


@contextlib.contextmanager
def device_arrays(communicator: Communicator, device: Device) -> Iterator[NcclCommunicator]:
    """Yield a communicator of this rank that also carries device arrays. ``device`` is the current
    one meanwhile: ranks that are threads of one process must not use each other's.
    """
    ours = NcclCommunicator(communicator, device)
    try:
        with telling_others(communicator.rank, communicator), device_errors(), device.use():
            yield ours
    finally:
        ours.close()


def _on_device(array: Any) -> bool:
    return hasattr(array, "__cuda_array_interface__")


def _body(array: Any, hosted: bool) -> Any:
    if not _on_device(array):
        return array
    return array.get() if hosted else np.empty(0, array.dtype)


def _not_empty(parts: Sent) -> Sent:
    return [(peer, array) for peer, array in parts if len(array)]
