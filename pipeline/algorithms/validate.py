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

import numpy as np
from numpy.typing import NDArray

from ...kernels.base import lookup
from ...kernels.base.compiled import compile_kernels
from ...kernels.base.team import Team
from ...kernels.bfs import check
from ...kernels.judging import cores, distances, programs, strong
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
from ..build.prepare import BuildOptions, fingerprint_of, tells_of_loops
from ..build.read import DenseEdges, dense_domain, read_edges
from ..judging.graph import JudgedEdges, judged_edges
from ..judging.judge import Judge
from ..judging.searches import (
    Judged,
    Verdict,
    judged_store,
    judging_bytes,
    reading_store_bytes,
)
from ..questions import FORMS, load
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

    build_options: how to read an edge list, whose direction is the result's unless it is given, and
    whose self-loops are kept if the result's were; a store refuses them. personalize: the file of a
    personalised PageRank. sources: of a betweenness, whose paths were counted.

    Raises InputError for bad input or a memory limit that is too small.
    """
    result = open_result(result_path)
    judge: Judge = load(FORMS[result.algorithm].judge)
    if personalize is not None and not judge.personalizes:
        raise _left_out("--personalize", result_path, result)
    if sources is not None and judge.graph != "sources":
        raise _left_out("--sources", result_path, result)
    graph = open_graph(path, build_options)
    if judge.needs_weights(result):
        check_weights(graph, path)
    if personalize is not None:
        validate = partial(judge.validate, personalize=VertexFile(personalize, weighted=True))
        # The file may name every vertex.
        vertex_bytes = judge.vertex_bytes + 8 + WEIGHT_BYTES
        judge = judge._replace(validate=validate, vertex_bytes=vertex_bytes)
    if sources is not None:
        judge = judge._replace(vertex_bytes=judge.vertex_bytes + WEIGHT_BYTES)
    if isinstance(graph, Store):
        compile_judging(graph.offsets_types(), judge.kernels)
        return _judge_store(graph, result, judge, sources, executor, resources)
    compile_judging({np.dtype(offsets_dtype(2 * graph.rows))}, judge.kernels)
    choices = build_options or BuildOptions()
    if result.info is not None:
        if not choices.directed:
            choices = replace(choices, directed=result.info.directed)
        if tells_of_loops(result.info.graph):
            choices = replace(choices, loops="keep")
    return _judge_edges(graph, choices, result, judge, sources, executor, resources)


def _left_out(option: str, path: str, result: Result) -> InputError:
    return InputError(f"{path} is a result of {result.algorithm}: leave out {option}")


_KERNELS = check, cores, distances, programs, strong


def compile_judging(
    offset_types: Iterable[np.dtype], kernels: Sequence[ModuleType] = _KERNELS
) -> None:
    """Compile, or load from the cache, the kernels that judging calls. offset_types: of the
    subgraphs. kernels: modules of kernels that some judge needs; by default all of them.
    """
    compile_kernels(*kernels, lookup, offsets=set(offset_types))


def _judge_store(
    store: Store,
    result: Result,
    judge: Judge,
    sources: NamedVertices | None,
    executor: Executor,
    resources: Resources,
) -> Verdict:
    info = store.info
    need = _store_bytes(store, result, executor.threads) + judge.row_bytes * result.rows
    need += judge.vertex_bytes * info.vertices + judge.edge_bytes * info.edges
    if not fits(need, resources.limit):
        raise too_little(_STEP, need, resources.limit)
    team, planned = Team(executor.threads), held_now() + need
    extra_bytes = max(0, resources.limit - SLACK - planned)

    def validate() -> Verdict:
        if judge.graph == "search":
            return judge.validate(judged_store(store, team), result, team)
        if judge.graph == "store":
            return judge.validate(store, result, team)
        edges = judged_edges(store, team, extra_bytes)
        if judge.graph == "sources":
            return judge.validate(edges, result, _sources_of(edges, result, sources))
        return judge.validate(edges, result)

    return executor.once(_STEP, validate, planned)


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
    judge: Judge,
    sources: NamedVertices | None,
    executor: Executor,
    resources: Resources,
) -> Verdict:
    ids.compile_reading(edges.id_type)
    threads = executor.threads

    def needed(closely: bool) -> tuple[Facts, int, int]:
        """Return facts of the edges, and two numbers of bytes: in all, and to judge."""
        facts = facts_of(edges, dense_domain(edges), choices.directed, True, 1, ONE, closely)
        texts = facts.reading.distinct
        judging = judging_bytes(facts.domain, edges.id_type, texts, result, threads)
        judging += judge.vertex_bytes * facts.domain + judge.row_bytes * result.rows
        held = 8 * facts.rows + dictionary_bytes(facts)
        return facts, held + max(threads * reading_bytes(facts), judging), judging

    facts, need, judging = needed(closely=False)
    if not fits(need, resources.limit):
        facts, need, judging = needed(closely=True)
    refused = None
    if judge.graph == "search" or judge.scans:
        if fits(need, resources.limit):
            dense, directed = read_edges(edges, executor), choices.directed
            fingerprint = fingerprint_of(edges, choices)
            names = names_of_ids(dense.ids, dense.present)

            def validate() -> Verdict:
                graph = names, dense.ids.domain, fingerprint, directed
                if judge.graph == "search":
                    judged = Judged(*graph, [_checks_of(dense, directed)])
                    return judge.validate(judged, result, Team(threads))
                batches = [(src, dst) for src, dst, *_ in dense.batches]
                return judge.validate(JudgedEdges(*graph, lambda: iter(batches)), result)

            return executor.once(_STEP, validate, held_now() + judging)
        refused = too_little(_STEP, need, resources.limit)
    built = next(step for step in steps_of(facts, Shape(), 1) if step.name == "vertices")
    n, offsets = facts.vertices, 8 * (facts.vertices + 1)
    texts = facts.reading.distinct
    reading = reading_store_bytes(n, edges.id_type, texts, built.final_bytes, offsets, threads)
    then = _STEP, judging + reading + judge.vertex_bytes * n + judge.edge_bytes * facts.rows
    with TemporaryFolder(parent=resources.scratch) as folder:
        store = build_store_for(
            then, refused, edges, Path(folder, "graph.dg"), choices, executor, resources
        )
        return_freed_memory()
        return _judge_store(store, result, judge, sources, executor, resources)


def _checks_of(dense: DenseEdges, directed: bool) -> list[Callable[..., check.Violations]]:
    """Return checks of a search's rules. Each check covers some of the edges."""
    return [
        partial(_check_some, batch, start, directed)
        for batch in dense.batches
        for start in range(0, len(batch[0]), EDGE_BATCH)
    ]


def _check_some(
    batch: Batch,
    start: int,
    directed: bool,
    distance: NDArray[np.int32],
    parent: NDArray[np.uint32],
    max_depth: int | None,
    joined: NDArray[np.uint8],
) -> check.Violations:
    """Check a batch's edges from ``start`` on, undirected ones in both directions."""
    sources, targets = (end[start : start + EDGE_BATCH] for end in batch[:2])
    violations = check.Violations()
    said = distance, parent, max_depth, joined, violations
    check.check_edges(sources, targets, *said, both_ways=not directed)
    return violations


def _sources_of(
    graph: JudgedEdges, result: Result, named: NamedVertices | None
) -> NDArray[np.uint32] | None:
    """Return the vertices that a result was asked for with, as far as the result says, or as they
    are named; None if they are not known.
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
