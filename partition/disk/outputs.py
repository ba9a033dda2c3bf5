"""Outputs: folders that appear whole or not at all, and that replace only outputs of their own
kind.

A folder is written under a temporary name beside its final path (work.py). When it is complete and
on the disk, it is renamed, or swapped with the output that it replaces. Missing parent folders are
made. Only outputs with delegraph's mark may be replaced: a store has its manifest, a folder of
Parquet files an entry in the key-value metadata of each file. An output that is a single file is
recognized by the record beside it. Results may also appear in an object store (uploads.py); all
other outputs are on this machine.
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

Kind = Literal["store", "result", "edge list", "table of blocks", "supersteps", "matrix", "text"]
FILES = ("matrix", "text")
"""Kinds of outputs that are single files. A mark does not fit into them, so the record beside them
tells their kind.
"""

MANIFEST = "manifest.json"
STORE_FORMAT = "delegraph store"
_MARK = b"delegraph"


def mark(kind: Kind, **facts: Any) -> dict[bytes, bytes]:
    """Return key-value metadata for the Parquet files of an output."""
    return {_MARK: json.dumps({"kind": kind, **facts}).encode()}


def facts_of(metadata: dict[bytes, bytes] | None, kind: Kind) -> dict[str, Any] | None:
    """Return the facts given to ``mark`` for a file of that kind; None if the file has no such
    mark.
    """
    try:
        facts = json.loads((metadata or {})[_MARK])
        return facts if facts.pop("kind") == kind else None
    except (KeyError, ValueError, TypeError, AttributeError):
        return None


def is_store(path: AnyPath) -> bool:
    """Return whether a folder is a store, or was one: its manifest may be damaged or missing."""
    if is_remote(path):  # stores are not read from object stores
        return False
    parts = [Path(path, name) for name in ("vertices.parquet", "partition-0000")]
    return _has_mark(Path(path)) or all(os.path.lexists(part) for part in parts)


def _has_mark(path: Path) -> bool:
    """Return whether a folder has the manifest of a store, which may be damaged."""
    try:
        with open(open_regular(path / MANIFEST), "rb") as file:
            return STORE_FORMAT.encode() in file.read(100)
    except OSError as error:
        raise_failure(path / MANIFEST, error)
        return False


def _is(path: Path, kind: Kind) -> bool:
    """Return whether ``path`` is an output of that kind, without foreign files."""
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
    """Return whether a file has the kind and size that the record beside it states."""
    try:
        record = read_json(record_path(path))
        told = record["written"], record["bytes"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise_failure(record_path(path), error)
        return False
    return not path.is_symlink() and path.is_file() and told == (kind, path.stat().st_size)


def is_result(path: AnyPath) -> bool:
    """Return whether ``path`` is a result, without foreign files."""
    if is_remote(path):
        return whole_result(url_of(os.fspath(path))) is not None
    return _is(Path(path), "result")


def record_path(output: AnyPath) -> Path:
    """Return the path of an output's record: ``distances/`` -> ``distances.run.json``."""
    path = Path(output).absolute()
    return path.with_name(f"{path.name}.run.json")


def local(output: AnyPath) -> Path:
    """Return the path of an output that is no result. Raises InputError for a URL."""
    refuse_remote(
        output, "only results can be written to an object store: give a path of this machine"
    )
    return Path(output)


def read_record(output: AnyPath) -> Any:
    """Return the record of an output. Raises OSError or ValueError if there is none."""
    if is_remote(output):
        return standing(url_of(os.fspath(output))).record
    return read_json(record_path(output))


def check_undamaged(output: AnyPath, record: Any) -> None:
    """Raise InputError if a file of an output does not match the digest in its record.

    Records of older versions have no digests, so their outputs pass.
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
        # The file may have been renamed, with its record.
        return find_damage(path.parent, dict.fromkeys([path.name], *digests.values()))
    strays = sorted(file.name for file in path.iterdir() if file.name not in digests)
    if strays:
        return f"{path / strays[0]} does not belong to it"
    return find_damage(path, digests)


_REPLACE = "name another output, move it away, or replace it with --overwrite"


def check_output(output: AnyPath, kind: Kind, overwrite: bool, read: AnyPath | None = None) -> None:
    """Raise InputError for an output that may not be written, before any work is done.

    overwrite: whether an output of the same kind may be replaced. read: the input (a path or a
    glob), which must be neither inside the output nor contain it.
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
    """Raise InputError for an output that is a single file and may not be written, before any work
    is done.

    is_one: returns whether a path is a file of its kind. overwrite, read: see ``check_output``.
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
    """Raise InputError for a path whose parent folder cannot be made."""
    above = list(path.absolute().parents)
    missing = list(takewhile(lambda folder: not os.path.lexists(folder), above))
    if any(folder.name == ".." for folder in missing):
        raise InputError(f"{above[0]}: no such folder to write {path.name} into")
    if not (standing := above[len(missing)]).is_dir():
        raise InputError(f"{standing} is not a folder: {path} cannot be written in it")


@contextlib.contextmanager
def made_folders(folder: Path) -> Iterator[None]:
    """Make a folder, with its missing parents, for the block to write into.

    If the block fails, the new folders are removed, unless they hold files.
    """
    made: list[Path] = []
    try:
        try:
            for place in (*reversed(folder.parents), folder):
                if not place.is_dir() and _make_folder(place):
                    made.append(place)
                    sync_to_disk(place.parent)
        except OSError as error:
            if error.errno in FULL:
                raise
            raise_failure(folder, error)
            raise InputError(f"{folder} cannot be created: {error.strerror}") from error
        yield
    except BaseException:
        for place in reversed(made):
            with contextlib.suppress(OSError):  # another run's output may be there by now
                place.rmdir()
        raise


def _make_folder(folder: Path) -> bool:
    """Make a folder. Returns False if another run has made it meanwhile."""
    try:
        folder.mkdir()
    except FileExistsError:
        if not folder.is_dir():
            raise
        return False
    except FileNotFoundError:  # a run that has just failed removed the parent folder
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
    """Make the folder (or file) ``new``, which is on the disk, appear as ``path``.

    An output that is there by then is replaced only if ``overwrite`` is set and it is of that kind.
    If the system can swap the two in one step, one of them is at ``path`` at any time; otherwise
    the old one is kept in the folder ``replaced`` meanwhile.
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
    """Make the file ``new``, which is on the disk, replace ``path``."""
    os.chmod(new, 0o666 & ~_umask())
    os.replace(new, path)
    sync_to_disk(path.parent)


def restore_replaced(new: Path, path: Path, replaced: Path) -> None:
    """Finish a replacement that ``publish`` began, wherever it was cut off.

    Afterwards either the old output is at ``path``, and ``new`` is unchanged; or ``new`` is at
    ``path``, and the old output is gone.
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
    """Return the path of a file that tells which of two folders that may have been swapped is the
    new one.
    """
    return replaced / f"{path.name}.inode"


def _number(path: Path) -> bytes:
    return b"%d" % path.lstat().st_ino


_HERE, _RENAME_EXCHANGE = -100, 2  # Linux's AT_FDCWD, and its flag for renameat2


def _exchange(first: Path, second: Path) -> bool:
    """Swap two folders in one step. Returns False if the system cannot."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):  # not Linux
        return False
    if rename(_HERE, os.fsencode(first), _HERE, os.fsencode(second), _RENAME_EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in (errno.ENOSYS, errno.EINVAL):  # not this kernel, or file system
        return False
    raise OSError(number, os.strerror(number), str(second))


@contextlib.contextmanager
def naming_full_disk(
    path: Path, needed: Callable[[], str], folders: Callable[[], list[Path]] = list
) -> Iterator[None]:
    """Turn 'no space left' into a DelegraphError of one line that names the place, the resource
    that is used up, and a remedy.

    folders: those, besides that of ``path``, that are written to. If the error names its file,
    that file's place is reported; otherwise the folder with the least free space.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in FULL:
            raise
        found = [Path(error.filename)] if isinstance(error.filename, str) else [path, *folders()]
        place = min(map(nearest_folder, found), key=lambda place: shutil.disk_usage(place).free)
        what, remedy = _used_up(error, place)
        raise DelegraphError(
            f"no space left to write {path}: {needed()}{what}; the output was not changed: "
            f"{remedy} and run the same command again"
        ) from error


def nearest_folder(path: Path) -> Path:
    """Return the nearest parent folder that exists: others may be removed by now, or not made
    yet.
    """
    return next(folder for folder in path.absolute().parents if folder.is_dir())


def _used_up(error: OSError, place: Path) -> tuple[str, str]:
    """Return which resource of a folder is used up, and the remedy."""
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
    """Write a small file, which appears whole and on the disk or not at all."""
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
