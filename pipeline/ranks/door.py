"""The door of a rank: a connection that sends the session's id at once is let in, any other is
closed.

A stranger costs little: one read of as many bytes as the id has (and what the system's buffer
held), one second, and one of a few places. Nothing that a stranger sends is decoded.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from distributed.comm.addressing import parse_address
from distributed.comm.core import listen
from distributed.comm.registry import get_backend

_STRANGER_SECONDS = 1.0
_STRANGERS = 64  # at once; one more closes the oldest connection
_AGAIN_SECONDS = 0.05

CONNECTING = "connecting to a door"
"""Name of the tasks that connect. They end by themselves, and should not be cancelled before."""


class Door:
    """A listener at ``host``, such as "tcp://127.0.0.1". address: where other ranks reach it.

    take_in: called with each connection that belongs to the session. arguments: of Dask's listener.
    The door must be made, started and closed in the loop's thread.
    """

    def __init__(
        self,
        session: str,
        host: str,
        take_in: Callable[[Any], Awaitable[None]],
        arguments: dict[str, Any],
    ) -> None:
        self._id = _id_of(session)
        self._strangers: dict[Any, None] = {}  # their streams, the oldest first
        self._listener: Any = listen(f"{host}:0", take_in, **arguments)
        self._enter = self._listener._handle_stream
        self._listener._handle_stream = self._admit

    @property
    def address(self) -> str:
        return self._listener.contact_address

    async def begin(self) -> None:
        await self._listener

    def close(self) -> None:
        self._listener.stop()
        for stream in list(self._strangers):
            stream.close()

    async def _admit(self, stream: Any, address: Any) -> None:
        self._strangers[stream] = None
        if len(self._strangers) > _STRANGERS:
            oldest = next(iter(self._strangers))
            del self._strangers[oldest]
            oldest.close()
        try:
            shown = await asyncio.wait_for(stream.read_bytes(len(self._id)), _STRANGER_SECONDS)
        except OSError:  # the stranger has left, or sent nothing in time
            shown = b""
        finally:
            self._strangers.pop(stream, None)
        if hmac.compare_digest(shown, self._id):
            await self._enter(stream, address)
        else:
            stream.close()


async def enter(address: str, session: str, timeout: float, arguments: dict[str, Any]) -> Any:
    """Return a Dask connection to the door at ``address``. Raises OSError if the door does not open
    in time.

    The attempt is repeated: a door crowded by strangers may close even a connection that belongs to
    the session.
    """
    scheme, place = parse_address(address)
    connector: Any = get_backend(scheme).get_connector()
    why: OSError = TimeoutError(f"no answer in {timeout:g} s")
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(timeout):
            while True:
                try:
                    return await _try(connector, place, session, arguments)
                except OSError as error:
                    why = error
                await asyncio.sleep(_AGAIN_SECONDS)
    raise why


async def _try(connector: Any, place: str, session: str, arguments: dict[str, Any]) -> Any:
    comm = await _connect(connector.connect(place, **arguments))
    try:
        await comm.stream.write(_id_of(session))
        # From here on as Dask's own ``connect``.
        comm.local_info = comm.handshake_info()
        await comm.write(comm.local_info)
        comm.remote_info = await comm.read()
        comm.handshake_options = comm.handshake_configuration(comm.local_info, comm.remote_info)
    except BaseException:
        comm.abort()
        raise
    return comm


async def _connect(connecting: Coroutine[Any, Any, Any]) -> Any:
    """Return the connection that a coroutine makes. A caller that is cancelled does not cancel the
    coroutine: a socket that Tornado has just connected would stay open. The connection is closed
    as soon as it is made.
    """
    attempt = asyncio.create_task(connecting, name=CONNECTING)
    try:
        return await asyncio.shield(attempt)
    except asyncio.CancelledError:
        attempt.add_done_callback(_close_late)
        raise


def _close_late(attempt: asyncio.Task[Any]) -> None:
    if not attempt.cancelled() and attempt.exception() is None:
        attempt.result().abort()


def _id_of(session: str) -> bytes:
    """Return the session's id as it is sent to the door, with the same length for all ids."""
    return hashlib.sha256(session.encode()).digest()
