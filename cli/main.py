"""The ``delegraph`` command: its subcommands are loaded when they are called."""

from __future__ import annotations

import contextlib
import errno
import gc
import json
import os
import signal
import sys
import tempfile
import time
import traceback
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import click

from .._version import __version__
from ..kernels.base.threads import CANNOT_START, bound_thread_starts
from ..partition.secrets import without_secrets
from ..pipeline.python_side.keywords import command_line
from ..pipeline.questions import QUESTIONS
from ..pipeline.run import ending
from . import events
from .names import check_command

_COMMANDS = {
    **{name: question.summary for name, question in QUESTIONS.items()},
    "bench": "Measure searches, or another question, and validate the results.",
    "batch": "Run the jobs of a file that are not done yet.",
    "build": "Prepare a Parquet edge list as a store, to ask it many questions.",
    "convert": "Convert graph files of other programs to Parquet, and back.",
    "demo": "Ask three questions about the roads of a made-up country.",
    "generate": "Generate a synthetic edge list.",
    "info": "Describe an edge list, a store or a result.",
    "plan": "Show how much memory and disk a command would need.",
    "report": "Draw a store, a result, a batch or a bench as an HTML page.",
    "validate": "Check a result against its graph.",
    "warm-up": "Compile the code of questions now, so that no later run waits for it.",
}


_READER_LEFT = "the reader of stdout has closed it"
_MOST_DESCRIPTOR = 2**31 - 1
_LONGEST_WARNING = 200
_SWITCH_SECONDS = 0.0005


class _Commands(click.Group):
    """Group that imports a subcommand's module only when the subcommand is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        if cmd_name in QUESTIONS:
            from .questions import command_of

            return command_of(QUESTIONS[cmd_name])
        name = cmd_name.replace("-", "_")
        return getattr(import_module(f".commands.{name}", __package__), name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        check_command(self, ctx, args[0])
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the subcommand. click's own method would print an empty line before ours after an
        interrupt.
        """
        try:
            with command_line():
                return super().invoke(ctx)
        except KeyboardInterrupt:
            raise click.exceptions.Abort from None
        except BrokenPipeError:  # at which Click leaves
            events.failed(_READER_LEFT)
            raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(sorted(_COMMANDS.items()))


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="delegraph")
def cli() -> None:
    """Answer questions about graphs that are stored as Parquet edge lists.

    GRAPH is an edge list, or a store that 'build' has made of one. Edges are undirected unless
    --directed is given. Results are Parquet folders with a row for every vertex.

    \b
    delegraph generate kronecker --scale 16 -o edges/
    delegraph bfs edges/ --source 1 -o distances/
    delegraph build edges/ -o graph.dg
    delegraph validate graph.dg distances/

    Data go to stdout, and messages to stderr. Exit codes: 0 done, 1 failed while running or the
    answer is wrong, 2 wrong use or bad input, 75 try again later, 130 or 143 ended by a signal.
    """


def run() -> NoReturn:
    """Run ``main`` and leave the process.

    Everything is written and closed by then; taking the interpreter apart would cost as much again
    as a small search. Only resources that multiprocessing keeps outside this process are removed.
    """
    # Importing makes many objects and no garbage: looking for it takes a sixth of the time.
    gc.set_threshold(100_000, 50, 50)
    # Threads that read, hash and decode want the interpreter for a moment each time, and one that
    # imports would keep it from them for 5 ms.
    sys.setswitchinterval(_SWITCH_SECONDS)
    sys.meta_path.insert(0, _Unneeded())
    _open_streams()
    warnings.showwarning = _tell_warning
    _hear_signals()
    bound_thread_starts()
    batch, code = _batch(), 0
    while True:
        try:
            main()
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 0
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError):  # told by then, or there is nobody to tell
                stream.flush()
        if code or batch is None or _heard is not None:
            break
        try:
            if not batch.next_job():
                break
        except KeyboardInterrupt:  # while it waited
            break
    _ignore_signals()
    if processes := sys.modules.get("multiprocessing.util"):
        processes._run_finalizers(0)  # semaphores have names, which would stay
    os._exit(code)


class _Unneeded:
    """Packages that are not found, even if they are installed. Numba looks for BLAS in SciPy, and
    Arrow for data frames of pandas: they would take some tenths of a second. No command needs them.
    """

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name in ("scipy", "pandas"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def _open_streams() -> None:
    """Open all three standard streams if any is closed; characters that cannot be encoded are
    written as escapes.

    A file opened later would get the number of a closed stream, and messages of libraries would go
    into that file.
    """
    closed = sys.stdout is None
    while (number := os.open(os.devnull, os.O_RDWR)) < 3:
        os.set_inheritable(number, True)  # to workers, too
    os.close(number)
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115 - to the end
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115 - to the end
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # pyright: ignore - as opened by Python
    if closed:
        click.echo(
            "delegraph: stdout is closed: redirect it to /dev/null if nobody reads it", err=True
        )
        os._exit(2)


def main() -> None:
    """Run the command line; turn failures into one line and an exit code."""
    events.begin()
    try:
        _run_command()
    except SystemExit as ended:
        events.end(ended.code if isinstance(ended.code, int) else 0)
        raise


def _run_command() -> None:
    try:
        _find_cache()
        try:
            code = cli.main(standalone_mode=False)
        finally:
            _tell_cache()
        sys.stdout.flush()
        sys.exit(code if isinstance(code, int) else 0)
    except click.exceptions.Abort:
        _ignore_signals()
        _fail(*_ended(), retry=True)
    except click.ClickException as error:
        told = without_secrets(error.message)
        error.message = told  # pyright: ignore[reportAttributeAccessIssue] - only declared final
        events.failed(error.format_message())
        if not events.are_wanted():
            error.show()
        _print_error(error.format_message(), error.exit_code)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # Whoever read our output has left; keep Python from complaining while it ends.
        events.failed(_READER_LEFT)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as error:
        if "--debug" in sys.argv:
            with contextlib.suppress(OSError):  # nobody to tell
                click.echo(without_secrets(traceback.format_exc()), err=True, nl=False)
        if _heard is not None:  # what an interrupt has become on its way
            _ignore_signals()
            _fail(*_ended(), retry=True)
        _fail(*_told(error), retry=getattr(error, "retry", False))


def _told(error: Exception) -> tuple[str, int]:
    """Return one line for a failure, and its exit code."""
    from ..partition.errors import DelegraphError

    few = _too_few(error)
    if few:
        return few, 1
    if isinstance(error, DelegraphError):
        return str(error), error.exit_code
    if isinstance(error, MemoryError):
        return f"out of memory: {error}", 1
    if isinstance(error, OSError) and error.strerror:
        wrong = error.errno in (errno.ENAMETOOLONG, errno.ELOOP)
        return f"{error.filename or _file_of(error)}: {error.strerror}", 2 if wrong else 1
    if isinstance(error, UnicodeEncodeError) and "surrogates" in error.reason:
        return f"{error.object}: the name is not UTF-8: rename the file", 2
    return f"{type(error).__name__}: {error} (--debug shows the traceback)", 1


def _file_of(error: OSError) -> str:
    """Name the file of an error that names none: stdout, if click or a command was writing to
    it.
    """
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    code = frame and frame.tb_frame.f_code
    return "stdout" if code in (_run_command.__code__, click.echo.__code__) else "a file"


def _too_few(error: BaseException | None) -> str:
    """Return the advice for a limit on descriptors or threads, if this error or its cause met
    one.
    """
    seen: set[BaseException] = set()  # what is raised again by another thread may be its own cause
    while error is not None and error not in seen:
        seen.add(error)
        if getattr(error, "errno", None) in (errno.EMFILE, errno.ENFILE) or (
            os.strerror(errno.EMFILE) in str(error)
        ):
            return "the limit on open files is too low: raise it, for example with 'ulimit -n 1024'"
        if CANNOT_START in str(error):
            return (
                "the system cannot start more threads: raise 'ulimit -u', give fewer --threads, or "
                "free some memory"
            )
        error = error.__cause__ or error.__context__
    return ""


_heard: int | None = None
"""The first signal that asked for an end."""
_heard_at = 0.0
_AT_ONCE = 1.0
"""Seconds in which several signals are one."""
_SOON, _AGAIN = 0.01, 12.0


def _hear_signals() -> None:
    """Let signals end the command as a failure does, after saving its state.

    A command that was started in the background ignores SIGINT, and continues to ignore it.
    """
    for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)
    signal.signal(signal.SIGALRM, _interrupt)
    sys.unraisablehook = _tell_unless_interrupted


def _batch() -> Any:
    """Return the batch that has started this process, if one has."""
    if ending.LIFELINE not in os.environ:
        return None
    from ..partition.errors import InputError
    from ..partition.numbers import parse_integer
    from .batched import Batch

    told = os.environ.pop(ending.LIFELINE)
    try:
        return Batch(parse_integer(told, 0, _MOST_DESCRIPTOR))
    except (InputError, OSError) as error:
        click.echo(
            f"delegraph: {ending.LIFELINE} is set, which only 'batch run' may do: unset it "
            f"({error})",
            err=True,
        )
        os._exit(2)


def _end(number: int, frame: object) -> None:
    """End the command; wait for a run that saves its state, but not for long, and not after a
    second signal.
    """
    global _heard, _heard_at
    again, _heard = _heard is not None, _heard or number
    now, before = time.monotonic(), _heard_at
    if again and now - before < _AT_ONCE:
        return  # supervisors may tell the group, and each process of it
    _heard_at = now
    saves = not again and ending.ask()
    # Where a library swallows an interrupt there is another one later.
    signal.setitimer(signal.ITIMER_REAL, ending.SAVE_SECONDS if saves else _AGAIN, _AGAIN)
    if not saves:
        raise KeyboardInterrupt


def _tell_unless_interrupted(told: Any) -> None:
    """Print an exception that Python ignores, unless it is an interrupt: Python swallows an
    interrupt in code that the garbage collector or a finalizer calls, and the interrupt is then
    raised again at once.
    """
    if _heard is not None and issubclass(told.exc_type, KeyboardInterrupt):
        signal.setitimer(signal.ITIMER_REAL, _SOON, _AGAIN)
    else:
        sys.__unraisablehook__(told)


def _ignore_signals() -> None:
    """Ignore signals: the end is told, and nothing more."""
    signal.setitimer(signal.ITIMER_REAL, 0)
    for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT, signal.SIGALRM):
        if signal.getsignal(number) in (_end, _interrupt):
            signal.signal(number, signal.SIG_IGN)


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def _ended() -> tuple[str, int]:
    """Return one line, and the exit code, of a command that a signal has ended."""
    on = ""
    if ending.saved():
        on = "; the work so far is saved: run the same command again to continue"
    if _heard in (None, signal.SIGINT):
        return f"interrupted{on}", 128 + signal.SIGINT
    return f"ended by {signal.Signals(_heard).name}{on}", 128 + signal.SIGTERM


def _tell_warning(message: Warning | str, *where: object, **details: object) -> None:
    """Print a library's warning as one line, like all other messages; Numba's has a traceback in
    it, and the whole value of a variable that it cannot read.
    """
    told = " ".join(str(message).split())
    _note(told if len(told) <= _LONGEST_WARNING else f"{told[:_LONGEST_WARNING]}...")


def _find_cache() -> None:
    """Choose a folder where compiled kernels can be kept."""
    kernels = Path(__file__).parents[1] / "kernels"
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    while not home.exists():
        home = home.parent
    if "NUMBA_CACHE_DIR" in os.environ or any(os.access(p, os.W_OK) for p in (kernels, home)):
        return
    from ..partition.disk.private import make_private
    from ..partition.errors import InputError

    try:
        place = Path(tempfile.gettempdir(), f"delegraph-{os.getuid()}")
        make_private(place)  # what is in it will be run
        os.environ["NUMBA_CACHE_DIR"] = str(place)
    except InputError as error:
        _note(f"compiled kernels cannot be cached, and the next run compiles again: {error}")
    except OSError:  # no folder for temporary files, either: each run compiles
        pass


def _tell_cache() -> None:
    """Say why the cache of compiled kernels could not be used."""
    module = sys.modules.get(f"{(__package__ or '').rpartition('.')[0]}.kernels.base.compiled")
    if module and module.notes:
        _note(module.notes[0])  # the others are of other functions
        module.notes.clear()


def _note(line: str) -> None:
    if "--quiet" not in sys.argv:
        events.tell(line, "note: ")


def _fail(message: str, code: int, retry: bool = False) -> None:
    message = without_secrets(message)
    events.failed(message, retry)
    if not events.are_wanted():
        with contextlib.suppress(OSError):  # nobody to tell: the code says it
            click.echo(f"delegraph: {message}", err=True)
    _print_error(message, code)
    sys.exit(code)


def _print_error(message: str, code: int) -> None:
    """Print an error; with --json it is a document, too."""
    if "--json" in sys.argv:
        with contextlib.suppress(OSError):  # stdout may be what failed
            click.echo(json.dumps({"error": message, "exit_code": code}, indent=1))
