"""The engines of a store, and what a search of it would hold: ``plan``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from ...kernels.base.team import Team
from ...kernels.gpu.device import Device
from ...partition.disk.memory import GROWTH_BYTES, resident_bytes
from ...partition.store.store import Store, open_store
from ..ranks.communicator import SingleCommunicator
from ..results.checkpoint import Checkpoint
from ..results.found import Found
from ..results.names import Names
from ..results.result import FILE_ROWS, writing_bytes
from ..results.store_names import StoreNames
from ..run.plan import Budget, Plan, Shape, StepPlan
from ..run.records import graph_record
from ..run.resources import Resources
from .device import DeviceEngine
from .engine import Engine, Need, Subject, choose
from .memory import MemoryEngine
from .ranks.edges import stream_team
from .ranks.graph import RankGraph
from .ranks.search import load_rank, rank_stream_bytes, search_rank, warm_up


def subject_of(store: Store, names: Names) -> Subject:
    return Subject(names, graph_record(store), store.info.layout, partial(writing_bytes, store))


def engines_of_store(
    store: Store, subject: Subject | None, device: Device | None, threads: int
) -> list[Engine]:
    """In one process, the best first. device: None for the CPU."""
    engines: list[Engine] = [
        MemoryEngine(store, subject, threads),
        DiskEngine(store, subject, threads),
    ]
    return [DeviceEngine(store, subject, device, threads), *engines] if device else engines


class DiskEngine:
    """A store whose edges stay on disk, read as a search needs them: a rank that is alone."""

    method = "push-pull, streamed"
    device = None
    ranks = 1
    once = False
    in_memory = False

    def __init__(self, store: Store, subject: Subject | None, threads: int) -> None:
        self.subject = subject
        self._store = store
        self._threads = threads
        self._graph: RankGraph | None = None

    def need(self) -> Need:
        return Need(rank_stream_bytes(self._store, 0, 1, self._threads))

    def compile(self) -> None:
        warm_up(self._store.offsets_types())

    def load(self) -> None:
        self._graph = load_rank(self._store, 0, 1, Team(self._threads), on_disk=True)

    def search(
        self, source: int, max_depth: int | None = None, checkpoint: Checkpoint | None = None
    ) -> Found:
        assert self._graph is not None
        graph, alone, team = self._graph, SingleCommunicator(), stream_team(self._threads)
        found = search_rank(graph, source, alone, team, max_depth, checkpoint=checkpoint)
        return Found(*graph.own.take(), found.supersteps)

    def close(self) -> None:
        self._graph = None


def plan_search(path: str | Path, threads: int, resources: Resources) -> Plan:
    """What searching a store would hold, on workers on each. LimitError if it does not fit."""
    store = open_store(path)
    names = StoreNames(store, Team(threads))
    if resources.cluster.any:
        from .workers.plan import plan_on_ranks  # Dask is not needed otherwise

        return plan_on_ranks(store, threads, resources)
    device = resources.chosen_device()
    notes: list[str] = []
    engines = engines_of_store(store, subject_of(store, names), device, threads)
    engine, need = choose(engines, resources.limit, notes)
    return plan_of(engine, need, threads, resources.limit, notes)


def plan_of(
    engine: Engine, need: Need, threads: int, limit: int, notes: Sequence[str] = ()
) -> Plan:
    """A search and the writing of its result, beside what this process holds now."""
    subject = engine.subject
    assert subject is not None
    searching = StepPlan("search", 1, need.host, device_bytes=need.device)
    one, two = subject.writing_bytes(1), subject.writing_bytes(2)
    budget = Budget(limit, resident_bytes() + GROWTH_BYTES, threads)
    files = max(1, -(-subject.record["vertices"] // FILE_ROWS))
    free = max(1, (budget.free - 2 * one + two) // (two - one))
    writing = StepPlan("write", files, two - one, 2 * one - two, min(threads, files, free))
    where = str(engine.device) if engine.device else None
    shape = Shape(in_memory=engine.in_memory)
    return Plan(budget, shape, (searching, writing), None, where, tuple(notes))
