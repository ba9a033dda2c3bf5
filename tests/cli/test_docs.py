"""Pages whose examples are run."""

from __future__ import annotations

import gc
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support import command_page

DOCS = Path(__file__).parents[2] / "docs"


def test_commands():
    """What --help says; lines may break elsewhere by another version of click."""
    written = (DOCS / "commands.md").read_text()
    assert written.split() == command_page.page().split(), "run tests/support/command_page.py"


def test_completion():
    """Of the program that is installed."""
    program = Path(sys.executable).with_name("delegraph")
    asked = {"COMP_WORDS": "delegraph pag", "COMP_CWORD": "1"}
    env = {**os.environ, **asked, "_DELEGRAPH_COMPLETE": "bash_complete"}
    done = subprocess.run([program], env=env, capture_output=True, text=True, check=True)
    assert done.stdout == "plain,pagerank\n"


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # sockets that a cluster leaves
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_python(tmp_path, monkeypatch, capsys):
    """From top to bottom; what it says is printed is printed."""
    pytest.importorskip("duckdb")
    page = (DOCS / "python.md").read_text()
    code = "\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL))
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "python.md", "exec"), {})
    told = re.findall(r"print\(.*?\)  # (.*)", code)
    assert len(told) == 3
    assert capsys.readouterr().out.splitlines() == told
    gc.collect()  # what is left is told here, not in another test
