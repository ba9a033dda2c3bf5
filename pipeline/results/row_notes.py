"""Lines for the user about rows of the input that do not count, or not as other programs count them:
self-loops, and duplicates of an edge.
"""

from __future__ import annotations

from ..run.records import GraphRecord
from .result import ResultInfo

_LOOPS_COUNTED = {"pagerank": "NetworkX, igraph and cuGraph count {them} in PageRank"}
_DUPLICATES_COUNTED = {
    "pagerank": "igraph, and NetworkX in multigraphs, count each row in PageRank",
    "betweenness": "igraph counts each row as a path of its own",
}
"""What other programs do, by algorithm, where that gives other numbers."""


def row_notes(graph: GraphRecord, info: ResultInfo | None = None) -> list[str]:
    """What was done with self-loops and with duplicates, if there were any. info: of the result
    that is made, None of a store.
    """
    algorithm = "" if info is None else info.algorithm
    return [*_loops(graph, algorithm), *_duplicates(graph, algorithm)]


def _loops(graph: GraphRecord, algorithm: str) -> list[str]:
    loops = graph["self_loops"]
    if not loops:
        return []
    one = loops == 1
    line = f"{loops:,} of {_rows(graph)} {'is a self-loop' if one else 'are self-loops'}: left out"
    counted = _LOOPS_COUNTED.get(algorithm)
    if counted is None:
        return [line]
    return [f"{line}; {counted.format(them='it' if one else 'them')}, delegraph does not"]


def _duplicates(graph: GraphRecord, algorithm: str) -> list[str]:
    duplicates = graph["duplicates"]
    if not duplicates:
        return []
    repeats = "repeats" if duplicates == 1 else "repeat"
    line = f"{duplicates:,} of {_rows(graph)} {repeats} an edge: each edge counts once"
    if not graph["directed"]:
        line += ", and u-v and v-u are one"
    counted = _DUPLICATES_COUNTED.get(algorithm)
    return [line if counted is None else f"{line}; {counted}, delegraph does not"]


def _rows(graph: GraphRecord) -> str:
    return f"{graph['rows']:,} row{'s'[: graph['rows'] > 1]}"
