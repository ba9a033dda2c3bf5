"""Options that several commands share, and how they talk to a person."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Sequence
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


def _grid(ctx: click.Context, param: click.Parameter, value: str | None) -> Any:
    from ..partition.errors import InputError
    from ..partition.store.grid import parse_grid

    try:
        return None if value is None else parse_grid(value)
    except InputError as error:
        raise click.BadParameter(str(error)) from None


grid = click.option(
    "--grid",
    metavar="RxC",
    callback=_grid,
    help="Rows and columns of --layout 2d.  [default: as square as the partitions allow]",
)
threshold = click.option(
    "--threshold",
    default="auto",
    show_default=True,
    callback=_threshold,
    help="Vertices of higher degree are delegates (of that layout, with several partitions): a "
    "number, or chosen by the edges.",
)
timeout = click.option(
    "--timeout",
    default=60.0,
    show_default=True,
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="With workers: give up on one that shows no sign of life for so long.",
)


output = click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(),
    help="Where to write; nothing else may stand there.",
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
        "--layout",
        type=click.Choice(["delegate", "2d", "1d"]),
        default="delegate",
        show_default=True,
        help="Where several partitions store an edge: hubs copied to all, by a grid of "
        "partitions, or with its source.",
    ),
    grid,
    threshold,
    click.option(
        "--order",
        type=click.Choice(["degree", "none", "random"]),
        default="degree",
        show_default=True,
        help="How the store numbers vertices: by falling degree, by id, or at random.",
    ),
)


def _size(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    from ..partition.disk.memory import parse_bytes
    from ..partition.errors import InputError

    try:
        return None if value is None else parse_bytes(value)
    except InputError as error:
        raise click.BadParameter(str(error)) from None


memory_limit = click.option(
    "--memory-limit",
    metavar="SIZE",
    callback=_size,
    help="Memory of all processes together (of each worker of an existing cluster), as 800MB or "
    "4GiB.  [default: 60% of what the machine allows]",
)
device_memory_limit = click.option(
    "--device-memory-limit",
    metavar="SIZE",
    callback=_size,
    help="Memory to use on the GPU, as 20GB.  [default: what is free]",
)


def _device(ctx: click.Context, param: click.Parameter, value: str) -> str:
    from ..partition.errors import InputError
    from ..pipeline.run.devices import check_choice

    try:
        check_choice(value)
    except InputError as error:
        raise click.BadParameter(str(error)) from None
    return value


device = click.option(
    "--device",
    metavar="DEVICE",
    default="auto",
    show_default=True,
    callback=_device,
    help="cpu, a GPU as cuda or cuda:1, or auto: a GPU where one is usable.",
)
scratch = click.option(
    "--scratch",
    type=click.Path(),
    metavar="DIR",
    help="Keep what lies between steps in files there, even where memory would do.  [default: "
    "beside the output, if at all]",
)
restart = click.option(
    "--restart", is_flag=True, help="Start over, whatever an unfinished attempt has left."
)
cluster_options = _together(
    click.option(
        "--workers", type=click.IntRange(min=1), help="Run tasks on so many local processes."
    ),
    click.option("--scheduler", metavar="ADDRESS", help="Run tasks on the cluster of a scheduler."),
    click.option(
        "--scheduler-file",
        type=click.Path(),
        metavar="FILE",
        help="The same, by the file that the scheduler wrote.",
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


def tell_reused(quiet: bool, steps: Sequence[str]) -> None:
    if steps:
        talk(quiet, f"went on after an earlier attempt, reusing: {', '.join(steps)}")


class ProgressLine:
    """While it is entered: how far the steps of a command are.

    On a terminal one line, with the step's share done, its rate and the time left. In a pipe a
    line at the end of every step that was long. Nothing if ``quiet``.
    """

    _INTERVAL = 0.1
    _LONG = 2.0  # seconds
    _WIDTH = 20

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet
        self._terminal = sys.stderr.isatty()
        self._lock = threading.Lock()
        self._step = ""
        self._done = 0
        self._started = 0.0
        self._next = 0.0

    def __call__(self, step: str, done: int, total: int) -> None:
        if self._quiet:
            return
        with self._lock:
            now = time.monotonic()
            if step != self._step:
                self._end_step(now)
                self._step, self._started, self._done = step, now, done
            self._done = done
            if not self._terminal or (now < self._next and done < total):
                return
            self._next = now + self._INTERVAL
            spent = now - self._started
            full = self._WIDTH * done // max(1, total)
            bar = "#" * full + "-" * (self._WIDTH - full)
            rest = f", {spent / done * (total - done):.0f} s left" if done and spent > 1 else ""
            pace = f"  {_rate(done, spent)}{rest}" if done else ""
            click.echo(
                f"\r\x1b[K{step} [{bar}] {done / max(1, total):4.0%}{pace}", nl=False, err=True
            )

    def _end_step(self, now: float) -> None:
        if self._terminal or self._step in ("", "compile"):
            return
        spent = now - self._started
        if spent >= self._LONG:
            rate = f", {_rate(self._done, spent)}" if self._done > 1 else ""
            click.echo(f"{self._step}: {spent:.1f} s{rate}", err=True)

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(self, *error: object) -> None:
        if self._quiet:
            return
        self._end_step(time.monotonic())
        if self._terminal and self._step:
            click.echo("\r\x1b[K", nl=False, err=True)


def _rate(done: int, seconds: float) -> str:
    """Work a second, for people.

    >>> _rate(25_000_000, 2.0), _rate(3, 2.0)
    ('12.5 M/s', '1.5/s')
    """
    rate = done / max(seconds, 1e-9)
    for unit, scale in ((" G", 1e9), (" M", 1e6), (" k", 1e3)):
        if rate >= scale:
            return f"{rate / scale:.1f}{unit}/s"
    return f"{rate:.1f}/s"
