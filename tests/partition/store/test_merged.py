"""Partitions of a store as one graph, against a store of one partition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from delegraph.kernels.base.team import Team
from delegraph.partition.store.grid import Grid
from delegraph.partition.store.layout import kept_subgraphs
from delegraph.partition.store.store import open_store
from delegraph.pipeline.build.prepare import BuildOptions
from support.graphs import SHAPES
from support.marks import drawn
from support.programs import stored
from support.stores import edit_array

LAYOUTS: dict[str, dict[str, Any]] = {
    "delegates": {"partitions": 3, "threshold": 6},
    "all delegates": {"partitions": 3, "threshold": 1},
    "grid": {"layout": "2d", "grid": Grid(2, 3)},
    "1d": {"layout": "1d", "partitions": 5},
}
TEAM = Team(2)


def often(shape: str, layout: str, directed: bool, order: str) -> bool:
    return order == "degree" and (shape == "star" or directed == (layout in {"grid", "1d"}))


@pytest.mark.parametrize(
    ("shape", "layout", "directed", "order"),
    drawn(
        *(12, ["hubs", "star", "two components"], LAYOUTS),
        *([False, True], ["degree", "random", "none"]),
        usual=often,
    ),
)
def test_merged_rows(tmp_path, shape, layout, directed, order):
    src, dst = SHAPES[shape]
    weight = np.random.default_rng(1).random(len(src)).astype(np.float32)
    ways: dict[str, dict[str, Any]] = {"one": {}, "several": LAYOUTS[layout]}
    stores = []
    for name, way in ways.items():
        (tmp_path / name).mkdir()
        options = BuildOptions(directed=directed, order=order, **way)
        stores.append(stored(tmp_path / name, src, dst, options, weight))
    one, several = stores
    for weighted in (True, False):
        merged = several.merged(TEAM, weighted)
        assert merged.info.partitions == 1
        for name in kept_subgraphs(merged.info.grid, directed):
            wanted = (*one.subgraph(0, name, TEAM), one.weights(0, name, TEAM))
            arrays = 2 + weighted
            for part, array in zip(merged.rows[name][:arrays], wanted[:arrays], strict=True):
                assert part.dtype == array.dtype
                assert np.array_equal(part, array)
        assert len(merged.rows["nn"].weights) == weighted * len(merged.rows["nn"].targets)


def test_no_edges(tmp_path):
    store = stored(tmp_path, [3, 5], [3, 5], BuildOptions(partitions=2))
    assert [array.tolist() for array in store.merged(TEAM).rows["nn"]] == [[0, 0, 0], [], []]


def test_edges_that_go_one_way(tmp_path):
    """Merging a hand-made undirected store whose edges go one way writes no target where a row has
    no room.
    """
    src, dst = SHAPES["hubs"]
    path = stored(tmp_path, src, dst, BuildOptions(partitions=3, threshold=10**6)).path
    name = "partition-0001/nn.targets-0000.npy"
    edit_array(path, name, lambda targets: np.full_like(targets, targets.max()))
    store = open_store(path)
    pairs = np.hstack([np.array(batch) for batch in store.edge_batches(TEAM)])
    offsets, targets, _ = store.merged(TEAM).rows["nn"]
    sources = np.repeat(np.arange(store.info.vertices, dtype=np.uint32), np.diff(offsets))
    assert sorted(zip(sources, targets, strict=True)) == sorted(zip(*pairs[::-1], strict=True))
