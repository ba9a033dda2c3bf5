"""Errors of the operating system, such as a full disk or an unreadable device. They are raised with
the name of the file, and are never reported as damage or bad input.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
from collections.abc import Iterator
from typing import Any

from ..errors import DelegraphError

AnyPath = str | os.PathLike[str]

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Error numbers of the system for a lack of space."""

_FAILURES = {
    *(errno.EIO, errno.ESTALE, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ENOBUFS),
    *(errno.EAGAIN, errno.EINTR, errno.EBUSY, errno.ETIMEDOUT, errno.EREMOTEIO, errno.EUCLEAN),
    *(errno.ENOLCK, errno.ECONNRESET, errno.ENOTCONN),
    *FULL,
}
"""Error numbers of failures of the machine rather than of the file at a path: a later try, or
another machine, may succeed.
"""

_TOLD_BY_ARROW = re.compile(r"\[errno (\d+)\]", re.IGNORECASE)


def raise_failure(path: AnyPath, error: BaseException) -> None:
    """Raise an error of the system again, with the name of its file; return for any other error.

    Called where errors are otherwise taken for bad input or for damage. Raises DelegraphError for a
    failure such as an unreadable device, OSError for a full disk, and MemoryError unchanged.
    """
    if isinstance(error, MemoryError):  # Arrow's is an ArrowException, too
        raise error
    number = _number_of(error)
    if number not in _FAILURES:
        return
    named = getattr(error, "filename", None) or os.fspath(path)
    if number in FULL:
        raise OSError(number, os.strerror(number), named) from error
    raise DelegraphError(f"{named}: {os.strerror(number)}") from error


def _number_of(error: BaseException) -> int:
    """Return the system's number of an error; 0 if it has none."""
    number = getattr(error, "errno", None)
    if isinstance(number, int):
        return number
    told = _TOLD_BY_ARROW.search(str(error))
    return int(told[1]) if told else 0


@contextlib.contextmanager
def naming_file(path: AnyPath) -> Iterator[None]:
    """Add a file's name to OSErrors that lack one: reading, writing and syncing know only a
    descriptor.
    """
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        raise OSError(error.errno, os.strerror(error.errno), os.fspath(path)) from error


def sync_to_disk(path: AnyPath) -> None:
    """Wait until a file or a folder is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        with naming_file(path):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def parquet_writer(path: AnyPath, schema: Any, **options: Any) -> Iterator[Any]:
    """Yield Arrow's writer of a Parquet file. Its errors name the file. options: Arrow's own."""
    import pyarrow.parquet as pq

    with naming_file(path), pq.ParquetWriter(path, schema, **options) as writer:
        yield writer


def read_metadata(source: Any) -> Any:
    """Return the footer of a Parquet file, given as a path or an open file. Errors name the
    file.
    """
    import pyarrow.parquet as pq

    path = source if isinstance(source, str | os.PathLike) else source.name
    with naming_file(path):
        return pq.read_metadata(source)
