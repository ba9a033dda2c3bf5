"""One GPU: preparation and search on graphs made, or read, there; every result is checked.

    python benchmarks/gpu.py [--graphs kron22,kron24,...] [--sources 64] [--data FOLDER]

kronN, urandN: 2^N vertices, 16 rows a vertex; gridN: N x N cells, a fifth of the joins dropped;
gridN-shuffled: the same with its ids shuffled; kron24-host: all targets in host memory;
kron24-directed: edges followed one way only; any other name: FOLDER/NAME.parquet. Times are
medians over the sources, by device events, parents included; preparation begins with the edges on
the device as they come and ends with a graph to search. Goals are those that we set ourselves for
one NVIDIA H200.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import time
from pathlib import Path
from statistics import harmonic_mean, median
from typing import Any

import environment
import numpy as np

from delegraph.kernels.base.graph import Graph
from delegraph.kernels.gpu import prepare as gpu_prepare
from delegraph.kernels.gpu.device import Device, open_device
from delegraph.kernels.gpu.graph import Rows, derive
from delegraph.kernels.gpu.search import GpuSearch
from delegraph.partition.input.edges import open_edges
from delegraph.pipeline.bench.device import draw_positions, make_edges
from delegraph.pipeline.bench.protocol import BenchOptions, DeviceSearcher, run_all
from delegraph.pipeline.build.generate import Recipe
from delegraph.pipeline.build.read import read_edges, with_bounds
from delegraph.pipeline.engines.device import supersteps_of, to_device
from delegraph.pipeline.reports.report import supersteps_table
from delegraph.pipeline.run.execute import Executor

GOALS_MS = {
    "kron22": 0.15,
    "kron24": 0.30,
    "kron27": 1.5,
    "urand22": 0.23,
    "urand24": 1.6,
    "urand27": 8,
    "grid2048": 5,
    "grid2048-shuffled": 5,
    "luxembourg-osm": 1.5,
}
PREPARATION_GOALS_S = {"kron22": 0.06, "kron24": 0.2}
GRAPHS = "kron22,kron24,kron27,urand22,urand24,urand27,grid2048,grid2048-shuffled"
GRAPHS += ",kron24-host,kron24-directed"
FEW_ROWS = 1 << 28  # of a graph that is prepared twice


def main() -> None:
    parser = argparse.ArgumentParser(description="Time preparation and searches on one GPU.")
    parser.add_argument("--graphs", default=GRAPHS)
    parser.add_argument("--sources", type=int, default=64)
    parser.add_argument("--data", type=Path, default=Path())
    options = parser.parse_args()
    device = open_device()
    about = environment.describe(("numpy", "pyarrow"))
    about["versions"] |= device.versions()
    about["gpu"] = {"name": device.name, **clocks()}
    environment.show(about)
    print(f"{device}, {about['gpu']}", flush=True)
    results = []
    for name in options.graphs.split(","):
        results.append(measure(device, name, options))
        show(results[-1])
    environment.keep("gpu", about, results)


def clocks() -> dict[str, str]:
    fields = "driver_version,clocks.max.sm,clocks.max.mem,clocks.sm,clocks.mem"
    command = ["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader", "--id=0"]
    values = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return dict(zip(fields.split(","), values.strip().split(", "), strict=True))


def edges_of(device: Device, name: str, data: Path) -> tuple[list[Any], int]:
    """(src, dst) batches on the device, and what all ids lie below."""
    recipe = recipe_of(name)
    with device.use() as cupy:
        if recipe is None:
            edges = with_bounds(open_edges(str(data / f"{name}.parquet")), Executor(1))
            dense = read_edges(edges, Executor(1))
            batches = [tuple(cupy.asarray(end) for end in batch) for batch in dense.batches]
            return batches, dense.ids.domain
        batches: list[Any] = make_edges(recipe, device)
        if name.endswith("-shuffled"):
            ids = cupy.asarray(
                np.random.default_rng(1).permutation(recipe.domain).astype(np.uint32)
            )
            batches = [(ids[src], ids[dst]) for src, dst in batches]
        return batches, recipe.domain


def recipe_of(name: str) -> Recipe | None:
    match = re.fullmatch(r"(kron|urand|grid)(\d+)(-\w+)?", name)
    if not match:
        return None
    kind, size = match[1], int(match[2])
    if kind == "grid":
        return Recipe("grid", height=size, width=size, drop=0.2)
    return Recipe("kronecker" if kind == "kron" else "uniform", scale=size)


def measure(device: Device, name: str, options) -> dict[str, Any]:
    directed = name.endswith("-directed")
    with device.use() as cupy:
        batches, domain = edges_of(device, name, options.data)
        rows = sum(len(src) for src, _ in batches)
        gpu_prepare.warm_up(device, rows, directed)
        if rows <= FEW_ROWS:  # once before, so that the memory is there
            gpu_prepare.prepare(device, list(batches), domain, directed)
        cupy.cuda.Device().synchronize()
        began = time.perf_counter()
        prepared = gpu_prepare.prepare(device, batches, domain, directed)
        cupy.cuda.Device().synchronize()
        sorted_at = time.perf_counter()
        cupy.get_default_memory_pool().free_all_blocks()
        if name.endswith("-host"):
            offsets, targets = prepared.offsets.get(), prepared.targets.get()
            graph = to_device(Graph.undirected(offsets, targets), device, near=0)
        else:
            reverse = Rows(prepared.reverse_offsets, prepared.reverse_targets) if directed else None
            graph = derive(device, Rows(prepared.offsets, prepared.targets), reverse)
        cupy.cuda.Device().synchronize()
        ready = time.perf_counter()
        searcher = DeviceSearcher(GpuSearch(device, graph), prepared.rows_from)
        searcher.warm_up()
    most = BenchOptions(sources=(1 + directed) * options.sources)
    drawn, _ = draw_positions(prepared.id_of_position, graph.used, most, device)
    with device.use():
        leading = (prepared.rows_from[np.array(drawn)] > 0).get().tolist()  # somewhere
    chosen = [source for source, leads in zip(drawn, leading, strict=True) if leads]
    chosen = chosen[: options.sources]
    searcher.search(chosen[0])
    runs = run_all(searcher, chosen, chosen, None)
    milliseconds = [1e3 * value for value in runs.seconds]
    middle = chosen[int(np.argsort(milliseconds)[len(chosen) // 2])]
    searcher.search(middle)
    steps = supersteps_of(searcher.gpu)
    edges = 1 if directed else 2
    rates = [rows / edges / ms / 1e6 for rows, ms in zip(runs.rows, milliseconds, strict=True)]
    return {
        "graph": name,
        "vertices": prepared.vertices,
        "rows": rows,
        "entries": graph.edges,
        "sources": len(chosen),
        "sort_seconds": sorted_at - began,
        "derive_seconds": ready - sorted_at,
        "median_ms": median(milliseconds),
        "least_ms": min(milliseconds),
        "most_ms": max(milliseconds),
        "goal_ms": GOALS_MS.get(name),
        "preparation_goal_s": PREPARATION_GOALS_S.get(name),
        "gteps_harmonic_mean": harmonic_mean(rates),
        "levels": len(steps),
        "median_search": steps if len(steps) < 20 else [],
    }


def show(result: dict[str, Any]) -> None:
    goal = f" (goal {result['goal_ms']})" if result["goal_ms"] else ""
    print(
        f"\n{result['graph']}: prepared in {1e3 * result['sort_seconds']:.1f} ms, forms derived in "
        f"{1e3 * result['derive_seconds']:.1f} ms; search {result['median_ms']:.4f} ms{goal}, "
        f"{result['least_ms']:.4f} to {result['most_ms']:.4f}; "
        f"{result['gteps_harmonic_mean']:.0f} GTEPS, {result['levels']} levels",
        flush=True,
    )
    if result["median_search"]:
        print(supersteps_table(result["median_search"]), flush=True)


if __name__ == "__main__":
    main()
