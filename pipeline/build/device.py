"""A build on a device. It writes the store of build.py, byte for byte, from edges that fit the
device.

    degrees       batches of edges are copied to the device as they are read, and counted there
    order         positions are computed; the columns of the vertex table go back to scratch
    threshold     between normal vertices and delegates (delegate layout only)
    sort          keys of all subgraphs are sorted; the memory of the edges is freed
    build         a shard for each task: its targets are copied back and written
    vertices      as in a build on CPUs

The CPU does the steps before (the dictionary, if ids need one) and after. The device's steps take
seconds, so none of them is resumed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...kernels.gpu import prepare as gpu_prepare
from ...kernels.gpu.device import Device, DeviceMemoryError
from ...kernels.gpu.prepare import Columns, Degrees, Positions, RowPlacement, SortedKeys
from ...kernels.prepare.csr import SLOTS, SUBGRAPHS
from ...partition.disk.files import FileRecord
from ...partition.disk.memory import format_bytes
from ...partition.disk.scratch import Scratch
from ...partition.input.sources import ParquetSource
from ...partition.input.weights import WeightType
from ...partition.store import degrees as counting
from ...partition.store import shards as build
from ...partition.store.layout import Layout, Shard, Subgraph, plan_layout
from ...partition.store.manifest import targets_file, weights_of
from ...partition.store.order import Order, Threshold, VertexOrder, choose_threshold
from ...partition.store.runs import PositionTable, with_global_ids
from ...partition.store.weighing import Weighing
from ..run.plan import Plan
from .count import Counted, no_delegates
from .edges_on_device import copy_edges, sums_that_fit
from .prepare import Preparation
from .write_store import finish_store, make_folders, weighing_of

_PIECE = 1 << 22
"""Number of targets that a task copies back at once."""


def build_files_on_device(run: Preparation, device: Device) -> None:
    """Write the store's files into the folder of the run's work.

    Raises DeviceMemoryError if the device is too small; a build on the CPU can follow then.
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
    """Return the steps of a build on a device, from the plan of one on the CPU, whose steps bound
    the bytes on the host.

    domain: dense ids are below it.
    """
    facts = plan.facts
    assert facts is not None
    directions = 2 if facts.directed else 1
    copies = facts.grid.rows if facts.grid else 2  # rows of a vertex; 2: with those of delegates
    least_rows = directions * domain * copies
    weighted = facts.weight_bytes > 0
    need = gpu_prepare.bytes_needed(
        facts.rows, domain, facts.directed, least_rows, weighted=weighted
    )
    names = {"scatter": "sort"}
    first = next(i for i, step in enumerate(plan.steps) if step.name == "degrees")
    steps = [
        replace(step, name=names.get(step.name, step.name), disk_bytes=0, device_bytes=need)
        for step in plan.steps[first:-1]
    ]
    return replace(plan, steps=(*plan.steps[:first], *steps, plan.steps[-1]))


def plan_ahead_on_device(plan: Plan, device: Device) -> Plan:
    """Return the plan of a build on a device; ``plan`` itself if the device has too little
    memory.
    """
    assert plan.facts is not None
    there = plan_on_device(plan, plan.facts.domain)
    if max(step.device_bytes for step in there.steps) > device.memory_bytes:
        return plan
    return replace(there, device=str(device))


def _check_room(device: Device, need: int) -> None:
    if need > device.memory_bytes:
        raise DeviceMemoryError(
            f"only {format_bytes(device.memory_bytes)} of memory may be used on {device}, but the "
            f"edges need {format_bytes(need)}"
        )


def _build(run: Preparation, device: Device) -> None:
    rows, domain, directed = run.edges.rows, run.source.domain, run.options.directed
    batches = [_copy_edges(run, device)]

    def order() -> tuple[VertexOrder, PositionTable, Positions, int]:
        degrees = gpu_prepare.count_degrees(device, batches, domain, rows, directed)
        positions = gpu_prepare.position_vertices(device, degrees)
        table = save_vertices(run.scratch, domain, run.plan.shape.spans, degrees, positions)
        number_vertices(table, run.options.order, len(positions.id_of_position))
        found = order_vertices(device, positions, table, run.options.order)
        return found, table, positions, int(degrees.loops[0])

    found, table, positions, loops = _one_task(run, "order", order)
    partitions, grid = run.options.places_for(rows)
    if grid:
        threshold = no_delegates(found)
    else:
        threshold = _threshold(run, device, batches, found, positions, partitions)
    layout = plan_layout(found, partitions, grid, threshold.delegates, directed)
    _check_layout(run, device, layout)
    counted = Counted(found, table, threshold, layout, loops)

    rows_made, shards, entries = _one_task(
        run, "sort", partial(_sort, run, device, batches, positions, layout)
    )
    make_folders(run.output, layout.partitions)
    kind = None if run.edges.weight is None else run.edges.weight.kind
    writer = ShardWriter(device, layout, rows_made, shards, run.output, run.scratch, kind)
    records = run.spread("build", writer.write, list(range(len(shards))), writer.sizes)
    finish_store(run, counted, entries_of(layout, entries), records)


def entries_of(layout: Layout, entries: Sequence[int]) -> Callable[[Subgraph], int]:
    """Return a function that gives the number of entries of a subgraph of the layout."""
    places = [(subgraph.partition, subgraph.name) for subgraph in layout.subgraphs]
    by_place = dict(zip(places, entries, strict=True))
    return lambda subgraph: by_place[subgraph.partition, subgraph.name]


def _one_task(run: Preparation, name: str, task: Callable[[], Any]) -> Any:
    return run.spread(name, lambda _: task(), [None])[0]


def _copy_edges(run: Preparation, device: Device) -> Columns:
    def spread(copy: Callable[[int], None], chunks: list[int], rows: Sequence[int]) -> None:
        run.spread("degrees", copy, chunks, rows)

    weighted = run.edges.weight is not None
    columns, rounding = copy_edges(device, run.source, run.plan.shape.batch_rows, spread, weighted)
    if isinstance(run.source, ParquetSource):  # weights have been read only now
        run.rounding = rounding
    return columns


def save_vertices(
    scratch: Scratch, domain: int, spans: int, degrees: Degrees, positions: Positions
) -> PositionTable:
    """Save the columns of the vertex table in scratch, by dense id."""
    columns = {"position": positions.position, "degree": degrees.degree}
    if degrees.out_degree is not None:
        columns["out_degree"] = degrees.out_degree
    table = PositionTable(scratch, tuple(counting.spans_of(domain, spans)))
    for s, span in enumerate(table.spans):
        for name, column in columns.items():
            scratch.save(f"{name}-{s}", column[span.start : span.stop].get())
    return table


def number_vertices(table: PositionTable, chosen: Order, vertices: int) -> None:
    """Save the global ids in scratch, unless they are the positions."""
    if chosen != "degree":
        positions = (table.scratch.load(f"position-{s}") for s in range(len(table.spans)))
        table.scratch.save("global", counting.number_globally(chosen, positions, vertices))


def order_vertices(
    device: Device, positions: Positions, table: PositionTable, chosen: Order
) -> VertexOrder:
    """Return the order of vertices, with the global ids that ``number_vertices`` has saved."""
    found = VertexOrder(*gpu_prepare.degree_classes(device, positions.degree))
    if chosen == "degree":
        return found
    return replace(found, global_of_position=table.scratch.load("global"))


def _threshold(
    run: Preparation,
    device: Device,
    batches: list[Columns],
    order: VertexOrder,
    positions: Positions,
    partitions: int,
) -> Threshold:
    def threshold() -> Threshold:
        rows = gpu_prepare.count_classes(device, batches, positions, order.counts)
        return choose_threshold(order, rows, partitions, run.options.threshold)

    return _one_task(run, "threshold", threshold)


def _check_layout(run: Preparation, device: Device, layout: Layout) -> None:
    """Raise DeviceMemoryError if the device has no room for the rows of all subgraphs, whose number
    is known now.
    """
    rows = sum(subgraph.rows for subgraph in layout.subgraphs)
    if rows > gpu_prepare.MOST_ROWS:
        raise DeviceMemoryError(f"{rows:,} rows in all subgraphs are too many for a GPU")
    _check_room(
        device,
        gpu_prepare.bytes_needed(
            run.edges.rows,
            run.source.domain,
            layout.directed,
            rows,
            layout.delegates,
            run.edges.weight is not None,
        ),
    )


class ShardRows(NamedTuple):
    """A shard and the range of its rows, numbered over all subgraphs in order."""

    shard: Shard
    first: int
    stop: int


class DeviceShards(NamedTuple):
    """The rows of consecutive shards on the device.

    counts: uint32, the number of targets of each row. targets: uint32, positions. weights: uint32,
    the bits of each weight; None without weights. offsets: the start of each row. first_row: the
    number of the first row, counted over all subgraphs.
    """

    counts: Any
    targets: Any
    weights: Any
    offsets: Any
    first_row: int


def places_of(layout: Layout, global_of_position: Any) -> tuple[RowPlacement, list[int]]:
    """Return the placement of edges in rows, and the first row of each subgraph, followed by the
    end.

    global_of_position: on the device; None if global ids are positions.
    """
    first_rows = list(accumulate((subgraph.rows for subgraph in layout.subgraphs), initial=0))
    of_slots = np.full(layout.partitions * SLOTS, -1, np.int64)
    for subgraph, first in zip(layout.subgraphs, first_rows, strict=False):
        transposed = subgraph.name.startswith("reverse-")
        slot = SUBGRAPHS.index(subgraph.name[-2:]) + len(SUBGRAPHS) * transposed
        of_slots[subgraph.partition * SLOTS + slot] = first
    places = RowPlacement(
        of_slots,
        first_rows[-1],
        layout.directed,
        layout.partitions,
        layout.delegates,
        global_of_position,
        layout.placement.columns,
    )
    return places, first_rows


def shards_of(layout: Layout, first_rows: list[int]) -> list[ShardRows]:
    """Return all shards of the store, in order."""
    shards: list[ShardRows] = []
    for subgraph, row in zip(layout.subgraphs, first_rows, strict=False):
        starts = subgraph.ranges.starts
        shards += [
            ShardRows(shard, row + int(starts[shard.first]), row + int(starts[shard.stop]))
            for shard in subgraph.shards()
        ]
    return shards


def entries_between(device: Device, keys: Any, rows: list[int]) -> NDArray[np.int64]:
    """Return the number of sorted keys, duplicates included, from each row in ``rows`` to the
    next.
    """
    with device.use() as cupy:
        begins = np.array(rows, np.uint64) << np.uint64(32)
        return np.diff(cupy.searchsorted(keys, cupy.asarray(begins)).get()).astype(np.int64)


def device_shards(
    device: Device, found: SortedKeys, rows: int, first_row: int, weighing: Weighing | None = None
) -> DeviceShards:
    """Make the rows of shards from sorted keys. found: keys with rows numbered from ``first_row``
    on, fewer than ``rows`` of them.
    """
    combining = None if weighing is None else weighing.combining
    with sums_that_fit():
        made = gpu_prepare.rows_of(device, found.keys, rows, found.weights, combining)
    offsets = gpu_prepare.offsets_of(device, made.counts, len(made.targets))
    return DeviceShards(*made, offsets, first_row)


def _sort(
    run: Preparation, device: Device, batches: list[Columns], positions: Positions, layout: Layout
) -> tuple[DeviceShards, list[ShardRows], list[int]]:
    """Sort the edges into rows. Returns all rows, all shards, and the number of entries of each
    subgraph. batches: emptied.
    """
    with device.use() as cupy:
        table = None if layout.numbered_by_position else cupy.asarray(run.scratch.load("global"))
        places, first_rows = places_of(layout, table)
        found = gpu_prepare.sorted_keys(device, batches, positions, places)
        entries = entries_between(device, found.keys, first_rows)
        weighing = weighing_of(run.edges, run.options)
        rows = device_shards(device, found, places.rows, 0, weighing)
    return rows, shards_of(layout, first_rows), entries.tolist()


class ShardWriter:
    """A writer of shards: it writes their targets, and their weights of type ``kind`` if there are
    any, and saves the counts of their rows in scratch.
    """

    def __init__(
        self,
        device: Device,
        layout: Layout,
        rows: DeviceShards,
        shards: Sequence[ShardRows],
        output: Path,
        scratch: Scratch,
        kind: WeightType | None = None,
    ) -> None:
        self._device, self._rows, self._shards = device, rows, shards
        self._output, self._scratch = output, scratch
        self._kind: WeightType | None = kind
        with device.use() as cupy:
            self._whole = with_global_ids(layout, scratch)
            if not layout.numbered_by_position:
                table = cupy.asarray(self._whole.placement.global_id)
                placement = layout.placement._replace(global_id=table)
                self._whole = replace(layout, placement=placement)
            bounds = np.array([(shard.first, shard.stop) for shard in shards], np.int64)
            bounds = cupy.asarray(bounds.reshape(-1, 2) - rows.first_row)
            self._bounds = rows.offsets[bounds].get().tolist()

    @property
    def sizes(self) -> list[int]:
        """Return the number of targets of each shard."""
        return [end - begin for begin, end in self._bounds]

    def write(self, number: int) -> list[FileRecord]:
        """Write one shard. Returns the record of each of its files."""
        shard, first, stop = self._shards[number]
        begin, end = self._bounds[number]
        subgraph, rows = shard.subgraph, self._rows
        ids = build.target_ids(subgraph, self._whole)
        name = targets_file(subgraph.partition, subgraph.name, shard.number)
        pieces = [slice(at, min(at + _PIECE, end)) for at in range(begin, end, _PIECE)]
        with self._device.use(), ExitStack() as stack:
            file = build.open_array(stack, Path(self._output, name), np.uint32)
            for piece in pieces:
                targets: Any = ids(rows.targets[piece])
                file.append(targets.get())
            records = [file.finish()]
            if self._kind is not None:
                path = Path(self._output, weights_of(name))
                opened = build.open_array(stack, path, self._kind)
                weights = build.WeightsFile(opened, self._kind)
                for piece in pieces:
                    weights.append(rows.weights[piece].get())
                records.append(opened.finish())
                self._scratch.save(build.weights_name(shard), weights.facts.as_array())
            counts = rows.counts[first - rows.first_row : stop - rows.first_row]
            self._scratch.save(build.counts_name(shard), counts.get())
        return records
