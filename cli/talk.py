"""Reading of typed options, and printing of messages and documents."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

import click

from . import events


def given(values: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters that the user typed; those at their defaults are left out."""
    context = click.get_current_context()
    typed = click.core.ParameterSource.COMMANDLINE
    return {
        name: value for name, value in values.items() if context.get_parameter_source(name) is typed
    }


def print_json(document: Any) -> None:
    click.echo(json.dumps(document, indent=1))


def bar_mark() -> str:
    """Return the letter that bars on stdout are made of."""
    try:
        _BLOCK.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return "#"
    return _BLOCK


_BLOCK = "\N{FULL BLOCK}"


def talk(quiet: bool, message: str) -> None:
    """Print a line for a person, or an event."""
    if not quiet:
        events.tell(message)


def tell_reused(quiet: bool, steps: Sequence[str]) -> None:
    if steps:
        talk(quiet, f"resumed an earlier run; reused steps: {', '.join(steps)}")
