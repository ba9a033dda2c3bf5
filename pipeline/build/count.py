"""The counting steps of a build: degrees, order, threshold and layout. After them all facts of a
graph are known except the places of its edges.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from ...kernels.prepare.csr import degree_dtype
from ...partition.disk.work import Step
from ...partition.input.sources import share_out
from ...partition.store import degrees as counting
from ...partition.store.layout import Layout, Ranges, plan_layout
from ...partition.store.order import Threshold, VertexOrder, choose_threshold
from ...partition.store.runs import PositionTable, rows_by_class
from .prepare import Preparation, rows_of, tasks_of


@dataclass(frozen=True)
class Counted:
    """The counts of the passes over the edges, and the order, threshold and layout derived from
    them.
    """

    order: VertexOrder
    table: PositionTable
    threshold: Threshold
    layout: Layout
    self_loops: int


def count(run: Preparation) -> Counted:
    """Count degrees, and choose order, threshold and layout."""
    spans, parts, loops = _degrees(run)
    order = _order(run, parts)
    table = PositionTable(run.scratch, tuple(spans))
    partitions, grid = run.options.places_for(run.edges.rows)
    threshold = no_delegates(order) if grid else _threshold(run, order, table, partitions)
    layout = plan_layout(order, partitions, grid, threshold.delegates, run.options.directed)
    return Counted(order, table, threshold, layout, loops)


def _degrees(run: Preparation) -> tuple[list[range], list[list[str]], int]:
    """Count degrees. Returns the spans, the names of each span's counts in scratch, and the number
    of self-loops.
    """
    directed = run.options.directed

    def degrees() -> Step:
        spans = counting.spans_of(run.source.domain, run.plan.shape.spans)
        step = run.plan.step("degrees")
        # Each task counts into arrays of its own, so there are only as many tasks as run at once.
        parts = share_out(run.source.chunk_rows, max(1, step.at_once))
        items = [
            (part, span, f"{s}-{p}") for s, span in enumerate(spans) for p, part in enumerate(parts)
        ]
        count_one = partial(
            _count_degrees,
            source=run.source,
            scratch=run.scratch,
            rows=run.plan.shape.batch_rows,
            dtype=degree_dtype(run.edges.rows),
            directed=directed,
        )
        rows = [sum(run.source.chunk_rows[c] for c in part) for part, _, _ in items]
        loops = run.spread("degrees", count_one, items, rows)
        return {
            "spans": len(spans),
            "parts": len(parts),
            "batch_rows": run.plan.shape.batch_rows,
            "loops": sum(loops),
        }

    given = run.journal("degrees", degrees)
    spans = counting.spans_of(run.source.domain, given["spans"])
    return (
        spans,
        [[f"{s}-{p}" for p in range(given["parts"])] for s in range(len(spans))],
        given["loops"],
    )


def _count_degrees(item: tuple[list[int], range, str], **shared: Any) -> int:
    return counting.count_degrees(*item, **shared)


def _add_degrees(item: tuple[int, list[str]], **shared: Any) -> None:
    counting.add_degrees(*item, **shared)


def _order(run: Preparation, parts: list[list[str]]) -> VertexOrder:
    """Choose the order of vertices. parts: for each span, the names of the counts that tasks have
    saved.
    """
    chosen, scratch = run.options.order, run.scratch

    def order() -> Step:
        add_one = partial(_add_degrees, scratch=scratch, directed=run.options.directed)
        run.spread("order", add_one, list(enumerate(parts)))
        found = counting.merge_histograms(len(parts), scratch, degree_dtype(run.edges.rows))
        position_one = partial(counting.position_vertices, scratch=scratch, distinct=found.distinct)
        run.spread("order", position_one, list(range(len(parts))))
        scratch.save("distinct", found.distinct)
        scratch.save("counts", found.counts)
        if chosen != "degree":
            positions = (scratch.load(f"position-{s}") for s in range(len(parts)))
            scratch.save("global", counting.number_globally(chosen, positions, found.vertices))
        return {}

    run.journal("order", order)
    kinds = ("degree", "looped", "out_degree")
    scratch.remove([f"{kind}-{name}" for names in parts for name in names for kind in kinds])
    return VertexOrder(
        scratch.load("distinct"),
        scratch.load("counts"),
        None if chosen == "degree" else scratch.load("global"),
    )


def _threshold(
    run: Preparation, order: VertexOrder, table: PositionTable, partitions: int
) -> Threshold:
    def threshold() -> Step:
        classes = Ranges.at(order.first_positions(), order.counts)
        count_one = partial(
            rows_by_class,
            source=run.source,
            table=table,
            classes=classes,
            rows=run.plan.shape.batch_rows,
        )
        tasks = tasks_of(run.source.chunk_rows)
        counted = run.spread("threshold", count_one, tasks, rows_of(run, tasks))
        rows = np.sum(counted, axis=0)
        return asdict(choose_threshold(order, rows, partitions, run.options.threshold))

    return Threshold(**run.journal("threshold", threshold))


def no_delegates(order: VertexOrder) -> Threshold:
    """Return a threshold without delegates, for a grid; one partition counts as a grid."""
    return Threshold(int(order.distinct[0]), 0, 1.0, "no delegates")
