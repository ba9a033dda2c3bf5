"""Supersteps in a grid of partitions (layouts 2d and 1d): expand, visit, fold.

    expand   the frontier's vertices go to all ranks that have tiles in their grid column
    agree    sums of counters came along: the end, or a direction that all ranks take
    (pull)   the frontier's vertices go to all ranks that have tiles in their grid row, too
    visit    push: from the vertices of a column, to those of a row; pull: the other way round
    fold     what was found goes to its owners: push, along the grid row; pull, along the column

To push is as Bisson, Bernaschi, Mastrostefano do (Parallel Distributed Breadth First Search on the
Kepler Architecture, section 2.2), who do not pull. To pull, a tile is taken as the edges that
enter the vertices of its column (store/grid.py), so that rows and columns change places. What
has to be known of these vertices, which of them are visited, came with the expands of this
superstep and of all before it: nobody looks for one that its owner knows. All ranks have to take
one direction: in a push the ranks of a row find what in a pull those of a column do.

In 1d, a grid of one row, the column's expand is the counters alone, and a pull folds nothing.

The counters are of a vertex's edges in its owner's own tile: one of the R tiles that it has edges
in, and a fair sample of them where R > 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ....kernels.base.bitmap import WORD
from ....kernels.base.numbering import by_rule
from ....kernels.base.team import Team
from ....kernels.pieces.visit import add_all
from ....partition.store.layout import local_rows
from ...ranks.communicator import Communicator, Message
from .edges import Looked, total
from .grid_graph import GridGraph, Tile
from .packing import packed, unpacked
from .remote_vertices import Away, RemoteVertices, by_partition, joined, pull_remote, push_remote
from .superstep import Choose, Superstep


@dataclass
class GridSupersteps:
    graph: GridGraph
    communicator: Communicator
    team: Team
    choose: Choose

    def __post_init__(self) -> None:
        graph = self.graph
        self.remote = RemoteVertices(graph.normals, graph.vertices, graph.partitions, graph.ranks)

    def superstep(self, level: int) -> Superstep:
        graph = self.graph
        sent = {"expand": 0, "fold": 0, "control": 0}
        frontier, *work = self._expand_along_columns(sent)
        if not frontier:
            return Superstep(0, Looked(), {}, sent, more=False)
        direction = self.choose(*work)
        if direction == "pull":
            self._expand_along_rows(sent)
        looks = []
        for tile in graph.tiles:
            self.communicator.check()
            away, looked = self._push(tile) if direction == "push" else self._pull(tile)
            looks.append(looked)
            for some in away:
                self.remote.add(some)
        if (graph.grid.columns if direction == "push" else graph.grid.rows) > 1:
            self._fold(level, sent)
        for line in (*graph.rows.values(), *graph.columns.values()):
            line.frontier.clear()
        for tile in graph.tiles:
            tile.normals.advance(level)
            graph.enter(tile)
        entered = sum(len(tile.normals.frontier) for tile in graph.tiles)
        return Superstep(entered, total(looks), {"all": direction}, sent, more=True)

    def _expand_along_columns(self, sent: dict[str, int]) -> NDArray[np.int64]:
        """Sums over all ranks: vertices of the frontier, and what ``choose`` wants to know."""
        graph = self.graph
        own = [
            (len(tile.normals.frontier), graph.leaving(tile), *tile.pullable)
            for tile in graph.tiles
        ]
        counters = np.array(own, np.int64).sum(axis=0)
        return self._expand(_column_of, counters, graph.enter_column, sent)

    def _expand_along_rows(self, sent: dict[str, int]) -> None:
        self._expand(_row_of, np.zeros(0, np.int64), self.graph.enter_row, sent)

    def _expand(
        self,
        line_of: Callable[[GridGraph, int], Sequence[int]],
        counters: NDArray[np.int64],
        enter: Callable[[int, NDArray[np.uint32]], None],
        sent: dict[str, int],
    ) -> NDArray[np.int64]:
        """Tell the frontier to all ranks with partitions of a line; the sums of counters."""
        graph, size = self.graph, self.communicator.size
        heads: list[list[int]] = [counters.tolist() for _ in range(size)]
        parts: list[list[NDArray]] = [[] for _ in range(size)]
        for tile in graph.tiles:
            frontier = tile.normals.frontier
            enter(tile.number, frontier)
            ranks = {p % size for p in line_of(graph, tile.number)} - {graph.rank}
            if not ranks:
                continue
            part, _ = packed(frontier, frontier, tile.normals.count)
            for rank in ranks:
                heads[rank] += [tile.number, len(frontier)]
                parts[rank].append(part)
        sums = np.zeros_like(counters)
        for head, *others in self._exchange("expand", heads, parts, sent):
            sums += head[: len(counters)]
            places = head[len(counters) :].tolist()
            for part, partition, count in zip(others, places[::2], places[1::2], strict=True):
                of = local_rows(graph.vertices, graph.partitions, partition)
                enter(partition, unpacked(part, count, of))
        return sums

    def _push(self, tile: Tile) -> tuple[list[Away], Looked]:
        """What was found from the vertices of a tile's column, what was looked at."""
        graph, grid = self.graph, self.graph.grid
        column, i = grid.column(tile.number), grid.row(tile.number)
        queue = joined(graph.columns[column].frontier)
        away, parents, looked = push_remote(
            self.team, tile.forward, queue, grid.of_column(column), graph.rows[i].seen
        )
        return [
            Away(grid.partition(i, j), *some)
            for j, *some in by_partition(away, parents, grid.columns)
        ], looked

    def _pull(self, tile: Tile) -> tuple[list[Away], Looked]:
        """What was found of the vertices of a tile's column, what was looked at."""
        graph, grid = self.graph, self.graph.grid
        row, j = grid.row(tile.number), grid.column(tile.number)
        line = graph.rows[row]
        reached = np.zeros(-(-line.count // WORD), np.uint64)
        for places in line.frontier:
            add_all(places, by_rule(), reached)
        away, parents, looked = pull_remote(
            self.team, tile.backward, grid.of_row(row), reached, graph.columns[j].seen
        )
        return [
            Away(grid.partition(i, j), *some) for i, *some in by_partition(away, parents, grid.rows)
        ], looked

    def _fold(self, level: int, sent: dict[str, int]) -> None:
        ranks = range(self.communicator.size)
        heads, parts = zip(*(self.remote.pack(rank) for rank in ranks), strict=True)
        came = self._exchange("fold", heads, parts, sent)
        for rank, (head, *others) in enumerate(came):
            self.remote.unpack(rank, level, head.tolist(), others)

    def _exchange(
        self,
        kind: str,
        heads: Sequence[list[int]],
        parts: Sequence[list[NDArray]],
        sent: dict[str, int],
    ) -> list[Message]:
        """One message to each rank, counted."""
        messages: list[Message] = [
            [np.array(head, np.int64), *some] for head, some in zip(heads, parts, strict=True)
        ]
        for rank, (head, *some) in enumerate(messages):
            if rank != self.communicator.rank:
                sent["control"] += head.nbytes
                sent[kind] += sum(part.nbytes for part in some)
        return self.communicator.exchange(messages)


def _row_of(graph: GridGraph, partition: int) -> Sequence[int]:
    """The partitions of its grid row."""
    grid = graph.grid
    return [grid.partition(grid.row(partition), j) for j in range(grid.columns)]


def _column_of(graph: GridGraph, partition: int) -> Sequence[int]:
    grid = graph.grid
    return [grid.partition(i, grid.column(partition)) for i in range(grid.rows)]
