"""Digests of whole files: what counts as done is read again, and has to be as it was written."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

import xxhash

from .system_errors import naming_file

_READ_BYTES = 4 << 20

FileDigests = dict[str, str]
"""By a file's name below its folder: its size, and the xxh3_128 of its bytes."""


def digest_of_stream(file: BinaryIO) -> str:
    """The size and the digest of what is left to read of a file.

    >>> import io
    >>> digest_of_stream(io.BytesIO(b"edges"))
    '5 bytes, xxh3 a1914feaf322978edad2cca4cce8a0cd'
    """
    digest, size = xxhash.xxh3_128(), 0
    while some := file.read(_READ_BYTES):
        digest.update(some)
        size += len(some)
    return f"{size:,} bytes, xxh3 {digest.hexdigest()}"


def file_digest(path: Path) -> str:
    """The size and the digest of a file."""
    with naming_file(path), open(path, "rb") as file:
        return digest_of_stream(file)


def folder_digests(folder: Path) -> FileDigests:
    """The digests of all files in a folder and below."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): file_digest(path) for path in files}


def find_damage(folder: Path, digests: Mapping[str, str]) -> str | None:
    """Describe the first file that is not as its digest says; None where all files are.

    Raises OSError where a file cannot be read.
    """
    for name, wanted in digests.items():
        try:
            found = file_digest(folder / name)
        except FileNotFoundError:
            return f"{folder / name} is missing"
        if found != wanted:
            return f"{folder / name} has changed since it was written"
    return None
