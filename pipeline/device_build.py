"""A build on a device: the store of build.py, byte for byte, from edges that fit the device.

    degrees       blocks of edges, as they are read, to the device; counted there
    order         ranks, and by them what the vertex table needs, back to scratch
    threshold     between normal vertices and delegates (of that layout)
    sort          keys of all subgraphs; edges are let go of
    build         a shard a task: its targets copied back and written
    vertices      as ever

What comes before (the dictionary, where ids need one) and after is the CPU's. It takes seconds, so
nothing of it is resumed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..kernels import gpu_prepare
from ..kernels.csr import SLOTS, SUBGRAPHS
from ..kernels.device import Device, DeviceMemoryError
from ..kernels.gpu_prepare import Columns, Degrees, Places, Ranking
from ..partition import build
from ..partition import degrees as counting
from ..partition.errors import InputError
from ..partition.files import ArrayWriter, FileRecord
from ..partition.layout import Layout, Shard, plan_layout
from ..partition.memory import format_bytes
from ..partition.order import Threshold, VertexOrder, choose_threshold
from ..partition.runs import RankTable, with_global_ids
from ..partition.scratch import replacing
from ..partition.store import stem_of, targets_file
from .count import Counted, no_delegates
from .plan import Plan
from .prepare import Preparation
from .write_store import finish_store

_PIECE = 1 << 22
"""Targets that a task copies back at once."""


def build_files_on_device(run: Preparation, device: Device) -> None:
    """Write the store's files into the folder of the run's work.

    Raises DeviceMemoryError where the device is too small; a build on the CPU can follow then.
    """
    on_cpu = run.plan
    run.plan = plan_on_device(on_cpu, run.source.domain)
    try:
        _check_room(device, max(step.device_bytes for step in run.plan.steps))
        with device.use():
            _build(run, device)
    except BaseException:
        run.plan = on_cpu
        raise
    finally:
        if device.cupy is not None:
            device.cupy.get_default_memory_pool().free_all_blocks()


def plan_on_device(plan: Plan, domain: int) -> Plan:
    """The steps of a build on a device, by those of one on the CPU.

    These bound what the host holds. domain: dense ids lie below it.
    """
    facts = plan.facts
    assert facts is not None
    both = 2 if facts.directed else 1
    copies = facts.grid.rows if facts.grid else 2  # and those of delegates
    least_rows = both * domain * copies
    need = gpu_prepare.bytes_needed(facts.rows, domain, facts.directed, least_rows)
    names = {"scatter": "sort"}
    first = next(i for i, step in enumerate(plan.steps) if step.name == "degrees")
    steps = [
        replace(step, name=names.get(step.name, step.name), disk_bytes=0, device_bytes=need)
        for step in plan.steps[first:-1]
    ]
    return replace(plan, steps=(*plan.steps[:first], *steps, plan.steps[-1]))


def plan_ahead_on_device(plan: Plan, device: Device) -> Plan:
    """The plan of a build on a device; ``plan`` itself where the device has too little memory."""
    assert plan.facts is not None
    there = plan_on_device(plan, plan.facts.domain)
    if max(step.device_bytes for step in there.steps) > device.memory_bytes:
        return plan
    return replace(there, device=str(device))


def _check_room(device: Device, need: int) -> None:
    if need > device.memory_bytes:
        raise DeviceMemoryError(
            f"{format_bytes(device.memory_bytes)} may be held on {device}, and the edges need "
            f"{format_bytes(need)}"
        )


def _build(run: Preparation, device: Device) -> None:
    rows, domain, directed = run.edges.rows, run.source.domain, run.options.directed
    blocks = [_copy_edges(run, device)]

    def order() -> tuple[VertexOrder, RankTable, Ranking, int]:
        degrees = gpu_prepare.count_degrees(device, blocks, domain, rows, directed)
        ranking = gpu_prepare.rank_vertices(device, degrees)
        table = _save_vertices(run, degrees, ranking)
        return _order(run, device, ranking, table), table, ranking, int(degrees.loops[0])

    found, table, ranking, loops = _one_task(run, "order", order)
    partitions, grid = run.options.places_for(rows)
    if grid:
        threshold = no_delegates(found)
    else:
        threshold = _threshold(run, device, blocks, found, ranking, partitions)
    layout = plan_layout(found, partitions, grid, threshold.delegates, directed)
    _check_layout(run, device, layout)
    counted = Counted(found, table, threshold, layout, loops)

    everything = _one_task(run, "sort", partial(_sort, run, device, blocks, ranking, layout))
    records = _write_shards(run, device, layout, everything)
    places = [(subgraph.partition, subgraph.name) for subgraph in layout.subgraphs]
    keys = dict(zip(places, everything.keys, strict=True))
    finish_store(run, counted, lambda s: keys[s.partition, s.name], records)


def _one_task(run: Preparation, name: str, task: Callable[[], Any]) -> Any:
    return run.spread(name, lambda _: task(), [None])[0]


def _copy_edges(run: Preparation, device: Device) -> Columns:
    """All edges on the device; several threads read chunks, block by block."""
    rows = run.source.chunk_rows
    starts = list(accumulate(rows, initial=0))
    with device.use() as cupy:
        src, dst = (cupy.empty(starts[-1], np.uint32) for _ in range(2))

    def copy(chunk: int) -> None:
        at = starts[chunk]
        for block in run.source.blocks([chunk], run.plan.shape.block_rows):
            end = at + len(block[0])
            if end > starts[chunk + 1]:
                raise InputError("the edge list changed while it was read; run again")
            with device.use():
                for column, values in zip((src, dst), block, strict=True):
                    column[at:end].set(np.ascontiguousarray(values))
            at = end

    run.spread("degrees", copy, list(range(len(rows))), rows)
    return src, dst


def _save_vertices(run: Preparation, degrees: Degrees, ranking: Ranking) -> RankTable:
    """Leave in scratch, by dense id, what the vertex table is written of."""
    columns = {"rank": ranking.rank, "degree": degrees.degree}
    if degrees.out_degree is not None:
        columns["out_degree"] = degrees.out_degree
    spans = counting.spans_of(run.source.domain, run.plan.shape.spans)
    for s, span in enumerate(spans):
        for name, column in columns.items():
            run.scratch.save(f"{name}-{s}", column[span.start : span.stop].get())
    return RankTable(run.scratch, tuple(spans))


def _order(run: Preparation, device: Device, ranking: Ranking, table: RankTable) -> VertexOrder:
    found = VertexOrder(*gpu_prepare.degree_classes(device, ranking))
    chosen = run.options.order
    if chosen == "degree":
        return found
    ranks = (run.scratch.load(f"rank-{s}") for s in range(len(table.spans)))
    run.scratch.save("global", counting.number_globally(chosen, ranks, found.vertices))
    return replace(found, global_of_rank=run.scratch.load("global"))


def _threshold(
    run: Preparation,
    device: Device,
    blocks: list[Columns],
    order: VertexOrder,
    ranking: Ranking,
    partitions: int,
) -> Threshold:
    def threshold() -> Threshold:
        rows = gpu_prepare.count_classes(device, blocks, ranking, order.counts)
        return choose_threshold(order, rows, partitions, run.options.threshold)

    return _one_task(run, "threshold", threshold)


def _check_layout(run: Preparation, device: Device, layout: Layout) -> None:
    """Whether there is room for the rows of all subgraphs, now that these are known."""
    rows = sum(subgraph.rows for subgraph in layout.subgraphs)
    if rows > gpu_prepare.MOST_ROWS:
        raise DeviceMemoryError(f"{rows:,} rows of all subgraphs are too many for a device")
    _check_room(
        device,
        gpu_prepare.bytes_needed(
            run.edges.rows, run.source.domain, layout.directed, rows, layout.delegates
        ),
    )


class _Everything(NamedTuple):
    """The rows of all subgraphs, in the order of ``layout.subgraphs``, on the device.

    counts: uint32, targets of each row. targets: uint32, ranks. offsets: where each row begins.
    first_rows: int64 (subgraphs + 1,), in host memory, as is keys: entries of each with duplicates.
    """

    counts: Any
    targets: Any
    offsets: Any
    first_rows: list[int]
    keys: list[int]


def _sort(
    run: Preparation, device: Device, blocks: list[Columns], ranking: Ranking, layout: Layout
) -> _Everything:
    """blocks: emptied."""
    first_rows = list(accumulate((subgraph.rows for subgraph in layout.subgraphs), initial=0))
    of_slots = np.full(layout.partitions * SLOTS, -1, np.int64)
    for subgraph, first in zip(layout.subgraphs, first_rows, strict=False):
        transposed = subgraph.name.startswith("reverse-")
        slot = SUBGRAPHS.index(subgraph.name[-2:]) + len(SUBGRAPHS) * transposed
        of_slots[subgraph.partition * SLOTS + slot] = first
    with device.use() as cupy:
        global_of_rank = None
        if not layout.numbered_by_rank:
            global_of_rank = cupy.asarray(run.scratch.load("global"))
        places = Places(
            of_slots,
            first_rows[-1],
            layout.directed,
            layout.partitions,
            layout.delegates,
            global_of_rank,
            layout.placement.columns,
        )
        keys = gpu_prepare.sorted_keys(device, blocks, ranking, places)
        begins = np.array(first_rows, np.uint64) << np.uint64(32)
        sizes = np.diff(cupy.searchsorted(keys, cupy.asarray(begins)).get())
        counts, targets = gpu_prepare.rows_of(device, keys, places.rows)
        del keys
        offsets = gpu_prepare.offsets_of(device, counts, len(targets))
    return _Everything(counts, targets, offsets, first_rows, sizes.tolist())


def _write_shards(
    run: Preparation, device: Device, layout: Layout, everything: _Everything
) -> list[FileRecord]:
    """Write all shards' targets, and leave the counts of their rows in scratch."""
    for partition in range(layout.partitions):
        Path(run.work.output, stem_of(partition, "")).mkdir(exist_ok=True)
    shards: list[tuple[Shard, int, int]] = []
    for subgraph, row in zip(layout.subgraphs, everything.first_rows, strict=False):
        starts = subgraph.ranges.starts
        shards += [
            (shard, row + int(starts[shard.first]), row + int(starts[shard.stop]))
            for shard in subgraph.shards()
        ]
    with device.use() as cupy:
        whole = with_global_ids(layout, run.scratch)
        if not layout.numbered_by_rank:
            table = cupy.asarray(whole.placement.global_id)
            whole = replace(layout, placement=layout.placement._replace(global_id=table))
        bounds = cupy.asarray(np.array([rows for _, *rows in shards], np.int64))
        begins_ends = everything.offsets[bounds].get().tolist()

    def write(number: int) -> FileRecord:
        shard, first, stop = shards[number]
        begin, end = begins_ends[number]
        subgraph = shard.subgraph
        ids = build.target_ids(subgraph, whole)
        name = targets_file(subgraph.partition, subgraph.name, shard.number)
        path = Path(run.work.output, name)
        with (
            device.use(),
            replacing(path) as partial_path,
            ArrayWriter(partial_path, np.uint32) as file,
        ):
            for at in range(begin, end, _PIECE):
                piece: Any = ids(everything.targets[at : min(at + _PIECE, end)])
                file.append(piece.get())
            record = file.finish()
            run.scratch.save(build.counts_name(shard), everything.counts[first:stop].get())
        return record

    sizes = [end - begin for begin, end in begins_ends]
    return run.spread("build", write, list(range(len(shards))), sizes)
