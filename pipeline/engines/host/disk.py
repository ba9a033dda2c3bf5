"""Searches of a store whose edges stay on disk, and bounds on the memory that these searches
hold.
"""

from __future__ import annotations

from ....kernels.base.team import Team
from ....partition.disk.files import BLOCK_BYTES
from ....partition.input.arrow import TEXT_BYTES
from ....partition.store.edge_stream import index_bytes, run_bytes
from ...ranks.communicator import SingleCommunicator
from ...results.checkpoint import Checkpoint
from ...results.found import Found
from ...results.names import ROW_GROUP
from ...run.plan import Facts
from ..engine import CODE_BYTES, Need, Subject
from ..ranks.edges import stream_team
from ..ranks.graph import RankGraph, vertex_bytes
from ..ranks.search import rank_stream_bytes, search_rank, warm_up
from .rows import StoreRows

_PARTS_ROWS = 10
"""Most rows of a vertex in all subgraphs of the delegate layout: two of its own, and two for each
of four delegates.
"""


class DiskEngine:
    """The engine that searches a store whose rows stay on disk and are read as they are needed. It
    runs the search of ranks as a single rank.
    """

    method = "push-pull, streamed"
    device = None
    ranks = 1
    in_memory = False

    def __init__(self, rows: StoreRows, threads: int) -> None:
        self._rows = rows
        self._threads = threads
        self._graph: RankGraph | None = None

    @property
    def subject(self) -> Subject | None:
        return self._rows.subject

    def need(self) -> Need:
        return Need(rank_stream_bytes(self._rows.store, 0, 1, self._threads))

    def compile(self) -> None:
        warm_up(self._rows.offsets_types())

    def load(self) -> None:
        self._graph = self._rows.rank_graph(weighted=False, team=Team(self._threads))

    def search(
        self, source: int, max_depth: int | None = None, checkpoint: Checkpoint | None = None
    ) -> Found:
        assert self._graph is not None
        graph, alone, team = self._graph, SingleCommunicator(), stream_team(self._threads)
        found = search_rank(graph, source, alone, team, max_depth, checkpoint=checkpoint)
        return Found(*graph.own.take(), found.supersteps)

    def close(self) -> None:
        self._graph = None


def most_bytes(facts: Facts, threads: int) -> int:
    """Return a bound on the bytes that searching a store on disk and writing the result hold. The
    store is yet to be built, so the bound is from the facts of the edge list.
    """
    n, directions = facts.vertices, 2 if facts.directed else 1
    rows = n * (1 if facts.partitions == 1 else facts.grid.rows + 1 if facts.grid else _PARTS_ROWS)
    blocks = 2 * facts.rows * 4 // BLOCK_BYTES + 4 * directions * facts.partitions
    edges = index_bytes(blocks) + 2 * threads * run_bytes()
    searching = 8 * directions * rows + vertex_bytes(n) + n // 8 + edges
    return CODE_BYTES + max(searching, most_writing_bytes(facts))


def most_writing_bytes(facts: Facts) -> int:
    """Return a bound on the bytes that writing the result alone holds."""
    n, text = facts.vertices, facts.reading.distinct
    piece = ROW_GROUP * 8 * (facts.id_bytes + 4)
    if text:
        piece += 4 * (2 * TEXT_BYTES + 2 * facts.reading.batch)
    return n * (4 + 4 + 1 + 4 + facts.id_bytes) + text + piece
