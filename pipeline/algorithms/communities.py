"""The questions of communities, by Louvain's and by Leiden's method (community_search.py)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ...kernels.pieces.operators import ScaledWeights, UnitAmounts
from ...kernels.programs.forest import tree_sizes
from ...partition.errors import InputError
from ...partition.input.id_types import shown_id
from ...partition.store.manifest import GraphInfo
from ..engines.operations.operations import Calls
from ..engines.operations.program import ProgramResult
from ..engines.operations.vectors import Counts
from ..questions.communities import (
    ITERATIONS,
    LEVELS,
    MAX_LEVELS,
    MOST_RESOLUTION,
    UNTIL_STABLE,
    CommunitiesRecord,
    LevelRecord,
    TieRecord,
)
from ..results.columns import Column
from ..results.findings import SIZE
from ..results.names import Names, ids_at
from ..results.result import Option
from .community_search import CommunitiesProgram, calls_of, communities_bytes
from .hierarchy import columns_of, hierarchy_bytes
from .run import Answer


@dataclass(frozen=True)
class Communities:
    """The question. method: "leiden" or "louvain". unweighted: whether edges are alike, even where
    they have weights. The other fields are those of CommunitiesProgram.
    """

    method: str
    resolution: float = 1.0
    objective: str = "modularity"
    iterations: int | None = 1
    max_levels: int = MAX_LEVELS
    seed: int = 1
    hierarchy: bool = False
    unweighted: bool = False
    step = "round"
    weighted = False

    def __post_init__(self) -> None:
        if not 0 <= self.resolution <= MOST_RESOLUTION:
            told = f"from 0 to {MOST_RESOLUTION:g}, not {self.resolution:g}"
            raise InputError(f"resolution must be {told}")

    @property
    def name(self) -> str:
        return self.method

    def options(self, id_type: pa.DataType) -> dict[str, Option]:
        return {
            "resolution": self.resolution,
            "objective": self.objective,
            "iterations": self.iterations or UNTIL_STABLE,
            "max_levels": self.max_levels,
            "seed": self.seed,
            **({"hierarchy": True} if self.hierarchy else {}),
            **({"unweighted": True} if self.unweighted else {}),
        }

    def program(self, names: Names, info: GraphInfo) -> CommunitiesProgram:
        return self.planned(info)

    def planned(self, info: GraphInfo) -> CommunitiesProgram:
        weights = None if self.unweighted else info.weights
        return CommunitiesProgram(
            refines=self.method == "leiden",
            objective=self.objective,
            resolution=self.resolution,
            iterations=self.iterations,
            max_levels=self.max_levels,
            seed=self.seed,
            edges=info.edges,
            greatest=None if weights is None else weights.most,
            floats=weights is not None and weights.kind == "float32",
            hierarchy=self.hierarchy,
        )

    def calls(self, weighted: bool) -> Calls:
        return calls_of(ScaledWeights if weighted and not self.unweighted else UnitAmounts)

    def held_bytes(self, counts: Counts) -> int:
        return communities_bytes(counts) + (hierarchy_bytes(counts) if self.hierarchy else 0)

    def answer(self, given: ProgramResult, names: Names, method: str) -> Answer:
        community = given.values["community"]
        assert isinstance(community, np.ndarray)
        levels: list[LevelRecord] = given.record["levels"]
        sizes = np.zeros(len(community), np.uint32)
        tree_sizes(community, sizes)
        iterations = levels[-1]["iteration"]
        record = CommunitiesRecord(
            communities=int(np.count_nonzero(sizes)),
            largest=int(sizes.max(initial=0)),
            alone=int(np.count_nonzero(sizes == 1)),
            disconnected=given.record["disconnected"],
            objective=self.objective,
            quality=levels[-1]["quality"],
            iterations=iterations,
            moves=sum(level["moves"] for level in levels),
            stable=given.record["stable"],
            weight_unit=given.record["weight_unit"],
            method=method,
            edges_examined=given.record["edges"],
            bytes_read=given.record["read"],
            bytes_sent=given.record["sent"],
        )
        columns = [Column("community", community, vertices=True, repeats=True)]
        if self.hierarchy:
            columns += columns_of(given.values, len(community))
        group_sizes = Column(SIZE, sizes, missing=0)
        facts = {self.method: record, "levels": levels, "ties": _named(given.record["ties"], names)}
        of_levels = {f"{LEVELS}{i}": one for i, one in enumerate(given.record["qualities"])}
        qualities = {"quality": record["quality"], **of_levels}
        measured = {name: one for name, one in qualities.items() if one is not None}
        measured |= {"stable": 1.0} if record["stable"] else {}
        return Answer(columns, facts, group_sizes=group_sizes, measured=measured)


def _named(ties: list[tuple[int, int, float]], names: Names) -> list[TieRecord]:
    """Return ties between communities. names: of the vertices that name these."""
    ids = [shown_id(value) for value in ids_at(names, [end for tie in ties for end in tie[:2]])]
    return [
        TieRecord(communities=ids[2 * i : 2 * i + 2], weight=weight)
        for i, (_, _, weight) in enumerate(ties)
    ]


def leiden_of(**options: Any) -> Communities:
    """Return the question with the parameters of ``leiden``."""
    return _asked("leiden", options)


def louvain_of(**options: Any) -> Communities:
    """Return the question with the parameters of ``louvain``."""
    return _asked("louvain", options)


def _asked(method: str, options: dict[str, Any]) -> Communities:
    if options.get("iterations") == UNTIL_STABLE:
        options["iterations"] = None
    return Communities(method, **options)


def leiden(info: GraphInfo) -> CommunitiesProgram:
    """Return the program of ``leiden`` for a plan, with default options."""
    return Communities("leiden", iterations=ITERATIONS).planned(info)


def louvain(info: GraphInfo) -> CommunitiesProgram:
    """Return the program of ``louvain`` for a plan, with default options."""
    return Communities("louvain").planned(info)
