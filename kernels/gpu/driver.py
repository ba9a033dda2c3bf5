"""The start of NVIDIA's driver, which needs no Python: it goes on while modules are imported."""

from __future__ import annotations

import ctypes
import threading
from functools import cache


@cache
def begin_driver(number: int) -> None:
    """Make the context of a device that CuPy will ask for, if there is one; returns at once."""
    threading.Thread(target=_begin, args=(number,), daemon=True).start()


def _begin(number: int) -> None:
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return
    device, context = ctypes.c_int(), ctypes.c_void_p()
    if driver.cuInit(0) == 0 and driver.cuDeviceGet(ctypes.byref(device), number) == 0:
        driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
