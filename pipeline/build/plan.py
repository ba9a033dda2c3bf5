"""The plan of a build: the bytes that each step holds and writes, and the number of its tasks that
run at once.

Bytes are computed from counts known before a step runs: first from bounds in the input's metadata,
then from the exact counts of the counting steps. A plan that does not fit the memory limit is
refused with the least limit that would do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from ...partition.dictionary.on_disk import RANGE_BYTES
from ...partition.errors import LimitError
from ...partition.input.arrow import TEXT_BYTES
from ...partition.input.edges import EdgeList
from ...partition.input.id_types import is_string
from ...partition.input.ids import ENCODE_BYTES, ENCODE_ROWS
from ...partition.store.grid import Grid
from ...partition.store.layout import RANGE_EDGES, RANGE_ROWS, SHARD_ROWS
from ...partition.store.shards import GATHER_EDGES
from ..run.plan import Budget, Facts, Plan, Shape, StepPlan, too_little

MOST_BATCH_ROWS = 1 << 22
LEAST_BATCH_ROWS = 1 << 17
MOST_SPANS = 1 << 12
LEAST_SPAN = 1 << 16

_PAIR = 8  # a row as two dense ids or positions
_KEY = 6  # 16 bits of row, 32 of target
_DECODE = 32 << 20  # Arrow's pages and a batch, for integers
_PAGES = 8 << 20  # the part of _DECODE that pages take
_VERTEX_BATCH = 48 << 20  # a row group of the vertex table while it is written, for integers
_COPIES = 6  # copies of strings that become a dictionary or are written: as read, tables, sorted
_STRING = 24  # bytes of a string id, as an estimate
_SORTED = 32  # bytes a key takes while its bucket is sorted: keys twice, positions, slack
_WRITER = 1 << 20
_PICKED = 9  # bytes of a row while self-loops are picked: whether it is one, and its place
_PARTED = 24  # bytes a key takes while a part of a long row is picked out of a segment
_WINDOWS = 32 << 20  # temporary arrays over so many vertices at a time


def facts_of(
    edges: EdgeList,
    domain: int | None,
    directed: bool,
    by_degree: bool,
    partitions: int,
    grid: Grid | None,
    closely: bool = True,
) -> Facts:
    """Return the facts in the metadata of an edge list. domain: None if ids must go through a
    dictionary.

    closely: whether the bytes that reading holds come from the headers of pages, rather than as a
    bound from footers. If there are many pages, reading their headers takes longer than starting a
    run.
    """
    string = is_string(edges.id_type)
    bound = min(2 * edges.rows, 2**32 - 2)
    if domain is None and edges.bounds is not None:
        bound = min(bound, edges.bounds[1] - edges.bounds[0] + 1)
    return Facts(
        rows=edges.rows,
        domain=bound if domain is None else domain,
        vertices=min(bound, bound if domain is None else domain),
        id_bytes=8 if string else max(4, id_width(edges.id_type)),
        encoded=domain is None,
        directed=directed,
        ordered_by_degree=by_degree,
        partitions=partitions,
        grid=grid,
        reading=edges.reading if closely else edges.reading_at_most,
        weight_bytes=0 if edges.weight is None else 4,
    )


def id_width(id_type: pa.DataType) -> int:
    """Return the bytes of an id in memory; an estimate for a string."""
    return _STRING if is_string(id_type) else id_type.bit_width // 8


def reading_bytes(facts: Facts) -> int:
    """Return the bytes that a task holds while it reads the input: pages, a batch, and a growing
    dictionary.
    """
    pages = _DECODE + max(0, facts.reading.held - _PAGES)
    if not facts.encoded:
        return pages
    if not facts.reading.distinct:
        return pages + ENCODE_ROWS * 2 * (4 * facts.id_bytes + 32)
    # Places in the dictionaries of batches, in the piece's dictionary, and in that one sorted.
    return pages + _COPIES * (ENCODE_BYTES + facts.reading.batch) + 2 * ENCODE_ROWS * 12


def merge_bytes(facts: Facts, range_bytes: int) -> int:
    """Return the bytes that merging a range of ids holds. range_bytes: of the ids themselves."""
    if facts.reading.distinct:
        return _COPIES * range_bytes
    return 6 * range_bytes + 2 * range_bytes // facts.id_bytes * 24


def dictionary_bytes(facts: Facts) -> int:
    """Return the bytes of dictionaries in memory: those of all chunks, the merged one, and the ids'
    places in it.
    """
    if not facts.encoded:
        return 0
    text = 2 * facts.reading.texts + 4 * facts.reading.distinct
    return text + 2 * facts.rows * (facts.id_bytes + 4) + 3 * facts.domain * (facts.id_bytes + 4)


def steps_of(facts: Facts, shape: Shape, tasks: int) -> Iterator[StepPlan]:
    """Yield the steps of a build, with one task at a time. tasks: the number of parts that the
    input is cut into.
    """
    read = decode = reading_bytes(facts)
    text = facts.reading.distinct
    if facts.encoded and not shape.in_memory:
        entries = facts.domain if facts.exact else min(2 * facts.rows, 4 * facts.domain)
        size = facts.id_bytes * entries + facts.reading.texts
        batches = (8 + facts.weight_bytes) * facts.rows
        yield StepPlan("encode", tasks, read, disk_bytes=batches + size)
        yield StepPlan(
            "ids",
            max(1, size // RANGE_BYTES),
            # Ranges are cut by samples, so their sizes differ. The samples are held before merging.
            max(merge_bytes(facts, RANGE_BYTES * 5 // 4), facts.reading.texts // 8),
            disk_bytes=4 * entries + facts.id_bytes * facts.domain + text,
        )
    if facts.encoded:  # a batch of places, its part of the dictionary, and its dense ids
        decode = ENCODE_ROWS * 2 * (4 + 4 + 4)
    directions = 2 if facts.directed else 1
    weight = facts.weight_bytes
    spans = shape.spans
    span = -(-facts.domain // spans)
    degree = facts.degree_bytes
    held = (8 + weight) * facts.rows if shape.in_memory else 0
    batch = decode + _PAIR * shape.batch_rows
    if shape.in_memory:
        marks = facts.domain + dictionary_bytes(facts)
        yield StepPlan("read", tasks, read, shared_bytes=held + marks)
        batch = _PAIR * min(shape.batch_rows, facts.rows)
    kept_loops = 0
    if facts.keeps_loops:
        loop = 4 + weight
        picked = (_PICKED + 2 * loop) * shape.batch_rows
        combined = (_SORTED + 3 * weight) * GATHER_EDGES + _PARTED * shape.batch_rows
        marked = facts.domain // 8
        saved = loop * (facts.rows + facts.domain)  # the rows, and what is made of them
        yield StepPlan(
            "loops",
            tasks,
            batch + max(picked, combined if weight else marked),
            held + (saved if shape.in_memory else 0),
            disk_bytes=0 if shape.in_memory else saved,
        )
        kept_loops = loop * facts.domain if shape.in_memory else 0
        held += kept_loops
    counted = span * (degree * directions) + span // 8
    yield StepPlan(
        "degrees",
        tasks * spans,
        batch + counted,
        held,
        disk_bytes=0 if shape.in_memory else counted * spans * 2,
    )
    order = span * (2 * degree * directions + 4) + span // 4
    kept = facts.domain * (4 + degree * directions) + facts.domain // 8
    numbers = 0 if facts.ordered_by_degree else 4 * facts.vertices
    # The longest row at each place decides the cuts of ranges; by degree, the order gives it.
    cut = 0 if facts.ordered_by_degree else 2 * degree * facts.vertices + _WINDOWS
    yield StepPlan(
        "order",
        spans,
        order,
        held + numbers + cut,
        disk_bytes=0 if shape.in_memory else kept + numbers,
    )
    # Each task walks through the spans at its own pace; only a single span is shared.
    table, own_table = (4 * span, 0) if spans == 1 else (0, 4 * span)
    delegates = 0
    if facts.grid is None:
        delegates = 16 * min(facts.vertices, 4 * facts.vertices // facts.partitions)
    shared = table + numbers + delegates
    placed = batch + _PAIR * shape.batch_rows + own_table
    if facts.grid is None:
        yield StepPlan("threshold", tasks, placed, held + shared)
    buckets = facts.partitions * (
        2 * facts.rows // RANGE_EDGES + 2 * facts.vertices // RANGE_ROWS + 8
    )
    runs = 2 * (_KEY + weight) * facts.rows
    keep = kept + kept_loops if shape.in_memory else 0
    # In a grid a vertex has a row in each partition of its column.
    more_rows = 4 * directions * facts.vertices * (facts.grid.rows - 1 if facts.grid else 0)
    yield StepPlan(
        "scatter",
        tasks,
        placed + (2 * (_KEY + weight) + weight) * shape.batch_rows + 24 * buckets,
        # In memory, a batch is freed when its keys are made.
        shared + (max(held, runs) + keep if shape.in_memory else 0),
        disk_bytes=0 if shape.in_memory else runs,
    )
    # A long row's edges are gathered with their weights, and sorted, part by part.
    fetched = (_KEY + weight) * max(GATHER_EDGES, shape.batch_rows)
    longest = (_SORTED + 3 * weight) * GATHER_EDGES + _PARTED * shape.batch_rows
    sorting = (_SORTED + 3 * weight) * RANGE_EDGES
    yield StepPlan(
        "build",
        max(1, 2 * facts.rows // (8 * RANGE_EDGES)),
        fetched
        + (max(sorting, longest) if weight else sorting)
        + 4 * min(SHARD_ROWS, facts.vertices)
        + facts.vertices // 8
        + 16 * buckets
        + 2 * _WRITER,
        (runs + keep + more_rows if shape.in_memory else 0) + numbers + delegates,
        disk_bytes=0 if shape.in_memory else more_rows,
        final_bytes=(4 + weight) * 2 * facts.rows,
    )
    yield StepPlan(
        "vertices",
        1,
        _VERTEX_BATCH
        + _COPIES * min(TEXT_BYTES, text)
        + span * (4 + degree * directions)
        + span // 8
        + 4 * min(SHARD_ROWS, facts.vertices),
        (runs + keep + more_rows if shape.in_memory else 0) + numbers,
        final_bytes=facts.vertices * (facts.id_bytes + 4 + degree * directions + 8)
        + text
        + more_rows,
    )


def make_plan(facts: Facts, budget: Budget, tasks: int, shape: Shape | None = None) -> Plan:
    """Return the plan that fits the budget and takes the least time.

    shape: the shape of an earlier attempt, which must be used again; None for any. Raises
    LimitError, which names the step that does not fit and the least limit that would do.
    """
    shapes = [shape] if shape else list(_shapes(facts))
    plans = [
        Plan(
            budget,
            candidate,
            tuple(_at_once(s, budget) for s in steps_of(facts, candidate, tasks)),
            facts,
        )
        for candidate in shapes
    ]
    fitting = [plan for plan in plans if all(step.at_once for step in plan.steps)]
    if fitting:
        return min(fitting, key=_cost)
    one_at_a_time = [
        (max(steps_of(facts, candidate, tasks), key=lambda step: step.least_bytes), candidate)
        for candidate in shapes
    ]
    worst, _ = min(one_at_a_time, key=lambda found: found[0].least_bytes)
    raise _too_small(worst, budget)


def with_ranges(plan: Plan, sizes: Sequence[int]) -> Plan:
    """Return the plan with the actual ranges of ids. sizes: the bytes of each range. Raises
    LimitError as make_plan does.
    """
    assert plan.facts is not None
    counted = replace(
        plan.step("ids"), tasks=len(sizes), task_bytes=merge_bytes(plan.facts, max(sizes))
    )
    step = _at_once(counted, plan.budget)
    if not step.at_once:
        raise _too_small(step, plan.budget)
    return replace(plan, steps=tuple(step if s.name == "ids" else s for s in plan.steps))


def _too_small(step: StepPlan, budget: Budget) -> LimitError:
    need = step.shared_bytes + budget.sharing * step.task_bytes
    return too_little(step.name, need, budget.limit, budget.baseline)


def _cost(plan: Plan) -> float:
    """Return the approximate time of a plan, in units of reading the input once on one thread."""
    spans, rows = plan.shape.spans, plan.shape.batch_rows
    passes = {
        "degrees": 1.0 * spans,  # the input is read once for each span
        "threshold": 1.0 + 0.5 * spans,
        "scatter": 4.0 + 0.5 * spans + 0.05 * MOST_BATCH_ROWS / rows,
        "build": 3.0,
    }
    return sum(passes.get(step.name, 0.0) / step.at_once for step in plan.steps)


def _shapes(facts: Facts) -> Iterator[Shape]:
    spans = 1
    while spans == 1 or (spans <= MOST_SPANS and facts.domain // spans >= LEAST_SPAN):
        rows = MOST_BATCH_ROWS
        while rows >= LEAST_BATCH_ROWS:
            if rows == LEAST_BATCH_ROWS or rows < 2 * facts.rows:
                yield Shape(spans, rows)
            rows //= 2
        spans *= 2


def _at_once(step: StepPlan, budget: Budget) -> StepPlan:
    """Return the step with the number of tasks that fit at once; 0 if not even one task for each
    process fits.
    """
    fit = max(0, budget.free - step.shared_bytes) // max(1, step.task_bytes)
    if fit < min(budget.sharing, step.tasks):
        fit = 0
    fit = min(fit, budget.threads * budget.sharing)
    return replace(step, at_once=min(fit * budget.apart, max(1, step.tasks)))
