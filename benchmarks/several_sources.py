"""64 searches: in a pass together, against one by one.

    python benchmarks/several_sources.py [--graphs kron20,reddit_related] [--data FOLDER] [--runs 5]

On a store, in memory. Prints medians and worst of the searches alone, on a graph that is opened
once: one by one, by search kernels that find parents, too; in a pass; and to the nearest of them.
Then of whole commands, from store to Parquet, where one by one is eight of them, times eight.
Ratios are to one by one, run by run.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import environment
import numpy as np
import real
from end_to_end import GRAPHS

import delegraph
from delegraph.kernels.base.team import Team
from delegraph.partition.store.store import open_store
from delegraph.pipeline.graph import Graph

SOURCES = 64
COMMANDS = 8
"""Of one source each, that stand for all."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Time 64 searches.")
    parser.add_argument("--graphs", default="kron20,cnr-2000,world_highways,luxembourg-osm")
    real.add_option(parser)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    about = environment.describe(("numba",))
    environment.show(about)
    results = []
    for name, edges in real.asked_for(options, "", GRAPHS.__contains__):
        with tempfile.TemporaryDirectory() as folder:
            results += compare(name, edges, Path(folder), options.runs)
    environment.keep("several_sources", about, results)


def compare(name: str, edges: Path | None, folder: Path, runs: int) -> list[dict]:
    """edges: of a real graph; None for one to generate."""
    if edges is None:
        edges = folder / "edges"
        environment.delegraph("generate", *GRAPHS[name].split(), "-o", edges)
    store = folder / "graph.dg"
    environment.delegraph("build", edges, "-o", store)
    vertices = open_store(store).vertices(Team(1), ["vertex"])["vertex"].to_pylist()
    chosen = np.random.default_rng(1).choice(len(vertices), SOURCES, replace=False)
    sources = [vertices[i] for i in chosen]
    times: dict[str, list[float]] = {}
    with delegraph.open(store, device="cpu") as graph:
        alone(graph, sources)  # the first ones touch all that is held
        taken = [alone(graph, sources) for _ in range(runs)]
    taken += [commands(store, sources, folder) for _ in range(runs)]
    for ways in taken:
        for way, spent in ways.items():
            times.setdefault(way, []).append(spent)
    print(f"\n{name}, {SOURCES} searches")
    print(f"{'':36}{'seconds':>10}{'worst':>10}{'ratio':>10}")
    results = []
    for way, spent in times.items():
        against = times["commands, one by one" if "command" in way else "alone, one by one"]
        ratio = statistics.median(a / b for a, b in zip(against, spent, strict=True))
        print(f"{way:36}{statistics.median(spent):>10.3f}{max(spent):>10.3f}{ratio:>10.2f}")
        figures = {"seconds": statistics.median(spent), "most": max(spent), "ratio": ratio}
        results.append({"graph": name, "way": way, **figures})
    return results


def alone(graph: Graph, sources: Sequence[int | str]) -> dict[str, float]:
    """Seconds of each way, in this process."""
    return {
        "alone, one by one": sum(graph.bfs(source).seconds for source in sources),
        "alone, in a pass": graph.bfs(sources=sources).seconds,
        "alone, to the nearest": graph.bfs(sources=sources, together=True).seconds,
    }


def commands(store: Path, sources: Sequence[int | str], folder: Path) -> dict[str, float]:
    """Seconds of each way, by the command."""
    several = ("--sources", ",".join(map(str, sources)))
    some = [command(store, folder, "--source", source) for source in sources[:COMMANDS]]
    return {
        "commands, one by one": sum(some) * len(sources) / len(some),
        "command, in a pass": command(store, folder, *several),
        "command, to the nearest": command(store, folder, *several, "--together"),
    }


def command(store: Path, folder: Path, *options: object) -> float:
    started = time.perf_counter()
    where = "-o", folder / "out", "--overwrite", "--device", "cpu"
    environment.delegraph("bfs", store, *where, *options)
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
