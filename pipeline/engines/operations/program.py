"""A program: the work that the ranks of a graph do together to answer one question."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ....partition.store.store import Store
from ...results.checkpoint import Checkpoint
from ..engine import Engine
from ..ranks.graph import count_of, owned, rows_bytes, segments_of
from ..ranks.search import on_disk_instead
from .operations import Calls, Operations
from .vectors import Counts, Vector, VectorType

if TYPE_CHECKING:
    from ....kernels.gpu_programs.ranks import Ranks
    from ....kernels.gpu_programs.rows import ProgramGraph
    from ....kernels.pieces.intersect import Corners
    from ....kernels.pieces.operators import (
        AnySum,
        MostCommon,
        ScaledWeights,
        Spread,
        UnitAmounts,
    )
    from ..ranks.edges import Rows
    from .contract import Contracted
    from .forests import EdgeCounts
    from .marks import VertexPlaces
    from .saving import SavedSteps, Saving, Values

Tell = Callable[[int, int, str], None]
"""Function that reports progress. It is called with the number of steps done, the number of all
steps as far as known, and the numbers of the last step as text, such as "change 1e-5, level 3".
"""


class ReadRows(Enum):
    """The rows that a program reads on a device. BY_SOURCE: a vertex's row has the targets of the
    edges that leave it. BY_TARGET: it has the sources of the edges that enter it. BOTH: there is a
    row of each kind. In an undirected graph all are the same rows.
    """

    BY_SOURCE = "by source"
    BY_TARGET = "by target"
    BOTH = "both"


class Unread(Protocol):
    """An array of the whole graph that ``np.asarray`` reads from where it is."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray: ...


class ProgramResult(NamedTuple):
    """The result of a program on a rank. values: by column; a vector, or on rank 0 an array of the
    whole graph, or what ``np.asarray`` makes one of. record: facts for the run's record, on rank 0.
    """

    values: Mapping[str, Vector | NDArray | Unread]
    record: dict[str, Any]


class SpanningTrees(Protocol):
    """The trees of a spanning forest (trees.py, which describes it)."""

    found: int

    def packed(self) -> AbstractContextManager[Values]: ...
    def find_least(self, words: Vector, numbers: Vector) -> None: ...
    def join(self) -> int: ...
    def edges(self) -> tuple[Any, Any]: ...


class AnyIntersections(Protocol):
    """The triangles at the vertices of a graph (intersect.py, which describes it)."""

    corners: Corners

    @property
    def counts(self) -> Values: ...
    def part(self) -> None: ...
    def add_up(self) -> None: ...
    def groups(self, done: int) -> Iterator[int]: ...
    def joined_shares(self, joined: Any) -> tuple[Any, int]: ...
    def by_vertex(self, counts: Any) -> Any: ...


class EdgeOperations(Protocol):
    """The operations that one device has, too. What they do is said at ``Operations``.

    On a device vectors are whole arrays there, so a function of slices is called once; it must use
    words that NumPy's arrays and CuPy's both know. Places stand there, too, in any order.
    """

    @property
    def directed(self) -> bool: ...
    @property
    def extra_bytes(self) -> int: ...
    def vector(self, kind: VectorType, value: Any = 0) -> Vector: ...
    def each(
        self,
        function: Callable[..., None],
        *vectors: Vector,
        reads: Sequence[Vector] = (),
        places: VertexPlaces | None = None,
    ) -> None: ...
    def sum_each(
        self,
        function: Callable[..., Any],
        *vectors: Vector,
        reads: Sequence[Vector] = (),
        places: VertexPlaces | None = None,
    ) -> NDArray[np.float64]: ...
    def max_each(
        self,
        function: Callable[..., Any],
        *vectors: Vector,
        reads: Sequence[Vector] = (),
        places: VertexPlaces | None = None,
    ) -> NDArray[np.float64]: ...
    def where(
        self, values: Vector, other_than: Any = 0, among: VertexPlaces | None = None
    ) -> VertexPlaces: ...
    def union(self, sets: Sequence[VertexPlaces | None]) -> VertexPlaces | None: ...
    def id_order(self) -> NDArray[np.uint32]: ...
    def put(self, into: Vector, vertices: NDArray[np.uint32], values: NDArray) -> VertexPlaces: ...
    def put_numbers(self, into: Vector, order: NDArray[np.uint32] | None = None) -> None: ...
    def rows_along(self, along: bool) -> Rows | None: ...
    def note(self, edges: int) -> None: ...
    def degrees(self, along: bool = True) -> Vector: ...
    def gather(
        self, operator: AnySum, x: Vector, y: Vector, along: bool = True, *, loops: int = 0
    ) -> None: ...
    def trees(self) -> SpanningTrees: ...
    def add_loops(self, degree: Vector, times: int) -> None: ...
    def spread(
        self, operator: Spread, x: Vector, y: Vector, along: bool, places: VertexPlaces
    ) -> VertexPlaces | None: ...
    def tally(
        self, rule: MostCommon, amounts: UnitAmounts | ScaledWeights, x: Vector, y: Vector
    ) -> None: ...
    def intersect(self) -> AnyIntersections: ...
    def contract(self, labels: Vector, amounts: UnitAmounts, planned: int = 0) -> Contracted: ...
    def join(self) -> NDArray[np.uint32]: ...
    def edge_counts(self) -> EdgeCounts: ...
    def load(self, values: Values) -> SavedSteps | None: ...
    def end_round(self, is_alone: bool) -> None: ...
    def due(self) -> bool: ...
    def save(self, done: int, values: Values, facts: Any = None) -> None: ...


class Program(Protocol):
    """A program as frozen data, which can be sent to workers. columns: the names of all columns
    that it may give. weighted: whether it reads the edges' weights. scans_once: whether it goes
    through the edges only once. calls: the kernels that it calls.
    """

    @property
    def columns(self) -> Sequence[str]: ...
    @property
    def weighted(self) -> bool: ...
    @property
    def scans_once(self) -> bool: ...
    @property
    def calls(self) -> Calls: ...

    def held_bytes(self, counts: Counts) -> int:
        """Return the most bytes that the program holds on a rank beside the graph."""
        ...

    def run(self, operations: Operations, tell: Tell) -> ProgramResult:
        """Run the program, on all ranks at once."""
        ...


@runtime_checkable
class CountsLoopsOnCpus(Protocol):
    """A program that counts the self-loops that a graph keeps, but only on CPUs."""

    counts_loops_on_cpus: ClassVar[bool]


@runtime_checkable
class DeviceProgram(Program, Protocol):
    """A program that runs on a device.

    rows: the rows that it reads. wants_degrees: whether it reads the number, or the weight, of the
    edges that leave each vertex.
    """

    @property
    def rows(self) -> ReadRows: ...
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
    """A program whose ranks have a device each, with a share of the edges on it."""

    def exchange_bytes(self, vertices: int) -> int:
        """Return the bytes that the program also holds on a device for exchanges between ranks."""
        ...

    def run_on_shares(self, graph: ProgramGraph, ranks: Ranks, saving: Saving) -> ProgramResult:
        """Run the program on all ranks at once. Only rank 0's result has values."""
        ...


@runtime_checkable
class DealtProgram(DeviceProgram, Protocol):
    """A program whose ranks have a device each, with the whole graph on it. The work is dealt out
    to the ranks.
    """

    def of_rank(self, rank: int, ranks: int) -> DeviceProgram:
        """Return a rank's part of the program."""
        ...

    def put_together(self, given: ProgramResult, next_result: ProgramResult) -> ProgramResult:
        """Return the combined result of several ranks. given: the combined result of earlier ranks,
        which may be overwritten. next_result: of the next rank.
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
        """Run a program. The result's values are by place in the arrays of ``subject.names``.

        program: run instead of the engine's own program; it must hold no more bytes. extra_bytes:
        bytes that the program may use beyond its need.
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
    own_count = count_of(owned(rank, ranks, info.partitions), info.vertices, info.partitions)
    if ranks == 1:
        return Counts(info.vertices, own_count, 0, 0)
    segments = segments_of(info, rank, ranks)
    ghosts = sum(
        count_of(segment, info.vertices, info.partitions)
        for kind_segments in segments.values()
        for segment in kind_segments
    )
    return Counts(
        info.vertices, own_count, info.delegates if info.grid is None else 0, ghosts, ranks
    )
