"""64 searches: in a pass together, against one by one.

    python benchmarks/several_sources.py [--graphs kron20,reddit_related] [--data FOLDER] [--runs 5]

On a store, in memory. Prints medians and worst of the searches alone: one by one on a graph that is
opened once, by search kernels that find parents, too; in a pass, by the record of ``bfs
--sources``; and with ``--together``, to the nearest of them. Then of whole commands, from store to
Parquet, where one by one is eight of them, times eight. Ratios are to one by one, run by run.
"""

from __future__ import annotations

import argparse
import json
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
        graph.bfs(sources[0])  # the first one touches all that is held
        for _ in range(runs):
            alone = sum(graph.bfs(source).seconds for source in sources)
            for way, spent in once(store, sources, folder, alone).items():
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


def once(store: Path, sources: Sequence[int | str], folder: Path, alone: float) -> dict[str, float]:
    """Seconds of each way."""
    several = ("--sources", ",".join(map(str, sources)))
    each = search(store, folder, *several)
    nearest = search(store, folder, *several, "--together")
    some = [search(store, folder, "--source", source)[0] for source in sources[:COMMANDS]]
    return {
        "alone, one by one": alone,
        "alone, in a pass": each[1],
        "alone, to the nearest": nearest[1],
        "commands, one by one": sum(some) * len(sources) / len(some),
        "command, in a pass": each[0],
        "command, to the nearest": nearest[0],
    }


def search(store: Path, folder: Path, *options: object) -> tuple[float, float]:
    """Seconds of the command, and of its search by its record."""
    out = folder / "out"
    started = time.perf_counter()
    environment.delegraph("bfs", store, "-o", out, "--overwrite", "--device", "cpu", *options)
    spent = time.perf_counter() - started
    return spent, json.loads((folder / "out.run.json").read_text())["seconds"]["search"]


if __name__ == "__main__":
    main()
