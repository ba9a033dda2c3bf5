"""Ranks that are threads of this process, over any kind of communicator, and searches by them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from delegraph.kernels.base.team import Team
from delegraph.kernels.gpu.device import Device, DeviceError, open_device
from delegraph.partition.store.store import Store
from delegraph.pipeline.engines.direction import choose
from delegraph.pipeline.engines.ranks import result as rank_result
from delegraph.pipeline.engines.ranks.graph import RankGraph
from delegraph.pipeline.engines.ranks.search import RankFound, load_rank, search_rank
from delegraph.pipeline.engines.ranks.superstep import Choose
from delegraph.pipeline.ranks import nccl, tcp
from delegraph.pipeline.ranks.communicator import (
    Communicator,
    SingleCommunicator,
    ThreadGroup,
    telling_others,
)
from delegraph.pipeline.ranks.nccl import NcclCommunicator
from delegraph.pipeline.ranks.tcp import TcpCommunicator
from delegraph.pipeline.results.checkpoint import Checkpoint
from delegraph.pipeline.results.found import Found

from . import emulator

BY_NCCL = ["nccl", pytest.param("nccl on GPUs", marks=pytest.mark.multi_gpu)]


def devices_for(kind: str, size: int) -> list[Device]:
    """Return the device of each rank."""
    if kind == "nccl on GPUs":
        try:
            return [open_device(rank) for rank in range(size)]
        except DeviceError as error:
            pytest.skip(str(error))
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(sys.modules, "cupy", emulator.cupy)
        first = open_device()
    return [replace(first, number=rank if kind == "nccl" else 0) for rank in range(size)]


@contextmanager
def communicators(kind: str, size: int, timeout: float = 10.0) -> Iterator[list[Communicator]]:
    if kind == "single":
        yield [SingleCommunicator()]
        return
    if kind == "threads":
        yield list(ThreadGroup(size).communicators)
        return
    if kind.startswith("nccl"):
        devices = devices_for(kind, size)
        with communicators("tcp", size, timeout) as below:
            ours = list(map(NcclCommunicator, below, devices))
            try:
                yield list(ours)
            finally:
                run(ours, lambda rank: rank.close())
            assert not emulator.nccl.open_communicators
        return
    host = "tcp://127.0.0.1"
    whole, few = tcp._PIECE_BYTES, tcp._FEW_BYTES
    if kind == "tcp in pieces":
        tcp._PIECE_BYTES, tcp._FEW_BYTES = 10_000, 100
    ranks = [TcpCommunicator("a session", rank, size, host, timeout) for rank in range(size)]
    with ThreadPoolExecutor(size) as pool:
        list(pool.map(lambda rank: rank.join([other.address for other in ranks]), ranks))
    try:
        yield list(ranks)
    finally:
        with ThreadPoolExecutor(size) as pool:
            list(pool.map(lambda rank: rank.close(), ranks))
        tcp._PIECE_BYTES, tcp._FEW_BYTES = whole, few


def run(ranks: Sequence[Any], work: Callable[[Any], Any]) -> list[Any]:
    """Return the result of ``work`` on each rank, or the exception that it raised."""

    def one(rank: Communicator) -> Any:
        try:
            return work(rank)
        except Exception as error:
            return error

    with ThreadPoolExecutor(len(ranks)) as pool:
        return list(pool.map(one, ranks))


def placed(communicator: Communicator, arrays: list[np.ndarray]) -> list[Any]:
    """Return arrays with all but the first on the rank's device, if the rank has one."""
    if not isinstance(communicator, NcclCommunicator):
        return list(arrays)
    with communicator._device.use() as cupy:
        return [*arrays[:1], *map(cupy.asarray, arrays[1:])]


def at_host(array: Any) -> np.ndarray:
    return array.get() if nccl._on_device(array) else array


def by_threads(ranks: int, work: Callable[[Communicator], object]) -> list:
    def one(communicator: Communicator) -> object:
        with telling_others(communicator.rank, communicator):
            return work(communicator)

    with ThreadPoolExecutor(ranks) as pool:
        return list(pool.map(one, ThreadGroup(ranks).communicators))


def search_by_threads(
    store: Store,
    source: int,
    ranks: int,
    folder: Path,
    max_depth: int | None = None,
    threads: int = 1,
    kind: str = "threads",
    choose: Choose = choose,
    on_disk: bool = False,
) -> tuple[np.ndarray, np.ndarray, list[RankFound]]:
    def one(communicator) -> RankFound:
        with telling_others(communicator.rank, communicator):
            graph = load_rank(store, communicator.rank, ranks, Team(1), on_disk=on_disk)
            result = search_rank(graph, source, communicator, Team(threads), max_depth, choose)
        rank_result.save(rank_result.result_of(graph), folder)
        return result

    folder.mkdir(exist_ok=True)
    with communicators(kind, ranks) as group, ThreadPoolExecutor(ranks) as pool:
        results = list(pool.map(one, group))
    return *rank_result.gather(store, folder), results


def streamed(store: Store) -> RankGraph:
    """Load the graph of a single rank with edges on disk."""
    return load_rank(store, 0, 1, Team(2), on_disk=True)


def stream_search(
    graph: RankGraph,
    source: int,
    team: Team,
    max_depth: int | None = None,
    direction: Choose = choose,
    checkpoint: Checkpoint | None = None,
) -> Found:
    """Search a graph with edges on disk by a single rank."""
    alone = SingleCommunicator()
    result = search_rank(graph, source, alone, team, max_depth, direction, checkpoint)
    return Found(*graph.own.take(), result.supersteps)
