"""Options that several commands share."""

from __future__ import annotations

import resource
from collections.abc import Callable
from functools import partial
from typing import Any

import click

from ..partition.errors import DelegraphError, InputError
from ..partition.numbers import GREATEST, MOST_SECONDS, parse_integer
from . import events
from .command import DeviceOption
from .numbers import Number, WholeNumber

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
        return parse_integer(value.strip(), 1, GREATEST)
    except InputError as error:
        raise click.BadParameter(f"{error}: give 'auto' or a positive integer") from None


def _grid(ctx: click.Context, param: click.Parameter, value: str | None) -> Any:
    if value is None:
        return None
    from ..partition.store.grid import parse_grid

    try:
        return parse_grid(value)
    except InputError as error:
        raise click.BadParameter(str(error)) from None


grid = click.option(
    "--grid",
    metavar="RxC",
    callback=_grid,
    help="Rows and columns of the grid of partitions of --layout 2d.  [default: as square as "
    "possible]",
)
threshold = click.option(
    "--threshold",
    metavar="DEGREE|auto",
    default="auto",
    show_default=True,
    callback=_threshold,
    help="With --layout delegate: vertices of a higher degree are delegates, of which every "
    "partition keeps a copy. A number, or auto: chosen from the degrees of the graph.",
)

output = click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(),
    help="Output path, on a disk of this machine. It must not exist yet.",
)
overwrite = click.option(
    "--overwrite",
    is_flag=True,
    help="Replace an existing output of the same kind (store, edge list, result or page), once the "
    "new one is complete.",
)
as_json = click.option(
    "--json", "as_json", is_flag=True, help="Print a JSON document instead of text."
)
debug = click.option(
    "--debug", is_flag=True, expose_value=False, help="Show a traceback if the command fails."
)
quiet = _together(
    click.option("--quiet", is_flag=True, help="Show neither progress nor messages on stderr."),
    click.option(
        "--log-format",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        expose_value=False,
        help="Format of stderr: text, or json (one event a line, at least one every 30 s).",
    ),
    click.option(
        "--heartbeat",
        type=click.Path(),
        metavar="FILE",
        expose_value=False,
        callback=events.beat_in,
        help="Write the latest event to this file every 10 s.",
    ),
)
threads = click.option(
    "--threads",
    type=WholeNumber(min=1),
    help="Number of cores to use: at most 64, or four times the available cores if that is more.  "
    "[default: all that are available]",
)
reading_options = _together(
    click.option(
        "--directed",
        is_flag=True,
        help="Follow edges from src to dst only. Without it, edges lead both ways.",
    ),
    click.option(
        "--src", default="src", show_default=True, help="Column with the ids where edges begin."
    ),
    click.option(
        "--dst", default="dst", show_default=True, help="Column with the ids where edges end."
    ),
)
ends = _together(
    click.option(
        "--src",
        default="src",
        show_default=True,
        help="Column where edges begin, for an edge list.",
    ),
    click.option(
        "--dst",
        default="dst",
        show_default=True,
        help="Column where edges end, for an edge list.",
    ),
)
weight_options = _together(
    click.option(
        "--weight",
        metavar="COL",
        help="Column of weights: integers from 0 to 4,294,967,295, or floats of at least 0, which "
        "are rounded to 32 bits.",
    ),
    click.option(
        "--duplicates",
        type=click.Choice(["min", "max", "sum"]),
        default="min",
        show_default=True,
        help="Weight of an edge that several rows name: the least, the greatest, or the sum.",
    ),
)
loops_option = partial(
    click.option,
    "--loops",
    type=click.Choice(["drop", "keep"]),
    default="drop",
    show_default=True,
)
loops = loops_option(
    help="Whether self-loops, rows from a vertex to itself, are dropped, or count in the questions "
    "that can count them.",
)
store_options = _together(
    click.option(
        "--partitions",
        type=WholeNumber(min=1),
        help="Number of partitions of the store.  [default: 1 up to 2^30 rows, more beyond]",
    ),
    click.option(
        "--layout",
        type=click.Choice(["delegate", "2d", "1d"]),
        default="delegate",
        show_default=True,
        help="How edges are dealt out to several partitions: delegate (hubs are copied to all), 2d "
        "(by a grid of partitions) or 1d (with the vertex where the edge begins).",
    ),
    grid,
    threshold,
    click.option(
        "--order",
        type=click.Choice(["degree", "none", "random"]),
        default="degree",
        show_default=True,
        help="How vertices are numbered: by falling degree, by id (none), or at random.",
    ),
)


build_options = _together(reading_options, store_options)


def _size(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    if value is None:
        return None
    from ..partition.disk.memory import parse_bytes

    try:
        return parse_bytes(value)
    except InputError as error:
        raise click.BadParameter(str(error)) from None


memory_limit = click.option(
    "--memory-limit",
    metavar="SIZE",
    callback=_size,
    help="Most memory that all processes hold together, such as 800MB or 4GiB. With --scheduler: "
    "most memory that each worker holds.  [default: 60% of the machine's memory]",
)
device_memory_limit = click.option(
    "--device-memory-limit",
    metavar="SIZE",
    callback=_size,
    help="Most memory to hold on the GPU, such as 20GB.  [default: all that is free]",
)


def _device(ctx: click.Context, param: click.Parameter, value: str) -> str:
    if value == "auto":
        return value
    from ..pipeline.run.devices import check_choice

    try:
        check_choice(value)
    except InputError as error:
        raise click.BadParameter(str(error)) from None
    return value


strategy = click.option(
    "--strategy",
    type=click.Choice(["auto", "rows", "slices"]),
    default="auto",
    show_default=True,
    help="What one GPU searches over: rows (lists of neighbours); slices (bits of the adjacency "
    "matrix), which suit small graphs of few levels; or auto: rows for a single search, the faster "
    "of both for many searches.",
)


def _on_device(auto: str, by_estimate: bool) -> Callable[[_Command], _Command]:
    """Return the option ``--device``. auto: the meaning of "auto"."""
    return click.option(
        "--device",
        cls=DeviceOption,
        by_estimate=by_estimate,
        metavar="DEVICE",
        default="auto",
        show_default=True,
        callback=_device,
        help="Where to run: cpu; cuda (the first GPU, or with workers one GPU each); cuda:1 (the "
        f"GPU with that number, counted from 0); or auto{auto}.",
    )


device = _on_device(": a GPU if one is usable", by_estimate=False)
device_by_estimate = _on_device(": the one that is expected to answer sooner", by_estimate=True)
scratch = click.option(
    "--scratch",
    type=click.Path(),
    metavar="DIR",
    help="An existing folder for files between steps. With it, such files are written even if "
    "memory suffices.  [default: beside the output, and only if needed]",
)
restart = click.option(
    "--restart", is_flag=True, help="Start over, instead of resuming an unfinished run."
)


def _workers(ctx: click.Context, param: click.Parameter, value: int | None) -> int | None:
    """Check that descriptors suffice for the workers: Dask retries without end where they do
    not.
    """
    least = 64 + 8 * (value or 0)  # some more than it takes, by measurement
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if value and most != resource.RLIM_INFINITY and most < least:
        raise DelegraphError(
            f"--workers {value} needs {least} open files, but the limit is {most}: raise the limit "
            f"with 'ulimit -n {least}', or give fewer workers"
        )
    return value


cluster_options = _together(
    click.option(
        "--workers",
        type=WholeNumber(min=1),
        callback=_workers,
        help="Number of local worker processes to run on.",
    ),
    click.option(
        "--scheduler", metavar="ADDRESS", help="Run on the Dask cluster of this scheduler."
    ),
    click.option(
        "--scheduler-file",
        type=click.Path(),
        metavar="FILE",
        help="Run on the Dask cluster that this scheduler file names.",
    ),
    click.option(
        "--timeout",
        default=60.0,
        show_default=True,
        type=Number(min=0, min_open=True, limit=MOST_SECONDS),
        metavar="SECONDS",
        help="How long to wait for a scheduler or a worker that shows no sign of life.",
    ),
)


result_or_none = _together(
    click.option(
        "-o",
        "--output",
        type=click.Path(),
        help="Output folder: a path, or a URL of an object store (s3://, gs://, abfs://). It must "
        "not exist yet.",
    ),
    click.option(
        "--no-output",
        is_flag=True,
        help="Write no output: only print what was found.",
    ),
)
graph_and_output = _together(
    click.argument("graph", type=click.Path()), result_or_none, overwrite, as_json
)
"""Options of every question that stand first."""

MOST_NAMED = 1000
top = click.option(
    "--top",
    metavar="N",
    type=WholeNumber(min=0, max=MOST_NAMED),
    default=5,
    show_default=True,
    help="Name this many vertices: those with the greatest values or distances, or the largest "
    "components. 0: none.",
)

running = _together(
    reading_options,
    memory_limit,
    threads,
    device_memory_limit,
    cluster_options,
    click.option(
        "--checkpoint",
        default=60.0,
        show_default=True,
        type=Number(min=0, limit=MOST_SECONDS),
        metavar="SECONDS",
        help="Seconds between two saves of a long run. An interrupted run resumes from the last "
        "save. 0: save after each step.",
    ),
    scratch,
    restart,
    store_options,
    quiet,
    debug,
)
"""Options of every command that asks a question of a graph."""
