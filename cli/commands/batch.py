"""``delegraph batch``: run, plan, status, logs, retry."""

from __future__ import annotations

import sys
import time
from collections.abc import Collection, Mapping, Sequence
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import click

from ...partition.numbers import shown as shown_value
from ...pipeline.questions import QUESTIONS
from .. import events, options
from ..command import Group
from ..numbers import WholeNumber
from ..progress import shown
from ..talk import print_json, talk

_JOBS = sorted({*QUESTIONS, "build", "convert", "report", "validate"})
"""Commands that may be jobs."""

_OF_BATCH = {"as_json", "debug", "heartbeat", "help", "log_format", "overwrite", "quiet", "timeout"}
"""Options that a job leaves to the batch."""

_HOW = {
    "checkpoint",
    "device",
    "device_memory_limit",
    "memory_limit",
    "restart",
    "scheduler",
    "scheduler_file",
    "scratch",
    "threads",
    "workers",
}
"""Options that do not change what a command gives."""

_GREATEST = 2**64
"""Integers of a file of jobs: seeds and ids are less."""

_CLUSTER = ("scheduler", "scheduler_file", "workers")

_READ = {"edges", "graph", "input", "path", "personalize", "result", "sources"}


class _Commands:
    """The commands that jobs may run, in the form that batches/jobs.py needs."""

    def names(self) -> Collection[str]:
        return _JOBS

    def options(self, command: str) -> Collection[str] | None:
        return self._params(command).keys() if command in _JOBS else None

    def line(self, command: str, options: Mapping[str, Any]) -> tuple[Any, Mapping[str, str]]:
        from ...partition.errors import DelegraphError
        from ...pipeline.batches.job import Line

        known = self._params(command)
        context = click.Context(_command(command), info_name=command)
        typed: dict[str, _Typed] = {}
        wrong: dict[str, str] = {}
        for name, param in known.items():
            if options.get(name) is None:
                if param.required:
                    wrong[name] = f"{command} needs '{name}'"
                continue
            try:
                typed[name] = _typed(context, param, options[name])
            except click.BadParameter as error:
                wrong[name] = f"'{name}'{error.message}"
            except DelegraphError as error:
                wrong[name] = f"'{name}': {error}"
        if not wrong:
            wrong = _wrong_together(command, {name: option.value for name, option in typed.items()})
        if wrong:
            return None, wrong
        limit, output = typed.get("memory_limit"), typed.get("output")
        line = Line(
            options=[command, *(word for option in typed.values() for word in option.words)],
            arguments=[option.argument for option in typed.values() if option.argument is not None],
            asked=[command, *(option.told for name, option in typed.items() if name not in _HOW)],
            inputs={name: option.read for name, option in typed.items() if option.read is not None},
            output=output.path if output else None,
            memory_limit=limit.value if limit else None,
            takes_limit="memory_limit" in known,
            takes_restart="restart" in known,
            shares=_shared(typed) if command in QUESTIONS else None,
        )
        return line, {}

    def _params(self, command: str) -> dict[str, click.Parameter]:
        """Return arguments, then options by name, so that a job stays the same when the help is
        reordered.
        """
        params = {param.name or "": param for param in _command(command).params}
        words = [name for name, param in params.items() if isinstance(param, click.Argument)]
        names = [*words, *sorted(params.keys() - set(words))]
        return {name: params[name] for name in names if name not in _OF_BATCH}


def _wrong_together(command: str, values: Mapping[str, Any]) -> dict[str, str]:
    """Return errors of options that are wrong together for any graph. They concern the whole job,
    so they are told at its command.
    """
    from ...partition.errors import InputError
    from ...pipeline.build.prepare import StoreOptions, build_options_of
    from ...pipeline.parameter_checks import algorithm_of

    def values_of(known: Collection[str]) -> dict[str, Any]:
        return {name: value for name, value in values.items() if name in known}

    try:
        build_options_of(**values_of(StoreOptions.__annotations__))
        if command in QUESTIONS:
            question = QUESTIONS[command]
            algorithm_of(question, values_of([parameter.name for parameter in question.parameters]))
    except InputError as error:
        return {"command": str(error)}
    return {}


class _Typed(NamedTuple):
    """An option of a job. words: on the command line; argument: text after all options, of a
    parameter that is no option. told: the option in a form to compare jobs by. value: as the
    command takes it. path: the path that the option names; read: whether the command reads that
    path.
    """

    words: Sequence[str]
    argument: str | None
    told: str
    value: Any
    path: str
    read: str | None


def _typed(context: click.Context, param: click.Parameter, value: Any) -> _Typed:
    """Return an option of a job. Raises BadParameter or DelegraphError for a wrong value; the text
    of BadParameter begins after the option's name.
    """
    from ...partition.disk.urls import is_file_name, named

    name = param.name or ""
    if isinstance(value, list) and name == "sources":
        value = _listed(value)
    is_flag = isinstance(param, click.Option) and bool(param.is_flag)
    if is_flag != isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise click.BadParameter(f" must be {'true or false' if is_flag else 'text or a number'}")
    if isinstance(value, int) and abs(value) > _GREATEST:
        raise click.BadParameter(f": {shown_value(value)} is out of range: at most {_GREATEST:,}")
    if value == "" and (isinstance(param.type, click.Path) or name in _READ):
        raise click.BadParameter(" is empty")
    if "\0" in str(value):
        raise click.BadParameter(" contains a null character")
    try:
        taken = param.process_value(context, value if is_flag else str(value))
    except click.BadParameter as error:
        raise click.BadParameter(f": {error.message}") from error
    path = named(str(value)) if name in _READ or name == "output" else ""
    is_read = name in _READ and (name != "sources" or is_file_name(str(value)))
    read = path if is_read else None
    if isinstance(param, click.Argument):
        return _Typed([], str(value), f"{name}={value}", taken, path, read)
    word = param.opts[-1] if is_flag else f"{param.opts[-1]}={value}"
    return _Typed([word] if value or not is_flag else [], None, word, taken, path, read)


def _listed(ids: Sequence[Any]) -> str:
    """Return ids as they are typed; a comma after a single id tells that it is no number of
    vertices.
    """
    for value in ids:
        if isinstance(value, bool) or not isinstance(value, (int, str)):
            raise click.BadParameter(
                " must be a list of ids, whole numbers or text, such as [17, 42]"
            )
        if isinstance(value, int) and abs(value) > _GREATEST:
            raise click.BadParameter(f": {shown_value(value)} is out of the range of ids")
        if value == "" or "," in str(value):
            raise click.BadParameter(
                f": {shown_value(value)}: an id that is empty or has a comma must be in a .parquet "
                "file"
            )
    return ",".join(map(str, ids)) + ("," if len(ids) == 1 else "")


def _shared(typed: Mapping[str, _Typed]) -> str:
    """Return the key of the resource that a process may keep for other jobs: the workers of a
    cluster, or a graph.
    """
    from ...partition.disk.urls import absolute

    cluster = [typed[name].told for name in _CLUSTER if name in typed]
    graph = absolute(typed["graph"].path)
    how = [
        typed[name].told for name in ("device", "device_memory_limit", "threads") if name in typed
    ]
    return " ".join([*(cluster or [graph]), *how])


def _command(name: str) -> click.Command:
    from ..main import cli

    found = cli.get_command(click.Context(cli), name)
    assert found is not None
    return found


@click.group(cls=Group)
def batch() -> None:
    """Run many commands from one job file. Later runs repeat only those that are due.

    \b
    [defaults]                       # options for every job whose command has them
    memory_limit = "4GB"
    retries = 2                      # further tries, if the failure may pass
    [[job]]
    name = "store"
    command = "build"
    edges = "edges/"
    output = "graph.dg"
    [[job]]
    name = "ranks"
    command = "pagerank"
    graph = "graph.dg"
    output = "out/{date}/{name}"     # {name}, {date}, and the KEYs of --set
    needs = ["store"]
    timeout = "2h"                   # for one try

    \b
    delegraph batch plan jobs.toml
    delegraph batch run jobs.toml --jobs 2
    delegraph batch status jobs.toml
    """


_file = click.argument("file", type=click.Path(path_type=Path))
_set = click.option(
    "--set",
    "variables",
    multiple=True,
    metavar="KEY=VALUE",
    help="Text that replaces {KEY} in the job file. May be given for several keys.  [default: "
    "date=TODAY, such as 2026-11-23]",
)
_jobs = click.option(
    "--jobs",
    "at_once",
    type=WholeNumber(min=1),
    default=1,
    show_default=True,
    help="Number of jobs to run at once. Each gets a share of the memory limit.",
)


@batch.command()
@_file
@_jobs
@options.memory_limit
@_set
@options.as_json
@options.quiet
@options.debug
def run(file: Path, as_json: bool, quiet: bool, **values: Any) -> None:
    """Run the jobs of FILE that are not done, or whose inputs or options have changed.

    Jobs run in processes of their own. Jobs on one graph that follow each other share a process,
    and the graph that the process has loaded. FILE.batch/NAME.log keeps the events of the job NAME.
    If a job fails, the jobs that need it are left out, and the others run. A job is tried again if
    another try may help: after exit code 75, or after a lost worker. The same command resumes an
    interrupted batch.

    \b
    delegraph batch run jobs.toml --jobs 2

    Exit code 0: all jobs are done. 1: some are not.
    """
    from ...pipeline.batches.ledger import ledger_of, open_ledger
    from ...pipeline.batches.run import run_batch

    jobs, how = _jobs_of(file, values["variables"]), _how(values)
    with shown(quiet) as progress:
        tell = partial(_tell, quiet)
        entries = run_batch(file, jobs, how, tell, progress)
    left = [entry.name for entry in entries if entry.state != "done"]
    if as_json:
        with open_ledger(ledger_of(file), write=False) as ledger:
            print_json(_document(entries, ledger.tries()))
    else:
        click.echo(f"{len(entries) - len(left)} of {len(entries)} jobs done")
    if left:
        events.failed(f"not done: {', '.join(left)}")
        sys.exit(1)


def _document(entries: Sequence[Any], tries: Mapping[str, Sequence[Any]]) -> Any:
    """Return the document of jobs for --json."""
    return {
        "jobs": [
            {
                **entry._asdict(),
                "tries": [
                    {key: value for key, value in attempt._asdict().items() if key != "name"}
                    for attempt in tries.get(entry.name, ())
                ],
            }
            for entry in entries
        ]
    }


def _tell(quiet: bool, name: str, told: str) -> None:
    """Say what became of a job. A failure is told even if quiet, for cron's mail."""
    talk(quiet and not told.startswith("failed"), f"{name}: {told}")


@batch.command()
@_file
@_jobs
@options.memory_limit
@_set
@options.as_json
@options.debug
def plan(file: Path, as_json: bool, **values: Any) -> None:
    """Show which jobs a run would start, in order, why, and within how much memory.

    \b
    delegraph batch plan jobs.toml --set date=2026-11-23
    """
    from ...partition.disk.memory import format_bytes
    from ...pipeline.batches.due import (
        check_memory,
        held_back,
        plan_batch,
        share_of,
        too_little_for_both,
    )

    jobs, how = _jobs_of(file, values["variables"]), _how(values)
    check_memory(file, jobs, how)
    planned = plan_batch(file, jobs, how)
    runs = {entry.job.name for entry in planned if entry.why}
    apart = [pair for pair in held_back(jobs, how) if runs.issuperset(job.name for job in pair)]
    if as_json:
        facts = [
            {
                "name": entry.job.name,
                "runs": bool(entry.why),
                "why": entry.why or None,
                "memory_limit_bytes": entry.memory_limit,
                "not_beside": [first.name for first, then in apart if then is entry.job],
                "command": ["delegraph", *entry.job.line.options, "--", *entry.job.line.arguments],
            }
            for entry in planned
        ]
        print_json({"jobs": facts})
        return
    width = max(len(entry.job.name) for entry in planned)
    for entry in planned:
        told = (
            f"runs within {format_bytes(entry.memory_limit)}: {entry.why}"
            if entry.why
            else "is done"
        )
        click.echo(f"{entry.job.name:{width}}  {told}")
    for first, then in apart:
        told = too_little_for_both(share_of(first, how) + share_of(then, how), how)
        click.echo(f"{then.name:{width}}  not at the same time as {first.name}: {told}")


@batch.command()
@_file
@options.as_json
@options.debug
def status(file: Path, as_json: bool) -> None:
    """Show the state of each job, and its tries since it was last done.

    \b
    delegraph batch status jobs.toml --json
    """
    from ...partition.disk.memory import format_bytes
    from ...pipeline.batches.ledger import is_running, ledger_of, open_ledger, with_cut_off

    with open_ledger(ledger_of(file), write=False) as ledger:
        entries, tries = list(ledger.entries().values()), ledger.tries()
    if not is_running(file):
        entries = [
            entry._replace(state="cut off") if entry.state == "running" else entry
            for entry in entries
        ]
        tries = {name: with_cut_off(attempts) for name, attempts in tries.items()}
    if as_json:
        print_json(_document(entries, tries))
        return
    width = max((len(entry.name) for entry in entries), default=0)
    for entry in entries:
        told = [f"{entry.name:{width}}  {entry.state:8}"]
        attempts = tries.get(entry.name, [])
        if count := len(attempts) or entry.attempts:
            told.append(f"{count} tr{'y' if count == 1 else 'ies'}")
        if entry.seconds is not None:
            told.append(f"{entry.seconds:.1f} s")
        if entry.peak_bytes is not None:
            told.append(format_bytes(entry.peak_bytes))
        if entry.error:
            told.append(entry.error)
        click.echo("  ".join(told))
        last = next(
            (i for i, attempt in enumerate(attempts) if attempt.began == entry.began), len(attempts)
        )
        for number, attempt in enumerate(attempts[:last], 1):
            told = [f"{'':{width}}  {attempt.state:8}", f"try {number}, began {attempt.began[:19]}"]
            if attempt.seconds is not None:
                told.append(f"{attempt.seconds:.1f} s")
            if attempt.error:
                told.append(attempt.error)
            click.echo("  ".join(told))


@batch.command()
@_file
@click.argument("name")
@click.option("--follow", is_flag=True, help="Print new events until the job ends.")
@options.debug
def logs(file: Path, name: str, follow: bool) -> None:
    """Print the events of the job NAME, one a line.

    \b
    delegraph batch logs jobs.toml ranks
    """
    from ...partition.errors import InputError
    from ...pipeline.batches.ledger import is_running, ledger_of, log_of, open_ledger

    def runs() -> bool:
        with open_ledger(ledger_of(file), write=False) as ledger:
            entry = ledger.entries().get(name)
        if entry is None:
            raise InputError(f"{file}: no job named '{name}' has run")
        return entry.state in ("running", "waiting") and is_running(file)

    goes_on = runs()
    log = log_of(file, name)
    while not log.exists():
        if not (follow and goes_on):
            return
        time.sleep(0.2)
        goes_on = runs()
    with log.open() as lines:
        while True:
            for line in lines:
                click.echo(line, nl=False)
            if not (follow and goes_on):
                return
            goes_on = runs()  # before the last look
            time.sleep(0.2)


@batch.command()
@_file
@click.argument("name")
@_set
@options.debug
def retry(file: Path, name: str, variables: Sequence[str]) -> None:
    """Let the next run do the job NAME again, and all jobs that need it.

    \b
    delegraph batch retry jobs.toml store
    """
    from ...pipeline.batches.run import retry as run_again

    jobs = _jobs_of(file, variables)
    click.echo(f"the next run repeats: {', '.join(run_again(file, jobs, name))}")


def _jobs_of(file: Path, given: Sequence[str]) -> Sequence[Any]:
    """Read the jobs of a file. given: KEY=VALUE."""
    from ...pipeline.batches.jobs import read_jobs

    variables: dict[str, str] = {}
    for pair in given:
        key, equals, value = pair.partition("=")
        if not equals or not key.isidentifier():
            raise click.UsageError(f"--set {shown_value(pair)}: write it as KEY=VALUE")
        if key == "name":
            raise click.UsageError(
                "--set name: {name} always stands for the name of the job: choose another key"
            )
        if key in variables:
            raise click.UsageError(f"--set {shown_value(key)} is given twice: give it once")
        variables[key] = value
    return read_jobs(file, {"date": date.today().isoformat(), **variables}, _Commands())


def _how(values: Mapping[str, Any]) -> Any:
    """Return the options of a batch."""
    from ...partition.disk.memory import default_limit
    from ...pipeline.batches.due import BatchOptions

    return BatchOptions(values["at_once"], values["memory_limit"] or default_limit())
