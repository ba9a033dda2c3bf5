"""A graph of NetworkX as delegraph holds it.

Nodes, which may be any hashable objects, are numbered in their order, so columns of results have
that order, too. Edges are a table. The first question builds a store in a temporary folder, which
stays open as long as the object exists. NetworkX keeps the object beside its own graph until that
graph is changed.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...partition.disk.temporary import TemporaryFolder
from ...partition.input.arrow import as_arrow, as_numpy, numpy_type
from ...partition.input.weights import MOST
from .. import api
from ..graph import Graph

Node = Hashable


class ConvertedGraph:
    """A converted graph. nodes: by number. edges: ``src`` and ``dst``, numbers, each edge once;
    ``weight``, if any.

    weight: the edge attribute that became the weights; None: edges have none. attributes: of the
    graph.
    """

    __networkx_backend__ = "delegraph"

    def __init__(
        self,
        nodes: Sequence[Node],
        edges: pa.Table,
        directed: bool,
        multigraph: bool,
        weight: str | None,
        attributes: Mapping[Any, Any],
    ) -> None:
        self.nodes = nodes
        self.number = {node: number for number, node in enumerate(nodes)}
        self.edges = edges
        self.weight = weight
        self.attributes = attributes
        self._directed = directed
        self._multigraph = multigraph
        self._lock = threading.Lock()
        self._graph: Graph | None = None
        self.__networkx_cache__: dict[str, Any] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the parts of a copy, which makes a store of its own."""
        return ConvertedGraph, (
            self.nodes,
            self.edges,
            self._directed,
            self._multigraph,
            self.weight,
            self.attributes,
        )

    def is_directed(self) -> bool:
        return self._directed

    def is_multigraph(self) -> bool:
        return self._multigraph

    def __len__(self) -> int:
        return len(self.nodes)

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    def __contains__(self, node: Any) -> bool:
        try:
            return node in self.number
        except TypeError:  # has no hash
            return False

    @property
    def has_loops(self) -> bool:
        src, dst = self._ends()
        return bool((src == dst).any())

    @property
    def has_lost_loops(self) -> bool:
        """Return whether the store has lost self-loops, since their weight is 0."""
        src, dst = self._ends()
        return self.weight is not None and not as_numpy(self.edges["weight"])[src == dst].all()

    @property
    def graph(self) -> Graph:
        """The opened store. The graph must have nodes."""
        with self._lock:
            if self._graph is None:
                self._graph = self._open()
            return self._graph

    def _open(self) -> Graph:
        chosen = nx.config.backends["delegraph"]
        limits = {"memory_limit": chosen.memory_limit, "threads": chosen.threads, "device": "cpu"}
        edges = self.edges
        reading: dict[str, Any] = {"directed": self._directed}
        if self.has_loops:
            reading["loops"] = "keep"
        if self.has_loops and self.weight is None:  # a lone node is a loop of weight 0
            edges = edges.append_column("weight", as_arrow(np.ones(len(edges), np.uint32)))
        if "weight" in edges.column_names:
            reading |= {"weight": "weight", "duplicates": "min"}
        folder = TemporaryFolder()
        store = Path(folder.name) / "graph.dg"
        try:
            api.build(self._with_lone_nodes(edges), store, **reading, **limits)
            graph = api.open(store, **limits)
        except BaseException:
            folder.cleanup()
            raise
        weakref.finalize(self, _put_away, graph, folder)
        return graph

    def _with_lone_nodes(self, edges: pa.Table) -> pa.Table:
        """Return edges, and a self-loop for each node without any, of weight 0 if there are
        weights. A store drops the loop, and keeps the node.
        """
        isolated = np.ones(len(self.nodes), np.bool_)
        for ends in self._ends():
            isolated[ends] = False
        loops = np.flatnonzero(isolated).astype(np.uint32)
        columns = [loops, loops]
        if "weight" in edges.column_names:
            columns.append(np.zeros(len(loops), numpy_type(edges["weight"].type)))
        loop_table = pa.Table.from_arrays(list(map(as_arrow, columns)), edges.column_names)
        return pa.concat_tables([edges, loop_table])

    def _ends(self) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        return as_numpy(self.edges["src"]), as_numpy(self.edges["dst"])


def _put_away(graph: Graph, folder: TemporaryFolder) -> None:
    graph.close()
    folder.cleanup()


def convert_from_nx(
    graph: Any,
    edge_attrs: Mapping[str, Any] | None = None,
    node_attrs: Mapping[str, Any] | None = None,
    preserve_edge_attrs: bool = False,
    preserve_node_attrs: bool = False,
    preserve_graph_attrs: bool = False,
    name: str | None = None,
    graph_name: str | None = None,
) -> ConvertedGraph:
    """Convert NetworkX's graph; NetworkX calls this function. edge_attrs: one attribute at most,
    and its value on edges that lack it.

    Raises NotImplementedError, after which NetworkX computes the answer itself, for other
    attributes, and for weights that a store cannot hold exactly.
    """
    if node_attrs or preserve_node_attrs or preserve_edge_attrs or len(edge_attrs or {}) > 1:
        raise NotImplementedError("a conversion keeps one edge attribute, and no node attributes")
    nodes = list(graph)
    number = {node: i for i, node in enumerate(nodes)}
    ends = map(number.__getitem__, chain.from_iterable(graph.edges()))
    pairs = np.fromiter(ends, np.uint32).reshape(-1, 2)
    columns = {"src": as_arrow(pairs[:, 0].copy()), "dst": as_arrow(pairs[:, 1].copy())}
    weight = None
    for weight, default in (edge_attrs or {}).items():
        values = [value for *_, value in graph.edges(data=weight, default=default)]
        columns["weight"] = as_arrow(_weights(values))
    attributes = dict(graph.graph) if preserve_graph_attrs else {}
    return ConvertedGraph(
        nodes,
        pa.table(columns),
        directed=graph.is_directed(),
        multigraph=graph.is_multigraph(),
        weight=weight,
        attributes=attributes,
    )


def _weights(values: list[Any]) -> NDArray[np.uint32] | NDArray[np.float32]:
    """Return the weights in the type of a store, which must hold every weight exactly."""
    if all(isinstance(weight, (int, np.integer)) for weight in values):
        if not all(0 <= weight <= MOST for weight in values):
            raise NotImplementedError(f"integer weights must be from 0 to {MOST:,}")
        return np.array(values, np.uint32)
    if not all(isinstance(weight, (int, float, np.integer, np.floating)) for weight in values):
        raise NotImplementedError("weights must be numbers")
    wide = np.array(values, np.float64)
    with np.errstate(over="ignore"):
        narrow = wide.astype(np.float32)
    if not (np.isfinite(narrow) & (narrow >= 0) & (narrow == wide)).all():
        raise NotImplementedError("weights must be non-negative floats that 32 bits hold exactly")
    return narrow


def convert_to_nx(given: Any, *, name: str | None = None) -> Any:
    """Return NetworkX's graph, with the nodes, the edges and the attribute that were converted; any
    other object is returned unchanged. NetworkX calls this function.
    """
    if not isinstance(given, ConvertedGraph):
        return given
    kinds = {(False, False): nx.Graph, (True, False): nx.DiGraph}
    kinds |= {(False, True): nx.MultiGraph, (True, True): nx.MultiDiGraph}
    graph = kinds[given.is_directed(), given.is_multigraph()]()
    graph.graph.update(given.attributes)
    graph.add_nodes_from(given.nodes)
    ends = (map(given.nodes.__getitem__, given.edges[end].to_pylist()) for end in ("src", "dst"))
    if given.weight is None:
        graph.add_edges_from(zip(*ends, strict=True))
    else:
        weights = given.edges["weight"].to_pylist()
        graph.add_weighted_edges_from(zip(*ends, weights, strict=True), weight=given.weight)
    return graph
