"""Pages whose examples are run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


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
