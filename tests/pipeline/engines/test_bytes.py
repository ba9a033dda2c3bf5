"""Projected bytes of searches against measured ones: neither far more nor much less."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delegraph.partition.input.edges import open_edges
from delegraph.partition.store.grid import Grid
from delegraph.partition.store.store import Store
from delegraph.partition.store.whole import merged_bytes
from delegraph.pipeline.bench.store_ranks import share_bytes
from delegraph.pipeline.build.build import build_store
from delegraph.pipeline.build.prepare import BuildOptions
from delegraph.pipeline.engines.host.search import graph_bytes
from delegraph.pipeline.engines.ranks.search import rank_stream_bytes
from delegraph.pipeline.results.result import writing_bytes
from delegraph.pipeline.run.execute import Executor
from delegraph.pipeline.run.resources import Resources
from support.marks import nightly, slow

VERTICES = 1 << 20
THREADS = 2

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="peaks are read from /proc"
)

MEASURED = """
import sys
import tempfile
from pathlib import Path

def held(name):
    status = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in status if line.startswith(name))

from delegraph.kernels.bfs.cpu import CpuBackend
from delegraph.kernels.base.team import Team
from delegraph.partition.store.store import open_store
from delegraph.pipeline.bench.protocol import rows_from_vertex
from delegraph.pipeline.ranks.communicator import SingleCommunicator
from delegraph.pipeline.run.execute import Executor
from delegraph.pipeline.bench.check import RankCheck, edges_of
from delegraph.pipeline.engines.ranks.result import result_of
from delegraph.pipeline.engines.ranks.search import load_rank, search_rank
from delegraph.pipeline.algorithms.bfs import columns_of
from delegraph.pipeline.results.found import Found
from delegraph.pipeline.results.findings import Findings
from delegraph.pipeline.results.result import ResultInfo, write_result
from delegraph.pipeline.results.rows import VertexRows
from delegraph.pipeline.results.store_names import StoreNames
from delegraph.pipeline.engines.ranks.edges import stream_team
from delegraph.pipeline.engines.host.search import search

ALONE = SingleCommunicator()

def streamed(store):
    graph = load_rank(store, 0, 1, Team({threads}), on_disk=True)
    search_rank(graph, 0, ALONE, stream_team({threads}))

def loaded(store):
    graph = store.graph(Team({threads}))
    return search(graph, 0, CpuBackend({threads}))

def merged(store):
    return store.merged(Team({threads}), weighted=True)

def benched(store):
    graph = load_rank(store, 0, 1, Team({threads}))
    rows, info = rows_from_vertex(store, Team({threads})), store.info
    delegates = store.delegates(Team({threads}))
    edges = lambda: edges_of(graph)
    check = RankCheck(ALONE, info.vertices, info.partitions, delegates, edges, rows)
    search_rank(graph, 0, ALONE, Team({threads}))
    check(0, result_of(graph))

def named(store):
    names = StoreNames(store, Team({threads}))
    info = ResultInfo("bfs", "", False, {}, "")
    columns = columns_of(Found(distance, parent, None))
    out = Path(tempfile.mkdtemp(dir=sys.argv[2]))
    rows = VertexRows(names, columns)
    write_result(out, rows, info, Executor({threads}), Findings("bfs"))

small, store = map(open_store, sys.argv[3:])
import numpy as np
for one in (small, store):
    distance = np.ones(one.info.vertices, np.int32)
    parent = np.zeros(one.info.vertices, np.uint32)
    if one is store:
        Path("/proc/self/clear_refs").write_text("5")
        before = held("VmRSS")
    globals()[sys.argv[1]](one)
print(held("VmHWM") - before)
"""


def build(
    folder: Path, vertices: int, strings: bool = False, weights: bool = False, **options
) -> Store:
    """Build a store with many vertices and edges, so that the bytes of both are measurable."""
    folder.mkdir()
    rng = np.random.default_rng(1)
    ends = (rng.random((2, 8 * vertices)) ** 2 * vertices).astype(np.int64)
    columns = [pa.array(end) for end in ends]
    if strings:
        names = pa.array([f"vertex {i:012}" for i in range(vertices)])
        columns = [names.take(end).dictionary_encode() for end in columns]
    table = pa.table(columns, names=["src", "dst"])
    if weights:
        table = table.append_column("weight", pa.array(rng.random(len(table))))
    pq.write_table(table, folder / "edges.parquet")
    edges = open_edges(folder / "edges.parquet", weight="weight" if weights else None)
    return build_store(
        edges, folder / "graph.dg", BuildOptions(**options), Executor(THREADS), Resources()
    )


OPTIONS = {
    "one": {},
    "three": {"partitions": 3},
    "grid-directed": {"layout": "2d", "grid": Grid(2, 2), "directed": True},
    "strings": {"strings": True},
    "weighted": {"partitions": 3, "weights": True},
    "weighted-directed": {"partitions": 3, "weights": True, "directed": True},
}


BENCHED = ("three", "grid-directed")  # whose bench by ranks is measured, too


@pytest.mark.parametrize(
    "name", [slow(name) if name in ("three", "weighted") else nightly(name) for name in OPTIONS]
)
def test_projection_against_measurement(name, tmp_path):
    small = build(tmp_path / "small", 100, **OPTIONS[name])
    store = build(tmp_path / "large", VERTICES, **OPTIONS[name])
    projected = {
        "streamed": rank_stream_bytes(store, 0, 1, THREADS),
        "loaded": graph_bytes(store),
        "named": writing_bytes(store, THREADS) - 8 * VERTICES,  # which stand there before
    }
    if name in BENCHED:
        projected["benched"] = share_bytes(store, 0, 1, None) + 8 * VERTICES
    if "weights" in OPTIONS[name]:
        projected["merged"] = merged_bytes(store.info, weighted=True).making
    ratios = {}
    for what, wanted in projected.items():
        code = MEASURED.replace("{threads}", str(THREADS))
        command = [sys.executable, "-c", code, what, tmp_path, small.path]
        # What compiling leaves behind would be used again: once for that alone.
        subprocess.run([*command, small.path], check=True, stdout=subprocess.PIPE)
        run = subprocess.run([*command, store.path], check=True, stdout=subprocess.PIPE, text=True)
        ratios[what] = int(run.stdout) / wanted
    assert all(0.5 <= ratio <= 1.1 for ratio in ratios.values()), ratios
    print(ratios, projected)
