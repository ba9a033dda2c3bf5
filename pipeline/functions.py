"""The functions that ask a question of a graph, given its path.

Written by tests/support/python_functions.py from the declarations in pipeline/questions. Change
those, and run it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

from ..partition.disk.urls import AnyPath
from .ask import AskingOptions, ask
from .parameter_checks import AnyPairs, AnySources, AnyVertex, AnyVertices
from .python_side.public import public

if TYPE_CHECKING:
    from .algorithms.run import Outcome
    from .edge_sources.kinds import EdgeSource
    from .result import BfsResult, Result

__all__ = [
    "betweenness",
    "bfs",
    "closeness",
    "clustering",
    "components",
    "cores",
    "degree",
    "eccentricity",
    "eigenvector",
    "forest",
    "harmonic",
    "hits",
    "katz",
    "labels",
    "leiden",
    "louvain",
    "pagerank",
    "path",
    "sssp",
    "strong",
    "truss",
]


@overload
def bfs(
    graph: AnyPath | EdgeSource,
    source: AnyVertex | None = None,
    *,
    output: AnyPath,
    sources: AnyVertices | None = None,
    together: bool = False,
    max_depth: int | None = None,
    strategy: Literal["auto", "rows", "slices"] = "auto",
    profile: AnyPath | None = None,
    **options: Unpack[AskingOptions],
) -> Outcome: ...


@overload
def bfs(
    graph: AnyPath | EdgeSource,
    source: AnyVertex,
    *,
    output: None = None,
    max_depth: int | None = None,
    **options: Unpack[AskingOptions],
) -> BfsResult: ...


@overload
def bfs(
    graph: AnyPath | EdgeSource,
    *,
    output: None = None,
    sources: AnyVertices,
    together: bool = False,
    max_depth: int | None = None,
    **options: Unpack[AskingOptions],
) -> Result: ...


@public
def bfs(
    graph: AnyPath | EdgeSource,
    source: AnyVertex | None = None,
    *,
    output: AnyPath | None = None,
    sources: AnyVertices | None = None,
    together: bool = False,
    max_depth: int | None = None,
    strategy: Literal["auto", "rows", "slices"] = "auto",
    profile: AnyPath | None = None,
    **options: Unpack[AskingOptions],
) -> Any:
    """Search breadth-first: each vertex's distance in hops, and its parent.

    Give ``source`` or ``sources``. If a vertex has several correct parents, any one is named.

    Args:
        graph: a store or an edge list, or a graph in memory: a table, a sparse matrix, a NetworkX
            graph, or pairs.
        output: the folder of the result; None for a result in memory.
        source: the id of the vertex to search from.
        sources: instead of ``source``, several ids: a sequence, text with commas between them, or a
            Parquet file with a column ``vertex``. Each is searched from on its own.
        together: find each vertex's distance to the nearest of ``sources`` instead.
        max_depth: the greatest distance to search, in hops; None for no bound.
        strategy: what one GPU searches over, ``"rows"`` or ``"slices"``; ``"auto"`` is rows here.
        profile: a Parquet file to write, with a row for each superstep of a search from one source.
        options: src, dst and weight (the columns of the ids and of the weights), directed,
            duplicates, loops, memory_limit, threads, device, device_memory_limit and progress, as
            ``open`` takes them; with an output also overwrite, checkpoint, workers, scheduler and
            the other options of the command.

    Returns:
        The result; with an output its record, whether it was there already, and notes for the user.

    Raises:
        InputError: also if a source is not in the graph.
    """
    return ask(
        "bfs",
        graph,
        output,
        {
            "source": source,
            "sources": sources,
            "together": together,
            "max_depth": max_depth,
            "strategy": strategy,
            "profile": profile,
        },
        options,
    )


@overload
def components(
    graph: AnyPath | EdgeSource, *, output: AnyPath, **options: Unpack[AskingOptions]
) -> Outcome: ...


@overload
def components(
    graph: AnyPath | EdgeSource, *, output: None = None, **options: Unpack[AskingOptions]
) -> Result: ...


@public
def components(
    graph: AnyPath | EdgeSource, *, output: AnyPath | None = None, **options: Unpack[AskingOptions]
) -> Any:
    """Find connected components: the least vertex of each vertex's component.

    ``component`` is the least vertex id of the component, in the order of the ids' type. The
    components of a directed graph are the weakly connected ones.

    Args:
        graph: a store or an edge list, or a graph in memory: a table, a sparse matrix, a NetworkX
            graph, or pairs.
        output: the folder of the result; None for a result in memory.
        options: src, dst and weight (the columns of the ids and of the weights), directed,
            duplicates, loops, memory_limit, threads, device, device_memory_limit and progress, as
            ``open`` takes them; with an output also overwrite, checkpoint, workers, scheduler and
            the other options of the command.

    Returns:
        The result; with an output its record, whether it was there already, and notes for the user.
    """
    return ask("components", graph, output, {}, options)


@overload
def pagerank(
    graph: AnyPath | EdgeSource,
    *,
    output: AnyPath,
    damping: float = 0.85,
    tolerance: float = 1e-06,
    max_iterations: int = 100,
    iterations: int | None = None,
    personalize: AnyPath | Mapping[AnyVertex, float] | None = None,
    dangling: Literal["even", "none"] = "even",
    unweighted: bool = False,
    precision: Literal["double", "single"] = "double",
    **options: Unpack[AskingOptions],
) -> Outcome: ...


@overload
def pagerank(
    graph: AnyPath | EdgeSource,
    *,
    output: None = None,
    damping: float = 0.85,
    tolerance: float = 1e-06,
    max_iterations: int = 100,
    iterations: int | None = None,
    personalize: AnyPath | Mapping[AnyVertex, float] | None = None,
    dangling: Literal["even", "none"] = "even",
    unweighted: bool = False,
    precision: Literal["double", "single"] = "double",
    **options: Unpack[AskingOptions],
) -> Result: ...


@public
def pagerank(
    graph: AnyPath | EdgeSource,
    *,
    output: AnyPath | None = None,
    damping: float = 0.85,
    tolerance: float = 1e-06,
    max_iterations: int = 100,
    iterations: int | None = None,
    personalize: AnyPath | Mapping[AnyVertex, float] | None = None,
    dangling: Literal["even", "none"] = "even",
    unweighted: bool = False,
    precision: Literal["double", "single"] = "double",
    **options: Unpack[AskingOptions],
) -> Any:
    """Compute PageRank: how often a random walk along the edges is at each vertex.

    The scores add up to 1, unless ``dangling="none"`` drops some. The run stops when an iteration
    changes less than ``tolerance`` in all (L1 norm), or after ``max_iterations``. The record says
    whether it has converged. Edges count by their weights, if the graph has any.

    Args:
        graph: a store or an edge list, or a graph in memory: a table, a sparse matrix, a NetworkX
            graph, or pairs.
        output: the folder of the result; None for a result in memory.
        damping: the probability to follow an edge, at least 0 and below 1.
        tolerance: stop when an iteration changes less than this, summed over all vertices.
        max_iterations: stop after this many iterations, even if the tolerance is not met.
        iterations: run exactly this many iterations.
        personalize: where the walk jumps to: a weight for each of some vertices, or a Parquet file
            with ``vertex`` and, unless all weights are equal, ``weight``.
        dangling: ``"even"`` spreads the score of vertices that no edge leaves as jumps are spread;
            ``"none"`` drops it.
        unweighted: ignore the weights of the graph.
        precision: ``"double"``, or ``"single"`` for float32 values with a relative error of at most
            1e-6, which GPUs compute faster.
        options: src, dst and weight (the columns of the ids and of the weights), directed,
            duplicates, loops, memory_limit, threads, device, device_memory_limit and progress, as
            ``open`` takes them; with an output also overwrite, checkpoint, workers, scheduler and
            the other options of the command.

    Returns:
        The result; with an output its record, whether it was there already, and notes for the user.
    """
    return ask(
        "pagerank",
        graph,
        output,
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
        options,
    )


@overload
def sssp(
    graph: AnyPath | EdgeSource,
    source: AnyVertex,
    *,
    output: AnyPath,
    max_distance: float | None = None,
    **options: Unpack[AskingOptions],
) -> Outcome: ...


@overload
def sssp(
    graph: AnyPath | EdgeSource,
    source: AnyVertex,
    *,
    output: None = None,
    max_distance: float | None = None,
    **options: Unpack[AskingOptions],
) -> Result: ...


@public
def sssp(
    graph: AnyPath | EdgeSource,
    source: AnyVertex,
    *,
    output: AnyPath | None = None,
    max_distance: float | None = None,
    **options: Unpack[AskingOptions],
) -> Any:
    """Find shortest paths from one vertex by edge weights.

    The graph must have weights: of a store its own, of an edge list the column that ``weight=``
    names.

    Args:
        graph: a store or an edge list, or a graph in memory: a table, a sparse matrix, a NetworkX
            graph, or pairs.
        output: the folder of the result; None for a result in memory.
        source: the id of the vertex to start from.
        max_distance: ignore paths that are longer than this.
        options: src, dst and weight (the columns of the ids and of the weights), directed,
            duplicates, loops, memory_limit, threads, device, device_memory_limit and progress, as
            ``open`` takes them; with an output also overwrite, checkpoint, workers, scheduler and
            the other options of the command.

    Returns:
        The result; with an output its record, whether it was there already, and notes for the user.

    Raises:
        InputError: also if the graph has no weights, or the source is not in it.
        DelegraphError: also if a distance of integer weights exceeds 2^53.
    """
    return ask("sssp", graph, output, {"source": source, "max_distance": max_distance}, options)


@overload
def path(
    graph: AnyPath | EdgeSource,
    source: AnyVertex | None = None,
    target: AnyVertex | None = None,
    *,
    output: AnyPath,
    pairs: AnyPairs | None = None,
    nodes: bool = False,
    unweighted: bool = False,
    **options: Unpack[AskingOptions],
) -> Outcome: ...


@overload
def path(
    graph: AnyPath | EdgeSource,
    source: AnyVertex | None = None,
    target: AnyVertex | None = None,
    *,
    output: None = None,
    pairs: AnyPairs | None = None,
    unweighted: bool = False,
    **options: Unpack[AskingOptions],
) -> Result: ...


@overload
def path(
    graph: AnyPath | EdgeSource,
    source: AnyVertex | None = None,
    target: AnyVertex | None = None,
    *,
    output: None = None,
    pairs: AnyPairs | None = None,
    nodes: bool = False,
    unweighted: bool = False,
    **options: Unpack[AskingOptions],
) -> Result: ...


@public
def path(
    graph: AnyPath | EdgeSource,
    source: AnyVertex | None = None,
    target: AnyVertex | None = None,
    *,
    output: AnyPath | None = None,
    pairs: AnyPairs | None = None,
    nodes: bool = False,
    unweighted: bool = False,
    **options: Unpack[AskingOptions],
) -> Any:
    """Find the shortest path between two vertices, or between those of many pairs.

    Give ``source`` and ``target``, or ``pairs``. Distances are in hops, or sums of weights if the
    graph has weights; null if there is no path. Rows have the order of the pairs; a repeated pair
    is there once. Of several shortest paths, the one with the fewest edges is told, and of these
    the one with the least ids; with float weights, any shortest path.

    Args:
        graph: a store or an edge list, or a graph in memory: a table, a sparse matrix, a NetworkX
            graph, or pairs.
        output: the folder of the result; None for a result in memory.
        source: the id of the vertex that the path leads from.
        target: the id of the vertex that the path leads to.
        pairs: instead of ``source`` and ``target``, many pairs of ids, or a Parquet file with the
            columns ``source`` and ``target``.
        nodes: give a row for each vertex on each path.
        unweighted: ignore the weights of the graph.
        options: src, dst and weight (the columns of the ids and of the weights), directed,
            duplicates, loops, memory_limit, threads, device, device_memory_limit and progress, as
            ``open`` takes them; with an output also overwrite, checkpoint, workers, scheduler and
            the other options of the command.

    Returns:
        The result; with an output its record, whether it was there already, and notes for the user.

    Raises:
        InputError: also if a vertex is not in the graph.
        DelegraphError: also if a distance of integer weights exceeds 2^53.
    """
    return ask(
        "path",
        graph,
        output,
        {
            "source": source,
            "target": target,
            "pairs": pairs,
            "nodes": nodes,
            "unweighted": unweighted,
        },
        options,
    )


@overload
def betweenness(
    graph: AnyPath | EdgeSource,
    *,
    output: AnyPath,
    sources: AnySources | None = None,
    seed: int = 1,
    normalized: bool = False,
    **options: Unpack[AskingOptions],
) -> Outcome: ...


@overload
def betweenness(
    graph: AnyPath | EdgeSource,
    *,
    output: None = None,
    sources: AnySources | None = None,
    seed: int = 1,
    normalized: bool = False,
    **options: Unpack[AskingOptions],
) -> Result: ...


@public
def betweenness(
    graph: AnyPath | EdgeSource,
    *,
    output: AnyPath | None = None,
    sources: AnySources | None = None,
    seed: int = 1,
    normalized: bool = False,
    **options: Unpack[AskingOptions],
) -> Any:
    """Compute betweenness: how many shortest paths lead through each vertex.

    The value is the vertex's share of the shortest paths between all pairs of other vertices, by
    hops (BetweennessProgram 2001).

    Args:
        graph: a store or an edge list, or a graph in memory: a table, a sparse matrix, a NetworkX
            graph, or pairs.
        output: the folder of the result; None for a result in memory.
        sources: the vertices to count paths from, with the sums scaled up: a number of random
            vertices, some ids, or a Parquet file with a column ``vertex``; None for all vertices.
        seed: chooses the random vertices.
        normalized: divide by the number of pairs of other vertices.
        options: src, dst and weight (the columns of the ids and of the weights), directed,
            duplicates, loops, memory_limit, threads, device, device_memory_limit and progress, as
            ``open`` takes them; with an output also overwrite, checkpoint, workers, scheduler and
            the other options of the command.

    Returns:
        The result; with an output its record, whether it was there already, and notes for the user.
    """
    return ask(
        "betweenness",
        graph,
        output,
        {"sources": sources, "seed": seed, "normalized": normalized},
        options,
    )


@overload
def closeness(
    graph: AnyPath | EdgeSource,
    *,
    output: AnyPath,
    sources: AnySources | None = None,
    seed: int = 1,
    **options: Unpack[AskingOptions],
) -> Outcome: ...


@overload
def closeness(
    graph: AnyPath | EdgeSource,
    *,
    output: None = None,
    sources: AnySources | None = None,
    seed: int = 1,
    **options: Unpack[AskingOptions],
) -> Result: ...


@public
def closeness(
    graph: AnyPath | EdgeSource,
    *,
    output: AnyPath | None = None,
    sources: AnySources | None = None,
    seed: int = 1,
    **options: Unpack[AskingOptions],
) -> Any:
    """Compute closeness: how near each vertex is to the vertices that reach it.

    Distances to the vertex are in hops; values are scaled as Wasserman and Faust do.

    Args:
        graph: a store or an edge list, or a graph in memory: a table, a sparse matrix, a NetworkX
            graph, or pairs.
        output: the folder of the result; None for a result in memory.
        sources: the vertices to compute values of: a number of random vertices, some ids, or a
            Parquet file with a column ``vertex``; None for all vertices.
        seed: chooses the random vertices.
        options: src, dst and weight (the columns of the ids and of the weights), directed,
            duplicates, loops, memory_limit, threads, device, device_memory_limit and progress, as
            ``open`` takes them; with an output also overwrite, checkpoint, workers, scheduler and
            the other options of the command.

    Returns:
        The result; with an output its record, whether it was there already, and notes for the user.
    """
    return ask("closeness", graph, output, {"sources": sources, "seed": seed}, options)


@overload
def harmonic(
    graph: AnyPath | EdgeSource,
    *,
    output: AnyPath,
    sources: AnySources | None = None,
    seed: int = 1,
    normalized: bool = False,
    **options: Unpack[AskingOptions],
) -> Outcome: ...


@overload
def harmonic(
    graph: AnyPath | EdgeSource,
    *,
    output: None = None,
    sources: AnySources | None = None,
    seed: int = 1,
    normalized: bool = False,
    **options: Unpack[AskingOptions],
) -> Result: ...


@public
def harmonic(
    graph: AnyPath | EdgeSource,
    *,
    output: AnyPath | None = None,
    sources: AnySources | None = None,
    seed: int = 1,
    normalized: bool = False,
    **options: Unpack[AskingOptions],
) -> Any:
    """Compute harmonic centrality: the sum of 1 / distance from all other vertices.

    Distances to the vertex are in hops. A vertex that does not reach it adds nothing.

    Args:
        graph: a store or an edge list, or a graph in memory: a table, a sparse matrix, a NetworkX
            graph, or pairs.
        output: the folder of the result; None for a result in memory.
        sources: the vertices to compute values of: a number of random vertices, some ids, or a
            Parquet file with a column ``vertex``; None for all vertices.
        seed: chooses the random vertices.
        normalized: divide by the number of other vertices.
        options: src, dst and weight (the columns of the ids and of the weights), directed,
            duplicates, loops, memory_limit, threads, device, device_memory_limit and progress, as
            ``open`` takes them; with an output also overwrite, checkpoint, workers, scheduler and
            the other options of the command.

    Returns:
        The result; with an output its record, whether it was there already, and notes for the user.
    """
    return ask(
        "harmonic",
        graph,
        output,
        {"sources": sources, "seed": seed, "normalized": normalized},
        options,
    )


@overload
def eccentricity(
    graph: AnyPath | EdgeSource,
    *,
    output: AnyPath,
    sources: AnySources | None = None,
    seed: int = 1,
    **options: Unpack[AskingOptions],
) -> Outcome: ...


@overload
def eccentricity(
    graph: AnyPath | EdgeSource,
    *,
    output: None = None,
    sources: AnySources | None = None,
    seed: int = 1,
    **options: Unpack[AskingOptions],
) -> Result: ...


@public
def eccentricity(
    graph: AnyPath | EdgeSource,
    *,
    output: AnyPath | None = None,
    sources: AnySources | None = None,
    seed: int = 1,
    **options: Unpack[AskingOptions],
) -> Any:
    """Compute eccentricity: each vertex's distance to the farthest vertex that it reaches.

    Distances are in hops. The record holds bounds of the diameter.

    Args:
        graph: a store or an edge list, or a graph in memory: a table, a sparse matrix, a NetworkX
            graph, or pairs.
        output: the folder of the result; None for a result in memory.
        sources: the vertices to compute values of: a number of random vertices, some ids, or a
            Parquet file with a column ``vertex``; None for all vertices.
        seed: chooses the random vertices.
        options: src, dst and weight (the columns of the ids and of the weights), directed,
            duplicates, loops, memory_limit, threads, device, device_memory_limit and progress, as
            ``open`` takes them; with an output also overwrite, checkpoint, workers, scheduler and
            the other options of the command.

    Returns:
        The result; with an output its record, whether it was there already, and notes for the user.
    """
    return ask("eccentricity", graph, output, {"sources": sources, "seed": seed}, options)


@overload
def hits(
    graph: AnyPath | EdgeSource,
    *,
    output: AnyPath,
    tolerance: float = 1e-08,
    max_iterations: int = 100,
    unweighted: bool = False,
    **options: Unpack[AskingOptions],
) -> Outcome: ...


@overload
def hits(
    graph: AnyPath | EdgeSource,
    *,
    output: None = None,
    tolerance: float = 1e-08,
    max_iterations: int = 100,
    unweighted: bool = False,
    **options: Unpack[AskingOptions],
) -> Result: ...


@public
def hits(
    graph: AnyPath | EdgeSource,
    *,
    output: AnyPath | None = None,
    tolerance: float = 1e-08,
    max_iterations: int = 100,
    unweighted: bool = False,
    **options: Unpack[AskingOptions],
) -> Any:
    """Compute HITS: hubs, which point to authorities, and authorities, which hubs point to.

    Both scores add up to 1. The run stops when an iteration changes the hub scores less than
    ``tolerance`` in all (L1 norm), or after ``max_iterations``. The record says whether it has
    converged. Edges count by their weights, if the graph has any.

    Args:
        graph: a store or an edge list, or a graph in memory: a table, a sparse matrix, a NetworkX
            graph, or pairs.
        output: the folder of the result; None for a result in memory.
        tolerance: stop when an iteration changes the hub scores less than this, summed over all
            vertices.
        max_iterations: stop after this many iterations, even if the tolerance is not met.
        unweighted: ignore the weights of the graph.
        options: src, dst and weight (the columns of the ids and of the weights), directed,
            duplicates, loops, memory_limit, threads, device, device_memory_limit and progress, as
            ``open`` takes them; with an output also overwrite, checkpoint, workers, scheduler and
            the other options of the command.

    Returns:
        The result; with an output its record, whether it was there already, and notes for the user.
    """
    return ask(
        "hits",
        graph,
        output,
        {"tolerance": tolerance, "max_iterations": max_iterations, "unweighted": unweighted},
        options,
    )


@overload
def eigenvector(
    graph: AnyPath | EdgeSource,
    *,
    output: AnyPath,
    tolerance: float = 1e-06,
    max_iterations: int = 100,
    unweighted: bool = False,
    **options: Unpack[AskingOptions],
) -> Outcome: ...


@overload
def eigenvector(
    graph: AnyPath | EdgeSource,
    *,
    output: None = None,
    tolerance: float = 1e-06,
    max_iterations: int = 100,
    unweighted: bool = False,
    **options: Unpack[AskingOptions],
) -> Result: ...


@public
def eigenvector(
    graph: AnyPath | EdgeSource,
    *,
    output: AnyPath | None = None,
    tolerance: float = 1e-06,
    max_iterations: int = 100,
    unweighted: bool = False,
    **options: Unpack[AskingOptions],
) -> Any:
    """Compute eigenvector centrality: a vertex counts as much as those that point to it.

    The squares of the scores add up to 1. The run stops when an iteration changes less than
    ``tolerance`` in all (L1 norm), or after ``max_iterations``. The record says whether it has
    converged. Edges count by their weights, if the graph has any.

    Args:
        graph: a store or an edge list, or a graph in memory: a table, a sparse matrix, a NetworkX
            graph, or pairs.
        output: the folder of the result; None for a result in memory.
        tolerance: stop when an iteration changes less than this, summed over all vertices.
        max_iterations: stop after this many iterations, even if the tolerance is not met.
        unweighted: ignore the weights of the graph.
        options: src, dst and weight (the columns of the ids and of the weights), directed,
            duplicates, loops, memory_limit, threads, device, device_memory_limit and progress, as
            ``open`` takes them; with an output also overwrite, checkpoint, workers, scheduler and
            the other options of the command.

    Returns:
        The result; with an output its record, whether it was there already, and notes for the user.
    """
    return ask(
        "eigenvector",
        graph,
        output,
        {"tolerance": tolerance, "max_iterations": max_iterations, "unweighted": unweighted},
        options,
    )


@overload
def katz(
    graph: AnyPath | EdgeSource,
    *,
    output: AnyPath,
    alpha: float | Literal["auto"] = "auto",
    tolerance: float = 1e-06,
    max_iterations: int = 1000,
    unweighted: bool = False,
    **options: Unpack[AskingOptions],
) -> Outcome: ...


@overload
def katz(
    graph: AnyPath | EdgeSource,
    *,
    output: None = None,
    alpha: float | Literal["auto"] = "auto",
    tolerance: float = 1e-06,
    max_iterations: int = 1000,
    unweighted: bool = False,
    **options: Unpack[AskingOptions],
) -> Result: ...


@public
def katz(
    graph: AnyPath | EdgeSource,
    *,
    output: AnyPath | None = None,
    alpha: float | Literal["auto"] = "auto",
    tolerance: float = 1e-06,
    max_iterations: int = 1000,
    unweighted: bool = False,
    **options: Unpack[AskingOptions],
) -> Any:
    """Compute Katz centrality: how many walks end at a vertex, longer ones counting less.

    The squares of the scores add up to 1. ``alpha`` must be less than 1 over the greatest
    eigenvalue of the graph; the record names the one that ``"auto"`` has chosen. The run stops when
    an iteration changes less than ``tolerance`` on average over the vertices, or after
    ``max_iterations``. Edges count by their weights, if the graph has any.

    Args:
        graph: a store or an edge list, or a graph in memory: a table, a sparse matrix, a NetworkX
            graph, or pairs.
        output: the folder of the result; None for a result in memory.
        alpha: the factor of a walk for each of its edges; ``"auto"`` is 0.9 over a bound of the
            greatest eigenvalue.
        tolerance: stop when an iteration changes less than this, on average over the vertices.
        max_iterations: stop after this many iterations, even if the tolerance is not met.
        unweighted: ignore the weights of the graph.
        options: src, dst and weight (the columns of the ids and of the weights), directed,
            duplicates, loops, memory_limit, threads, device, device_memory_limit and progress, as
            ``open`` takes them; with an output also overwrite, checkpoint, workers, scheduler and
            the other options of the command.

    Returns:
        The result; with an output its record, whether it was there already, and notes for the user.
    """
    return ask(
        "katz",
        graph,
        output,
        {
            "alpha": alpha,
            "tolerance": tolerance,
            "max_iterations": max_iterations,
            "unweighted": unweighted,
        },
        options,
    )


@overload
def leiden(
    graph: AnyPath | EdgeSource,
    *,
    output: AnyPath,
    resolution: float = 1.0,
    objective: Literal["modularity", "cpm"] = "modularity",
    iterations: int | Literal["until-stable"] = 2,
    max_levels: int = 100,
    seed: int = 1,
    hierarchy: bool = False,
    unweighted: bool = False,
    **options: Unpack[AskingOptions],
) -> Outcome: ...


@overload
def leiden(
    graph: AnyPath | EdgeSource,
    *,
    output: None = None,
    resolution: float = 1.0,
    objective: Literal["modularity", "cpm"] = "modularity",
    iterations: int | Literal["until-stable"] = 2,
    max_levels: int = 100,
    seed: int = 1,
    hierarchy: bool = False,
    unweighted: bool = False,
    **options: Unpack[AskingOptions],
) -> Result: ...


@public
def leiden(
    graph: AnyPath | EdgeSource,
    *,
    output: AnyPath | None = None,
    resolution: float = 1.0,
    objective: Literal["modularity", "cpm"] = "modularity",
    iterations: int | Literal["until-stable"] = 2,
    max_levels: int = 100,
    seed: int = 1,
    hierarchy: bool = False,
    unweighted: bool = False,
    **options: Unpack[AskingOptions],
) -> Any:
    """Find communities by Leiden's method: groups with many edges inside, all connected.

    ``community`` is the community's least vertex, and every community is connected. The same
    ``seed`` gives the same communities on every engine. Edges count by their weights, if the graph
    has any. With ``hierarchy``, ``level_0`` is the least vertex of the smallest group that each
    vertex is in, ``level_1`` that of a group of these, and so on.

    Args:
        graph: a store or an edge list, or a graph in memory: a table, a sparse matrix, a NetworkX
            graph, or pairs.
        output: the folder of the result; None for a result in memory.
        resolution: the greater it is, the smaller are the communities; from 0 to 1e12.
        objective: the quality that is raised: ``"modularity"``, or ``"cpm"``, that of the constant
            Potts model.
        iterations: How often all is done, each time from the communities before; fewer times once
            nothing moves. ``"until-stable"``: until then.
        max_levels: go up to this many levels at most.
        seed: seed that decides which vertices move before others.
        hierarchy: also give the groups of each level: columns ``level_0``, ``level_1`` and so on.
        unweighted: ignore the weights of the graph.
        options: src, dst and weight (the columns of the ids and of the weights), directed,
            duplicates, loops, memory_limit, threads, device, device_memory_limit and progress, as
            ``open`` takes them; with an output also overwrite, checkpoint, workers, scheduler and
            the other options of the command.

    Returns:
        The result; with an output its record, whether it was there already, and notes for the user.

    Raises:
        InputError: also if the graph is directed.
    """
    return ask(
        "leiden",
        graph,
        output,
        {
            "resolution": resolution,
            "objective": objective,
            "iterations": iterations,
            "max_levels": max_levels,
            "seed": seed,
            "hierarchy": hierarchy,
            "unweighted": unweighted,
        },
        options,
    )


@overload
def louvain(
    graph: AnyPath | EdgeSource,
    *,
    output: AnyPath,
    resolution: float = 1.0,
    objective: Literal["modularity", "cpm"] = "modularity",
    iterations: int | Literal["until-stable"] = 1,
    max_levels: int = 100,
    seed: int = 1,
    hierarchy: bool = False,
    unweighted: bool = False,
    **options: Unpack[AskingOptions],
) -> Outcome: ...


@overload
def louvain(
    graph: AnyPath | EdgeSource,
    *,
    output: None = None,
    resolution: float = 1.0,
    objective: Literal["modularity", "cpm"] = "modularity",
    iterations: int | Literal["until-stable"] = 1,
    max_levels: int = 100,
    seed: int = 1,
    hierarchy: bool = False,
    unweighted: bool = False,
    **options: Unpack[AskingOptions],
) -> Result: ...


@public
def louvain(
    graph: AnyPath | EdgeSource,
    *,
    output: AnyPath | None = None,
    resolution: float = 1.0,
    objective: Literal["modularity", "cpm"] = "modularity",
    iterations: int | Literal["until-stable"] = 1,
    max_levels: int = 100,
    seed: int = 1,
    hierarchy: bool = False,
    unweighted: bool = False,
    **options: Unpack[AskingOptions],
) -> Any:
    """Find communities by Louvain's method: groups with many edges inside.

    ``community`` is the community's least vertex. A community need not be connected, as
    ``leiden``'s are. The same ``seed`` gives the same communities on every engine. Edges count by
    their weights, if the graph has any. With ``hierarchy``, ``level_0`` is the least vertex of the
    smallest group that each vertex is in, ``level_1`` that of a group of these, and so on.

    Args:
        graph: a store or an edge list, or a graph in memory: a table, a sparse matrix, a NetworkX
            graph, or pairs.
        output: the folder of the result; None for a result in memory.
        resolution: the greater it is, the smaller are the communities; from 0 to 1e12.
        objective: the quality that is raised: ``"modularity"``, or ``"cpm"``, that of the constant
            Potts model.
        iterations: How often all is done, each time from the communities before; fewer times once
            nothing moves. ``"until-stable"``: until then.
        max_levels: go up to this many levels at most.
        seed: seed that decides which vertices move before others.
        hierarchy: also give the groups of each level: columns ``level_0``, ``level_1`` and so on.
        unweighted: ignore the weights of the graph.
        options: src, dst and weight (the columns of the ids and of the weights), directed,
            duplicates, loops, memory_limit, threads, device, device_memory_limit and progress, as
            ``open`` takes them; with an output also overwrite, checkpoint, workers, scheduler and
            the other options of the command.

    Returns:
        The result; with an output its record, whether it was there already, and notes for the user.

    Raises:
        InputError: also if the graph is directed.
    """
    return ask(
        "louvain",
        graph,
        output,
        {
            "resolution": resolution,
            "objective": objective,
            "iterations": iterations,
            "max_levels": max_levels,
            "seed": seed,
            "hierarchy": hierarchy,
            "unweighted": unweighted,
        },
        options,
    )


@overload
def labels(
    graph: AnyPath | EdgeSource,
    *,
    output: AnyPath,
    iterations: int = 10,
    unweighted: bool = False,
    **options: Unpack[AskingOptions],
) -> Outcome: ...


@overload
def labels(
    graph: AnyPath | EdgeSource,
    *,
    output: None = None,
    iterations: int = 10,
    unweighted: bool = False,
    **options: Unpack[AskingOptions],
) -> Result: ...


@public
def labels(
    graph: AnyPath | EdgeSource,
    *,
    output: AnyPath | None = None,
    iterations: int = 10,
    unweighted: bool = False,
    **options: Unpack[AskingOptions],
) -> Any:
    """Propagate labels: each vertex takes the most common label of its neighbours.

    ``label`` is the id of a vertex. All vertices take their new labels at once, so the result is
    the same on every engine. The run ends after ``iterations``, or earlier once no label changes.
    Edges count by their weights, if the graph has any.

    Args:
        graph: a store or an edge list, or a graph in memory: a table, a sparse matrix, a NetworkX
            graph, or pairs.
        output: the folder of the result; None for a result in memory.
        iterations: number of iterations, unless labels settle before.
        unweighted: ignore the weights of the graph.
        options: src, dst and weight (the columns of the ids and of the weights), directed,
            duplicates, loops, memory_limit, threads, device, device_memory_limit and progress, as
            ``open`` takes them; with an output also overwrite, checkpoint, workers, scheduler and
            the other options of the command.

    Returns:
        The result; with an output its record, whether it was there already, and notes for the user.
    """
    return ask(
        "labels", graph, output, {"iterations": iterations, "unweighted": unweighted}, options
    )


@overload
def cores(
    graph: AnyPath | EdgeSource, *, output: AnyPath, min: int = 0, **options: Unpack[AskingOptions]
) -> Outcome: ...


@overload
def cores(
    graph: AnyPath | EdgeSource,
    *,
    output: None = None,
    min: int = 0,
    **options: Unpack[AskingOptions],
) -> Result: ...


@public
def cores(
    graph: AnyPath | EdgeSource,
    *,
    output: AnyPath | None = None,
    min: int = 0,
    **options: Unpack[AskingOptions],
) -> Any:
    """Compute core numbers: how densely connected the surroundings of each vertex are.

    ``core`` is the greatest k such that the vertex is in a subgraph in which all vertices have
    degree k or more. In a directed graph, the degree is the number of edges that enter or leave a
    vertex, so that an edge in both directions counts twice.

    Args:
        graph: a store or an edge list, or a graph in memory: a table, a sparse matrix, a NetworkX
            graph, or pairs.
        output: the folder of the result; None for a result in memory.
        min: leave out vertices with a smaller core number, so that the vertices of a k-core are
            left.
        options: src, dst and weight (the columns of the ids and of the weights), directed,
            duplicates, loops, memory_limit, threads, device, device_memory_limit and progress, as
            ``open`` takes them; with an output also overwrite, checkpoint, workers, scheduler and
            the other options of the command.

    Returns:
        The result; with an output its record, whether it was there already, and notes for the user.
    """
    return ask("cores", graph, output, {"min": min}, options)


@overload
def degree(
    graph: AnyPath | EdgeSource,
    *,
    output: AnyPath,
    unweighted: bool = False,
    **options: Unpack[AskingOptions],
) -> Outcome: ...


@overload
def degree(
    graph: AnyPath | EdgeSource,
    *,
    output: None = None,
    unweighted: bool = False,
    **options: Unpack[AskingOptions],
) -> Result: ...


@public
def degree(
    graph: AnyPath | EdgeSource,
    *,
    output: AnyPath | None = None,
    unweighted: bool = False,
    **options: Unpack[AskingOptions],
) -> Any:
    """Count the neighbours of each vertex, and add up the weights of its edges.

    The columns are ``degree``, or ``in_degree`` and ``out_degree`` of directed edges. If the graph
    has weights, there are also their sums: ``weighted_degree``, or ``weighted_in_degree`` and
    ``weighted_out_degree``. Rows that repeat an edge count once. Self-loops are left out, unless
    the graph keeps them: then each counts at both of its ends.

    Args:
        graph: a store or an edge list, or a graph in memory: a table, a sparse matrix, a NetworkX
            graph, or pairs.
        output: the folder of the result; None for a result in memory.
        unweighted: ignore the weights of the graph.
        options: src, dst and weight (the columns of the ids and of the weights), directed,
            duplicates, loops, memory_limit, threads, device, device_memory_limit and progress, as
            ``open`` takes them; with an output also overwrite, checkpoint, workers, scheduler and
            the other options of the command.

    Returns:
        The result; with an output its record, whether it was there already, and notes for the user.
    """
    return ask("degree", graph, output, {"unweighted": unweighted}, options)


@overload
def strong(
    graph: AnyPath | EdgeSource,
    *,
    output: AnyPath,
    condense: bool = False,
    **options: Unpack[AskingOptions],
) -> Outcome: ...


@overload
def strong(
    graph: AnyPath | EdgeSource,
    *,
    output: None = None,
    condense: bool = False,
    **options: Unpack[AskingOptions],
) -> Result: ...


@public
def strong(
    graph: AnyPath | EdgeSource,
    *,
    output: AnyPath | None = None,
    condense: bool = False,
    **options: Unpack[AskingOptions],
) -> Any:
    """Find strongly connected components: the least vertex of each vertex's component.

    ``component`` is the least vertex id of the strong component, in the order of the ids' type. Two
    vertices are in the same one if a path along the edges leads from each to the other. In an
    undirected graph, these are the connected components.

    With ``condense``, the result has a row for each pair of components with edges between them:
    ``src``, ``dst``, and ``edges``, the number of edges that lead from one to the other.

    Args:
        graph: a store or an edge list, or a graph in memory: a table, a sparse matrix, a NetworkX
            graph, or pairs.
        output: the folder of the result; None for a result in memory.
        condense: give the edges between components, the condensation of the graph.
        options: src, dst and weight (the columns of the ids and of the weights), directed,
            duplicates, loops, memory_limit, threads, device, device_memory_limit and progress, as
            ``open`` takes them; with an output also overwrite, checkpoint, workers, scheduler and
            the other options of the command.

    Returns:
        The result; with an output its record, whether it was there already, and notes for the user.
    """
    return ask("strong", graph, output, {"condense": condense}, options)


@overload
def clustering(
    graph: AnyPath | EdgeSource, *, output: AnyPath, **options: Unpack[AskingOptions]
) -> Outcome: ...


@overload
def clustering(
    graph: AnyPath | EdgeSource, *, output: None = None, **options: Unpack[AskingOptions]
) -> Result: ...


@public
def clustering(
    graph: AnyPath | EdgeSource, *, output: AnyPath | None = None, **options: Unpack[AskingOptions]
) -> Any:
    """Count triangles, and compute local clustering coefficients.

    ``clustering`` is the share of the pairs of a vertex's neighbours that an edge joins, 0 for
    fewer than two neighbours. In a directed graph it is the number of directed edges between
    neighbours, in either direction, over the most that there can be (LDBC Graphalytics' LCC).
    ``triangles`` counts the triangles at the vertex as if edges had no direction. The record has
    their total, the average coefficient and the transitivity. Weights do not count.

    Args:
        graph: a store or an edge list, or a graph in memory: a table, a sparse matrix, a NetworkX
            graph, or pairs.
        output: the folder of the result; None for a result in memory.
        options: src, dst and weight (the columns of the ids and of the weights), directed,
            duplicates, loops, memory_limit, threads, device, device_memory_limit and progress, as
            ``open`` takes them; with an output also overwrite, checkpoint, workers, scheduler and
            the other options of the command.

    Returns:
        The result; with an output its record, whether it was there already, and notes for the user.
    """
    return ask("clustering", graph, output, {}, options)


@overload
def truss(
    graph: AnyPath | EdgeSource, *, output: AnyPath, **options: Unpack[AskingOptions]
) -> Outcome: ...


@overload
def truss(
    graph: AnyPath | EdgeSource, *, output: None = None, **options: Unpack[AskingOptions]
) -> Result: ...


@public
def truss(
    graph: AnyPath | EdgeSource, *, output: AnyPath | None = None, **options: Unpack[AskingOptions]
) -> Any:
    """Compute truss numbers: how many triangles hold each edge in place.

    ``truss`` is the greatest k such that the edge is in a subgraph in which every edge is in k - 2
    triangles or more. Each edge has one row, with its lesser end as ``src``, whatever its
    direction.

    Args:
        graph: a store or an edge list, or a graph in memory: a table, a sparse matrix, a NetworkX
            graph, or pairs.
        output: the folder of the result; None for a result in memory.
        options: src, dst and weight (the columns of the ids and of the weights), directed,
            duplicates, loops, memory_limit, threads, device, device_memory_limit and progress, as
            ``open`` takes them; with an output also overwrite, checkpoint, workers, scheduler and
            the other options of the command.

    Returns:
        The result; with an output its record, whether it was there already, and notes for the user.
    """
    return ask("truss", graph, output, {}, options)


@overload
def forest(
    graph: AnyPath | EdgeSource,
    *,
    output: AnyPath,
    unweighted: bool = False,
    **options: Unpack[AskingOptions],
) -> Outcome: ...


@overload
def forest(
    graph: AnyPath | EdgeSource,
    *,
    output: None = None,
    unweighted: bool = False,
    **options: Unpack[AskingOptions],
) -> Result: ...


@public
def forest(
    graph: AnyPath | EdgeSource,
    *,
    output: AnyPath | None = None,
    unweighted: bool = False,
    **options: Unpack[AskingOptions],
) -> Any:
    """Find a minimum spanning forest: the lightest edges that connect what is connected.

    The result has a row for each edge of the forest: ``src``, its lesser end, ``dst``, and
    ``weight`` if the graph has weights. Directions make no difference. Of edges with the same
    weight, the one with the least end comes first, then the one with the least other end, so that a
    graph has one forest.

    Args:
        graph: a store or an edge list, or a graph in memory: a table, a sparse matrix, a NetworkX
            graph, or pairs.
        output: the folder of the result; None for a result in memory.
        unweighted: ignore the weights of the graph.
        options: src, dst and weight (the columns of the ids and of the weights), directed,
            duplicates, loops, memory_limit, threads, device, device_memory_limit and progress, as
            ``open`` takes them; with an output also overwrite, checkpoint, workers, scheduler and
            the other options of the command.

    Returns:
        The result; with an output its record, whether it was there already, and notes for the user.
    """
    return ask("forest", graph, output, {"unweighted": unweighted}, options)
