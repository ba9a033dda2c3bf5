"""A rank's door: strangers cost little, and do not keep out who belongs there."""

from __future__ import annotations

import contextlib
import os
import pickle
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from distributed import Security

from delegraph.pipeline.ranks import door
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
