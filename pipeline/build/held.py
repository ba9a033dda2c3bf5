"""The rows that a store of an edge list would have, made in memory. Nothing is written to disk.

The steps are those of a build (prepare.py), as far as they need no disk.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...kernels.base.graph import UNREACHED
from ...kernels.prepare.csr import SUBGRAPHS
from ...partition.disk.scratch import MemoryScratch
from ...partition.input.edges import EdgeList
from ...partition.input.ids import Ids
from ...partition.input.sources import HeldSource
from ...partition.store.layout import Subgraph, offsets_dtype
from ...partition.store.manifest import WeightInfo
from ...partition.store.runs import Runs
from ...partition.store.shards import build_rows
from ...partition.store.vertex_table import KeptLoops
from ...partition.store.weighing import WeightFacts, weight_info
from ...partition.store.whole import WholeGraph, WholeRows
from ..results.names import VertexNames, names_by_position
from ..run.execute import Executor
from ..run.plan import Budget, Facts, Plan
from .count import Counted, count
from .loops import FoundLoops
from .plan import dictionary_bytes, make_plan
from .prepare import (
    IN_MEMORY,
    BuildOptions,
    Preparation,
    decoder,
    facts_ahead,
    find_loops,
    tasks_of,
)
from .read import read_edges
from .write_store import graph_info, scatter, weighing_of

_ANY = 1 << 62  # no limit: the caller decides whether the plan fits


@dataclass(frozen=True)
class HeldGraph(WholeGraph):
    """A graph in memory, with vertices by position. ids: the user ids of dense ids."""

    names: VertexNames
    ids: Ids


def _plan(edges: EdgeList, options: BuildOptions, threads: int, closely: bool = False) -> Plan:
    """Return the plan of making the rows, under no limit. closely: as in facts_of."""
    facts = facts_ahead(edges, replace(options, partitions=1), closely)
    tasks = len(tasks_of(tuple(chunk.rows for chunk in edges.chunks())))
    return make_plan(facts, Budget(_ANY, 0, threads), tasks, IN_MEMORY)


class HeldNeed(NamedTuple):
    """Bytes of an edge list as rows in memory. making: while rows are made. staying: of the rows
    and names that stay. facts: bounds of the graph.
    """

    making: int
    staying: int
    facts: Facts


def rows_need(edges: EdgeList, options: BuildOptions, threads: int, closely: bool) -> HeldNeed:
    """Return the bytes that ``rows_in_memory`` holds. closely: as in facts_of."""
    plan = _plan(edges, options, threads, closely)
    assert plan.facts is not None
    facts = plan.facts
    directions = 2 if facts.directed else 1
    rows = 2 * (4 + facts.weight_bytes) * facts.rows + 8 * directions * (facts.vertices + 1)
    steps = [step for step in plan.steps if step.name != "vertices"]
    making = max(plan.held(step) + (rows if step.name == "build" else 0) for step in steps)
    names = (4 + 1) * facts.domain + 2 * 4 * facts.vertices + dictionary_bytes(facts)
    return HeldNeed(making, rows + names, facts)


def rows_in_memory(edges: EdgeList, options: BuildOptions, executor: Executor) -> HeldGraph:
    """Read an edge list and make its rows. Raises InputError for bad input."""
    options = replace(options, partitions=1)
    plan = _plan(edges, options, executor.threads)
    dense = read_edges(edges, executor, plan.held(plan.step("read")))
    run = Preparation(
        edges,
        options,
        executor,
        None,
        plan,
        HeldSource(dense.batches, dense.ids.domain),
        MemoryScratch(),
        decoder(dense.ids),
        dense.ids.characters,
        dense.rounding,
    )
    if options.keeps_loops:
        run.loops = find_loops(run)
    counted = count(run)
    runs = scatter(run, counted)
    dense.batches.clear()
    rows = {
        subgraph.name: _rows_of(run, counted, runs, subgraph)
        for subgraph in counted.layout.subgraphs
    }
    edges.check_unchanged()
    entries = {name: len(rows[name].targets) if name in rows else 0 for name in SUBGRAPHS}
    loops_kept = run.loops and run.loops.vertices
    info = graph_info(edges, options, counted, entries, _weight_info(run, rows), loops_kept)
    positions = run.scratch.load("position-0")
    names, loops = _names(dense.ids, positions), _loops(run.loops, positions)
    return HeldGraph(info, rows, lambda team: names.index, lambda team: loops, names, dense.ids)


def _loops(found: FoundLoops | None, position: NDArray[np.uint32]) -> KeptLoops | None:
    """Return the loops that are kept. position: as in ``_names``."""
    if found is None:
        return None
    dense, weights = found.among(range(len(position)))
    numbers = np.cumsum(position != UNREACHED, dtype=np.uint32)[dense] - np.uint32(1)
    return KeptLoops(numbers, position[dense], weights)


def _names(ids: Ids, position: NDArray[np.uint32]) -> VertexNames:
    """Return the names of vertices by position. position: of each dense id; UNREACHED for an id
    that is no vertex.
    """
    dense = np.flatnonzero(position != UNREACHED).astype(np.uint32)
    index = position[dense]
    dense_of = np.empty_like(dense)
    dense_of[index] = dense
    return names_by_position(ids, index, dense_of)


def _rows_of(run: Preparation, counted: Counted, runs: Runs, subgraph: Subgraph) -> WholeRows:
    """Return the rows of a subgraph. Shards are built at the offsets of their keys, duplicates
    included, and then moved together.
    """
    shards, base, vertices = subgraph.shards(), subgraph.first_bucket, counted.order.vertices
    weighing = weighing_of(run.edges, run.options)
    keys = [int(runs.keys(base + shard.first, base + shard.stop).sum()) for shard in shards]
    begins = np.cumsum([0, *keys]).tolist()
    targets = np.empty(begins[-1], np.uint32)
    bits = np.empty(0 if weighing is None else begins[-1], np.uint32)

    def build(i: int) -> NDArray[np.uint32]:
        room = slice(begins[i], begins[i + 1])
        return build_rows(
            shards[i], runs, counted.layout, vertices, weighing, targets[room], bits[room]
        )

    counts = run.spread("build", build, list(range(len(shards))), keys)
    at = 0
    for begin, row_counts in zip(begins, counts, strict=False):
        length = int(row_counts.sum())
        for values in (targets, bits):
            values[at : at + length] = values[begin : begin + length]
        at += length
    lengths = np.concatenate([np.zeros(1, np.uint32), *counts])
    offsets = np.cumsum(lengths, dtype=offsets_dtype(begins[-1]))
    return WholeRows(offsets, targets[:at], bits[:at])


def _weight_info(run: Preparation, rows: dict[str, WholeRows]) -> WeightInfo | None:
    weighing = weighing_of(run.edges, run.options)
    if weighing is None or run.edges.weight is None:
        return None
    facts = WeightFacts(weighing.kind)
    for part in rows.values():
        facts.add(part.weights)
    count = sum(len(part.weights) for part in rows.values())
    column = run.edges.weight.column
    return weight_info(column, weighing, [facts.as_array()], count, run.rounding)
