"""A graph of NetworkX as delegraph holds it.

Nodes, which may be anything that has a hash, are numbered in their order, so columns of results
stand in that order, too. Edges are a table; a store in a temporary folder is made of it when
something is asked first, and stays, opened, as long as the object. NetworkX keeps that beside its
own graph until this is changed.
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
from ...partition.input.arrow import as_arrow, as_numpy
from ...partition.input.weights import MOST
from .. import api
from ..graph import Graph

Node = Hashable


class ConvertedGraph:
    """nodes: by number. edges: ``src`` and ``dst``, numbers, each edge once; ``weight``, if any.

    weight: the edge attribute that these are; None: edges have none. attributes: of the graph.
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
        """A copy makes a store of its own."""
        how = self._directed, self._multigraph, self.weight, self.attributes
        return ConvertedGraph, (self.nodes, self.edges, *how)

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
    def graph(self) -> Graph:
        """Opened; of a graph that has nodes."""
        with self._lock:
            if self._graph is None:
                self._graph = self._open()
            return self._graph

    def _open(self) -> Graph:
        chosen = nx.config.backends["delegraph"]
        limits = {"memory_limit": chosen.memory_limit, "threads": chosen.threads, "device": "cpu"}
        weights: dict[str, Any] = {}
        if self.weight is not None:
            weights = {"weight": "weight", "duplicates": "min"}
        folder = TemporaryFolder()
        store = Path(folder.name) / "graph.dg"
        try:
            api.build(self._with_all(), store, directed=self._directed, **weights, **limits)
            graph = api.open(store, **limits)
        except BaseException:
            folder.cleanup()
            raise
        weakref.finalize(self, _put_away, graph, folder)
        return graph

    def _with_all(self) -> pa.Table:
        """Edges; of a node without any a self-loop: a store drops the loop, and keeps the node."""
        alone = np.ones(len(self.nodes), np.bool_)
        for ends in self._ends():
            alone[ends] = False
        loops = np.flatnonzero(alone).astype(np.uint32)
        columns = [loops, loops]
        if self.weight is not None:
            columns.append(np.zeros(len(loops), self.edges["weight"].type.to_pandas_dtype()))
        more = pa.Table.from_arrays(list(map(as_arrow, columns)), self.edges.column_names)
        return pa.concat_tables([self.edges, more])

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
    """As NetworkX calls it. edge_attrs: one at most, and what edges have that lack it.

    Raises NotImplementedError, on which NetworkX goes on itself, for other attributes, and for
    weights that a store cannot hold as they are.
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
        given = [value for *_, value in graph.edges(data=weight, default=default)]
        columns["weight"] = as_arrow(_weights(given))
    attributes = dict(graph.graph) if preserve_graph_attrs else {}
    how = graph.is_directed(), graph.is_multigraph()
    return ConvertedGraph(nodes, pa.table(columns), *how, weight, attributes)


def _weights(given: list[Any]) -> NDArray[np.uint32] | NDArray[np.float32]:
    """As a store has them, none of which may become another."""
    if all(isinstance(weight, (int, np.integer)) for weight in given):
        if not all(0 <= weight <= MOST for weight in given):
            raise NotImplementedError(f"integer weights must be from 0 to {MOST:,}")
        return np.array(given, np.uint32)
    if not all(isinstance(weight, (int, float, np.integer, np.floating)) for weight in given):
        raise NotImplementedError("weights must be numbers")
    wide = np.array(given, np.float64)
    with np.errstate(over="ignore"):
        kept = wide.astype(np.float32)
    if not (np.isfinite(kept) & (kept >= 0) & (kept == wide)).all():
        raise NotImplementedError("weights must be non-negative floats that 32 bits hold exactly")
    return kept


def convert_to_nx(given: Any, *, name: str | None = None) -> Any:
    """As NetworkX calls it: with the nodes, the edges and the attribute that were converted; what
    is no graph of ours is left as it is.
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
