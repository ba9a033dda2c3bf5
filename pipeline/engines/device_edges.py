"""An edge list in rows that are made of it on a device, and searched there."""

from __future__ import annotations

import numpy as np

from ...kernels.gpu import prepare as gpu_prepare
from ...kernels.gpu import search as gpu_search
from ...kernels.gpu.device import Device, DeviceMemoryError
from ...kernels.gpu.graph import Rows, derive
from ...kernels.gpu.search import GpuSearch
from ...partition.disk.memory import format_bytes
from ...partition.input import ids
from ...partition.input.edges import EdgeList
from ...partition.store.grid import ONE
from ..build.plan import facts_of
from ..build.read import DenseEdges, dense_domain, read_edges
from ..results.checkpoint import Checkpoint
from ..results.found import Found
from ..run.execute import Executor
from .device import (
    by_dense_id,
    give_back,
    method_of,
    search_of,
    search_on_device,
    slices_bytes,
)
from .edges import edge_search_bytes, subject_of
from .engine import Need, Strategy, Subject


class DeviceRowsEngine:
    """An edge list read into memory, made into rows on a device and searched there."""

    ranks = 1
    once = False
    in_memory = True

    def __init__(
        self,
        edges: EdgeList,
        directed: bool,
        executor: Executor,
        device: Device,
        strategy: Strategy = "rows",
    ) -> None:
        self.subject: Subject | None = None
        self.device = device
        self.gpu: GpuSearch | None = None
        self._edges = edges
        self._directed = directed
        self._executor = executor
        self._strategy: Strategy = strategy
        self._slices_bytes = 0
        self._id_of_position = np.empty(0, np.uint32)
        self._domain = 0

    @property
    def method(self) -> str:
        return method_of(self.gpu)

    def need(self) -> Need:
        edges, directed, device = self._edges, self._directed, self.device
        facts = facts_of(edges, dense_domain(edges), directed, True, 1, ONE)
        entries = edges.rows if directed else 2 * edges.rows
        preparing = gpu_prepare.bytes_needed(edges.rows, facts.domain, directed)
        searching = gpu_search.bytes_needed(facts.domain, entries, directed) + 8 * edges.rows
        most = max(preparing, searching)
        if most > device.memory_bytes:
            raise DeviceMemoryError(
                f"{format_bytes(device.memory_bytes)} may be held on {device}, and {edges.rows:,} "
                f"rows need {format_bytes(most)} there"
            )
        left = device.memory_bytes - searching
        self._slices_bytes = slices_bytes(self._strategy, facts.domain, entries, left)
        most = max(most, searching + self._slices_bytes)
        return Need(edge_search_bytes(edges, directed, self._executor.threads), most)

    def compile(self) -> None:
        if self.gpu is not None:
            self.gpu.warm_up()

    def load(self) -> None:
        ids.compile_reading(self._edges.id_type)
        gpu_prepare.warm_up(self.device, self._edges.rows, self._directed)
        dense = read_edges(self._edges, self._executor)
        self.subject = subject_of(self._edges, dense, self._directed, "csr")
        self._domain = dense.ids.domain
        self._executor.once("prepare", lambda: self._prepare(dense))

    def _prepare(self, dense: DenseEdges) -> None:
        with self.device.use() as cupy:
            batches = [(cupy.asarray(src), cupy.asarray(dst)) for src, dst in dense.batches]
            dense.batches.clear()
            rows = gpu_prepare.prepare(self.device, batches, self._domain, self._directed)
            forward = Rows(rows.offsets, rows.targets)
            reverse = Rows(rows.reverse_offsets, rows.reverse_targets)
            self._id_of_position = rows.id_of_position.get()
            del rows
            cupy.get_default_memory_pool().free_all_blocks()
            graph = derive(self.device, forward, reverse if self._directed else None)
            self.gpu = search_of(
                self.device, graph, self._strategy if self._slices_bytes else "rows"
            )

    def search(
        self, source: int, max_depth: int | None = None, checkpoint: Checkpoint | None = None
    ) -> Found:
        """checkpoint: not used; a search takes milliseconds."""
        assert self.gpu is not None
        position = int(np.flatnonzero(self._id_of_position == source)[0])
        found = search_on_device(self.gpu, position, max_depth)
        return by_dense_id(found, self._id_of_position, self._domain)

    def close(self) -> None:
        self.gpu = None
        give_back(self.device)
