"""``delegraph validate``."""

from __future__ import annotations

import sys
from typing import Any

import click

from ...pipeline.questions import FORMS, QUESTIONS
from .. import options
from ..command import command
from ..progress import shown
from ..talk import given, print_json, talk


@command()
@click.argument("graph", type=click.Path())
@click.argument("result", type=click.Path())
@options.memory_limit
@options.threads
@click.option(
    "--scratch",
    type=click.Path(),
    metavar="DIR",
    help="Folder for a temporary store, if an edge list does not fit in memory.  [default: the "
    "system's folder for temporary files]",
)
@options.reading_options
@options.weight_options
@click.option(
    "--personalize",
    type=click.Path(),
    metavar="FILE.parquet",
    help="The --personalize file that the PageRank was computed with.",
)
@click.option(
    "--sources",
    metavar="ID,ID|FILE",
    help="Sources of a betweenness. Give them if there are more than 1,024: the result does not "
    "list so many.",
)
@options.as_json
@options.quiet
@options.debug
def validate(graph: str, result: str, as_json: bool, quiet: bool, **values: Any) -> None:
    """Check a result against its graph, by rules that only a right result keeps.

    GRAPH is a store or an edge list. RESULT is a folder that a command wrote. Edge lists and
    results may be URLs (s3://, gs://, abfs://).

    \b
    delegraph validate graph.dg distances/
    delegraph validate edges/ components/

    \b
    {checks}

    Exit code 0: the result is right, as far as it was checked. 1: the result is wrong, or nothing
    could be checked. If it is wrong, the output names each rule that fails, how often, and an
    example.

    --src, --dst, --directed, --weight and --duplicates say how an edge list is read. An edge list
    is also read as directed if the result says so.
    """
    from ...pipeline.api import validate

    with shown(quiet) as progress:
        verdict = validate(graph, result, progress=progress, **given(values))
    form = FORMS[verdict["algorithm"]]
    if verdict["same_graph"] is False:
        talk(
            quiet,
            "note: the result is of another graph, or of a graph that was read in another way "
            "(--directed, --weight, --duplicates); it is checked against this one",
        )
    elif verdict["same_graph"] is None:
        told = "note: the result does not say which question it answers; it is checked as "
        talk(quiet, told + (form.assumed or form.name))
    if as_json:
        print_json(verdict)
    elif verdict["valid"]:
        word = "valid" if verdict["judged"] == "all" else "valid as far as judged"
        click.echo(f"{word}: {form.tell_verdict(verdict)}")
    elif not verdict["rules"]:
        click.echo(f"not judged: {_unknown(verdict)}")
    else:
        for rule in verdict["rules"]:
            example = " -> ".join(str(vertex) for vertex in rule["example"])
            where = f", for example at {example}" if example else ""
            click.echo(
                f"wrong: rule {rule['rule']} ({rule['meaning']}): "
                f"{rule['violations']:,} violations{where}"
            )
    sys.exit(0 if verdict["valid"] else 1)


_WIDTH = max(map(len, QUESTIONS))
_CHECKS = [f"{name:{_WIDTH}}  {question.checked_by}" for name, question in QUESTIONS.items()]
_TITLE = f"{'result':{_WIDTH}}  is checked by"
validate.help = (validate.help or "").replace("{checks}", "\n    ".join([_TITLE, *_CHECKS]))


def _unknown(verdict: Any) -> str:
    """Say why nothing of a result was judged but its rows and the range of its values."""
    if verdict.get("sources", True) is None:
        return "the result does not name its sources: give them with --sources FILE"
    return f"computing the {verdict['unjudged']:,} values again takes too long"
