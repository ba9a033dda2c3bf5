"""NVIDIA's driver itself, without CuPy: starting it, and counting its devices. A thread begins
early with what takes long.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
from functools import cache
from importlib.util import find_spec

_CAPABILITY = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, MINOR


@cache
def begin_driver(number: int | None) -> None:
    """Start the driver in a thread, and return at once. If device ``number`` exists, the thread
    then makes the context that CuPy will ask for, and imports CuPy; with None it only starts the
    driver. The thread goes on while modules are imported, and while an input is looked through.
    """
    if find_spec("cupy"):
        threading.Thread(target=_begin, args=(number,), daemon=True).start()


def count_devices() -> int:
    """Count the devices that this process may use; 0 if there is no driver that works."""
    driver, count = _started(), ctypes.c_int()
    if driver is None or driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return 0
    return count.value


def architectures() -> set[int]:
    """Return the compute capabilities, times 10, of the devices that this process may use."""
    driver, found = _started(), set[int]()
    for number in range(count_devices()):
        assert driver is not None
        device, values = ctypes.c_int(), (ctypes.c_int(), ctypes.c_int())
        if driver.cuDeviceGet(ctypes.byref(device), number) == 0:
            for value, attribute in zip(values, _CAPABILITY, strict=True):
                driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, device)
            found.add(10 * values[0].value + values[1].value)
    return found


def _begin(number: int | None) -> None:
    if number is None:
        _started()
    elif number < count_devices():
        driver = _started()
        assert driver is not None
        device, context = ctypes.c_int(), ctypes.c_void_p()
        if driver.cuDeviceGet(ctypes.byref(device), number) == 0:
            driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
        with contextlib.suppress(Exception):  # whoever opens the device meets it, and says so
            from .device import import_cupy  # with NumPy, which the driver begins without

            import_cupy()


def _started() -> ctypes.CDLL | None:
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    return driver if driver.cuInit(0) == 0 else None
