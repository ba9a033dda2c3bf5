"""Outputs: folders that appear whole or not at all, and that replace only their own kind.

A folder is written under a temporary name beside its place and renamed when it is complete and
on the disk. What may be replaced has to carry our mark: a store its manifest, a folder of
Parquet files an entry in the key-value metadata of each.
"""

from __future__ import annotations

import contextlib
import errno
import glob
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from .errors import DelegraphError, InputError

Kind = Literal["store", "result", "edge list"]
AnyPath = str | os.PathLike[str]

MANIFEST = "manifest.json"
STORE_FORMAT = "delegraph store"
_MARK = b"delegraph"


def mark(kind: Kind, **facts: Any) -> dict[bytes, bytes]:
    """Key-value metadata for the Parquet files of an output."""
    return {_MARK: json.dumps({"kind": kind, **facts}).encode()}


def facts_of(metadata: dict[bytes, bytes] | None, kind: Kind) -> dict[str, Any] | None:
    """What ``mark`` was given for a file of that kind; None where there is no such mark."""
    try:
        facts = json.loads((metadata or {})[_MARK])
        return facts if facts.pop("kind") == kind else None
    except (KeyError, ValueError, TypeError, AttributeError):
        return None


def is_store(path: AnyPath) -> bool:
    """Whether a folder has a store's manifest (which may be damaged all the same)."""
    try:
        with open(Path(path) / MANIFEST, "rb") as file:
            return STORE_FORMAT.encode() in file.read(100)
    except OSError:
        return False


def _is(path: Path, kind: Kind) -> bool:
    """Whether nothing but an output of that kind stands at ``path``."""
    if path.is_symlink() or not path.is_dir():
        return False
    if kind == "store":
        return is_store(path)
    files = list(path.iterdir())
    try:
        return bool(files) and all(
            facts_of(pq.read_metadata(file).metadata, kind) is not None for file in files
        )
    except (pa.ArrowException, OSError):
        return False


def record_path(output: AnyPath) -> Path:
    """Where the record of an output stands: ``distances/`` -> ``distances.run.json``."""
    path = Path(output).absolute()
    return path.with_name(f"{path.name}.run.json")


def check_output(output: AnyPath, kind: Kind, overwrite: bool, read: AnyPath | None = None) -> None:
    """Refuse an output that may not be written, before any work is done.

    overwrite: whether one of the same kind may be replaced. read: what the command reads (a path
    or a glob), which the output must neither hold nor stand in.
    """
    path = Path(output)
    if os.path.lexists(path):
        if not _is(path, kind):
            raise InputError(
                f"{path} exists and is no {kind} that delegraph wrote: name another output, or "
                "remove it yourself"
            )
        if not overwrite:
            raise InputError(f"{path} exists; name another output, or replace it with --overwrite")
    if not path.absolute().parent.is_dir():
        raise InputError(f"{path.absolute().parent}: no such folder to write {path.name} into")
    record = record_path(path)
    if os.path.lexists(record) and not _is_record(record):
        raise InputError(f"{record} exists, and the run's record would replace it")
    if read is not None:
        _check_apart(path, os.fspath(read))


def _check_apart(output: Path, read: str) -> None:
    target = os.path.realpath(output)
    for name in [read] if os.path.exists(read) else glob.glob(read, recursive=True):
        real = os.path.realpath(name)
        common = os.path.commonpath([target, real])
        if common == target:
            raise InputError(f"{output} holds what is read: name another output")
        if common == real:
            raise InputError(f"{output} stands in the folder that is read: name another output")


def _is_record(path: Path) -> bool:
    try:
        return "schema_version" in json.loads(path.read_bytes())
    except (OSError, ValueError, TypeError):
        return False


@contextlib.contextmanager
def new_folder(output: AnyPath, kind: Kind, overwrite: bool) -> Iterator[Path]:
    """A temporary folder that becomes ``output`` when the block ends, and is gone if it fails.

    What stands there by then is replaced only if ``overwrite`` is set and it is of that kind.
    """
    path = Path(output).absolute()
    try:
        partial = Path(tempfile.mkdtemp(prefix=f".{path.name}.partial-", dir=path.parent))
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from error
    try:
        with naming_full_disk(path):
            os.chmod(partial, 0o777 & ~_umask())
            yield partial
            for folder, _, names in os.walk(partial):
                for name in names:
                    _sync(Path(folder, name))
                _sync(Path(folder))
            if os.path.lexists(path):
                if not overwrite or not _is(path, kind):
                    raise DelegraphError(f"{path} has appeared meanwhile, and is left as it is")
                _swap(partial, path)
            else:
                os.rename(partial, path)
            _sync(path.parent)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _swap(new: Path, path: Path) -> None:
    old = Path(tempfile.mkdtemp(prefix=f".{path.name}.old-", dir=path.parent))
    os.rename(path, old / path.name)
    try:
        os.rename(new, path)
    except BaseException:
        os.rename(old / path.name, path)
        raise
    finally:
        shutil.rmtree(old, ignore_errors=True)


@contextlib.contextmanager
def naming_full_disk(path: Path) -> Iterator[None]:
    """Turn 'no space left' into one line that names the place."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise
        free = shutil.disk_usage(path.parent).free
        raise DelegraphError(
            f"no space left to write {path} ({free:,} bytes free in {path.parent}); "
            "nothing there was changed"
        ) from error


def write_file(path: Path, data: bytes) -> None:
    """Write a small file whole or not at all."""
    partial = path.with_name(f".{path.name}.partial-{os.getpid()}")
    try:
        with open(partial, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _sync(path: Path) -> None:
    """Wait until a file or folder is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
