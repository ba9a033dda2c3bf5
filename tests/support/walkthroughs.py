"""Pages of commands, run from top to bottom: ```` ```console ```` and ```` ```pycon ```` blocks.

In a console block a command stands after ``$``, and its stdout in the lines below; a line ``...``
stands for one line or more.
"""

from __future__ import annotations

import doctest
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Block:
    kind: str
    text: str


def blocks(page: str) -> Iterator[Block]:
    for match in re.finditer(r"^```(console|pycon)\n(.*?)^```", page, re.DOTALL | re.MULTILINE):
        yield Block(match[1], match[2])


def commands(block: Block) -> Iterator[tuple[str, list[str]]]:
    """Yield each command of a console block with the lines below the command."""
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, *shown = part.splitlines()
        yield command, shown


def run(command: str, delegraph: Callable[..., str]) -> str:
    """Run a command and return its stdout: ``delegraph`` is called, other commands run in a
    shell.
    """
    words = shlex.split(command, comments=True)
    if words[0] == "delegraph":
        return delegraph(*words[1:])
    process = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert process.returncode == 0, f"{command}: {process.stderr}"
    return process.stdout


def matches(shown: list[str], printed: str) -> bool:
    """Return whether the lines that a page shows match what a command prints.

    >>> matches(["a", "...", "d"], "a\\nb\\nc\\nd\\n"), matches(["a", "d"], "a\\nb\\nd\\n")
    (True, False)
    """
    shown_text, printed_text = (
        "".join(f"{line.rstrip()}\n" for line in lines) for lines in (shown, printed.splitlines())
    )
    return doctest.OutputChecker().check_output(shown_text, printed_text, doctest.ELLIPSIS)


def run_python(block: Block, names: dict[str, object]) -> bool:
    """Return whether a ``pycon`` block prints what the block shows; ``names`` are kept for the next
    block.
    """
    test = doctest.DocTestParser().get_doctest(block.text, names, "page", None, 0)
    results = doctest.DocTestRunner(
        optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    ).run(test, clear_globs=False)
    names.update(test.globs)
    return not results.failed
