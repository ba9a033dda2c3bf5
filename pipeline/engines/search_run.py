"""What every way to search shares: the source, the limits, the clock, the checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ...kernels.base.graph import Graph
from ...kernels.bfs.cpu import CpuBackend, compile_search
from ...kernels.gpu.device import Device
from ...partition.disk.work import Work
from ...partition.errors import InputError
from ...partition.input.ids import parse_id
from ..ranks.communicator import TIMEOUT_SECONDS
from ..results.checkpoint import Checkpoint
from ..results.found import Found
from ..results.names import Names
from ..run.execute import Executor
from ..run.plan import fits, held_now
from ..run.records import Clock, GraphRecord
from ..run.resources import Resources

CHECKPOINT_SECONDS = 60.0


@dataclass(frozen=True)
class SearchOptions:
    """max_depth: levels to search at most, None for all. threads: cores to use.

    checkpoint_seconds: how often a search saves its state. timeout_seconds: how long the ranks of a
    search wait for one that shows no sign of life.
    """

    max_depth: int | None = None
    threads: int = 1
    checkpoint_seconds: float = CHECKPOINT_SECONDS
    timeout_seconds: float = TIMEOUT_SECONDS

    def __post_init__(self) -> None:
        if self.max_depth is not None and self.max_depth < 0:
            raise InputError(f"the depth limit must not be negative, not {self.max_depth}")
        if self.threads < 1:
            raise InputError(f"threads must be positive, not {self.threads}")
        if self.checkpoint_seconds < 0:
            raise InputError("the time between checkpoints must not be negative")
        if self.timeout_seconds <= 0:
            raise InputError("the timeout must be positive")


@dataclass(frozen=True)
class Searched:
    """A search that is done, and what is needed to write and to record it.

    writing_bytes: what writing the result holds, for each of the tasks that write at once. device:
    where it ran, or those of all ranks in words; None for the CPU.
    """

    names: Names
    found: Found
    graph: GraphRecord
    layout: str
    method: str
    writing_bytes: Callable[[int], int]
    device: Device | str | None = None
    ranks: int = 1


@dataclass(frozen=True)
class SearchRun:
    """One call of ``bfs``.

    device: of this process, to search on where there is room; None for the CPU. notes: lines for
    the user.
    """

    source: str
    options: SearchOptions
    executor: Executor
    resources: Resources
    work: Work
    device: Device | None = None
    clock: Clock = field(default_factory=Clock)
    notes: list[str] = field(default_factory=list)

    @property
    def limit(self) -> int:
        return self.resources.limit

    def find(self, names: Names) -> int:
        value = parse_id(self.source, names.id_type)
        place = names.find(value)
        if place is None:
            raise InputError(f"source {value!r} is not a vertex of the graph")
        return place

    def checkpoint(self, graph: str) -> Checkpoint:
        """Of the search of a graph; the work is kept from its first save on."""
        return Checkpoint(
            self.work.scratch / "checkpoint",
            self.options.checkpoint_seconds,
            f"{graph} from {self.source}",
            saving=lambda: self.work.keep("checkpoint"),
            loaded=lambda level: self.executor.reused(f"search up to level {level}"),
        )

    def search(self, begin: Callable[..., Found], graph: Graph, need: int) -> Found:
        """``begin``: a search or one to resume, but for backend and depth."""
        backend = CpuBackend(self.options.threads)
        with self.clock.phase("compile"):
            self.executor.once("compile", lambda: compile_search(graph.offsets.dtype))
        with self.clock.phase("search"):
            depth = self.options.max_depth
            search = [lambda: begin(backend, depth)]
            return self.executor.step("search", lambda run: run(), search, need)[0]

    def fits(self, need: int) -> bool:
        return fits(need, self.limit)

    def held(self) -> int:
        return held_now()
