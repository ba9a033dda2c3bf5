"""Compiled kernels that come with the package, so that a first run need not compile them.

A build of the package compiles them for a baseline of processors and writes them to one file beside
the sources. A process takes a kernel from the file only if the file suits: it must be of the same
sources, Python and Numba, and the processor must have all that the baseline has. Otherwise the
process compiles the kernel, as it compiles kernels that the file does not have.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite
import numba
from llvmlite.binding import get_host_cpu_features
from numba.core import config

_KERNELS = Path(__file__).parents[1]

FILE = _KERNELS / "shipped.bin"

BASELINE = "x86-64-v3"
"""Name of the baseline, in LLVM: processors of Intel since 2013 and of AMD since 2015 belong to
it.
"""

FEATURES = (
    *("avx", "avx2", "bmi", "bmi2", "cx16", "f16c", "fma", "lzcnt", "movbe", "popcnt"),
    *("sahf", "sse3", "sse4.1", "sse4.2", "ssse3", "xsave"),
)
"""Features of the baseline, beside those of all 64-bit processors."""


class _Entry(NamedTuple):
    """The place of a kernel in the file, and the digest of the kernel's bytes."""

    at: int
    size: int
    digest: str


def runs_here() -> bool:
    """Return whether code for the baseline runs on this processor."""
    if sys.platform != "linux" or os.uname().machine != "x86_64":
        return False
    features = get_host_cpu_features()
    return all(features.get(feature) for feature in FEATURES)


def key(function: Callable, signature: tuple[Any, ...]) -> str:
    """Return the key of a kernel that is compiled for types: a digest, as a word."""
    named = f"{function.__module__}.{function.__qualname__} {signature}"
    return hashlib.sha256(named.encode()).hexdigest()[:32]


def has(function: Callable, signature: tuple[Any, ...]) -> bool:
    """Return whether a kernel, compiled for types, comes with the package."""
    entries = _entries()
    return bool(entries) and key(function, signature) in entries


def find(function: Callable, signature: tuple[Any, ...]) -> bytes | None:
    """Return the bytes of a kernel compiled for types, as Numba keeps them; None if there are none.

    Raises OSError or ValueError where the file is damaged.
    """
    entries = _entries()
    entry = entries.get(key(function, signature)) if entries else None
    if entry is None:
        return None
    with FILE.open("rb") as file:
        file.seek(entry.at)
        data = file.read(entry.size)
    if hashlib.sha256(data).hexdigest() != entry.digest:
        raise ValueError(f"{FILE} has other bytes than were written")
    return data


def write(path: Path, kernels: Iterable[tuple[str, bytes]]) -> int:
    """Write compiled kernels: keys and bytes. Returns the number of kernels.

    The file begins with the length of its table, in eight bytes, and the table. Positions in the
    table count from the table's end.
    """
    entries, pieces, at = {}, [], 0
    for name, data in kernels:
        entries[name] = _Entry(at, len(data), hashlib.sha256(data).hexdigest())
        pieces.append(data)
        at += len(data)
    table = json.dumps({"suits": _suits(), "kernels": entries}).encode()
    unfinished = path.with_suffix(".unfinished")
    try:
        unfinished.write_bytes(len(table).to_bytes(8, "little") + table + b"".join(pieces))
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
    return len(entries)


@cache
def _entries() -> dict[str, _Entry]:
    """Return the file's table; an empty one if the file does not suit or is no such file."""
    chosen = [vars(config)[name] for name in ("CPU_NAME", "CPU_FEATURES")]  # by the user
    try:
        with FILE.open("rb") as file:
            size = int.from_bytes(file.read(8), "little")
            table = json.loads(file.read(min(size, os.fstat(file.fileno()).st_size)))
        if any(word is not None for word in chosen) or table["suits"] != _suits():
            return {}
        begin = 8 + size
        entries = {
            name: _Entry(begin + at, length, digest)
            for name, (at, length, digest) in table["kernels"].items()
        }
        return entries if runs_here() else {}
    # RuntimeError: LLVM does not know the processor.
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RuntimeError):
        return {}


@cache
def _suits() -> dict[str, str]:
    """Return what a file and a process must agree about."""
    return {
        "sources": _digest(_KERNELS),
        "baseline": BASELINE,
        "python": str(sys.implementation.cache_tag),
        "numba": numba.__version__,
        "llvmlite": llvmlite.__version__,
    }


def _digest(folder: Path) -> str:
    """Return a digest of all Python files in a folder: any may be part of a compiled kernel."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        text = path.read_bytes()
        digest.update(f"{path.relative_to(folder)} {len(text)}\n".encode() + text)
    return digest.hexdigest()
