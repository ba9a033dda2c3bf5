"""The files of an edge list: one, those of a folder and of all below it, or what a glob matches.

Links are followed; a folder that several lead to is read once. Names that begin with ``_`` or ``.``
are left out, as other readers of such folders do (temporary files, markers, checksums). Those that
may hold edges are listed, so that people can be told. In an object store it is the same.
"""

from __future__ import annotations

import glob
import os
import stat
from fnmatch import fnmatch, fnmatchcase
from pathlib import Path, PurePath, PurePosixPath
from typing import NamedTuple

from ..disk.outputs import MANIFEST
from ..disk.remote import RemoteFile, check_bucket, is_file, listed
from ..disk.urls import Url, is_remote, url_of
from ..errors import InputError
from .other_formats import advice_on_folder

_SUFFIXES = (".parquet", ".parq", ".pq")
_NO_MATCH = "no file matches, and no folder that holds Parquet files"
_NO_FILES = f"the folder holds no Parquet files ({', '.join(_SUFFIXES)})"


class Found(NamedTuple):
    """files: sorted. left_out: files and folders that would be read under another name."""

    files: list[str]
    left_out: list[str]


def find_files(path: str) -> Found:
    """The files at ``path``; none is opened.

    Raises InputError where there are none, and for what cannot be listed or is no regular file.
    """
    if is_remote(path):
        return _find_remote(url_of(path))
    if os.path.lexists(path) or not glob.has_magic(path):
        if not stat.S_ISDIR(_facts(path).st_mode):
            return Found([path], [])
        found = _search([Path(path)])
        if not found.files:
            raise InputError(f"{path}: {_NO_FILES}{advice_on_folder(_names(Path(path)))}")
        return found
    matches = sorted(map(Path, _expand(path)))
    hidden = [match for match in matches if _is_hidden(match, path)]
    found = _search([match for match in matches if match not in hidden])
    if not found.files:
        raise InputError(f"{path}: {_NO_MATCH}")
    left_out = {str(match) for match in hidden if _may_hold_edges(match)}
    return Found(found.files, sorted(left_out.union(found.left_out)))


def _search(places: list[Path]) -> Found:
    """Files, whatever their names, and those in folders that are Parquet by name."""
    files, left_out, seen = set(), set(), set()
    waiting = places[::-1]
    while waiting:
        place = waiting.pop()
        facts = _facts(place)
        if not stat.S_ISDIR(facts.st_mode):
            files.add(str(place))
        elif (facts.st_dev, facts.st_ino) not in seen:  # links may lead round in a circle
            seen.add((facts.st_dev, facts.st_ino))
            for name in reversed(_names(place)):
                inside = place / name
                if name[0] in "._":
                    if _may_hold_edges(inside):
                        left_out.add(str(inside))
                elif _is_parquet(inside) or stat.S_ISDIR(_facts(inside, False).st_mode):
                    waiting.append(inside)
    return Found(sorted(files), sorted(left_out))


def _find_remote(url: Url) -> Found:
    """Of a folder, a glob, or just the object. A glob lists all that is below its first pattern."""
    if url.key and is_file(url):
        return Found([str(url)], [])
    base, pattern = _split(url)
    entries = listed(base, recursive=True)
    if not entries:
        check_bucket(url)
        raise InputError(f"{url}: no such file or folder")
    if any(entry.name == MANIFEST for entry in entries):
        raise InputError(f"{url} is a store: these are read from a disk of this machine: copy it")
    files, left_out = [], set()
    for name in (entry.name for entry in entries if entry.bytes is not None):
        below = name.split("/")
        matched = _matched(below, pattern)
        if matched is None:
            continue
        asked = [part for part in pattern if part[0] in "._"]
        hidden = next((i for i, part in enumerate(below) if _is_left_out(part, asked)), None)
        if hidden is not None:
            place = PurePosixPath(*below[: max(matched, hidden + 1)])
            if str(place) != name or _is_parquet(place):
                left_out.add(str(base.inside(str(place))))
        elif _is_parquet(PurePosixPath(name)) or matched == len(below):
            files.append(name)
    if not files:
        raise InputError(f"{url}: {_NO_MATCH if pattern else _NO_FILES}")
    return Found([str(base.inside(name)) for name in sorted(files)], sorted(left_out))


def facts_of_remote(name: str) -> list[str]:
    """Name, bytes and time of each object that a URL leads to: just that, a folder's, a glob's."""
    url = url_of(name)
    if url.key and is_file(url):
        return [f"{name} {RemoteFile(name).state}"]
    base, pattern = _split(url)
    return [
        f"{entry.name} {entry.bytes} {entry.modified}"
        for entry in listed(base, recursive=True)
        if entry.bytes is not None and _matched(entry.name.split("/"), pattern) is not None
    ]


def _split(url: Url) -> tuple[Url, list[str]]:
    """A folder, and what of a glob is below it."""
    parts = url.key.split("/")
    plain = next((i for i, part in enumerate(parts) if glob.has_magic(part)), len(parts))
    return url._replace(key="/".join(parts[:plain])), parts[plain:]


def _matched(names: list[str], pattern: list[str]) -> int | None:
    """How many names a pattern matches, from the first on, at most: the others stand in that
    folder. None: it does not.

    >>> _matched(["2024", "a.parquet"], ["20*"]), _matched(["a", "b", "c"], ["**", "c"])
    (1, 3)
    """
    if not pattern:
        return 0
    if pattern[0] == "**":
        deep = next((i for i, name in enumerate(names) if name[0] == "."), len(names))
        every = [_matched(names[i:], pattern[1:]) for i in range(deep + 1)]
        return max((i + more for i, more in enumerate(every) if more is not None), default=None)
    if not names or not fnmatchcase(names[0], pattern[0]):
        return None
    if names[0][0] == "." != pattern[0][0]:
        return None
    more = _matched(names[1:], pattern[1:])
    return None if more is None else 1 + more


def _expand(pattern: str) -> list[str]:
    """What a glob matches. Raises InputError for a folder that glob would pass over unsaid."""
    for part in (Path(pattern), *Path(pattern).parents):
        if glob.has_magic(part.name):
            above = part if part.name == "**" else part.parent
            for folder in glob.glob(str(above), recursive=True):
                if os.path.isdir(folder):
                    _names(Path(folder))
    return glob.glob(pattern, recursive=True)


def _is_hidden(match: Path, pattern: str) -> bool:
    """Whether one of a match's names begins with ``_`` or ``.`` and was not asked for so."""
    asked = [part for part in Path(pattern).parts if part[0] in "._"]
    return any(_is_left_out(name, asked) for name in match.parts)


def _is_left_out(name: str, asked: list[str]) -> bool:
    return name[0] in "._" and not any(fnmatch(name, part) for part in asked)


def _is_parquet(path: PurePath) -> bool:
    return path.suffix.lower() in _SUFFIXES


def _may_hold_edges(path: Path) -> bool:
    return _is_parquet(path) or path.is_dir()


def _names(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries)
    except OSError as error:
        raise InputError(f"{folder}: the folder cannot be listed: {error.strerror}") from error


def _facts(path: str | Path, to_read: bool = True) -> os.stat_result:
    """Of what stands at a path or what a link there leads to, a folder or a regular file."""
    try:
        facts = os.stat(path)
    except FileNotFoundError as error:
        found = "a link that leads nowhere" if os.path.islink(path) else "no such file or folder"
        raise InputError(f"{path}: {found}") from error
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error
    if to_read and not (stat.S_ISDIR(facts.st_mode) or stat.S_ISREG(facts.st_mode)):
        raise InputError(
            f"{path} is no regular file (a pipe, a socket or a device): Parquet is read from its "
            "end; write it to a file first"
        )
    return facts
