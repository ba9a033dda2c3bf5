"""An engine is a way to run over one graph. It says beforehand how many bytes it holds, compiles,
loads once, runs, and is closed. ``choose`` alone decides which engine runs: the first one that
fits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, TypeVar, get_args

from ...kernels.gpu.device import Device, DeviceMemoryError
from ...partition.disk.memory import format_bytes, return_compiler, return_freed_memory
from ...partition.errors import InputError
from ..results.checkpoint import Checkpoint
from ..results.found import SearchOutcome
from ..results.names import Names
from ..run.plan import fits, too_little
from ..run.records import GraphRecord

Strategy = Literal["auto", "rows", "slices"]
"""The form of the graph that a search on a GPU goes over. auto: the faster of rows and slices, by
measurement when the graph is loaded.
"""

Result = TypeVar("Result")
E = TypeVar("E", bound="Engine")

CODE_BYTES = 64 << 20
"""Approximate bytes of the compiled code and its compiler; measured once the code is compiled."""


class Need(NamedTuple):
    """The most bytes that an engine holds beyond what its process holds already. host: by loading
    or by running, whichever is more. device: on a GPU. closer: computes a bound that may be lower,
    and takes longer; None if there is none.
    """

    host: int
    device: int = 0
    closer: Callable[[], Need] | None = None

    def within(self, limit: int) -> Need:
        """Return this need if it fits the limit, else the closer bound if there is one."""
        if self.closer is None or fits(self.host + CODE_BYTES, limit):
            return self
        return self.closer()


class Footprint(NamedTuple):
    """Bytes that a loader holds on the host, and bounds of its graph. making: while the graph is
    made. staying: of the graph once it is made. vertices, rows: the most vertices and rows. domain:
    dense ids are below it.
    """

    making: int
    staying: int
    vertices: int
    domain: int = 0
    rows: int = 0


class Loader(Protocol):
    """A loader makes the graph of an input, and keeps it in one place.

    bounded_by_footers: whether ``footprint`` bounds the graph by the files' footers unless
    ``closely``, which takes longer (build/plan.py, facts_of).
    """

    bounded_by_footers: bool

    def footprint(self, closely: bool = False) -> Footprint: ...


def need_of(loader: Loader, running: Callable[[Footprint], int], reserved_bytes: int = 0) -> Need:
    """Return the bytes that loading a graph and running over it hold.

    running: gives the bytes that running holds, for a footprint. reserved_bytes: bytes that are
    held meanwhile.
    """

    def need(closely: bool) -> Need:
        footprint = loader.footprint(closely)
        staying = footprint.staying + running(footprint)
        return Need(max(footprint.making, staying) + reserved_bytes)

    return by_footers_first(need) if loader.bounded_by_footers else need(False)


def by_footers_first(need: Callable[[bool], Need]) -> Need:
    """Return the need for an edge list, bounded by footers; ``closer`` computes the closer bound
    later. need: computes the bound, closely or not (build/plan.py, facts_of).
    """
    return need(False)._replace(closer=lambda: need(True))


@dataclass(frozen=True)
class Subject:
    """The graph that an engine runs over, as those who write and record results need it.

    layout: how the edges are laid out. writing_bytes: the bytes that writing a result of every
    vertex holds, by the number of files written at once, the result included.
    """

    names: Names
    record: GraphRecord
    layout: str
    writing_bytes: Callable[[int], int]


class Engine(Protocol):
    """An engine. subject: None until it is known, at the latest when the graph is loaded. method:
    the name of the method in a run record. device: the GPU; words for the GPUs of several ranks;
    None for the CPU. ranks: the number of ranks that run together. in_memory: whether all edges are
    held, rather than read as they are needed.
    """

    in_memory: bool

    @property
    def subject(self) -> Subject | None: ...
    @property
    def method(self) -> str: ...
    @property
    def device(self) -> Device | str | None: ...
    @property
    def ranks(self) -> int: ...

    def need(self) -> Need:
        """Return what the engine holds at most. Raises DeviceMemoryError if the device has no room
        for the arrays that must be there.
        """
        ...

    def compile(self) -> None:
        """Compile the kernels that the work will call. An engine on a CPU compiles before the graph
        is loaded. An engine on a device also compiles after loading, since some of its kernels
        depend on the graph.
        """
        ...

    def load(self) -> None:
        """Load the graph. Raises InputError for a damaged input, DeviceMemoryError if the device
        has too little room after all.
        """
        ...

    def close(self) -> None:
        """Release the graph."""
        ...


class SearchEngine(Engine, Protocol):
    """An engine that has kernels of its own for breadth-first search."""

    def search(
        self, source: int, max_depth: int | None = None, checkpoint: Checkpoint | None = None
    ) -> SearchOutcome:
        """Search breadth-first from a source, which is a place in the arrays of ``subject.names``.

        checkpoint: if the engine can, the search resumes from it and saves to it.
        """
        ...


def check_strategy(strategy: Strategy, device: Device | None) -> None:
    """Raise InputError for an unknown strategy, and for slices if the search does not run on one
    GPU.
    """
    if strategy not in get_args(Strategy):
        raise InputError(f"a strategy is one of {', '.join(get_args(Strategy))}, not {strategy!r}")
    if strategy == "slices" and device is None:
        raise InputError("--strategy slices needs one GPU: leave out the strategy")


class EngineFacts(NamedTuple):
    """The facts of a run for its record: the graph, the method, the device and the number of
    ranks.
    """

    subject: Subject
    method: str
    device: Device | str | None
    ranks: int

    @classmethod
    def of(cls, engine: Engine) -> EngineFacts:
        assert engine.subject is not None
        return cls(engine.subject, engine.method, engine.device, engine.ranks)


def choose(engines: Sequence[E], limit: int, notes: list[str]) -> tuple[E, Need]:
    """Return the first engine that fits, compiled, and its need.

    limit: bytes that this process may hold. notes: lines for the user; receives the reason why a
    device was not chosen. Raises LimitError, which names the step and the least limit that would
    do, if no engine fits; DeviceMemoryError if the last engine's device is too small.
    """
    needs: list[tuple[int, str]] = []
    for engine in engines:
        try:
            need = engine.need().within(limit)
        except DeviceMemoryError as error:
            if engine is engines[-1]:
                raise
            notes.append(f"searched on the CPU: {error}")
            continue
        last = engine is engines[-1]
        writing = engine.subject.writing_bytes(1) if engine.subject else 0
        most, step = max((need.host, "search"), (writing, "write"))
        if engine.device is None:
            # Code must be compiled before the free memory is measured: it counts as held.
            if not last and not fits(most + CODE_BYTES, limit):
                needs.append((most + CODE_BYTES, step))
                continue
            if needs:  # the limit is near
                return_freed_memory()
            engine.compile()
            if needs:
                return_compiler()
        if fits(most, limit):
            return engine, need
        if engine.device is not None and not last:
            notes.append(
                f"searched on the CPU: a search on {engine.device} also needs "
                f"{format_bytes(need.host)} of host memory, more than the memory limit leaves"
            )
        needs.append((most, step))
    least, step = min(needs)
    raise too_little(step, least, limit)


def run_first(
    engines: Sequence[E],
    choosing: Callable[[Sequence[E]], tuple[E, Need]],
    work: Callable[[E, Need], Result],
    notes: list[str],
) -> Result:
    """Return the result of ``work`` with the chosen engine; if its device turns out too small, with
    the engine that is chosen from the others.

    notes: lines for the user; receives the reason. Raises DeviceMemoryError if no engine is left.
    """
    left = list(engines)
    while True:
        engine, need = choosing(left)
        try:
            return work(engine, need)
        except DeviceMemoryError as error:
            left = [candidate for candidate in left if candidate is not engine]
            if not left:
                raise
            notes.append(f"searched on the CPU: {error}")


def first_that_fits(needs: Sequence[int], fits: Callable[[int], bool]) -> int | None:
    """Return the index of the first need that fits; None if none does. needs: one for each way to
    run; with several ranks, the need of the rank with the largest share.

    >>> first_that_fits([90, 40, 20], lambda need: need < 50)
    1
    """
    return next((way for way, need in enumerate(needs) if fits(need)), None)
