"""Run a command as a process of its own: wall time, processor time, peak memory of its tree."""

from __future__ import annotations

import contextlib
import os
import re
import resource
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

_STEP = 0.02
"""Seconds between two looks at the processes."""
_LOOK_SHARE = 0.05
"""Largest share of the time that goes into proportional set sizes: 12 GB take long to count."""
_MEMORY_ERROR = re.compile(
    "OutOfMemory|Out of Memory|MemoryError|bad_alloc|Unable to allocate|[Oo]ut of memory"
)


class Run(NamedTuple):
    """How a command ran.

    seconds: wall time. processor: seconds of processors, of all its processes. peak: bytes, the
    proportional set sizes of the process tree, summed and sampled, or the high-water mark of its
    largest process where that is more: it misses no peak between two samples. stopped: why it did
    not finish, "over 600 s" or "out of memory (19 GB)"; empty where it did.
    """

    seconds: float
    processor: float
    peak: int
    stopped: str = ""


def tree(pid: int) -> list[int]:
    """The process and all below it."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        others = [
            child
            for thread in Path(f"/proc/{pid}/task").iterdir()
            if thread.name != str(pid)
            for child in (thread / "children").read_text().split()
        ]
    except OSError:
        return []
    return [pid, *(p for child in children + others for p in tree(int(child)))]


def pss(pid: int) -> int:
    """Proportional set size of a process in bytes."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def high_water(pid: int) -> int:
    """The most that a process has held resident, in bytes."""
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def run(
    command: list[str],
    limit: float = float("inf"),
    memory: float = float("inf"),
    environment: dict[str, str] | None = None,
) -> Run:
    """Run a command to its end, or until it passes a limit.

    limit: seconds. memory: bytes that its processes may hold together. environment: variables to
    add. Raises RuntimeError if it fails for another reason than memory.
    """
    peak, stopped = 0, ""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            env={**os.environ, **(environment or {})},
        )
        held, due = 0, started
        while process.poll() is None:
            pids, now = tree(process.pid), time.perf_counter()
            peak = max(peak, *(high_water(pid) for pid in pids), 0)
            if now >= due:
                held = sum(pss(pid) for pid in pids)
                peak = max(peak, held)
                due = time.perf_counter() + (time.perf_counter() - now) / _LOOK_SHARE
            if held > memory:
                stopped = f"out of memory ({held / 1e9:.0f} GB)"
            elif now - started > limit:
                stopped = f"over {limit:.0f} s"
            if stopped:
                _stop(process)
                break
            time.sleep(_STEP)
        seconds = time.perf_counter() - started
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        processor = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
        errors.seek(max(0, errors.seek(0, os.SEEK_END) - 20_000))
        told = errors.read().decode(errors="replace")
    if process.returncode and not stopped:
        killed = process.returncode in (-signal.SIGKILL, 128 + signal.SIGKILL)
        if not killed and not _MEMORY_ERROR.search(told):
            raise RuntimeError(f"{command}: {told[-2000:]}")
        stopped = f"out of memory ({peak / 1e9:.0f} GB)"
    return Run(seconds, processor, peak, stopped)


def measure(command: list[str], limit: float) -> tuple[float, int] | None:
    """Seconds and peak bytes of a command; None if it passed the limit.

    Raises RuntimeError if it failed, for want of memory too.
    """
    done = run(command, limit)
    if done.stopped.startswith("out of memory"):
        raise RuntimeError(f"{command}: {done.stopped}")
    return None if done.stopped else (done.seconds, done.peak)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Kill the process and all below it: a JVM outlives the Python that started it."""
    for pid in tree(process.pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait()
