"""Compiling beforehand: each form of each question is asked, and first runs compile nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from delegraph.kernels.base import shipped
from delegraph.pipeline import warm_up
from delegraph.pipeline.questions import FORMS, QUESTIONS
from delegraph.pipeline.warm_up import SHIPPED, _forms_of
from support.graphs import random_edges
from support.marks import mostly_slow

COMMANDS = {
    "bfs": ["--source", 1],
    "bfs --sources": ["--sources", "1,2"],
    "components": [],
    "pagerank": [],
    "sssp": ["--source", 1, "--weight", "weight"],
    "betweenness": [],
    "closeness": ["--sources", 9],
    "harmonic": ["--sources", 9],
    "eccentricity": [],
    "hits": ["--weight", "weight"],
    "eigenvector": [],
    "katz": [],
    "cores": [],
    "degree": ["--weight", "weight"],
    "build": [],
}


def test_every_form_is_asked():
    asked = {form.name: values for name in QUESTIONS for form, values in _forms_of(QUESTIONS[name])}
    assert list(asked) == list(FORMS)
    assert asked["bfs"] == {"source": 0}
    assert asked["bfs-together"] == {"sources": [0, 1], "together": True}
    assert asked["pagerank"] == {}


def compiled_files(*command: object, cache: Path) -> set[str]:
    """Run a command with an empty cache, and return the names of what it has compiled."""
    words = [sys.executable, "-m", "delegraph", *map(str, command)]
    env = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    run = subprocess.run(words, env=env, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return {path.name for path in cache.rglob("*.nbi")}


@pytest.mark.skipif(not shipped.FILE.exists(), reason="an installation in place compiles nothing")
@pytest.mark.parametrize("name", mostly_slow(COMMANDS, "pagerank"))
def test_a_first_run_compiles_nothing(edge_list, tmp_path, name):
    src, dst = random_edges(3, 300, 2000)
    graph = edge_list(src, dst, weight=src % 7)
    asked = name.split()[0], graph, *COMMANDS[name], "-o", tmp_path / "out"
    assert compiled_files(*asked, cache=tmp_path / "cache") == set()
    if name == "build":
        told = "components", tmp_path / "out", "-o", tmp_path / "more"
        assert compiled_files(*told, cache=tmp_path / "cache") == set()


def test_a_question_of_which_kernels_are_shipped_has_a_first_run():
    assert {name.split()[0] for name in COMMANDS} == {*SHIPPED, "build"}


def test_a_question_is_asked_by_one_of_two_processes(tmp_path, monkeypatch):
    asked = []

    def ask(names, is_mine):
        asked.append([name for name in names if is_mine(name)])

    monkeypatch.setattr(warm_up, "warm_up", ask)
    warm_up._compile_some(SHIPPED[:2], tmp_path)
    warm_up._compile_some(SHIPPED[::-1], tmp_path)
    assert asked == [list(SHIPPED[:2]), list(SHIPPED[:1:-1])]


def test_the_command(ok, delegraph):
    run = ok("warm-up", "components")
    assert run.out == ""
    assert "were compiled before" in run.err.splitlines()[-1]
    run = delegraph("warm-up", "nothing")
    assert run.code == 2
    assert "'nothing' is not one of 'bfs'" in run.err
    assert ok("warm-up", "components", "--quiet").err == ""
