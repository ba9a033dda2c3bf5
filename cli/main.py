"""The ``delegraph`` command: its subcommands are loaded when they are called."""

from __future__ import annotations

import gc
import os
import signal
import sys
import tempfile
import traceback
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import click

from .._version import __version__

_COMMANDS = {
    "bench": "Search from many sources, validate, and report traversal rates.",
    "bfs": "Search a graph: hop distance and parent of every vertex, as Parquet.",
    "build": "Prepare a Parquet edge list as a store, to be searched many times.",
    "demo": "Run the whole job on a generated graph, showing each command.",
    "generate": "Write a synthetic edge list.",
    "info": "Describe an edge list, a store or a result.",
    "plan": "Say what a build would hold in memory and write to disk, step by step.",
    "validate": "Check a result against its graph by Graph500's rules.",
}


class _Commands(click.Group):
    """Imports a subcommand's module only when that one is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        return getattr(import_module(f".{cmd_name}", __package__), cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(sorted(_COMMANDS.items()))


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="delegraph")
def cli() -> None:
    """Breadth-first search over Parquet edge lists.

    \b
    delegraph generate kronecker --scale 16 -o edges/
    delegraph bfs edges/ --source 1 -o distances/
    delegraph build edges/ -o graph.dg
    delegraph validate graph.dg distances/

    Data go to stdout, everything else to stderr. Exit codes: 0 done, 1 failed while running
    or the answer is wrong, 2 wrong use or bad input.
    """


def run() -> NoReturn:
    """The program: ``main``, and out.

    Everything is written and closed by then; taking the interpreter apart would cost as much
    again as a small search.
    """
    # Importing makes many objects and no garbage: looking for it takes a sixth of the time.
    gc.set_threshold(100_000, 50, 50)
    code: Any = 0
    try:
        main()
    except SystemExit as ended:
        code = ended.code
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 0)


def main() -> None:
    """Run the command line; turn failures into one line and an exit code."""
    # Ended politely, temporary files are removed like after any failure.
    signal.signal(signal.SIGTERM, _interrupt)
    _find_cache()
    try:
        code = cli.main(standalone_mode=False)
        sys.stdout.flush()
        sys.exit(code if isinstance(code, int) else 0)
    except click.exceptions.Abort:
        _fail("interrupted", 1)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # Whoever read our output has left; keep Python from complaining while it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as error:
        if "--debug" in sys.argv:
            traceback.print_exc()
        from ..partition.errors import DelegraphError

        if isinstance(error, DelegraphError):
            _fail(str(error), error.exit_code)
        if isinstance(error, MemoryError):
            _fail(f"out of memory: {error}", 1)
        _fail(f"{type(error).__name__}: {error} (--debug shows where)", 1)


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def _find_cache() -> None:
    """See to it that compiled kernels can be kept: without a place for them Numba gives up."""
    kernels = Path(__file__).parents[1] / "kernels"
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    while not home.exists():
        home = home.parent
    if "NUMBA_CACHE_DIR" in os.environ or any(os.access(p, os.W_OK) for p in (kernels, home)):
        return
    os.environ["NUMBA_CACHE_DIR"] = f"{tempfile.gettempdir()}/delegraph-{os.getuid()}"


def _fail(message: str, code: int) -> None:
    click.echo(f"delegraph: {message}", err=True)
    sys.exit(code)
