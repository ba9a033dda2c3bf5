"""Names of files: paths, and the URLs of files in object stores.

    s3://BUCKET/KEY    gs://BUCKET/KEY    abfs://CONTAINER@ACCOUNT.dfs.core.windows.net/KEY

The options after a '?' tell how to reach the store: s3://bucket/edges?endpoint_override=host:9000.
A name is taken as it is typed, without unescaping, except in file:///PATH.
"""

from __future__ import annotations

import glob
import os
import re
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from ..errors import InputError
from ..secrets import without_secrets

AnyPath = str | os.PathLike[str]

_OPTIONS = {
    "s3": ("region", "scheme", "endpoint_override"),
    "gs": ("scheme", "endpoint_override", "retry_limit_seconds"),
    "abfs": (
        "blob_storage_authority",
        "blob_storage_scheme",
        "dfs_storage_authority",
        "dfs_storage_scheme",
    ),
}
_ALIASES = {"gcs": "gs", "abfss": "abfs", "s3a": "s3"}
_URL = re.compile(r"([a-z][a-z0-9+.-]*)://(.*)", re.IGNORECASE | re.DOTALL)
_SQUEEZED = re.compile(r"(s3a?|gc?s|abfss?|file):/\w")
_QUERY = re.compile(r"(.*)\?(\w+=[^?&]*(?:&\w+=[^?&]*)*)", re.DOTALL)


class Url(NamedTuple):
    """A URL in an object store. scheme: "s3", "gs" or "abfs". authority: bucket, or container and
    account. key: without slashes around it. options: the text after the '?'.
    """

    scheme: str
    authority: str
    key: str
    options: str = ""

    @property
    def bucket(self) -> str:
        return self.authority.partition("@")[0] if self.scheme == "abfs" else self._host

    @property
    def path(self) -> str:
        """Return the name of the object in Arrow's file systems."""
        return f"{self.bucket}/{self.key}" if self.key else self.bucket

    @property
    def name(self) -> str:
        return self.key.rpartition("/")[2]

    @property
    def _host(self) -> str:
        return self.authority.rpartition("@")[2]

    def inside(self, name: str) -> Url:
        return self._replace(key=f"{self.key}/{name}" if self.key else name)

    def option(self, name: str) -> str | None:
        pairs = (pair.partition("=") for pair in self.options.split("&"))
        return next((value for key, _, value in pairs if key == name), None)

    def __str__(self) -> str:
        asked = f"?{self.options}" if self.options else ""
        return f"{self.scheme}://{self.authority}/{self.key}{asked}"


def is_remote(name: AnyPath) -> bool:
    """Return whether a name is the URL of something in an object store.

    >>> is_remote("s3://bucket/edges"), is_remote("edges"), is_remote("file:///edges")
    (True, False, False)
    """
    return isinstance(name, str) and _scheme(name) in _OPTIONS


def is_file_name(text: str) -> bool:
    """Return whether a text, which may also be ids, names a Parquet file.

    >>> is_file_name("seeds.parquet"), is_file_name("s3://bucket/seeds"), is_file_name("http://a")
    (True, True, False)
    """
    return text.endswith(".parquet") or _scheme(text) == "file" or is_remote(text)


def named(name: AnyPath) -> str:
    """Return a path (also for a file:// URL), or the URL of something in an object store in its
    normal form.

    Raises InputError for URLs of unknown kinds, and for passwords in them.

    >>> named("file:///data/my%20edges"), named("s3a://bucket//edges/")
    ('/data/my edges', 's3://bucket/edges')
    """
    if not isinstance(name, (str, os.PathLike)):
        raise TypeError(
            f"{type(name).__name__} is not a path: only questions, open and build take a table "
            "or another graph in memory"
        )
    if not isinstance(name, str) and _SQUEEZED.match(os.fspath(name)):
        raise InputError(f"{name}: give the URL as a str: a Path removes slashes from it")
    name = os.fspath(name)
    if (squeezed := _SQUEEZED.match(name)) and not os.path.lexists(name):
        raise InputError(f"{name}: write the URL with two slashes: {squeezed[1]}://...")
    scheme = _scheme(name)
    if is_remote(name):
        return str(url_of(name))
    if scheme == "file":
        parts = urlsplit(name)
        if parts.netloc not in ("", "localhost"):
            raise InputError(
                f"{name}: a file:// URL cannot name another machine: write file:///PATH"
            )
        return unquote(parts.path)
    if scheme:
        raise InputError(f"{name}: unknown kind of URL: use s3, gs, abfs or file")
    return name


def absolute(name: str) -> str:
    """Return a name that stands for the same file in whatever folder a process runs."""
    return name if is_remote(name) else os.path.abspath(name)


def rooted(name: str) -> str:
    """Return ``absolute`` of a name that may be a glob; the name of the current folder is
    escaped.
    """
    if is_remote(name) or os.path.isabs(name) or os.path.lexists(name) or not glob.has_magic(name):
        return absolute(name)
    return os.path.join(glob.escape(os.getcwd()), name)


def url_of(name: str) -> Url:
    """Return the parts of a remote name. Raises InputError for missing or unknown parts, and for
    credentials.
    """
    scheme, (_, rest) = _scheme(name), name.split("://", 1)
    options = ""
    if found := _QUERY.fullmatch(rest):
        rest, options = found[1], found[2]
    authority, _, key = rest.partition("/")
    url = Url(scheme, authority, "/".join(filter(None, key.split("/"))), options)
    unknown = [pair.partition("=")[0] for pair in options.split("&") if pair]
    unknown = [name for name in unknown if name not in _OPTIONS[scheme]]
    if unknown:
        known = ", ".join(_OPTIONS[scheme])
        raise InputError(f"{url}: unknown option {unknown[0]}: {scheme} URLs have {known}")
    if without_secrets(str(url)) != str(url):
        raise InputError(
            f"{url}: the URL contains credentials, and the result would keep them: set them in the "
            "environment instead"
        )
    if scheme == "abfs":
        form = re.fullmatch(r"[^@:]+@[^@:.]+(\..*)?", authority)
        if form is None:
            raise InputError(
                f"{url}: write it as abfs://CONTAINER@ACCOUNT.dfs.core.windows.net/KEY"
            )
    if not url.bucket:
        raise InputError(f"{name}: the URL names no bucket")
    return url


def refuse_remote(name: AnyPath, what: str) -> None:
    """Raise InputError for the name of something in an object store. what: the reason, for the
    message.
    """
    if is_remote(name):
        raise InputError(f"{name}: {what}")


def _scheme(name: str) -> str:
    """Return the scheme of a URL, with aliases resolved; empty for a path."""
    found = _URL.match(name)
    scheme = found[1].lower() if found else ""
    return _ALIASES.get(scheme, scheme)
