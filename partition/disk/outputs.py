"""Outputs: folders that appear whole or not at all, and that replace only their own kind.

A folder is written under a temporary name beside its place (work.py) and renamed when it is
complete and on the disk, or changes places with what it replaces. Folders above it that are missing
are made. What may be replaced has to carry
our mark: a store its manifest, a folder of Parquet files an entry in the key-value metadata of
each. Some outputs are a file, which the record beside it vouches for. Results may also appear in an
object store (uploads.py); all else is of this machine.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import glob
import json
import os
import resource
import shutil
from collections.abc import Callable, Iterator, Mapping
from itertools import takewhile
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from ..errors import DelegraphError, InputError
from .digests import find_damage
from .files import open_regular, read_json
from .system_errors import (
    FULL,
    naming_file,
    raise_failure,
    read_metadata,
    sync_to_disk,
)
from .uploads import check_upload, find_remote_damage, standing, whole_result
from .urls import AnyPath, is_remote, refuse_remote, url_of

Kind = Literal["store", "result", "edge list", "supersteps", "matrix", "text"]
FILES = ("matrix", "text")
"""Kinds that are a file, which no mark fits into: the record beside it says what it is."""

MANIFEST = "manifest.json"
STORE_FORMAT = "delegraph store"
_MARK = b"delegraph"


def mark(kind: Kind, **facts: Any) -> dict[bytes, bytes]:
    """Key-value metadata for the Parquet files of an output."""
    return {_MARK: json.dumps({"kind": kind, **facts}).encode()}


def facts_of(metadata: dict[bytes, bytes] | None, kind: Kind) -> dict[str, Any] | None:
    """The facts given to ``mark`` for a file of that kind; None where there is no such mark."""
    try:
        facts = json.loads((metadata or {})[_MARK])
        return facts if facts.pop("kind") == kind else None
    except (KeyError, ValueError, TypeError, AttributeError):
        return None


def is_store(path: AnyPath) -> bool:
    """Whether a folder is a store, or was one: its manifest may be damaged, or gone."""
    if is_remote(path):  # where none is read
        return False
    parts = [Path(path, name) for name in ("vertices.parquet", "partition-0000")]
    return _has_mark(Path(path)) or all(os.path.lexists(part) for part in parts)


def _has_mark(path: Path) -> bool:
    """Whether a folder has a store's manifest (which may be damaged all the same)."""
    try:
        with open(open_regular(path / MANIFEST), "rb") as file:
            return STORE_FORMAT.encode() in file.read(100)
    except OSError as error:
        raise_failure(path / MANIFEST, error)
        return False


def _is(path: Path, kind: Kind) -> bool:
    """Whether nothing but an output of that kind stands at ``path``."""
    if kind in FILES:
        return _is_recorded(path, kind)
    if path.is_symlink() or not path.is_dir():
        return False
    if kind == "store":
        return _has_mark(path)
    files = list(path.iterdir())
    try:
        return bool(files) and all(
            file.is_file() and facts_of(read_metadata(file).metadata, kind) is not None
            for file in files
        )
    except (pa.ArrowException, OSError) as error:
        raise_failure(path, error)
        return False


def _is_recorded(path: Path, kind: Kind) -> bool:
    """Whether a file is what the record beside it says was written."""
    try:
        record = read_json(record_path(path))
        told = record["written"], record["bytes"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise_failure(record_path(path), error)
        return False
    return not path.is_symlink() and path.is_file() and told == (kind, path.stat().st_size)


def is_result(path: AnyPath) -> bool:
    """Whether nothing but a result stands at ``path``."""
    if is_remote(path):
        return whole_result(url_of(os.fspath(path))) is not None
    return _is(Path(path), "result")


def record_path(output: AnyPath) -> Path:
    """Where the record of an output stands: ``distances/`` -> ``distances.run.json``."""
    path = Path(output).absolute()
    return path.with_name(f"{path.name}.run.json")


def local(output: AnyPath) -> Path:
    """The path of an output that is no result. InputError for a URL."""
    refuse_remote(
        output, "only results can be written to an object store: give a path of this machine"
    )
    return Path(output)


def read_record(output: AnyPath) -> Any:
    """Read the record of an output. Raises OSError or ValueError where there is none."""
    if is_remote(output):
        return standing(url_of(os.fspath(output))).record
    return read_json(record_path(output))


def check_undamaged(output: AnyPath, record: Any) -> None:
    """InputError where a file of an output is not as its record says that it was written.

    Records of versions that kept no digests say nothing of that.
    """
    digests = record.get("files", {})
    if is_remote(output):
        damage = find_remote_damage(url_of(os.fspath(output)), digests)
    else:
        damage = _find_local_damage(Path(output), digests)
    if damage is not None:
        raise InputError(f"{output} exists already, but is damaged: {damage}; {_REPLACE}")


def _find_local_damage(path: Path, digests: Mapping[str, str]) -> str | None:
    if not digests:
        return None
    if not path.is_dir():
        if len(digests) != 1:
            return f"{path} is not a folder"
        # It may have been renamed, with its record.
        return find_damage(path.parent, dict.fromkeys([path.name], *digests.values()))
    others = sorted(file.name for file in path.iterdir() if file.name not in digests)
    if others:
        return f"{path / others[0]} does not belong to it"
    return find_damage(path, digests)


_REPLACE = "name another output, move it away, or replace it with --overwrite"


def check_output(output: AnyPath, kind: Kind, overwrite: bool, read: AnyPath | None = None) -> None:
    """Refuse an output that may not be written, before any work is done.

    overwrite: whether one of the same kind may be replaced. read: what the command reads (a path
    or a glob), which the output must neither hold nor stand in.
    """
    if kind == "result" and is_remote(output):
        check_upload(url_of(os.fspath(output)), overwrite, read)
        return
    path = local(output)
    _check_place(path, kind, lambda path: _is(path, kind), overwrite)
    record = record_path(path)
    most = os.pathconf(nearest_folder(record), "PC_NAME_MAX")
    if len(os.fsencode(record.name)) + len("..partial") > most:
        raise InputError(f"{path} cannot be written: its name is too long")
    if os.path.lexists(record) and not _is_record(record):
        raise InputError(
            f"{record} exists, and the run record would replace it: move it, or name another output"
        )
    if read is not None:
        _check_apart(path, os.fspath(read))


def check_file(
    output: AnyPath, kind: str, is_one: Callable[[Path], bool], overwrite: bool, read: AnyPath
) -> None:
    """Refuse an output that is a single file and may not be written, before any work is done.

    is_one: whether a file of its kind stands at a path. overwrite, read: see ``check_output``.
    """
    _check_place(Path(output), kind, is_one, overwrite)
    _check_apart(Path(output), os.fspath(read))


def _check_place(path: Path, kind: str, is_one: Callable[[Path], bool], overwrite: bool) -> None:
    if os.path.lexists(path):
        if not is_one(path):
            raise InputError(
                f"{path} exists and is not a {kind} that delegraph wrote: name another output, or "
                "remove it"
            )
        if not overwrite:
            raise InputError(f"{path} exists; {_REPLACE}")
    check_above(path)


def check_above(path: Path) -> None:
    """Refuse a path that no folder can be made for."""
    above = list(path.absolute().parents)
    missing = list(takewhile(lambda folder: not os.path.lexists(folder), above))
    if any(folder.name == ".." for folder in missing):
        raise InputError(f"{above[0]}: no such folder to write {path.name} into")
    if not (standing := above[len(missing)]).is_dir():
        raise InputError(f"{standing} is not a folder: {path} cannot be written in it")


@contextlib.contextmanager
def made_folders(folder: Path) -> Iterator[None]:
    """A folder for the block to write into, made with those above it that are missing.

    If the block fails, those that were made are removed, unless something is in them.
    """
    made: list[Path] = []
    try:
        try:
            for each in (*reversed(folder.parents), folder):
                if not each.is_dir() and _make_folder(each):
                    made.append(each)
                    sync_to_disk(each.parent)
        except OSError as error:
            if error.errno in FULL:
                raise
            raise_failure(folder, error)
            raise InputError(f"{folder} cannot be created: {error.strerror}") from error
        yield
    except BaseException:
        for each in reversed(made):
            with contextlib.suppress(OSError):  # another run's output may stand there by now
                each.rmdir()
        raise


def _make_folder(folder: Path) -> bool:
    """False where another run has made it meanwhile."""
    try:
        folder.mkdir()
    except FileExistsError:
        if not folder.is_dir():
            raise
        return False
    except FileNotFoundError:  # a run that failed has just removed the folder above
        folder.mkdir(parents=True, exist_ok=True)
    return True


def _check_apart(output: Path, read: str) -> None:
    if is_remote(read):
        return
    target = os.path.realpath(output)
    for name in [read] if os.path.exists(read) else glob.glob(read, recursive=True):
        real = os.path.realpath(name)
        common = os.path.commonpath([target, real])
        if common == target:
            raise InputError(f"{output} contains the input: name another output")
        if common == real:
            raise InputError(f"{output} lies in the input's folder: name another output")


def _is_record(path: Path) -> bool:
    try:
        return "schema_version" in read_json(path)
    except (OSError, ValueError, TypeError) as error:
        raise_failure(path, error)
        return False


def publish(new: Path, path: Path, kind: Kind, overwrite: bool, replaced: Path) -> None:
    """Let the folder (or file) ``new``, which is on the disk, appear as ``path``.

    What stands there by then is replaced only if ``overwrite`` is set and it is of that kind: in
    one step where the system can, so that one of them stands there at any time; else the old one
    waits in the folder ``replaced`` meanwhile.
    """
    os.chmod(new, (0o666 if kind in FILES else 0o777) & ~_umask())
    if not os.path.lexists(path):
        os.rename(new, path)
        sync_to_disk(path.parent)
        return
    if not overwrite or not _is(path, kind):
        raise DelegraphError(
            f"{path} was written by something else meanwhile, and is left as it is"
        )
    if kind in FILES:
        publish_file(new, path)
        return
    replaced.mkdir()
    write_file(_note(path, replaced), _number(new))
    sync_to_disk(replaced.parent)
    if not _exchange(new, path):
        os.rename(path, replaced / path.name)
        try:
            os.rename(new, path)
        except BaseException:
            restore_replaced(new, path, replaced)
            raise
    sync_to_disk(path.parent)
    restore_replaced(new, path, replaced)


def publish_file(new: Path, path: Path) -> None:
    """Let the file ``new``, which is on the disk, take the place of ``path``."""
    os.chmod(new, 0o666 & ~_umask())
    os.replace(new, path)
    sync_to_disk(path.parent)


def restore_replaced(new: Path, path: Path, replaced: Path) -> None:
    """End what ``publish`` began when it replaced ``path``, wherever that was cut off.

    Afterwards the old one is at ``path``, and ``new`` is as it was; or it is gone, and ``new`` at
    ``path``.
    """
    if not os.path.lexists(path) and (replaced / path.name).is_dir():
        os.rename(replaced / path.name, path)
    try:
        is_old = _note(path, replaced).read_bytes() != _number(new)
    except OSError as error:  # no note, or no such folder
        raise_failure(replaced, error)
        is_old = False
    if is_old:
        shutil.rmtree(new, ignore_errors=True)
    if not (is_old and new.exists()):
        shutil.rmtree(replaced, ignore_errors=True)


def _note(path: Path, replaced: Path) -> Path:
    """A file that tells which of two folders that may change places is the new one."""
    return replaced / f"{path.name}.inode"


def _number(path: Path) -> bytes:
    return b"%d" % path.lstat().st_ino


_HERE, _RENAME_EXCHANGE = -100, 2  # of Linux: AT_FDCWD, and what renameat2 is told


def _exchange(one: Path, other: Path) -> bool:
    """Let two folders change places in one step; False where the system cannot."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):  # not Linux
        return False
    if rename(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _RENAME_EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in (errno.ENOSYS, errno.EINVAL):  # not this kernel, or file system
        return False
    raise OSError(number, os.strerror(number), str(other))


@contextlib.contextmanager
def naming_full_disk(
    path: Path, needed: Callable[[], str], others: Callable[[], list[Path]] = list
) -> Iterator[None]:
    """Turn 'no space left' into one line that says where, what is used up, and what to do.

    others: folders beside that of ``path`` that are written to. The error's own file is named
    where it has one, else the folder that has least room.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in FULL:
            raise
        found = [Path(error.filename)] if isinstance(error.filename, str) else [path, *others()]
        place = min(map(nearest_folder, found), key=lambda place: shutil.disk_usage(place).free)
        what, remedy = _used_up(error, place)
        raise DelegraphError(
            f"no space left to write {path}: {needed()}{what}; the output was not changed: "
            f"{remedy} and run the same command again"
        ) from error


def nearest_folder(path: Path) -> Path:
    """The nearest folder above that is there: others may be removed by now, or not be made yet."""
    return next(folder for folder in path.absolute().parents if folder.is_dir())


def _used_up(error: OSError, place: Path) -> tuple[str, str]:
    """Say which resource of a folder is used up, and what to do."""
    most = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    if error.errno == errno.EFBIG:
        told = "" if most == resource.RLIM_INFINITY else f" of {most:,} bytes (ulimit -f)"
        return f"a file in {place} would exceed the limit{told} on file size", "raise the limit"
    if error.errno == errno.EDQUOT:
        return f"your quota in {place} is used up", "remove files or raise the quota,"
    disk = os.statvfs(place)
    if disk.f_files and not disk.f_favail:
        return f"{place} has no inodes left for more files", "remove files"
    free = shutil.disk_usage(place).free
    return f"{free:,} bytes are free in {place}", "free some space"


def write_file(path: Path, data: bytes) -> None:
    """Write a small file whole or not at all."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        with naming_file(path), open(partial, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
        sync_to_disk(path.parent)
    finally:
        partial.unlink(missing_ok=True)


def sync_files(folder: Path) -> None:
    """Wait until a folder and all files in it are on the disk."""
    for inner, _, names in os.walk(folder):
        for name in names:
            sync_to_disk(Path(inner, name))
        sync_to_disk(Path(inner))


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
