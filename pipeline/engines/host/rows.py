"""Loaders of one process on CPUs: each makes a graph of an input, and keeps it.

| loader | input | keeps | for |
|---|---|---|---|
| StoreGraph | a store | the whole graph in memory, partitions merged | searches |
| StoreRows | a store | rows as they are stored, merged, or on disk | programs |
| EdgeRows | an edge list | the rows that a store of it would have | searches and programs |
| RowsInMemory | rows that another loader keeps | nothing more | programs |
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, Protocol

import numpy as np

from ....kernels.base.compiled import compile_kernels
from ....kernels.base.graph import Graph
from ....kernels.base.team import Team
from ....kernels.prepare import merge
from ....partition.input.edges import EdgeList
from ....partition.store.layout import offsets_dtype
from ....partition.store.manifest import GraphInfo
from ....partition.store.store import Store
from ....partition.store.whole import WholeGraph, merged_bytes, merged_offsets
from ...build.held import HeldGraph, rows_in_memory, rows_need
from ...build.prepare import BuildOptions, compile_tasks
from ...run.execute import Executor
from ...run.records import graph_record
from ..engine import CODE_BYTES, Footprint, Subject
from ..ranks.graph import LOOP_BYTES, RankGraph, bitmaps_bytes, loops_bytes, rows_bytes
from ..ranks.search import load_rank, on_disk_instead
from ..subjects import subject_by_ids

Place = Literal["memory", "merged", "disk"]
"""The place of a store's rows. "memory": in memory as they are stored. "merged": in memory, with
the partitions merged into one, so that a level is one step over all rows. "disk": on disk, read in
every scan.
"""


class GraphLoader(Protocol):
    """A loader of the whole graph, for searches. graph: None until the graph is loaded."""

    subject: Subject | None
    graph: Graph | None
    bounded_by_footers: bool

    def footprint(self, closely: bool = False) -> Footprint: ...
    def offsets_types(self) -> Iterable[np.dtype]: ...
    def compile(self) -> None: ...
    def load(self, team: Team) -> None: ...
    def take_over(self, other: Any) -> bool: ...
    def close(self) -> None: ...


class RowsLoader(Protocol):
    """A loader of rows, for programs.

    in_memory: whether the rows are in memory; whole: whether they are there as one subgraph, with
    its reverse. info: facts of the graph, known once it is loaded. loads_kernels: whether compiled
    kernels are loaded before their first call.
    """

    subject: Subject | None
    in_memory: bool
    bounded_by_footers: bool
    loads_kernels: bool

    @property
    def whole(self) -> bool: ...
    @property
    def info(self) -> GraphInfo: ...
    def footprint(self, closely: bool = False) -> Footprint: ...
    def offsets_types(self) -> Iterable[np.dtype]: ...
    def compile(self) -> None: ...
    def load(self) -> None: ...

    def rank_graph(self, weighted: bool, team: Team) -> RankGraph:
        """Return the rows in the form that operations use. weighted: whether to include the edges'
        weights.
        """
        ...

    def take_over(self, other: Any) -> bool:
        """Count the rows as held already if the graph that another loader has made will do. Returns
        whether it will.
        """
        ...

    def close(self) -> None: ...


class StoreGraph:
    """The whole graph of a store in memory. Several partitions are merged into one graph."""

    bounded_by_footers = False

    def __init__(self, store: Store, subject: Subject | None) -> None:
        self.store = store
        self.subject = subject
        self.graph: Graph | None = None
        self._reuses_loaded = False

    def footprint(self, closely: bool = False) -> Footprint:
        if self._reuses_loaded:
            return Footprint(0, 0, self.store.info.vertices)
        return graph_footprint(self.store)

    def offsets_types(self) -> Iterable[np.dtype]:
        if self.store.info.partitions == 1:
            return self.store.offsets_types()
        return [np.dtype(merged_offsets(self.store.info))]

    def compile(self) -> None:
        if self.store.info.partitions > 1:
            compile_kernels(merge, offsets=merged_offsets(self.store.info))

    def load(self, team: Team) -> None:
        if self.graph is None:
            self.graph = self.store.graph(team)

    def take_over(self, other: Any) -> bool:
        if isinstance(other, StoreGraph) and other.store.holds_the_same(self.store):
            self.graph, self._reuses_loaded = other.graph, True
        return self._reuses_loaded

    def close(self) -> None:
        self.graph, self._reuses_loaded = None, False


def graph_footprint(store: Store) -> Footprint:
    """Return the footprint of the whole graph of a store in memory (Store.graph)."""
    info = store.info
    if info.partitions == 1:
        files = (
            record.bytes for name, record in store.files.items() if name.startswith("partition-")
        )
        return Footprint(0, sum(files), info.vertices)
    merged = merged_bytes(info)
    return Footprint(merged.making, merged.staying, info.vertices)


class StoreRows:
    """Rows of a store.

    weighted: whether the edges' weights are loaded. graph: the whole graph, if it is in memory
    already; its rows are used if they have the form that ``place`` and ``weighted`` ask for.
    """

    bounded_by_footers = False
    loads_kernels = True

    def __init__(
        self,
        store: Store,
        subject: Subject | None,
        threads: int,
        place: Place,
        weighted: bool = False,
        graph: Graph | None = None,
    ) -> None:
        self.store = store
        self.subject = subject
        self.in_memory = place != "disk"
        self.place: Place = place
        self._threads = threads
        self._weighted = weighted
        self._graph = graph if self._stands_as_for_searches else None
        self._reuses_loaded = False

    @property
    def info(self) -> GraphInfo:
        return self.store.info

    @property
    def whole(self) -> bool:
        return self.place == "merged" or (self.in_memory and self.store.info.partitions == 1)

    @property
    def _stands_as_for_searches(self) -> bool:
        return self.whole and not (self.place == "merged" and self._weighted)

    def footprint(self, closely: bool = False) -> Footprint:
        info = self.store.info
        n = info.vertices
        if self._reuses_loaded:
            return Footprint(0, 0, n)
        if self.place == "merged":
            bitmaps = bitmaps_bytes(n)
            if self._graph is not None:
                return Footprint(0, bitmaps + loops_bytes(info), n)
            merged = merged_bytes(info, self._weighted)
            staying = merged.staying + bitmaps + loops_bytes(info)
            return Footprint(merged.making, staying, n)
        rows = rows_bytes(self.store, 0, 1, self._weighted)
        if not self.in_memory:
            rows += on_disk_instead(self.store, 0, 1, self._threads, self._weighted)
        held_already = 0 if self._graph is None else self._graph.nbytes
        return Footprint(0, rows - held_already, n)

    def offsets_types(self) -> Iterable[np.dtype]:
        if self.place == "merged":
            return [np.dtype(merged_offsets(self.store.info))]
        return self.store.offsets_types()

    def compile(self) -> None:
        if self.place == "merged":
            compile_kernels(merge, offsets=merged_offsets(self.store.info))

    def load(self) -> None:
        """Do nothing: ``rank_graph`` reads the rows."""

    def rank_graph(self, weighted: bool, team: Team) -> RankGraph:
        if self.place != "merged":
            on_disk = not self.in_memory
            return load_rank(
                self.store, 0, 1, team, on_disk=on_disk, weighted=weighted, loaded=self._graph
            )
        if self._graph is None:
            merged = self.store.merged(team, weighted)
        else:
            merged = WholeGraph.of(
                self.store.info, self._graph, self.store.id_order, self.store.loops
            )
        return load_rank(merged, 0, 1, team, weighted=weighted)

    def take_over(self, other: Any) -> bool:
        if not isinstance(other, StoreRows) or not (self.in_memory and other.in_memory):
            return False
        alike = other.place == self.place and other._weighted == self._weighted
        self._reuses_loaded = alike and other.store.holds_the_same(self.store)
        return self._reuses_loaded

    def take_graph(self, other: StoreGraph) -> bool:
        """Use the whole graph that a search has loaded, if its rows have the form that these rows
        would have. Returns whether a graph is there.
        """
        if self._stands_as_for_searches and other.store.holds_the_same(self.store):
            self._graph = other.graph
        return self._graph is not None

    def close(self) -> None:
        self._graph, self._reuses_loaded = None, False


class EdgeRows:
    """The rows that a store of an edge list would have.

    searched: whether searches use the rows; otherwise programs do, which need bitmaps beside them.
    held: the rows; None until they are made.
    """

    in_memory = whole = True
    bounded_by_footers = True
    loads_kernels = False
    """False, since half of the kernels of building and operations are never called here: loading
    all of them would take longer than making the rows of a small graph.
    """

    def __init__(
        self, edges: EdgeList, options: BuildOptions, executor: Executor, searched: bool
    ) -> None:
        self.subject: Subject | None = None
        self.graph: Graph | None = None
        self.held: HeldGraph | None = None
        self._edges = edges
        self._options = options
        self._executor = executor
        self._searched = searched

    @property
    def info(self) -> GraphInfo:
        assert self.held is not None
        return self.held.info

    def footprint(self, closely: bool = False) -> Footprint:
        """Return the footprint. It includes compiled code until the rows are made, since making
        them compiles kernels.
        """
        need = rows_need(self._edges, self._options, self._executor.threads, closely)
        n = need.facts.vertices
        staying = need.staying + (0 if self._searched else bitmaps_bytes(n))
        if self._options.keeps_loops:
            staying += LOOP_BYTES * n
        if self.held is not None:
            return Footprint(0, staying, n, rows=self._edges.rows)
        making, staying = need.making + CODE_BYTES, staying + CODE_BYTES
        return Footprint(making, staying, n, rows=self._edges.rows)

    def offsets_types(self) -> Iterable[np.dtype]:
        return [np.dtype(offsets_dtype(2 * self._edges.rows))]

    def compile(self) -> None:
        edges = self._edges
        compile_tasks(edges.id_type, edges.rows, edges.weight is not None, load=False)

    def load(self, team: Team | None = None) -> None:
        held = rows_in_memory(self._edges, self._options, self._executor)
        self.subject = subject_by_ids(graph_record(held.info), held.ids, held.names, "csr")
        self.held = held
        if self._searched:
            self.graph = held.graph()

    def rank_graph(self, weighted: bool, team: Team) -> RankGraph:
        assert self.held is not None
        return load_rank(self.held, 0, 1, team, weighted=weighted)

    def take_over(self, other: Any) -> bool:
        return False

    def close(self) -> None:
        self.graph = self.held = None


class RowsInMemory:
    """Rows of an open edge list that another loader keeps."""

    in_memory = whole = True
    bounded_by_footers = False
    loads_kernels = True

    def __init__(self, held: HeldGraph, subject: Subject) -> None:
        self.subject: Subject | None = subject
        self.held = held

    @property
    def info(self) -> GraphInfo:
        return self.held.info

    def footprint(self, closely: bool = False) -> Footprint:
        n = self.held.info.vertices
        return Footprint(0, bitmaps_bytes(n) + loops_bytes(self.held.info), n)

    def offsets_types(self) -> Iterable[np.dtype]:
        return self.held.offsets_types()

    def compile(self) -> None:
        """Do nothing: nothing is made."""

    def load(self) -> None:
        """Do nothing: the rows are there already."""

    def rank_graph(self, weighted: bool, team: Team) -> RankGraph:
        return load_rank(self.held, 0, 1, team, weighted=weighted)

    def take_over(self, other: Any) -> bool:
        return False  # making these rows again costs nothing

    def close(self) -> None:
        """Do nothing: the other loader keeps the rows."""
