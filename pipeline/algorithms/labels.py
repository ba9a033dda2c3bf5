"""Label propagation: all vertices at once take the label that is most common among their
neighbours, and of several the least, again and again.

This is the synchronous form that LDBC Graphalytics defines (Iosup and others: The LDBC Graphalytics
Benchmark, 2020, section 2.2.3, CDLP), of the idea of Raghavan, Albert, Kumara: Near Linear Time
Algorithm to Detect Community Structures in Large-Scale Networks, Physical Review E 76, 2007.
Labels are numbers of vertices by rising id, so "the least" is the same in every store.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...kernels.pieces.operators import MostCommon, ScaledWeights, UnitAmounts
from ...kernels.programs.forest import tree_sizes
from ...partition.errors import InputError
from ...partition.store.manifest import GraphInfo
from ..engines.one_device.operations import OperationsProgram
from ..engines.operations.operations import Calls
from ..engines.operations.program import EdgeOperations, ProgramResult, ReadRows, Tell
from ..engines.operations.tally import tally_bytes
from ..engines.operations.vectors import Counts, Vector, VectorType, links_bytes, vectors_bytes
from ..questions.facts import IterationRecord
from ..questions.labels import ITERATIONS, LabelsRecord, weight_scale
from ..results.columns import Column
from ..results.findings import SIZE
from ..results.names import Names
from ..results.result import Option
from .iterations import Stop, iterate, total
from .run import Answer

_LABELS = VectorType(np.uint32, ghosts=True)


@dataclass(frozen=True)
class LabelsProgram(OperationsProgram):
    """The program. iterations: the most that it does. amounts: what edges count. directed: whether
    the graph is.
    """

    iterations: int
    amounts: UnitAmounts | ScaledWeights
    directed: bool
    columns = ("label",)
    rows = ReadRows.BOTH

    @property
    def weighted(self) -> bool:
        return isinstance(self.amounts, ScaledWeights)

    @property
    def calls(self) -> Calls:  # pyright: ignore[reportIncompatibleVariableOverride]
        return calls_of(type(self.amounts))

    def vector_types(self) -> Sequence[VectorType]:
        order = _LABELS
        return _LABELS, _LABELS, order

    def held_bytes(self, counts: Counts) -> int:
        return labels_bytes(counts, self.directed)

    def run(self, operations: EdgeOperations, tell: Tell) -> ProgramResult:
        step = _Propagation(self, operations)
        saved = operations.load(step.saved())
        iterations: list[IterationRecord] = saved.facts if saved else []
        iterate(operations, tell, Stop(self.iterations, 0.5), step, iterations)
        unit = 1 / self.amounts.scale if isinstance(self.amounts, ScaledWeights) else None
        record = {"iterations": iterations, "weight_unit": unit}
        return ProgramResult({"label": step.named()}, record)


class _Propagation:
    """The labels. order: vertices by rising id; a label is a place in it."""

    def __init__(self, program: LabelsProgram, operations: EdgeOperations) -> None:
        self._operations = operations
        self._amounts = program.amounts
        self._order = operations.id_order()
        self.label = operations.vector(_LABELS)
        self.next_label = operations.vector(_LABELS)
        operations.put_numbers(self.label, self._order)

    def saved(self) -> Mapping[str, Vector]:
        return {"label": self.label}

    def run(self) -> float:
        """Do one iteration. Returns the number of vertices whose label it changes."""
        self._operations.each(np.copyto, self.next_label, reads=[self.label])
        self._operations.tally(MostCommon(), self._amounts, self.label, self.next_label)
        changes = self._operations.sum_each(_count_changes, reads=[self.label, self.next_label])
        self.label, self.next_label = self.next_label, self.label
        return float(changes[0])

    def named(self) -> Vector:
        """Return the label of each vertex as the global id of the vertex that has this name."""

        def name(label: NDArray[np.uint32]) -> None:
            label[:] = self._order[label]

        self._operations.each(name, self.label)
        return self.label


def _count_changes(counted: Any, label: NDArray, next_label: NDArray) -> Any:
    return total(counted, label != next_label)


def calls_of(amounts: type) -> Calls:
    return Calls((MostCommon, amounts), kernels=(tree_sizes,))


def labels_bytes(counts: Counts, directed: bool) -> int:
    held = vectors_bytes(counts, [_LABELS] * 2)
    order, which_are_delegates = 4 * counts.vertices, counts.own
    return (
        held
        + links_bytes(counts.ghosts)
        + order
        + tally_bytes(counts.vertices, directed)
        + which_are_delegates
    )


@dataclass(frozen=True)
class Labels:
    """The question. iterations: the most that are done. unweighted: whether edges are alike, even
    where they have weights.
    """

    iterations: int = ITERATIONS
    unweighted: bool = False
    name = "labels"
    step = "iteration"
    weighted = False

    def __post_init__(self) -> None:
        if self.iterations < 1:
            raise InputError(f"iterations must be positive, not {self.iterations}")

    def options(self, id_type: pa.DataType) -> dict[str, Option]:
        return {
            "iterations": self.iterations,
            **({"unweighted": True} if self.unweighted else {}),
        }

    def program(self, names: Names, info: GraphInfo) -> LabelsProgram:
        return self.planned(info)

    def planned(self, info: GraphInfo) -> LabelsProgram:
        amounts: UnitAmounts | ScaledWeights = UnitAmounts()
        weights = info.weights
        if weights is not None and not self.unweighted:
            floats = weights.kind == "float32"
            amounts = ScaledWeights(weight_scale(weights.most, info.vertices, floats), floats)
        return LabelsProgram(self.iterations, amounts, info.directed)

    def calls(self, weighted: bool) -> Calls:
        return calls_of(ScaledWeights if weighted and not self.unweighted else UnitAmounts)

    def held_bytes(self, counts: Counts) -> int:
        return labels_bytes(counts, directed=True)  # which may be

    def answer(self, given: ProgramResult, names: Names, method: str) -> Answer:
        label = given.values["label"]
        assert isinstance(label, np.ndarray)
        iterations: list[IterationRecord] = given.record["iterations"]
        sizes = np.zeros(len(label), np.uint32)
        tree_sizes(label, sizes)
        changed = int(iterations[-1]["change"])
        record = LabelsRecord(
            labels=int(np.count_nonzero(sizes)),
            largest=int(sizes.max(initial=0)),
            alone=int(np.count_nonzero(sizes == 1)),
            iterations=len(iterations),
            changed=changed,
            settled=changed == 0,
            weight_unit=given.record["weight_unit"],
            method=method,
        )
        column = Column("label", label, vertices=True, repeats=True)
        group_sizes = Column(SIZE, sizes, missing=0)
        return Answer(
            (column,), {"labels": record, "iterations": iterations}, group_sizes=group_sizes
        )


def planned(info: GraphInfo) -> LabelsProgram:
    """Return the program for a plan, with default options."""
    return Labels().planned(info)
