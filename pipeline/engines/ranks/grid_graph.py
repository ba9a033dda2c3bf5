"""What a rank holds of a graph in a grid of partitions (layouts 2d and 1d, store/grid.py).

Rank r of R holds the partitions p with p mod R = r. Of the grid rows and columns that these stand
in it keeps what it knows of all their vertices, once, however many partitions it has there.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ....kernels.base import bitmap
from ....kernels.base.numbering import by_rule
from ....kernels.pieces.visit import add_all, rows_with_edges
from ....partition.store.grid import Grid
from ....partition.store.layout import kept_subgraphs, local_rows
from ....partition.store.store import Store
from ..direction import Pullable
from ..streamed_graph import reverse_of
from .delegate_graph import Vertices, pullable, share_bytes
from .edges import AnyRows, Loader


@dataclass
class Line:
    """The vertices of a grid row or column, by their places in it.

    seen: bitmap; visited, as far as is known here, or sent to their owners by this rank. frontier:
    uint32, places; those that this rank was told of.
    """

    count: int
    seen: NDArray[np.uint64]
    frontier: list[NDArray[np.uint32]]

    @classmethod
    def of(cls, count: int) -> Line:
        return cls(count, bitmap.empty(count), [])


@dataclass
class Tile:
    """A partition that a rank holds.

    normals: the vertices that belong to it. forward: a row for each vertex of its column, targets
    in its row; backward: the same of the graph with all edges turned round. pullable: of its own
    vertices in ``backward``, those that are unvisited; whole: before a search.
    """

    number: int
    normals: Vertices
    forward: AnyRows
    backward: AnyRows
    whole: Pullable
    pullable: Pullable = field(init=False)

    def __post_init__(self) -> None:
        self.pullable = self.whole


@dataclass
class GridGraph:
    """rows, columns: the grid's that this rank has tiles in. delegates: none, as of any graph."""

    rank: int
    ranks: int
    partitions: int
    vertices: int
    grid: Grid
    tiles: list[Tile]
    rows: dict[int, Line]
    columns: dict[int, Line]
    delegates: Vertices

    @classmethod
    def load(cls, loader: Loader, rank: int, ranks: int) -> GridGraph:
        info = loader.store.info
        grid = info.grid
        assert grid is not None
        n = info.vertices
        parts = range(rank, info.partitions, ranks)
        rows = {i: Line.of(grid.row_vertices(n, i)) for i in map(grid.row, parts)}
        columns = {j: Line.of(local_rows(n, grid.columns, j)) for j in map(grid.column, parts)}
        tiles = []
        for p in parts:
            subgraphs = {name: loader.rows(p, name) for name in kept_subgraphs(grid, info.directed)}
            backward = subgraphs[reverse_of("nn", info.directed)]
            tiles.append(
                Tile(
                    p,
                    Vertices(local_rows(n, info.partitions, p), by_rule(info.partitions, p)),
                    subgraphs["nn"],
                    backward,
                    pullable(np.diff(backward.offsets)[grid.row(p) :: grid.rows]),
                )
            )
        none = Vertices(0, by_rule())
        return cls(rank, ranks, info.partitions, n, grid, tiles, rows, columns, none)

    @property
    def normals(self) -> dict[int, Vertices]:
        """The vertices that belong to each partition."""
        return {tile.number: tile.normals for tile in self.tiles}

    def clear(self) -> None:
        """Forget a search: another one may begin."""
        for line in (*self.rows.values(), *self.columns.values()):
            line.seen[:] = 0
            line.frontier.clear()
        for tile in self.tiles:
            tile.normals.clear()
            tile.pullable = tile.whole

    def begin(self, source: int) -> None:
        """source: a global id; every rank is told."""
        for tile in self.tiles:
            if source % self.partitions == tile.number:
                tile.normals.begin(source // self.partitions)
            self.enter(tile)

    def in_column(self, partition: int, local: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """Places in the grid column of the vertices of a partition."""
        return local * np.uint32(self.grid.rows) + np.uint32(self.grid.row(partition))

    def in_row(self, partition: int, local: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """Places in the grid row."""
        return local * np.uint32(self.grid.columns) + np.uint32(self.grid.column(partition))

    def enter_column(self, partition: int, local: NDArray[np.uint32]) -> None:
        """The frontier of a partition, as its grid column is told of it."""
        line = self.columns[self.grid.column(partition)]
        _enter(line, self.in_column(partition, local))

    def enter_row(self, partition: int, local: NDArray[np.uint32]) -> None:
        """The same for its grid row."""
        line = self.rows[self.grid.row(partition)]
        _enter(line, self.in_row(partition, local))

    def leaving(self, tile: Tile) -> int:
        """Edges in a tile from the frontier of its own vertices."""
        own = self.in_column(tile.number, tile.normals.frontier)
        return int(rows_with_edges(tile.forward.offsets, own)[1])

    def enter(self, tile: Tile) -> None:
        """The frontier is no longer there for a pull to find, nor sent to this partition."""
        frontier = tile.normals.frontier
        own = self.in_column(tile.number, frontier)
        rows, edges = rows_with_edges(tile.backward.offsets, own)
        left = tile.pullable
        tile.pullable = Pullable(left.rows - int(rows), left.edges - int(edges))
        row = self.rows[self.grid.row(tile.number)]
        add_all(self.in_row(tile.number, frontier), by_rule(), row.seen)


def _enter(line: Line, places: NDArray[np.uint32]) -> None:
    line.frontier.append(places)
    add_all(places, by_rule(), line.seen)


def grid_bytes(store: Store, rank: int, ranks: int) -> int:
    """Bytes that loading and searching a rank's share holds at most."""
    info, grid = store.info, store.info.grid
    assert grid is not None
    n, parts = info.vertices, range(rank, info.partitions, ranks)
    in_rows = {grid.row(p): grid.row_vertices(n, grid.row(p)) for p in parts}
    in_columns = {grid.column(p): local_rows(n, grid.columns, grid.column(p)) for p in parts}
    seen = sum(in_rows.values()) + sum(in_columns.values())
    # Of each line, bitmaps of what was seen and of the frontier, and that as a list, in pieces.
    lines = seen // 4 + 8 * max(sum(in_rows.values()), sum(in_columns.values()))
    # What was found stands, with its parent, in the list that is made, sorted, and kept.
    found = 6 * 4 * seen
    # What the others send, with its parents, until the end.
    others = min(ranks, grid.rows) + min(ranks, grid.columns) - 2
    came = 8 * others * max(local_rows(n, info.partitions, p) for p in parts) * len(parts)
    return share_bytes(store, parts) + lines + found + came
