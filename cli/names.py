"""Names of commands that are none, with what was perhaps meant."""

from __future__ import annotations

import click

from ..partition.errors import did_you_mean


def check_command(group: click.Group, ctx: click.Context, name: str) -> None:
    """UsageError for a name that the group has not; options are left to its parser."""
    if not name.startswith("-") and group.get_command(ctx, name) is None:
        known = group.list_commands(ctx)
        raise click.UsageError(f"No such command '{name}'{did_you_mean(name, known)}", ctx)
