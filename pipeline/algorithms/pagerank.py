"""PageRank: the share of time that a random walk spends at each vertex.

    pagerank = (1 - damping) * teleport + damping * (sum over in-neighbours of pagerank / degree)

Numbers are 64-bit floats, unless single precision is asked for. The degree counts kept neighbours,
each once. If edges have weights, a neighbour's share is its edge's weight over the weights of all
edges that leave it. The share that vertices without edges would lose is spread as the walk
teleports: evenly, or over the vertices that the walk is personalised to, as NetworkX does it; or it
is dropped, as the GAP suite does it (Page, Brin, Motwani, Winograd: The PageRank Citation Ranking,
1999).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...kernels.base.numbering import by_rule
from ...kernels.base.turns import no_turns
from ...kernels.gpu_programs import pagerank as on_device
from ...kernels.gpu_programs import shared_walks as on_devices
from ...kernels.gpu_programs.meeting import closed_by_all
from ...kernels.gpu_programs.ranks import Ranks
from ...kernels.gpu_programs.rows import ProgramGraph
from ...kernels.pieces.gather import CUTS, join_cuts, starts_of_turns
from ...kernels.pieces.operators import Sum, WeightedSum
from ...kernels.programs import walk
from ...kernels.programs.walk import Teleport, advance, at_ends, gather_and_advance
from ...partition.errors import InputError
from ...partition.input.weights import WeightType
from ...partition.store.manifest import GraphInfo
from ..engines.operations.operations import DEGREES, Calls, Operations
from ..engines.operations.program import Program, ProgramResult, ReadRows, Tell
from ..engines.operations.saving import Saving
from ..engines.operations.vectors import Counts, Vector, VectorType, links_bytes, vectors_bytes
from ..engines.ranks.edges import Rows
from ..questions.facts import IterationRecord
from ..questions.pagerank import PageRankRecord
from ..results.columns import Column
from ..results.names import Names
from ..results.result import Option
from ..results.weights import WEIGHT_BYTES, NamedVertices
from .iterations import Stop, iterate
from .run import Answer

Dangling = Literal["even", "none"]
Precision = Literal["double", "single"]

SINGLE_TELLS = 1e-7
"""The least change that shares in single precision tell from their rounding."""

SINGLE_DAMPING = 0.94
"""The greatest damping for which shares in single precision are off by 1e-6 at most: each step adds
an error of 6e-8, and this part of it goes on to the next step.
"""

SINGLE_WEIGHTS = 1e-12, 1e12
"""The least and the greatest sum of weights for which single precision can hold the shares."""

_SHARES = _WEIGHTS = VectorType(np.float64, ghosts=True)
_LIKELY = VectorType(np.float64)

NOWHERE = np.empty(0)
EVERY = np.empty(0, np.bool_)


@dataclass(frozen=True)
class PageRankProgram:
    """The program. vertices: of the graph. tolerance: of the L1 change of an iteration; None: as
    many iterations as ``most``. teleport: the vertices that the walk teleports to, by global id,
    and how likely each is; None: anywhere. weights: the type of edges' weights, which say how
    likely each edge is; None: all edges are alike. single: whether a device holds shares in 32
    bits; CPUs compute in 64 bits all the same.
    """

    vertices: int
    damping: float
    tolerance: float | None
    most: int
    dangling: Dangling
    teleport: tuple[NDArray[np.uint32], NDArray[np.float64]] | None
    weights: WeightType | None = None
    single: bool = False
    columns = ("pagerank",)
    rows = ReadRows.BY_TARGET
    wants_degrees = True
    scans_once = False
    counts_loops_on_cpus = True

    @property
    def weighted(self) -> bool:
        return self.weights is not None

    @property
    def calls(self) -> Calls:
        return calls_of(self.weighted)

    @property
    def stop(self) -> Stop:
        return Stop(self.most, self.tolerance)

    def held_bytes(self, counts: Counts) -> int:
        named = 0 if self.teleport is None else len(self.teleport[0])
        held = pagerank_bytes(counts, self.teleport is not None, self.weighted)
        return held + WEIGHT_BYTES * named

    def run(self, operations: Operations, tell: Tell) -> ProgramResult:
        state = _Walk(self, operations)
        iterations = state.begin()
        iterate(operations, tell, self.stop, state, iterations)
        return ProgramResult({"pagerank": state.ranks()}, {"iterations": iterations})

    def device_bytes(self, vertices: int, entries: int) -> int:
        return on_device.device_bytes(vertices, self.teleport is not None)

    def compile_on(self, graph: ProgramGraph) -> None:
        (on_device if graph.ranks == 1 else on_devices).warm_up(graph, self.single)

    def run_on(self, graph: ProgramGraph, saving: Saving, tell: Tell) -> ProgramResult:
        share, iterations = self._saved(saving)
        state = on_device.GpuWalk(graph, *self._given(share))
        while len(iterations) < self.most:
            done = state.run(self.most - len(iterations))
            self._record(iterations, done, graph.cut.rows.edges, 0)
            if self._over(iterations):
                break
            change = iterations[-1]["change"]
            tell(len(iterations), self.stop.expected(iterations), f"change {change:.1e}")
            if saving.due():
                saving.save(len(iterations), {"share": state.share()}, iterations)
        return ProgramResult({"pagerank": state.ranks()}, {"iterations": iterations})

    def exchange_bytes(self, vertices: int) -> int:
        return on_devices.exchange_bytes(vertices)

    def run_on_shares(self, graph: ProgramGraph, ranks: Ranks, saving: Saving) -> ProgramResult:
        share, iterations = self._saved(saving)
        found = on_devices.shared_walk(graph, ranks, *self._given(share))
        with closed_by_all(found, ranks) as state:
            (edges,) = ranks.total([graph.cut.rows.edges])
            while len(iterations) < self.most:
                done, due = state.step(self.most - len(iterations), saving.due())
                self._record(iterations, done, int(edges), state.sent)
                if self._over(iterations):
                    break
                if due:
                    share = state.share() if ranks.rank == 0 else NOWHERE
                    saving.save(len(iterations), {"share": share}, iterations)
            values = {"pagerank": state.ranks()} if ranks.rank == 0 else {}
            return ProgramResult(values, {"iterations": iterations})

    def _saved(self, saving: Saving) -> tuple[NDArray[np.float64] | None, list[IterationRecord]]:
        """Return the shares that an earlier run has saved, if any, and its iterations."""
        share = np.empty(self.vertices)
        saved = saving.load({"share": share})
        return (None, []) if saved is None else (share, saved.facts)

    def _record(
        self, iterations: list[IterationRecord], done: Sequence[Any], edges: int, sent: int
    ) -> None:
        """Add the records of iterations on devices. edges, sent: counts for each iteration."""
        for change, seconds in done:
            iterations.append(
                IterationRecord(
                    iteration=len(iterations) + 1,
                    change=change,
                    edges_examined=edges,
                    bytes_read=0,
                    bytes_sent=sent,
                    seconds=seconds,
                )
            )

    def _over(self, iterations: Sequence[IterationRecord]) -> bool:
        """Return whether the last iteration has changed little enough."""
        return self.tolerance is not None and iterations[-1]["change"] < self.tolerance

    def _given(self, share: NDArray[np.float64] | None) -> tuple[Any, ...]:
        """Return the arguments of walks on devices. share: the shares to go on from, if there are
        any.
        """
        keeps = self.dangling == "even"
        return self.damping, self.tolerance, keeps, self._likely(), share, self.single

    def _likely(self) -> NDArray[np.float64] | None:
        """Return, by vertex, the probability that a teleport ends there; None if it is the same
        everywhere.
        """
        if self.teleport is None:
            return None
        likely = np.zeros(self.vertices)
        likely[self.teleport[0]] = self.teleport[1]
        return likely


class _Walk:
    """A rank's part of a random walk. It uses as few vectors as possible, since the vectors meet
    the memory limit.

    degree: uint32; or float64, the sum of the weights of the edges out of a vertex. share: what
    each edge out of a vertex carries for a weight of 1; for a vertex without edges, all that it
    has. So a vertex has its share times its degree, or its share alone. came: sums of shares.
    """

    def __init__(self, of: PageRankProgram, operations: Operations) -> None:
        self.of = of
        self.operations = operations
        self.sum = Sum() if of.weights is None else WeightedSum(0.0, of.weights == "float32")
        self.degree = self._degrees()
        self.share = operations.vector(_SHARES, 1 / of.vertices)
        self.teleport: Vector | None = None
        if of.teleport is not None:
            self.teleport = operations.vector(_LIKELY)
            operations.put(self.teleport, *of.teleport)
        (ends,) = operations.sum_each(_without, self.degree)
        self.keeps = of.dangling == "even" and float(ends) > 0
        self.lost = 0.0
        self._starts: NDArray[np.int64] | None = None

    def _degrees(self) -> Vector:
        if self.of.weights is None:
            degree = self.operations.degrees(along=False)
            self.operations.add_loops(degree, 1)
            return degree
        ones = self.operations.vector(_SHARES, 1.0)  # before the shares need room
        degree = self.operations.vector(_WEIGHTS)
        self.operations.gather(self.sum, ones, degree, along=False, loops=1)
        degree.ghosts.clear()
        return degree

    def begin(self) -> list[IterationRecord]:
        """Begin from saved shares, or else with the same for every vertex. Returns the records of
        the iterations that are done.
        """
        done: list[IterationRecord] = []
        saved = self.operations.load({"share": self.share})
        if saved:
            done = saved.facts
        else:
            self.operations.each(_divide, self.share, self.degree)
        (self.lost,) = self.operations.sum_each(self._lost, self.share, self.degree).tolist()
        self.came = self.operations.vector(_SHARES)
        return done

    def saved(self) -> dict[str, Vector]:
        return {"share": self.share}

    def run(self) -> float:
        """Do one iteration. Returns its change."""
        rows = self.operations.rows_along(False)
        if rows is not None and len(rows.targets) and self.operations.loops is None:
            sums = self._step_whole(rows)
        else:
            self.came.fill(0.0)
            self.operations.gather(self.sum, self.share, self.came, loops=1)
            sums = self.operations.sum_each(self._advance, self.came, reads=self._reads())
        self.share, self.came = self.came, self.share
        change, self.lost = sums.tolist()
        return change

    def _step_whole(self, rows: Rows) -> NDArray[np.float64]:
        """Step in one call, if all edges are in memory as one subgraph. Returns the sums."""
        if self._starts is None:
            self._starts = starts_of_turns(rows.offsets)
        turns = len(self._starts) - 1
        came, *read = (vector.own for vector in (self.came, *self._reads()))
        cut, parts = np.full(CUTS * turns, -1, np.int64), np.empty(CUTS * turns)
        sums = np.empty(2 * turns)
        team = self.operations.team
        vectors = came, *read[:2], self._teleport(*read[2:])
        taken = no_turns(team.threads)
        walking = self.sum, rows.piece, by_rule(), self._starts, *vectors
        team.run(gather_and_advance, *walking, cut, parts, sums, taken)
        join_cuts(self.sum, came, cut, parts)
        at = np.unique(cut[cut >= 0])
        cut_values = came[at]
        cut_sums = self._advance(True, cut_values, *(values[at] for values in read))
        came[at] = cut_values
        self.operations.note(len(rows.targets))
        return sums.reshape(-1, 2).sum(axis=0) + cut_sums

    def ranks(self) -> Vector:
        """Return the PageRank, once the walk is over: ``came`` is used for it."""
        self.operations.each(_multiply, self.share, self.degree, self.came)
        return self.came

    def _reads(self) -> list[Vector]:
        """Return the arguments of ``_advance`` beside what came."""
        return [self.share, self.degree, *([self.teleport] if self.teleport else [])]

    def _advance(
        self, counted: Any, came: NDArray, share: NDArray, degree: NDArray, *likely: NDArray
    ) -> tuple[float, float]:
        return advance(_some(counted), came, share, degree, self._teleport(*likely))

    def _teleport(self, likely: NDArray = NOWHERE) -> Teleport:
        of = self.of
        anywhere = 1 - of.damping + of.damping * self.lost
        if likely is NOWHERE:
            anywhere /= of.vertices
        return Teleport(likely, of.damping, anywhere, self.keeps)

    def _lost(self, counted: Any, share: NDArray, degree: NDArray) -> float:
        return at_ends(_some(counted), share, degree) if self.keeps else 0.0


def _some(counted: Any) -> NDArray[np.bool_]:
    """Return a choice of vertices as kernels take it: an empty array for all vertices."""
    return EVERY if counted is True else counted


def calls_of(weighted: bool) -> Calls:
    """Return the kernels of a walk: a graph that is whole is gathered by a kernel of walks, and its
    weights are added up beforehand.
    """
    kernels = walk, join_cuts
    return Calls((WeightedSum,), kernels) if weighted else Calls((Sum,), kernels, whole=())


def _shares(degree: NDArray) -> NDArray[np.float64]:
    """Return, for each vertex, the number by which the amount that it has is divided: its degree,
    or 1 if that is 0.
    """
    shares = degree.astype(np.float64)
    shares[degree == 0] = 1.0
    return shares


def _without(counted: Any, degree: NDArray) -> int:
    return int(np.count_nonzero((degree == 0) & counted))


def _divide(share: NDArray, degree: NDArray) -> None:
    share /= _shares(degree)


def _multiply(share: NDArray, degree: NDArray, rank: NDArray) -> None:
    np.multiply(share, _shares(degree), out=rank)


def pagerank_bytes(counts: Counts, personalized: bool, weighted: bool) -> int:
    vectors = [_WEIGHTS if weighted else DEGREES, _SHARES, _SHARES, *[_LIKELY] * personalized]
    which_are_delegates = counts.own
    return vectors_bytes(counts, vectors) + links_bytes(counts.ghosts) + which_are_delegates


@dataclass(frozen=True)
class PageRank:
    """The question. tolerance: the run stops once an iteration changes less than this, in L1.
    iterations: a number of iterations to do instead. personalize: vertices and weights. unweighted:
    whether edges are alike, even where they have weights. precision: of the result; if it is
    single, a device holds shares in single precision, and the result after as many iterations is
    within 1e-6 of the double one, relatively.
    """

    damping: float = 0.85
    tolerance: float = 1e-6
    max_iterations: int = 100
    iterations: int | None = None
    personalize: NamedVertices | None = None
    dangling: Dangling = "even"
    unweighted: bool = False
    precision: Precision = "double"
    name = "pagerank"
    step = "iteration"
    weighted = False

    def __post_init__(self) -> None:
        if not 0 <= self.damping < 1:
            raise InputError(f"damping must be at least 0 and less than 1, not {self.damping}")
        if not 0 < self.tolerance < math.inf:
            raise InputError(f"the tolerance must be positive, not {self.tolerance}")
        for number in (self.max_iterations, self.iterations):
            if number is not None and number < 1:
                raise InputError(f"iterations must be positive, not {number}")
        if self.dangling not in ("even", "none"):
            raise InputError(f"dangling is 'even' or 'none', not {self.dangling!r}")
        if self.precision not in ("double", "single"):
            raise InputError(f"precision is 'double' or 'single', not {self.precision!r}")
        if self._single and self.iterations is None and self.tolerance < SINGLE_TELLS:
            raise InputError(
                f"single precision cannot resolve changes below {SINGLE_TELLS:g}: a tolerance of "
                f"{self.tolerance:g} needs --precision double, or --iterations"
            )
        if self._single and self.damping > SINGLE_DAMPING:
            raise InputError(
                f"single precision is too inexact at a damping of {self.damping:g}, which is "
                f"more than {SINGLE_DAMPING:g}: use --precision double"
            )

    @property
    def _single(self) -> bool:
        return self.precision == "single"

    def options(self, id_type: pa.DataType) -> dict[str, Option]:
        stop: dict[str, Option] = {"iterations": self.iterations}
        if self.iterations is None:
            stop = {"tolerance": self.tolerance, "max_iterations": self.max_iterations}
        return {
            "damping": self.damping,
            **stop,
            "personalize": self.personalize and self.personalize.read(id_type).digest,
            "dangling": self.dangling,
            **({"unweighted": True} if self.unweighted else {}),
            **({"precision": "single"} if self._single else {}),
        }

    def program(self, names: Names, info: GraphInfo) -> Program:
        if self.personalize is None:
            return self.walk(info)
        weights = self.personalize.read(names.id_type)
        return self.walk(info, (weights.places(names), weights.shares))

    def walk(
        self,
        info: GraphInfo,
        teleport: tuple[NDArray[np.uint32], NDArray[np.float64]] | None = None,
    ) -> PageRankProgram:
        kind = None if info.weights is None or self.unweighted else info.weights.kind
        tolerance = None if self.iterations is not None else self.tolerance
        most = self.iterations or self.max_iterations
        single = self._single
        if single and kind == "float32":
            assert info.weights is not None
            least, greatest = SINGLE_WEIGHTS
            single = least <= info.weights.least and info.weights.most <= greatest
        return PageRankProgram(
            info.vertices, self.damping, tolerance, most, self.dangling, teleport, kind, single
        )

    def calls(self, weighted: bool) -> Calls:
        return calls_of(weighted and not self.unweighted)

    def held_bytes(self, counts: Counts) -> int:
        return pagerank_bytes(counts, self.personalize is not None, not self.unweighted)

    def answer(self, given: ProgramResult, names: Names, method: str) -> Answer:
        rank = given.values["pagerank"]
        assert isinstance(rank, np.ndarray)
        iterations: list[IterationRecord] = given.record["iterations"]
        change = iterations[-1]["change"]
        record = PageRankRecord(
            iterations=len(iterations),
            change=change,
            converged=None if self.iterations is not None else change < self.tolerance,
            method=method,
        )
        whole = {"pagerank": record, "iterations": iterations}
        values = rank.astype(np.float32) if self._single else rank
        return Answer((Column("pagerank", values),), whole)


def planned(info: GraphInfo) -> PageRankProgram:
    """Return the program for a plan, with default options."""
    return PageRank().walk(info)
