"""An engine is a way to run over one graph: it says beforehand what it holds, compiles, loads once,
runs, and is closed. ``choose`` takes the first of several that fits; nothing else decides that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, TypeVar, get_args

from ...kernels.gpu.device import Device, DeviceMemoryError
from ...partition.disk.memory import format_bytes, return_freed_memory
from ...partition.errors import InputError
from ..results.checkpoint import Checkpoint
from ..results.found import Found
from ..results.names import Names
from ..run.plan import fits, too_little
from ..run.records import GraphRecord

Strategy = Literal["auto", "rows", "slices"]
"""What searches go over. auto: the faster of both, as it is measured when the graph is loaded."""

Result = TypeVar("Result")
E = TypeVar("E", bound="Engine")

CODE_BYTES = 64 << 20
"""About what compiled code and its compiler hold; measured once it is there."""


class Need(NamedTuple):
    """Bytes that an engine holds at most, beside what its process holds already: on the host by
    loading and by running, and on a device.

    closer: finds a bound that may be lower, and takes longer; None where there is none.
    """

    host: int
    device: int = 0
    closer: Callable[[], Need] | None = None

    def within(self, limit: int) -> Need:
        """Return this need, or the closer bound where this one does not fit the limit."""
        if self.closer is None or fits(self.host + CODE_BYTES, limit):
            return self
        return self.closer()


class Footprint(NamedTuple):
    """Bytes that a loader holds on the host: to make a graph, and of what stays of it; and bounds
    of the graph: its vertices, ids below which they lie, and rows.
    """

    making: int
    staying: int
    vertices: int
    domain: int = 0
    rows: int = 0


class Loader(Protocol):
    """Maker and keeper of the graph of an input, in one place.

    bounded_by_footers: whether a first bound is by the files' footers, and a closer one takes
    longer (build/plan.py, facts_of).
    """

    bounded_by_footers: bool

    def footprint(self, closely: bool = False) -> Footprint: ...


def need_of(loader: Loader, running: Callable[[Footprint], int], reserved_bytes: int = 0) -> Need:
    """Return what loading a graph and running over it hold.

    running: bytes that running holds, of a graph within some bounds. reserved_bytes: bytes that are
    held meanwhile.
    """

    def need(closely: bool) -> Need:
        footprint = loader.footprint(closely)
        staying = footprint.staying + running(footprint)
        return Need(max(footprint.making, staying) + reserved_bytes)

    return by_footers_first(need) if loader.bounded_by_footers else need(False)


def by_footers_first(need: Callable[[bool], Need]) -> Need:
    """Return the need over an edge list, with the closer bound left for later. need: gives the
    bound, closely or not (build/plan.py, facts_of).
    """
    return need(False)._replace(closer=lambda: need(True))


@dataclass(frozen=True)
class Subject:
    """The graph that an engine runs over, for whoever writes and records results.

    layout: of its edges. writing_bytes: what writing a result of every vertex holds, so many files
    at once, the result included.
    """

    names: Names
    record: GraphRecord
    layout: str
    writing_bytes: Callable[[int], int]


class Engine(Protocol):
    """subject: None until it is known, at the latest when the graph is loaded. method: what a
    record calls it. device: where it runs, of several ranks in words; None for the CPU. ranks:
    that run together. in_memory: whether all edges are held, rather than read as they are needed.
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
        """Raises DeviceMemoryError where the device has no room for what must stand there."""
        ...

    def compile(self) -> None:
        """Compile the kernels that the work will call: of a CPU before the graph is loaded; of a
        device after it, too, as some of them depend on the graph.
        """
        ...

    def load(self) -> None:
        """Raises InputError for what is damaged, DeviceMemoryError where room proves too small."""
        ...

    def close(self) -> None:
        """Let go of the graph."""
        ...


class SearchEngine(Engine, Protocol):
    """One that breadth-first search has kernels of its own for."""

    def search(
        self, source: int, max_depth: int | None = None, checkpoint: Checkpoint | None = None
    ) -> Found:
        """Breadth-first search from a vertex, by its place in the arrays of ``subject.names``.

        checkpoint: the search goes on from what it holds, and saves to it, where the engine can.
        """
        ...


def check_strategy(strategy: Strategy, device: Device | None) -> None:
    """InputError for another word, and where slices are asked for and no one GPU searches."""
    if strategy not in get_args(Strategy):
        raise InputError(f"a strategy is one of {', '.join(get_args(Strategy))}, not {strategy!r}")
    if strategy == "slices" and device is None:
        raise InputError("--strategy slices needs one GPU: leave out the strategy")


class EngineFacts(NamedTuple):
    """Where and how an engine ran, for the record."""

    subject: Subject
    method: str
    device: Device | str | None
    ranks: int

    @classmethod
    def of(cls, engine: Engine) -> EngineFacts:
        assert engine.subject is not None
        return cls(engine.subject, engine.method, engine.device, engine.ranks)


def choose(engines: Sequence[E], limit: int, notes: list[str]) -> tuple[E, Need]:
    """The first engine that fits, compiled, and what it needs.

    limit: bytes that this process may hold. notes: lines for the user, receives why a device would
    not do. Raises LimitError, naming the step and the least limit that would do, if none fits;
    DeviceMemoryError if the last one is a device that is too small.
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
            # Compiled code counts as held, so it is there before what is left is measured.
            if not last and not fits(most + CODE_BYTES, limit):
                needs.append((most + CODE_BYTES, step))
                continue
            if needs:  # the limit is near
                return_freed_memory()
            engine.compile()
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
    """``work`` of the engine that is chosen; of the next choice where its device proves too small.

    notes: lines for the user, receives why. Raises DeviceMemoryError if none is left.
    """
    left = list(engines)
    while True:
        engine, need = choosing(left)
        try:
            return work(engine, need)
        except DeviceMemoryError as error:
            left = [other for other in left if other is not engine]
            if not left:
                raise
            notes.append(f"searched on the CPU: {error}")


def first_that_fits(needs: Sequence[int], fits: Callable[[int], bool]) -> int | None:
    """The place of the first of several ways whose need fits: of ranks, that of the largest share.

    >>> first_that_fits([90, 40, 20], lambda need: need < 50)
    1
    """
    return next((way for way, need in enumerate(needs) if fits(need)), None)
