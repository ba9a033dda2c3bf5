"""Missing folders above an output are made for the output, and removed when the run fails."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import delegraph as dg
from delegraph.partition.disk.outputs import made_folders
from delegraph.partition.errors import InputError


@pytest.fixture
def edges(edge_list):
    return edge_list([0, 1], [1, 2], "in/edges.parquet")


@pytest.fixture
def store(edges, tmp_path):
    dg.build(edges, tmp_path / "in" / "graph.dg")
    return tmp_path / "in" / "graph.dg"


def commands(edges: Path, store: Path, result: Path) -> dict[str, tuple[tuple, str]]:
    """Return the words of each command that writes something, and the name of the output."""
    table = edges.with_name("edges.csv")
    table.write_text("src,dst\n0,1\n1,2\n")
    return {
        "bfs": (("bfs", edges, "--source", 0), "out"),
        "bfs of a store": (("bfs", store, "--source", 0), "out"),
        "bfs each": (("bfs", store, "--sources", "0,1"), "out"),
        "components": (("components", edges), "out"),
        "pagerank": (("pagerank", edges), "out"),
        "build": (("build", edges), "graph.dg"),
        "generate": (("generate", "grid", "--height", 3, "--width", 3), "edges"),
        "convert": (("convert", table), "edges"),
        "matrix": (("convert", store), "graph.npz"),
        "text": (("convert", result), "ranks.txt"),
        "report": (("report", store), "page.html"),
    }


NAMES = ["bfs", "bfs of a store", "bfs each", "components", "pagerank", "build", "generate"]
NAMES += ["convert", "matrix", "text", "report"]


@pytest.mark.parametrize("name", NAMES)
def test_every_command_makes_them(ok, edges, store, tmp_path, name):
    dg.pagerank(edges, output=tmp_path / "in" / "ranks")
    words, output = commands(edges, store, tmp_path / "in" / "ranks")[name]
    ok(*words, "-o", tmp_path / "a" / "b c" / output)
    assert (tmp_path / "a" / "b c" / output).exists()
    beside = {path.name for path in (tmp_path / "a" / "b c").iterdir()}
    assert beside <= {output, f"{output}.run.json"}


def test_relative_ones_and_a_profile(ok, edges, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ok("bfs", edges, "--source", 0, "-o", "x/y", "--profile", "x/p/steps.parquet")
    assert (tmp_path / "x" / "y").is_dir()
    assert (tmp_path / "x" / "p" / "steps.parquet").is_file()
    with dg.open(edges) as graph:
        graph.components().write("results/today/components")
    assert (tmp_path / "results" / "today" / "components").is_dir()


@pytest.mark.parametrize("deep", ["a/out", "a/b/c/out"])
def test_nothing_is_left_of_what_is_refused(delegraph, edges, store, tmp_path, deep, monkeypatch):
    before = sorted(tmp_path.rglob("*"))
    for words in (
        ("bfs", edges, "--source", 77),
        ("bfs", store, "--source", 77),
        ("bfs", edges, "--source", 0, "--memory-limit", "1MB"),
        ("sssp", edges, "--source", 0),
        ("build", edges, "--src", "none"),
        ("build", edges, "--memory-limit", "1MB"),
        ("convert", edges.with_name("none.csv")),
        ("report", edges),
    ):
        run = delegraph(*words, "-o", tmp_path / deep)
        assert run.code == 2, run.err
        assert sorted(tmp_path.rglob("*")) == before, words

    def fail(*args, **options):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("delegraph.partition.disk.work.publish", fail)
    assert delegraph("bfs", edges, "--source", 0, "-o", tmp_path / deep).code != 0
    assert sorted(tmp_path.rglob("*")) == before


def test_of_several_runs_one_fails(tmp_path):
    """Folders that a failed run has made stay where another run has its output in them by then."""

    def fail(beside: Path) -> None:
        with made_folders(tmp_path / "a" / "b"):
            beside.mkdir(exist_ok=True)
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        fail(tmp_path / "a" / "theirs")
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["theirs"]
    with made_folders(tmp_path / "a" / "b"):
        assert (tmp_path / "a" / "b").is_dir()
    with pytest.raises(ValueError, match="mine"):
        fail(tmp_path / "a" / "theirs")
    assert (tmp_path / "a" / "b").is_dir()  # it was there before


def test_what_cannot_be_made(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "astray").symlink_to(tmp_path / "gone")
    for folder in (tmp_path / "file" / "a", tmp_path / "new" / ("n" * 300), tmp_path / "astray"):
        with pytest.raises(InputError, match="cannot be created: "), made_folders(folder):
            pass
    assert sorted(os.listdir(tmp_path)) == ["astray", "file"]


def test_folders_that_others_make_meanwhile(tmp_path):
    """Many runs that begin at once below one missing folder all write their files."""

    def write(number: int) -> None:
        with made_folders(tmp_path / f"{number // 8}" / "a" / "b"):
            (tmp_path / f"{number // 8}" / "a" / "b" / f"{number}").touch()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(160)))
    assert len(list(tmp_path.glob("*/a/b/*"))) == 160
