"""CuPy's streams and NCCL, for ranks that are threads of this process.

Nothing here has a deadline. Making a communicator waits for all ranks; the end of a group, for each
rank that this one sends to, or receives from, for the first time; a stream, until all that was sent
is received and the other way round. ``abort`` ends the last two.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import Any, NoReturn
from weakref import WeakValueDictionary

available = True
NCCL_UINT8 = 1

open_communicators: set[NcclCommunicator] = set()
"""That were made, and neither aborted nor destroyed."""

_changed = threading.Condition()
_groups = threading.local()
_streams: WeakValueDictionary[int, Stream] = WeakValueDictionary()


class NcclError(RuntimeError):
    pass


@dataclass(eq=False)
class _Transfer:
    address: int
    size: int
    ended: bool = False


@dataclass
class _Clique:
    """Ranks of one id. boxes: by sender and receiver, what is sent, and what is to be received."""

    devices: dict[int, int] = field(default_factory=dict)
    boxes: dict[tuple[int, int], tuple[deque[_Transfer], deque[_Transfer]]] = field(
        default_factory=lambda: defaultdict(lambda: (deque(), deque()))
    )


_cliques: dict[bytes, _Clique] = defaultdict(_Clique)


class Stream:
    def __init__(self, non_blocking: bool = False) -> None:
        self.ptr = id(self)
        self.transfers: list[_Transfer] = []
        _streams[self.ptr] = self

    def wait_event(self, event: Any) -> None:
        pass

    def synchronize(self) -> None:
        with _changed:
            _changed.wait_for(lambda: all(some.ended for some in self.transfers))
            self.transfers.clear()


def get_unique_id() -> bytes:
    return os.urandom(128)


def groupStart() -> None:  # noqa: N802
    _groups.calls = []


def groupEnd() -> None:  # noqa: N802
    calls, _groups.calls = _groups.calls, None
    with _changed:
        for communicator, peer, sends, transfer, stream in calls:
            communicator._begin(peer, sends, transfer)
            stream.transfers.append(transfer)
        for communicator, peer, _, transfer, _ in calls:
            if peer not in communicator._connected:
                _changed.wait_for(lambda transfer=transfer: transfer.ended)
                if communicator not in open_communicators:
                    _fail("aborted")
                communicator._connected.add(peer)


class NcclCommunicator:
    def __init__(self, ndev: int, commId: bytes, rank: int) -> None:  # noqa: N803
        from . import _Device

        if type(commId) is not bytes or len(commId) != 128:
            raise TypeError("an id has 128 bytes")
        self._rank = rank
        self._clique = clique = _cliques[commId]
        self._connected: set[int] = set()
        self._transfers: list[_Transfer] = []
        with _changed:
            if _Device().id in clique.devices.values():
                _fail("two ranks have the same device")
            clique.devices[rank] = _Device().id
            _changed.notify_all()
            _changed.wait_for(lambda: len(clique.devices) == ndev)
            open_communicators.add(self)

    def send(self, address: int, count: int, datatype: int, peer: int, stream: int) -> None:
        self._call(address, count, datatype, peer, True, stream)

    def recv(self, address: int, count: int, datatype: int, peer: int, stream: int) -> None:
        self._call(address, count, datatype, peer, False, stream)

    def abort(self) -> None:
        with _changed:
            open_communicators.discard(self)
            for transfer in self._transfers:
                transfer.ended = True
            _changed.notify_all()

    def destroy(self) -> None:
        assert all(transfer.ended for transfer in self._transfers)
        self.abort()

    def _call(
        self, address: int, count: int, datatype: int, peer: int, sends: bool, stream: int
    ) -> None:
        assert datatype == NCCL_UINT8
        assert peer != self._rank
        transfer = _Transfer(address, count)
        _groups.calls.append((self, peer, sends, transfer, _streams[stream]))

    def _begin(self, peer: int, sends: bool, transfer: _Transfer) -> None:
        self._transfers = [some for some in self._transfers if not some.ended]
        self._transfers.append(transfer)
        ends = (self._rank, peer) if sends else (peer, self._rank)
        boxes = self._clique.boxes[ends]
        boxes[not sends].append(transfer)
        while boxes[0] and boxes[1]:
            sent, received = boxes[0].popleft(), boxes[1].popleft()
            if sent.size == received.size and not sent.ended and not received.ended:
                ctypes.memmove(received.address, sent.address, sent.size)
                sent.ended = received.ended = True  # else they never end
                _changed.notify_all()


def _fail(why: str) -> NoReturn:
    raise NcclError(f"NCCL_ERROR_UNHANDLED: {why}")
