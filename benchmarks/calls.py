"""Calls of ``graph.bfs`` in Python: what a call takes beside its search, and what its columns take.

    python benchmarks/calls.py [--graphs kron22,fb_schools,...] [--device cuda] [--sources 64]
        [--data FOLDER]

By default the generated graphs below, and all Parquet files of FOLDER and FOLDER/real, undirected;
kronN: 2^N vertices, 16 rows a vertex. Each is a store, which is opened once. Medians and worst in
milliseconds: ``search`` is the search alone (by device events on a GPU), ``call`` the whole call,
``over`` what a call takes beyond its search, ``again`` calls one after the other whose results
nobody reads, ``held`` a call while the result before it is held and unread; ``distance`` and
``parent`` are columns that are read after a call, ``table`` all of them; ``on device`` is the
column ``distance`` where it was found; ``many`` are the distances from 64 sources, unread. On a GPU
the kernels that are compiled, or loaded from a cache, are counted while the graph is opened and
after it.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import environment
import numpy as np
import real

import delegraph

GENERATED = "kron22,kron24"
FIGURES = (
    *("search", "call", "over", "again", "held", "distance", "parent", "table", "on device"),
    "many",
)
MANY, RUNS = 64, 5


def main() -> None:
    parser = argparse.ArgumentParser(description="Calls of graph.bfs in Python.")
    parser.add_argument("--graphs")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--sources", type=int, default=64)
    real.add_option(parser)
    options = parser.parse_args()
    about = environment.describe(("numba", "pyarrow", "cupy"))
    environment.show(about)
    count = kernels_counted() if options.device != "cpu" else lambda: (0, 0.0)
    results = []
    for name, edges in real.asked_for(options, GENERATED, real.scale_of):
        with tempfile.TemporaryDirectory() as folder:
            store = store_of(name, edges, Path(folder), options.device)
            results.append({"graph": name, **measure(store, options, count)})
        show(results[-1])
    environment.keep(f"calls_{options.device}", about, results)


def store_of(name: str, edges: Path | None, folder: Path, device: str) -> Path:
    """edges: of a real graph; None for one to generate."""
    if edges is None:
        edges = folder / "edges"
        environment.delegraph("generate", "kronecker", "--scale", real.scale_of(name), "-o", edges)
    environment.delegraph("build", edges, "-o", folder / "graph.dg", "--device", device)
    return folder / "graph.dg"


def measure(
    store: Path, options: argparse.Namespace, count: Callable[[], tuple[int, float]]
) -> dict[str, Any]:
    times: dict[str, list[float]] = {name: [] for name in FIGURES}

    def timed(name: str, work: Callable[[], Any]) -> Any:
        began = time.perf_counter()
        done = work()
        times[name].append(1e3 * (time.perf_counter() - began))
        return done

    before = count()
    began = time.perf_counter()
    with delegraph.open(store, device=options.device) as graph:
        opened, loaded = time.perf_counter() - began, count()
        ids = graph.vertices.to_numpy()
        drawn = np.random.default_rng(1).integers(0, len(ids), options.sources)
        for source in ids[drawn].tolist():
            graph.bfs(source)  # the first search of a source is not the one that is timed
            found = timed("call", lambda source=source: graph.bfs(source))
            timed("distance", lambda found=found: found["distance"])
            timed("parent", lambda found=found: found["parent"])
            seconds = found.seconds
            if options.device != "cpu":
                seconds = sum(step["seconds"] for step in found.supersteps)
            times["search"].append(1e3 * seconds)
            times["over"].append(times["call"][-1] - times["search"][-1])
            found = graph.bfs(source)
            timed("held", lambda source=source: graph.bfs(source))
            timed("table", lambda found=found: found.table)
        for source in ids[drawn].tolist():
            timed("again", lambda source=source: graph.bfs(source))
        if options.device != "cpu":
            for source in ids[drawn].tolist():
                found = graph.bfs(source)
                timed("on device", lambda found=found: found.on_device("distance"))
        many = np.unique(ids[drawn])[:MANY].tolist()
        for _ in range(RUNS):
            timed("many", lambda: graph.bfs(sources=many))
        device = graph.device
    after = count()
    return {
        "device": device,
        "open_seconds": opened,
        "kernels_of_open": (loaded[0] - before[0], loaded[1] - before[1]),
        "kernels_after": (after[0] - loaded[0], after[1] - loaded[1]),
        "median_ms": {name: median(some) for name, some in times.items() if some},
        "worst_ms": {name: max(some) for name, some in times.items() if some},
    }


def kernels_counted() -> Callable[[], tuple[int, float]]:
    """Count the kernels that CuPy compiles or loads from its cache, and their seconds."""
    from cupy.cuda import compiler  # pyright: ignore[reportMissingImports]

    kernels, seconds = 0, 0.0
    load = compiler._compile_module_with_cache

    def counted(*arguments: Any, **options: Any) -> Any:
        nonlocal kernels, seconds
        began = time.perf_counter()
        try:
            return load(*arguments, **options)
        finally:
            kernels, seconds = kernels + 1, seconds + time.perf_counter() - began

    compiler._compile_module_with_cache = counted
    return lambda: (kernels, seconds)


def show(result: dict[str, Any]) -> None:
    figures = (
        f"{name} {result['median_ms'][name]:.3f} ({result['worst_ms'][name]:.3f})"
        for name in result["median_ms"]
    )
    opened, later = result["kernels_of_open"], result["kernels_after"]
    print(
        f"{result['graph']:<20} {', '.join(figures)}; opened in {result['open_seconds']:.2f} s; "
        f"kernels {opened[0]} in {opened[1]:.2f} s, then {later[0]} in {later[1]:.2f} s",
        flush=True,
    )


if __name__ == "__main__":
    main()
