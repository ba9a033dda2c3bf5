"""The most memory that this process has held."""

from __future__ import annotations

import resource
from pathlib import Path


def peak_bytes() -> int:
    """Return the most bytes held so far: the resident set's high-water mark."""
    try:
        # (getrusage would tell that of the process that started this one, if it was larger.)
        with open("/proc/self/status") as file:
            return next(int(line.split()[1]) << 10 for line in file if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # in bytes, where /proc is not


def forget_peak() -> None:
    """Reset the peak to what is held now. Raises OSError where the system does not allow it."""
    Path("/proc/self/clear_refs").write_text("5")
