"""``docs/commands.md``, the help of every command; run as a program, this file writes it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from delegraph.cli.main import cli

PAGE = Path(__file__).parents[2] / "docs" / "commands.md"


def page() -> str:
    told = "\n".join(_told(cli, "delegraph"))
    return f"# The command line\n\nWhat each command's `--help` says.\n\n{told}"


def _told(command: click.Command, name: str) -> Iterator[str]:
    context = click.Context(command, info_name=name, max_content_width=100, terminal_width=100)
    yield f"## {name}\n\n```\n{command.get_help(context)}\n```\n"
    if isinstance(command, click.Group):
        for inner in command.list_commands(context):
            found = command.get_command(context, inner)
            assert found is not None
            yield from _told(found, f"{name} {inner}")


if __name__ == "__main__":
    PAGE.write_text(page())
