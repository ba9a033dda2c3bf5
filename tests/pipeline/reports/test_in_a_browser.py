"""Pages of ``report`` in a browser."""

from __future__ import annotations

import json

import pytest

import delegraph as package
from support import browser
from support.batches import every_state, write_batch
from support.benches import scaling_rows
from support.graphs import grid, random_edges


@pytest.fixture
def pages(ok, edge_list, tmp_path):
    """Return pages of a store, a search of few levels, one of many, a PageRank, a bench, and a
    batch.
    """
    edges = edge_list(*random_edges(1, 300, 2000))
    ok("build", edges, "-o", tmp_path / "graph.dg", "--partitions", 3)
    ok("bfs", edges, "--source", 1, "-o", tmp_path / "few")
    ok("bfs", edge_list(*grid(60), name="grid.parquet"), "--source", 0, "-o", tmp_path / "many")
    ok("pagerank", edges, "-o", tmp_path / "ranks")
    (tmp_path / "bench.json").write_text(json.dumps(scaling_rows()))
    write_batch(tmp_path / "jobs.toml", *every_state())
    paths = []
    for name in ("graph.dg", "few", "many", "ranks", "bench.json", "jobs.toml"):
        paths.append(tmp_path / f"{name}.html")
        package.report(tmp_path / name, paths[-1])
    return paths


def test_in_a_browser(pages):
    """Pages have no error, nothing wider than a phone, and no text of a chart cut off or over
    another text. The names of a batch's jobs stand left of their bars, on a phone above them.
    """
    program = browser.find()
    if program is None:
        pytest.skip("no Chromium or Chrome is installed")
    for width, dark, place in ((360, True, "above"), (620, False, "left"), (1280, False, "left")):
        every = browser.look(program, pages, width, dark)
        assert every[-1].names == [place] * 6
        for looks in every:
            assert looks.errors == []
            assert looks.wide <= width
            assert looks.overlaps == []
            assert looks.picture.startswith(b"\x89PNG")
