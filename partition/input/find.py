"""The files of an edge list: a single file, those in a folder and below it, or the matches of a
glob.

Links are followed; a folder that several links lead to is read once. Names that begin with ``_`` or
``.`` are left out, as other readers of such folders do (temporary files, markers, checksums). In
folders, files whose names are not Parquet's are left out too. All that is left out is listed, for
notes to the user. The rules are the same in object stores.

A folder of a table format that keeps a log is refused, since only the log tells which of its files
count.
"""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Iterable, Sequence
from fnmatch import fnmatch, fnmatchcase
from pathlib import Path, PurePath, PurePosixPath
from typing import NamedTuple

from ..disk.outputs import MANIFEST
from ..disk.remote import RemoteFile, check_bucket, is_file, listed
from ..disk.system_errors import raise_failure
from ..disk.urls import Url, is_remote, url_of
from ..errors import InputError
from .other_formats import advice_on_folder
from .table_formats import check_no_table, check_no_table_above, check_no_table_among

_SUFFIXES = (".parquet", ".parq", ".pq")
_ENDINGS = ".parquet, .parq or .pq"
_MAGIC = b"PAR1"
_NO_MATCH = "no file matches, and no folder with Parquet files matches"
_NO_FILES = f"the folder holds no Parquet files ({', '.join(_SUFFIXES)})"
_NAMES_TOLD = 20

MOST_OTHERS = 10_000
"""Most other files and folders in a folder, besides OTHERS_A_FILE for each Parquet file. A folder
with more is not that of an edge list.
"""
OTHERS_A_FILE = 10


class LeftOut(NamedTuple):
    """The files that are not read.

    hidden: names that begin with '_' or '.', first those that may hold edges. misnamed: files that
    begin as Parquet does, but are not named so. others: all other files (in an object store, where
    files are not opened for this: all that are not named as Parquet).
    """

    hidden: tuple[str, ...] = ()
    misnamed: tuple[str, ...] = ()
    others: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """Return a line for the user about each reason."""
        notes = []
        if self.misnamed:
            notes.append(
                f"{len(self.misnamed):,} Parquet files left out because their names do not end in "
                f"{_ENDINGS}: {some_names(self.misnamed)}; {_remedy(self.misnamed)}"
            )
        if self.hidden:
            notes.append(
                f"{len(self.hidden):,} left out because their names begin with '_' or '.': "
                f"{some_names(self.hidden)}"
            )
        if self.others:
            reason = f"their names do not end in {_ENDINGS}"
            if not is_remote(self.others[0]):
                reason = "they are not Parquet files"
            notes.append(
                f"{len(self.others):,} left out because {reason}: {some_names(self.others)}"
            )
        return tuple(notes)


NOTHING_LEFT_OUT = LeftOut()


class Found(NamedTuple):
    """The files to read, sorted, and those that are left out."""

    files: list[str]
    left_out: LeftOut


def find_files(path: str) -> Found:
    """Return the files at ``path``. The first bytes of files that are left out are read, for notes
    to the user.

    Raises InputError if there are none, if a path cannot be listed or is no regular file, and for
    tables of formats that keep a log of their files.
    """
    if is_remote(path):
        return _find_remote(url_of(path))
    if os.path.lexists(path) or not glob.has_magic(path):
        if not stat.S_ISDIR(_facts(path).st_mode):
            return Found([path], NOTHING_LEFT_OUT)
        check_no_table_above([Path(path)])
        found = _search([Path(path)])
        if not found.files:
            advice = _only(found.left_out) or advice_on_folder(_names(Path(path)))
            raise InputError(f"{path}: {_NO_FILES}{advice}")
        return found
    matches = sorted(map(Path, _expand(path)))
    hidden = [match for match in matches if _is_hidden(match, path)]
    found = _search([match for match in matches if match not in hidden])
    check_no_table_above(sorted({Path(name).parent for name in found.files}))
    if not found.files:
        raise InputError(f"{path}: {_NO_MATCH}{_only(found.left_out)}")
    hidden_names = {*map(str, hidden), *found.left_out.hidden}
    return Found(found.files, found.left_out._replace(hidden=_likely_first(hidden_names)))


def check_regular(path: str) -> None:
    """Raise InputError unless a local path leads to a regular file, which can be opened without
    waiting.
    """
    if stat.S_ISDIR(_facts(path).st_mode):
        raise InputError(f"{path} is a folder: name a file")


def _search(places: list[Path]) -> Found:
    """Return the files among the places, whatever their names, and the files in folders that are
    named as Parquet.
    """
    files, seen = set(), set()
    hidden: set[str] = set()
    other_files: set[str] = set()
    named = 0  # listed files that are named as Parquet
    waiting = places[::-1]
    while waiting:
        place = waiting.pop()
        facts = _facts(place)
        if not stat.S_ISDIR(facts.st_mode):
            files.add(str(place))
        elif (facts.st_dev, facts.st_ino) not in seen:  # links may form a cycle
            seen.add((facts.st_dev, facts.st_ino))
            names = _names(place)
            check_no_table(place, names)
            for name in reversed(names):
                inside = place / name
                if name[0] in "._":
                    hidden.add(str(inside))
                elif _is_parquet(inside):
                    named += 1
                    waiting.append(inside)
                elif stat.S_ISDIR(_facts(inside, False).st_mode):
                    waiting.append(inside)
                else:
                    other_files.add(str(inside))
            most = MOST_OTHERS + OTHERS_A_FILE * named
            if len(hidden) + len(other_files) + len(seen) > most:
                raise InputError(
                    f"{places[0]}: {named:,} Parquet files found, and more than {most:,} other "
                    "files and folders: name the folder of the edge list, or select the files with "
                    f"a pattern such as '{places[0] / '**' / '*.parquet'}'"
                )
    misnamed = {name for name in other_files if _begins_as_parquet(name)}
    left_out = LeftOut(
        _likely_first(hidden), tuple(sorted(misnamed)), tuple(sorted(other_files - misnamed))
    )
    return Found(sorted(files), left_out)


def _likely_first(hidden: set[str]) -> tuple[str, ...]:
    """Return the names sorted, first those that may hold edges."""
    return tuple(sorted(hidden, key=lambda name: (not _may_hold_edges(Path(name)), name)))


def _begins_as_parquet(name: str) -> bool:
    """Return whether a file's first bytes are Parquet's; False if it cannot be read."""
    try:
        if not stat.S_ISREG(os.stat(name).st_mode):
            return False
        with open(name, "rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


def _only(left_out: LeftOut) -> str:
    """Return advice about a folder whose only files are misnamed ones."""
    if not left_out.misnamed:
        return ""
    return (
        f"; {len(left_out.misnamed):,} Parquet files have names with another ending: "
        f"{some_names(left_out.misnamed)}; {_remedy(left_out.misnamed)}"
    )


def _remedy(misnamed: tuple[str, ...]) -> str:
    return f"rename them, or select them with a pattern such as '{Path(misnamed[0]).parent / '*'}'"


def some_names(names: Sequence[str]) -> str:
    """Return the first few names as text, and the number of the others."""
    omitted = len(names) - _NAMES_TOLD
    return ", ".join(names[:_NAMES_TOLD]) + (f" and {omitted:,} more" if omitted > 0 else "")


def _find_remote(url: Url) -> Found:
    """Return the files of a folder, a glob or an object. For a glob, all names below its first
    pattern are listed.
    """
    if url.key and is_file(url):
        return Found([str(url)], NOTHING_LEFT_OUT)
    base, pattern = _split(url)
    entries = listed(base, recursive=True)
    if not entries:
        check_bucket(url)
        raise InputError(f"{url}: no such file or folder")
    if any(entry.name == MANIFEST for entry in entries):
        raise InputError(f"{url} is a store: copy it to a disk of this machine first")
    files, hidden_places, other_names = [], set(), []
    for name in (entry.name for entry in entries if entry.bytes is not None):
        below = name.split("/")
        matched = _matched(below, pattern)
        if matched is None:
            continue
        asked = [part for part in pattern if part[0] in "._"]
        hidden = next((i for i, part in enumerate(below) if _is_left_out(part, asked)), None)
        if hidden is not None:
            place = PurePosixPath(*below[: max(matched, hidden + 1)])
            hidden_places.add((str(place) == name and not _is_parquet(place), str(place)))
        elif _is_parquet(PurePosixPath(name)) or matched == len(below):
            files.append(name)
        else:
            other_names.append(name)
    check_no_table_among(base, [entry.name for entry in entries], files)
    if not files:
        raise InputError(f"{url}: {_NO_MATCH if pattern else _NO_FILES}")

    def urls(names: Iterable[str]) -> tuple[str, ...]:
        return tuple(str(base.inside(name)) for name in names)

    hidden = urls(name for _, name in sorted(hidden_places))
    return Found(list(urls(sorted(files))), LeftOut(hidden, (), urls(sorted(other_names))))


def facts_of_remote(name: str) -> list[str]:
    """Return name, bytes and time of each object at a URL: a single object, a folder's objects, or
    a glob's.
    """
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
    """Return the folder in which a glob's patterns begin, and the parts of the glob below it."""
    parts = url.key.split("/")
    plain = next((i for i, part in enumerate(parts) if glob.has_magic(part)), len(parts))
    return url._replace(key="/".join(parts[:plain])), parts[plain:]


def _matched(names: list[str], pattern: list[str]) -> int | None:
    """Return the most leading names that a pattern matches; the other names are inside that folder.
    None if the pattern does not match.

    >>> _matched(["2024", "a.parquet"], ["20*"]), _matched(["a", "b", "c"], ["**", "c"])
    (1, 3)
    """
    if not pattern:
        return 0
    if pattern[0] == "**":
        deep = next((i for i, name in enumerate(names) if name[0] == "."), len(names))
        counts = [_matched(names[i:], pattern[1:]) for i in range(deep + 1)]
        return max((i + count for i, count in enumerate(counts) if count is not None), default=None)
    if not names or not fnmatchcase(names[0], pattern[0]):
        return None
    if names[0][0] == "." != pattern[0][0]:
        return None
    count = _matched(names[1:], pattern[1:])
    return None if count is None else 1 + count


def _expand(pattern: str) -> list[str]:
    """Return the matches of a glob. Raises InputError for a folder that cannot be listed, which
    Python's glob would skip silently.
    """
    for part in (Path(pattern), *Path(pattern).parents):
        if glob.has_magic(part.name):
            above = part if part.name == "**" else part.parent
            for folder in glob.glob(str(above), recursive=True):
                if os.path.isdir(folder):
                    _names(Path(folder))
    return glob.glob(pattern, recursive=True)


def _is_hidden(match: Path, pattern: str) -> bool:
    """Return whether a name in a match begins with ``_`` or ``.``, and the pattern does not ask for
    it.
    """
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
        raise_failure(folder, error)
        raise InputError(f"{folder}: the folder cannot be listed: {error.strerror}") from error


def _facts(path: str | Path, to_read: bool = True) -> os.stat_result:
    """Return the stat of a folder or regular file at a path, following links."""
    try:
        facts = os.stat(path)
    except FileNotFoundError as error:
        found = "a broken symbolic link" if os.path.islink(path) else "no such file or folder"
        raise InputError(f"{path}: {found}") from error
    except (OSError, ValueError) as error:
        raise_failure(path, error)
        raise InputError(f"{path}: cannot be read: {error}") from error
    if to_read and not (stat.S_ISDIR(facts.st_mode) or stat.S_ISREG(facts.st_mode)):
        raise InputError(
            f"{path} is not a regular file (it is a pipe, a socket or a device): write the data to "
            "a file first"
        )
    return facts
