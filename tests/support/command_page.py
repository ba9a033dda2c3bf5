"""``docs/reference/commands.md``, the help of every command; run as a program, this file writes the
page.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from delegraph.cli.command import full_help
from delegraph.cli.main import cli

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "commands.md"


def page() -> str:
    width = {"max_content_width": 100, "terminal_width": 100}
    context = click.Context(cli, info_name="delegraph", **width, **cli.context_settings)
    text = "\n".join(_told(context))
    return f"# The command line\n\nWhat each command's `--help` says.\n\n{text}"


def _told(context: click.Context) -> Iterator[str]:
    command = context.command
    yield f"## {context.command_path}\n\n```\n{full_help(context)}\n```\n"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from _told(click.Context(inner, parent=context, info_name=name))


if __name__ == "__main__":
    PAGE.write_text(page())
