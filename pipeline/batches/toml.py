"""A reader of untrusted TOML files, which bounds a file's size, its depth and the length of its
words.

Python's reader has no bounds: it recurses into each bracket, takes time quadratic in the parts of a
dotted key, and fails at long integers without naming a line. So brackets, dots and words are
checked first; text and comments are skipped. (Text without a closing quote is taken as it is:
searching for the end again from each of its quotes would take quadratic time.)
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
"""Most bytes of a file of jobs: four times those of ten thousand jobs."""

_MOST_DEPTH = 100
"""Most nested brackets, and most parts of a dotted key."""
_MOST_WORD = 300
"""Most characters of a number or a bare key; Python can read every integer of this length."""

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
    """Return the document and its text. Raises InputError, with a line if possible, if the file is
    no TOML, exceeds the bounds, or cannot be read.
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
    except (ValueError, RecursionError) as error:  # TOML's errors are ValueErrors
        raise InputError(f"{path}: {one_line(error)}") from error


def _out_of_bounds(text: str) -> Iterator[tuple[int, str]]:
    """Yield the places in the text that exceed the bounds, each with its fault."""
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
