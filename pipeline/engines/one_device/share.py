"""A rank's share of a store on a device, for programs: the edges of its partitions, in rows of all
vertices. A single rank has the whole graph.

Targets are in device memory as far as they fit, the rest in pinned host memory, as for searches
(search.py). Weights must be on the device, since they are read as often as targets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....kernels.base.numbering import by_table
from ....kernels.base.team import Team
from ....kernels.gpu.device import Device, DeviceMemoryError
from ....kernels.gpu.graph import MOST_VERTICES, Array, Rows, offsets_dtype
from ....kernels.gpu_programs.rows import ProgramGraph, cut, cut_bytes, degrees_of
from ....kernels.gpu_programs.stored_rows import RowsMaker, Subgraph, making_bytes
from ....partition.disk.memory import format_bytes
from ....partition.store.layout import kept_subgraphs, numberings
from ....partition.store.store import Store
from ..operations.program import DeviceProgram, ReadRows, SharedProgram, counts_of
from ..ranks.graph import loops_bytes
from ..ranks.routes import owned

SLACK = 16 << 20  # bytes for small arrays, and for what the memory pool rounds up
_TELLING = 256 << 20  # bytes that NCCL holds, about

_REVERSE = "reverse-"


class ShareRoom(NamedTuple):
    """The split of a share's targets between device memory and host memory. near: entries of
    targets on the device. host, device: the most bytes held in each memory.
    """

    near: int
    host: int
    device: int


class _Part(NamedTuple):
    """A subgraph of one partition. reversed: whether its edges are turned around, as in
    Subgraph.
    """

    partition: int
    name: str
    reversed: bool = False


class _Shard(NamedTuple):
    """Entries of a subgraph, the first of which is number ``begin``."""

    begin: int
    targets: NDArray[np.uint32]
    weights: NDArray[np.uint32] | None


@dataclass(frozen=True)
class DeviceShare:
    """The share of a store that rank ``rank`` of ``ranks`` ranks holds."""

    store: Store
    rank: int = 0
    ranks: int = 1

    def room(self, program: DeviceProgram, device: Device, reserved_bytes: int = 0) -> ShareRoom:
        """Return the split of the share's targets between device memory and host memory.

        reserved_bytes: bytes that are held on the device besides. Raises DeviceMemoryError if the
        arrays that must be on the device do not fit.
        """
        store, info, weighted = self.store, self.store.info, program.weighted
        ways = self._ways(program)
        n, counts = info.vertices, [sum(map(self._entries, parts)) for parts in ways]
        entries = sum(counts)
        if n > MOST_VERTICES:
            raise DeviceMemoryError(f"{n:,} vertices are too many for a GPU")
        leaving = 0
        if weighted and self._takes_degrees_apart(program):
            leaving = 4 * max(map(self._entries, self._parts(by_target=False)), default=0)
        offsets = 8 * (n + 1)  # at most, for a subgraph
        shards = store.largest_shard * (1 + weighted)
        several = len(ways[0]) > 1
        making = making_bytes(n, max(counts), several, weighted) + 2 * offsets + shards
        making = max(making, leaving + 2 * offsets) + 4 * info.delegates
        cuts = sum(cut_bytes(device, n, count) for count in counts)
        running = cuts + program.device_bytes(n, entries) + loops_bytes(info)
        slack = SLACK
        if self.ranks > 1 and isinstance(program, SharedProgram):
            running += program.exchange_bytes(n)
            running += cuts  # a second cut, of some of the rows
            slack += _TELLING
        rows = sum((n + 1) * offsets_dtype(count).itemsize for count in counts)
        least = rows + max(making + 8 * n, running) + slack + reserved_bytes
        least += 4 * entries * 2 * weighted  # targets, and their weights
        if least > device.memory_bytes:
            of_rank = "" if self.ranks == 1 else f"rank {self.rank} of {self.ranks}: "
            raise DeviceMemoryError(
                f"{of_rank}only {format_bytes(device.memory_bytes)} of memory may be used on "
                f"{device}, but this question needs {format_bytes(least)} there"
            )
        near = entries
        if not weighted:
            near = min(entries, (device.memory_bytes - least) // 4)
            least += 4 * near
        loading = shards + 2 * offsets + leaving + 4 * info.delegates
        found = program.held_bytes(counts_of(store))
        host = 4 * (entries - near) + max(loading, found)
        return ShareRoom(near, host, least)

    def fits_near(self, program: DeviceProgram, device: Device) -> bool:
        """Return whether the device has room for all targets of the share."""
        try:
            near = self.room(program, device).near
        except DeviceMemoryError:
            return False
        return near == sum(map(self._entries, chain(*self._ways(program))))

    def load(
        self,
        program: DeviceProgram,
        device: Device,
        near: int,
        team: Team,
        check: Callable[[], None] = lambda: None,
    ) -> ProgramGraph:
        """Return the share as a graph on the device. Its degrees count the edges of this share
        only.

        near: as in ShareRoom. check: called before each file.
        """
        info, weighted = self.store.info, program.weighted
        loading = _Loading(self, device, team, check)
        parts, *others = self._ways(program)
        maker = RowsMaker(device, info.vertices, near, weighted, len(parts))
        rows, weights = self._rows(loading, parts, maker, weighted)
        kind, degree = self._weight_type(program), None
        if program.wants_degrees and self._takes_degrees_apart(program):
            degree = self._degrees(device, loading, maker, kind)
        elif program.wants_degrees:
            degree = degrees_of(device, rows.offsets, weights, kind)
        with device.use() as cupy:
            cupy.get_default_memory_pool().free_all_blocks()  # NCCL cannot allocate from the pool
        way, in_order = cut(device, rows), partial(self.store.id_order, team)
        graph = ProgramGraph(
            device,
            way,
            not info.directed,
            weights,
            kind,
            degree,
            id_order=in_order,
            loops=partial(self.store.loops, team),
        )
        for parts in others:
            left = near - len(rows.near)
            maker = RowsMaker(device, info.vertices, left, weighted, len(parts))
            rows, weights = self._rows(loading, parts, maker, weighted)
            graph = replace(graph, back=cut(device, rows), back_weights=weights)
        return graph

    def _rows(
        self, loading: _Loading, parts: Sequence[_Part], maker: RowsMaker, weighted: bool
    ) -> tuple[Rows, Array | None]:
        """Return the rows of all vertices that some subgraphs hold, and the entries' weights."""
        for part in parts:
            subgraph = loading.subgraph(part)
            if part.reversed:
                for shard in loading.shards(part):
                    maker.count_reversed(subgraph, shard.targets)
            else:
                maker.count(subgraph, loading.offsets(part))
        maker.begin()
        for part in parts:
            subgraph = loading.subgraph(part)
            with maker.placing(subgraph, lambda part=part: loading.offsets(part)) as place:
                for shard in loading.shards(part, weighted):
                    place(*shard)
        return maker.finish()

    def _degrees(
        self, device: Device, loading: _Loading, maker: RowsMaker, weight_type: str | None
    ) -> Array:
        """Return the out-degrees of the vertices, for a graph whose loaded rows hold incoming
        edges.
        """
        with device.use() as cupy:
            degree = cupy.zeros(self.store.info.vertices, np.float64)
            for part in self._parts(by_target=False):
                offsets = cupy.asarray(loading.offsets(part))
                weights = None if weight_type is None else cupy.asarray(loading.weights(part))
                more = degrees_of(device, offsets, weights, weight_type)
                maker.add(degree, loading.subgraph(part).rows, more)
            return degree

    def like(self, program: DeviceProgram, device: Device, near: int) -> ProgramGraph:
        """Return a graph of one vertex with the array types that ``load`` would give, to compile
        kernels for.
        """
        counts = [sum(map(self._entries, parts)) for parts in self._ways(program)]
        kind, cuts, left = self._weight_type(program), [], near
        with device.use() as cupy:
            for entries in counts:
                offsets = cupy.zeros(2, offsets_dtype(entries))
                far = device.pinned(1, np.uint32)[:0] if left < entries else None
                cuts.append(cut(device, Rows(offsets, cupy.empty(0, np.uint32), far)))
                left -= min(left, entries)
            weights = None if kind is None else cupy.empty(0, np.uint32)
            degree = cupy.zeros(1) if program.wants_degrees else None
        back = cuts[1] if len(cuts) > 1 else None
        return ProgramGraph(
            device, cuts[0], False, weights, kind, degree, ranks=self.ranks, back=back
        )

    def _weight_type(self, program: DeviceProgram) -> str | None:
        weights = self.store.info.weights
        return weights.kind if program.weighted and weights is not None else None

    def _takes_degrees_apart(self, program: DeviceProgram) -> bool:
        """Return whether degrees must be read from other rows than the loaded ones."""
        return (
            program.wants_degrees
            and program.rows == ReadRows.BY_TARGET
            and self.store.info.directed
        )

    def _ways(self, program: DeviceProgram) -> list[Sequence[_Part]]:
        """Return the subgraphs to load, for each set of rows that a program reads."""
        if program.rows == ReadRows.BOTH and self.store.info.directed:
            return [self._parts(by_target=True), self._parts(by_target=False)]
        return [self._parts(program.rows != ReadRows.BY_SOURCE)]

    def _parts(self, by_target: bool) -> Sequence[_Part]:
        """Return the subgraphs to load. by_target: whether rows are by the vertices that edges
        enter, rather than leave.
        """
        info = self.store.info
        kept = kept_subgraphs(info.grid, info.directed)
        names = [(name, False) for name in kept if not name.startswith(_REVERSE)]
        if by_target and info.directed:
            names = [(name, False) for name in kept if name.startswith(_REVERSE)]
            if f"{_REVERSE}nn" not in kept:
                names.append(("nn", True))
        held = owned(self.rank, self.ranks, info.partitions)
        return [_Part(p, *name) for p in held for name in names]

    def _entries(self, part: _Part) -> int:
        return self.store.entries(part.partition, part.name)


class _Loading:
    """A reader of a store's share. Shards are read into pinned memory, from which a device copies
    directly.
    """

    def __init__(
        self, share: DeviceShare, device: Device, team: Team, check: Callable[[], None]
    ) -> None:
        self._store, self._device, self._team, self._check = share.store, device, team, check
        self._delegates = by_table(share.store.delegates(team))
        self._buffer, self._bits = self._room(), np.empty(0, np.uint32)

    def _room(self) -> NDArray[np.uint32]:
        return self._device.pinned(max(1, self._store.largest_shard // 4), np.uint32)

    def subgraph(self, part: _Part) -> Subgraph:
        info = self._store.info
        return Subgraph(
            *numberings(part.partition, part.name, info.partitions, info.grid, self._delegates),
            part.reversed,
        )

    def offsets(self, part: _Part) -> NDArray:
        self._check()
        return self._store.offsets(part.partition, part.name, self._team)

    def weights(self, part: _Part) -> NDArray[np.uint32]:
        return self._store.weights(part.partition, part.name, self._team)

    def shards(self, part: _Part, weighted: bool = False) -> Iterator[_Shard]:
        """Yield the shards of a subgraph. A shard is valid until the next one is requested."""
        store, at = self._store, 0
        if weighted and not len(self._bits):
            self._bits = self._room()
        for file in store.shards(part.partition, part.name):
            self._check()
            targets = store.read_shard(part.partition, part.name, file, self._buffer, self._team)
            bits = store.read_weights(file, self._bits, self._team) if weighted else None
            yield _Shard(at, targets, bits)
            at += len(targets)
            with self._device.use() as cupy:
                cupy.cuda.Device().synchronize()  # the copy from pinned memory must end first
