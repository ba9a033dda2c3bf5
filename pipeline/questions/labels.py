"""Label propagation."""

from __future__ import annotations

from math import frexp
from typing import Any, TypedDict

from .facts import IterationRecord, elsewhere, several
from .parameters import UNWEIGHTED, Parameter, Whole
from .question import Cost, Form, Question

ITERATIONS = 10


class LabelsRecord(TypedDict):
    """labels: the number of different labels. largest: the number of vertices with the most common
    one. alone: the number of labels that only one vertex has. changed: the number of vertices whose
    label the last iteration changed. settled: whether that is 0, so that no further iteration would
    change a label. weight_unit: the sums of weights are multiples of it, to which each weight is
    rounded; None if weights do not count.
    """

    labels: int
    largest: int
    alone: int
    iterations: int
    changed: int
    settled: bool
    weight_unit: float | None
    method: str


def weight_scale(greatest: float, vertices: int, floats: bool) -> float:
    """Return the power of two by which weights are multiplied before they are rounded to whole
    numbers, such that their sum at a vertex stays below 2^62; of integers, which are left as they
    are if they can be, below 2^63.

    >>> weight_scale(1.0, 1000, True) == 2.0**50, weight_scale(4e9, 1000, False)
    (True, 1.0)
    """
    bits = frexp(greatest)[1] + frexp(2.0 * vertices)[1]  # its neighbours, in both directions
    return 2.0 ** (62 - bits if floats else min(0, 63 - bits))


def _tell(record: Any) -> str:
    facts = record["labels"]
    labels = several(facts["labels"], "label", "labels")
    done = several(facts["iterations"], "iteration", "iterations")
    if facts["settled"]:
        return f"{labels} after {done}; they are settled"
    changed = several(facts["changed"], "vertex", "vertices")
    return f"{labels} after {done}; the last one changed the label of {changed}"


def _tell_verdict(verdict: Any) -> str:
    done = several(verdict["iterations"], "iteration", "iterations")
    return f"{verdict['vertices']:,} vertices, computed again in {done}"


LABELS = Question(
    name="labels",
    summary="Propagate labels: each vertex takes the most common label of its neighbours.",
    examples=(
        "delegraph labels edges/ -o labels/",
        "delegraph labels graph.dg -o labels/ --iterations 20",
    ),
    description="""
Each vertex begins with its own id as its label. In each iteration all vertices at once take the
label that is most common among their neighbours; if several are, the least of them. This is the
community detection by label propagation (CDLP) of LDBC Graphalytics. A vertex without neighbours
keeps its label.

The run ends after --iterations, or earlier once no label changes. Labels may alternate for ever, as
those of the two ends of a single edge do. The record says whether they have settled.

In a directed graph an edge counts for both of its ends, and two edges in opposite directions count
twice. Self-loops are left out, and rows that repeat an edge count once. If the graph has weights, a
label's weight is the sum of the weights of its edges.
""",
    about="""
``label`` is the id of a vertex. All vertices take their new labels at once, so the result is the
same on every engine. The run ends after ``iterations``, or earlier once no label changes. Edges
count by their weights, if the graph has any.
""",
    parameters=(
        Parameter(
            "iterations",
            Whole(1),
            ITERATIONS,
            "Number of iterations, unless labels settle before.",
        ),
        UNWEIGHTED,
    ),
    forms=(
        Form(
            name="labels",
            title="Label propagation",
            columns={"label": "id"},
            facts={"labels": LabelsRecord, "iterations": list[IterationRecord]},
            cost=Cost(200, 1),
            algorithm="algorithms.labels:Labels",
            program="algorithms.labels:planned",
            judge="judging.labels:LABELS",
            tell=_tell,
            finding=("groups", "label"),
            tell_verdict=_tell_verdict,
            weights=True,
            on_several_gpus=False,
            elsewhere=elsewhere("label propagation"),
        ),
    ),
    checked_by="labels computed again",
    in_bench=True,
)
