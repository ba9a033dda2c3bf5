"""The search for communities by Louvain's and by Leiden's method: vertices move to communities that
raise the quality, then the graph between communities is treated likewise, until nothing moves.

Louvain: Blondel, Guillaume, Lambiotte, Lefebvre: Fast Unfolding of Communities in Large Networks,
2008. Leiden: Traag, Waltman, van Eck: From Louvain to Leiden: Guaranteeing Well-Connected
Communities, Scientific Reports 9, 2019. Both are done in rounds here, such that the result is the
same on every engine (levels.py); weights are whole numbers, or rounded to them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...kernels.gpu_pieces import communities as gpu_pieces
from ...kernels.gpu_pieces import labelling as gpu_labelling
from ...kernels.gpu_pieces.communities import contracting_bytes, rounds_bytes
from ...kernels.gpu_pieces.labelling import DeviceLabelling
from ...kernels.gpu_programs.rows import ProgramGraph
from ...kernels.pieces.operators import (
    AmountsWithin,
    BestGain,
    ByteOr,
    ListedAmounts,
    ScaledWeights,
    UnitAmounts,
)
from ...kernels.programs import communities as kernels
from ...kernels.programs import forest
from ...partition.disk.memory import trim_freed_memory
from ...partition.store.vertex_table import KeptLoops
from ..engines.one_device.operations import DeviceOperations, OperationsProgram
from ..engines.operations.contract import CONTRACTING, contraction_bytes
from ..engines.operations.operations import Calls, Operations
from ..engines.operations.program import EdgeOperations, ProgramResult, Tell
from ..engines.operations.spill import Spill
from ..engines.operations.tally import tally_bytes, tallying_bytes
from ..engines.operations.vectors import (
    Counts,
    Vector,
    VectorType,
    links_bytes,
    vectors_bytes,
)
from ..questions.communities import (
    LARGEST,
    LevelRecord,
)
from ..run import ending
from .contractions import ROOM, Contractions
from .device_level import DeviceLevel
from .hierarchy import ARRAYS, Hierarchy, hierarchy_bytes
from .labelling import HOST, Labelling
from .levels import GroundLoops, Level
from .memory_level import TABLES_BYTES, MemoryLevel
from .spread_level import BITS, LABELS, NUMBERS, SUMS, TURNS, SpreadLevel

MOST_ROUNDS = 100
"""The most rounds of moves on a level: without a bound, moves might never end."""

MOST_JOINS = 20
MOST_ITERATIONS = 100

FEW = 1000
"""A level ends with a round in which not more than one of so many vertices moves."""

GROWTH = 2
"""A level also ends with a round that moves so many times as many vertices as an earlier one: the
communities have settled, and now a few grow by swallowing the others.
"""

_WEIGHT_BITS = 62

_BY_NUMBER_BYTES = 3 * 4 + 2 * 8  # order, partition, label; mass, totals
_JOINING_BYTES = 2 * 4 + 2 + 8  # parts, groups; alone, class; lists of those that join
_VERTEX_BYTES = _BY_NUMBER_BYTES + 15 + _JOINING_BYTES
"""Bytes that a vertex takes on level 0 at most, in vectors (15) and in other arrays."""

_CONTRACTED_BYTES = _BY_NUMBER_BYTES + 2 * 4 + 4 + 8
"""Bytes of these that are held while level 0 is contracted, and of the level above: labels and
numbers, the vertex above, what is inside it.
"""

_LEFT_BYTES = 5 * 4
"""Bytes of these that are held once level 0 is contracted: order, numbers, partition, label, and
the vertex above.
"""


_DEVICE_BYTES = 6 * 4 + 3 + 5 * 8 + 3 * 8
"""Bytes of a vertex on a device, with temporary ones, beside rounds and contractions: numbers and
labels, and saved ones; marks; masses, totals, what is inside.
"""


@dataclass(frozen=True)
class CommunitiesProgram(OperationsProgram):
    """The program. refines: whether communities are divided into parts before the graph is
    contracted, as Leiden does. iterations: how often all is done; None until nothing changes.
    edges: the number of edges. greatest: the greatest weight; None if edges are alike. floats:
    whether weights are floats. hierarchy: whether the groups of each level are given, too.
    """

    refines: bool
    objective: str
    resolution: float
    iterations: int | None
    max_levels: int
    seed: int
    edges: int
    greatest: float | None
    floats: bool
    hierarchy: bool

    @property
    def columns(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return ("community", *ARRAYS) if self.hierarchy else ("community",)

    @property
    def weighted(self) -> bool:
        return self.greatest is not None

    @property
    def calls(self) -> Calls:  # pyright: ignore[reportIncompatibleVariableOverride]
        return calls_of(ScaledWeights if self.weighted else UnitAmounts)

    def vector_types(self) -> tuple[VectorType, ...]:
        return (NUMBERS,)

    def device_bytes(self, vertices: int, entries: int) -> int:
        held = super().device_bytes(vertices, entries) + _DEVICE_BYTES * vertices
        of_level = rounds_bytes(vertices, entries) + contracting_bytes(vertices, entries)
        return held + 2 * of_level  # of a level, and of the level above it

    def compile_on(self, graph: ProgramGraph) -> None:
        gpu_labelling.warm_up(graph.device)
        gpu_pieces.warm_up(graph)

    def held_bytes(self, counts: Counts) -> int:
        return communities_bytes(counts) + (hierarchy_bytes(counts) if self.hierarchy else 0)

    def run(self, operations: EdgeOperations, tell: Tell) -> ProgramResult:
        assert isinstance(operations, Operations | DeviceOperations)
        with Spill(operations.scratch, partial(operations.note, 0)) as spill:
            search = _Search(self, operations, tell, spill)
            search.run()
            ties = search.ties()
        labels = search.order[search.partition]  # global ids, by number
        community = operations.vector(NUMBERS)
        operations.put(community, search.order, labels)
        values: dict[str, Vector | NDArray] = {"community": community}
        if self.hierarchy:
            values |= search.hierarchy.arrays(search.labelling.fetch(search.order))
        record = {
            "levels": search.levels,
            "stable": search.is_stable,
            "weight_unit": search.weight_unit,
            "qualities": search.hierarchy.qualities,
            "ties": ties,
            "disconnected": 0 if self.refines else search.disconnected(),
            **operations.edge_counts()._asdict(),
        }
        return ProgramResult(values, record)


class _Place(NamedTuple):
    """The place of a search. level: the number of the level, and vertices: of its graph. phase:
    "begin", "move", "join" or "contract". rounds, moves: of the level so far. fewest: moves of a
    round of the level. joins: rounds of joining.
    """

    iteration: int = 0
    level: int = 0
    vertices: int = 0
    phase: str = "begin"
    rounds: int = 0
    moves: int = 0
    fewest: int = 1 << 32
    joins: int = 0


class _Search:
    """The search for communities. labelling: the functions of labels where the arrays are, in host
    memory or on a device. order: the global id of each number. partition: uint32, by number: the
    community of each vertex, which has the least of its numbers. levels: a record for each level so
    far, on rank 0. is_stable: whether the last iteration has changed nothing. hierarchy: of the
    last iteration, on rank 0, in host memory.

    What is saved does not name the graph of a level. above: uint32, by number, the vertex of the
    level that each vertex is in; so the graph is made again by one contraction. label, refined,
    marks: of the level's vertices, which come first.
    """

    def __init__(
        self,
        program: CommunitiesProgram,
        operations: Operations | DeviceOperations,
        tell: Tell,
        spill: Spill,
    ) -> None:
        self._program, self._operations, self._tell = program, operations, tell
        self._spill = spill
        self.labelling: Labelling = HOST
        if isinstance(operations, DeviceOperations):
            self.labelling = DeviceLabelling(operations.graph.device)
        self._may_end = False
        self.order = operations.id_order()
        self._done, self._at, self.is_stable = 0, _Place(), False
        self.levels: list[LevelRecord] = []
        self.hierarchy = Hierarchy()
        self._last: tuple[Level, NDArray[np.uint32] | None] | None = None
        self._saved: dict[str, NDArray] = {}
        self.partition = self.labelling.identity(len(self.order))
        self._load()
        self._ground = self._make_ground()

    def _load(self) -> None:
        """Go on from what was saved, if anything was."""
        facts, n = self._operations.saved_facts(), len(self.partition)
        is_ours = facts and isinstance(facts[-1], dict)  # and not of an older version
        entries = facts[-1]["entries"] if facts and is_ours else 0
        vertices = (facts and is_ours and _Place(*facts[0]).vertices) or n
        arrays = {
            "above": np.zeros(n, np.uint32),
            "label": np.zeros(vertices, np.uint32),
            "refined": np.zeros(vertices, np.uint32),
            "marks": np.zeros(vertices, np.uint8),
            "hierarchy": np.zeros(entries, np.uint32),
        }
        saved = self._operations.load(arrays)
        if saved is None:
            return
        at, self.levels, self.is_stable, hierarchy = saved.facts
        self._done, self._at = saved.done, _Place(*at)
        self.hierarchy = Hierarchy.of(arrays.pop("hierarchy"), n, hierarchy)
        self._saved = arrays = {name: self.labelling.put(arrays[name]) for name in arrays}
        if self._at.level:
            self.partition = self.labelling.named_by_least(arrays["label"][arrays["above"]])
        else:
            self.partition = arrays.pop("label")
            del arrays["above"]

    def run(self) -> None:
        most = self._program.iterations or MOST_ITERATIONS
        while self._at.iteration < most and not self.is_stable:
            self.partition = self._run_iteration()
            self._at = _Place(self._at.iteration + 1)
            if self._at.iteration < most and not self.is_stable and self._is_due():
                self._save(None, self.partition)

    def _run_iteration(self) -> NDArray[np.uint32]:
        """Return the communities after one more iteration."""
        iteration, partition = self._at.iteration, self.partition
        self._last = None
        trim_freed_memory()  # of the levels of the iteration before
        above: NDArray[np.uint32] | None = None  # at level 0, each vertex is its own
        level: Level | None = self._ground
        if self._at.level:
            above = self._saved.pop("above")
            self._may_end = self._operations.is_single
            level = self._contract(self._ground, above, self._at.vertices)
            if level is not None:
                level.begin(self._saved.pop("label"))
        else:
            self.hierarchy = Hierarchy()
            if not len(self._ground.mass):
                self._ground.mass = self._masses(self._ground)
            self._ground.begin(self.partition)
        if level is not None and self._at.phase == "move":
            level.set_marks(self._saved["marks"])
        while level is not None:  # only rank 0 goes on beyond the graph itself
            started = time.perf_counter()
            self._move(level, above)
            if self._program.refines:
                within = level.begin_joining()
                label = self._join(level, above)
            else:
                within, label = level.amount_within(), level.label
            number, labels = self.labelling.numbered(label)
            is_last = labels == level.count or self._at.level + 1 == self._program.max_levels
            if is_last and self._program.refines:
                level.label = level.split()
            if not is_last:
                self._save_whole_level(level, above)
            self._saved = {}
            self._note_level(level, within, time.perf_counter() - started)
            contracted = None if is_last else self._contract(level, number, labels)
            if contracted is None:  # also on ranks other than the first
                partition = level.label if above is None else level.label[above]
                if is_last:
                    self._last = level, above
                break
            if self._program.hierarchy:
                above_each = self.labelling.fetch(number)
                self.hierarchy.add(above_each, labels, self._quality_of_all(contracted))
            contracted.begin(self._communities_above(level.label, number, labels))
            above = number if above is None else number[above]
            level = contracted
            self._at = _Place(iteration, self._at.level + 1, labels)
        moves = sum(told["moves"] for told in self.levels if told["iteration"] == iteration + 1)
        partition, (moves,) = self._operations.end_alone([partition, np.array([moves])])
        partition = self.labelling.named_by_least(partition)
        self.is_stable = not moves and bool((partition == self.partition).all())
        self.hierarchy.end(self.labelling.numbered(partition)[1])
        return partition

    def ties(self) -> list[tuple[int, int, float]]:
        """Return, on rank 0, which of the LARGEST communities edges join: vertices that name them,
        and the sum of the edges' weights, or their number.
        """
        if self._last is None:
            return []
        self._may_end = False
        level, above = self._last
        # All ranks know the partition; only the first has divided communities into parts.
        label = self.partition if level is self._ground else level.label
        labelling = self.labelling
        number, labels = labelling.numbered(label)
        community = number if above is None else number[above]
        names = labelling.fetch(labelling.least_of_each(community, None, labels))
        sizes = labelling.fetch(labelling.sums(community, None, labels)).astype(np.int64)
        largest = np.lexsort([names, -sizes])[:LARGEST]
        place = np.full(labels, len(largest), np.uint32)  # of all others together
        place[largest] = np.arange(len(largest))
        joined = level.between(labelling.put(place)[number], len(largest) + 1)
        ends = self.order[labelling.put(names[largest])].tolist()
        return [
            (ends[one], ends[other], amount / self._scale)
            for one, other, amount in zip(*(column.tolist() for column in joined), strict=True)
            if other < len(ends)
        ]

    def disconnected(self) -> int:
        """Return, on rank 0, how many communities the edges inside them do not connect."""
        self._ground.label = self.partition
        part = self._ground.split()
        firsts = self.partition[part == self.labelling.identity(len(part))]
        return int((self.labelling.sums(firsts, None, len(part)) > 1).sum())

    def _contract(self, level: Level, label: NDArray[np.uint32], labels: int) -> Level | None:
        """Return the graph between labels; None on ranks other than the first. The masses of the
        level are freed.
        """
        contracted = level.contract(label, labels)
        if contracted is not None:
            contracted.factor = level.factor
            contracted.mass = self.labelling.sums(label, level.mass, labels)
        level.mass = level.mass[:0].copy()
        return contracted

    def _move(self, level: Level, above: NDArray[np.uint32] | None) -> None:
        """Do rounds of moves, until one moves few vertices, or many more than before."""
        if self._at.phase in ("join", "contract"):
            return
        while self._at.rounds < MOST_ROUNDS:
            moved = level.move(self._stamp("move", self._at.rounds))
            rounds, moves, before = self._at.rounds + 1, self._at.moves + moved, self._at.fewest
            fewest = min(before, moved)
            self._at = self._at._replace(phase="move", rounds=rounds, moves=moves, fewest=fewest)
            self._end_round(f"moved {moved}")
            if moved * FEW <= level.count or moved >= GROWTH * before:
                break
            if self._is_due():
                self._save(above, level.label, level.label, level.marks)

    def _join(self, level: Level, above: NDArray[np.uint32] | None) -> NDArray[np.uint32]:
        """Divide communities into parts. Returns the part of each vertex."""
        if self._at.phase in ("join", "contract"):
            level.take_up_joining(self._saved["refined"], self._saved["marks"])
        while self._at.phase != "contract" and self._at.joins < MOST_JOINS:
            joined = level.join(self._stamp("join", self._at.joins))
            self._at = self._at._replace(phase="join", joins=self._at.joins + 1)
            self._end_round(f"joined {joined}")
            if not joined:
                break
            if self._is_due():
                self._save(above, level.label, level.refined, level.alone)
        return level.refined

    def _stamp(self, phase: str, round: int) -> np.uint64:
        return stamp_of(self._program.seed, self._at.iteration, self._at.level, phase, round)

    def _end_round(self, told: str) -> None:
        self._operations.end_round(is_alone=self._at.level > 0)
        self._done += 1
        place = f"iteration {self._at.iteration + 1}, level {self._at.level}"
        self._tell(self._done, 0, f"{place}, {told}")

    def _is_due(self) -> bool:
        """Return whether all ranks that have the level save now."""
        is_alone = self._at.level > 0
        return self._operations.due_alone() if is_alone else self._operations.due()

    def _save(
        self,
        above: NDArray[np.uint32] | None,
        label: NDArray[np.uint32],
        refined: NDArray[np.uint32] | None = None,
        marks: Callable[[], NDArray[np.uint8]] | None = None,
    ) -> None:
        """Save, on all ranks that have the level. marks: called on these."""
        operations, is_alone = self._operations, self._at.level > 0
        n, hierarchy = len(self.partition), self.hierarchy.saved()
        values = {
            "above": np.zeros(n, np.uint32) if above is None else above,
            "label": label,
            "refined": label if refined is None else refined,
            "marks": np.zeros(len(label), np.uint8) if marks is None else marks(),
            "hierarchy": hierarchy.entries,
        }
        facts = [self._at, self.levels, self.is_stable, hierarchy.facts]
        (operations.save_alone if is_alone else operations.save)(self._done, values, facts)

    def _save_whole_level(self, level: Level, above: NDArray[np.uint32] | None) -> None:
        """Save a level on disk before it is contracted, which takes long: meanwhile the run can end
        at any time. (Several ranks contract level 0 together, and do not end then.)
        """
        self._may_end = level.on_disk and self._operations.is_single
        if self._may_end and self._at.phase != "contract":
            self._at = self._at._replace(phase="contract")
            self._done += 1  # so that this save is another one than the last
            marks = level.alone if self._program.refines else None
            self._save(above, level.label, level.refined, marks)

    def _end_if_asked(self) -> None:
        if self._may_end and ending.asked():
            ending.end()

    def _note_level(self, level: Level, within: int, seconds: float) -> None:
        """Note what has been done on a level. within: what the edges inside communities amount to,
        in both directions.
        """
        label = level.label
        totals = self.labelling.sums(label, level.mass, level.count)
        self.levels.append(
            LevelRecord(
                iteration=self._at.iteration + 1,
                level=self._at.level,
                vertices=level.count,
                on_disk=level.on_disk,
                communities=self.labelling.numbered(label)[1],
                quality=self._quality(within, totals),
                rounds=self._at.rounds,
                moves=self._at.moves,
                seconds=seconds,
            )
        )

    def _quality(self, inside: int, totals: NDArray[np.uint64]) -> float | None:
        """Return the quality of communities. inside: what the edges inside them amount to, in both
        directions. totals: their masses. None if no edge has a weight.
        """
        program = self._program
        windows = self.labelling.windows(len(totals))
        parts = (totals[at].astype(np.float64) for at in windows)
        if program.objective == "cpm":
            pairs = sum(float((part * (part - 1)).sum()) for part in parts) / 2
            return inside / self._scale / 2 - program.resolution * pairs
        if not self._total:
            return None
        expected = sum(float(((part / self._total) ** 2).sum()) for part in parts)
        return inside / self._total - program.resolution * expected

    def _quality_of_all(self, level: Level) -> float | None:
        """Return the quality of communities of one vertex of a level each."""
        return self._quality(level.amount_inside, level.mass)

    def _make_ground(self) -> Level:
        """Make level 0, with the scale of weights: such that all edges amount to 2^61 to 2^62, and
        integers are as they are if they can be.
        """
        program, loops = self._program, self._operations.kept_loops()
        level, self._scale = self._level_of_graph(), 1.0
        if program.greatest is not None:
            of_loops = 0.0 if loops is None else 2 * float(loops.weights.sum(dtype=np.float64))
            most = program.greatest * 2 * program.edges + of_loops
            self._scale = _scale(most, program.floats)
            level.set_amounts(ScaledWeights(self._scale, program.floats))
            if self._scale != 1:
                edges = int(level.strengths().sum(dtype=np.uint64)) + program.edges
                most = edges / self._scale + of_loops
                self._scale = _scale(most, program.floats)
                level.set_amounts(ScaledWeights(self._scale, program.floats))
        level.set_loops(loops and self._amounts_of(loops))
        if program.objective == "cpm":
            self._total = 0
            level.factor = program.resolution * self._scale
            level.mass = self._masses(level)
        else:
            level.mass = self._masses(level)
            self._total = int(level.mass.sum(dtype=np.uint64))
            level.factor = program.resolution / self._total if self._total else 0.0
        return level

    def _amounts_of(self, loops: KeptLoops) -> GroundLoops:
        amounts = np.full(len(loops.numbers), 2, np.uint64)
        if self._program.greatest is not None:
            weights = loops.weights.astype(np.float64)
            amounts *= np.rint(weights * self._scale).astype(np.uint64)
        return GroundLoops(self.labelling.put(loops.numbers), self.labelling.put(amounts))

    def _masses(self, level: Level) -> NDArray[np.uint64]:
        """Return the masses of the vertices of level 0."""
        if self._program.objective == "cpm":
            return self.labelling.put(np.ones(level.count, np.uint64))
        return level.masses()

    def _level_of_graph(self) -> Level:
        operations = self._operations
        if isinstance(operations, DeviceOperations):
            return DeviceLevel.ground(operations.graph, UnitAmounts(), self.order, operations.note)
        contractions, rows = self._contractions_of(operations), operations.whole
        if rows is None:
            return SpreadLevel(contractions, operations, UnitAmounts(), self.order)
        inside = np.empty(0, np.uint64)
        return MemoryLevel(contractions, rows.piece, UnitAmounts(), inside, self.order)

    def _contractions_of(self, operations: Operations) -> Contractions:
        n = len(self.order)
        spare = (_VERTEX_BYTES - _LEFT_BYTES) * n
        meanwhile = (_VERTEX_BYTES - _CONTRACTED_BYTES) * n + tallying_bytes(n)
        meanwhile -= contraction_bytes()
        return Contractions(operations, self._spill, spare, meanwhile, self._end_if_asked)

    def _communities_above(
        self, label: NDArray[np.uint32], number: NDArray[np.uint32], labels: int
    ) -> NDArray[np.uint32]:
        """Return the communities of the vertices of a contracted graph, each by its least vertex.
        label: the community of each vertex below. number: the vertex above that it is in.
        """
        return self.labelling.named_by_least(self.labelling.least_of_each(number, label, labels))

    @property
    def weight_unit(self) -> float | None:
        return None if self._program.greatest is None else 1 / self._scale


def stamp_of(seed: int, iteration: int, level: int, phase: str, round: int) -> np.uint64:
    """Return the number that decides the classes of vertices in a round of "move" or "join"."""
    told = f"{seed} {iteration} {level} {phase} {round}"
    return np.uint64(int.from_bytes(blake2b(told.encode(), digest_size=8).digest(), "little"))


def _scale(most: float, floats: bool) -> float:
    """Return the power of two by which weights are multiplied before they are rounded to whole
    numbers. most: what all of them amount to at most.

    >>> _scale(1000.0, True) == 2.0**52, _scale(1000.0, False)
    (True, 1.0)
    """
    bits = _WEIGHT_BITS - math.frexp(most)[1] if most else 0
    return 2.0 ** (bits if floats else min(0, bits))


def calls_of(amounts: type) -> Calls:
    spread = BestGain, amounts, ListedAmounts, AmountsWithin, ByteOr
    return Calls(spread, (kernels, *CONTRACTING, forest), whole=(amounts,), spills=True)


def communities_bytes(counts: Counts) -> int:
    """Return the bytes that a search holds beside its edges, and least room for contracted ones."""
    n = counts.vertices
    vectors = vectors_bytes(counts, (NUMBERS, NUMBERS, LABELS, BITS, BITS, TURNS))
    told = 0 if counts.ranks == 1 else 2 * (4 + 8) * n
    work = max(
        _JOINING_BYTES * n + max(tallying_bytes(n), TABLES_BYTES),
        tally_bytes(n, directed=False),
        vectors_bytes(counts, (SUMS, SUMS)) + n + told,
        contraction_bytes(),
    )
    return vectors + links_bytes(counts.ghosts) + _BY_NUMBER_BYTES * n + work + ROOM
