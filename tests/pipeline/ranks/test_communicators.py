"""One suite for every communicator: ranks receive the same messages over each kind, or all ranks
fail.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from typing import Any

import numpy as np
import pytest
from _pytest.mark.structures import ParameterSet
from distributed.comm.core import connect

from delegraph.pipeline.ranks import nccl
from delegraph.pipeline.ranks.communicator import (
    Communicator,
    Failure,
    RankError,
)
from delegraph.pipeline.ranks.nccl import NcclCommunicator
from delegraph.pipeline.ranks.tcp import TcpCommunicator
from support.ranks import BY_NCCL, at_host, communicators, placed, run

KINDS = ["threads", "tcp", "tcp in pieces", "nccl on one device", *BY_NCCL]
"""Kinds of communicators; ``nccl`` has emulated devices or GPUs, and on one device the host carries
arrays.
"""


def message(sender: int, receiver: int, step: int) -> list[np.ndarray]:
    """Return arrays of several types, some empty and some large."""
    rng = np.random.default_rng([sender, receiver, step])
    return [
        np.array([sender, receiver, step], np.int64),
        rng.integers(0, 2**32, rng.integers(0, 3) * 50_000, np.uint32),
        rng.integers(0, 2**63, 5, np.uint64),
    ][: 1 + step % 3]


def of_sizes(kinds: list[Any], sizes: list[int]) -> list[Any]:
    params = [kind if isinstance(kind, ParameterSet) else pytest.param(kind) for kind in kinds]
    return [
        pytest.param(*param.values, size, marks=param.marks) for param in params for size in sizes
    ]


@pytest.mark.parametrize(("kind", "size"), [("single", 1), *of_sizes(KINDS, [1, 2, 5])])
def test_everyone_gets_what_was_sent(kind, size):
    def work(communicator: Communicator) -> None:
        own = communicator.rank
        on_devices = isinstance(communicator, NcclCommunicator)
        for step in range(20):
            sent = [placed(communicator, message(own, peer, step)) for peer in range(size)]
            came = communicator.exchange(sent)
            for peer in range(size):
                wanted = message(peer, own, step)
                assert len(came[peer]) == len(wanted)
                for i, (array, other) in enumerate(zip(came[peer], wanted, strict=True)):
                    assert nccl._on_device(array) == (on_devices and i > 0)
                    array = at_host(array)
                    assert array.dtype == other.dtype
                    assert np.array_equal(array, other)
                    assert array.flags.writeable
        if on_devices:
            assert communicator.by_nccl == (kind != "nccl on one device" and size > 1)

    with communicators(kind, size) as ranks:
        assert run(ranks, work) == [None] * size


@pytest.mark.parametrize("kind", ["tcp", "tcp in pieces"])
@pytest.mark.parametrize("length", [2, 5000, 50_000])
def test_arrays_of_any_type_come_aligned(kind, length):
    pairs = np.array([(1, 2.5)], [("vertex", "u4"), ("distance", "f8")])
    sent = [
        np.arange(3, dtype=np.uint8),
        np.linspace(0, 1, length),
        np.array([True]),
        np.zeros(0, np.int64),
        np.arange(length, dtype=np.uint64),
        *[pairs][: kind == "tcp"],
    ]

    def work(communicator: Communicator) -> None:
        for message in communicator.exchange([sent, sent]):
            for array, other in zip(message, sent, strict=True):
                assert array.dtype == other.dtype
                assert np.array_equal(array, other)
                assert array.flags.aligned

    with communicators(kind, 2) as ranks:
        assert run(ranks, work) == [None] * 2


def test_what_was_sent_last_arrives():
    """A last message arrives, however large, though the sender closes at once."""
    large = np.random.default_rng(1).integers(0, 2**32, 1 << 24, np.uint32)

    def work(communicator: Communicator) -> bool:
        if communicator.rank == 1:
            time.sleep(0.3)
        came = communicator.exchange([[large], [large]])
        communicator.close()
        return all(np.array_equal(one[0], large) for one in came)

    with communicators("tcp", 2) as ranks:
        assert run(ranks, work) == [True, True]


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_failure_reaches_all(kind):
    failure = Failure(1, "has had enough", superstep=3)

    def work(communicator: Communicator) -> None:
        for step in range(10):
            if communicator.rank == 1 and step == 3:
                communicator.abort(failure)
                raise ValueError
            communicator.exchange([placed(communicator, message(0, 0, 2))] * size)

    size = 2 if kind == "nccl on GPUs" else 3
    with communicators(kind, size) as ranks:
        ended = run(ranks, work)
    wanted = [failure, None, failure][:size]
    assert [getattr(error, "failure", None) for error in ended] == wanted


def test_a_rank_that_is_gone():
    """A rank that is gone is known by its connections, which end."""
    with communicators("tcp", 3) as ranks:

        def work(communicator: Communicator) -> None:
            if communicator.rank == 2:
                assert isinstance(communicator, TcpCommunicator)
                for comm in communicator._outgoing.values():
                    communicator._loop.call_soon_threadsafe(comm.abort)
            else:
                communicator.exchange([[], [], []])

        ended = run(ranks[:], work)
    assert [error.failure[:1] + error.failure[2:3] for error in ended[:2]] == [(2, True)] * 2


def test_a_rank_that_leaves():
    """A rank that leaves in good order while others wait for it is told as gone or as having left:
    a rank that writes to it may find the connection ended before the notice.
    """
    with communicators("tcp", 2) as ranks:

        def work(communicator: Communicator) -> None:
            if communicator.rank == 1:
                communicator.close()
            else:
                communicator.exchange([[], []])

        ended = run(ranks, work)
    assert ended[0].failure in [Failure(1, reason, lost=True) for reason in ("has left", "is gone")]


def test_a_message_that_cannot_be_sent(monkeypatch):
    """A rank that cannot send a message raises, and the other rank does not wait for it."""
    with communicators("tcp", 2) as ranks:

        def work(communicator: Communicator) -> None:
            if communicator.rank == 1:
                assert isinstance(communicator, TcpCommunicator)
                monkeypatch.setattr(communicator, "_send_all", refuse)
            try:
                communicator.exchange([[], []])
            except ValueError as error:
                communicator.abort(Failure(1, str(error)))
                raise

        async def refuse(peer, message) -> None:
            raise ValueError("too large")

        first, second = run(ranks, work)
    assert first.failure == Failure(1, "too large")
    assert isinstance(second, ValueError)


def test_a_rank_that_stalls():
    """A rank that stalls says nothing; the others fail after the timeout, and the stalled rank then
    ends.
    """
    others = threading.Barrier(3)
    with communicators("tcp", 3, timeout=1.0) as ranks:

        def work(communicator: Communicator) -> Failure | None:
            if communicator.rank == 2:
                assert isinstance(communicator, TcpCommunicator)
                communicator._loop.call_soon_threadsafe(others.wait, 20)
                return None
            start = time.monotonic()
            with pytest.raises(RankError) as raised:
                communicator.exchange([[], [], []])
            assert time.monotonic() - start > 0.8
            others.wait(20)
            return raised.value.failure

        first, second, _ = run(ranks, work)
    assert first == second == Failure(2, "has shown no sign of life for 1 s", lost=True)


@pytest.mark.slow
def test_a_slow_rank_is_waited_for():
    """A slow rank that computes for longer than the timeout is alive, and the other rank waits for
    it.
    """
    with communicators("tcp", 2, timeout=0.8) as ranks:

        def work(communicator: Communicator) -> int:
            if communicator.rank == 1:
                time.sleep(2.5)
            return len(communicator.exchange([[], []]))

        assert run(ranks, work) == [2, 2]


def call(at: TcpCommunicator, message: object) -> None:
    """Connect to a rank, send a message that no rank would send, and wait until the rank hangs
    up.
    """

    async def call() -> None:
        with contextlib.suppress(OSError):
            comm = await connect(at.address)
            await comm.write(message)
            await comm.read()

    asyncio.run(call())


def test_others_are_turned_away():
    """Callers that are no rank are turned away: a rank of another session, senders of rubbish; a
    rank cannot join at an address where nobody listens.
    """
    with communicators("tcp", 2) as ranks:
        at = ranks[0]
        assert isinstance(at, TcpCommunicator)
        stranger = TcpCommunicator("another", 1, 2, "tcp://127.0.0.1", 1.0)
        try:
            with pytest.raises(RankError, match="rank 0 cannot be reached"):
                stranger.join([at.address, ""])
        finally:
            stranger.close()
        for rubbish in (["hi"], 7, {"op": "data"}, {"session": "a session", "rank": 9}):
            call(at, rubbish)
        assert run(ranks, lambda rank: len(rank.exchange([[], []]))) == [2, 2]
    alone = TcpCommunicator("a session", 0, 2, "tcp://127.0.0.1", 1.0)
    try:
        with pytest.raises(RankError, match="rank 1 cannot be reached"):
            alone.join(["", "tcp://127.0.0.1:9"])
    finally:
        alone.close()
