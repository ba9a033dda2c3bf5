"""Validation of a result on disk against the store or the edge list that it is of.

An edge list is held in memory where it fits, else it becomes a temporary store.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...kernels.base import lookup
from ...kernels.base.compiled import compile_kernels
from ...kernels.base.team import Team
from ...kernels.bfs import check
from ...partition.disk.memory import return_freed_memory
from ...partition.input import ids
from ...partition.input.edges import EdgeList
from ...partition.input.ids import Batch
from ...partition.store.grid import ONE
from ...partition.store.layout import kept_subgraphs
from ...partition.store.manifest import VERTICES, offsets_file
from ...partition.store.store import EDGE_BATCH, Store, offsets_dtype
from ..build.build import build_store_for
from ..build.plan import dictionary_bytes, facts_of, reading_bytes, steps_of
from ..build.prepare import BuildOptions
from ..build.read import dense_domain, graph_fingerprint, read_edges
from ..results.names import names_of_ids
from ..results.result import Result, open_result
from ..results.store_names import text_bytes
from ..results.validate import (
    Judged,
    Verdict,
    judged_store,
    judging_bytes,
    reading_store_bytes,
    validate,
)
from ..run.execute import Executor
from ..run.plan import Shape, fits, held_now, too_little
from ..run.resources import Resources
from .run import open_graph

_STEP = "validate"


def validate_result(
    path: str | Path,
    result_path: str | Path,
    build_options: BuildOptions | None,
    executor: Executor,
    resources: Resources,
) -> Verdict:
    """Judge the result at ``result_path`` by the store or edge list at ``path``.

    build_options: how to read an edge list, whose direction is the result's unless it is given; a
    store refuses them. Raises InputError for bad input or a memory limit that is too small.
    """
    result = open_result(result_path)
    graph = open_graph(path, build_options)
    if isinstance(graph, Store):
        compile_judging(graph.offsets_types())
        return _judge_store(graph, result, executor, resources)
    compile_judging({np.dtype(offsets_dtype(2 * graph.rows))})
    choices = build_options or BuildOptions()
    if result.info is not None and not choices.directed:
        choices = replace(choices, directed=result.info.directed)
    return _judge_edges(graph, choices, result, executor, resources)


def compile_judging(offset_types: Iterable[np.dtype]) -> None:
    """Compile, or load from the cache, what judging calls. offset_types: of the subgraphs."""
    compile_kernels(check, lookup, offsets=set(offset_types))


def _judge_store(store: Store, result: Result, executor: Executor, resources: Resources) -> Verdict:
    need = _store_bytes(store, result, executor.threads)
    if not fits(need, resources.limit):
        raise too_little(_STEP, need, resources.limit)
    team = Team(executor.threads)

    def judge() -> Verdict:
        return validate(judged_store(store, team), result, team)

    return executor.once(_STEP, judge, held_now() + need)


def _store_bytes(store: Store, result: Result, threads: int) -> int:
    info, id_type = store.info, pa.type_for_alias(store.info.id_type)
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
    executor: Executor,
    resources: Resources,
) -> Verdict:
    ids.compile_reading(edges.id_type)
    facts = facts_of(edges, dense_domain(edges), choices.directed, True, 1, ONE)
    texts = facts.reading.distinct
    threads = executor.threads
    judging = judging_bytes(facts.domain, edges.id_type, texts, result, threads)
    held = 8 * facts.rows + dictionary_bytes(facts)
    need = held + max(threads * reading_bytes(facts), judging)
    if fits(need, resources.limit):
        judged = _judged(edges, choices.directed, executor)
        team = Team(threads)
        return executor.once(_STEP, lambda: validate(judged, result, team), held_now() + judging)
    refused = too_little(_STEP, need, resources.limit)
    built = next(step for step in steps_of(facts, Shape(), 1) if step.name == "vertices")
    n, offsets = facts.vertices, 8 * (facts.vertices + 1)
    reading = reading_store_bytes(n, edges.id_type, texts, built.final_bytes, offsets, threads)
    then = _STEP, judging + reading
    with tempfile.TemporaryDirectory(prefix="delegraph-", dir=resources.scratch) as folder:
        store = build_store_for(
            then, refused, edges, Path(folder, "graph.dg"), choices, executor, resources
        )
        return_freed_memory()
        return _judge_store(store, result, executor, resources)


def _judged(edges: EdgeList, directed: bool, executor: Executor) -> Judged:
    dense = read_edges(edges, executor)
    names = names_of_ids(dense.ids, dense.present)
    fingerprint = graph_fingerprint(edges, directed)
    checks = [
        partial(_check_some, batch, start, directed)
        for batch in dense.batches
        for start in range(0, len(batch[0]), EDGE_BATCH)
    ]
    return Judged(names, dense.ids.domain, fingerprint, directed, [checks])


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
    sources, targets = (end[start : start + EDGE_BATCH] for end in batch)
    violations = check.Violations()
    said = distance, parent, max_depth, joined, violations
    check.check_edges(sources, targets, *said, both_ways=not directed)
    return violations
