"""Validation of a result on disk against the store or the edge list that it is of.

An edge list is held in memory where it fits, else it becomes a temporary store.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...kernels.base import lookup
from ...kernels.base.compiled import compile_kernels
from ...kernels.base.team import Team
from ...kernels.bfs import check
from ...kernels.judging import distances, programs
from ...partition.disk.memory import return_freed_memory
from ...partition.disk.temporary import TemporaryFolder
from ...partition.errors import InputError
from ...partition.input import ids
from ...partition.input.edges import EdgeList
from ...partition.input.id_types import type_named
from ...partition.input.ids import Batch
from ...partition.store.grid import ONE
from ...partition.store.layout import kept_subgraphs, offsets_dtype
from ...partition.store.manifest import VERTICES, offsets_file
from ...partition.store.store import EDGE_BATCH, Store
from ..build.build import build_store_for
from ..build.plan import dictionary_bytes, facts_of, reading_bytes, steps_of
from ..build.prepare import BuildOptions
from ..build.read import DenseEdges, dense_domain, graph_fingerprint, read_edges
from ..judging.centralities import (
    validate_betweenness,
    validate_closeness,
    validate_eccentricity,
)
from ..judging.distances import WORD_BYTES
from ..judging.graph import JudgedEdges, judged_edges
from ..judging.paths import PATHS_BYTES, validate_paths
from ..judging.programs import is_by_weights, validate_components, validate_pagerank
from ..judging.searches import (
    Judged,
    Verdict,
    judged_store,
    judging_bytes,
    reading_store_bytes,
    validate_search,
)
from ..judging.sources import EACH_BYTES, validate_each, validate_together
from ..results.names import names_of_ids
from ..results.result import Result, open_result
from ..results.store_names import text_bytes
from ..results.weights import WEIGHT_BYTES, NamedVertices, TypedVertices, VertexFile
from ..run.execute import Executor
from ..run.plan import SLACK, Facts, Shape, fits, held_now, too_little
from ..run.resources import Resources
from .many_sources import SOURCE_IDS, Sources
from .run import check_weights, open_graph

_STEP = "validate"


def validate_result(
    path: str,
    result_path: str,
    build_options: BuildOptions | None,
    executor: Executor,
    resources: Resources,
    personalize: str | None = None,
    sources: NamedVertices | None = None,
) -> Verdict:
    """Judge the result at ``result_path`` by the store or edge list at ``path``.

    build_options: how to read an edge list, whose direction is the result's unless it is given; a
    store refuses them. personalize: the file of a personalised PageRank. sources: of a betweenness,
    whose paths were counted. Raises InputError for bad input or a memory limit that is too small.
    """
    result = open_result(result_path)
    if personalize is not None and result.algorithm != "pagerank":
        raise InputError(f"{result_path} is a result of {result.algorithm}: leave out --personalize")
    if sources is not None and result.algorithm != "betweenness":
        raise InputError(f"{result_path} is a result of {result.algorithm}: leave out --sources")
    graph = open_graph(path, build_options)
    ranks_by_weights = result.algorithm == "pagerank" and result.info and is_by_weights(result)
    if result.algorithm == "sssp" or ranks_by_weights:
        check_weights(graph, path)
    judge = _JUDGES[result.algorithm]
    if personalize is not None:
        of = partial(validate_pagerank, personalize=VertexFile(personalize, weighted=True))
        # The file may name every vertex.
        judge = judge._replace(by_store=_of_edges(of), more=judge.more + 8 + WEIGHT_BYTES)
    if sources is not None:
        by_store = _of_sources(validate_betweenness, sources)
        judge = judge._replace(by_store=by_store, more=judge.more + WEIGHT_BYTES)
    if isinstance(graph, Store):
        compile_judging(graph.offsets_types(), judge.kernels)
        return _judge_store(graph, result, judge, executor, resources)
    compile_judging({np.dtype(offsets_dtype(2 * graph.rows))}, judge.kernels)
    choices = build_options or BuildOptions()
    if result.info is not None and not choices.directed:
        choices = replace(choices, directed=result.info.directed)
    return _judge_edges(graph, choices, result, judge, executor, resources)


_KERNELS = check, distances, programs


def compile_judging(
    offset_types: Iterable[np.dtype], kernels: Sequence[ModuleType] = _KERNELS
) -> None:
    """Compile, or load from the cache, what judging calls. offset_types: of the subgraphs.
    kernels: that some judge needs; else all of them.
    """
    compile_kernels(*kernels, lookup, offsets=set(offset_types))


class _Judge(NamedTuple):
    """How a result is judged by a store, and by edges in memory; None: as a store they are.

    by_store is told how many bytes more it may hold than it always does. more: bytes a vertex that
    it holds beside what judging a search does. kernels: modules of what it calls.
    """

    by_store: Callable[[Store, Result, Team, int], Verdict]
    by_edges: Callable[[DenseEdges, str, bool, Result, Team], Verdict] | None = None
    more: int = 0
    kernels: Sequence[ModuleType] = (programs,)


def _judge_store(
    store: Store, result: Result, judge: _Judge, executor: Executor, resources: Resources
) -> Verdict:
    need = _store_bytes(store, result, executor.threads) + judge.more * store.info.vertices
    if not fits(need, resources.limit):
        raise too_little(_STEP, need, resources.limit)
    team, planned = Team(executor.threads), held_now() + need
    spare = max(0, resources.limit - SLACK - planned)
    return executor.once(_STEP, lambda: judge.by_store(store, result, team, spare), planned)


def _store_bytes(store: Store, result: Result, threads: int) -> int:
    info, id_type = store.info, type_named(store.info.id_type)
    texts, table = text_bytes(store), store.files[VERTICES].bytes
    offsets = max(
        store.files[offsets_file(p, name)].bytes
        for p in range(info.partitions)
        for name in kept_subgraphs(info.grid, directed=False)
    )
    reading = reading_store_bytes(info.vertices, id_type, texts, table, offsets, threads)
    return reading + judging_bytes(info.vertices, id_type, texts, result, threads)


def _judge_edges(
    edges: EdgeList,
    choices: BuildOptions,
    result: Result,
    judge: _Judge,
    executor: Executor,
    resources: Resources,
) -> Verdict:
    ids.compile_reading(edges.id_type)
    threads = executor.threads

    def needed(closely: bool) -> tuple[Facts, int, int]:
        """Facts of the edges, and bytes: in all, and to judge."""
        facts = facts_of(edges, dense_domain(edges), choices.directed, True, 1, ONE, closely)
        texts = facts.reading.distinct
        judging = judging_bytes(facts.domain, edges.id_type, texts, result, threads)
        judging += judge.more * facts.domain
        held = 8 * facts.rows + dictionary_bytes(facts)
        return facts, held + max(threads * reading_bytes(facts), judging), judging

    facts, need, judging = needed(closely=False)
    if not fits(need, resources.limit):
        facts, need, judging = needed(closely=True)
    refused = None
    if judge.by_edges is not None:
        if fits(need, resources.limit):
            dense, directed = read_edges(edges, executor), choices.directed
            fingerprint = graph_fingerprint(edges, directed, choices.duplicates)
            of = dense, fingerprint, directed, result, Team(threads)
            by_edges = partial(judge.by_edges, *of)
            return executor.once(_STEP, by_edges, held_now() + judging)
        refused = too_little(_STEP, need, resources.limit)
    built = next(step for step in steps_of(facts, Shape(), 1) if step.name == "vertices")
    n, offsets = facts.vertices, 8 * (facts.vertices + 1)
    texts = facts.reading.distinct
    reading = reading_store_bytes(n, edges.id_type, texts, built.final_bytes, offsets, threads)
    then = _STEP, judging + reading + judge.more * n
    with TemporaryFolder(parent=resources.scratch) as folder:
        store = build_store_for(
            then, refused, edges, Path(folder, "graph.dg"), choices, executor, resources
        )
        return_freed_memory()
        return _judge_store(store, result, judge, executor, resources)


def _search_by_store(store: Store, result: Result, team: Team, spare: int) -> Verdict:
    del spare
    return validate_search(judged_store(store, team), result, team)


def _search_by_edges(
    dense: DenseEdges, fingerprint: str, directed: bool, result: Result, team: Team
) -> Verdict:
    names = names_of_ids(dense.ids, dense.present)
    checks = [
        partial(_check_some, batch, start, directed)
        for batch in dense.batches
        for start in range(0, len(batch[0]), EDGE_BATCH)
    ]
    judged = Judged(names, dense.ids.domain, fingerprint, directed, [checks])
    return validate_search(judged, result, team)


def _check_some(
    batch: Batch,
    start: int,
    directed: bool,
    distance: NDArray[np.int32],
    parent: NDArray[np.uint32],
    max_depth: int | None,
    joined: NDArray[np.uint8],
) -> check.Violations:
    """Of a batch's edges from ``start`` on, undirected ones in both directions."""
    sources, targets = (end[start : start + EDGE_BATCH] for end in batch[:2])
    violations = check.Violations()
    said = distance, parent, max_depth, joined, violations
    check.check_edges(sources, targets, *said, both_ways=not directed)
    return violations


def _paths_by_store(store: Store, result: Result, team: Team, spare: int) -> Verdict:
    del spare
    return validate_paths(store, result, team)


def _of_edges(judge: Callable[[JudgedEdges, Result], Verdict]) -> Callable[..., Verdict]:
    def by_store(store: Store, result: Result, team: Team, spare: int) -> Verdict:
        return judge(judged_edges(store, team, spare), result)

    return by_store


def _of_sources(
    judge: Callable[[JudgedEdges, Result, NDArray[np.uint32] | None], Verdict],
    named: NamedVertices | None = None,
) -> Callable[..., Verdict]:
    """named: what the result was asked for with, where that was given."""

    def of_edges(graph: JudgedEdges, result: Result) -> Verdict:
        return judge(graph, result, _sources_of(graph, result, named))

    return _of_edges(of_edges)


def _components_by_edges(
    dense: DenseEdges, fingerprint: str, directed: bool, result: Result, team: Team
) -> Verdict:
    names = names_of_ids(dense.ids, dense.present)
    batches = [(src, dst) for src, dst, *_ in dense.batches]
    judged = JudgedEdges(names, dense.ids.domain, fingerprint, directed, lambda: iter(batches))
    return validate_components(judged, result)


def _sources_of(
    graph: JudgedEdges, result: Result, named: NamedVertices | None
) -> NDArray[np.uint32] | None:
    """The vertices that a result was asked for with, as far as it says, or as they are named; None
    where that is not known.
    """
    if result.info is None:
        return None
    options = result.info.options
    asked, ids = options.get("sources"), options.get(SOURCE_IDS)
    if asked is None:
        return graph.names.index
    if "seed" in options:
        sources = Sources(int(asked), int(options["seed"] or 0))
        return sources.places(graph.names) if 0 < int(asked) <= len(graph.names.index) else None
    if named is None and isinstance(ids, str):
        named = TypedVertices(json.loads(ids), "the result's sources")
    if named is None:
        return None
    vertices = named.read(graph.names.id_type)
    if vertices.digest != asked:
        raise InputError(f"{vertices.given}: these are not the sources of the result")
    return vertices.places(graph.names)


_OF_SOURCES = programs, distances

_JUDGES = {
    "bfs": _Judge(_search_by_store, _search_by_edges, kernels=(check,)),
    "sssp": _Judge(_paths_by_store, more=PATHS_BYTES),
    "bfs-each": _Judge(_of_edges(validate_each), more=EACH_BYTES, kernels=_OF_SOURCES),
    "bfs-together": _Judge(_of_edges(validate_together), more=24),
    "components": _Judge(_of_edges(validate_components), _components_by_edges),
    "pagerank": _Judge(_of_edges(validate_pagerank), more=24),
    "closeness": _Judge(_of_sources(validate_closeness), more=24 + WORD_BYTES, kernels=_OF_SOURCES),
    "eccentricity": _Judge(
        _of_sources(validate_eccentricity), more=24 + WORD_BYTES, kernels=_OF_SOURCES
    ),
    "betweenness": _Judge(
        _of_sources(validate_betweenness), more=64 + WORD_BYTES, kernels=_OF_SOURCES
    ),
}
