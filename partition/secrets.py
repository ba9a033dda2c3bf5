"""Removal of secrets from URLs in all texts that are shown, stored or raised.

Credentials of an object store belong in the environment, and URLs that hold some are refused. But a
message that refuses such a URL, or quotes what a user typed, would print them.
"""

from __future__ import annotations

import re

_URL = re.compile(r"\b([a-z][a-z0-9+.-]*):(/+)([^\s\"'<>]+)", re.IGNORECASE)
_PORT = re.compile(r"(\[[0-9a-f:]+\]|[^:]*):\d{1,5}\W*", re.IGNORECASE)
_OPTION = re.compile(r"[?&]([\w.%-]+)=")
_ENDPOINT = re.compile(r"([?&](?:endpoint_override|\w+_authority)=)[^&]*@")
_CONTAINERS = ("abfs", "abfss", "wasb", "wasbs")
_HIDDEN = "..."

OPEN_OPTIONS = {
    *("region", "scheme", "endpoint_override", "retry_limit_seconds"),
    *(f"{of}_storage_{what}" for of in ("blob", "dfs") for what in ("authority", "scheme")),
}
"""Options of URLs whose values are no secrets."""


def without_secrets(text: str) -> str:
    """Return a text whose URLs show neither users, passwords nor values of unknown options.

    A secret may itself contain slashes, question marks and at signs.

    >>> without_secrets("s3://KEY:se/cret@bucket/edges: no such file")
    's3://...@bucket/edges: no such file'
    >>> without_secrets("s3://bucket/edges?region=eu&secret_key=se?cr&et")
    's3://bucket/edges?region=eu&secret_key=...'
    >>> without_secrets("s3://bucket/edges?secret=4: no such option")
    's3://bucket/edges?secret=...: no such option'
    >>> without_secrets("s3://bucket/edges?endpoint_override=http://me:se/cret@host:9000")
    's3://bucket/edges?endpoint_override=...@host:9000'
    >>> without_secrets("abfs://box@account/k, s3://anonymous@b/k@x, tcp://127.0.0.1:8786: gone")
    'abfs://box@account/k, s3://anonymous@b/k@x, tcp://127.0.0.1:8786: gone'
    """
    return _URL.sub(_cleaned, text) if ":/" in text else text


def _cleaned(url: re.Match[str]) -> str:
    scheme, slashes, rest = url.groups()
    begin = re.split("[/?@]", rest, maxsplit=1)[0]
    authority = re.split("[/?]", rest, maxsplit=1)[0]
    user = authority.rpartition("@")[0]
    if ":" in begin and "@" in rest and scheme.lower() != "file":
        rest = f"{_HIDDEN}@{rest.rpartition('@')[2]}"
    elif ":" in begin.rstrip(":,;.") and not _PORT.fullmatch(begin) and scheme.lower() != "file":
        rest = _HIDDEN
    elif user and user != "anonymous" and scheme.lower() not in _CONTAINERS:
        rest = f"{_HIDDEN}@{rest[len(user) + 1 :]}"
    rest = _ENDPOINT.sub(rf"\1{_HIDDEN}@", rest)
    for option in _OPTION.finditer(rest):
        if option[1] not in OPEN_OPTIONS:
            end = ":" if rest.endswith(":") else ""  # the message's own colon
            rest = rest[: option.end()] + _HIDDEN + end
            break
    return f"{scheme}:{slashes}{rest}"
