"""Arrays after an exchange: a sender may change its own, and a receiver has copies."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from delegraph.pipeline.ranks.communicator import Communicator, Message, ThreadGroup
from delegraph.pipeline.ranks.tcp import TcpCommunicator
from support.marks import slow


@contextmanager
def pair(kind: str) -> Iterator[list[Any]]:
    """Two ranks that have met."""
    if kind == "threads":
        yield list(ThreadGroup(2).communicators)
        return
    ranks = [TcpCommunicator("a session", rank, 2, "tcp://127.0.0.1", 20.0) for rank in range(2)]
    addresses = [rank.address for rank in ranks]
    both(ranks, lambda rank: rank.join(addresses))
    try:
        yield ranks
    finally:
        both(ranks, lambda rank: rank.close())


def both(ranks: list[Any], work: Callable[[Any], Any]) -> list[Any]:
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(work, ranks))


def slow_to_read(rank: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a rank's thread sleep between sending and reading, so that incoming messages wait at
    their senders.
    """
    if not isinstance(rank, TcpCommunicator):
        return
    send = rank._send_all

    async def send_and_sleep(peer: int, message: Message) -> None:
        await send(peer, message)
        time.sleep(0.5)

    monkeypatch.setattr(rank, "_send_all", send_and_sleep)


@pytest.mark.parametrize("length", [3, 1 << 19, slow(1 << 24)])
@pytest.mark.parametrize("kind", ["threads", "tcp"])
def test_what_was_sent_may_be_changed(kind, length, monkeypatch):
    def work(communicator: Communicator) -> bool:
        if communicator.rank == 1:
            slow_to_read(communicator, monkeypatch)
            came = communicator.exchange([[], []])
            time.sleep(0.1)
            return all(np.array_equal(came[0][i], np.arange(length)) for i in range(2))
        sent = [np.arange(length), np.arange(length)]
        communicator.exchange([[], sent])
        for array in sent:
            array[:] = -1
        return True

    with pair(kind) as ranks:
        assert both(ranks, work) == [True, True]


@pytest.mark.parametrize("kind", ["threads", "tcp"])
def test_what_came_is_the_receivers_own(kind):
    def work(communicator: Communicator) -> bool:
        own, sent = [np.arange(3)], [np.arange(1000)]
        messages = [sent, sent]
        messages[communicator.rank] = own
        came = communicator.exchange(messages)
        assert came[communicator.rank][0] is own[0]
        came[1 - communicator.rank][0][:] = -1
        communicator.exchange([[], []])
        return np.array_equal(sent[0], np.arange(1000))

    with pair(kind) as ranks:
        assert both(ranks, work) == [True, True]
