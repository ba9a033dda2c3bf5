"""Programs by ranks with a device each, against their definitions.

On one device the host carries messages between ranks; on several, NCCL carries them, and the
messages of PageRank's iterations are in the ranks' memory.
"""

from __future__ import annotations

import itertools
import os
import random
import shutil
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from delegraph.kernels import reference
from delegraph.kernels.base.team import Team
from delegraph.kernels.gpu import graph as device_graph
from delegraph.kernels.gpu.device import Device
from delegraph.kernels.gpu.peer_memory import PeerMemory
from delegraph.kernels.gpu_pieces.folding import Folding
from delegraph.kernels.gpu_programs import (
    components,
    shared_paths,
    shared_walks,
)
from delegraph.kernels.gpu_programs import rows as cut_rows
from delegraph.kernels.gpu_programs.ranks import Ranks
from delegraph.kernels.gpu_programs.rows import Cuts, ProgramGraph
from delegraph.kernels.gpu_programs.tiles import Tiling
from delegraph.partition.store.store import Store
from delegraph.pipeline.algorithms.betweenness import BetweennessProgram
from delegraph.pipeline.algorithms.bfs_each import DistanceBits
from delegraph.pipeline.algorithms.bfs_together import NearestSourceProgram
from delegraph.pipeline.algorithms.components import ComponentsProgram
from delegraph.pipeline.algorithms.cores import CoresProgram
from delegraph.pipeline.algorithms.forest import ForestProgram
from delegraph.pipeline.algorithms.iterations import Stop
from delegraph.pipeline.algorithms.katz import KatzProgram
from delegraph.pipeline.algorithms.many_sources import DistanceSumsProgram
from delegraph.pipeline.algorithms.pagerank import PageRankProgram
from delegraph.pipeline.algorithms.strong import CondensationProgram
from delegraph.pipeline.build.prepare import BuildOptions
from delegraph.pipeline.engines.one_device import share as device_share
from delegraph.pipeline.engines.one_device.share import DeviceShare
from delegraph.pipeline.engines.operations.program import (
    DealtProgram,
    Program,
    ProgramResult,
    SharedProgram,
)
from delegraph.pipeline.engines.workers.on_devices import Place, RankProgram, run_on_devices
from delegraph.pipeline.ranks.communicator import telling_others
from delegraph.pipeline.results.checkpoint import Checkpoint
from delegraph.pipeline.run import ending
from support.degrees import check_degrees, degree_program
from support.graphs import SHAPES, SMALL_SHAPES, edges_of, graphs, grid, random_edges
from support.marks import drawn, mostly_nightly, nightly, partly_nightly, slow
from support.paths import WEIGHTS, check_paths, entries_of, program_of
from support.processes import command, wait_until, workers_of
from support.programs import stored
from support.ranks import communicators
from support.ranks import run as on_ranks
from support.scores import PROGRAMS as SCORES
from support.scores import check_scores, chosen_alpha, scores_program
from support.searches import check_distances, check_nearest, check_sums
from support.standing import standing
from support.wanted import check_forest, least_of, wanted_cores

LAYOUTS: dict[str, dict[str, Any]] = {
    "delegates": {"partitions": 4, "threshold": 6},
    "grid": {"partitions": 4, "layout": "2d"},
    "1d": {"partitions": 4, "layout": "1d"},
}


def run_or_end(
    store: Store,
    program: Program,
    devices: Sequence[Device],
    ranks: int,
    kind: str = "threads",
    saved: Place | None = None,
    went_on: list[int] | None = None,
    times: int = 1,
) -> list[ProgramResult | None]:
    """Return each rank's result of the last run; None: the run was ended."""

    def one(communicator) -> ProgramResult | None:
        rank = communicator.rank
        with telling_others(rank, communicator):
            device, loaded = devices[rank % len(devices)], []
            if went_on is not None and rank == 0:
                loaded = went_on
            args = [program] * times, store, communicator, device

            def load(here: RankProgram, check: Callable[[], None]) -> ProgramGraph:
                return here.load(device, Team(1), check)

            return run_on_devices(*args, load, saved, loaded.append)[0]

    with communicators(kind, ranks) as group:
        results = on_ranks(group, one)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results


def run(*arguments: Any, **more: Any) -> list[ProgramResult]:
    """Return each rank's result of a run that is not ended."""
    results = run_or_end(*arguments, **more)
    assert None not in results
    return [result for result in results if result is not None]


def columns(results: list[ProgramResult]) -> dict[str, np.ndarray]:
    return {name: np.asarray(value) for name, value in results[0].values.items()}


def check_all(store: Store, devices: Sequence[Device], ranks: int, kind: str = "threads") -> None:
    """Check every program against its definition."""
    n = store.info.vertices
    u, _, weight = entries_of(store)
    args = store, devices, ranks, kind
    check_components(*args)
    check_walk(*args, weight)
    check_sources(*args)
    check_all_scores(*args)
    check_all_degrees(*args)
    check_strong(*args)
    check_forests(*args)
    for source in (0, n // 2):
        results = run(store, program_of(store, source), devices, ranks, kind)
        check_paths(store, columns(results), source)
        assert results[0].record["edges"] >= np.count_nonzero(u == source)


def check_components(store: Store, devices: Sequence[Device], ranks: int, kind: str) -> None:
    u, v = edges_of(store)
    results = run(store, ComponentsProgram(), devices, ranks, kind)
    wanted = reference.components(u, v, store.info.vertices)
    assert np.array_equal(columns(results)["component"], wanted)
    assert results[0].record["edges"] == len(u)
    assert (results[0].record["sent"] > 0) == (ranks > 1)


def check_telling_of_forests(
    devices: Sequence[Device], folder: Path, monkeypatch: pytest.MonkeyPatch, kind: str = "threads"
) -> None:
    """Check components when ranks exchange forests as pairs, and as labels where there is no room
    for pairs; before and after most edges are joined.
    """
    towns = np.arange(100)
    hubs, middle = np.r_[towns, 100 + towns], 200 + towns
    leaves = 300 + np.arange(1200)
    # Hubs come first in a row: edges from one middle to the next are among the first of neither.
    src = np.r_[middle, middle, hubs[leaves % 200], middle[:-1]]
    dst = np.r_[hubs, leaves, middle[1:]]
    counts: Counter[tuple[bool, bool]] = Counter()
    hear = components._Share.hear

    def watch(self: Any, message: list[Any]) -> None:
        after = bool(self._joined["room"][0])
        counts[after, len(message) == 1] += 1
        hear(self, message)

    monkeypatch.setattr(components._Share, "hear", watch)
    for directed in (False, True):
        options = BuildOptions(directed=directed, **LAYOUTS["1d"])
        (place := folder / str(directed)).mkdir()
        store = stored(place, src, dst, options)
        check_components(store, devices, 3, kind)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(components, "_room", lambda vertices: 1)
            check_components(store, devices, 4, kind)
    assert set(counts) == {(False, False), (False, True), (True, False), (True, True)}


def check_walk(
    store: Store, devices: Sequence[Device], ranks: int, kind: str, weight: np.ndarray
) -> None:
    u, v = edges_of(store)
    n = store.info.vertices
    rng = np.random.default_rng(3)
    likely = rng.random(n) / n
    likely /= likely.sum()
    ways: tuple[Any, ...] = (
        (None, "even", None, False),
        (None, "even", None, True),
        (str(weight.dtype), "none", (np.arange(n, dtype=np.uint32), likely), False),
    )
    for weights, dangling, teleport, single in ways:
        program = PageRankProgram(n, 0.85, None, 7, dangling, teleport, weights, single)
        results = run(store, program, devices, ranks, kind)
        to = None if teleport is None else likely
        by = None if weights is None else weight
        wanted = reference.pagerank(u, v, n, 0.85, 7, to, dangling == "even", by)
        close = 1e-6 if single else 1e-12
        np.testing.assert_allclose(columns(results)["pagerank"], wanted, rtol=close, atol=1e-300)
        iterations = results[0].record["iterations"]
        assert [step["edges_examined"] for step in iterations] == [len(u)] * 7


def check_all_scores(store: Store, devices: Sequence[Device], ranks: int, kind: str) -> None:
    entries = len(edges_of(store)[0])
    for name in SCORES if "GPU" in kind else ["hits"]:
        results = run(store, scores_program(name, store), devices, ranks, kind)
        check_scores(name, store, columns(results))
        gathers = 2 if name == "hits" else 1
        for step in results[0].record["iterations"]:
            assert step["edges_examined"] == gathers * entries
            assert (step["bytes_sent"] > 0) == (ranks > 1)
    weights = store.info.weights
    chooses = KatzProgram(store.info.vertices, Stop(3, None), weights and weights.kind)
    record = run(store, chooses, devices, ranks, kind)[0].record
    assert record["facts"]["alpha"] == pytest.approx(chosen_alpha(store), rel=1e-12)


def check_all_degrees(store: Store, devices: Sequence[Device], ranks: int, kind: str) -> None:
    entries = len(edges_of(store)[0])
    for unweighted in (False, True):
        results = run(store, degree_program(store, unweighted), devices, ranks, kind)
        check_degrees(store, columns(results), unweighted)
        record = results[0].record
        assert record["edges"] == (0 if unweighted else (1 + store.info.directed) * entries)
        assert (record["sent"] > 0) == (ranks > 1)


def check_cores(store: Store, devices: Sequence[Device], ranks: int, kind: str = "threads") -> None:
    wanted, rounds = wanted_cores(store)
    results = run(store, CoresProgram(), devices, ranks, kind)
    assert np.array_equal(columns(results)["core"], wanted)
    assert results[0].record["rounds"] == rounds
    assert (results[0].record["sent"] > 0) == (ranks > 1)


def check_forests(
    store: Store, devices: Sequence[Device], ranks: int, kind: str = "threads"
) -> None:
    weights = store.info.weights
    for program in (ForestProgram(None), ForestProgram(weights and weights.kind)):
        results = run(store, program, devices, ranks, kind)
        check_forest(store, columns(results), program.weighted)
        assert (results[0].record["sent"] > 0) == (ranks > 1)


def check_strong(
    store: Store, devices: Sequence[Device], ranks: int, kind: str = "threads"
) -> None:
    u, v = edges_of(store)
    results = run(store, CondensationProgram(store.info.directed), devices, ranks, kind)
    found = columns(results)
    find = reference.strong_components if store.info.directed else reference.components
    assert (least_of(found["component"]) == find(u, v, store.info.vertices)).all()
    between = reference.contract(u, v, found["component"], store.info.directed, False)
    for name, values in zip(("src", "dst", "edges"), between, strict=True):
        assert found[name].tolist() == (values.tolist() if store.info.directed else [])
    assert (results[0].record["sent"] > 0) == (ranks > 1)


def check_sources(store: Store, devices: Sequence[Device], ranks: int, kind: str) -> None:
    u, v = edges_of(store)
    n = store.info.vertices
    for sources in (np.arange(0, n, max(1, n // 9), dtype=np.uint32), np.array([n - 1], np.uint32)):
        values = columns(run(store, DistanceSumsProgram(sources, along=True), devices, ranks, kind))
        assert sorted(values["source"].tolist()) == sources.tolist()
        check_sums((u, v), n, values)
        values = columns(run(store, BetweennessProgram(n, sources), devices, ranks, kind))
        wanted = reference.betweenness(u, v, n, sources)
        np.testing.assert_allclose(values["betweenness"], wanted, rtol=1e-10, atol=1e-10)
        values = columns(run(store, NearestSourceProgram(sources), devices, ranks, kind))
        check_nearest((u, v), n, sources, n, values)
        for apart in (False, True):
            check_each(store, sources, apart, devices, ranks, kind)


def check_each(store: Store, sources: np.ndarray, apart: bool, *how: Any) -> None:
    """Check distances from each source, in new runs where all ranks have to use more bits or to
    search apart.
    """
    n, bits = store.info.vertices, 8
    while True:
        results = run(store, DistanceBits(sources, bits, None, apart), *how)
        values, record = columns(results), results[0].record
        if values:
            break
        assert record["deeper"] or record["apart"] > apart
        bits, apart = bits << record["deeper"], record["apart"]
    check_distances(edges_of(store), n, sources, n, values)
    assert record["sources"] == len(sources)


def make(folder: Path, shape: str, weights: str, directed: bool, layout: str, **more: Any) -> Store:
    """Build a store of a shape; more: options of the build that replace the layout's."""
    src, dst = SHAPES[shape]
    weight = WEIGHTS[weights](np.random.default_rng(1), len(src))
    options = BuildOptions(directed=directed, **(LAYOUTS[layout] | more))
    return stored(folder, src, dst, options, weight)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", SHAPES)
def test_every_program(device, tmp_path, shape, layout, directed):
    store = make(tmp_path, shape, "ties", directed, layout)
    for ranks in (2, 3, 4):
        check_all(store, [device], ranks)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weights", WEIGHTS)
def test_weights(device, tmp_path, weights, directed):
    store = make(tmp_path, "hubs", weights, directed, "delegates")
    check_paths_of(store, [device])


def check_paths_of(store: Store, devices: Sequence[Device], kind: str = "threads") -> None:
    """Check shortest paths from three sources, one of them with a greatest distance."""
    for source, most in ((0, np.inf), (7, np.inf), (3, 1.5)):
        results = run(store, program_of(store, source, most), devices, 3, kind)
        check_paths(store, columns(results), source, most)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    graph=graphs(),
    layout=st.sampled_from(sorted(LAYOUTS)),
    weights=st.sampled_from(sorted(WEIGHTS)),
    ranks=st.integers(1, 4),
)
@example(graph=(*np.zeros((2, 1), np.uint32), 1, False), layout="1d", weights="ties", ranks=2)
def test_random_graphs(device, tmp_path_factory, graph, layout, weights, ranks):
    src, dst, _, directed = graph
    if len(src):
        weight = WEIGHTS[weights](np.random.default_rng(2), len(src))
        options = BuildOptions(directed=directed, **LAYOUTS[layout])
        store = stored(tmp_path_factory.mktemp("store"), src, dst, options, weight)
        check_all(store, [device], ranks)


def check_going_on(store: Store, program: Program, devices: Sequence[Device], folder: Path) -> None:
    """Check that a run ended after some steps resumes on any number of ranks, with the same
    result.
    """
    save = Checkpoint.save_state

    def save_and_end(self: Checkpoint, done: int, *rest: Any, **more: Any) -> None:
        save(self, done, *rest, **more)
        if done > 1:
            raise KeyboardInterrupt

    saved = folder / "checkpoint", 0.0, "this"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Checkpoint, "save_state", save_and_end)
        assert run_or_end(store, program, devices, 2, saved=saved) == [None, None]
    wanted = columns(run(store, program, devices, 2))
    for ranks in (1, 3):
        went_on: list[int] = []
        copy = shutil.copytree(saved[0], folder / f"for {ranks}")
        place = copy, *saved[1:]
        column_values = columns(run(store, program, devices, ranks, saved=place, went_on=went_on))
        assert went_on[0] > 1
        for name, values in wanted.items():
            if name != "parent":
                np.testing.assert_allclose(column_values[name], values, rtol=1e-12)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", ["two components", "hubs"])
def test_cores(device, tmp_path, shape, layout, directed):
    check_cores(make(tmp_path, shape, "ties", directed, layout), [device], 3)


def test_telling_of_forests(device, tmp_path, monkeypatch):
    check_telling_of_forests([device], tmp_path, monkeypatch)


@pytest.mark.parametrize("name", ["pagerank", "sssp", "betweenness", "closeness", "hits"])
def test_going_on_from_a_checkpoint(device, tmp_path, monkeypatch, name):
    check_programs_going_on([device], tmp_path, monkeypatch, name)


def check_programs_going_on(
    devices: Sequence[Device], folder: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(cut_rows, "TIME", 0)
    monkeypatch.setattr(shared_paths, "_LITTLE", 0)
    store = make(folder, "hubs", "floats", True, "delegates")
    n = store.info.vertices
    every = np.arange(n, dtype=np.uint32)
    program: Program = {
        "pagerank": PageRankProgram(n, 0.85, None, 9, "even", None),
        "sssp": program_of(store, 0),
        "betweenness": BetweennessProgram(n, every[:40]),
        "closeness": DistanceSumsProgram(every, along=True),
        "hits": scores_program("hits", store, 9),
    }[name]
    assert isinstance(program, DealtProgram) == (name in ("betweenness", "closeness"))
    check_going_on(store, program, devices, folder)


def check_several_times(folder: Path, devices: Sequence[Device], kind: str) -> None:
    """Check that the last of three runs over a graph loaded once, as in bench, is like a single
    run.
    """
    store = make(folder, "hubs", "floats", True, "grid")
    n = store.info.vertices
    every = np.arange(n, dtype=np.uint32)
    for program in (
        ComponentsProgram(),
        PageRankProgram(n, 0.85, None, 7, "even", None, "float32"),
        program_of(store, 0),
        BetweennessProgram(n, every[:9]),
        DistanceSumsProgram(every[:70], along=True),
        scores_program("hits", store),
    ):
        once, last = (columns(run(store, program, devices, 2, kind, times=k)) for k in (1, 3))
        for name, values in once.items():
            np.testing.assert_allclose(last[name], values, rtol=1e-12)


def test_several_times(device, tmp_path):
    check_several_times(tmp_path, [device], "threads")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("direct", [True, False])
def test_two_devices(two_devices, tmp_path, monkeypatch, layout, direct):
    store = make(tmp_path, "hubs", "ties", True, layout)
    with counting_steps(monkeypatch, direct):
        check_all(store, two_devices, 2, "nccl on GPUs")
    check_cores(store, two_devices, 2, "nccl on GPUs")


STANDS: dict[str, Callable[[int, int], Cuts | Tiling]] = {
    "tiles": lambda rows, n: Tiling(9, 4, 1, 31),
    "columns": lambda rows, n: Cuts(rows // 2, -(-n // 16), 4),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("stands", STANDS)
@pytest.mark.parametrize("direct", [True, False])
def test_where_entries_stand(two_devices, tmp_path, monkeypatch, direct, stands, layout):
    check_where_entries_stand(
        two_devices, tmp_path, monkeypatch, 2, direct, stands, layout, "nccl on GPUs"
    )


def check_where_entries_stand(
    devices: Sequence[Device],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    ranks: int,
    direct: bool,
    stands: str,
    layout: str,
    kind: str,
) -> None:
    store = make(folder, "hubs", "ties", True, layout)
    layouts = standing(monkeypatch, STANDS[stands])
    with counting_steps(monkeypatch, direct):
        check_walk(store, devices, ranks, kind, entries_of(store)[2])
    assert layouts == [True] * 3 * ranks


SHARED: dict[str, Callable[[Store], SharedProgram]] = {
    "components": lambda store: ComponentsProgram(),
    "pagerank": lambda store: PageRankProgram(store.info.vertices, 0.85, None, 3, "even", None),
    "single": lambda store: PageRankProgram(
        store.info.vertices, 0.85, None, 3, "even", None, single=True
    ),
    "sssp": lambda store: program_of(store, 0),
    "hits": lambda store: scores_program("hits", store, 3),
    "degree": degree_program,
    "cores": lambda store: CoresProgram(),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("direct", [True, False])
@pytest.mark.parametrize("name", SHARED)
def test_what_is_said_is_enough(two_devices, tmp_path, monkeypatch, name, direct, layout):
    """Memory of the planned size is enough for ranks to load and run a program over many
    vertices.
    """
    src, dst = random_edges(3, 1_000_000, 2_000_000)
    weight = np.random.default_rng(1).random(len(src)).astype(np.float32)
    store = stored(tmp_path, src, dst, BuildOptions(directed=True, **LAYOUTS[layout]), weight)
    monkeypatch.setattr(device_share, "SLACK", 4 << 20)  # half of what a vector takes
    monkeypatch.setattr(device_share, "_TELLING", 0)
    program, limited = SHARED[name](store), []
    pool = two_devices[0].cupy.get_default_memory_pool()
    try:
        for rank, device in enumerate(two_devices):
            share = DeviceShare(store, rank, 2)
            limited.append(replace(device, memory_bytes=share.room(program, device).device))
            with device.use():
                pool.free_all_blocks()
                pool.set_limit(size=limited[-1].memory_bytes)
        has_steps = name in ("pagerank", "sssp")
        with counting_steps(monkeypatch, direct) if has_steps else nullcontext():
            run(store, program, limited, 2, "nccl on GPUs")
    finally:
        for device in two_devices:
            with device.use():
                pool.set_limit(size=0)


@contextmanager
def counting_steps(monkeypatch: pytest.MonkeyPatch, direct: bool) -> Iterator[None]:
    """Check that steps of PageRank and shortest paths, and folds of other programs, read other
    ranks' memory if ``direct``, and else go by messages.
    """
    ways: Counter[str] = Counter()
    folds, fold = [], Folding.run

    def run_fold(self: Folding, *args: Any) -> None:
        folds.append(self.in_memory)
        fold(self, *args)

    monkeypatch.setattr(Folding, "run", run_fold)
    by_memory = shared_walks._WalkInMemory, shared_paths._PathsInMemory
    by_messages = shared_walks._WalkByMessages, shared_paths._PathsByMessages
    for kind in (*by_memory, *by_messages):

        def step(self: Any, *args: Any, name: str = kind.__name__, before: Any = kind.step) -> Any:
            ways[name] += 1
            return before(self, *args)

        monkeypatch.setattr(kind, "step", step)
    if not direct:
        monkeypatch.setattr(PeerMemory, "open", lambda *args: None)
    yield
    assert ways or folds
    assert set(folds) <= {direct}
    assert set(ways) <= {kind.__name__ for kind in (by_memory if direct else by_messages)}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_four_devices(four_devices, tmp_path, layout):
    store = make(tmp_path, "hubs", "ties", True, layout)
    check_all(store, four_devices, 4, "nccl on GPUs")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_eight_devices(eight_devices, tmp_path, layout):
    store = make(tmp_path, "hubs", "ties", True, layout, partitions=8)
    check_all(store, eight_devices, 8, "nccl on GPUs")


COMMANDS = {
    "components": (),
    "pagerank": ("--iterations", 100_000),
    "sssp": ("--source", 0),
    "betweenness": ("--sources", 3000),
    "closeness": ("--sources", 3000),
    # validate computes each iteration again, in 30 ms
    "hits": ("--tolerance", 1e-300, "--max-iterations", 1000),
}


@pytest.mark.parametrize("command_name", COMMANDS)
def test_a_worker_that_is_killed(two_devices, ok, edge_list, tmp_path, command_name):
    """A command whose worker is killed at a random moment runs again on the remaining worker."""
    del two_devices
    src, dst = grid(300)
    weight = np.random.default_rng(1).integers(1, 9, len(src))
    store, out = tmp_path / "g.dg", tmp_path / "out"
    ok("build", edge_list(src, dst, w=weight), "-o", store, "--partitions", 2, "--weight", "w")
    how = "--workers", 2, "--device", "cuda", "--timeout", 10
    line = command(command_name, store, "-o", out, *COMMANDS[command_name], *how)
    seconds, stderr = random.uniform(0, 3), ""
    while "started again on 1 remaining worker" not in stderr:  # the run was over before
        assert seconds > 0.01, stderr
        shutil.rmtree(out, ignore_errors=True)
        with subprocess.Popen(
            line, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        ) as running:
            workers = workers_of(running)
            wait_until(lambda: any((tmp_path / ".out.work").glob("scratch/tmp*")))
            time.sleep(seconds)
            with suppress(ProcessLookupError):
                os.kill(workers[-1], signal.SIGKILL)
            _, stderr = running.communicate(timeout=200)
        assert running.returncode == 0, (seconds, stderr)
        seconds /= 2
    if command_name not in ("betweenness", "closeness"):  # those take long
        ok("validate", store, out)


# On emulated devices


@pytest.mark.parametrize(("shape", "layout"), drawn(8, SMALL_SHAPES, LAYOUTS))
def test_every_program_emulated(emulated, tmp_path, monkeypatch, shape, layout):
    store = make(tmp_path, shape, "ties", True, layout)
    with counting_steps(monkeypatch, direct=True):
        check_all(store, emulated, 3, "nccl")


@pytest.mark.nightly
@pytest.mark.parametrize("layout", LAYOUTS)
def test_eight_devices_emulated(eight_emulated, tmp_path, layout):
    store = make(tmp_path, "hubs", "ties", True, layout, partitions=8)
    check_all(store, eight_emulated, 8, "nccl")


@pytest.mark.slow
@pytest.mark.parametrize("directed", [False, True])
def test_cores_emulated(emulated, tmp_path, directed):
    check_cores(make(tmp_path, "two components", "ties", directed, "delegates"), emulated, 3)


@pytest.mark.slow
@pytest.mark.parametrize("directed", [False, True])
def test_strong_emulated(emulated, tmp_path, directed):
    check_strong(make(tmp_path, "two components", "ties", directed, "delegates"), emulated, 3)


@pytest.mark.nightly
def test_several_times_emulated(emulated, tmp_path):
    check_several_times(tmp_path, emulated, "nccl")


@pytest.mark.slow
def test_telling_of_forests_emulated(emulated, tmp_path, monkeypatch):
    check_telling_of_forests(emulated, tmp_path, monkeypatch, "nccl")


@pytest.mark.slow
def test_walks_by_messages_emulated(emulated, tmp_path, monkeypatch):
    store = make(tmp_path, "two components", "ties", True, "grid")
    with counting_steps(monkeypatch, direct=False):
        check_walk(store, emulated, 3, "nccl", entries_of(store)[2])


@pytest.mark.slow
@pytest.mark.parametrize("direct", [True, False])
def test_folds_emulated(emulated, tmp_path, monkeypatch, direct):
    """Sums of integers, minima and sums of floats, over ranks that have unequal parts."""
    store = make(tmp_path, "two components", "ties", True, "delegates")
    with counting_steps(monkeypatch, direct):
        check_cores(store, emulated, 3, "nccl")
        check_strong(store, emulated, 3, "nccl")
        check_all_degrees(store, emulated, 3, "nccl")
        check_forests(store, emulated, 3, "nccl")


@pytest.mark.nightly
@pytest.mark.parametrize("layout", LAYOUTS)
def test_whose_vertices_are_emulated(emulated, tmp_path, monkeypatch, layout):
    """Vertices of a walk are dealt to ranks by rows and targets, and each vertex that a rank reads
    has an owner.
    """
    devices = emulated[:3]
    src, dst = SHAPES["hubs"]
    last = 1 + max(src.max(), dst.max())
    ends = last + np.arange(100)  # of which edges lead to none
    options = BuildOptions(directed=True, **LAYOUTS[layout])
    store = stored(tmp_path, np.r_[src, ends], np.r_[dst, src[:100]], options)
    deals: dict[int, tuple[np.ndarray, np.ndarray, Any]] = {}
    deal = shared_walks._Ownership.of

    def watch(graph: ProgramGraph, ranks: Ranks, each: int) -> Any:
        dealt, rows = deal(graph, ranks, each), graph.cut.rows
        targets = np.unique(rows.near.get())
        deals[ranks.rank] = np.diff(rows.offsets.get().astype(np.int64)), targets, dealt
        return dealt

    monkeypatch.setattr(shared_walks._Ownership, "of", watch)
    n, size = store.info.vertices, len(devices)
    run(store, PageRankProgram(n, 0.85, None, 3, "even", None), devices, size, "nccl")
    has_any = np.stack([deals[rank][0] > 0 for rank in range(size)])
    roles = np.zeros((size, n), np.uint32)
    for rank, (lengths, _, dealt) in deals.items():
        vertices, of_these = dealt.rows.get().T
        roles[rank, vertices] = of_these
        assert (of_these > 0).all()
        assert (np.diff(vertices.astype(np.int64)) > 0).all()
        assert (np.diff(dealt.cut.rows.offsets.get().astype(np.int64)) == lengths[vertices]).all()
    own = roles >> np.arange(size, dtype=np.uint32)[:, None] & 1 > 0
    assert (own.sum(axis=0) == 1).all()
    assert (has_any.sum(axis=0) == 0).any()
    assert (own[1:].any(axis=0) & (roles[1:] & 1 == 0).all(axis=0)).any()  # told at the end
    alone, split = has_any.sum(axis=0) == 1, has_any.sum(axis=0) > 1
    assert (own[:, alone] == has_any[:, alone]).all()
    assert ((roles > 0) == (own | has_any)).all()
    assert (roles >> 31 == ((roles > 0) & split)).all()
    sent_bytes = 8 * (size - 1) * split.sum()
    for rank, (_, _, dealt) in deals.items():
        assert dealt.splits == split.any()
        own_split = dealt.rows.get()[dealt.own_split.get(), 0]
        assert own_split.tolist() == np.flatnonzero(own[rank] & split).tolist()
        readers = np.zeros((size, n), np.bool_)
        for peer, (_, targets, _) in deals.items():
            readers[peer, targets] = True
            needed = roles[rank] >> np.uint32(peer) & 1 > 0
            assert (needed == (own[rank] & (readers[peer] | (peer == rank)))).all()
        sent_bytes += 8 * (readers & own[rank])[np.arange(size) != rank].sum()
    assert all(dealt.sent == sent_bytes for _, _, dealt in deals.values())
    assert split.any() == (layout != "1d")


@pytest.mark.slow
@pytest.mark.parametrize("layout", mostly_nightly(LAYOUTS, "grid"))
@pytest.mark.parametrize("stands", STANDS)
@pytest.mark.parametrize("direct", [True, nightly(False)])
def test_where_entries_stand_emulated(emulated, tmp_path, monkeypatch, direct, stands, layout):
    check_where_entries_stand(emulated, tmp_path, monkeypatch, 3, direct, stands, layout, "nccl")


@pytest.mark.parametrize("layout", partly_nightly(LAYOUTS, "delegates", "1d"))
def test_walks_of_large_graphs_emulated(emulated, tmp_path, monkeypatch, layout):
    """Walks are right with offsets of 64 bits and half of the targets in host memory."""
    monkeypatch.setattr(device_graph, "MOST_SHORT", 0)
    room, deals = DeviceShare.room, []

    def less(self: DeviceShare, program: Any, *args: Any) -> Any:
        full = room(self, program, *args)
        return full if program.weighted else full._replace(near=full.near // 2)

    deal = shared_walks._Ownership.of

    def watch(graph: ProgramGraph, *more: Any) -> Any:
        dealt = deal(graph, *more)
        deals.append((dealt.cut.rows.offset_type, dealt.cut.tiered))
        return dealt

    monkeypatch.setattr(DeviceShare, "room", less)
    monkeypatch.setattr(shared_walks._Ownership, "of", watch)
    store = make(tmp_path, "hubs", "ties", True, layout)
    check_walk(store, emulated, 3, "nccl", entries_of(store)[2])
    assert Counter(deals) == {("u64", "true"): 6, ("u64", "false"): 3}


@pytest.mark.parametrize(
    ("direct", "weights"),
    partly_nightly(itertools.product([True, False], WEIGHTS), *itertools.product([False], WEIGHTS)),
)
def test_weights_emulated(emulated, tmp_path, monkeypatch, direct, weights):
    with counting_steps(monkeypatch, direct):
        check_paths_of(make(tmp_path, "hubs", weights, False, "grid"), emulated, "nccl")


@pytest.mark.parametrize(
    "name",
    [slow("pagerank"), slow("sssp"), *map(nightly, ("betweenness", "closeness", "hits"))],
)
def test_going_on_emulated(emulated, tmp_path, monkeypatch, name):
    check_programs_going_on(emulated, tmp_path, monkeypatch, name)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pagerank", "sssp"])
def test_going_on_by_messages_emulated(emulated, tmp_path, monkeypatch, name):
    with counting_steps(monkeypatch, direct=False):
        check_programs_going_on(emulated, tmp_path, monkeypatch, name)


@pytest.mark.nightly
@pytest.mark.parametrize("direct", [True, slow(False)])
def test_paths_of_many_buckets_emulated(emulated, tmp_path, monkeypatch, direct):
    store = make(tmp_path, "grid", "floats", False, "delegates")
    with counting_steps(monkeypatch, direct):
        results = run(store, program_of(store, 0), emulated, 2, "nccl")
    check_paths(store, columns(results), 0)
    assert results[0].record["buckets"] > (9 if direct else 10)  # a kernel's rule, and a host's
    assert results[0].record["sent"] > 0


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["betweenness", "closeness"])
def test_ends_asked_of_some_ranks_emulated(emulated, tmp_path, monkeypatch, name):
    """Runs whose ranks are asked at random moments to end are resumed by other numbers of ranks, or
    by one; no rank waits for ever, and nothing counts twice.
    """
    asks, chance = threading.local(), random.Random(2)
    monkeypatch.setattr(
        ending, "asked", lambda: asks.often > 0 and asks.chance.random() < asks.often
    )
    store = make(tmp_path, "hubs", "ties", True, "delegates")
    n = store.info.vertices
    every = np.arange(0, n, 1 if name == "closeness" else 60, dtype=np.uint32)
    program = (
        DistanceSumsProgram(every, along=True)
        if name == "closeness"
        else BetweennessProgram(n, every)
    )
    wanted = columns(run(store, program, emulated, 1))
    load = RankProgram.load

    def begin(self: RankProgram, *arguments: Any) -> ProgramGraph:
        asks.often, asks.chance = chance.choice([0, 0, 0.05, 0.3]), random.Random(chance.random())
        return load(self, *arguments)

    monkeypatch.setattr(RankProgram, "load", begin)
    saved = tmp_path / "checkpoint", chance.choice([0.0, 0.001, 1e9]), "this"
    results: list[ProgramResult | None] = [None]
    for attempt in range(8):
        if attempt == 7:
            monkeypatch.setattr(ending, "asked", lambda: False)
        results = run_or_end(store, program, emulated, chance.randint(1, 4), saved=saved)
        if results[0] is not None:
            break
    assert results[0] is not None
    for column, values in wanted.items():
        np.testing.assert_allclose(np.asarray(results[0].values[column]), values, rtol=1e-12)
