"""Layouts as data: between which segments a partition's edges lead, and what ranks send for them.

A *segment* is the set of vertices of some partitions, or the set of delegates. Rank r of R ranks
holds the partitions p with p mod R = r. It keeps each segment that their edges touch once:

    own      the vertices of the rank's partitions
    shared   the delegates, on all ranks
    column   the vertices of the partitions of a grid column
    row      the vertices of the partitions of a grid row
    all      the vertices of the graph

A *flow* leads along a subgraph from one segment to another, and may have a reverse to pull along.
If a rank needs to know vertices of other ranks, their owners *expand* the frontier to it before the
visits. Vertices of other ranks that the visits found are *folded* to their owners after the visits,
shared vertices to all ranks. A segment whose partitions all belong to the rank is a part of its own
segment, and needs neither.

Two tables describe the layouts. ``DELEGATE`` is Algorithm 1 of Pan, Pearce, Owens (Scalable
Breadth-First Search on a GPU Cluster). Nothing is expanded, and every rank chooses its own
direction along each flow: pushing along a flow reaches the same vertices as pulling along its
reverse. ``GRID`` pushes from the vertices of a column to those of a row, as Bisson, Bernaschi,
Mastrostefano do (Parallel Distributed Breadth First Search on the Kepler Architecture, section
2.2), who do not pull. To pull, a tile is read as the edges that enter the vertices of its column
(store/grid.py), so rows and columns change places, and all ranks must choose the same direction.
``1d`` is the grid of one row: its columns are own, and its row is all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from ....kernels.base.numbering import Numbering, by_rule
from ....partition.store.grid import Grid
from ....partition.store.layout import local_rows
from ....partition.store.store import GraphInfo
from ..direction import Direction

Kind = Literal["own", "shared", "column", "row", "all"]


class Ends(NamedTuple):
    """The kinds of the segments at the two ends of a flow."""

    source: Kind
    target: Kind


class Route(NamedTuple):
    """The route of a flow; every partition has one flow for each route.

    name: the name in records. push: from the rows of the subgraph to its targets. pull: from the
    targets of the subgraph's reverse (``reverse_of``) to its rows; None if the flow only pushes.
    """

    name: str
    subgraph: str
    push: Ends
    pull: Ends | None


class Routes(NamedTuple):
    """The table of a layout.

    expand, fold: the kinds of segments, by direction. agreed: whether all ranks take one direction.
    They choose it from counters that are sent with the expand of ``push``; if they choose pull, the
    remaining segments of pull are expanded afterwards. messages: the names that records have for
    expands, folds, and folds of shared vertices.
    """

    flows: tuple[Route, ...]
    expand: Mapping[Direction, tuple[Kind, ...]]
    fold: Mapping[Direction, tuple[Kind, ...]]
    agreed: bool
    messages: Mapping[str, str]

    @property
    def ghosts(self) -> list[Kind]:
        """Return the kinds of segments in which other ranks may own vertices."""
        ends = [ends for flow in self.flows for ends in (flow.push, flow.pull) if ends]
        kinds: list[Kind] = [kind for group in ends for kind in group]
        apart: tuple[Kind, ...] = "column", "row", "all"
        return [kind for kind in apart if kind in kinds]


DELEGATE = Routes(
    flows=(
        Route("nn", "nn", Ends("own", "all"), None),
        Route("nd", "nd", Ends("own", "shared"), Ends("own", "shared")),
        Route("dn", "dn", Ends("shared", "own"), Ends("shared", "own")),
        Route("dd", "dd", Ends("shared", "shared"), Ends("shared", "shared")),
    ),
    expand={"push": (), "pull": ()},
    fold={"push": ("shared", "all"), "pull": ("shared", "all")},
    agreed=False,
    messages={"shared": "delegates", "fold": "normals"},
)

GRID = Routes(
    flows=(Route("all", "nn", Ends("column", "row"), Ends("row", "column")),),
    expand={"push": ("column",), "pull": ("column", "row")},
    fold={"push": ("row",), "pull": ("column",)},
    agreed=True,
    messages={"expand": "expand", "fold": "fold"},
)


def routes_of(grid: Grid | None) -> Routes:
    return DELEGATE if grid is None else GRID


def reverse_of(name: str, directed: bool) -> str:
    """Return the subgraph that holds a subgraph's edges by their targets.

    >>> reverse_of("nd", directed=False), reverse_of("nd", directed=True)
    ('dn', 'reverse-nd')
    """
    return f"reverse-{name}" if directed else name[::-1]


def owned(rank: int, ranks: int, partitions: int) -> range:
    """Return the partitions that a rank holds.

    >>> owned(1, 2, 5)
    range(1, 5, 2)
    """
    return range(rank, partitions, ranks)


def partitions_of(kind: Kind, partition: int, partitions: int, grid: Grid | None) -> range:
    """Return the partitions of the segment of a kind (not "own" or "shared") that a partition's
    edges touch.

    >>> partitions_of("column", 1, 6, Grid(2, 3)), partitions_of("row", 1, 6, Grid(2, 3))
    (range(1, 6, 3), range(0, 3))
    """
    if grid is not None and kind == "column":
        return range(grid.column(partition), partitions, grid.columns)
    if grid is not None and kind == "row":
        first = grid.partition(grid.row(partition), 0)
        return range(first, first + grid.columns)
    return range(partitions)


def members(kind: Kind, partitions: int, grid: Grid | None) -> int:
    """Return the number of partitions in each segment of a kind."""
    return len(partitions_of(kind, 0, partitions, grid))


def count_of(segment: range, vertices: int, partitions: int) -> int:
    """Return the number of vertices in a segment."""
    return sum(local_rows(vertices, partitions, p) for p in segment)


def places(part: range, segment: range) -> Numbering:
    """Return the numbering from places in ``part``, some partitions of a segment, to places in the
    segment.

    A segment deals its places out to its partitions in turn: of m partitions, the i-th has the
    places i, m + i, 2 m + i, ... So the places of a segment of all partitions are global ids, and
    those of a segment of one partition are local ids.

    >>> places(range(3, 4), range(0, 6))[1:]  # of partition 3 of 6: 3, 9, 15, ...
    (6, 3, 1, 1)
    >>> places(range(0, 6, 3), range(0, 6))[1:]  # of a column of a grid of 2 x 3: 0, 3, 6, ...
    (3, 0, 1, 1)
    >>> places(range(3, 6), range(0, 6))[1:]  # of a row: 3, 4, 5, 9, 10, 11, ...
    (6, 3, 3, 1)
    """
    step = part.step // segment.step if len(part) > 1 else 1
    return by_rule(len(segment), segment.index(part[0]), len(part), step)


def lies_in(part: range, segment: range) -> bool:
    return all(p in segment for p in part)


def segments_of(info: GraphInfo, rank: int, ranks: int) -> dict[Kind, list[range]]:
    """Return the segments other than its own and the shared one that a rank must know, by kind."""
    held = owned(rank, ranks, info.partitions)
    found: dict[Kind, list[range]] = {}
    for kind in routes_of(info.grid).ghosts:
        segments = {partitions_of(kind, p, info.partitions, info.grid): None for p in held}
        found[kind] = [segment for segment in segments if not lies_in(segment, held)]
    return found
