"""The README, and the guides that show commands with what they print, word for word."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import walkthroughs

ROOT = Path(__file__).parents[2]
PAGES = [
    "README.md",
    "docs/getting-started.md",
    "docs/guides/entity-resolution.md",
    "docs/guides/roads.md",
    "docs/guides/web-crawl.md",
]


@pytest.mark.parametrize("name", PAGES)
def test_walkthrough(name, ok, tmp_path, monkeypatch):
    """Each command does something new, and all print what is shown."""
    pytest.importorskip("pandas")
    pytest.importorskip("duckdb")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "examples").symlink_to(ROOT / "docs" / "examples")
    monkeypatch.chdir(tmp_path)
    messages = ""
    examples: list[str] = []
    names: dict[str, object] = {}

    def delegraph(*words: str) -> str:
        nonlocal messages
        run = ok(*words)
        messages += run.err
        return run.out

    for block in walkthroughs.blocks((ROOT / name).read_text()):
        if block.kind == "pycon":
            assert walkthroughs.run_python(block, names), block.text
            continue
        for command, shown in walkthroughs.commands(block):
            printed = walkthroughs.run(command, delegraph)
            assert walkthroughs.matches(shown, printed), f"{command} printed:\n{printed}"
            examples.append(command)
    assert examples
    assert len(set(examples)) == len(examples)
    assert "already" not in messages, "a command did nothing"
