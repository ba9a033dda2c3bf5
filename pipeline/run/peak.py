"""The most memory that this process has held."""

from __future__ import annotations

import resource
from pathlib import Path


def peak_bytes() -> int:
    """Return the most bytes that this process has held so far: the high-water mark of its resident
    set.
    """
    try:
        # (getrusage would return the peak of the parent process if that was larger.)
        with open("/proc/self/status") as file:
            return next(int(line.split()[1]) << 10 for line in file if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # bytes, without /proc


def forget_peak() -> None:
    """Reset the peak to the bytes held now. Raises OSError if the system does not allow it."""
    Path("/proc/self/clear_refs").write_text("5")
