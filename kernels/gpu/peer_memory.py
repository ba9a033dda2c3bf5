"""Device memory that other ranks read: by address in one process, by a handle between processes."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base.arrays import Array as Declared
from .device import Device, DeviceMemoryError
from .graph import Array

Exchange = Callable[[Sequence[list[NDArray]]], list[list[NDArray]]]
"""The ``exchange`` of a communicator: it sends a message to each rank, and returns theirs.

If ranks cannot read each other's memory, it must send and receive arrays of devices.
"""

PIECE_BYTES = 16 << 20
"""The bytes that a rank sends each other rank at once, if others cannot read its memory."""

_COPY = 4  # cudaMemcpyDefault
_ENABLED_ALREADY = 704  # cudaErrorPeerAccessAlreadyEnabled
_MACHINE = 36  # bytes that name it, before those that name the device


class PeerMemory:
    """``size`` bytes, zeros, in an allocation of their own: that is what can be shared."""

    def __init__(self, device: Device, size: int) -> None:
        self._device = device
        self._maps: list[int] = []
        self.size = max(size, 256)
        with device.use() as cupy:
            pool = cupy.get_default_memory_pool()
            pool.free_all_blocks()  # what it keeps for later is no use to others
            limit = pool.get_limit()
            if limit and pool.total_bytes() + self.size > limit:
                raise DeviceMemoryError(
                    f"the memory limit of {device} is {limit:,} bytes, which {self.size:,} bytes "
                    f"for the exchange between ranks exceed, beside {pool.total_bytes():,} others"
                )
            self._start = cupy.cuda.MemoryPointer(cupy.cuda.Memory(self.size), 0)
            cupy.cuda.runtime.memset(self.address, 0, self.size)

    @property
    def address(self) -> int:
        return self._start.ptr

    def array(self, at: int, length: int, dtype: Any) -> Array:
        """Return a part of the memory, from byte ``at`` on, as an array."""
        return self._device.cupy.ndarray((length,), dtype, memptr=self._start + at)

    def open(self, exchange: Exchange, rank: int, ranks: int) -> list[int] | None:
        """Return the address here of each rank's memory; None, on all ranks, if any memory cannot
        be read.

        Ranks have to be on one machine, on devices of their own that reach each other.
        """
        with self._device.use() as cupy:
            facts = np.array([os.getpid(), self._device.number, self.address], np.int64)
            place = np.frombuffer(place_of(cupy), np.uint8)
            told = exchange([[facts, place, self._handle()]] * ranks)
            places = [message[1].tobytes() for message in told]
            machines = {some[:_MACHINE] for some in places}
            bases = None
            try:
                if len(set(places)) == ranks and len(machines) == 1:
                    bases = self._map(told, rank)
                answers = exchange([[np.array([bases is not None])]] * ranks)
            except BaseException:
                self.close()
                raise
            if all(bool(answer[0][0]) for answer in answers):
                return bases
            self.close()
            return None

    def _handle(self) -> NDArray[np.uint8]:
        """Return the handle of this memory for other processes; an empty array if the system has no
        such handles.
        """
        runtime = self._device.cupy.cuda.runtime
        try:
            return np.frombuffer(runtime.ipcGetMemHandle(self.address), np.uint8)
        except runtime.CUDARuntimeError:
            return np.empty(0, np.uint8)

    def close(self) -> None:
        """Forget the other ranks' memory. Other ranks may have been faster: nothing may read our
        memory any more.
        """
        with self._device.use() as cupy:
            while self._maps:
                cupy.cuda.runtime.ipcCloseMemHandle(self._maps.pop())

    def _map(self, told: Sequence[Sequence[NDArray]], rank: int) -> list[int] | None:
        runtime = self._device.cupy.cuda.runtime
        bases = []
        for peer, (facts, _, handle) in enumerate(told):
            process, device, address = facts.tolist()
            try:
                if peer != rank and process == os.getpid():
                    if not runtime.deviceCanAccessPeer(self._device.number, device):
                        return None
                    _enable_access(runtime, device)
                elif peer != rank:
                    if not len(handle):
                        return None
                    address = runtime.ipcOpenMemHandle(handle.tobytes())
                    self._maps.append(address)
            except runtime.CUDARuntimeError:
                return None
            bases.append(address)
        return bases


class PeerArrays:
    """Arrays in one PeerMemory. places: where each begins, by name, as ``places_of`` says."""

    def __init__(self, device: Device, declared: Sequence[Declared]) -> None:
        self.places = places_of(declared)
        self._declared = {array.name: array for array in declared}
        self.memory = PeerMemory(device, self.places[END])

    def array(self, name: str) -> Array:
        declared = self._declared[name]
        return self.memory.array(self.places[name], declared.length, declared.dtype)

    def address(self, name: str) -> int:
        return self.memory.address + self.places[name]


END = ""
"""The key, in the places of arrays, of the byte where the last array ends."""


def places_of(declared: Sequence[Declared]) -> dict[str, int]:
    """Compute where each array begins, if arrays follow one another, each at a multiple of 256
    bytes.

    >>> places_of([Declared("mail", "u4", 3), Declared("parent", "u4", 65)])
    {'mail': 0, 'parent': 256, '': 768}
    """
    sizes = [-(-array.bytes // 256) * 256 for array in declared]
    names = [*(array.name for array in declared), END]
    return dict(zip(names, accumulate(sizes, initial=0), strict=True))


def all_to_all(
    device: Device,
    memory: PeerMemory,
    starts: Sequence[int],
    dtype: Any,
    exchange: Exchange,
    rank: int,
) -> Array:
    """Send each rank its share of ``memory``. Returns what all ranks send to this one, by rank.

    starts: entries of ``dtype`` where each rank's share begins, and the end. The returned array is
    this rank's alone.
    """
    ranks = len(starts) - 1
    size = np.dtype(dtype).itemsize
    with device.use() as cupy:
        cupy.cuda.Device().synchronize()
        bases = memory.open(exchange, rank, ranks)
        theirs = [message[0].tolist() for message in exchange([[np.array(starts)]] * ranks)]
        counts = [some[rank + 1] - some[rank] for some in theirs]
        came = cupy.empty(sum(counts), dtype)
        if bases is None:
            own = memory.array(0, starts[-1], dtype)
            firsts = np.cumsum([0, *counts]).tolist()
            piece = PIECE_BYTES // size
            longest = max(int(np.diff(some).max()) for some in theirs)
            for done in range(0, longest, piece):
                shares = [
                    [own[min(first + done, stop) : min(first + done + piece, stop)]]
                    for first, stop in pairwise(starts)
                ]
                for first, (share,) in zip(firsts, exchange(shares), strict=False):
                    came[first + done : first + done + len(share)] = share
            return came
        try:
            at = came.data.ptr
            for peer, count in enumerate(counts):
                from_there = bases[peer] + theirs[peer][rank] * size
                if count:
                    cupy.cuda.runtime.memcpy(at, from_there, count * size, _COPY)
                at += count * size
            cupy.cuda.Device().synchronize()
        finally:
            memory.close()
        exchange([[] for _ in range(ranks)])  # nobody lets go of what another one still reads
    return came


def _enable_access(runtime: Any, device: int) -> None:
    try:
        runtime.deviceEnablePeerAccess(device)
    except runtime.CUDARuntimeError as error:
        if error.status != _ENABLED_ALREADY:
            raise


def place_of(cupy: Any) -> bytes:
    """Return bytes that identify this machine and the current device."""
    with open("/proc/sys/kernel/random/boot_id", "rb") as file:
        machine = file.read().strip()
    return machine + cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)["uuid"]
