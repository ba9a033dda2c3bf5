"""The commands that ask a question of a graph, made of the declarations in pipeline/questions."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

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
            options.graph_and_output,
            *((options.weight_options,) if weighted else ()),
            options.device if question.forms[0].gpu_by_default else options.device_if_named,
            options.running,
        )
    ):
        run = add(run)
    return command()(run)


_STRICT = click.option("--strict", is_flag=True, help="Exit with 1 if the run has not converged.")


def _option(parameter: Parameter) -> Callable[[Any], Any]:
    """The option of a parameter."""
    more: dict[str, Any] = {}
    match parameter.kind:
        case Whole(least, most):
            more = {"type": WholeNumber(min=least, limit=most)}
        case Real():
            more = {"type": Number()}
        case Flag():
            more = {"is_flag": True}
        case Choice(words):
            more = {"type": click.Choice(words)}
        case OneVertex():
            more = {"metavar": "ID"}
        case Vertices():
            more = {"metavar": "FILE|ID,ID,..."}
        case SomeVertices():
            more = {"metavar": "K|ID,ID|FILE"}
        case VertexWeights():
            more = {"metavar": "FILE.parquet", "type": click.Path()}
        case SuperstepsFile():
            more = {"metavar": "[FILE.parquet]", "is_flag": False, "flag_value": _TABLE}
    if parameter.default is REQUIRED:
        more["required"] = True
    elif parameter.default not in (None, False):
        more |= {"default": parameter.default, "show_default": True}
    return click.option(parameter.option, help=parameter.help, **more)


def _help(question: Question) -> str:
    columns, description = "", question.description.strip()
    if len(question.forms) == 1:
        *names, last = ("vertex", *question.forms[0].columns)
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
    output: str,
    as_json: bool,
    quiet: bool,
    overwrite: bool,
    checkpoint: float,
    strict: bool = False,
    **typed: Any,
) -> None:
    """Ask the question, show how far it is, and tell what its run record says."""
    from ..pipeline.ask import ask_to_output

    chosen = given(typed)
    names = [parameter.name for parameter in question.parameters]
    values = {name: chosen.pop(name) for name in names if name in chosen}
    form = question.forms[question.form(values)]
    shows_table = values.get("profile") == _TABLE
    if shows_table:
        del values["profile"]
    with shown(quiet) as progress:
        chosen |= {"checkpoint": checkpoint, "overwrite": overwrite, "progress": progress}
        record, already, notes = ask_to_output(question.name, graph, output, values, chosen)
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
        spent = ", ".join(f"{phase} {value:.3f} s" for phase, value in record["seconds"].items())
        done = "found already" if already else f"found on {record['device']}, written"
        talk(quiet, f"{output}: {done} ({spent})")
    if strict and record[form.key]["converged"] is False:
        sys.exit(1)


def _supersteps(record: Any) -> str:
    from ..pipeline.reports.report import supersteps_table

    return supersteps_table(record["supersteps"], record["supersteps_between"])
