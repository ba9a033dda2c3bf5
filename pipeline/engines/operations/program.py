"""A program: what the ranks of a graph do together to answer one question."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from numpy.typing import NDArray

from ....partition.store.store import Store
from ...results.checkpoint import Checkpoint
from ..engine import Engine
from ..ranks.graph import count_of, owned, rows_bytes, segments_of
from ..ranks.search import on_disk_instead
from .operations import Operations
from .vectors import Counts, Vector

if TYPE_CHECKING:
    from ....kernels.gpu_programs.ranks import Ranks
    from ....kernels.gpu_programs.rows import ProgramGraph
    from .saving import Saving

Tell = Callable[[int, int, str], None]
"""Called with steps done, in all as far as that is known, and what the last one gave: names and
numbers, as "change 1e-5, level 3".
"""


class ProgramResult(NamedTuple):
    """The result of a rank. values: by column; an array is of the whole graph, and rank 0's alone.

    record: what the run's record says of it, on rank 0.
    """

    values: Mapping[str, Vector | NDArray]
    record: dict[str, Any]


class Program(Protocol):
    """Frozen data: it goes to workers as it is. columns: that it gives at most. weighted: whether
    it reads the weights of edges. scans_once: whether it goes through the edges a single time.
    kernels: modules of those that it calls itself.
    """

    @property
    def columns(self) -> Sequence[str]: ...
    @property
    def weighted(self) -> bool: ...
    @property
    def scans_once(self) -> bool: ...
    @property
    def kernels(self) -> Sequence[ModuleType]: ...

    def held_bytes(self, counts: Counts) -> int:
        """Return the most bytes that the program holds on a rank beside the graph."""
        ...

    def run(self, operations: Operations, tell: Tell) -> ProgramResult:
        """On all ranks at once."""
        ...


@runtime_checkable
class DeviceProgram(Program, Protocol):
    """One that has a kernel of its own for a device.

    by_target: whether that goes through the rows of vertices that edges lead to, rather than from.
    wants_degrees: whether it wants to know how many edges leave each, or of what weight.
    """

    @property
    def by_target(self) -> bool: ...
    @property
    def wants_degrees(self) -> bool: ...

    def device_bytes(self, vertices: int, entries: int) -> int:
        """Return the most bytes that the program holds on the device beside the graph."""
        ...

    def compile_on(self, graph: ProgramGraph) -> None: ...

    def run_on(self, graph: ProgramGraph, saving: Saving, tell: Tell) -> ProgramResult:
        """Run on a device; values are arrays of the whole graph."""
        ...


@runtime_checkable
class SharedProgram(DeviceProgram, Protocol):
    """One whose ranks have a device each, and there a share of the edges."""

    def exchange_bytes(self, vertices: int) -> int:
        """Return the bytes that the program holds on a device besides, for exchanges
        between ranks.
        """
        ...

    def run_on_shares(self, graph: ProgramGraph, ranks: Ranks, saving: Saving) -> ProgramResult:
        """On all ranks at once; values on rank 0."""
        ...


@runtime_checkable
class DealtProgram(DeviceProgram, Protocol):
    """One whose ranks have a device each, and there the whole graph; what there is to be done is
    dealt out to them.
    """

    def of_rank(self, rank: int, ranks: int) -> DeviceProgram:
        """A rank's part of it."""
        ...

    def put_together(self, given: ProgramResult, more: ProgramResult) -> ProgramResult:
        """Put together the results of ranks: of the first ones, and of the next one. given: may be
        used up.
        """
        ...


class ProgramEngine(Engine, Protocol):
    def run(
        self,
        checkpoint: Checkpoint | None,
        tell: Tell,
        program: Program | None = None,
        extra_bytes: int = 0,
    ) -> ProgramResult:
        """Values by place in the arrays of ``subject.names``.

        program: instead of the one that the engine is for, and holding no more. extra_bytes: bytes
        that it may hold beyond its need, if that is of use.
        """
        ...


def program_bytes(
    program: Program, store: Store, rank: int, ranks: int, threads: int, on_disk: bool
) -> int:
    """Return the most bytes that loading a rank's share and running a program over it hold."""
    place, weighted = (store, rank, ranks), program.weighted
    edges = rows_bytes(*place, weighted)
    if on_disk:
        edges += on_disk_instead(*place, threads, weighted)
    return edges + program.held_bytes(counts_of(*place))


def counts_of(store: Store, rank: int = 0, ranks: int = 1) -> Counts:
    info = store.info
    own = count_of(owned(rank, ranks, info.partitions), info.vertices, info.partitions)
    if ranks == 1:
        return Counts(info.vertices, own, 0, 0)
    segments = segments_of(info, rank, ranks)
    ghosts = sum(
        count_of(segment, info.vertices, info.partitions)
        for some in segments.values()
        for segment in some
    )
    return Counts(info.vertices, own, info.delegates if info.grid is None else 0, ghosts, ranks)
