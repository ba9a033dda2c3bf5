"""Communication over TCP between ranks in separate processes, with the library that Dask's workers
use.

Every rank listens, and connects to every other rank; it sends over the connections that it has
made. A thread serves the connections, so a rank shows signs of life while it computes. A rank from
which nothing has come for ``timeout`` seconds is lost, however long a superstep takes. Large
messages are sent in pieces, each of which is a sign of life.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
import time
from collections.abc import Coroutine, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

import numpy as np
from distributed.protocol.serialize import to_serialize
from numpy.typing import NDArray

from .communicator import Failure, Message, RankError, failure_of
from .door import CONNECTING, Door, enter

Result = TypeVar("Result")

_SIGNS = 8  # signs of life that a rank sends within the timeout
_LOOK_SECONDS = 0.05
_LATE_SECONDS = 0.5  # for connections that are being made while their rank closes
_PIECE_BYTES = 4 << 20
_FEW_BYTES = 1 << 16  # a smaller message is sent as one copy, faster than array by array


class TcpCommunicator:
    """The TCP communicator of one rank. address: where the other ranks reach it.

    session: the id of the job; connections that do not send it are closed. host: where to listen,
    such as "tcp://127.0.0.1". arguments: of connections (a Dask worker's security).
    """

    def __init__(
        self,
        session: str,
        rank: int,
        size: int,
        host: str,
        timeout: float,
        arguments: tuple[dict[str, Any], dict[str, Any]] = ({}, {}),
    ) -> None:
        self.rank = rank
        self.size = size
        self._session = session
        self._timeout = timeout
        self._listen_arguments, self._connect_arguments = arguments
        self._boxes: list[queue.SimpleQueue[Message]] = [queue.SimpleQueue() for _ in range(size)]
        self._seen = [time.monotonic()] * size
        self._failure: Failure | None = None
        self._gone: set[int] = set()  # ranks that have said goodbye
        self._incoming: set[Any] = set()
        self._outgoing: dict[int, Any] = {}
        self._locks: dict[int, asyncio.Lock] = {}
        self._beating: asyncio.Task[None] | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        try:
            self._door = self._call(self._open_door(host)).result()
        except BaseException:
            self._loop.call_soon_threadsafe(self._loop.stop)
            raise
        self.address: str = self._door.address

    def join(self, addresses: Sequence[str]) -> None:
        """Connect to all other ranks. addresses: by rank. Raises RankError."""
        self._seen = [time.monotonic()] * self.size
        self._finish([self._call(self._connect(peer, addresses[peer])) for peer in self._others])
        self._beating = self._call(self._begin_beating()).result()

    def exchange(self, messages: Sequence[Message]) -> list[Message]:
        sending = [self._call(self._send_all(peer, messages[peer])) for peer in self._others]
        came = [
            messages[peer] if peer == self.rank else self._take(peer) for peer in range(self.size)
        ]
        self._finish(sending)
        return came

    def check(self) -> None:
        """Raise RankError if a rank has failed, or has shown no sign of life for too long."""
        if self._failure is None:
            now = time.monotonic()
            for peer in self._others:
                silent = now - self._seen[peer]
                if silent > self._timeout and peer not in self._gone:
                    self.fail(Failure(peer, f"has shown no sign of life for {silent:.0f} s", True))
        if self._failure is not None:
            raise RankError(self._failure)

    def fail(self, failure: Failure) -> None:
        """Make the next exchange or check of this rank raise ``failure``, unless an earlier failure
        is pending.
        """
        if self._failure is None:
            self._failure = failure

    def abort(self, failure: Failure) -> None:
        self.fail(failure)
        told = {"op": "abort", "failure": list(failure)}
        telling = [self._call(self._send(peer, told)) for peer in self._others]
        self._wait(telling)

    def close(self) -> None:
        if self._loop.is_closed():
            return
        self._wait([self._call(self._send(peer, {"op": "bye"})) for peer in self._others])
        self._wait([self._call(self._flush(comm)) for comm in self._outgoing.values()])
        self._wait([self._call(self._hang_up())])
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(self._timeout)
        if not self._thread.is_alive():
            self._loop.close()

    @property
    def _others(self) -> list[int]:
        return [peer for peer in range(self.size) if peer != self.rank]

    def _call(self, coroutine: Coroutine[Any, Any, Result]) -> Future[Result]:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def _take(self, peer: int) -> Message:
        while True:
            try:
                return self._boxes[peer].get(timeout=_LOOK_SECONDS)
            except queue.Empty:
                self.check()
                if peer in self._gone and self._boxes[peer].empty():
                    self.fail(Failure(peer, "has left", True))

    def _finish(self, calls: Sequence[Future[None]]) -> None:
        """Wait until the calls are done. Raises RankError."""
        for call in calls:
            while not call.done():
                with contextlib.suppress(TimeoutError):
                    call.exception(_LOOK_SECONDS)
                self.check()
            error = call.exception()
            if error is not None:
                raise error
        self.check()

    def _wait(self, calls: Sequence[Future[None]]) -> None:
        """Wait a second at most for calls whose success is not essential."""
        until = time.monotonic() + min(1.0, self._timeout)
        for call in calls:
            with contextlib.suppress(Exception):
                call.result(max(0.0, until - time.monotonic()))
            call.cancel()

    # The methods below run in the loop's thread.

    async def _open_door(self, host: str) -> Door:
        door = Door(self._session, host, self._receive, self._listen_arguments)
        await door.begin()
        return door

    async def _connect(self, peer: int, address: str) -> None:
        try:
            comm = await enter(address, self._session, self._timeout, self._connect_arguments)
            self._locks[peer] = asyncio.Lock()
            self._outgoing[peer] = comm
            await comm.write({"rank": self.rank})
        except OSError as error:  # or distributed's subclass of it
            self.fail(Failure(peer, f"cannot be reached: {error}", True))

    async def _begin_beating(self) -> asyncio.Task[None]:
        return asyncio.create_task(self._beat())

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(self._timeout / _SIGNS)
            for peer in self._others:
                await self._send(peer, {"op": "alive"})

    async def _send(self, peer: int, message: dict[str, Any]) -> None:
        if peer not in self._outgoing:
            return
        try:
            async with self._locks[peer]:
                await self._outgoing[peer].write(message)
        except OSError:
            self._lose(peer)

    async def _send_all(self, peer: int, message: Message) -> None:
        """Send a message to a rank. A small message is sent at once, the smallest in one piece; of
        a larger one, the lengths and types are sent before the arrays.

        The call ends when the system has taken all bytes: until then Tornado holds views of the
        arrays.
        """
        size = sum(array.nbytes for array in message)
        kinds = [(array.dtype.str, len(array)) for array in message]
        if size <= _FEW_BYTES and all(map(_is_plain, message)):
            body = b"".join(array.tobytes() + bytes(_gap(array)) for array in message)
            await self._send(peer, {"op": "few", "kinds": kinds, "body": body})
        elif size <= _PIECE_BYTES:
            await self._send(peer, {"op": "data", "data": to_serialize(message)})
        else:
            await self._send(peer, {"op": "kinds", "kinds": kinds})
            for array in message:
                step = _PIECE_BYTES // array.itemsize
                for first in range(0, len(array), step):
                    piece = to_serialize(array[first : first + step])
                    await self._send(peer, {"op": "piece", "data": piece})
        await self._drain(peer)

    async def _drain(self, peer: int) -> None:
        """Wait until no written bytes are left in this process.

        Mostly none are: a write returns after the socket has taken the bytes it has room for.
        (Dask's own write does not wait for the rest. A connection that is no stream has no such
        buffer.)
        """
        stream = getattr(self._outgoing.get(peer), "stream", None)
        if stream is not None and stream.writing():
            try:
                await stream.write(b"")
            except OSError:
                self._lose(peer)

    async def _receive(self, comm: Any) -> None:
        """Receive messages over a connection that another rank has made."""
        self._incoming.add(comm)
        peer = None
        try:
            peer = self._greeted(await comm.read())
            coming = _Coming()
            while peer is not None:
                message = await comm.read()
                self._seen[peer] = time.monotonic()
                if message["op"] == "few":
                    self._boxes[peer].put(_arrays_in(message["body"], message["kinds"]))
                elif message["op"] == "data":
                    self._boxes[peer].put([_writable(array) for array in message["data"]])
                elif message["op"] == "kinds":
                    coming = _Coming(message["kinds"])
                elif message["op"] == "piece":
                    if coming.add(message["data"]):
                        self._boxes[peer].put(coming.arrays)
                elif message["op"] == "abort":
                    self.fail(Failure(*message["failure"]))
                elif message["op"] == "bye":
                    self._gone.add(peer)
        except Exception as error:
            if peer is None:
                return  # a stranger
            if isinstance(error, OSError):  # and CommClosedError
                self._lose(peer)
            else:
                self.fail(failure_of(self.rank, error))
        finally:
            self._incoming.discard(comm)
            comm.abort()

    def _greeted(self, hello: Any) -> int | None:
        """Return the rank in a greeting; None if it is no other rank."""
        return hello["rank"] if hello.get("rank") in self._others else None

    def _lose(self, peer: int) -> None:
        if peer not in self._gone:
            self.fail(Failure(peer, "is gone", True))

    async def _flush(self, comm: Any) -> None:
        """Close a connection after all written bytes are sent, or when this call is cancelled:
        Dask's own close would leave the socket open.
        """
        stream = getattr(comm, "stream", None)
        try:
            await comm.close()
        finally:
            if stream is not None:
                stream.close()

    async def _hang_up(self) -> None:
        if self._beating is not None:
            self._beating.cancel()
        self._gone.update(self._others)
        self._door.close()
        for comm in [*self._outgoing.values(), *self._incoming]:
            comm.abort()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            if task.get_name() != CONNECTING:
                task.cancel()
        _, late = await asyncio.wait(tasks, timeout=_LATE_SECONDS) if tasks else ((), ())
        for task in late:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class _Coming:
    """A message that arrives in pieces. kinds: type and length of its arrays."""

    def __init__(self, kinds: Sequence[tuple[str, int]] = ()) -> None:
        self.arrays: Message = [np.empty(length, kind) for kind, length in kinds]
        self._left = [array for array in self.arrays if len(array)]

    def add(self, piece: NDArray) -> bool:
        """Add a piece. Returns whether it was the last one."""
        self._left[0][: len(piece)] = piece
        self._left[0] = self._left[0][len(piece) :]
        if not len(self._left[0]):
            del self._left[0]
        return not self._left


def _arrays_in(body: bytes, kinds: Sequence[tuple[str, int]]) -> Message:
    """Split the body of a small message into its arrays, each of which is followed by its gap."""
    whole, at, arrays = np.frombuffer(body, np.uint8).copy(), 0, []
    for kind, length in kinds:
        size = length * np.dtype(kind).itemsize
        arrays.append(whole[at : at + size].view(kind))
        at += size + _gap(arrays[-1])
    return arrays


def _is_plain(array: Any) -> bool:
    """Return whether an array's type and length describe it fully."""
    return array.ndim == 1 and array.dtype.isbuiltin == 1 and not array.dtype.hasobject


def _gap(array: NDArray) -> int:
    """Return the bytes of padding after an array that align the next one to 16 bytes."""
    return -array.nbytes % 16


def _writable(array: Any) -> Any:
    """Return a writable array: kernels are compiled for arrays that can be written to."""
    return array if array.flags.writeable else array.copy()
