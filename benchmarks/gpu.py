"""One GPU: preparation and search on graphs made, or read, there; every result is checked.

    python benchmarks/gpu.py [--graphs kron22,cnr-2000,...] [--sources 64] [--data FOLDER]
        [--strategies auto,rows,slices]

By default: the generated graphs below, and all Parquet files of FOLDER and FOLDER/real.
kronN, urandN: 2^N vertices, 16 rows a vertex; gridN: N x N cells, a fifth of the joins dropped;
gridN-shuffled: the same with its ids shuffled; any other name: NAME.parquet there. NAME-directed:
edges followed one way only; NAME-host: all targets in host memory, over rows whatever is asked.
Times are by device events, parents included: medians over the sources, and the worst; preparation
begins with the edges on the device as they come and ends with rows to search; what cutting slices
and choosing takes stands beside. Goals are those that we set ourselves for one NVIDIA H200.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import time
from pathlib import Path
from statistics import harmonic_mean, median
from typing import Any, NamedTuple

import environment
import numpy as np
import real

from delegraph.kernels.base.graph import Graph
from delegraph.kernels.gpu import prepare as gpu_prepare
from delegraph.kernels.gpu.device import Device, open_device
from delegraph.kernels.gpu.graph import DeviceGraph, Rows, derive
from delegraph.partition.input.edges import open_edges
from delegraph.pipeline.bench.device import draw_positions, make_edges
from delegraph.pipeline.bench.protocol import BenchOptions, DeviceSearcher, run_all
from delegraph.pipeline.build.generate import Recipe
from delegraph.pipeline.build.read import read_edges, with_bounds
from delegraph.pipeline.engines.engine import Strategy
from delegraph.pipeline.engines.one_device.found import superstep_log
from delegraph.pipeline.engines.one_device.search import (
    method_of,
    search_of,
    to_device,
)
from delegraph.pipeline.reports.report import supersteps_table
from delegraph.pipeline.run.execute import Executor

GOALS_MS = {
    "kron22": 0.10,
    "kron24": 0.20,
    "kron27": 1.2,
    "urand22": 0.23,
    "urand24": 1.1,
    "urand27": 7,
    "grid2048": 3.5,
    "grid2048-shuffled": 3.5,
    "luxembourg-osm": 1.0,
    "usa_road_t_ny": 1.0,
    "world_highways": 0.8,
    "reddit_related": 0.20,
    "cnr-2000": 0.11,
    "git_objects_v2_0_0": 0.30,
    "debian_file_package": 0.28,
    "fb_schools": 0.045,
}
PREPARATION_GOALS_S = {"kron22": 0.06, "kron24": 0.2}
GENERATED = "kron22,kron24,kron27,urand22,urand24,grid2048"
FEW_ROWS = 1 << 28  # of a graph that is prepared twice


def main() -> None:
    parser = argparse.ArgumentParser(description="Time preparation and searches on one GPU.")
    parser.add_argument("--graphs")
    parser.add_argument("--sources", type=int, default=64)
    parser.add_argument("--strategies", default="auto", help="as --strategy of delegraph bench")
    real.add_option(parser)
    options = parser.parse_args()
    device = open_device()
    about = describe(device)
    results = []
    found = real.real_graphs(options.data)
    for name in (options.graphs or ",".join([GENERATED, *found])).split(","):
        if recipe_of(name) is None and kind_of(name)[0] not in found:
            print(f"{name}: skipped, it is not in {options.data}")
            continue
        loaded = load(device, name, found)
        for strategy in options.strategies.split(","):
            results.append(measure(device, name, loaded, strategy, options.sources))
            show(results[-1])
        del loaded
    summarize(results)
    environment.keep("gpu", about, results)


def describe(device: Device) -> dict[str, Any]:
    """The machine and its GPU, which is told, too."""
    about = environment.describe(("numpy", "pyarrow"))
    about["versions"] |= device.versions()
    about["gpu"] = {"name": device.name, **clocks()}
    environment.show(about)
    print(f"{device}, {about['gpu']}", flush=True)
    return about


def clocks() -> dict[str, str]:
    fields = "driver_version,clocks.max.sm,clocks.max.mem,clocks.sm,clocks.mem"
    command = ["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader", "--id=0"]
    values = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return dict(zip(fields.split(","), values.strip().split(", "), strict=True))


def kind_of(name: str) -> tuple[str, str]:
    """(the graph, what is done to it)"""
    match = re.fullmatch(r"(.*?)(-directed|-host|-shuffled|)", name)
    assert match
    return match[1], match[2]


def edges_of(device: Device, name: str, found: dict[str, Path]) -> tuple[list[Any], int]:
    """(src, dst) batches on the device, and what all ids lie below."""
    recipe = recipe_of(name)
    with device.use() as cupy:
        if recipe is None:
            edges = with_bounds(open_edges(str(found[kind_of(name)[0]])), Executor(1))
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
    match = re.fullmatch(r"(kron|urand|grid)(\d+)", kind_of(name)[0])
    if not match:
        return None
    kind, size = match[1], int(match[2])
    if kind == "grid":
        return Recipe("grid", height=size, width=size, drop=0.2)
    return Recipe("kronecker" if kind == "kron" else "uniform", scale=size)


class Loaded(NamedTuple):
    """A graph to search. rows: of the input."""

    rows: int
    prepared: gpu_prepare.DeviceRows
    graph: DeviceGraph
    sort_seconds: float
    derive_seconds: float


def load(device: Device, name: str, found: dict[str, Path]) -> Loaded:
    directed = name.endswith("-directed")
    with device.use() as cupy:
        batches, domain = edges_of(device, name, found)
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
    return Loaded(rows, prepared, graph, sorted_at - began, ready - sorted_at)


def choose_sources(loaded: Loaded, sources: int, device: Device) -> list[int]:
    """Vertices to search from, each of which has an edge to follow, by position."""
    prepared, graph = loaded.prepared, loaded.graph
    directed = graph.forward is not graph.reverse
    most = BenchOptions(sources=(1 + directed) * sources)
    drawn, _ = draw_positions(prepared.id_of_position, graph.used, most, device)
    with device.use():
        leading = (prepared.rows_from[np.array(drawn)] > 0).get().tolist()  # somewhere
    chosen = [source for source, leads in zip(drawn, leading, strict=True) if leads]
    return chosen[:sources]


def measure(
    device: Device, name: str, loaded: Loaded, strategy: Strategy, sources: int
) -> dict[str, Any]:
    directed = name.endswith("-directed")
    prepared, graph = loaded.prepared, loaded.graph
    with device.use():
        began = time.perf_counter()
        search = search_of(device, graph, "rows" if name.endswith("-host") else strategy)
        searcher = DeviceSearcher(search, prepared.rows_from)
        searcher.warm_up()
        choosing = time.perf_counter() - began
    chosen = choose_sources(loaded, sources, device)
    searcher.search(chosen[0])
    runs = run_all(searcher, chosen, chosen, None)
    milliseconds = [1e3 * value for value in runs.seconds]
    order = np.argsort(milliseconds)
    # A search of a small component says nothing about the others.
    largest = [
        ms for ms, rows in zip(milliseconds, runs.rows, strict=True) if rows == max(runs.rows)
    ]
    edges = 1 if directed else 2
    rates = [rows / edges / ms / 1e6 for rows, ms in zip(runs.rows, milliseconds, strict=True)]
    return {
        "graph": name,
        "strategy": strategy,
        "method": method_of(search),
        "choosing_seconds": choosing,
        "vertices": prepared.vertices,
        "rows": loaded.rows,
        "entries": graph.edges,
        "sources": len(chosen),
        "sort_seconds": loaded.sort_seconds,
        "derive_seconds": loaded.derive_seconds,
        "median_ms": median(milliseconds),
        "least_ms": min(milliseconds),
        "most_ms": max(milliseconds),
        "most_to_median_of_largest": max(largest) / median(largest),
        "goal_ms": GOALS_MS.get(name),
        "preparation_goal_s": PREPARATION_GOALS_S.get(name),
        "gteps_harmonic_mean": harmonic_mean(rates),
        "median_search": levels_of(searcher, chosen[order[len(order) // 2]]),
        "worst_search": levels_of(searcher, chosen[order[-1]]),
    }


def levels_of(searcher: DeviceSearcher, source: int) -> dict[str, Any]:
    """What each level of one more search did: the first and the last ten, where there are many."""
    searcher.search(source)
    steps = list(superstep_log(searcher.gpu.levels()))
    few = steps if len(steps) <= 30 else [*steps[:10], *steps[-10:]]
    count = len(steps)
    return {"levels": count, "us_a_level": 1e6 * searcher.gpu.seconds() / count, "steps": few}


def show(result: dict[str, Any]) -> None:
    goal = result["goal_ms"]
    print(
        f"\n{result['graph']}, {result['strategy']}: {result['method']}, chosen in "
        f"{1e3 * result['choosing_seconds']:.1f} ms; prepared in "
        f"{1e3 * result['sort_seconds']:.1f} ms, forms derived in "
        f"{1e3 * result['derive_seconds']:.1f} ms; search {result['median_ms']:.4f} ms"
        + (f" (goal {goal}: {result['median_ms'] / goal:.2f})" if goal else "")
        + f", {result['least_ms']:.4f} to {result['most_ms']:.4f}; "
        f"{result['gteps_harmonic_mean']:.0f} GTEPS",
        flush=True,
    )
    for which in ("median", "worst"):
        search = result[f"{which}_search"]
        print(f"{which}: {search['levels']} levels, {search['us_a_level']:.1f} us each")
        print(supersteps_table(search["steps"]), flush=True)


def summarize(results: list[dict[str, Any]]) -> None:
    print(
        f"\n{'graph':<28}{'by':<12}{'median ms':>10}{'goal':>8}{'ratio':>7}{'worst ms':>10}"
        f"{'to median':>10}{'levels':>8}{'us each':>9}"
    )
    for result in results:
        middle, goal = result["median_search"], result["goal_ms"]
        print(
            f"{result['graph']:<28}{result['method']:<12}{result['median_ms']:>10.4f}"
            f"{goal or '':>8}"
            + (f"{result['median_ms'] / goal:>7.2f}" if goal else f"{'':>7}")
            + f"{result['most_ms']:>10.4f}{result['most_to_median_of_largest']:>10.2f}"
            f"{middle['levels']:>8}{middle['us_a_level']:>9.1f}"
        )


if __name__ == "__main__":
    main()
