"""The device of a command by the name that a user gives: auto, cpu, cuda or cuda:N."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from importlib.util import find_spec

from ...kernels.gpu import driver
from ...kernels.gpu.device import Device, DeviceError, DeviceMemoryError, open_device
from ...partition.errors import DelegraphError, InputError, LimitError
from ...partition.numbers import shown


def check_choice(device: str) -> None:
    """Raise InputError for a text that names no device.

    >>> check_choice("cuda:1")
    """
    if not re.fullmatch(r"auto|cpu|cuda(:[0-9]{1,9})?", device):
        raise InputError(f"{shown(device)} is not a device: choose auto, cpu, cuda or cuda:1")


def choose_device(
    device: str, limit: int | None = None, notes: list[str] | None = None
) -> Device | None:
    """Return the device that a user chose; None for the CPU.

    limit: bytes that may be held on the device; None for all free bytes. "auto" takes the first
    device if it is usable. notes: receives the reason if the device is unusable and a limit was
    given, which shows that a GPU was expected. Raises InputError if a named device is missing.
    """
    check_choice(device)
    if device == "cpu":
        if limit is not None:
            raise InputError("a limit of device memory needs a GPU: give --device cuda or auto")
        return None
    try:
        return open_device(int(device.partition(":")[2] or 0), limit)
    except DeviceError as error:
        if device == "auto":
            if limit is not None and notes is not None:
                notes.append(f"on the CPU: {error}")
            return None
        raise InputError(f"--device {device}: {error}") from error


def has_device_each(device: str, workers: int) -> bool:
    """Return whether each of the local workers gets a device of its own, by the user's choice.

    Asks the driver only: importing CuPy and making a context would take a second, and this process
    needs neither. Workers report whether their devices work. Raises InputError if named devices are
    missing, or are fewer than the workers.
    """
    if device == "cpu":
        return False
    try:
        if find_spec("cupy") is None:
            raise DeviceError("CuPy is missing: pip install 'cupy-cuda13x[ctk]' (or 12x)")
        # (A check that it can be imported. It is not a requirement; the cluster's module uses it.)
        import dask_cuda  # pyright: ignore[reportMissingImports]  # noqa: F401

        count = driver.count_devices()
        if count < workers:
            raise DeviceError(f"this machine has {count} GPUs for {workers} workers")
    except (DeviceError, ImportError) as error:
        if device == "auto":
            return False
        raise InputError(f"--device {device}: {error}") from error
    return True


@contextlib.contextmanager
def device_errors() -> Iterator[None]:
    """Turn a DeviceError of the block into a DelegraphError, which a user sees as one line, and a
    DeviceMemoryError into a LimitError.
    """
    try:
        yield
    except DeviceMemoryError as error:
        raise LimitError(str(error)) from error
    except DeviceError as error:
        raise DelegraphError(str(error)) from error
