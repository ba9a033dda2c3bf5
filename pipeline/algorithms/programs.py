"""Algorithms that are written as programs over operations, and the way in which a command runs
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import pyarrow as pa

from ...kernels.gpu.device import Device
from ...partition.input.edges import EdgeList
from ...partition.store.manifest import GraphInfo
from ...partition.store.store import Store
from ..build.prepare import BuildOptions
from ..engines.engine import Subject
from ..engines.host.programs import DeferredProgram
from ..engines.operations.operations import Calls
from ..engines.operations.program import Program, ProgramEngine, ProgramResult, Tell
from ..engines.operations.vectors import Counts
from ..engines.table import program_of_edges, programs_of_store
from ..results.checkpoint import Checkpoint
from ..results.names import Names
from ..results.result import Option
from ..run.execute import Executor
from ..run.plan import Facts, held_now
from .run import Answer, Run


class ProgramQuestion(Protocol):
    """A question that a program answers. name: the command's. step: the name of what a run goes on
    from after it was cut off. weighted: whether the graph has to have weights.
    """

    @property
    def name(self) -> str: ...
    @property
    def step(self) -> str: ...
    @property
    def weighted(self) -> bool: ...

    def calls(self, weighted: bool) -> Calls:
        """Return the kernels that its program calls. weighted: whether the graph has weights."""
        ...

    def options(self, id_type: pa.DataType) -> dict[str, Option]:
        """Return the options that decide the result beside the graph."""
        ...

    def program(self, names: Names, info: GraphInfo) -> Program:
        """Return the program for a graph. Raises InputError for options that do not suit this
        graph.
        """
        ...

    def held_bytes(self, counts: Counts) -> int:
        """Return the bytes that the question's program holds."""
        ...

    def answer(self, given: ProgramResult, names: Names, method: str) -> Answer: ...


@runtime_checkable
class ScansEdges(Protocol):
    """A question that can be answered from edges as they come."""

    def engines_of_edges(
        self, edges: EdgeList, choices: BuildOptions, executor: Executor
    ) -> Sequence[ProgramEngine]: ...


@dataclass(frozen=True)
class ProgramAlgorithm:
    """The algorithm (run.py) that asks a question."""

    question: ProgramQuestion

    @property
    def name(self) -> str:
        return self.question.name

    @property
    def step(self) -> str:
        return self.question.step

    @property
    def weighted(self) -> bool:
        return self.question.weighted

    def options(self, id_type: pa.DataType) -> dict[str, Option]:
        return self.question.options(id_type)

    def check(self, names: Names) -> None:
        """Check nothing: a missing property of the graph is told with the program."""

    def held_bytes(self, facts: Facts) -> int:
        n = facts.vertices
        return self.question.held_bytes(Counts(n, n, 0, 0, edges=facts.rows))

    def engines(
        self, store: Store, subject: Subject, device: Device | None, threads: int
    ) -> Sequence[ProgramEngine]:
        program = self.question.program(subject.names, store.info)
        return programs_of_store(store, subject, program, threads, device=device)

    def engines_of_edges(
        self, edges: EdgeList, choices: BuildOptions, device: Device | None, executor: Executor
    ) -> Sequence[ProgramEngine]:
        question = self.question
        if device is None and isinstance(question, ScansEdges) and edges.weight is None:
            return question.engines_of_edges(edges, choices, executor)
        calls = question.calls(edges.weight is not None)
        deferred = DeferredProgram(question.program, question.held_bytes, calls)
        return program_of_edges(edges, choices, device, executor, deferred)

    def on_workers(self, store: Store, subject: Subject, run: Run) -> ProgramEngine:
        from ..engines.workers.client import WorkersEngine  # Dask is not needed otherwise

        program = self.question.program(subject.names, store.info)
        place = store, subject, run.resources, run.options.threads, run.work.scratch, run.notes
        return WorkersEngine(*place, program)

    def run(self, engine: ProgramEngine, checkpoint: Checkpoint, run: Run) -> Answer:
        assert engine.subject is not None
        extra_bytes = program_extra_bytes(self.question, engine.subject, run.resources.limit)
        given = engine.run(checkpoint, telling(self.question, run), extra_bytes=extra_bytes)
        with run.clock.phase("write"):  # names are read for it
            return self.question.answer(given, engine.subject.names, engine.method)


def program_extra_bytes(question: ProgramQuestion, subject: Subject, limit: int) -> int:
    """Return the bytes that a program may hold beyond its declared ones, once its graph is
    loaded.
    """
    n, rows = subject.record["vertices"], subject.record["rows"]
    return max(0, limit - held_now() - question.held_bytes(Counts(n, n, 0, 0, edges=rows)))


def telling(question: ProgramQuestion, run: Run) -> Tell:
    """Return the function that a program calls after each of its steps."""
    progress = run.executor.progress

    def tell(done: int, total: int, last: str) -> None:
        if progress:
            progress(f"search: {question.step} {done}{', ' if last else ''}{last}", done, total)

    return tell
