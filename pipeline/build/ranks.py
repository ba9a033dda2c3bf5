"""A build across workers with a device each. It writes the store of build.py, byte for byte.

Every rank copies its share of the edges to its device. Degrees are added up over all ranks, and
each rank computes the positions of vertices. Keys (cuda/prepare/prepare.cu) are sorted, and sent to
the rank that writes their shard. Shards are dealt out in order, with about the same number of keys
for each rank, whatever the partitions. The CPU does the steps before (the dictionary) and after
(the vertex table, offsets).
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...kernels.base.team import Team
from ...kernels.gpu import prepare as gpu_prepare
from ...kernels.gpu.device import Device, DeviceMemoryError, open_device
from ...kernels.gpu.peer_memory import PIECE_BYTES
from ...kernels.gpu.prepare import Columns, Degrees, SortedKeys
from ...kernels.prepare.csr import degree_dtype
from ...partition.disk.files import FileRecord
from ...partition.disk.memory import GROWTH_BYTES, format_bytes, tree_bytes
from ...partition.disk.scratch import FileScratch
from ...partition.input.sources import EdgeSource, share_out
from ...partition.store import degrees as counting
from ...partition.store.layout import Layout, plan_layout
from ...partition.store.order import Threshold, VertexOrder, choose_threshold
from ...partition.store.runs import PositionTable
from ..ranks.communicator import Communicator, barrier
from ..ranks.jobs import Room, Way
from ..ranks.lease import lease
from ..ranks.nccl import device_arrays
from ..ranks.on_workers import Done, run_on_workers, stop, workers_of
from ..run.cluster import Cluster
from ..run.resources import TIMEOUT_SECONDS, Resources
from .count import Counted, no_delegates
from .device import (
    DeviceShards,
    ShardRows,
    ShardWriter,
    device_shards,
    entries_between,
    entries_of,
    number_vertices,
    order_vertices,
    places_of,
    save_vertices,
    shards_of,
)
from .edges_on_device import copy_batches
from .generated import combine, exchange_keys, total
from .prepare import BuildOptions, Preparation
from .write_store import finish_store, make_folders


class Share(NamedTuple):
    """A rank's part of a build. records: of the shards that the rank wrote, in order.

    The other facts are the same on all ranks: distinct and counts (VertexOrder), threshold, loops,
    and the entries of each subgraph, duplicates included. no_room: the reason why nothing was
    written; empty if the shards were.
    """

    records: list[FileRecord]
    distinct: NDArray
    counts: NDArray
    threshold: Threshold
    loops: int
    entries: list[int]
    no_room: str = ""


@dataclass(frozen=True)
class BuildJob:
    """A build of the edges of ``source`` into the folder ``output``. Implements RankJob; ``run``
    returns a Share.

    rows: of the input. spans: the number of spans of dense ids in which the vertex table is left in
    scratch. threads: the number of a rank's threads that read or write at once. host_bytes: the
    bytes that a rank holds on its host.
    """

    source: EdgeSource
    scratch: FileScratch
    output: Path
    options: BuildOptions
    rows: int
    spans: int
    batch_rows: int
    threads: int
    host_bytes: int
    device: str
    device_limit: int | None
    timeout: float = TIMEOUT_SECONDS

    @property
    def paths(self) -> list[str]:
        return [str(self.output), self.scratch.folder]

    def for_device(self, device: str, why: str = "") -> BuildJob:
        if device != "cuda":
            raise DeviceMemoryError(why)
        return replace(self, device=device)

    def with_extra(self, extra_bytes: int) -> BuildJob:
        return self  # a build needs no more

    def fresh_attempt(self) -> BuildJob:
        return self  # a second attempt writes the same bytes

    def get_ready(self, rank: int, size: int, threads: int) -> list[Way]:
        device = open_device(0, self.device_limit)
        domain, directed = self.source.domain, self.options.directed
        directions = 2 if directed else 1
        grid = self.options.places_for(self.rows)[1]
        copies = grid.rows if grid else 2  # rows of a vertex; 2: with those of delegates
        self._check_room(
            device, size, self._share(rank, size)[1], directions * domain * copies // size
        )
        gpu_prepare.warm_up(device, self.rows, directed)
        return [Way(self.host_bytes, self)]

    def run(self, communicator: Communicator, team: Team) -> Share:
        device = open_device(0, self.device_limit)
        try:
            with device_arrays(communicator, device) as communicator:
                share = self._run(device, communicator)
                barrier(communicator)  # no rank leaves while others write: it would seem lost
                return share
        finally:
            device.cupy.get_default_memory_pool().free_all_blocks()

    def _share(self, rank: int, size: int) -> tuple[list[int], int]:
        """Return a rank's chunks of the source, and the number of their rows."""
        groups = share_out(self.source.chunk_rows, size)
        chunks = groups[rank] if rank < len(groups) else []
        return chunks, sum(self.source.chunk_rows[chunk] for chunk in chunks)

    def _check_room(
        self, device: Device, size: int, own_rows: int, subgraph_rows: int, delegates: int = 0
    ) -> None:
        """Raise DeviceMemoryError if the device is too small. own_rows: the input rows that the
        rank copies, or whose keys it receives.
        """
        domain = self.source.domain
        rows = max(own_rows, -(-self.rows // size))
        need = gpu_prepare.bytes_needed(
            rows, domain, self.options.directed, subgraph_rows, delegates
        )
        # While degrees are added up: the rank's own, those of its part from every rank, the sums.
        need += 3 * domain * np.dtype(degree_dtype(self.rows)).itemsize
        need += (size - 1) * PIECE_BYTES  # arrive at once if ranks cannot read each other's memory
        if need > device.memory_bytes:
            raise DeviceMemoryError(
                f"only {format_bytes(device.memory_bytes)} of memory may be used on {device}, but "
                f"a share of the edges needs {format_bytes(need)}"
            )

    def _run(self, device: Device, communicator: Communicator) -> Share:
        rank, size, options = communicator.rank, communicator.size, self.options
        batches = self._copy_edges(device, *self._share(rank, size), communicator)
        degrees = self._count_degrees(device, batches, communicator)
        loops = int(total(communicator, degrees.loops.get())[0])
        positions = gpu_prepare.position_vertices(device, degrees)
        spans = tuple(counting.spans_of(self.source.domain, self.spans))
        table = PositionTable(self.scratch, spans)
        if rank == 0:
            save_vertices(self.scratch, self.source.domain, self.spans, degrees, positions)
            number_vertices(table, options.order, len(positions.id_of_position))
        del degrees
        barrier(communicator)
        order = order_vertices(device, positions, table, options.order)
        partitions, grid = options.places_for(self.rows)
        threshold = no_delegates(order)
        if grid is None:
            classes = gpu_prepare.count_classes(device, batches, positions, order.counts)
            classes = total(communicator, classes)
            threshold = choose_threshold(order, classes, partitions, options.threshold)
        layout = plan_layout(order, partitions, grid, threshold.delegates, options.directed)
        counted = (order.distinct, order.counts, threshold, loops)

        places, first_rows = places_of(layout, _on_device(device, layout, self.scratch))
        if places.rows > gpu_prepare.MOST_ROWS:
            why = f"{places.rows:,} rows in all subgraphs are too many for a GPU"
            return Share([], *counted, [], why)
        mine = [gpu_prepare.sorted_keys(device, batches, positions, places).keys]
        shards = shards_of(layout, first_rows)
        bounds = [shard.first for shard in shards] + [places.rows]
        own_keys = entries_between(device, mine[0], bounds)
        keys = total(communicator, own_keys)
        entries = total(communicator, entries_between(device, mine[0], first_rows))
        cuts = deal_out(keys, size)
        held = [int(keys[first:stop].sum()) for first, stop in pairwise(cuts)]
        most_rows = max(bounds[stop] - bounds[first] for first, stop in pairwise(cuts))
        try:  # (Sizes are the same on all ranks, but a device may have less memory.)
            self._check_room(device, size, -(-max(held) // 2), most_rows, layout.delegates)
            refused = ""
        except DeviceMemoryError as error:
            refused = str(error)
        told = communicator.exchange([[np.frombuffer(refused.encode(), np.uint8)]] * size)
        if why := next((message[0].tobytes().decode() for message in told if len(message[0])), ""):
            return Share([], *counted, [], why)
        del positions

        first, stop = cuts[rank], cuts[rank + 1]
        starts = np.append(0, np.cumsum(own_keys))[cuts].tolist()
        came = exchange_keys(device, mine, starts, bounds[first], communicator)
        rows = device_shards(device, SortedKeys(came), bounds[stop] - bounds[first], bounds[first])
        del came
        records = self._write(device, layout, rows, shards[first:stop], communicator)
        return Share(records, *counted, entries.tolist())

    def _copy_edges(
        self, device: Device, chunks: list[int], rows: int, communicator: Communicator
    ) -> list[Columns]:
        """Copy the rank's edges to its device; several threads read chunks, batch by batch."""
        sizes = [self.source.chunk_rows[chunk] for chunk in chunks]
        starts = np.append(0, np.cumsum(sizes)).astype(np.int64).tolist()
        src, dst = (device.cupy.empty(rows, np.uint32) for _ in range(2))

        def copy(i: int) -> None:
            batches = self.source.batches([chunks[i]], self.batch_rows)
            place = starts[i], starts[i + 1]
            copy_batches(device, batches, (src, dst), *place, communicator.check)

        self._all(copy, len(chunks))
        return [(src, dst)]

    def _count_degrees(
        self, device: Device, batches: list[Columns], communicator: Communicator
    ) -> Degrees:
        """Return the degrees over all ranks, on each rank. The self-loops are the rank's own."""
        cupy, directed = device.cupy, self.options.directed
        own_degrees = gpu_prepare.count_degrees(
            device, batches, self.source.domain, self.rows, directed
        )
        degree = combine(device, own_degrees.degree, communicator, cupy.sum)
        out_degree = None
        if own_degrees.out_degree is not None:
            out_degree = combine(device, own_degrees.out_degree, communicator, cupy.sum)
        looped = combine(device, own_degrees.looped, communicator, cupy.max)
        return Degrees(degree, out_degree, looped, own_degrees.loops)

    def _write(
        self,
        device: Device,
        layout: Layout,
        rows: DeviceShards,
        shards: Sequence[ShardRows],
        communicator: Communicator,
    ) -> list[FileRecord]:
        make_folders(self.output, layout.partitions)
        writer = ShardWriter(device, layout, rows, shards, self.output, self.scratch)

        def write(number: int) -> FileRecord:
            communicator.check()  # stop writing when another rank has failed
            (record,) = writer.write(number)
            return record

        return self._all(write, len(shards))

    def _all(self, task: Any, count: int) -> list[Any]:
        """Run ``task`` on each number below ``count``, on several threads."""
        with ThreadPoolExecutor(self.threads) as pool:
            return list(pool.map(task, range(count)))


def deal_out(sizes: NDArray[np.int64], ranks: int) -> list[int]:
    """Cut a sequence of things into ``ranks`` parts of about equal size. Returns the first thing of
    each part, followed by the end.

    >>> deal_out(np.array([4, 4, 8, 0]), 2), deal_out(np.array([9]), 3)
    ([0, 2, 4], [0, 0, 1, 1])
    """
    middle = np.cumsum(sizes) - sizes / 2
    wanted = np.arange(1, ranks) * (sizes.sum() / ranks)
    return [0, *np.searchsorted(middle, wanted).tolist(), len(sizes)]


def _on_device(device: Device, layout: Layout, scratch: FileScratch) -> Any:
    """Return the global ids by position, on the device; None if they are the positions."""
    return None if layout.numbered_by_position else device.cupy.asarray(scratch.load("global"))


def build_files_on_workers(
    run: Preparation, cluster: Cluster, resources: Resources
) -> tuple[str, list[str]]:
    """Write the store's files into the folder of the run's work. Returns the names of the devices
    as text, and notes.

    With device "auto", all workers must have a GPU. Raises DeviceMemoryError if a device is too
    small or missing; a build on CPUs can follow then.
    """
    workers = workers_of(cluster)
    job = job_of(run, len(workers), cluster.threads, resources)
    room = partial(_check_room, run, cluster)
    with lease(cluster, job.timeout):
        try:
            ended: list[Done] = run.executor.step(
                "build",
                lambda _: run_on_workers(cluster, workers, job, room),
                [None],
                run.plan.budget.baseline + len(workers) * job.host_bytes,
            )
        except BaseException:  # Ctrl-C is raised here, not in the thread that waits for the ranks
            stop(cluster, workers)
            raise
    finish(run, ended[0].results)
    return str(ended[0].devices), ended[0].notes


def job_of(run: Preparation, ranks: int, threads: int, resources: Resources) -> BuildJob:
    """Return the job of the ranks. threads: of a worker; the job uses fewer if the plan has room
    for fewer only.
    """
    assert isinstance(run.scratch, FileScratch)
    # The steps of a CPU bound a task's bytes: it reads batches of edges, and writes shards.
    order, *steps = (run.plan.step(name) for name in ("order", "degrees", "scatter", "build"))
    threads = max(1, min(threads, min(step.at_once for step in steps) // ranks))
    task_bytes = max(step.task_bytes for step in steps)
    sending = 2 * ranks * PIECE_BYTES
    return BuildJob(
        source=run.source,
        scratch=run.scratch,
        output=run.output.resolve(),
        options=run.options,
        rows=run.edges.rows,
        spans=run.plan.shape.spans,
        batch_rows=run.plan.shape.batch_rows,
        threads=threads,
        host_bytes=order.shared_bytes + order.task_bytes + threads * task_bytes + sending,
        device=resources.device,
        device_limit=resources.device_memory_limit,
        timeout=resources.cluster.timeout,
    )


def finish(run: Preparation, shares: Sequence[Share]) -> None:
    """Write the remaining files of the store, after all ranks have written their shards. Raises
    DeviceMemoryError if they had no room.
    """
    first = shares[0]
    if first.no_room:
        raise DeviceMemoryError(first.no_room)
    order = VertexOrder(first.distinct, first.counts)
    if run.options.order != "degree":
        order = replace(order, global_of_position=run.scratch.load("global"))
    partitions, grid = run.options.places_for(run.edges.rows)
    delegates = first.threshold.delegates
    layout = plan_layout(order, partitions, grid, delegates, run.options.directed)
    spans = counting.spans_of(run.source.domain, run.plan.shape.spans)
    table = PositionTable(run.scratch, tuple(spans))
    counted = Counted(order, table, first.threshold, layout, first.loops)
    records = [[record] for share in shares for record in share.records]
    finish_store(run, counted, entries_of(layout, first.entries), records)


def _check_room(
    run: Preparation, cluster: Cluster, ranks: int, baseline: int, needs: Sequence[int]
) -> Room:
    """Return the room for the only way.

    Raises DeviceMemoryError, which names the least limit that would do, if a rank does not fit.
    """
    (need,) = needs
    limit = run.plan.budget.limit
    rank_bytes = baseline + need + GROWTH_BYTES
    least = tree_bytes() + ranks * (need + GROWTH_BYTES) if cluster.local else rank_bytes
    if least > limit:
        wanted = format_bytes(least).replace(" ", "")
        raise DeviceMemoryError(
            f"the memory limit of {format_bytes(limit)} is too small for {ranks} ranks with a GPU "
            f"each, which hold up to {format_bytes(need)} beside Python and libraries: "
            f"give --memory-limit {wanted} or more"
        )
    return Room(0)
