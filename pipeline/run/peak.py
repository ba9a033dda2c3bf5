"""The most memory that this process has held."""

from __future__ import annotations

import resource
from pathlib import Path


def peak_bytes() -> int:
    """So far (its resident set's high-water mark)."""
    try:
        # (getrusage would tell that of the process that started this one, if it was larger.)
        with open("/proc/self/status") as file:
            return next(int(line.split()[1]) << 10 for line in file if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # in bytes, where /proc is not


def forget_peak() -> None:
    """From here on, what is held now counts. OSError where that cannot be had."""
    Path("/proc/self/clear_refs").write_text("5")
