"""Connected components over all ranks: union-find in one scan of the edges
(kernels/programs/forest.py).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....kernels.base.graph import UNREACHED
from ....kernels.base.numbering import (
    Numbering,
    by_rule,
    by_table,
    is_identity,
    renumber_all,
)
from ....kernels.base.team import Team
from ....kernels.base.turns import no_turns
from ....kernels.pieces.piece import Piece
from ....kernels.programs import forest
from ...ranks.communicator import Communicator, Message
from ..ranks.edges import Rows
from ..ranks.graph import Adjacency, RankGraph, Side

NO_GROUPS = np.empty(0, np.uint32)

_ALL = 1 << 62
"""A number of targets that no row exceeds."""

LABELS_AT_ONCE = 1 << 22
"""Number of a forest's labels that a rank sends to another one in a message."""


_RowsById = tuple[
    NDArray[np.unsignedinteger], NDArray[np.uint32], Numbering | None, Numbering | None
]
"""Offsets and targets of a subgraph, and the global ids of its rows and of its targets. Both ids
are None if rows and targets are numbered by global id.
"""


class EdgeCounts(NamedTuple):
    """Counts since the last call. edges: edges looked at. read: bytes read from disk. sent: bytes
    sent to other ranks.
    """

    edges: int = 0
    read: int = 0
    sent: int = 0


def join_vertices(
    graph: RankGraph,
    communicator: Communicator,
    team: Team,
    directed: bool,
    groups: NDArray[np.uint32] = NO_GROUPS,
) -> tuple[NDArray[np.uint32], EdgeCounts]:
    """Return the least global id in each vertex's component, and counts. The array is uint32, of
    all vertices. It is complete on rank 0; on other ranks it holds what the rank knows.

    groups: as in kernels/programs/forest.py, the same on all ranks.

    Each rank first joins the vertices along its own edges. Then every second rank sends its forest
    to the rank before it, every second one of the receivers does so, and so on. The number of
    rounds is the logarithm of the number of ranks, even for a long path through all ranks.
    """
    trees = np.arange(graph.vertices, dtype=np.uint32)
    known: list[_RowsById] = []
    # Several ranks would each skip the rows of their largest tree, and miss edges between these.
    alone = communicator.size == 1
    edges = read = sent = 0
    for adjacency, twice in _joined(graph, directed):
        edges += int(adjacency.rows.offsets[-1])
        if twice and alone and isinstance(adjacency.rows, Rows):
            known.append((adjacency.rows.offsets, adjacency.rows.targets, *_ids_or_none(adjacency)))
        else:
            read += _join_all(adjacency, communicator, team, trees, groups, twice)
    if known:
        _join_known(known, team, trees, groups)
    _flatten(team, trees)
    step = 1
    while step < communicator.size:
        sent += _merge(communicator, team, trees, step)
        step *= 2
    return trees, EdgeCounts(edges, read, sent)


def _joined(graph: RankGraph, directed: bool) -> list[tuple[Adjacency, bool]]:
    """Return the subgraphs with all edges, each with whether every edge is in the rows of both its
    ends.
    """
    if not directed:
        return [(adjacency, True) for adjacency in graph.adjacencies]
    return [(flow.forward, False) for flow in graph.flows]


def _join_all(
    adjacency: Adjacency,
    communicator: Communicator,
    team: Team,
    trees: NDArray[np.uint32],
    groups: NDArray[np.uint32],
    twice: bool,
) -> int:
    """Join the ends of all edges of a subgraph. Returns the bytes read."""
    ids = _global_ids(adjacency)

    def visit(piece: Piece, *_: Any) -> None:
        communicator.check()
        forest.join_piece(piece, *ids, trees, groups, twice)

    return adjacency.rows.unweighted.every(team, visit).read


def join_in_rows(
    offsets: NDArray[np.unsignedinteger],
    targets: NDArray[np.uint32],
    team: Team,
    groups: NDArray[np.uint32] = NO_GROUPS,
) -> NDArray[np.uint32]:
    """Return what ``join_vertices`` does of a graph that is in memory. Every edge is in the rows of
    both its ends.
    """
    trees = np.arange(len(offsets) - 1, dtype=np.uint32)
    _join_known([(offsets, targets, None, None)], team, trees, groups)
    _flatten(team, trees)
    return trees


def _join_known(
    known: list[_RowsById], team: Team, trees: NDArray[np.uint32], groups: NDArray[np.uint32]
) -> None:
    """Join the ends of edges that are in the rows of both their ends. Few edges are all joined
    once. Many are joined as Afforest does: first some edges of each row, then the rows that are not
    in the largest tree.
    """

    def join(skipped: int, most: int, largest: np.uint32, once: bool) -> None:
        for rows in known:
            ways = skipped, most, largest, once, no_turns(team.threads)
            team.run(forest.join_rows, *rows, trees, groups, *ways)

    if sum(len(targets) for _, targets, *_ in known) <= 2 * forest.FEW * len(trees):
        join(0, _ALL, UNREACHED, once=True)
        return
    join(0, forest.NEIGHBOURS, UNREACHED, once=False)
    _flatten(team, trees)
    roots, counts = np.unique(trees[:: max(1, len(trees) // 1024)], return_counts=True)
    join(forest.NEIGHBOURS, _ALL, roots[np.argmax(counts)], once=False)


def _merge(communicator: Communicator, team: Team, trees: NDArray[np.uint32], step: int) -> int:
    """Send forests: each rank that is an odd multiple of ``step`` sends its labels to the rank
    ``step`` before it. Returns the bytes that this rank sent.
    """
    rank, size = communicator.rank, communicator.size
    tells = rank % (2 * step) == step
    hears = rank % (2 * step) == 0 and rank + step < size
    for first in range(0, len(trees), LABELS_AT_ONCE):
        labels = trees[first : first + LABELS_AT_ONCE]
        messages: list[Message] = [[] for _ in range(size)]
        if tells:
            messages[rank - step] = [labels]
        came = communicator.exchange(messages)
        if hears:
            forest.join_labels(trees, first, came[rank + step][0])
    _flatten(team, trees)
    return trees.nbytes if tells else 0


def _flatten(team: Team, trees: NDArray[np.uint32]) -> None:
    team.run(forest.flatten, trees, no_turns(team.threads))


def _global_ids(adjacency: Adjacency) -> tuple[Numbering, Numbering]:
    """Return the numberings from a subgraph's rows and from its targets to global ids."""
    return global_ids(adjacency.source), global_ids(adjacency.target)


def _ids_or_none(adjacency: Adjacency) -> tuple[Numbering | None, Numbering | None]:
    source, target = _global_ids(adjacency)
    return (None, None) if is_identity(source) and is_identity(target) else (source, target)


def global_ids(side: Side) -> Numbering:
    """Return the numbering from one end of a subgraph, its rows or its targets, to global ids."""
    if is_identity(side.places):
        return side.segment.ids
    if is_identity(side.segment.ids):
        return side.places
    first, second = side.places, side.segment.ids
    if first.width == second.width == 1 and not (len(first.table) or len(second.table)):
        addend = first.addend * second.multiplier + second.addend
        return by_rule(first.multiplier * second.multiplier, addend)
    numbers = np.arange(side.count, dtype=np.uint32)
    return by_table(renumber_all(second, renumber_all(first, numbers)))
