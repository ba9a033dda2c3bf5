"""Messages with the keywords of Python's functions, from messages with the command line's options.

The package writes every message for the command line: "give --memory-limit 319MB or more". A
message that leaves through a public function is translated at that border: "give
memory_limit="319MB" or more". ``command_line`` marks the time in which a command runs, whose
messages stay as they are.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_RENAMED = {"from": "format"}
_FIXED = {
    **{name: f"{name}=True" for name in ("condense", "directed", "exact", "hierarchy")},
    **{
        name: f"{name}=True"
        for name in ("nodes", "normalized", "overwrite", "restart", "together", "unweighted")
    },
    "no-header": "header=False",
}
"""Options without a value."""

COMMAND_ONLY = {"debug", "jobs", "json", "set"}
"""Options that no function has."""

_OPTION = r"(?<![\w/.'\"-])--(?P<name>[a-z]+(?:-[a-z]+)*)(?![\w-])"
_WORDS = (
    *(
        "auto",
        "cpu",
        "cuda",
        "csv",
        "delegate",
        "double",
        "drop",
        "keep",
        "max",
        "min",
        "modularity",
        "none",
        "single",
    ),
    *("slices", "snap", "string", "strong", "sum", "tsv", "weak"),
)
"""Values of options in messages that look like the next word of a sentence."""

_METAVAR = r"[A-Z]+(?:[|,.][A-Za-z.]+)*(?![\w])"
_VALUE = rf"{_METAVAR}|(?:{'|'.join(_WORDS)})(?::\d+)?\b|[^\s,:;()']*[\d/.][^\s,:;()']*"
_OPTION_AND_VALUE = re.compile(rf"{_OPTION}(?: (?P<value>{_VALUE}))?(?P<was>(?= was ))?")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")

_WORD = r"(?:'[^']*'|[^\s'()]+)"
_QUOTED_COMMAND = re.compile(r"'delegraph (?P<command>[a-z]+)(?P<words>[^']*)'")
_COMMAND = re.compile(rf"(?<=: )delegraph (?P<command>[a-z]+)(?P<words>(?: {_WORD})+)")

_in_command: ContextVar[bool] = ContextVar("in_command", default=False)


@contextmanager
def command_line() -> Iterator[None]:
    """Leave messages as they are written, for the time in which a command runs."""
    token = _in_command.set(True)
    try:
        yield
    finally:
        _in_command.reset(token)


def worded(message: str) -> str:
    """Return a message with keywords, or unchanged while a command runs."""
    return message if _in_command.get() else with_keywords(message)


def with_keywords(message: str) -> str:
    """Return a message with keywords for options, and with calls for commands.

    >>> print(with_keywords("give --memory-limit 319MB or more"))
    give memory_limit="319MB" or more
    >>> print(with_keywords("name it with --weight COL, or replace it with --overwrite"))
    name it with weight=, or replace it with overwrite=True
    >>> print(with_keywords("another command: --order was none, now degree"))
    another command: order was none, now degree
    >>> print(with_keywords("'delegraph build --partitions N' makes one"))
    delegraph.build(..., partitions=N) makes one
    >>> print(with_keywords("run: delegraph convert a.csv --from csv -o edges (or --from tsv)"))
    run: delegraph.convert("a.csv", format="csv", output="edges") (or format="tsv")
    """
    if "--" not in message and "delegraph " not in message:
        return message
    message = _QUOTED_COMMAND.sub(_call, message)
    message = _COMMAND.sub(_call, message)
    return _OPTION_AND_VALUE.sub(_keyword, message)


def keyword_of(option: str) -> str:
    """Return the keyword of an option, such as ``memory_limit`` of ``memory-limit``."""
    if option in _FIXED:
        return _FIXED[option].partition("=")[0]
    return _RENAMED.get(option, option.replace("-", "_"))


def _keyword(found: re.Match[str]) -> str:
    option, value = found["name"], found["value"]
    if option in COMMAND_ONLY:
        return found[0]
    if found["was"] is not None:
        return keyword_of(option)
    if option in _FIXED:
        return _FIXED[option] + ("" if value is None else f" {value}")
    shown = "" if value is None or re.fullmatch(_METAVAR, value) else _literal(value)
    return f"{keyword_of(option)}={shown}"


def _call(found: re.Match[str]) -> str:
    """Return a call that does what a command line does."""
    arguments: list[str] = []
    try:
        words = iter(shlex.split(found["words"]))
    except ValueError:  # a quote in a name: left as it is
        return found[0]
    for word in words:
        if word == "-o":
            arguments.append(f"output={_literal(next(words, ''))}")
        elif not word.startswith("--"):
            arguments.append(_literal(word))
        elif word[2:] in _FIXED:
            arguments.append(_FIXED[word[2:]])
        else:
            value = next(words, "")
            shown = value if re.fullmatch(_METAVAR, value) else _literal(value)
            arguments.append(f"{keyword_of(word[2:])}={shown}")
    if arguments and "=" in arguments[0]:
        arguments.insert(0, "...")
    return f"delegraph.{found['command']}({', '.join(arguments)})"


def _literal(value: str) -> str:
    """Return a value as Python writes it."""
    return value if _NUMBER.fullmatch(value) else json.dumps(value, ensure_ascii=False)
