"""A reader of TOML files that may hold anything: a file's size, depth and lengths of words are
bounded.

Python's reader has no bounds: it recurses into each bracket, takes the square of a dotted key's
parts, and fails at long integers without a line. So the file's brackets, dots and words are checked
first; text and comments are passed over. (Text without an end is taken as far as it goes: to search
for the end again from each of its quotes would take the square of its length.)
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...partition.disk.files import read_small
from ...partition.errors import InputError, one_line
from ...partition.numbers import shown

MOST_BYTES = 1 << 22
"""Most bytes of a file of jobs: ten thousand jobs take a quarter of them."""

_MOST_DEPTH = 100
"""Most brackets in brackets, and most parts of a dotted key."""
_MOST_WORD = 300
"""Characters of a number or a bare key: as long as no integer that Python refuses to read."""

_PASSED_OVER = r"""
    \#[^\n]*
    | \"{3} (?: [^\\"] | \\. | \"{1,2}(?!\") )*+ (?: \"{3,5} )?
    | '{3} (?: [^'] | '{1,2}(?!') )*+ (?: '{3,5} )?
"""
_TEXT = r"""
    "(?: [^\\"\n] | \\. )*+ "?
    | ' [^'\n]*+ '?
"""
_TOKEN = re.compile(
    rf"(?P<passed>{_PASSED_OVER})|(?P<text>{_TEXT})|(?P<word>[^\s\[\]{{}}.,=\#\"']+)"
    r"|(?P<dot>\.)|(?P<open>[\[{])|(?P<close>[\]}])|(?P<end>[\n,=])",
    re.VERBOSE | re.DOTALL,
)


def read_toml(path: Path) -> tuple[dict[str, Any], str]:
    """Return the document, and its text. Raises InputError, with the line where there is one, where
    the file is no TOML, is larger or deeper than a file of jobs, or cannot be read.
    """
    try:
        text = read_small(path, MOST_BYTES).decode()
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: cannot be read: {error}") from error
    text = text.replace("\r\n", "\n")
    for at, fault in _out_of_bounds(text):
        raise InputError(f"{path}, line {text.count(chr(10), 0, at) + 1}: {fault}")
    try:
        return tomllib.loads(text), text
    except (ValueError, RecursionError) as error:  # one of TOML is a ValueError
        raise InputError(f"{path}: {one_line(error)}") from error


def _out_of_bounds(text: str) -> Iterator[tuple[int, str]]:
    """Return what Python's reader would not survive: where, and what it is."""
    depth = dots = 0
    for token in _TOKEN.finditer(text):
        kind = token.lastgroup
        if kind == "word" and len(token[0]) > _MOST_WORD:
            yield token.start(), f"{shown(token[0])} is too long for a number or a key"
        dots = dots + (kind == "dot") if kind in ("dot", "word", "text") else 0
        depth = max(0, depth + (kind == "open") - (kind == "close"))
        if depth > _MOST_DEPTH:
            yield token.start(), f"more than {_MOST_DEPTH} nested brackets"
        if dots >= _MOST_DEPTH:
            yield token.start(), f"a key of more than {_MOST_DEPTH} parts"
