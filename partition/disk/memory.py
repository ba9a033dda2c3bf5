"""The memory limit: parsing it, its default on this machine, and the bytes that a process tree
holds.

A process tree holds the sum of its proportional set sizes (PSS): pages that several of its
processes share count once. Imported modules count too.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pyarrow as pa

from ..errors import InputError
from ..numbers import GREATEST, check_whole, shown

DEFAULT_SHARE = 0.6
"""Default limit as a share of the memory that the machine, or its control group, allows."""

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of glibc's mallopt
_MAPPED_BYTES = 1 << 20  # larger blocks are mapped one by one
_COMPILER, _DONTNEED = "libllvmlite", 4  # the latter of madvise

GROWTH_BYTES = 40 << 20
"""Bytes by which a process grows beside its arrays, by measurement: heaps, stacks, pages of
code.
"""

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(I?)B?\s*", re.ASCII)
_BINARY = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def parse_bytes(text: str) -> int:
    """Return the number of bytes that a size such as "512MB" stands for.

    >>> parse_bytes("512MB"), parse_bytes("1.5 GiB"), parse_bytes("4096")
    (512000000, 1610612736, 4096)
    """
    found = _SIZE.fullmatch(text.upper())
    if not found or (found[3] and not found[2]):
        raise InputError(f"{shown(text)} is not a size: write 512MB, 2GB or 1.5GiB, for example")
    number, unit, binary = found.groups()
    size = float(number) * (_BINARY[unit] if binary else _UNITS[unit])
    if not 1 <= size <= GREATEST:
        raise InputError(f"{shown(text)} is not a size of memory: that is 1 to {GREATEST:,} bytes")
    return int(size)


def as_bytes(size: float | str | None, name: str = "a size of memory") -> int | None:
    """Return a number of bytes, given as a number or as text such as "512MB". name: of the option,
    for messages.
    """
    if isinstance(size, str):
        return parse_bytes(size)
    whole = int(size) if isinstance(size, float) and size.is_integer() else size
    check_whole(name, whole, 1)
    return whole  # pyright: ignore[reportReturnType] - it is checked


def format_bytes(size: float) -> str:
    """Return a size as text for people, rounded up in its last digit.

    >>> format_bytes(859_900_001), format_bytes(12), format_bytes(2_340_000_000)
    ('860 MB', '12 B', '2.34 GB')
    """
    for unit, digits in (("GB", 2), ("MB", 0), ("kB", 0)):
        scale = _UNITS[unit[0].upper()]
        if size >= scale:
            step = scale // 10**digits
            return f"{-(-int(size) // step) * step / scale:.{digits}f} {unit}"
    return f"{int(size)} B"


def default_limit() -> int:
    """Return DEFAULT_SHARE of the memory that this process may use."""
    return int(DEFAULT_SHARE * machine_bytes())


@cache
def machine_bytes() -> int:
    """Return the memory of the machine, or of the control group if that is less; as it was at the
    first call.
    """
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([total, *_group_limits()])


_CGROUPS = Path("/sys/fs/cgroup")


def _groups() -> list[str]:
    try:
        return Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []


def _group_limits() -> Iterator[int]:
    for line in _groups():
        _, controllers, name = line.split(":", 2)
        if controllers == "":  # version 2: limits of the parents hold as well
            folder = _CGROUPS / name.lstrip("/")
            files = [parent / "memory.max" for parent in (folder, *folder.parents)]
        elif "memory" in controllers.split(","):
            folder = _CGROUPS / "memory" / name.lstrip("/")
            files = [folder / "memory.limit_in_bytes", _CGROUPS / "memory/memory.limit_in_bytes"]
        else:
            continue
        for file in files:
            try:
                yield int(file.read_text())
            except (OSError, ValueError):  # no such file, or "max"
                continue


def return_freed_memory() -> None:
    """Make the allocators return freed memory to the system at once, if they can.

    Otherwise they keep freed blocks, which would count as held during the next step. Call this
    again after much was freed, since small blocks are returned only at the call. It costs time, as
    the system must clear pages that are allocated again, so it does not pay for runs far below
    their limit.
    """
    pa.set_memory_pool(pa.system_memory_pool())
    with contextlib.suppress(OSError, AttributeError):  # not glibc
        library = ctypes.CDLL(None)
        library.mallopt(_M_MMAP_THRESHOLD, _MAPPED_BYTES)
        library.mallopt(_M_TRIM_THRESHOLD, _MAPPED_BYTES)
    trim_freed_memory()


def trim_freed_memory() -> None:
    """Return the memory that is free now to the system. The allocators' settings do not change."""
    pa.default_memory_pool().release_unused()
    with contextlib.suppress(OSError, AttributeError):  # not glibc
        ctypes.CDLL(None).malloc_trim(0)


def return_compiler() -> None:
    """Let the system drop the code of the compiler, LLVM, of which compiling and loading kernels
    has touched some 50 MB. The system reads it from its file again if it is called.
    """
    with contextlib.suppress(OSError, AttributeError), open("/proc/self/maps") as file:
        library = ctypes.CDLL(None)
        for line in file:
            span, access, *_, path = line.split(maxsplit=5)
            # (Data must stay: the loader has written addresses into it.)
            if access == "r-xp" and Path(path.strip()).name.startswith(_COMPILER):
                first, end = (int(address, 16) for address in span.split("-"))
                library.madvise(ctypes.c_void_p(first), ctypes.c_size_t(end - first), _DONTNEED)


def held_bytes(process: int | str = "self") -> int:
    """Return the proportional set size of a process; 0 if it has ended or the system cannot
    tell.
    """
    try:
        with open(f"/proc/{process}/smaps_rollup") as file:
            return sum(int(line.split()[1]) << 10 for line in file if line.startswith("Pss:"))
    except (OSError, ValueError):
        return 0


def resident_bytes() -> int:
    """Return the resident set size of this process, in which pages shared with other processes
    count in full.
    """
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def process_tree(root: int | None = None) -> list[int]:
    """Return the ids of a process (None: this one) and all its descendants."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, ValueError, IndexError):
                continue
            children.setdefault(parent, []).append(int(entry.name))
    tree = [os.getpid() if root is None else root]
    for process in tree:
        tree += children.get(process, [])
    return tree


def tree_bytes(root: int | None = None) -> int:
    """Return the bytes that a process tree holds: the sum of its proportional set sizes."""
    return sum(held_bytes(process) for process in process_tree(root))
