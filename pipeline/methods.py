"""The methods of an open graph that ask a question of it.

Written by tests/support/python_functions.py from the declarations in pipeline/questions. Change
those, and run it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, overload

from ..partition.disk.urls import AnyPath
from .parameter_checks import AnyPairs, AnySources, AnyVertex, AnyVertices
from .result import BfsResult, Result


class QuestionMethods:
    """The questions that may be asked of an open graph."""

    def _ask(self, name: str, values: Mapping[str, Any]) -> Any:
        """Answer a question, which ``Graph`` does."""
        raise NotImplementedError

    @overload
    def bfs(self, source: AnyVertex, *, max_depth: int | None = None) -> BfsResult: ...

    @overload
    def bfs(
        self, *, sources: AnyVertices, together: bool = False, max_depth: int | None = None
    ) -> Result: ...

    def bfs(
        self,
        source: AnyVertex | None = None,
        *,
        sources: AnyVertices | None = None,
        together: bool = False,
        max_depth: int | None = None,
    ) -> BfsResult | Result:
        """Search breadth-first: each vertex's distance in hops, and its parent.

        Give ``source`` or ``sources``. If a vertex has several correct parents, any one is named.

        Args:
            source: the id of the vertex to search from.
            sources: instead of ``source``, several ids: a sequence, text with commas between them,
                or a Parquet file with a column ``vertex``. Each is searched from on its own.
            together: find each vertex's distance to the nearest of ``sources`` instead.
            max_depth: the greatest distance to search, in hops; None for no bound.

        Raises:
            InputError: also if a source is not in the graph.
        """
        return self._ask(
            "bfs",
            {"source": source, "sources": sources, "together": together, "max_depth": max_depth},
        )

    def components(self) -> Result:
        """Find connected components: the least vertex of each vertex's component.

        ``component`` is the least vertex id of the component, in the order of the ids' type. The
        components of a directed graph are the weakly connected ones.
        """
        return self._ask("components", {})

    def pagerank(
        self,
        *,
        damping: float = 0.85,
        tolerance: float = 1e-06,
        max_iterations: int = 100,
        iterations: int | None = None,
        personalize: AnyPath | Mapping[AnyVertex, float] | None = None,
        dangling: Literal["even", "none"] = "even",
        unweighted: bool = False,
        precision: Literal["double", "single"] = "double",
    ) -> Result:
        """Compute PageRank: how often a random walk along the edges is at each vertex.

        The scores add up to 1, unless ``dangling="none"`` drops some. The run stops when an
        iteration changes less than ``tolerance`` in all (L1 norm), or after ``max_iterations``. The
        record says whether it has converged. Edges count by their weights, if the graph has any.

        Args:
            damping: the probability to follow an edge, at least 0 and below 1.
            tolerance: stop when an iteration changes less than this, summed over all vertices.
            max_iterations: stop after this many iterations, even if the tolerance is not met.
            iterations: run exactly this many iterations.
            personalize: where the walk jumps to: a weight for each of some vertices, or a Parquet
                file with ``vertex`` and, unless all weights are equal, ``weight``.
            dangling: ``"even"`` spreads the score of vertices that no edge leaves as jumps are
                spread; ``"none"`` drops it.
            unweighted: ignore the weights of the graph.
            precision: ``"double"``, or ``"single"`` for float32 values with a relative error of at
                most 1e-6, which GPUs compute faster.
        """
        return self._ask(
            "pagerank",
            {
                "damping": damping,
                "tolerance": tolerance,
                "max_iterations": max_iterations,
                "iterations": iterations,
                "personalize": personalize,
                "dangling": dangling,
                "unweighted": unweighted,
                "precision": precision,
            },
        )

    def sssp(self, source: AnyVertex, *, max_distance: float | None = None) -> Result:
        """Find shortest paths from one vertex by edge weights.

        The graph must have weights: of a store its own, of an edge list the column that ``weight=``
        names.

        Args:
            source: the id of the vertex to start from.
            max_distance: ignore paths that are longer than this.

        Raises:
            InputError: also if the graph has no weights, or the source is not in it.
            DelegraphError: also if a distance of integer weights exceeds 2^53.
        """
        return self._ask("sssp", {"source": source, "max_distance": max_distance})

    def path(
        self,
        source: AnyVertex | None = None,
        target: AnyVertex | None = None,
        *,
        pairs: AnyPairs | None = None,
        nodes: bool = False,
        unweighted: bool = False,
    ) -> Result:
        """Find the shortest path between two vertices, or between those of many pairs.

        Give ``source`` and ``target``, or ``pairs``. Distances are in hops, or sums of weights if
        the graph has weights; null if there is no path. Rows have the order of the pairs; a
        repeated pair is there once. Of several shortest paths, the one with the fewest edges is
        told, and of these the one with the least ids; with float weights, any shortest path.

        Args:
            source: the id of the vertex that the path leads from.
            target: the id of the vertex that the path leads to.
            pairs: instead of ``source`` and ``target``, many pairs of ids, or a Parquet file with
                the columns ``source`` and ``target``.
            nodes: give a row for each vertex on each path.
            unweighted: ignore the weights of the graph.

        Raises:
            InputError: also if a vertex is not in the graph.
            DelegraphError: also if a distance of integer weights exceeds 2^53.
        """
        return self._ask(
            "path",
            {
                "source": source,
                "target": target,
                "pairs": pairs,
                "nodes": nodes,
                "unweighted": unweighted,
            },
        )

    def betweenness(
        self, *, sources: AnySources | None = None, seed: int = 1, normalized: bool = False
    ) -> Result:
        """Compute betweenness: how many shortest paths lead through each vertex.

        The value is the vertex's share of the shortest paths between all pairs of other vertices,
        by hops (BetweennessProgram 2001).

        Args:
            sources: the vertices to count paths from, with the sums scaled up: a number of random
                vertices, some ids, or a Parquet file with a column ``vertex``; None for all
                vertices.
            seed: chooses the random vertices.
            normalized: divide by the number of pairs of other vertices.
        """
        return self._ask(
            "betweenness", {"sources": sources, "seed": seed, "normalized": normalized}
        )

    def closeness(self, *, sources: AnySources | None = None, seed: int = 1) -> Result:
        """Compute closeness: how near each vertex is to the vertices that reach it.

        Distances to the vertex are in hops; values are scaled as Wasserman and Faust do.

        Args:
            sources: the vertices to compute values of: a number of random vertices, some ids, or a
                Parquet file with a column ``vertex``; None for all vertices.
            seed: chooses the random vertices.
        """
        return self._ask("closeness", {"sources": sources, "seed": seed})

    def harmonic(
        self, *, sources: AnySources | None = None, seed: int = 1, normalized: bool = False
    ) -> Result:
        """Compute harmonic centrality: the sum of 1 / distance from all other vertices.

        Distances to the vertex are in hops. A vertex that does not reach it adds nothing.

        Args:
            sources: the vertices to compute values of: a number of random vertices, some ids, or a
                Parquet file with a column ``vertex``; None for all vertices.
            seed: chooses the random vertices.
            normalized: divide by the number of other vertices.
        """
        return self._ask("harmonic", {"sources": sources, "seed": seed, "normalized": normalized})

    def eccentricity(self, *, sources: AnySources | None = None, seed: int = 1) -> Result:
        """Compute eccentricity: each vertex's distance to the farthest vertex that it reaches.

        Distances are in hops. The record holds bounds of the diameter.

        Args:
            sources: the vertices to compute values of: a number of random vertices, some ids, or a
                Parquet file with a column ``vertex``; None for all vertices.
            seed: chooses the random vertices.
        """
        return self._ask("eccentricity", {"sources": sources, "seed": seed})

    def hits(
        self, *, tolerance: float = 1e-08, max_iterations: int = 100, unweighted: bool = False
    ) -> Result:
        """Compute HITS: hubs, which point to authorities, and authorities, which hubs point to.

        Both scores add up to 1. The run stops when an iteration changes the hub scores less than
        ``tolerance`` in all (L1 norm), or after ``max_iterations``. The record says whether it has
        converged. Edges count by their weights, if the graph has any.

        Args:
            tolerance: stop when an iteration changes the hub scores less than this, summed over all
                vertices.
            max_iterations: stop after this many iterations, even if the tolerance is not met.
            unweighted: ignore the weights of the graph.
        """
        return self._ask(
            "hits",
            {"tolerance": tolerance, "max_iterations": max_iterations, "unweighted": unweighted},
        )

    def eigenvector(
        self, *, tolerance: float = 1e-06, max_iterations: int = 100, unweighted: bool = False
    ) -> Result:
        """Compute eigenvector centrality: a vertex counts as much as those that point to it.

        The squares of the scores add up to 1. The run stops when an iteration changes less than
        ``tolerance`` in all (L1 norm), or after ``max_iterations``. The record says whether it has
        converged. Edges count by their weights, if the graph has any.

        Args:
            tolerance: stop when an iteration changes less than this, summed over all vertices.
            max_iterations: stop after this many iterations, even if the tolerance is not met.
            unweighted: ignore the weights of the graph.
        """
        return self._ask(
            "eigenvector",
            {"tolerance": tolerance, "max_iterations": max_iterations, "unweighted": unweighted},
        )

    def katz(
        self,
        *,
        alpha: float | Literal["auto"] = "auto",
        tolerance: float = 1e-06,
        max_iterations: int = 1000,
        unweighted: bool = False,
    ) -> Result:
        """Compute Katz centrality: how many walks end at a vertex, longer ones counting less.

        The squares of the scores add up to 1. ``alpha`` must be less than 1 over the greatest
        eigenvalue of the graph; the record names the one that ``"auto"`` has chosen. The run stops
        when an iteration changes less than ``tolerance`` on average over the vertices, or after
        ``max_iterations``. Edges count by their weights, if the graph has any.

        Args:
            alpha: the factor of a walk for each of its edges; ``"auto"`` is 0.9 over a bound of the
                greatest eigenvalue.
            tolerance: stop when an iteration changes less than this, on average over the vertices.
            max_iterations: stop after this many iterations, even if the tolerance is not met.
            unweighted: ignore the weights of the graph.
        """
        return self._ask(
            "katz",
            {
                "alpha": alpha,
                "tolerance": tolerance,
                "max_iterations": max_iterations,
                "unweighted": unweighted,
            },
        )

    def leiden(
        self,
        *,
        resolution: float = 1.0,
        objective: Literal["modularity", "cpm"] = "modularity",
        iterations: int | Literal["until-stable"] = 2,
        max_levels: int = 100,
        seed: int = 1,
        hierarchy: bool = False,
        unweighted: bool = False,
    ) -> Result:
        """Find communities by Leiden's method: groups with many edges inside, all connected.

        ``community`` is the community's least vertex, and every community is connected. The same
        ``seed`` gives the same communities on every engine. Edges count by their weights, if the
        graph has any. With ``hierarchy``, ``level_0`` is the least vertex of the smallest group
        that each vertex is in, ``level_1`` that of a group of these, and so on.

        Args:
            resolution: the greater it is, the smaller are the communities; from 0 to 1e12.
            objective: the quality that is raised: ``"modularity"``, or ``"cpm"``, that of the
                constant Potts model.
            iterations: How often all is done, each time from the communities before; fewer times
                once nothing moves. ``"until-stable"``: until then.
            max_levels: go up to this many levels at most.
            seed: seed that decides which vertices move before others.
            hierarchy: also give the groups of each level: columns ``level_0``, ``level_1`` and so
                on.
            unweighted: ignore the weights of the graph.

        Raises:
            InputError: also if the graph is directed.
        """
        return self._ask(
            "leiden",
            {
                "resolution": resolution,
                "objective": objective,
                "iterations": iterations,
                "max_levels": max_levels,
                "seed": seed,
                "hierarchy": hierarchy,
                "unweighted": unweighted,
            },
        )

    def louvain(
        self,
        *,
        resolution: float = 1.0,
        objective: Literal["modularity", "cpm"] = "modularity",
        iterations: int | Literal["until-stable"] = 1,
        max_levels: int = 100,
        seed: int = 1,
        hierarchy: bool = False,
        unweighted: bool = False,
    ) -> Result:
        """Find communities by Louvain's method: groups with many edges inside.

        ``community`` is the community's least vertex. A community need not be connected, as
        ``leiden``'s are. The same ``seed`` gives the same communities on every engine. Edges count
        by their weights, if the graph has any. With ``hierarchy``, ``level_0`` is the least vertex
        of the smallest group that each vertex is in, ``level_1`` that of a group of these, and so
        on.

        Args:
            resolution: the greater it is, the smaller are the communities; from 0 to 1e12.
            objective: the quality that is raised: ``"modularity"``, or ``"cpm"``, that of the
                constant Potts model.
            iterations: How often all is done, each time from the communities before; fewer times
                once nothing moves. ``"until-stable"``: until then.
            max_levels: go up to this many levels at most.
            seed: seed that decides which vertices move before others.
            hierarchy: also give the groups of each level: columns ``level_0``, ``level_1`` and so
                on.
            unweighted: ignore the weights of the graph.

        Raises:
            InputError: also if the graph is directed.
        """
        return self._ask(
            "louvain",
            {
                "resolution": resolution,
                "objective": objective,
                "iterations": iterations,
                "max_levels": max_levels,
                "seed": seed,
                "hierarchy": hierarchy,
                "unweighted": unweighted,
            },
        )

    def labels(self, *, iterations: int = 10, unweighted: bool = False) -> Result:
        """Propagate labels: each vertex takes the most common label of its neighbours.

        ``label`` is the id of a vertex. All vertices take their new labels at once, so the result
        is the same on every engine. The run ends after ``iterations``, or earlier once no label
        changes. Edges count by their weights, if the graph has any.

        Args:
            iterations: number of iterations, unless labels settle before.
            unweighted: ignore the weights of the graph.
        """
        return self._ask("labels", {"iterations": iterations, "unweighted": unweighted})

    def cores(self, *, min: int = 0) -> Result:
        """Compute core numbers: how densely connected the surroundings of each vertex are.

        ``core`` is the greatest k such that the vertex is in a subgraph in which all vertices have
        degree k or more. In a directed graph, the degree is the number of edges that enter or leave
        a vertex, so that an edge in both directions counts twice.

        Args:
            min: leave out vertices with a smaller core number, so that the vertices of a k-core are
                left.
        """
        return self._ask("cores", {"min": min})

    def degree(self, *, unweighted: bool = False) -> Result:
        """Count the neighbours of each vertex, and add up the weights of its edges.

        The columns are ``degree``, or ``in_degree`` and ``out_degree`` of directed edges. If the
        graph has weights, there are also their sums: ``weighted_degree``, or ``weighted_in_degree``
        and ``weighted_out_degree``. Rows that repeat an edge count once. Self-loops are left out,
        unless the graph keeps them: then each counts at both of its ends.

        Args:
            unweighted: ignore the weights of the graph.
        """
        return self._ask("degree", {"unweighted": unweighted})

    def strong(self, *, condense: bool = False) -> Result:
        """Find strongly connected components: the least vertex of each vertex's component.

        ``component`` is the least vertex id of the strong component, in the order of the ids' type.
        Two vertices are in the same one if a path along the edges leads from each to the other. In
        an undirected graph, these are the connected components.

        With ``condense``, the result has a row for each pair of components with edges between them:
        ``src``, ``dst``, and ``edges``, the number of edges that lead from one to the other.

        Args:
            condense: give the edges between components, the condensation of the graph.
        """
        return self._ask("strong", {"condense": condense})

    def clustering(self) -> Result:
        """Count triangles, and compute local clustering coefficients.

        ``clustering`` is the share of the pairs of a vertex's neighbours that an edge joins, 0 for
        fewer than two neighbours. In a directed graph it is the number of directed edges between
        neighbours, in either direction, over the most that there can be (LDBC Graphalytics' LCC).
        ``triangles`` counts the triangles at the vertex as if edges had no direction. The record
        has their total, the average coefficient and the transitivity. Weights do not count.
        """
        return self._ask("clustering", {})

    def truss(self) -> Result:
        """Compute truss numbers: how many triangles hold each edge in place.

        ``truss`` is the greatest k such that the edge is in a subgraph in which every edge is in k
        - 2 triangles or more. Each edge has one row, with its lesser end as ``src``, whatever its
        direction.
        """
        return self._ask("truss", {})

    def forest(self, *, unweighted: bool = False) -> Result:
        """Find a minimum spanning forest: the lightest edges that connect what is connected.

        The result has a row for each edge of the forest: ``src``, its lesser end, ``dst``, and
        ``weight`` if the graph has weights. Directions make no difference. Of edges with the same
        weight, the one with the least end comes first, then the one with the least other end, so
        that a graph has one forest.

        Args:
            unweighted: ignore the weights of the graph.
        """
        return self._ask("forest", {"unweighted": unweighted})
