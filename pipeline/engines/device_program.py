"""Programs that have a kernel of their own for a device: what is loaded there, and how they run.

Targets stand where those of searches do (device.py): in the device's memory, and in pinned host
memory those for which there is no room. Weights are looked at as often as targets, and have to
stand on the device.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ...kernels.base.team import Team
from ...kernels.gpu.device import Device, DeviceMemoryError
from ...kernels.gpu.graph import MOST_SHORT, MOST_VERTICES, Array, Rows
from ...kernels.gpu_programs.rows import (
    ProgramGraph,
    add_weights,
    cut,
    cut_bytes,
)
from ...partition.disk.memory import format_bytes
from ...partition.store.store import Store
from ..results.checkpoint import Checkpoint
from ..run.plan import fits
from .device import copy_rows, give_back, load_rows
from .engine import Need, Subject
from .memory import graph_bytes
from .operations.program import DeviceProgram, Given, Program, Tell, counts_of

_SLACK = 16 << 20  # small arrays, what the pool rounds up


class _Room(NamedTuple):
    """near: entries of targets on the device. host, device: bytes held at most."""

    near: int
    host: int
    device: int


class DeviceProgramEngine:
    """The rows that a program goes through, on a device."""

    ranks = 1
    once = False
    in_memory = True

    def __init__(
        self,
        store: Store,
        subject: Subject | None,
        program: DeviceProgram,
        device: Device,
        threads: int,
        beside: int = 0,
    ) -> None:
        self.subject = subject
        self.device = device
        self._store = store
        self._program = program
        self._threads = threads
        self._beside = beside
        self._graph: ProgramGraph | None = None

    @property
    def method(self) -> str:
        tiered = self._graph is not None and self._graph.cut.rows.far is not None
        return "on a device, tiered" if tiered else "on a device"

    def need(self) -> Need:
        room = self._room(self._program)
        return Need(room.host + self._beside, room.device)

    def has_room_for(self, program: Program, limit: int, beside: int = 0) -> bool:
        mine, directed = self._program, self._store.info.directed
        if not isinstance(program, DeviceProgram) or program.weighted != mine.weighted:
            return False
        if (directed and program.into != mine.into) or program.wants_degrees > mine.wants_degrees:
            return False
        try:
            near = self._room(program).near
        except DeviceMemoryError:
            return False
        held = program.held_bytes(counts_of(self._store))
        return near >= self._room(mine).near and fits(held + beside, limit)

    def _room(self, program: DeviceProgram) -> _Room:
        """Raises DeviceMemoryError where not even what must be on the device fits."""
        store, device = self._store, self.device
        info = store.info
        n, entries = info.vertices, sum(info.subgraph_edges.values())
        if program.weighted and info.partitions > 1:
            raise DeviceMemoryError(
                f"weights of a store of {info.partitions} partitions are not loaded on a device"
            )
        if n > MOST_VERTICES:
            raise DeviceMemoryError(f"{n:,} vertices are too many for a device")
        wide = entries >= MOST_SHORT or np.dtype(np.uint64) in store.offsets_types()
        apart = self._takes_degrees_apart(program)
        offsets = (n + 1) * (8 if wide else 4) * (2 if apart else 1)
        least = offsets + cut_bytes(device, n, entries) + program.device_bytes(n, entries) + _SLACK
        if self._program.wants_degrees and not program.wants_degrees:
            least += 8 * n  # they are there for another one
        if program.weighted:  # targets, their weights, and those that degrees are made of
            least += 4 * entries * (3 if apart else 2)
        if least > device.memory_bytes:
            raise DeviceMemoryError(
                f"{format_bytes(device.memory_bytes)} may be held on {device}, and this needs "
                f"{format_bytes(least)} there"
            )
        near = entries
        if not program.weighted:
            near = min(entries, (device.memory_bytes - least) // 4)
            least += 4 * near
        loading = store.largest_shard + 16 * n  # a shard, and offsets twice
        merged = graph_bytes(store) if info.partitions > 1 else 0
        weights = 4 * entries if program.weighted else 0
        found = program.held_bytes(counts_of(store))
        host = 4 * (entries - near) + merged + max(loading + weights, found)
        return _Room(near, host, least)

    def _takes_degrees_apart(self, program: DeviceProgram) -> bool:
        """Whether the rows that tell degrees are others than those that are gone through."""
        return program.wants_degrees and program.into and self._store.info.directed

    def compile(self, program: Program | None = None) -> None:
        asked = program or self._program
        assert isinstance(asked, DeviceProgram)
        if self._graph is not None:
            asked.compile_on(self._graph)

    def load(self) -> None:
        if self._graph is not None:
            return
        store, team = self._store, Team(self._threads)
        near = self._room(self._program).near
        load = self._rows if store.info.partitions == 1 else self._merged_rows
        rows, leaving = load(near, team)
        weights = weight_type = degree = None
        if self._program.weighted:
            assert store.info.weights is not None
            weight_type = store.info.weights.kind
            weights = self._weights(self._name, team)
        if self._program.wants_degrees and weight_type is None:
            with self.device.use():
                degree = (leaving[1:] - leaving[:-1]).astype(np.float64)
        elif self._program.wants_degrees:
            own = self._weights("nn", team) if self._takes_degrees_apart(self._program) else weights
            degree = add_weights(self.device, leaving, own, str(weight_type))
        twice = not store.info.directed
        of = cut(self.device, rows), twice, weights, weight_type, degree
        self._graph = ProgramGraph(self.device, *of)

    @property
    def _name(self) -> str:
        """Of the rows that the program goes through."""
        return "reverse-nn" if self._program.into and self._store.info.directed else "nn"

    def _rows(self, near: int, team: Team) -> tuple[Rows, Array]:
        """Those that the program goes through, and offsets of those of edges that leave."""
        store = self._store
        rows = load_rows(store, self._name, self.device, near, team)
        if not self._takes_degrees_apart(self._program):
            return rows, rows.offsets
        with self.device.use() as cupy:
            return rows, cupy.asarray(store.offsets(0, "nn", team))

    def _merged_rows(self, near: int, team: Team) -> tuple[Rows, Array]:
        """The same of several partitions."""
        graph = self._store.graph(team)
        gone_through = graph.offsets, graph.targets
        if self._program.into:
            gone_through = graph.reverse_offsets, graph.reverse_targets
        rows = copy_rows(self.device, *gone_through, near)
        with self.device.use() as cupy:
            return rows, cupy.asarray(graph.offsets)

    def _weights(self, name: str, team: Team) -> Array:
        bits = self._store.weights(0, name, team)
        with self.device.use() as cupy:
            return cupy.asarray(bits)

    def run(
        self,
        checkpoint: Checkpoint | None,
        tell: Tell,
        program: Program | None = None,
        spare: int = 0,
    ) -> Given:
        assert self._graph is not None
        asked = program or self._program
        assert isinstance(asked, DeviceProgram)
        spare_there = self.device.memory_bytes - self._room(asked).device
        return asked.run_on(replace(self._graph, spare=spare_there), checkpoint, tell)

    def close(self) -> None:
        self._graph = None
        give_back(self.device)
