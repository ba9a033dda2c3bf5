"""Errors of the system: with the name of their file, and never taken for content that is wrong."""

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
"""What the system says where there is no room for more."""

_FAILURES = {
    *(errno.EIO, errno.ESTALE, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ENOBUFS),
    *(errno.EAGAIN, errno.EINTR, errno.EBUSY, errno.ETIMEDOUT, errno.EREMOTEIO, errno.EUCLEAN),
    *(errno.ENOLCK, errno.ECONNRESET, errno.ENOTCONN),
    *FULL,
}
"""Of the machine, not of what is at a path: another time, or on another one, it may do."""

_TOLD_BY_ARROW = re.compile(r"\[errno (\d+)\]", re.IGNORECASE)


def raise_failure(path: AnyPath, error: BaseException) -> None:
    """Raise what the system failed at, with the name of its file; return for any other error.

    To be called where errors are taken for bad input, or for damage. DelegraphError: a device that
    does not read, say; OSError where a disk is full; MemoryError as it is.
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
    """The system's number of an error; 0 where it has none."""
    number = getattr(error, "errno", None)
    if isinstance(number, int):
        return number
    told = _TOLD_BY_ARROW.search(str(error))
    return int(told[1]) if told else 0


@contextlib.contextmanager
def naming_file(path: AnyPath) -> Iterator[None]:
    """Give an OSError the name of the file that it is about, where it has none: reading, writing
    and syncing name a descriptor only.
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
    """Arrow's writer of a Parquet file, whose errors name it. options: Arrow's own."""
    import pyarrow.parquet as pq

    with naming_file(path), pq.ParquetWriter(path, schema, **options) as writer:
        yield writer


def read_metadata(source: Any) -> Any:
    """The footer of a Parquet file, by its path or as an open one. Errors name it."""
    import pyarrow.parquet as pq

    path = source if isinstance(source, str | os.PathLike) else source.name
    with naming_file(path):
        return pq.read_metadata(source)
