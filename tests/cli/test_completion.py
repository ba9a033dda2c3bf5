"""Completion of commands and options by the shell."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PROGRAM = Path(sys.executable).with_name("delegraph")


def complete(words: str, program: list[str]) -> str:
    """Return what a program answers to bash, which wants the last of some words completed."""
    variables = {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    env = {**os.environ, **variables, "_DELEGRAPH_COMPLETE": "bash_complete"}
    return subprocess.run(program, env=env, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("delegraph pag", "plain,pagerank\n"),
        ("delegraph sssp --wei", "plain,--weight\n"),
        ("delegraph pagerank --personalize", "plain,--personalize\n"),
        ("delegraph bfs --help-", "plain,--help-all\n"),
        ("delegraph sssp edges --duplicates s", "plain,sum\n"),
        ("delegraph generate kron", "plain,kronecker\n"),
        ("delegraph sssp edg", "file,edg\n"),
    ],
)
def test_words(words, answer):
    assert complete(words, [str(PROGRAM)]) == answer


@pytest.mark.parametrize("page", ["getting-started.md", "reference/events.md"])
def test_bash_completes_after_the_line_of_the_docs(page):
    (line,) = re.findall(
        r'`(eval "\$\(_DELEGRAPH_COMPLETE=bash_source.*?)`', (DOCS / page).read_text()
    )
    script = f"""
        {line}
        COMP_WORDS=(delegraph sssp --wei) COMP_CWORD=2
        $(complete -p delegraph | sed 's/.* -F \\([^ ]*\\) .*/\\1/') delegraph
        echo "${{COMPREPLY[@]}}"
    """
    env = {**os.environ, "PATH": f"{PROGRAM.parent}{os.pathsep}{os.environ['PATH']}"}
    run = subprocess.run(
        ["bash", "--norc", "-c", script], env=env, capture_output=True, text=True, check=True
    )
    assert (run.stdout, run.stderr) == ("--weight\n", "")


@pytest.mark.parametrize("command", ["sssp", "bench", "build", "plan", "demo"])
def test_completion_imports_little(command):
    """Completion of options stays fast: libraries that take long to import are not imported."""
    code = (
        "import sys; sys.argv[0] = 'delegraph'; from delegraph.cli.main import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print(sorted({'dask', 'numba', 'numpy', 'pandas', 'pyarrow'} & set(sys.modules)))"
    )
    *options, imported = complete(
        f"delegraph {command} --deb", [sys.executable, "-c", code]
    ).splitlines()
    assert options == ["plain,--debug"]
    assert imported == "[]"
