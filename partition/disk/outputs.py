"""Outputs: folders that appear whole or not at all, and that replace only their own kind.

A folder is written under a temporary name beside its place (work.py) and renamed when it is
complete and on the disk. What may be replaced has to carry our mark: a store its manifest, a
folder of Parquet files an entry in the key-value metadata of each.
"""

from __future__ import annotations

import contextlib
import errno
import glob
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from ..errors import DelegraphError, InputError

Kind = Literal["store", "result", "edge list", "supersteps"]
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


def is_result(path: AnyPath) -> bool:
    """Whether nothing but a result stands at ``path``."""
    return _is(Path(path), "result")


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
    if len(os.fsencode(record.name)) + len("..partial") > os.pathconf(record.parent, "PC_NAME_MAX"):
        raise InputError(f"{path} cannot be written: its name is too long")
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


def publish(new: Path, path: Path, kind: Kind, overwrite: bool, replaced: Path) -> None:
    """Rename the folder ``new``, which is on the disk, to ``path``.

    What stands there by then is replaced only if ``overwrite`` is set and it is of that kind; it
    waits in the folder ``replaced`` meanwhile.
    """
    os.chmod(new, 0o777 & ~_umask())
    if not os.path.lexists(path):
        os.rename(new, path)
        _sync(path.parent)
        return
    if not overwrite or not _is(path, kind):
        raise DelegraphError(f"{path} has appeared meanwhile, and is left as it is")
    replaced.mkdir()
    os.rename(path, replaced / path.name)
    try:
        os.rename(new, path)
    except BaseException:
        restore_replaced(path, replaced)
        raise
    _sync(path.parent)
    shutil.rmtree(replaced, ignore_errors=True)


def restore_replaced(path: Path, replaced: Path) -> None:
    """Put back what a run that was cut off while replacing ``path`` has set aside."""
    if not os.path.lexists(path) and (replaced / path.name).is_dir():
        os.rename(replaced / path.name, path)
    shutil.rmtree(replaced, ignore_errors=True)


@contextlib.contextmanager
def naming_full_disk(
    path: Path, needed: Callable[[], str], others: Callable[[], list[Path]] = list
) -> Iterator[None]:
    """Turn 'no space left' into one line that says where, how much, and what to do.

    others: folders beside that of ``path`` that are written to; the fullest one is named.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise
        places = [path.parent, *(place for place in others() if place.is_dir())]
        free, place = min((shutil.disk_usage(place).free, place) for place in places)
        raise DelegraphError(
            f"no space left to write {path}: {needed()}{free:,} bytes are free in {place}; "
            "nothing there was changed: make space and run the same command again"
        ) from error


def write_file(path: Path, data: bytes) -> None:
    """Write a small file whole or not at all."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        with open(partial, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
        _sync(path.parent)
    finally:
        partial.unlink(missing_ok=True)


def sync_files(folder: Path) -> None:
    """Wait until a folder and all files in it are on the disk."""
    for inner, _, names in os.walk(folder):
        for name in names:
            _sync(Path(inner, name))
        _sync(Path(inner))


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
