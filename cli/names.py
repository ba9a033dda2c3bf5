"""Errors for unknown command names, with a suggestion."""

from __future__ import annotations

import click

from ..partition.errors import did_you_mean


def check_command(group: click.Group, ctx: click.Context, name: str) -> None:
    """Raise UsageError for a name that the group does not have; the group's parser handles
    options.
    """
    if not name.startswith("-") and group.get_command(ctx, name) is None:
        known = group.list_commands(ctx)
        raise click.UsageError(f"No such command '{name}'{did_you_mean(name, known)}", ctx)
