"""A rank's door: strangers cost little, and do not keep out who belongs there."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from distributed import Security

from delegraph.pipeline.ranks import door
from delegraph.pipeline.ranks.communicator import RankError
from delegraph.pipeline.ranks.tcp import TcpCommunicator
from support.ranks import run


@pytest.fixture(params=["tcp", "tls"])
def ranks(request) -> Iterator[list[TcpCommunicator]]:
    """Two ranks that have not met."""
    keys = Security.temporary() if request.param == "tls" else Security()
    arguments = keys.get_listen_args("worker"), keys.get_connection_args("worker")
    host = f"{request.param}://127.0.0.1"
    two = [TcpCommunicator("a session", rank, 2, host, 20.0, arguments) for rank in range(2)]
    yield two
    run(two, lambda rank: rank.close())


def meet(ranks: list[TcpCommunicator]) -> None:
    addresses = [rank.address for rank in ranks]
    run(ranks, lambda rank: rank.join(addresses))
    assert run(ranks, lambda rank: len(rank.exchange([[], []]))) == [2, 2]


def call(at: TcpCommunicator) -> socket.socket:
    host, port = at.address.partition("://")[2].split(":")
    return socket.create_connection((host, int(port)), timeout=20)


def hung_up(calling: socket.socket) -> bool:
    """Return whether the other end hangs up, after a wait for it."""
    with contextlib.suppress(ConnectionError):
        return calling.recv(1) == b""
    return True


def test_a_flood_is_not_taken_in(ranks):
    """A flood of bytes is refused at its first bytes: lengths of frames as Dask sends them, then
    less than they promise.
    """
    with call(ranks[0]) as flood:
        with contextlib.suppress(ConnectionError):  # hung up on already
            flood.sendall((1).to_bytes(8, "little") + (3 << 30).to_bytes(8, "little"))
            flood.sendall(bytes(16))
        assert hung_up(flood)
    meet(ranks)


def test_nothing_of_a_stranger_is_unpickled(ranks, tmp_path):
    class Bad:
        def __reduce__(self):
            return Path.touch, (tmp_path / "unpickled",)

    from distributed.protocol.core import dumps
    from distributed.protocol.utils import pack_frames

    with call(ranks[0]) as stranger:
        with contextlib.suppress(ConnectionError):
            stranger.sendall(pack_frames(dumps({"op": Bad()})))
        assert hung_up(stranger)
    assert pickle.loads(pickle.dumps(Bad())) is None
    assert os.listdir(tmp_path) == ["unpickled"]  # as it would have been
    meet(ranks)


def test_a_stranger_that_says_nothing_is_hung_up_on(ranks, monkeypatch):
    monkeypatch.setattr(door, "_STRANGER_SECONDS", 0.1)
    with call(ranks[0]) as silent:
        assert hung_up(silent)


def test_many_strangers_keep_nobody_out(ranks, monkeypatch):
    monkeypatch.setattr(door, "_STRANGERS", 8)
    monkeypatch.setattr(door, "_STRANGER_SECONDS", 600.0)
    with contextlib.ExitStack() as open_calls:
        first, *others = [open_calls.enter_context(call(ranks[0])) for _ in range(40)]
        meet(ranks)
        assert hung_up(first)
        assert len(ranks[0]._door._strangers) <= 8
        others[-1].setblocking(False)
        with pytest.raises(BlockingIOError):  # of the last ones it waits
            others[-1].recv(1)
        others[-1].setblocking(True)
        ranks[0].close()
        assert hung_up(others[-1])


@pytest.mark.parametrize("closes_first", [False, True])
def test_a_connection_made_too_late_is_closed(monkeypatch, closes_first):
    """A rank that gives up while it connects closes the connection when it is made at last, before
    or after the rank closes.
    """
    made, closed = threading.Event(), threading.Event()

    class LateConnector:
        async def connect(self, address, **arguments):
            while not made.is_set():
                await asyncio.sleep(0.01)
            return SimpleNamespace(abort=closed.set)

    backend = SimpleNamespace(get_connector=LateConnector)
    monkeypatch.setattr(door, "get_backend", lambda scheme: backend)
    rank = TcpCommunicator("a session", 0, 2, "tcp://127.0.0.1", 0.2)
    with pytest.raises(RankError):
        rank.join(["", "tcp://127.0.0.1:9"])
    assert not closed.is_set()
    if closes_first:
        threading.Timer(0.1, made.set).start()
        rank.close()
    else:
        made.set()
    assert closed.wait(20)
    rank.close()


def test_nothing_stays_open_of_what_a_stalled_rank_did_not_read(ranks):
    """A rank with unsent bytes closes its connections, though their reader has stalled."""
    meet(ranks)
    stalled, sender = ranks
    goes_on = threading.Event()
    stalled._loop.call_soon_threadsafe(goes_on.wait, 20)
    streams = [comm.stream for comm in sender._outgoing.values()]
    sender._call(sender._send_all(0, [np.zeros(1 << 23)]))
    sender.close()
    goes_on.set()
    assert [stream.socket for stream in streams] == [None]
