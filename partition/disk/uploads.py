"""Results in an object store. An object appears there at once, but a folder never does.

    OUT/part-00000-ID.parquet ...   ID: of the run that wrote the part
    OUT/_begun-ID                   from before the run's first part until its end; names the parts
                                    that the run replaces
    OUT/_SUCCESS                    names the parts, with their bytes, and holds the run's record
    OUT.run.json                    the same record

The parts of a result are those that ``_SUCCESS`` names. It is written when all parts are there, and
replaces the old parts by the new ones at one moment; the old parts are removed afterwards. A run
that is cut off leaves ``_begun-ID``, by which the next run knows what to remove. (Azure's store,
through Arrow, first empties an object that it replaces: for that moment there is no result.)
"""

from __future__ import annotations

import contextlib
import json
import secrets
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import BusyError, DelegraphError, InputError
from .digests import digest_of_stream
from .remote import check_bucket, is_file, listed, open_file, put, read_small, remove, upload
from .urls import AnyPath, Url, is_remote, url_of

_SUCCESS = "_SUCCESS"
_BEGUN = "_begun-"
_WRITER = "delegraph"
_LOOKS = 3


class Standing(NamedTuple):
    """The objects of an output. parts: bytes of the result's parts by name; None if there is no
    result. missing: parts that are gone, or of another size. record: of its run. remains: names
    left by a run that was cut off. strange: names that no delegraph run left.
    """

    parts: dict[str, int] | None
    missing: list[str]
    record: Any
    remains: list[str]
    strange: list[str]


def standing(url: Url, looks: int = _LOOKS) -> Standing:
    """Return the objects of an output. Raises InputError if the bucket does not exist or may not be
    read.

    looks: how often to look, if the result is being replaced meanwhile.
    """
    told = _told(url)  # read first, since parts are written before it
    there = {entry.name: entry.bytes for entry in listed(url)}
    if not there:
        check_bucket(url)
    parts: dict[str, int] | None = told.get("files")
    missing = [name for name, size in (parts or {}).items() if there.get(name) != size]
    if missing and looks > 1:
        return standing(url, looks - 1)
    begun = [name.removeprefix(_BEGUN) for name in there if name.startswith(_BEGUN)]
    ours = {name for name in there for run in begun if _is_of(name, run)}
    for run in begun:
        ours.update(_document(url.inside(_BEGUN + run)).get("replaces", []))
    if begun and there.get(_SUCCESS) == 0:
        ours.add(_SUCCESS)
    known = {_SUCCESS, *parts} if parts is not None else set()
    remains = there.keys() & ours - known
    strange = there.keys() - remains - known
    if is_file(url):
        strange.add(url.name)
    return Standing(parts, missing, told.get("record"), sorted(remains), sorted(strange))


def _told(url: Url) -> dict[str, Any]:
    """Return the content of ``_SUCCESS``; an empty dict if another program wrote it."""
    document = _document(url.inside(_SUCCESS))
    return document if isinstance(document.get("files"), dict) else {}


def _document(url: Url) -> dict[str, Any]:
    """Return the document that a delegraph run wrote at a URL; an empty dict if none did."""
    try:
        document = json.loads(read_small(url) or b"")
        return document if document["writer"] == _WRITER else {}
    except (ValueError, KeyError, TypeError):
        return {}


def _is_of(name: str, run: str) -> bool:
    return name == _BEGUN + run or fnmatchcase(name, f"part-*-{run}.parquet")


def whole_result(url: Url) -> Standing | None:
    """Return the objects at a URL if they are a result without foreign objects; otherwise None."""
    if not url.key:
        return None
    there = standing(url)
    return None if there.parts is None or there.strange else there


def files_of(url: Url) -> dict[str, int]:
    """Return the URLs of a result's Parquet files, with their bytes, whichever program wrote it.

    Raises InputError for a result that is not whole.
    """
    there = standing(url)
    if there.missing:
        raise InputError(
            f"{url}: damaged: {there.missing[0]} is listed in _SUCCESS, but is missing or has "
            "another size: write the result again"
        )
    if there.parts is not None:
        return {str(url.inside(name)): size for name, size in sorted(there.parts.items())}
    if any(name.startswith(_BEGUN) for name in there.remains):
        raise InputError(
            f"{url}: no complete result: a run was interrupted there, or is still writing"
        )
    names = {entry.name: entry.bytes for entry in listed(url)}
    found = {name: size for name, size in names.items() if name.endswith(".parquet") and size}
    return {str(url.inside(name)): size for name, size in found.items()}


def find_remote_damage(url: Url, digests: Mapping[str, str]) -> str | None:
    """Describe the first part that does not match its digest; None if all match.

    digests: of the parts, by the names that they had on the machine that wrote them.
    """
    names = sorted(standing(url).parts or {})
    if len(names) != len(digests):
        return f"{url} has {len(names):,} parts, but {len(digests):,} were written"
    for name, wanted in zip(names, [digests[name] for name in sorted(digests)], strict=False):
        part = url.inside(name)
        with contextlib.closing(open_file(str(part))) as stream:
            digest = digest_of_stream(stream)
        if digest != wanted:
            return f"{part} has changed since it was written"
    return None


def record_url(url: Url) -> Url:
    """Return the URL of an output's record."""
    return url._replace(key=f"{url.key}.run.json")


def check_upload(url: Url, overwrite: bool, read: AnyPath | None) -> None:
    """Raise InputError for a result that may not be written, as ``outputs.check_output`` does."""
    if not url.key:
        raise InputError(f"{url}: the URL names only a bucket: name a folder in it")
    there = standing(url)
    _check_place(url, there, overwrite)
    record = read_small(record_url(url))
    if record is not None and not _is_record(record):
        raise InputError(
            f"{record_url(url)} exists, and the run record would replace it: name another output"
        )
    if read is not None and is_remote(str(read)):
        _check_apart(url, url_of(str(read)))


def _check_place(url: Url, there: Standing, overwrite: bool) -> None:
    if there.strange:
        raise InputError(
            f"{url} exists and is not a result that delegraph wrote: name another output, or "
            "remove it"
        )
    if there.parts is not None and not overwrite:
        raise InputError(
            f"{url} exists; name another output, move it away, or replace it with --overwrite"
        )


def _is_record(data: bytes) -> bool:
    try:
        return "schema_version" in json.loads(data)
    except (ValueError, TypeError):
        return False


def _check_apart(output: Url, read: Url) -> None:
    """Raise InputError if the output contains the input or is inside it. read: the input, which may
    be a glob.
    """
    if (output.scheme, output.bucket) != (read.scheme, read.bucket):
        return
    ours, theirs = output.key.split("/"), read.key.split("/") if read.key else []
    if "**" in theirs:
        theirs = theirs[: theirs.index("**")]
    if all(fnmatchcase(name, asked) for name, asked in zip(ours, theirs, strict=False)):
        if len(ours) <= len(theirs):
            raise InputError(f"{output} contains the input: name another output")
        raise InputError(f"{output} lies in the input's folder: name another output")


def publish_result(folder: Path, url: Url, overwrite: bool, record: bytes) -> None:
    """Make the files in a local folder appear as the result ``url``, with its record.

    Raises DelegraphError if something else was written there meanwhile, BusyError if a written part
    has vanished.
    """
    there = standing(url)
    if there.strange or (there.parts is not None and not overwrite):
        raise DelegraphError(f"{url} was written by something else meanwhile, and is left as it is")
    run = secrets.token_hex(8)
    begun = url.inside(_BEGUN + run)
    put(begun, _encoded({"replaces": sorted(there.parts or {})}))
    _remove(url, there.remains)
    parts: dict[str, int] = {}
    for file in sorted(folder.iterdir()):
        name = f"{file.stem}-{run}{file.suffix}"
        upload(file, url.inside(name))
        parts[name] = file.stat().st_size
    sizes = {entry.name: entry.bytes for entry in listed(url)}
    if any(sizes.get(name) != size for name, size in parts.items()):
        raise BusyError(f"{url}: a written part is missing: does another run write there, too?")
    put(url.inside(_SUCCESS), _encoded({"files": parts, "record": json.loads(record)}))
    put(record_url(url), record)
    _remove(url, [*(there.parts or {}), begun.name])


def _encoded(document: dict[str, Any]) -> bytes:
    return json.dumps({"writer": _WRITER, **document}, indent=1).encode() + b"\n"


def _remove(url: Url, names: list[str]) -> None:
    """Remove objects; the ``_begun`` notes, which tell what else to remove, go last."""
    for name in sorted(names, key=lambda name: name.startswith(_BEGUN)):
        remove(url.inside(name))


def clear_remains(url: Url) -> None:
    """Finish the cleaning of a run that was cut off after its result was whole."""
    there = standing(url)
    if there.remains and there.parts is not None:
        put(record_url(url), json.dumps(there.record, indent=1).encode() + b"\n")
        _remove(url, there.remains)
