"""A refused memory limit leaves nothing that is in another command's way."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delegraph.partition.errors import LimitError
from delegraph.pipeline.build import prepare


@pytest.fixture
def edges(tmp_path):
    path = tmp_path / "e.parquet"
    names = [f"v{i % 50}" for i in range(300)]
    pq.write_table(pa.table({"src": names, "dst": names[7:] + names[:7]}), path)
    return path


@pytest.mark.parametrize("command", ["build", "bfs"])
def test_a_refusal_leaves_nothing(delegraph, edges, tmp_path, command):
    source = ("--source", "v1") if command == "bfs" else ()
    for scratch in ((), ("--scratch", tmp_path)):
        run = delegraph(
            command, edges, *source, "-o", tmp_path / "out", "--memory-limit", "1MB", *scratch
        )
        assert run.code == 2
        assert "--memory-limit" in run.err
        assert list(tmp_path.iterdir()) == [edges]


def test_one_that_comes_late_is_in_nobodys_way(delegraph, ok, edges, tmp_path, monkeypatch):
    """Steps finished before a late refusal are reused by the same command; a command with other
    options starts over.
    """

    def refuse(plan, sizes):
        raise LimitError("too small")

    (tmp_path / "scratch").mkdir()
    args = ("build", edges, "-o", tmp_path / "g.dg", "--scratch", tmp_path / "scratch")
    with monkeypatch.context() as patch:
        patch.setattr(prepare, "with_ranges", refuse)
        assert delegraph(*args).code == 2
    assert "reused steps: encode" in ok(*args).err
    with monkeypatch.context() as patch:
        patch.setattr(prepare, "with_ranges", refuse)
        assert delegraph(*args, "--overwrite", "--directed").code == 2
    assert "reused steps" not in ok(*args, "--overwrite", "--partitions", 2).err
    assert not list(tmp_path.glob(".*"))
    assert not list((tmp_path / "scratch").iterdir())
