"""Shortest paths between pairs of vertices."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, TypedDict

from ...partition.errors import InputError
from .facts import several, tell_number
from .parameters import UNWEIGHTED, Flag, OneVertex, Parameter, VertexPairs
from .question import Form, Question


class PathsRecord(TypedDict):
    """pairs: the number of distinct pairs. repeated: how many rows of the file repeat a pair.
    unreached: how many pairs have no path. farthest: the greatest distance. steps: the number of
    rows, one for each vertex on a path; None if paths are not told.
    """

    pairs: int
    repeated: int
    unreached: int
    farthest: float
    steps: int | None
    method: str
    edges_examined: int
    bytes_read: int
    bytes_sent: int


def _form(given: Collection[str]) -> int:
    ends = {"source", "target"} & {*given}
    if ("pairs" in given) == bool(ends) or len(ends) == 1:
        raise InputError("give either --source ID and --target ID, or --pairs FILE")
    return 1 if "nodes" in given else 0


def _tell(record: Any) -> str:
    facts = record["path"]
    pairs = several(facts["pairs"], "pair", "pairs")
    reached = facts["pairs"] - facts["unreached"]
    if not reached:
        return f"no path between the vertices of {pairs}"
    farthest = f"the greatest distance is {tell_number(facts['farthest'])}"
    told = f"{reached:,} of {pairs} have a path; {farthest}"
    steps = facts["steps"]
    return told if steps is None else f"{told}; {several(steps, 'row', 'rows')}"


def _tell_verdict(verdict: Any) -> str:
    rows = several(verdict["rows"], "row", "rows")
    return f"{rows} of {several(verdict['pairs'], 'pair', 'pairs')} of vertices"


_TAKES = "source", "target", "pairs", "unweighted"

PATH = Question(
    name="path",
    summary="Find the shortest path between two vertices, or between those of many pairs.",
    examples=(
        "delegraph path friends/ -o path/ --source alice --target bob",
        "delegraph path roads/ -o path/ --source 17 --target 25 --weight metres --nodes",
        "delegraph path graph.dg -o distances/ --pairs pairs.parquet",
    ),
    description="""
\b
           columns of OUTPUT
           source, target, distance; a row for each pair, null if there is no path
--nodes    source, target, step, vertex, distance; a row for each vertex on each path

Distances are in hops, or sums of weights if the graph has weights. From a vertex to itself the
distance is 0. Rows have the order of the pairs in FILE. A pair that FILE repeats is there once.

With --nodes, step counts the edges from the source on, and distance is that from the source to
vertex. A pair without a path has no rows.

Of several shortest paths, the one with the fewest edges is told, and of these the one with the
least ids: the least second vertex, then the least third one, and so on. With float weights, any
shortest path is told.

Where the graph is in memory, each pair is searched for from both ends, and a thread searches for a
pair. From disk, and with --workers, the pairs with the same source share a search.

The run uses CPUs, also where a GPU is usable.
""",
    about="""
Give ``source`` and ``target``, or ``pairs``. Distances are in hops, or sums of weights if the graph
has weights; null if there is no path. Rows have the order of the pairs; a repeated pair is there
once. Of several shortest paths, the one with the fewest edges is told, and of these the one with
the least ids; with float weights, any shortest path.
""",
    errors={
        "InputError": "also if a vertex is not in the graph.",
        "DelegraphError": "also if a distance of integer weights exceeds 2^53.",
    },
    parameters=(
        Parameter(
            "source",
            OneVertex(),
            None,
            "Find the path from this vertex.",
            "the id of the vertex that the path leads from.",
            alias="--from",
            leads=True,
        ),
        Parameter(
            "target",
            OneVertex(),
            None,
            "Find the path to this vertex.",
            "the id of the vertex that the path leads to.",
            alias="--to",
            leads=True,
        ),
        Parameter(
            "pairs",
            VertexPairs(),
            None,
            "Find a path for each row of this .parquet file or URL, with the columns source and "
            "target.",
            "instead of ``source`` and ``target``, many pairs of ids, or a Parquet file with the "
            "columns ``source`` and ``target``.",
        ),
        Parameter(
            "nodes",
            Flag(),
            False,
            "Write the vertices on each path.",
            "give a row for each vertex on each path.",
        ),
        UNWEIGHTED,
    ),
    form=_form,
    forms=(
        Form(
            name="path",
            title="Distances between pairs of vertices",
            takes=_TAKES,
            keys=("source", "target"),
            columns={"distance": "number"},
            facts={"path": PathsRecord},
            algorithm="algorithms.path:distances_of",
            program="algorithms.path:planned",
            judge="judging.pair_paths:PATH",
            tell=_tell,
            tell_verdict=_tell_verdict,
            weights=True,
            on_gpus=False,
        ),
        Form(
            name="path-nodes",
            title="Paths between pairs of vertices",
            takes=_TAKES,
            keys=("source", "target"),
            columns={"step": "integer", "vertex": "id", "distance": "number"},
            facts={"path": PathsRecord},
            algorithm="algorithms.path:nodes_of",
            program="algorithms.path:planned_nodes",
            judge="judging.pair_paths:PATH_NODES",
            tell=_tell,
            tell_verdict=_tell_verdict,
            weights=True,
            on_gpus=False,
        ),
    ),
    checked_by="distances computed again, and each step an edge",
)
