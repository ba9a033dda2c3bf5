"""Launches whose kernels wait for other ranks, in each other's memory."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from .device import Device

_NOT_READY = 600  # cudaErrorNotReady
_SPIN_SECONDS = 0.002
_LOOK_SECONDS = 1e-4


class WaitingLaunches:
    """Launches of such kernels, one after the other. check: raises if another rank is known to have
    failed; then kernels are told to stop, by a flag in host memory at the address ``stop``. ended:
    an event after the last kernel.
    """

    def __init__(self, device: Device, check: Callable[[], None]) -> None:
        self._device, self._check = device, check
        with device.use() as cupy:
            self.ended = cupy.cuda.Event()
            self._stop = device.pinned(1, np.uint32)
        self._stop[0] = 0

    @property
    def stop(self) -> int:
        return self._stop.ctypes.data

    def run(self, start: Callable[[], None]) -> None:
        """Start a kernel, or several, and wait until all have ended, or ``check`` raises."""
        spinning = time.monotonic() + _SPIN_SECONDS
        try:
            start()
            self.ended.record()
            # (The event's ``done`` would take a kernel that failed for one that runs.)
            runtime = self._device.cupy.cuda.runtime
            while (status := runtime.eventQuery(self.ended.ptr)) == _NOT_READY:
                if time.monotonic() > spinning:
                    self._check()
                    time.sleep(_LOOK_SECONDS)
            if status:
                self.ended.synchronize()  # raises what went wrong
        except BaseException:
            self._stop[0] = 1
            try:
                self.ended.record()  # of several kernels, some may wait already
                self.ended.synchronize()
            finally:
                self._stop[0] = 0
            raise
