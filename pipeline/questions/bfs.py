"""Breadth-first search: from one source, from several, or from the nearest of several."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, TypedDict

from ...partition.errors import InputError
from .facts import several
from .parameters import Choice, Flag, OneVertex, Parameter, SuperstepsFile, Vertices, Whole
from .question import Cost, Form, Question


class SuperstepRecord(TypedDict):
    level: int
    direction: dict[str, str]
    frontier: int
    found: int
    edges_examined: int
    bytes_read: int
    blocks_skipped: int
    bytes_sent: dict[str, int]
    seconds: float


class BetweenRecord(TypedDict):
    """Sums over several supersteps in a row. directions: how many supersteps took each direction,
    by subgraph.
    """

    supersteps: int
    first_level: int
    last_level: int
    directions: dict[str, dict[str, int]]
    found: int
    edges_examined: int
    bytes_read: int
    blocks_skipped: int
    bytes_sent: dict[str, int]
    seconds: float


class SearchRecord(TypedDict):
    """depth: the greatest distance."""

    source: int | str
    max_depth: int | None
    method: str
    reached: int
    depth: int


class SearchesRecord(TypedDict):
    """reached: rows of the result that have a distance. depth: the greatest distance."""

    sources: int
    max_depth: int | None
    method: str
    reached: int
    depth: int
    edges_examined: int
    bytes_read: int
    bytes_sent: int


def _form(given: Collection[str]) -> int:
    if ("source" in given) == ("sources" in given):
        raise InputError("give either --source ID or --sources FILE|ID,ID,...")
    if "source" in given:
        if "together" in given:
            raise InputError("--together needs --sources")
        return 0
    if "profile" in given or "strategy" in given:
        raise InputError("--profile and --strategy need a search from one --source")
    return 2 if "together" in given else 1


def _tell(record: Any) -> str:
    facts, vertices = record["search"], record["graph"]["vertices"]
    return f"reached {facts['reached']:,} of {vertices:,} vertices, depth {facts['depth']}"


def _tell_each(record: Any) -> str:
    facts = record["searches"]
    sources = several(facts["sources"], "source", "sources")
    return f"{several(facts['reached'], 'row', 'rows')} of {sources}, depth {facts['depth']}"


def _tell_together(record: Any) -> str:
    facts, vertices = record["searches"], record["graph"]["vertices"]
    reached = f"reached {facts['reached']:,} of {vertices:,} vertices"
    sources = several(facts["sources"], "source", "sources")
    return f"{reached} from {sources}, depth {facts['depth']}"


def _tell_verdict(verdict: Any) -> str:
    reached = f"{verdict['reached']:,} of {verdict['vertices']:,} vertices reached"
    return f"{reached} from {verdict['source']}, depth {verdict['depth']}"


def _tell_verdict_each(verdict: Any) -> str:
    return f"{verdict['rows']:,} rows for {verdict['sources']:,} sources"


def _tell_verdict_together(verdict: Any) -> str:
    reached = f"{verdict['reached']:,} of {verdict['vertices']:,} vertices reached"
    return f"{reached} from {verdict['sources']:,} sources"


BFS = Question(
    name="bfs",
    summary="Search breadth-first: each vertex's distance in hops, and its parent.",
    examples=(
        "delegraph bfs graph.dg --source 17 -o distances/",
        "delegraph bfs friends/ --source alice -o distances/ --directed --max-depth 3",
        "delegraph bfs graph.dg --sources 17,25,3 -o distances/",
        "delegraph bfs graph.dg --sources seeds.parquet --together -o distances/",
        "delegraph bfs s3://bucket/edges --source 17 -o s3://bucket/distances",
    ),
    description="""
\b
with                   columns of OUTPUT
--source               vertex, distance, parent; null if not reached
--sources              source, vertex, distance; a row for each vertex reached
--sources, --together  vertex, distance, nearest; null if not reached

Distances are in hops. If a vertex has several correct parents, any one is named. If several sources
are equally near, nearest is the first by id.

A search keeps within the memory limit: edges that do not fit are read from disk. The same command
resumes an interrupted search from its last checkpoint. A search from one source has no checkpoints
on a GPU or with --workers.

An edge list is searched as it is if it fits in memory. --partitions, --layout, --grid, --threshold,
--order and --scratch make the command build a temporary store. If GRAPH is a store, all of these
but --scratch are refused, and also --directed, --src and --dst.

--workers N needs a store with at least N partitions. Each worker holds a share of the edges. If a
worker is lost, the search runs again on the others.

A search from one source uses a GPU if one is usable. Searches from several sources use a GPU only
with --device cuda or --device-memory-limit. Edges that do not fit on the GPU stay in host memory.
""",
    about="""
Give ``source`` or ``sources``. If a vertex has several correct parents, any one is named.
""",
    errors={"InputError": "also if a source is not in the graph."},
    parameters=(
        Parameter(
            "source",
            OneVertex(),
            None,
            "Search from this vertex.",
            "the id of the vertex to search from.",
            leads=True,
        ),
        Parameter(
            "sources",
            Vertices(),
            None,
            "Search from each of these vertices: ids, or a .parquet file or URL with a column "
            "vertex.",
            "instead of ``source``, several ids: a sequence, text with commas between them, or a "
            "Parquet file with a column ``vertex``. Each is searched from on its own.",
        ),
        Parameter(
            "together",
            Flag(),
            False,
            "With --sources: find each vertex's distance to the nearest source instead.",
            "find each vertex's distance to the nearest of ``sources`` instead.",
        ),
        Parameter(
            "max_depth",
            Whole(0),
            None,
            "Greatest distance to search, in hops.",
            "the greatest distance to search, in hops; None for no bound.",
        ),
        Parameter(
            "strategy",
            Choice(("auto", "rows", "slices")),
            "auto",
            "What one GPU searches over: rows (lists of neighbours); slices (bits of the adjacency "
            "matrix), which suit small graphs of few levels; or auto: rows for a single search, "
            "the faster of both for many searches.",
            'what one GPU searches over, ``"rows"`` or ``"slices"``; ``"auto"`` is rows here.',
            written=True,
        ),
        Parameter(
            "profile",
            SuperstepsFile(),
            None,
            "Show what each superstep did and how long it took (of a long search, the first and "
            "the last hundred supersteps). With FILE: write all supersteps to FILE instead.",
            "a Parquet file to write, with a row for each superstep of a search from one source.",
            written=True,
        ),
    ),
    form=_form,
    forms=(
        Form(
            name="bfs",
            title="Breadth-first search",
            takes=("source", "max_depth", "strategy"),
            columns={"distance": "integer", "parent": "id"},
            facts={
                "search": SearchRecord,
                "supersteps": list[SuperstepRecord],
                "supersteps_between": BetweenRecord | None,
            },
            cost=Cost(3, 0.02, scans=True),
            algorithm="algorithms.bfs:Bfs",
            program=None,
            judge="judging.searches:BFS",
            tell=_tell,
            finding=("distances", "distance"),
            tell_verdict=_tell_verdict,
            assumed="a search from the vertex at 0",
            result="BfsResult",
        ),
        Form(
            name="bfs-each",
            title="Searches from several sources",
            takes=("sources", "max_depth"),
            keys=("source", "vertex"),
            columns={"distance": "integer"},
            facts={"searches": SearchesRecord},
            cost=Cost(0.6, 0.02, "sources", 64),
            algorithm="algorithms.bfs_each:BfsEach",
            program="algorithms.bfs_each:planned",
            judge="judging.sources:BFS_EACH",
            tell=_tell_each,
            tell_verdict=_tell_verdict_each,
        ),
        Form(
            name="bfs-together",
            title="Distance to the nearest of several sources",
            takes=("sources", "max_depth"),
            columns={"distance": "integer", "nearest": "id"},
            facts={"searches": SearchesRecord},
            cost=Cost(4, 0.05),
            algorithm="algorithms.bfs_together:BfsTogether",
            program="algorithms.bfs_together:planned",
            judge="judging.sources:BFS_TOGETHER",
            tell=_tell_together,
            finding=("distances", "distance"),
            tell_verdict=_tell_verdict_together,
        ),
    ),
    checked_by="Graph500's rules; with --sources, the distances of neighbours",
)
