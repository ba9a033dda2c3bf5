"""Options that several commands share, and how they talk to a person."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import click

_Command = Callable[..., Any]


def _together(*options: Callable[[_Command], _Command]) -> Callable[[_Command], _Command]:
    def decorate(command: _Command) -> _Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def _threshold(ctx: click.Context, param: click.Parameter, value: str) -> int | None:
    if value == "auto":
        return None
    try:
        number = int(value)
    except ValueError:
        number = 0
    if number < 1:
        raise click.BadParameter(f"{value!r} is neither 'auto' nor a positive integer")
    return number


output = click.option(
    "-o", "--output", required=True, type=click.Path(), help="Where to write; must not exist."
)
overwrite = click.option(
    "--overwrite",
    is_flag=True,
    help="Replace an output of the same kind, once the new one is whole.",
)
as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
debug = click.option(
    "--debug", is_flag=True, expose_value=False, help="Show a traceback when something fails."
)
quiet = click.option("--quiet", is_flag=True, help="No progress and no talk on stderr.")
threads = click.option(
    "--threads",
    type=click.IntRange(min=1),
    help="Cores to use.  [default: all this process may use]",
)
max_depth = click.option(
    "--max-depth", type=click.IntRange(min=0), help="Search this many levels at most."
)
build_options = _together(
    click.option("--directed", is_flag=True, help="Follow edges from src to dst only."),
    click.option("--src", default="src", show_default=True, help="Column of sources."),
    click.option("--dst", default="dst", show_default=True, help="Column of targets."),
    click.option(
        "--partitions",
        type=click.IntRange(min=1),
        help="Partitions of the store.  [default: 1 up to 2^30 rows, then by size]",
    ),
    click.option(
        "--threshold",
        default="auto",
        show_default=True,
        callback=_threshold,
        help="Vertices of higher degree are delegates (with several partitions): a number, or "
        "chosen by the edges.",
    ),
    click.option(
        "--order",
        type=click.Choice(["degree", "none", "random"]),
        default="degree",
        show_default=True,
        help="How the store numbers vertices: by falling degree, by id, or at random.",
    ),
)


def given(values: dict[str, Any]) -> dict[str, Any]:
    """Those of a command's parameters that were typed, not left at their defaults."""
    context = click.get_current_context()
    typed = click.core.ParameterSource.COMMANDLINE
    return {
        name: value for name, value in values.items() if context.get_parameter_source(name) is typed
    }


def print_json(document: Any) -> None:
    click.echo(json.dumps(document, indent=1))


def talk(quiet: bool, message: str) -> None:
    """One line for a person."""
    if not quiet:
        click.echo(message, err=True)


class ProgressLine:
    """While it is entered: one line on a terminal with the step, how far it is, the time left.

    Shows nothing in a pipe, or if ``quiet``.
    """

    _INTERVAL = 0.1

    def __init__(self, quiet: bool) -> None:
        self._shown = not quiet and sys.stderr.isatty()
        self._lock = threading.Lock()
        self._step = ""
        self._started = 0.0
        self._next = 0.0

    def __call__(self, step: str, done: int, total: int) -> None:
        if not self._shown:
            return
        with self._lock:
            now = time.monotonic()
            if step != self._step:
                self._step, self._started = step, now
            if now < self._next and done < total:
                return
            self._next = now + self._INTERVAL
            spent = now - self._started
            left = f", {spent / done * (total - done):.0f} s left" if done and spent > 1 else ""
            click.echo(f"\r\x1b[K{step}: {done} of {total}{left}", nl=False, err=True)

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(self, *error: object) -> None:
        if self._shown and self._step:
            click.echo("\r\x1b[K", nl=False, err=True)
