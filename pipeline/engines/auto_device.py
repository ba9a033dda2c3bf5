"""The device that ``--device auto`` stands for: a GPU, where an estimate says that it answers a
question sooner than the CPU. The estimate goes by what is known before edges are read.

A GPU answers later by what it takes to start: CuPy, a context, the kernels. It makes rows of edges
in less time, and works faster. What takes as long on both is left out, such as writing a result.
``benchmarks/gpu_commands.py`` measures the figures, and judges the choice.
"""

from __future__ import annotations

import os
from dataclasses import replace
from importlib.util import find_spec
from typing import Literal, NamedTuple

from ...kernels.gpu.driver import begin_driver
from ...partition.input.edges import EdgeList
from ...partition.store.store import Store
from ..build.prepare import BuildOptions
from ..questions.question import Cost, Form
from ..run.resources import Resources

Source = Literal["store", "edges", "scan"]
"""The input: a store; an edge list, to be put in rows; or an edge list, in one scan on CPUs."""

_START = 0.6
"""Seconds that a GPU takes to start."""

_READ: dict[Source, tuple[float, float]] = {
    "store": (16, 20),
    "edges": (500, 40),
    "scan": (150, 40),
}
"""Nanoseconds of a core for a row that is read, for the CPU and for a GPU: of a store, an entry."""

_DISK = 2
"""Nanoseconds for an entry that is read from disk, once for each pass over the edges."""

_ROWS_OF_VERTEX = 8  # of an edge list whose vertices are not counted yet

_HOST_BYTES = 1 << 30
"""Memory limit below which no GPU is used: CuPy and a context take half of it."""


class Size(NamedTuple):
    """The size of a task. rows: that are read. entries: of the rows of the graph, in which each
    edge of an undirected graph stands twice. ranks: that share the work.
    """

    source: Source
    rows: int
    entries: int
    vertices: int
    ranks: int = 1


class Estimate(NamedTuple):
    """Seconds on the CPU and on a GPU, without those that are the same on both."""

    cpu: float
    gpu: float

    @property
    def prefers_gpu(self) -> bool:
        return self.gpu < self.cpu


def estimate(cost: Cost, times: int | None, size: Size, threads: int, limit: int) -> Estimate:
    """Estimate the seconds of a question.

    times: how often the question does what ``cost`` is for; None for once for each vertex.
    threads: cores of each rank. limit: bytes of host memory.
    """
    often = size.vertices if times is None else times
    rows, entries = size.rows / size.ranks, size.entries / size.ranks
    cpu_read, gpu_read = (nanoseconds * rows / threads for nanoseconds in _READ[size.source])
    cpu = cpu_read + cost.cpu * often * entries / threads
    if 4 * size.entries > limit:
        cpu += _DISK * often * entries
    gpu = gpu_read + cost.gpu * often * entries
    return Estimate(cpu / 1e9, _START + gpu / 1e9)


def _device_by(estimated: Estimate, limit: int, notes: list[str]) -> Literal["auto", "cpu"]:
    """Return the device that an estimate prefers: "auto" for a GPU, if one is usable."""
    if estimated.prefers_gpu and limit >= _HOST_BYTES:
        return "auto"
    if _may_have_gpu():
        sooner = f"by estimate {estimated.gpu - estimated.cpu:.1f} s sooner than on the GPU"
        reason = "as a GPU needs 1 GiB of host memory" if estimated.prefers_gpu else sooner
        notes.append(f"on the CPU, {reason}: --device cuda uses the GPU")
    return "cpu"


def _may_have_gpu() -> bool:
    """Return whether this machine seems to have a GPU, without asking the driver."""
    return os.path.exists("/proc/driver/nvidia") and find_spec("cupy") is not None


class Asked(NamedTuple):
    """A question, for the choice of its device. times: how often it does what its cost is for; None
    for once for each vertex.
    """

    form: Form
    times: int | None


def is_asked_for(resources: Resources) -> bool:
    """Return whether the user has chosen a device. A limit of the GPU's memory asks for a GPU."""
    return resources.device != "auto" or resources.device_memory_limit is not None


def with_device(
    asked: Asked,
    graph: Store | EdgeList,
    choices: BuildOptions | None,
    resources: Resources,
    threads: int,
    notes: list[str],
) -> Resources:
    """Return the resources with the device that ``auto`` stands for.

    choices: how an edge list is read. notes: receives a line for the user if this machine has a GPU
    that is not used.
    """
    if is_asked_for(resources):
        return resources
    cost, device, several = asked.form.cost, "cpu", resources.cluster.any
    if cost is not None:
        size = _size_of(graph, choices or BuildOptions(), cost, several)
        expected = estimate(cost, asked.times, size, threads, resources.limit)
        device = _device_by(expected, resources.limit, notes)
    if device == "auto" and not several:
        begin_driver(0)  # in a thread, while the input is looked through
    return replace(resources, device=device)


def _size_of(graph: Store | EdgeList, choices: BuildOptions, cost: Cost, several: bool) -> Size:
    if isinstance(graph, Store):
        info = graph.info
        entries = sum(info.subgraph_edges.values())
        return Size("store", entries, entries, info.vertices, info.partitions if several else 1)
    entries = graph.rows if choices.directed else 2 * graph.rows
    scans = cost.scans and graph.weight is None
    return Size("scan" if scans else "edges", graph.rows, entries, graph.rows // _ROWS_OF_VERTEX)
