"""An error at any single file operation leaves work from which the same command gives the same
output, and nothing else.

Errors of every second operation have scratch beside the output, the others scratch elsewhere; two
kinds of errors take turns.
"""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

import pytest

from support.failing import Failing
from support.graphs import random_edges
from support.marks import nightly
from support.outputs import digest, distances_of


def left(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()} | {
        path.name for path in folder.iterdir()
    }


@pytest.mark.slow
@pytest.mark.parametrize("elsewhere", [False, nightly(True)])
@pytest.mark.parametrize("what", ["build", "bfs"])
def test_an_error_at_each_call(delegraph, edge_list, tmp_path, monkeypatch, what, elsewhere):
    edges = edge_list(*random_edges(1, 50, 300), name="in/edges.parquet")
    source = ("--source", 0, "--checkpoint", 0) if what == "bfs" else ()
    folder, scratch = tmp_path / "folder", tmp_path / "folder" / "scratch"
    place = ("--scratch", scratch) if elsewhere else ()
    line = (what, edges, *source, "-o", folder / "out", *place, "--quiet")

    def run(number: int) -> tuple[int, str, int]:
        error = (errno.EIO, errno.ENOSPC)[number // 2 % 2]
        with Failing(monkeypatch, folder, number, error) as failing:
            run = delegraph(*line)
        return run.code, run.err, failing.calls

    def result_of():
        return digest(folder / "out") if what == "build" else distances_of(folder / "out")

    scratch.mkdir(parents=True)
    assert run(0)[0] == 0
    wanted, names = result_of(), left(folder)
    number = 1 + elsewhere
    while True:
        shutil.rmtree(folder / "out")
        (folder / "out.run.json").unlink()
        code, stderr, calls = run(number)
        if calls < number:
            break
        assert code in (0, 1, 2), stderr
        assert "--debug" not in stderr
        assert (code == 0) == (stderr == ""), (number, stderr)
        rerun = delegraph(*line)
        assert rerun.code == 0, (number, stderr, rerun.err)
        assert result_of() == wanted
        assert left(folder) == names, (number, stderr)
        number += 2
    assert number > 20
