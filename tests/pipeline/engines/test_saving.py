"""Programs that are cut off resume from the files that ranks have saved, on any number of ranks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from delegraph.partition.store.store import Store
from delegraph.pipeline.algorithms.betweenness import BetweennessProgram
from delegraph.pipeline.algorithms.bfs_together import NearestSourceProgram
from delegraph.pipeline.algorithms.communities import Communities
from delegraph.pipeline.algorithms.cores import CoresProgram
from delegraph.pipeline.algorithms.iterations import Stop
from delegraph.pipeline.algorithms.katz import KatzProgram
from delegraph.pipeline.algorithms.labels import Labels
from delegraph.pipeline.algorithms.many_sources import DistanceSumsProgram
from delegraph.pipeline.algorithms.pagerank import PageRank, PageRankProgram
from delegraph.pipeline.algorithms.sssp import DeltaStepping
from delegraph.pipeline.build.prepare import BuildOptions
from delegraph.pipeline.engines.operations import saving
from delegraph.pipeline.engines.operations.program import Program
from delegraph.pipeline.ranks.communicator import RankError
from delegraph.pipeline.results.checkpoint import Checkpoint
from support.checkpoints import CutOff
from support.graphs import random_edges
from support.marks import drawn
from support.programs import run_program, stored

VERTICES = 3000


def far_apart(store: Store) -> np.ndarray:
    return np.arange(0, store.info.vertices, 20, dtype=np.uint32)


def shortest(store: Store) -> Program:
    assert store.info.weights is not None
    return DeltaStepping(7, store.info.weights, 3.0, np.inf)


PROGRAMS = {
    "pagerank": lambda store: PageRankProgram(store.info.vertices, 0.85, None, 20, "even", None),
    "weighted pagerank": lambda store: PageRank(iterations=20).walk(store.info),
    "sssp": shortest,
    "betweenness": lambda store: BetweennessProgram(store.info.vertices, far_apart(store)[:9]),
    "closeness": lambda store: DistanceSumsProgram(far_apart(store), along=False),
    "katz": lambda store: KatzProgram(store.info.vertices, Stop(30, None), "uint32"),
    "labels": lambda store: Labels(20).planned(store.info),
    "leiden": lambda store: Communities("leiden", iterations=2).planned(store.info),
    "cores": lambda store: CoresProgram(),
    "together": lambda store: NearestSourceProgram(far_apart(store)[:2], None),
}

LAYOUTS = {
    "delegate": BuildOptions(partitions=4, threshold=12),
    "2d": BuildOptions(partitions=4, layout="2d"),
    "1d": BuildOptions(partitions=4, layout="1d"),
}


@pytest.fixture(scope="module")
def store_of(tmp_path_factory):
    """Return a function that builds the store of a layout, once, with a path that makes levels
    many.
    """
    stores: dict[str, Store] = {}

    def store(layout: str) -> Store:
        if layout not in stores:
            src, dst = random_edges(3, VERTICES, 9000)
            path = np.arange(VERTICES, VERTICES + 30)
            src, dst = np.r_[src, path], np.r_[dst, path + 1]
            weight = np.random.default_rng(4).integers(1, 100, len(src))
            folder = tmp_path_factory.mktemp(layout)
            stores[layout] = stored(folder, src, dst, LAYOUTS[layout], weight)
        return stores[layout]

    return store


RANKS = [(3, 3), (3, 1), (1, 2), (4, 2), (2, 4)]
"""How many ranks save, and how many go on."""


def often(program: str, ranks: tuple[int, int], layout: str) -> bool:
    return layout == "delegate" and ranks == (3, 1) and program not in {"katz", "labels", "cores"}


@pytest.mark.parametrize(
    ("program", "ranks", "layout"), drawn(42, PROGRAMS, RANKS, LAYOUTS, usual=often)
)
def test_goes_on_by_any_ranks(store_of, tmp_path, monkeypatch, program, ranks, layout):
    first, then = ranks
    monkeypatch.setattr(saving, "WINDOW", 999)  # no multiple of the partitions
    store = store_of(layout)
    task = PROGRAMS[program](store)
    whole, _ = run_program(store, task, tmp_path / "whole", then)
    steps: list[int] = []
    cut = CutOff(tmp_path / "saved", 0, "this")
    with pytest.raises(RankError, match="KeyboardInterrupt"):
        run_program(store, task, tmp_path / "some", first, checkpoint=cut)
    saved = Checkpoint(tmp_path / "saved", 0, "this", loaded=steps.append)
    columns, _ = run_program(store, task, tmp_path / "rest", then, checkpoint=saved)
    assert steps == [cut.done]
    for name in set(columns) - {"parent"}:
        if first == then:
            assert columns[name].tobytes() == whole[name].tobytes()
        else:
            np.testing.assert_allclose(columns[name], whole[name], rtol=1e-10)


@pytest.mark.parametrize("ranks", [1, 3])
def test_what_is_damaged_is_not_used(store_of, tmp_path, ranks):
    store = store_of("delegate")
    task = PROGRAMS["pagerank"](store)
    whole, _ = run_program(store, task, tmp_path / "whole", ranks)
    folder, steps = tmp_path / "saved", []
    run_program(store, task, tmp_path / "some", ranks, checkpoint=Checkpoint(folder, 0, "this"))
    (file,) = folder.glob("share-*.npy")
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    saved = Checkpoint(folder, 0, "this", loaded=steps.append)
    columns, _ = run_program(store, task, tmp_path / "rest", ranks, checkpoint=saved)
    assert (columns["pagerank"].tobytes(), steps) == (whole["pagerank"].tobytes(), [])


def test_files_are_those_of_one_process(store_of, tmp_path):
    """Saved files of several ranks are those of one process, for values that do not depend on the
    order of additions.
    """
    store = store_of("delegate")
    for ranks in (1, 3):
        run_program(
            store,
            PROGRAMS["together"](store),
            tmp_path / f"{ranks}",
            ranks,
            checkpoint=Checkpoint(tmp_path / f"saved-{ranks}", 0),
        )
    one, three = (tmp_path / f"saved-{ranks}" for ranks in (1, 3))
    assert files(one) == files(three)


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}
