"""Communities: what Leiden's and Louvain's method have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypedDict

from ...partition.numbers import GREATEST_SEED
from .facts import elsewhere, several, tell_number
from .parameters import UNWEIGHTED, Choice, Flag, Parameter, Real, Whole
from .question import Cost, Form

ITERATIONS = 2
MAX_LEVELS = 100

LEVELS = "level_"
"""The columns of a hierarchy are named by it and a number from 0 on: ``level_0`` has the smallest
groups.
"""


class CommunitiesRecord(TypedDict):
    """communities: how many there are. largest: the number of vertices in the largest one. alone:
    the number of communities that have one vertex. disconnected: the number of those that edges
    inside them do not connect; 0 for Leiden's method. objective: "modularity" or "cpm". quality:
    the modularity, or the value of the constant Potts model; None where no edge counts. iterations:
    how many were done. moves: how often a vertex of any level has moved. stable: whether the last
    iteration has changed nothing. weight_unit: the sums of weights are multiples of it, to which
    each weight is rounded; None if weights do not count.
    """

    communities: int
    largest: int
    alone: int
    disconnected: int
    objective: str
    quality: float | None
    iterations: int
    moves: int
    stable: bool
    weight_unit: float | None
    method: str
    edges_examined: int
    bytes_read: int
    bytes_sent: int


class LevelRecord(TypedDict):
    """A level of an iteration. vertices: of the level's graph. on_disk: whether its edges were read
    from disk. communities, quality: after the last round of moves.
    """

    iteration: int
    level: int
    vertices: int
    on_disk: bool
    communities: int
    quality: float | None
    rounds: int
    moves: int
    seconds: float


class TieRecord(TypedDict):
    """Edges between two of the LARGEST communities, which are named. weight: the sum of the edges'
    weights, or their number.
    """

    communities: list[int | str | None]
    weight: float


LARGEST = 10
"""The number of communities of which a record tells how they are joined."""

MOST_RESOLUTION = 1e12
"""The greatest resolution: from far less on, each vertex is a community."""

UNTIL_STABLE = "until-stable"


def iterations(default: int) -> Parameter:
    """Return the parameter that says how often a method is done, by default ``default`` times."""
    told = "How often all is done, each time from the communities before; fewer times once nothing "
    return Parameter(
        "iterations",
        Whole(1, words=(UNTIL_STABLE,)),
        default,
        f"{told}moves. until-stable: until then.",
        f'{told}moves. ``"{UNTIL_STABLE}"``: until then.',
    )


PARAMETERS = (
    Parameter(
        "resolution",
        Real(),
        1.0,
        "The greater it is, the smaller are the communities; from 0 to 1e12.",
        "the greater it is, the smaller are the communities; from 0 to 1e12.",
    ),
    Parameter(
        "objective",
        Choice(("modularity", "cpm")),
        "modularity",
        "The quality that is raised: modularity, or cpm, that of the constant Potts model.",
        'the quality that is raised: ``"modularity"``, or ``"cpm"``, that of the constant Potts '
        "model.",
    ),
    Parameter("max_levels", Whole(1), MAX_LEVELS, "Go up to this many levels at most."),
    Parameter(
        "seed",
        Whole(0, GREATEST_SEED),
        1,
        "Seed that decides which vertices move before others.",
    ),
    Parameter(
        "hierarchy",
        Flag(),
        False,
        "Also write the groups of each level: columns level_0, level_1 and so on.",
        "also give the groups of each level: columns ``level_0``, ``level_1`` and so on.",
    ),
    UNWEIGHTED,
)


def _tell_of(key: str) -> Callable[[Any], str]:
    """Return what makes the line that a command prints. key: of the main facts."""

    def tell(record: Any) -> str:
        facts = record[key]
        found = several(facts["communities"], "community", "communities")
        if facts["quality"] is None:
            return f"{found}; no edge counts"
        return f"{found}, {_QUALITIES[facts['objective']]} {facts['quality']:.6g}"

    return tell


_QUALITIES = {"modularity": "modularity", "cpm": "quality (constant Potts model)"}


def _tell_verdict(verdict: Any) -> str:
    found = several(verdict["communities"], "community", "communities")
    told = f"{verdict['vertices']:,} vertices in {found}"
    if verdict["quality"] is not None:
        told += f", {_QUALITIES[verdict['objective']]} {verdict['quality']:.6g}"
    if verdict["disconnected"]:
        told += f"; {verdict['disconnected']:,} of them are not connected"
    if verdict["best_move"] is not None:
        move = verdict["best_move"]
        gain = tell_number(move["gain"])
        told += f"; moving {move['vertex']} to community {move['community']} would add {gain}"
    return told


def form_of(method: str, title: str) -> Form:
    """Return the form of a method's question, which has the method's name."""
    return Form(
        name=method,
        title=title,
        columns={"community": "id"},
        numbered=LEVELS,
        facts={method: CommunitiesRecord, "levels": list[LevelRecord], "ties": list[TieRecord]},
        cost=Cost(700, 4, "iterations", 2),
        algorithm=f"algorithms.communities:{method}_of",
        program=f"algorithms.communities:{method}",
        judge=f"judging.communities:{method.upper()}",
        tell=_tell_of(method),
        finding=("groups", "community"),
        tell_verdict=_tell_verdict,
        weights=True,
        on_directed=False,
        on_several_gpus=False,
        counts_loops=True,
        elsewhere=elsewhere("community detection"),
    )
