"""The commands that ask a question of a graph, made of the declarations in pipeline/questions."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import click

from ..pipeline.questions import Question
from ..pipeline.questions.parameters import (
    REQUIRED,
    Choice,
    Flag,
    OneVertex,
    Parameter,
    Real,
    SomeVertices,
    SuperstepsFile,
    VertexPairs,
    VertexWeights,
    Vertices,
    Whole,
)
from . import options
from .command import command
from .numbers import Number, WholeNumber
from .progress import shown
from .talk import given, print_json, talk, tell_reused

_TABLE = "-"
"""The value of ``--profile`` without a file: a table for people."""


def command_of(question: Question) -> click.Command:
    """Return the command of a question."""

    def run(**values: Any) -> None:
        _run(question, **values)

    run.__name__ = question.name
    run.__doc__ = _help(question)
    weighted = any(form.weights for form in question.forms)
    for add in reversed(
        (
            *(_option(parameter) for parameter in question.parameters),
            *((_STRICT,) if question.converges else ()),
            *((options.top,) if any(form.finding for form in question.forms) else ()),
            options.graph_and_output,
            *((options.weight_options,) if weighted else ()),
            *((options.loops,) if any(form.counts_loops for form in question.forms) else ()),
            options.device_by_estimate,
            options.running,
        )
    ):
        run = add(run)
    return command()(run)


_STRICT = click.option("--strict", is_flag=True, help="Exit with 1 if the run has not converged.")


def _option(parameter: Parameter) -> Callable[[Any], Any]:
    """The option of a parameter."""
    settings: dict[str, Any] = {}
    match parameter.kind:
        case Whole(least, most, words):
            settings = {"type": WholeNumber(min=least, limit=most, words=words)}
        case Real(words):
            settings = {"type": Number(words=words)}
        case Flag():
            settings = {"is_flag": True}
        case Choice(words):
            settings = {"type": click.Choice(words)}
        case OneVertex():
            settings = {"metavar": "ID"}
        case Vertices():
            settings = {"metavar": "FILE|ID,ID,..."}
        case SomeVertices():
            settings = {"metavar": "K|ID,ID|FILE"}
        case VertexPairs():
            settings = {"metavar": "FILE"}
        case VertexWeights():
            settings = {"metavar": "FILE.parquet", "type": click.Path()}
        case SuperstepsFile():
            settings = {"metavar": "[FILE.parquet]", "is_flag": False, "flag_value": _TABLE}
    if parameter.default is REQUIRED:
        settings["required"] = True
    elif parameter.default not in (None, False):
        settings |= {"default": parameter.default, "show_default": True}
    names = [parameter.option, *([parameter.alias] if parameter.alias else [])]
    return click.option(*names, parameter.name, help=parameter.help, **settings)


def _help(question: Question) -> str:
    columns, description = "", question.description.strip()
    form = question.forms[0]
    if len(question.forms) == 1 and not form.alternatives:
        *names, last = (*form.keys, *form.columns)
        columns = f"OUTPUT has the columns {', '.join(names)} and {last}. "
    examples = "\n".join(question.examples)
    return f"""{question.summary}

GRAPH is a store or a Parquet edge list; an edge list may be a URL (s3://, gs://, abfs://).

\b
{examples}

{columns}{description}

The run record stands beside OUTPUT: OUTPUT.run.json.
"""


def _run(
    question: Question,
    *,
    graph: str,
    output: str | None,
    no_output: bool,
    as_json: bool,
    quiet: bool,
    strict: bool = False,
    top: int = 0,
    **typed: Any,
) -> None:
    """Ask the question, show how far it is, and tell what was found."""
    from ..pipeline.summary import found_lines

    if no_output == (output is not None):
        raise click.UsageError(
            "--output and --no-output exclude each other"
            if no_output
            else "Missing option '-o' / '--output': name an output folder, or give --no-output"
        )
    chosen = given(typed)
    names = [parameter.name for parameter in question.parameters]
    values = {name: chosen.pop(name) for name in names if name in chosen}
    form = question.forms[question.form(values)]
    if form.finding is None and given({"top": top}):
        raise click.UsageError("--top does not go with --sources, unless --together is given")
    shows_table = values.get("profile") == _TABLE
    if shows_table:
        del values["profile"]
    with shown(quiet) as progress:
        asked = Asked(question, graph, values, {**chosen, "progress": progress}, top)
        record, already, notes = _in_memory(asked) if output is None else _written(asked, output)
    reused = [step["name"] for step in record["plan"]["steps"] if step["reused"]]
    tell_reused(quiet or already, reused)
    for note in notes:
        talk(quiet, note)
    if as_json:
        print_json({**record, "already": already})
    else:
        if shows_table:
            talk(False, _supersteps(record))
        click.echo(form.tell(record))
        if form.finding and (lines := found_lines(form.name, record.get("found", {}), top)):
            click.echo(lines)
        phases = record["seconds"].items()
        spent = ", ".join(f"{phase} {value:.3f} s" for phase, value in phases if output or value)
        done = "found already" if already else f"found on {record['device']}"
        written = f"{output}: {done}{'' if already else ', written'}" if output else done
        talk(quiet, f"{written} ({spent})")
    if strict and record[form.key]["converged"] is False:
        sys.exit(1)


class Asked(NamedTuple):
    """A question as it was typed. values: of its parameters. options: of the run. top: how many
    vertices or groups to name.
    """

    question: Question
    graph: str
    values: dict[str, Any]
    options: dict[str, Any]
    top: int


def _written(asked: Asked, output: str) -> tuple[Any, bool, Sequence[str]]:
    """Ask with an output. Return the record, whether it was there already, and notes."""
    from ..pipeline.ask import ask_to_output
    from ..pipeline.summary import with_top

    name, top = asked.question.name, asked.top
    record, already, notes = ask_to_output(
        name, asked.graph, output, asked.values, asked.options, top
    )
    form = asked.question.forms[asked.question.form(asked.values)]
    return with_top(form.name, record, output, top) if already else record, already, notes


def _in_memory(asked: Asked) -> tuple[Any, bool, Sequence[str]]:
    """Ask without an output, and return as ``_written`` does."""
    from ..pipeline.ask import NEEDS_NO_OUTPUT, ask
    from ..pipeline.results.findings import TOP

    written = [parameter.name for parameter in asked.question.parameters if parameter.written]
    needing = [*(asked.options.keys() - NEEDS_NO_OUTPUT), *(asked.values.keys() & {*written})]
    if needing:
        named = ", ".join(f"--{name.replace('_', '-')}" for name in sorted(needing))
        raise click.UsageError(f"without an output there is nothing for {named} to do")
    result: Any = ask(asked.question.name, asked.graph, None, asked.values, asked.options)
    record = result.record
    if asked.top > TOP:
        record = {**record, "found": result.found(asked.top)}
    return record, False, result.notes


def _supersteps(record: Any) -> str:
    from ..pipeline.reports.report import supersteps_table

    return supersteps_table(record["supersteps"], record["supersteps_between"])
