"""``progress=True``, with tqdm and without, and functions to tell progress to."""

from __future__ import annotations

import sys

import pytest

import delegraph
from delegraph.pipeline.python_side import progress
from delegraph.pipeline.python_side.progress import ProgressBar, progress_display
from delegraph.pipeline.run.progress_line import ProgressLine

EDGES = [(1, 2), (2, 3), (5, 6)]


class Bar:
    """A bar as tqdm's, which notes what it is told."""

    made: list[Bar] = []  # noqa: RUF012 - emptied by each test

    def __init__(self, desc: str, **more: object) -> None:
        self.desc, self.n, self.total, self.closed, self.last = desc, 0, None, False, ""
        Bar.made.append(self)

    def update(self, more: int) -> None:
        assert not self.closed
        self.n += more

    def set_postfix_str(self, text: str, refresh: bool) -> None:
        self.last = text

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def bars(monkeypatch):
    """Use bars that note what they are told."""
    monkeypatch.setattr(Bar, "made", [])
    monkeypatch.setattr(
        "delegraph.pipeline.python_side.public.progress_display", lambda: ProgressBar(Bar)
    )
    return Bar.made


def test_a_bar_for_each_step(bars):
    display = ProgressBar(Bar)
    display("read", 0, 10)
    display("read", 7, 10)
    display("search: change 0.5, level 2", 3, 0)
    display("search: change 0.1, level 3", 5, 0)
    read, search = bars
    assert (read.desc, read.n, read.total, read.closed) == ("read", 7, 10, True)
    assert (search.desc, search.n, search.total) == ("search", 5, None)
    assert (search.last, search.closed) == ("change 0.1, level 3", False)
    display.finish()
    assert search.closed
    display("search", 1, 1)  # anew
    assert len(bars) == 3


def test_functions_show_bars(bars, tmp_path):
    """Bars are closed when a function ends, also by an error; False shows none."""
    delegraph.build(EDGES, tmp_path / "graph.dg", progress=True)
    delegraph.components(tmp_path / "graph.dg", output=tmp_path / "out", progress=True)
    assert delegraph.pagerank(EDGES, progress=True, iterations=2).name == "pagerank"
    shown = len(bars)
    assert shown > 3
    with pytest.raises(delegraph.InputError):
        delegraph.bfs(tmp_path / "graph.dg", 77, output=tmp_path / "wrong", progress=True)
    assert all(bar.closed for bar in bars)
    shown = len(bars)
    delegraph.components(EDGES, progress=False)
    assert len(bars) == shown


def test_an_open_graph_shows_bars(bars):
    """Each question of an open graph shows bars, and closes them."""
    with delegraph.open(EDGES, progress=True) as graph:
        loading = len(bars)
        assert all(bar.closed for bar in bars)
        graph.pagerank(iterations=2)
        assert len(bars) > loading
        assert all(bar.closed for bar in bars)


def test_functions_are_told():
    told: list[tuple[str, int, int]] = []
    delegraph.components(EDGES, progress=lambda *step: told.append(step))
    assert {step for step, _, _ in told} >= {"search"}


def test_tqdm(capsys):
    pytest.importorskip("tqdm")
    display = progress_display()
    assert isinstance(display, ProgressBar)
    display("search", 1, 4)
    display.finish()
    assert "search" in capsys.readouterr().err


def test_without_tqdm(monkeypatch, capsys):
    """Without tqdm, a terminal shows the line that commands show."""
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    display = progress_display()
    assert isinstance(display, ProgressLine)
    display("search", 1, 4)
    assert "search [#####---------------]  25%" in capsys.readouterr().err
    progress.finish(display)
    assert capsys.readouterr().err == "\r\x1b[K"
    progress.finish(display)
    assert capsys.readouterr().err == ""
