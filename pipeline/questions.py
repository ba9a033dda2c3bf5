"""What may be asked of a graph, by the names that Python and the commands use."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast
from uuid import UUID

from ..partition.disk.urls import AnyPath, is_file_name, named
from ..partition.errors import InputError
from ..partition.numbers import (
    GREATEST,
    GREATEST_SEED,
    check_number,
    check_whole,
    parse_integer,
    shown,
)
from .results.weights import NamedVertices, TypedVertices, VertexFile, typed
from .run.resources import as_plain

# Each function loads the algorithm that it asks for, so that none waits for the others' modules.
if TYPE_CHECKING:
    from .algorithms.betweenness import Betweenness
    from .algorithms.bfs import Bfs
    from .algorithms.bfs_each import BfsEach
    from .algorithms.bfs_together import BfsTogether
    from .algorithms.components import Components
    from .algorithms.many_sources import ByDistances, Sources
    from .algorithms.pagerank import PageRank
    from .algorithms.sssp import ShortestPaths
    from .engines.engine import Strategy

Vertex = int | str | bytes | UUID
"""bytes: 16 of them, an id of a graph whose ids are UUIDs or such bytes."""
Vertices = Sequence[Vertex] | AnyPath
"""Ids, as text with commas between them, too; or a Parquet file with ``vertex``."""
Some = int | Sequence[Vertex] | PathLike[str] | str
"""So many vertices at random, or these, as ids or in a Parquet file with ``vertex``."""


F = TypeVar("F", bound=Callable[..., Any])


def plain(function: F) -> F:
    """Takes NumPy's numbers like Python's."""

    @wraps(function)
    def called(*args: Any, **options: Any) -> Any:
        given = {name: as_plain(value) for name, value in options.items()}
        return function(*map(as_plain, args), **given)

    return cast(F, called)


def check_sources(source: Vertex | None, sources: Vertices | None, together: bool) -> None:
    """InputError unless there is one kind of them."""
    if (source is None) == (sources is None):
        raise InputError("give either --source ID or --sources FILE|ID,ID,...")
    if together and sources is None:
        raise InputError("--together needs --sources")


@plain
def bfs(source: Vertex, max_depth: int | None = None, strategy: Strategy = "auto") -> Bfs:
    from .algorithms.bfs import Bfs

    return Bfs(typed(source), max_depth, strategy)


@plain
def bfs_each(sources: Vertices, max_depth: int | None = None) -> BfsEach:
    from .algorithms.bfs_each import BfsEach

    return BfsEach(named_vertices(sources), max_depth)


@plain
def bfs_together(sources: Vertices, max_depth: int | None = None) -> BfsTogether:
    from .algorithms.bfs_together import BfsTogether

    return BfsTogether(named_vertices(sources), max_depth)


def components() -> Components:
    from .algorithms.components import Components

    return Components()


@plain
def pagerank(
    damping: float = 0.85,
    tolerance: float = 1e-6,
    max_iterations: int = 100,
    iterations: int | None = None,
    personalize: AnyPath | Mapping[Vertex, float] | None = None,
    dangling: Literal["even", "none"] = "even",
    unweighted: bool = False,
    precision: Literal["double", "single"] = "double",
) -> PageRank:
    from .algorithms.pagerank import PageRank

    check_number("damping", damping)
    check_number("tolerance", tolerance)
    check_whole("max_iterations", max_iterations, 1)
    check_whole("iterations", iterations, 1)
    where: NamedVertices | None = None
    if isinstance(personalize, Mapping):
        where = TypedVertices(list(personalize), "personalize", list(personalize.values()))
    elif personalize is not None:
        where = VertexFile(named(personalize), weighted=True)
    stops = tolerance, max_iterations, iterations
    return PageRank(damping, *stops, where, dangling, unweighted, precision)


@plain
def sssp(source: Vertex, max_distance: float | None = None) -> ShortestPaths:
    from .algorithms.sssp import ShortestPaths

    if max_distance is not None:
        check_number("max_distance", max_distance)
    return ShortestPaths(typed(source), max_distance)


@plain
def closeness(sources: Some | None = None, seed: int = 1) -> ByDistances:
    from .algorithms.closeness import closeness_of

    return closeness_of(_sources(sources, seed))


@plain
def betweenness(
    sources: Some | None = None, seed: int = 1, normalized: bool = False
) -> Betweenness:
    from .algorithms.betweenness import Betweenness

    return Betweenness(_sources(sources, seed), normalized)


@plain
def eccentricity(sources: Some | None = None, seed: int = 1) -> ByDistances:
    from .algorithms.eccentricity import eccentricity_of

    return eccentricity_of(_sources(sources, seed))


def named_vertices(sources: Vertices) -> NamedVertices:
    """Text is a file's name if it ends in .parquet, else ids with commas between them, and at the
    end, too.
    """
    if isinstance(sources, PathLike):
        return VertexFile(named(sources))
    if isinstance(sources, str):
        if is_file_name(sources):
            return VertexFile(named(sources))
        sources = sources.removesuffix(",").split(",") if sources else []
    if not isinstance(sources, Iterable):
        raise InputError(
            f"sources must be a list of ids, text with ids, or a file, not {shown(sources)}"
        )
    return TypedVertices(list(sources), "--sources")


def _sources(asked: Some | None, seed: int) -> Sources:
    from .algorithms.many_sources import Sources

    check_whole("seed", seed, most=GREATEST_SEED)
    if seed is None:
        raise InputError(
            "the seed must be a whole number, so that it chooses the same vertices again"
        )
    if asked is None:
        return Sources(None, seed)
    if isinstance(asked, str) and asked.isascii() and asked.isdecimal():
        asked = parse_integer(asked, most=GREATEST)
    if isinstance(asked, int):
        check_whole("sources", asked, 1)
        return Sources(asked, seed)
    if isinstance(asked, str) and os.path.exists(asked):  # whatever its name
        return Sources(None, seed, VertexFile(named(asked)))
    return Sources(None, seed, named_vertices(asked))
