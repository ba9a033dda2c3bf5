"""Breadth-first search by masked products over the Boolean semiring, with five switches.

A level multiplies the transposed matrix with the frontier, under the mask of unvisited vertices
(Yang, Buluc, Owens: Implementing Push-Pull Efficiently in GraphBLAS, Algorithm 1). This search
shares no kernels with the project's own search, which is measured against it. Each optimization of
the paper's section 5 can be switched off; the search then does the work that the optimization
saves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ....kernels.base import bitmap
from ....kernels.base.arrays import Array, allocate, total_bytes
from ....kernels.base.compiled import compile_kernels
from ....kernels.base.graph import Graph
from ....kernels.base.numbering import by_rule
from ....kernels.base.team import Team
from ....kernels.bfs import push as bfs_push
from ....kernels.bfs.push import EDGES_A_TURN, degree_sums
from ....kernels.pieces import product, vertices
from ....kernels.pieces.product import (
    NEVER_FULL,
    VERTICES_A_TURN,
    Reached,
    Structure,
    Values,
    pull_product,
    push_product,
    settle,
    settle_listed,
)
from ....kernels.pieces.vertices import add_all
from ..direction import choose

_NO_WORDS = np.empty(0, np.uint64)
_NO_ENTRIES = np.empty(0, np.uint32)
_SHARED_EDGES = 2 * EDGES_A_TURN
_SHARED_WORDS = 256
_SHARED_VERTICES = 2 * VERTICES_A_TURN
"""Thresholds of edges, words and vertices below which waking a thread takes longer than the
work.
"""


@dataclass(frozen=True)
class Switches:
    """The optimizations of the paper's section 5, in the order of its Table 2.

    structure_only: vectors are bitmaps, and neither vectors nor the matrix have values to read;
    off: vectors have a word for each vertex, the matrix one for each edge. change_of_direction:
    products are by columns or by rows, as direction.choose decides; off: always by columns.
    masking: a product makes no value for visited vertices; off: it makes all values, and those of
    visited vertices are dropped afterwards. early_exit: a row ends at the first neighbour that
    makes it true. operand_reuse: rows are multiplied with the visited vertices, a vector that
    exists anyway; off: with the frontier, which is made dense first.
    """

    structure_only: bool = True
    change_of_direction: bool = True
    masking: bool = True
    early_exit: bool = True
    operand_reuse: bool = True


class Work(NamedTuple):
    """The work of a search. depth: the greatest distance. edges: the edges that it looked at."""

    depth: int
    edges: int


def search(
    graph: Graph,
    source: int,
    team: Team,
    switches: Switches,
    entries: NDArray[np.uint32] = _NO_ENTRIES,
) -> tuple[NDArray[np.int32], Work]:
    """Return hop distances from ``source``, a global id (-1 for vertices not reached), and the
    work.

    entries: the entries of the matrix, 1 for each edge; they are read unless ``structure_only`` is
    on.
    """
    products = _Products(graph, source, team, switches, entries)
    forward = int(graph.offsets[source + 1]) - int(graph.offsets[source])
    backward = int(graph.reverse_offsets[source + 1]) - int(graph.reverse_offsets[source])
    unvisited = graph.vertices_with_incoming - (backward > 0)
    unvisited_edges = graph.edges - backward
    depth = edges = 0
    while forward:
        if switches.change_of_direction and choose(forward, unvisited, unvisited_edges) == "pull":
            edges += products.pull()
        else:
            edges += products.push()
        found, forward, backward = products.settle(depth + 1)
        unvisited -= found
        unvisited_edges -= backward
        depth += found > 0
    return products.reached.distance, Work(depth, edges)


class _Products:
    """The vectors of a search between two products.

    queue: the frontier as a list; None if it is a bitmap. out: the result of a product by vertex, a
    bitmap or words; all zero between products. listed: the vertices in the result of a product by
    columns. dense: the words of the frontier, if rows are multiplied with these.
    """

    def __init__(
        self, graph: Graph, source: int, team: Team, switches: Switches, entries: NDArray[np.uint32]
    ) -> None:
        self._graph, self._team, self._switches = graph, team, switches
        self._alone = Team(1)
        self._semiring = (Structure if switches.structure_only else Values)(
            np.uint64(1) if switches.early_exit else NEVER_FULL
        )
        self._entries = _NO_ENTRIES if switches.structure_only else entries
        arrays = allocate(search_arrays(graph.vertices, switches))
        bitmap.clear(arrays["visited"], graph.vertices)
        self.reached = Reached(arrays["visited"], arrays["values"], arrays["distance"])
        self._frontier, self._dense = arrays["frontier"], arrays["dense"]
        self._out, self._sums = arrays["out"], arrays["sums"]
        self._lists = arrays["listed"], arrays["queue"]
        self._listed: NDArray[np.uint32] | None = None
        self._queue: NDArray[np.uint32] | None = np.array([source], np.uint32)
        self.reached.visited[source // bitmap.WORD] |= np.uint64(1 << source % bitmap.WORD)
        self.reached.distance[source] = 0
        if len(self.reached.values):
            self.reached.values[source] = 1

    def push(self) -> int:
        """Multiply by columns. Returns the number of edges that the product looked at."""
        graph, queue = self._graph, self._listed_frontier()
        sums = self._sums[: len(queue) + 1]
        degree_sums(graph.offsets, queue, sums)
        edges = int(sums[-1])
        values = self.reached.values
        listed, _ = self._lists
        done = self._workers(edges, _SHARED_EDGES).run(
            push_product,
            self._semiring,
            graph.offsets,
            graph.targets,
            queue,
            sums,
            values[queue] if len(values) else _NO_WORDS,
            self._entries,
            self._mask(),
            self._out,
            listed,
            np.zeros(2, np.int64),
        )
        self._listed = listed[: sum(done)]
        return edges

    def pull(self) -> int:
        """Multiply by rows. Returns the number of edges that the product looked at."""
        graph = self._graph
        done = self._workers(len(self._frontier), _SHARED_WORDS).run(
            pull_product,
            self._semiring,
            graph.reverse_offsets,
            graph.reverse_targets,
            self._operand(),
            self._entries,
            self._mask(),
            self._out,
            np.zeros(1, np.int64),
        )
        self._listed = None
        return sum(done)

    def settle(self, level: int) -> tuple[int, int, int]:
        """Make the unvisited vertices of a product's result the frontier, at distance ``level``.
        Returns their number, and the numbers of edges that leave and that enter them.
        """
        graph, listed = self._graph, self._listed
        degrees = graph.offsets, graph.reverse_offsets
        of = self._out, self.reached, level, *degrees
        if listed is None:
            team, cursor = self._workers(len(self._frontier), _SHARED_WORDS), np.zeros(1, np.int64)
            done = team.run(settle, self._semiring, *of, self._frontier, cursor)
            self._queue = None
        else:
            team, cursors = self._workers(len(listed), _SHARED_VERTICES), np.zeros(2, np.int64)
            queue = self._lists[1]
            done = team.run(settle_listed, self._semiring, listed, *of, queue, cursors)
            self._queue = queue[: sum(count for count, _, _ in done)]
        found, forward, backward = (sum(column) for column in zip(*done, strict=True))
        return found, forward, backward

    def _workers(self, work: int, shared: int) -> Team:
        return self._team if work >= shared else self._alone

    def _mask(self) -> NDArray[np.uint64]:
        return self.reached.visited if self._switches.masking else _NO_WORDS

    def _listed_frontier(self) -> NDArray[np.uint32]:
        return bitmap.members(self._frontier) if self._queue is None else self._queue

    def _operand(self) -> NDArray[np.uint64]:
        """Return the vector that rows are multiplied with. Visited vertices and the frontier give
        the same result, since an unvisited vertex has no neighbour that was visited before the
        frontier.
        """
        visited, values, _ = self.reached
        if self._switches.operand_reuse:
            return visited if self._switches.structure_only else values
        if self._switches.structure_only:
            if self._queue is not None:
                self._frontier[:] = 0
                add_all(self._queue, by_rule(), self._frontier)
            return self._frontier
        queue = self._listed_frontier()
        self._dense[:] = 0
        self._dense[queue] = values[queue]
        return self._dense


def search_arrays(vertices: int, switches: Switches) -> list[Array]:
    words = -(-vertices // bitmap.WORD)
    valued = 0 if switches.structure_only else vertices
    return [
        Array("distance", np.int32, vertices, fill=-1),
        Array("visited", np.uint64, words),
        Array("values", np.uint64, valued, fill=0),
        Array("frontier", np.uint64, words),
        Array("dense", np.uint64, 0 if switches.operand_reuse else valued),
        Array("out", np.uint64, valued or words, fill=0),
        Array("listed", np.uint32, vertices),
        Array("queue", np.uint32, vertices),
        Array("sums", np.int64, vertices + 1),
    ]


def search_bytes(vertices: int, edges: int) -> int:
    """Return the most bytes of a search, for any switches: with the entries of the matrix, the
    values, and the list of a frontier.
    """
    off = Switches(structure_only=False, operand_reuse=False)
    return total_bytes(search_arrays(vertices, off)) + (8 + 4) * vertices + 4 * edges


def compile_search(*offsets: DTypeLike) -> None:
    """Compile the kernels that ``search`` calls, for a graph whose offsets have one of
    these types.
    """
    compile_kernels(bitmap, bfs_push, product, vertices, offsets=offsets)
