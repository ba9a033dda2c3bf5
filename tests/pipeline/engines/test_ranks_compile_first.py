"""A rank compiles before it reports its bytes: no way that may be chosen compiles later."""

from __future__ import annotations

import subprocess
import sys

import pytest

import delegraph
from delegraph.kernels.gpu import device as devices
from delegraph.kernels.gpu.device import open_device
from delegraph.partition.store.store import open_store
from delegraph.pipeline.bench.store_ranks import StoreBenchJob
from delegraph.pipeline.engines.device_ranks.layouts import RankOnDevice
from delegraph.pipeline.engines.one_device import search as device_search
from delegraph.pipeline.engines.workers.job import Job
from delegraph.pipeline.engines.workers.search_work import SearchWork
from support import emulator
from support.graphs import random_edges
from support.marks import slow

ON_CPUS = """
import gc, sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from numba.core.dispatcher import Dispatcher
from delegraph.kernels.base.team import Team
from delegraph.pipeline.bench.store_ranks import StoreBenchJob
from delegraph.pipeline.engines.workers.job import Job
from delegraph.pipeline.engines.workers.search_work import SearchWork
from delegraph.pipeline.ranks.communicator import SingleCommunicator, ThreadGroup

def compiled():
    found = [some for some in gc.get_objects() if isinstance(some, Dispatcher)]
    return {f"{some.py_func.__module__}.{some.__name__}": len(some.signatures)
            for some in found if "delegraph" in str(some.py_func.__module__) and some.signatures}

store, folder = map(Path, sys.argv[1:3])
size, way, name = int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
job = Job(store, SearchWork(0), folder, 60.0).fresh_attempt()
if name == "bench":
    job = StoreBenchJob(store, (0, 1), (0, 1))
communicators = ThreadGroup(size).communicators if size > 1 else [SingleCommunicator()]
jobs = [job.get_ready(rank, size, 2)[way].job for rank in range(size)]
before = compiled()
with ThreadPoolExecutor(size) as pool:
    list(pool.map(lambda rank: jobs[rank].run(communicators[rank], Team(2)), range(size)))
after = compiled()
late = {name: n for name, n in after.items() if n != before.get(name)}
assert not late, late
"""


@pytest.mark.parametrize(
    ("name", "size", "way"),
    [
        *[slow("search", 1, way) for way in (0, 1)],
        *[("search", 2, 0), slow("search", 2, 1)],
        *[slow("bench", 2, 0), slow("bench", 1, 0)],
    ],
)
@pytest.mark.parametrize("layout", ["delegate", slow("2d")])
def test_on_cpus(edge_list, tmp_path, layout, size, way, name):
    path = edge_list(*random_edges(3, 300, 3000))
    delegraph.build(path, tmp_path / "graph.dg", partitions=4, layout=layout, order="random")
    place = tmp_path / "graph.dg", tmp_path, str(size), str(way), name
    run = subprocess.run([sys.executable, "-c", ON_CPUS, *place], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


@pytest.mark.skipif(not emulator.able(), reason="g++ compiles the kernels")
@pytest.mark.parametrize("layout", ["delegate", "2d"])
@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("name", ["search", "search, tiered", "bench"])
def test_on_devices(edge_list, tmp_path, monkeypatch, layout, size, name):
    """A rank with a device compiles the kernel of its search for the types that its graph will
    have.
    """
    path = edge_list(*random_edges(3, 300, 3000))
    delegraph.build(path, tmp_path / "graph.dg", partitions=2, layout=layout)
    monkeypatch.setitem(sys.modules, "cupy", emulator.cupy)
    store = open_store(tmp_path / "graph.dg")
    device, limit = open_device(), None
    if name == "search, tiered":
        room = device_search.room_for(store, device)
        if size > 1:
            room = RankOnDevice(store, 0, size).room_for(device)
        limit = room.device_bytes - 4  # an entry less than there are
    calls: list[tuple[str, str, bool]] = []
    monkeypatch.setattr(devices, "_compile", lambda _, __, *rest: calls.append(rest) or Kernel())
    if name == "bench":
        job = StoreBenchJob(store.path, (0,), (0,), device="cuda")
    else:
        job = Job(store.path, SearchWork(0), tmp_path, 60.0, "cuda", limit)
    job.get_ready(0, size, 2)
    several = "ranks/delegate_search.cu" if layout == "delegate" else "ranks/grid_search.cu"
    wanted = several if size > 1 else "bfs/wide_search.cu"
    searching = [rest for rest in calls if rest[0] == wanted and ", u8, " in rest[1]]
    ((_, function, cooperative),) = searching
    assert f"<u32, u8, {'true' if limit else 'false'}, " in function
    assert cooperative
    if size > 1:  # a rank alone compiles what the search of one device may come to
        assert calls == searching


class Kernel:
    """A kernel that is not launched."""

    max_dynamic_shared_size_bytes = 0

    def __call__(self, grid: object, block: object, arguments: object) -> None:
        """Do nothing."""
