"""Files in object stores, through Arrow's file systems: reading in parts, listing, writing,
removing.

The libraries below retry requests that a store cannot answer at the moment. A request that they
give up raises an error of one line: InputError if it would fail again, BusyError if another try may
help. Every request has a time limit. URLs find credentials as Arrow does, in the environment or
from the machine, so a URL alone is enough to open a file, on workers too.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, TypeVar, cast

from ..errors import BusyError, InputError, one_line
from .system_errors import naming_file
from .urls import AnyPath, Url, is_remote, url_of

if TYPE_CHECKING:
    from collections.abc import Buffer

    from pyarrow.fs import FileInfo, FileSystem

T = TypeVar("T")

ATTEMPTS = 5
"""Number of attempts of a request, with pauses that grow to seconds."""
CONNECT_SECONDS = 10.0
SILENCE_SECONDS = 30.0
"""Seconds without a byte after which an attempt has failed."""
ANSWER_SECONDS = 300.0
"""Seconds for a request with all its attempts, however slowly its bytes arrive."""

READ_BYTES = 1 << 20  # read at once of a column chunk, since a row group may exceed memory
REMOTE_BYTES = 4 << 20
"""Bytes read at once of a column chunk in an object store, where each request takes long."""
AHEAD_BYTES = 256 << 10
"""Bytes that are read ahead where small pieces are read: footers, headers of pages."""
_MOST_BYTES = 8 << 20
"""Most bytes of a request, so that it ends within its time limit."""


class State(NamedTuple):
    """The state of a file. modified: its modification time, in nanoseconds. tag: the object store's
    tag of its content; empty for a path.
    """

    bytes: int
    modified: int
    tag: str = ""


class Entry(NamedTuple):
    """An entry of a listing: its name below the folder, its bytes (None for a folder), and its
    modification time in nanoseconds.
    """

    name: str
    bytes: int | None
    modified: int = 0


class RemoteFile(io.RawIOBase):
    """A file in an object store that can be read from any position. name: its URL."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._url = url_of(name)
        self._file = ask(self._url, lambda system, path: system.open_input_file(path))
        self._size: int = ask(self._url, self._length)
        self._at = 0
        self._ahead, self._ahead_at = b"", 0

    def _length(self, system: FileSystem, path: str) -> int:
        if self._url.scheme == "gs":  # its files' calls would hold the interpreter's lock
            return system.get_file_info(path).size or 0
        return self._file.size()

    @property
    def state(self) -> State:
        metadata = {} if self._url.scheme == "gs" else self._file.metadata() or {}
        told = {_text(key).lower(): _text(value) for key, value in metadata.items()}
        return State(self._size, self._modified(told), told.get("etag", ""))

    def _modified(self, told: dict[str, str]) -> int:
        try:
            when = datetime.fromisoformat(told["last-modified"])
            return round(when.timestamp()) * 10**9
        except (KeyError, ValueError):
            info = ask(self._url, lambda system, path: system.get_file_info(path))
            return info.mtime_ns or 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        if start + offset < 0:
            raise OSError(f"{self.name}: no byte {start + offset}")
        self._at = start + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, size: int | None = -1, /) -> bytes:
        left = max(0, self._size - self._at)
        size = left if size is None or size < 0 else min(size, left)
        data = self._part(self._at, size)
        self._at += len(data)
        return data

    def readinto(self, buffer: Buffer, /) -> int:
        view = memoryview(buffer).cast("B")
        data = self.read(min(len(view), _MOST_BYTES))
        view[: len(data)] = data
        return len(data)

    def _part(self, at: int, size: int) -> bytes:
        if not size:
            return b""
        if size >= AHEAD_BYTES:
            parts = range(at, at + size, _MOST_BYTES)
            return b"".join(self._get(i, min(_MOST_BYTES, at + size - i)) for i in parts)
        if not self._ahead_at <= at <= at + size <= self._ahead_at + len(self._ahead):
            self._ahead = b""
            self._ahead = self._get(at, min(AHEAD_BYTES, self._size - at))
            self._ahead_at = at
        return self._ahead[at - self._ahead_at :][:size]

    def _get(self, at: int, size: int) -> bytes:
        data = ask(self._url, lambda system, path: self._file.read_at(size, at))
        if len(data) != size:
            raise _changed(self._url)
        return data


Source = str | RemoteFile
"""The argument that ``pq.ParquetFile`` gets: a path, or an open file in an object store."""


def source_of(name: AnyPath) -> Source:
    return RemoteFile(str(name)) if is_remote(name) else os.fspath(name)


def opened(source: Source) -> BinaryIO:
    """Return a file to read bytes from. The caller closes it, which has no effect on a file in an
    object store.
    """
    if isinstance(source, RemoteFile):
        return cast(BinaryIO, source)
    return open(source, "rb")


def open_file(name: AnyPath) -> BinaryIO:
    return opened(source_of(name))


def state_of(source: Source) -> State:
    """Return the state of a file. Raises OSError if a path leads nowhere; for an object store,
    InputError.
    """
    if isinstance(source, RemoteFile):
        return source.state
    facts = os.stat(source)
    return State(facts.st_size, facts.st_mtime_ns)


def buffer_size(name: AnyPath) -> int:
    """Return the bytes of the buffer through which Arrow reads a column."""
    return REMOTE_BYTES if is_remote(name) else READ_BYTES


def buffer_bytes(name: AnyPath, columns: int) -> int:
    """Return the bytes held while this many columns are read from an object store; 0 for a path."""
    return (columns + 1) * REMOTE_BYTES + AHEAD_BYTES if is_remote(name) else 0


def listed(url: Url, recursive: bool = False) -> list[Entry]:
    """List the entries below a folder, by name; an empty list if there is no such folder."""
    from pyarrow.fs import FileSelector

    def request(system: FileSystem, path: str) -> list[Entry]:
        selected = FileSelector(path, allow_not_found=True, recursive=recursive)
        found = system.get_file_info(selected)
        return [
            Entry(info.path[len(path) + 1 :], _size(info), info.mtime_ns or 0)
            for info in sorted(found, key=lambda info: info.path)
            if info.path.startswith(f"{path}/")
        ]

    return ask(url, request)


def _size(info: FileInfo) -> int | None:
    from pyarrow.fs import FileType

    return info.size if info.type == FileType.File else None


def is_file(url: Url) -> bool:
    """Return whether there is an object with exactly this name."""
    from pyarrow.fs import FileType

    return ask(url, lambda system, path: system.get_file_info(path).type == FileType.File)


def check_bucket(url: Url) -> None:
    """Raise InputError if the bucket does not exist."""
    from pyarrow.fs import FileType

    bucket = url._replace(key="")
    if ask(bucket, lambda system, path: system.get_file_info(path)).type == FileType.NotFound:
        raise InputError(f"{url}: there is no bucket {url.bucket!r}")


def read_small(url: Url) -> bytes | None:
    """Return all bytes of an object; None if there is none."""

    def request(system: FileSystem, path: str) -> bytes | None:
        try:
            with system.open_input_file(path) as file:
                return file.read()
        except FileNotFoundError:
            return None

    return ask(url, request)


def put(url: Url, data: bytes) -> None:
    """Write bytes as an object, which appears whole."""
    _write(url, io.BytesIO(data))


def upload(path: Path, url: Url) -> None:
    """Write a file as an object, which appears whole. About three times _MOST_BYTES are held."""
    with naming_file(path), open(path, "rb") as file:
        _write(url, file)


_CUT_OFF: list[Any] = []
"""Streams that failed. They are kept since Arrow closes a stream that nothing refers to, and
closing it would complete the object.
"""


def _write(url: Url, file: BinaryIO) -> None:
    stream = ask(url, lambda system, path: system.open_output_stream(path))
    try:
        while piece := file.read(_MOST_BYTES):
            ask(url, lambda system, path, piece=piece: stream.write(piece))
        ask(url, lambda system, path: stream.close())
    except BaseException:
        _CUT_OFF.append(stream)
        raise


def remove(url: Url) -> None:
    """Remove an object, if it exists."""

    def request(system: FileSystem, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            system.delete_file(path)

    ask(url, request)


def ask(url: Url, request: Callable[[FileSystem, str], T]) -> T:
    """Make a request in a thread of its own, and return its result. A thread that hangs is left
    behind.
    """
    given: list[T] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            system = _system(url.scheme, url.authority, url.options)
            given.append(request(system, url.path))
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(ANSWER_SECONDS)
    if given:
        return given[0]
    if not failed:
        raise BusyError(f"{url}: no answer within {ANSWER_SECONDS:g} s: run again later")
    error = failed[0]
    if isinstance(error, FileNotFoundError):
        check_bucket(url)
        raise InputError(f"{url}: no such file or folder") from error
    if isinstance(error, OSError):
        raise _told(url, one_line(error)) from error
    if isinstance(error, ValueError):  # a wrong option
        raise InputError(f"{url}: {one_line(error)}") from error
    raise error


_STATUS = re.compile(r"HTTP status (\d{3})|Azure Error: \[\w*\] (\d{3})")
_CODE = re.compile(r"(?:ExceptionName: |AWS Error |cloud::Status\(|Azure Error: \[)(\w+)")
_REFUSED = re.compile("ACCESSDENIED|ACCESSKEY|TOKEN|SIGNATURE|CREDENTIAL|AUTHENTICAT|PERMISSION")
_WRONG = re.compile("NOSUCH|NOTFOUND|VALIDATION|INVALIDARGUMENT|FAILEDPRECONDITION")
_NO_BUCKET = re.compile(r"NOSUCHBUCKET|CONTAINERNOTFOUND")
_MAY_HELP = {408, 425, 429}


def _told(url: Url, text: str) -> InputError | BusyError:
    """Return the error for a failed request, by the status and code in the library's message. (The
    message may also quote object names, which may be any words.)
    """
    for name in _SECRETS:
        text = text.replace(os.environ.get(name) or text + " ", "...")
    found = _STATUS.search(text)
    status = int(found[1] or found[2]) if found else 0
    code = ["", *_CODE.findall(text)][-1].replace("_", "").upper()
    if status == 416:
        return _changed(url)
    if _NO_BUCKET.fullmatch(code) or text == f"Bucket '{url.bucket}' not found":
        return InputError(f"{url}: there is no bucket {url.bucket!r}")
    if status in (401, 403) or _REFUSED.search(code):
        return InputError(f"{url}: access is denied: {_credentials(url.scheme)} ({text})")
    if (300 <= status < 500 and status not in _MAY_HELP) or _WRONG.search(code):
        region = (
            ": if the bucket is in another region, add ?region=NAME to the URL"
            if 300 <= status <= 400
            else ""
        )
        return InputError(f"{url}: refused{region} ({text})")
    return BusyError(f"{url}: no usable answer after several attempts: {text}")


_SECRETS = (
    *("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AZURE_CLIENT_SECRET"),
    *("AZURE_STORAGE_KEY", "AZURE_STORAGE_SAS_TOKEN"),
)
"""Variables of the environment that libraries might quote."""
_VARIABLES = {
    "s3": ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN"),
    "gs": ("GOOGLE_APPLICATION_CREDENTIALS",),
    "abfs": ("AZURE_STORAGE_KEY", "AZURE_STORAGE_SAS_TOKEN", "AZURE_CLIENT_ID"),
}
"""Variables of the environment, any of which supplies credentials."""
_REMEDY = {
    "s3": "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE",
    "gs": "set GOOGLE_APPLICATION_CREDENTIALS",
    "abfs": "set AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN, or AZURE_CLIENT_ID and its secret",
}


def _credentials(scheme: str) -> str:
    """Return advice about missing or refused credentials."""
    there = [name for name in _VARIABLES[scheme] if os.environ.get(name)]
    if there:
        return f"the credentials of {there[0]} do not allow access"
    return f"no credentials are in the environment; {_REMEDY[scheme]}"


def _changed(url: Url) -> InputError:
    return InputError(f"{url}: changed while it was read; run again")


def _text(value: str | bytes) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value


@lru_cache(maxsize=16)
def _system(scheme: str, authority: str, options: str) -> FileSystem:
    url = Url(scheme, authority, "", options)
    return _SYSTEMS[scheme](url)


def _s3(url: Url) -> FileSystem:
    from pyarrow.fs import AwsStandardS3RetryStrategy, S3FileSystem, resolve_s3_region

    environ = os.environ
    endpoint = url.option("endpoint_override")
    endpoint = endpoint or environ.get("AWS_ENDPOINT_URL_S3") or environ.get("AWS_ENDPOINT_URL")
    scheme, _, host = (endpoint or "").rpartition("://")
    region = url.option("region") or environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION")
    if region is None and not endpoint:
        region = resolve_s3_region(url.bucket)
    return S3FileSystem(
        anonymous=url.authority.startswith("anonymous@"),
        region=region or "us-east-1",
        scheme=url.option("scheme") or scheme or "https",
        endpoint_override=host.rstrip("/") or None,
        connect_timeout=CONNECT_SECONDS,
        request_timeout=SILENCE_SECONDS,
        retry_strategy=AwsStandardS3RetryStrategy(max_attempts=ATTEMPTS),
        background_writes=False,
        allow_delayed_open=True,  # a small object is one request
    )


def _google(url: Url) -> FileSystem:
    from pyarrow.fs import GcsFileSystem

    limit = url.option("retry_limit_seconds")
    return GcsFileSystem(
        anonymous=url.authority.startswith("anonymous@"),
        scheme=url.option("scheme") or "https",
        endpoint_override=url.option("endpoint_override"),
        retry_time_limit=timedelta(seconds=float(limit or 2 * SILENCE_SECONDS)),
    )


def _azure(url: Url) -> FileSystem:
    from pyarrow.fs import AzureFileSystem

    names = [f"{of}_storage_{what}" for of in ("blob", "dfs") for what in ("authority", "scheme")]
    return AzureFileSystem(
        url.authority.rpartition("@")[2].partition(".")[0],
        account_key=os.environ.get("AZURE_STORAGE_KEY"),
        sas_token=os.environ.get("AZURE_STORAGE_SAS_TOKEN"),
        **{name: value for name in names if (value := url.option(name))},
    )


_SYSTEMS: dict[str, Callable[[Url], Any]] = {"s3": _s3, "gs": _google, "abfs": _azure}
