"""Breadth-first search: hop distance and parent of every vertex, from one source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from ...kernels.base.graph import UNREACHED
from ...kernels.gpu.device import Device
from ...partition.errors import InputError
from ...partition.input.edges import EdgeList
from ...partition.input.id_types import Id, shown_id
from ...partition.input.ids import parse_id
from ...partition.numbers import check_whole
from ...partition.store.store import Store
from ..build.prepare import BuildOptions
from ..engines.engine import SearchEngine, Strategy, Subject, check_strategy
from ..engines.table import search_of_edges, searches_of_store
from ..questions.bfs import SearchRecord
from ..results.checkpoint import Checkpoint
from ..results.columns import Column, Columns, read_values
from ..results.found import SearchOutcome
from ..results.names import Names
from ..results.result import Option
from ..results.supersteps import shortened
from ..run.execute import Executor
from ..run.plan import Facts
from .run import Answer, DeferredRecord, Run


@dataclass(frozen=True)
class Bfs:
    """The question. source: as typed. max_depth: levels to search at most, None for all. strategy:
    whether one GPU searches over rows or slices; for a single search, "auto" is rows, as cutting
    slices takes longer than it saves.
    """

    source: str
    max_depth: int | None = None
    strategy: Strategy = "auto"
    name = "bfs"
    step = "level"
    weighted = False

    def __post_init__(self) -> None:
        check_depth(self.max_depth)

    def options(self, id_type: pa.DataType) -> dict[str, Option]:
        return {"source": shown_id(parse_id(self.source, id_type)), "max_depth": self.max_depth}

    def check(self, names: Names) -> None:
        find(names, self.source)

    def held_bytes(self, facts: Facts) -> int:
        return 0

    def engines(
        self, store: Store, subject: Subject, device: Device | None, threads: int
    ) -> list[SearchEngine]:
        return searches_of_store(store, subject, device, threads, self._strategy_on(device))

    def engines_of_edges(
        self, edges: EdgeList, choices: BuildOptions, device: Device | None, executor: Executor
    ) -> list[SearchEngine]:
        strategy = self._strategy_on(device)
        return search_of_edges(edges, choices, device, executor, strategy)

    def _strategy_on(self, device: Device | None) -> Strategy:
        check_strategy(self.strategy, device)
        return "rows" if self.strategy == "auto" else self.strategy

    def on_workers(self, store: Store, subject: Subject, run: Run) -> SearchEngine:
        from ..engines.workers.client import WorkersEngine  # Dask is not needed otherwise

        check_strategy(self.strategy, None)
        threads, folder = run.options.threads, run.work.scratch
        return WorkersEngine(store, subject, run.resources, threads, folder, run.notes)

    def run(self, engine: SearchEngine, checkpoint: Checkpoint, run: Run) -> Answer:
        assert engine.subject is not None
        source = find(engine.subject.names, self.source)
        found = engine.search(source.place, self.max_depth, checkpoint)
        answer = answer_of(found, source.id, self.max_depth, engine.method)
        read_values(answer.columns)
        return answer


def check_depth(max_depth: int | None) -> None:
    check_whole("max_depth", max_depth)


class Source(NamedTuple):
    """A vertex by its id and by its place in arrays."""

    id: Id
    place: int


def find(names: Names, source: str) -> Source:
    """Return a vertex as it was typed. Raises InputError if there is no such vertex."""
    value = parse_id(source, names.id_type)
    place = names.find(value)
    if place is None:
        raise InputError(f"source {shown_id(value)!r} is not a vertex of the graph")
    return Source(value, place)


def columns_of(found: SearchOutcome) -> Columns:
    return (
        Column("distance", found.distance, missing=-1, repeats=True),
        Column("parent", found.parent, vertices=True, missing=int(UNREACHED)),
    )


def answer_of(found: SearchOutcome, source: Id, max_depth: int | None, method: str) -> Answer:
    def record() -> dict[str, Any]:
        supersteps = shortened(found.supersteps)
        search = SearchRecord(
            source=shown_id(source),
            max_depth=max_depth,
            method=method,
            reached=found.supersteps.reached,
            depth=found.supersteps.depth,
        )
        return {
            "search": search,
            "supersteps": supersteps.listed,
            "supersteps_between": supersteps.between,
        }

    return Answer(columns_of(found), DeferredRecord(record), lambda: found.supersteps)
