"""Shares of a graph that a worker keeps loaded from one program of a command to the next."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from delegraph.kernels.base.team import Team
from delegraph.pipeline.algorithms.bfs_each import DistanceBits
from delegraph.pipeline.build.prepare import BuildOptions
from delegraph.pipeline.engines.operations.program import counts_of
from delegraph.pipeline.engines.subjects import subject_of
from delegraph.pipeline.engines.workers import client, program_work
from delegraph.pipeline.engines.workers.client import Workers, WorkersEngine
from delegraph.pipeline.engines.workers.job import ON_DEVICE, ON_DISK, Job
from delegraph.pipeline.engines.workers.on_devices import RankProgram
from delegraph.pipeline.engines.workers.program_work import ProgramDone, ProgramWork
from delegraph.pipeline.engines.workers.share import keep_share
from delegraph.pipeline.ranks.communicator import SingleCommunicator
from delegraph.pipeline.ranks.on_workers import Done
from delegraph.pipeline.results.store_names import StoreNames
from delegraph.pipeline.run.resources import resources_of
from support.graphs import random_edges
from support.programs import stored


def calls_of(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> list[Any]:
    """Return a list that receives the arguments of each later call of a function."""
    calls, real = [], getattr(owner, name)

    def noted(*args: Any) -> Any:
        calls.append(args)
        return real(*args)

    monkeypatch.setattr(owner, name, noted)
    return calls


@pytest.mark.parametrize("way", [0, ON_DISK])
def test_a_share_is_loaded_once(tmp_path, monkeypatch, way):
    store = stored(tmp_path, *random_edges(2, 300, 900), BuildOptions(partitions=2))
    program = DistanceBits(np.arange(9, dtype=np.uint32), 8)
    loads = calls_of(monkeypatch, program_work, "load_rank")

    def run(share: str) -> dict[str, np.ndarray]:
        job = Job(store.path, ProgramWork((program,), None, share), tmp_path, 60.0).fresh_attempt()
        needs.append([way.need for way in job.get_ready(0, 1, 1)])
        ready = job.get_ready(0, 1, 1)[way].job
        result = ready.run(SingleCommunicator(), Team(1))
        return {name: np.load(ready.place / f"0.{name}.npy") for name in result.columns}

    needs: list[list[int]] = []
    share = keep_share("this command")
    first, second = run("this command"), run("this command")
    assert len(loads) == 1
    assert all((first[name] == second[name]).all() for name in first)
    assert needs[1][way] == program.held_bytes(counts_of(store)) < needs[0][way]
    assert needs[1][1 - way] == needs[0][1 - way]
    run("another command")
    assert len(loads) == 2
    assert share.graph is None
    run("this command")
    del share
    run("this command")
    assert len(loads) == 4


def test_a_share_on_a_device_is_loaded_once(emulated, tmp_path, monkeypatch):
    store = stored(tmp_path, *random_edges(2, 300, 900), BuildOptions(partitions=2))
    program = DistanceBits(np.arange(9, dtype=np.uint32), 8)
    loads = calls_of(monkeypatch, RankProgram, "load")
    share, needs = keep_share("this command"), []
    for name in ("this command", "this command", "another command"):
        job = Job(
            store.path, ProgramWork((program,), None, name), tmp_path, 60.0, "cuda"
        ).fresh_attempt()
        (way,) = job.get_ready(0, 1, 1)
        needs.append(way.need)
        assert way.job.run(SingleCommunicator(), Team(1)) is not None
        assert (share.graph is None) == (name != "this command")
    assert len(loads) == 2
    whole = program.held_bytes(counts_of(store))
    assert needs[1] == whole <= needs[0]
    # Each rank holds what it finds of all vertices; the first one hears of the other's, too.
    job = Job(
        store.path, ProgramWork((program,), None, "this command"), tmp_path, 60.0, "cuda"
    ).fresh_attempt()
    for rank in range(2):
        share.of = rank, 2, ON_DEVICE
        assert [way.need for way in job.get_ready(rank, 2, 1)] == [whole * (2 - rank)]


def test_other_ranks_load_another_share(tmp_path):
    store = stored(tmp_path, *random_edges(2, 300, 900), BuildOptions(partitions=2))
    program = DistanceBits(np.arange(9, dtype=np.uint32), 8)
    work = ProgramWork((program,))
    job = Job(store.path, work, Path(tmp_path), 60)
    share = keep_share(work.share)
    job = job.fresh_attempt()
    job.run(SingleCommunicator(), Team(1))
    assert share.graph is not None
    job.get_ready(1, 2, 1)
    assert share.graph is None


@pytest.mark.parametrize(
    ("beginning", "working", "fits", "local", "has_note"),
    [
        (3.0, 1.0, True, True, True),
        (1.9, 1.0, True, True, False),  # three ranks do the work of two seconds beside one's
        (3.0, 1.0, False, True, False),
        (3.0, 1.0, True, False, False),  # workers that are there for others, too
    ],
)
def test_a_line_where_one_gpu_would_do(
    tmp_path, monkeypatch, beginning, working, fits, local, has_note
):
    """Two batches of searches on local workers tell when one GPU would be faster."""
    store = stored(tmp_path, *random_edges(2, 300, 900), BuildOptions(partitions=3))
    clock = [0.0]

    @contextmanager
    def open_workers(*args: Any) -> Iterator[Workers]:
        clock[0] += beginning
        cluster: Any = SimpleNamespace(local=local, client=None)
        yield Workers(cluster, ["a", "b", "c"], "cuda")

    def run_on_workers(cluster: Any, workers: Any, job: Job, *more: Any) -> Done:
        clock[0] += working / 2
        run = replace(job, fits_one=fits)
        return Done(run, [ProgramDone(["x"], {}, [], [0.0])] * 3, [], "3 x a GPU", workers)

    monkeypatch.setattr(client, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    monkeypatch.setattr(client, "open_workers", open_workers)
    monkeypatch.setattr(client, "run_on_workers", run_on_workers)
    monkeypatch.setattr(client, "gather_columns", lambda *args: [np.zeros(300)])
    resources = resources_of(workers=3, device="cuda")
    subject = subject_of(store, StoreNames(store, Team(1)))
    notes: list[str] = []
    program = DistanceBits(np.arange(9, dtype=np.uint32), 8)
    engine = WorkersEngine(store, subject, resources, 1, tmp_path, notes, program)
    engine.load()
    for _ in range(2):
        engine.run(None, lambda *args: None)
    assert not notes
    engine.close()
    assert len(notes) == has_note
    if has_note:
        assert "3 workers took 3.0 s to start, and 1.0 s for the rest" in notes[0]
