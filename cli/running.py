"""What every command does that asks a question of a graph: run, and tell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from . import options
from .progress import shown


def run_and_tell(
    run: Callable[..., Any],
    told: Callable[[Any], str],
    graph: str,
    output: str,
    *,
    as_json: bool,
    quiet: bool,
    overwrite: bool,
    checkpoint: float,
    verb: str = "found",
    **values: Any,
) -> Any:
    """Call ``run`` with what was typed, show how far it is, and print what its record tells, which
    is returned. told: in one line, from the record. verb: what was done.
    """
    with shown(quiet) as progress:
        record, already, notes = run(
            graph,
            output=output,
            checkpoint=checkpoint,
            overwrite=overwrite,
            progress=progress,
            **options.given(values),
        )
    reused = [step["name"] for step in record["plan"]["steps"] if step["reused"]]
    options.tell_reused(quiet or already, reused)
    for note in notes:
        options.talk(quiet, note)
    line = told(record)
    if as_json:
        options.print_json({**record, "already": already})
        return record
    click.echo(line)
    spent = ", ".join(f"{phase} {value:.3f} s" for phase, value in record["seconds"].items())
    done = f"{verb} already" if already else f"{verb} on {record['device']}, written"
    options.talk(quiet, f"{output}: {done} ({spent})")
    return record
