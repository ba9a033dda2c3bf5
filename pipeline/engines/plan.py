"""Plans of questions over a store: the memory that a run would hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from ...kernels.base.team import Team
from ...partition.disk.memory import GROWTH_BYTES, resident_bytes
from ...partition.store.manifest import GraphInfo
from ...partition.store.store import open_store
from ..results.names import file_rows
from ..results.store_names import StoreNames
from ..run.plan import Budget, Plan, Shape, StepPlan
from ..run.resources import Resources
from .engine import Engine, Need, choose
from .operations.program import Program
from .subjects import subject_of
from .table import programs_of_store, searches_of_store


def plan_search(
    path: str | Path,
    threads: int,
    resources: Resources,
    program: Callable[[GraphInfo], Program] | None = None,
    writes_meanwhile: bool = False,
) -> Plan:
    """Return the plan of a search of a store; with workers, the plan of what each worker would
    hold. Raises LimitError if the run does not fit.

    program: makes the program to plan instead of a search, from the facts of the store.
    writes_meanwhile: whether results are written while the graph is held.
    """
    store = open_store(path)
    subject = subject_of(store, StoreNames(store, Team(threads)))
    what = None if program is None else program(store.info)
    if resources.cluster.any:
        from .workers.plan import plan_on_ranks  # Dask is not needed otherwise

        return plan_on_ranks(store, threads, resources, what)
    notes: list[str] = []
    engines: Sequence[Engine]
    if what is None:
        engines = searches_of_store(store, subject, resources.chosen_device(notes), threads)
    else:
        reserved_bytes = subject.writing_bytes(1) if writes_meanwhile else 0
        engines = programs_of_store(
            store, subject, what, threads, reserved_bytes, resources.chosen_device(notes)
        )
    engine, need = choose(engines, resources.limit, notes)
    return plan_of(engine, need, threads, resources.limit, notes)


def plan_of(
    engine: Engine, need: Need, threads: int, limit: int, notes: Sequence[str] = ()
) -> Plan:
    """Return the plan of two steps, the run of an engine and the writing of its result, beside what
    this process holds now.
    """
    subject = engine.subject
    assert subject is not None
    searching = StepPlan("search", 1, need.host, device_bytes=need.device)
    single, double = subject.writing_bytes(1), subject.writing_bytes(2)
    budget = Budget(limit, resident_bytes() + GROWTH_BYTES, threads)
    n = subject.record["vertices"]
    files = max(1, -(-n // file_rows(n)))
    free = max(1, (budget.free - 2 * single + double) // (double - single))
    writing = StepPlan(
        "write", files, double - single, 2 * single - double, min(threads, files, free)
    )
    where = str(engine.device) if engine.device else None
    shape = Shape(in_memory=engine.in_memory)
    return Plan(budget, shape, (searching, writing), None, where, tuple(notes))
