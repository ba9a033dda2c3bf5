"""An edge list that is asked time and again: held in the rows that a store of it would have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from ...kernels.bfs.cpu import compile_search
from ...kernels.gpu.device import Device
from ...partition.input.edges import EdgeList
from ...partition.store.layout import offsets_dtype
from ..build.held import HeldGraph, held_need, hold
from ..build.prepare import BuildOptions, compile_tasks
from ..run.execute import Executor
from ..run.records import graph_record
from .edges import subject_of
from .engine import CODE_BYTES, Need, SearchEngine, by_footers_first
from .memory import HostRows, search_bytes

if TYPE_CHECKING:
    from .one_device.rows import HeldRows


@runtime_checkable
class KeepsRows(Protocol):
    """A search engine whose rows programs may go through, too."""

    @property
    def held(self) -> HeldGraph | HeldRows | None:
        """None before they are loaded."""
        ...


def engines_of_open_edges(
    edges: EdgeList, options: BuildOptions, device: Device | None, executor: Executor
) -> list[SearchEngine]:
    """Each KeepsRows, the best first. device: None for the CPU."""
    engines: list[SearchEngine] = [OpenEdgesEngine(edges, options, executor)]
    if device is None:
        return engines
    from .one_device.edge_list import DeviceRowsEngine

    return [DeviceRowsEngine(edges, options, executor, device, "auto", keeps=True), *engines]


class OpenEdgesEngine(HostRows):
    """An edge list in the rows that a store of it would have, to be searched time and again."""

    def __init__(self, edges: EdgeList, options: BuildOptions, executor: Executor) -> None:
        super().__init__(None, executor.threads)
        self.held: HeldGraph | None = None
        self._edges = edges
        self._options = options
        self._executor = executor

    def need(self) -> Need:
        return by_footers_first(self._need)

    def _need(self, closely: bool) -> Need:
        """Once it is loaded, of what stays."""
        need = held_need(self._edges, self._options, self._executor.threads, closely)
        making = need.making if self.graph is None else 0
        running = need.staying + search_bytes(need.facts.vertices)
        return Need(max(making, running) + (0 if self.graph else CODE_BYTES))

    def compile(self) -> None:
        edges = self._edges
        compile_tasks(edges.id_type, edges.rows, edges.weight is not None, load=False)
        compile_search(np.dtype(offsets_dtype(2 * edges.rows)))

    def load(self) -> None:
        held = hold(self._edges, self._options, self._executor)
        self.subject = subject_of(graph_record(held.info), held.ids, held.names, "csr")
        self.held, self.graph = held, held.graph()

    def close(self) -> None:
        super().close()
        self.held = None
