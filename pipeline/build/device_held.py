"""The rows that a store of an edge list would have, made on a device. Nothing is written to disk.

read      several threads decode chunks, and copy them to the device at once
copy      the same, if ids need a dictionary: the CPU has read and numbered the edges before
prepare   degrees, positions and rows, in one sort (kernels/gpu/prepare.py)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ...kernels.gpu import prepare as gpu_prepare
from ...kernels.gpu.device import Device
from ...kernels.gpu.prepare import Columns, DeviceRows
from ...kernels.prepare.csr import SUBGRAPHS
from ...kernels.prepare.weights import Combining
from ...partition.disk.scratch import MemoryScratch
from ...partition.input import ids
from ...partition.input.edges import EdgeList
from ...partition.input.ids import Ids
from ...partition.input.sources import HeldSource, ParquetSource
from ...partition.input.weights import Rounding
from ...partition.store.grid import ONE
from ...partition.store.layout import plan_layout
from ...partition.store.manifest import GraphInfo, WeightInfo
from ...partition.store.order import VertexOrder
from ...partition.store.runs import PositionTable
from ...partition.store.weighing import Weighing
from ..results.names import VertexNames, names_by_position
from ..run.execute import Executor
from ..run.plan import Facts
from .count import Counted, no_delegates
from .edges_on_device import copy_edges, sums_that_fit
from .plan import dictionary_bytes, facts_of, reading_bytes
from .prepare import IN_MEMORY, BuildOptions
from .read import dense_domain, read_edges, with_bounds
from .write_store import graph_info, weighing_of


@dataclass(frozen=True)
class HeldOnDevice:
    """An edge list as rows on a device. rows, names: by position. ids: the user ids of dense
    ids.
    """

    rows: DeviceRows
    info: GraphInfo
    names: VertexNames
    ids: Ids


@dataclass(frozen=True)
class HeldOnDeviceNeed:
    """Bytes of an edge list as rows on a device. reading: on the host, to read. names: on the host,
    of names that stay. preparing: on the device, to prepare. facts: bounds of the graph.
    """

    reading: int
    names: int
    preparing: int
    facts: Facts


def rows_on_device_need(
    edges: EdgeList, options: BuildOptions, threads: int, closely: bool
) -> HeldOnDeviceNeed:
    """Return the bytes that ``rows_on_device`` holds. closely: as in facts_of."""
    facts = facts_of(edges, dense_domain(edges), options.directed, True, 1, ONE, closely)
    reading = threads * reading_bytes(facts) + dictionary_bytes(facts)
    if facts.encoded:
        reading += 2 * (8 + facts.weight_bytes) * facts.rows  # as read, and as dense ids
    preparing = gpu_prepare.bytes_needed(
        facts.rows, facts.domain, facts.directed, weighted=edges.weight is not None
    )
    names = 2 * 4 * facts.vertices + dictionary_bytes(facts)
    return HeldOnDeviceNeed(reading, names, preparing, facts)


def rows_on_device(
    edges: EdgeList, options: BuildOptions, executor: Executor, device: Device
) -> HeldOnDevice:
    """Read an edge list and make its rows on a device, with weights if it has any.

    Raises InputError for bad input, DeviceMemoryError if the device has no room.
    """
    weighing = weighing_of(edges, options)
    combining = None if weighing is None else weighing.combining
    ids.compile_reading(edges.id_type)
    with ThreadPoolExecutor(1) as beside:
        compiled = beside.submit(
            gpu_prepare.warm_up, device, edges.rows, options.directed, combining
        )
        numbering, columns, rounding = _read(edges, executor, device)
        compiled.result()
    edges.check_unchanged()
    batches = [columns]
    del columns  # so that edges can be freed before they are sorted
    prepare = partial(_prepare, device, batches, numbering.domain, options.directed, combining)
    rows = executor.once("prepare", prepare)
    info = _info(edges, options, device, rows, weighing, rounding)
    return HeldOnDevice(rows, info, _names(device, rows, numbering), numbering)


def _read(edges: EdgeList, executor: Executor, device: Device) -> tuple[Ids, Columns, Rounding]:
    edges = with_bounds(edges, executor)
    domain, weighted = dense_domain(edges), edges.weight is not None
    source: ParquetSource | HeldSource
    rounding = Rounding()
    if domain is None:
        dense = read_edges(edges, executor)
        numbering, source = dense.ids, HeldSource(dense.batches, dense.ids.domain)
        step, rounding = "copy", dense.rounding
    else:
        numbering = Ids(edges.id_type, domain, None)
        source = ParquetSource(edges, tuple(edges.chunks()), domain)
        step = "read"

    def spread(copy: Callable[[int], None], chunks: list[int], rows: Sequence[int]) -> None:
        executor.step(step, copy, chunks, sizes=rows)

    columns, read_now = copy_edges(device, source, IN_MEMORY.batch_rows, spread, weighted)
    rounding.include(*read_now.as_tuple())
    return numbering, columns, rounding


def _prepare(
    device: Device, batches: list[Columns], domain: int, directed: bool, combining: Combining | None
) -> DeviceRows:
    try:
        with sums_that_fit():
            return gpu_prepare.prepare(device, batches, domain, directed, combining)
    finally:
        with device.use() as cupy:
            cupy.get_default_memory_pool().free_all_blocks()


def _info(
    edges: EdgeList,
    options: BuildOptions,
    device: Device,
    rows: DeviceRows,
    weighing: Weighing | None,
    rounding: Rounding,
) -> GraphInfo:
    order = VertexOrder(*gpu_prepare.degree_classes(device, rows.degree))
    layout = plan_layout(order, 1, ONE, 0, options.directed)
    table = PositionTable(MemoryScratch(), ())
    counted = Counted(order, table, no_delegates(order), layout, rows.self_loops)
    entries = dict.fromkeys(SUBGRAPHS, 0) | {"nn": len(rows.targets)}
    weights = None
    if weighing is not None and edges.weight is not None:
        extremes = _extremes(device, rows.weights, weighing)
        weights = WeightInfo(edges.weight.column, *weighing, *extremes, *rounding.as_tuple())
    return graph_info(edges, options, counted, entries, weights)


def _extremes(device: Device, bits: Any, weighing: Weighing) -> tuple[float, float, float]:
    """Return the least, the greatest and the mean weight; zeros if there are no weights."""
    if not len(bits):
        return 0.0, 0.0, 0.0
    with device.use():
        values = bits.view(np.dtype(weighing.kind))
        found = values.min(), values.max(), values.sum(dtype=np.float64) / len(bits)
        return float(found[0]), float(found[1]), float(found[2])


def _names(device: Device, rows: DeviceRows, numbering: Ids) -> VertexNames:
    index = gpu_prepare.positions_by_id(device, rows.position)
    with device.use():
        return names_by_position(numbering, index, rows.id_of_position.get())
