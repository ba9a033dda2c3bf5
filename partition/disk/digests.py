"""Digests of whole files. An output counts as done only if its files, read again, still match their
digests.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

import xxhash

from .system_errors import naming_file

_READ_BYTES = 4 << 20

FileDigests = dict[str, str]
"""Digest by file name below a folder: the file's size, and the xxh3_128 of its bytes, as text."""


def digest_of_stream(file: BinaryIO) -> str:
    """Return the size and the digest of the unread rest of a file.

    >>> import io
    >>> digest_of_stream(io.BytesIO(b"edges"))
    '5 bytes, xxh3 a1914feaf322978edad2cca4cce8a0cd'
    """
    digest, size = xxhash.xxh3_128(), 0
    while piece := file.read(_READ_BYTES):
        digest.update(piece)
        size += len(piece)
    return f"{size:,} bytes, xxh3 {digest.hexdigest()}"


def file_digest(path: Path) -> str:
    """Return the size and the digest of a file."""
    with naming_file(path), open(path, "rb") as file:
        return digest_of_stream(file)


def folder_digests(folder: Path) -> FileDigests:
    """Return the digests of all files in a folder and below it."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): file_digest(path) for path in files}


def find_damage(folder: Path, digests: Mapping[str, str]) -> str | None:
    """Describe the first file that does not match its digest; None if all match.

    Raises OSError if a file cannot be read.
    """
    for name, wanted in digests.items():
        try:
            found = file_digest(folder / name)
        except FileNotFoundError:
            return f"{folder / name} is missing"
        if found != wanted:
            return f"{folder / name} has changed since it was written"
    return None
