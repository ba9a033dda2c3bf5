"""What the layouts send: bytes of a search by four and by sixteen ranks, pushing only and choosing.

    python benchmarks/layouts.py [--scale 18] [--side 256] [--sources 8]

On a Kronecker graph and a grid. Ranks are threads of one process, so nothing but bytes and
supersteps is measured: means over the sources, of all ranks together. In the delegate layout two
options of the cluster paper (Pan, Pearce, Owens, section V-B) are weighed by the vertices that they
would keep from being sent along nn: removing duplicates ("uniquify"; here a rank sends a vertex
once in a search), and an exchange among the ranks of a node first ("local all-to-all"), after which
the node sends a vertex once.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import environment
import numpy as np
from numpy.typing import NDArray

from delegraph.kernels.base.graph import rows_of_edges
from delegraph.kernels.base.team import Team
from delegraph.partition.store.store import Store, open_store
from delegraph.pipeline.engines.direction import choose
from delegraph.pipeline.engines.ranks import result as rank_result
from delegraph.pipeline.engines.ranks.search import load_rank, search_rank
from delegraph.pipeline.engines.ranks.superstep import Choose
from delegraph.pipeline.ranks.communicator import Message, ThreadGroup, ThreadsCommunicator

RANKS = (4, 16)
LAYOUTS = ("delegate", "2d", "1d")
NODES = (2, 4)  # ranks of a node
KINDS = ("dlg/expand", "nrm/fold", "control")  # of the delegate layout, and of the others
WAYS: dict[str, Choose] = {"push": lambda *_: "push", "push-pull": choose}


class Counting(ThreadsCommunicator):
    """Counts what is sent to others, and how often."""

    sent = 0
    exchanges = 0

    def exchange(self, messages: Sequence[Message]) -> list[Message]:
        self.exchanges += 1
        for peer, message in enumerate(messages):
            if peer != self.rank:
                self.sent += sum(array.nbytes for array in message)
        return super().exchange(messages)


def main() -> None:
    parser = argparse.ArgumentParser(description="Bytes sent by layout.")
    parser.add_argument("--scale", type=int, default=18)
    parser.add_argument("--side", type=int, default=256)
    parser.add_argument("--sources", type=int, default=8)
    options = parser.parse_args()
    about = environment.describe(("numba",))
    environment.show(about)
    graphs = {
        f"kron{options.scale}": f"kronecker --scale {options.scale}",
        f"grid{options.side}": f"grid --height {options.side} --width {options.side}",
    }
    columns = ("supersteps", "exchanges", "edges", *KINDS, "end", "total")
    head = "".join(f"{column:>12}" for column in columns)
    print(f"{'graph':<8}{'ranks':>5}  {'layout':<10}{'':<10}{head}")
    results = []
    for name, recipe in graphs.items():
        with tempfile.TemporaryDirectory() as folder:
            run("generate", *recipe.split(), "-o", f"{folder}/edges")
            for ranks in RANKS:
                results += measure(name, ranks, options.sources, Path(folder))
    environment.keep("layouts", about, results)


def run(*arguments: str) -> None:
    quiet = [sys.executable, "-m", "delegraph", *arguments, "--quiet"]
    subprocess.run(quiet, check=True, stdout=subprocess.DEVNULL)


def measure(name: str, ranks: int, sources: int, folder: Path) -> list[dict[str, Any]]:
    results = []
    chosen: NDArray[np.int64] = np.empty(0, np.int64)
    distances: dict[int, NDArray[np.int32]] = {}
    for layout in LAYOUTS:
        path = f"{folder}/{layout}-{ranks}.dg"
        shape = f"--partitions {ranks} --layout {layout}"
        run("build", f"{folder}/edges", "-o", path, *shape.split())
        store = open_store(path)
        if not len(chosen):
            chosen = np.random.default_rng(1).choice(store.info.vertices, sources, replace=False)
        for way, rule in WAYS.items():
            found = [search(store, int(source), ranks, rule, folder) for source in chosen]
            for source, (distance, _) in zip(chosen.tolist(), found, strict=True):
                assert np.array_equal(distance, distances.setdefault(source, distance))
            means = {
                key: float(np.mean([counts[key] for _, counts in found])) for key in found[0][1]
            }
            figures = "".join(f"{value:>12,.0f}" for value in means.values())
            print(f"{name:<8}{ranks:>5}  {layout:<10}{way:<10}{figures}", flush=True)
            results.append({"graph": name, "ranks": ranks, "layout": layout, "way": way, **means})
        if layout == "delegate":
            weighed = [weigh(store, distances[int(source)], ranks) for source in chosen]
            means = {key: float(np.mean([one[key] for one in weighed])) for key in weighed[0]}
            told = ", ".join(f"{key} {value:,.0f}" for key, value in means.items())
            print(f"{name:<8}{ranks:>5}  vertices along nn: {told}", flush=True)
            results.append({"graph": name, "ranks": ranks, "options": means})
    return results


def search(
    store: Store, source: int, ranks: int, rule: Choose, folder: Path
) -> tuple[NDArray[np.int32], dict[str, int]]:
    """Distances, and what was counted."""
    group = ThreadGroup(ranks)
    communicators = [Counting(rank, group) for rank in range(ranks)]

    def one(communicator: Counting):
        graph = load_rank(store, communicator.rank, ranks, Team(1))
        found = search_rank(graph, source, communicator, Team(1), None, rule)
        rank_result.save(rank_result.result_of(graph), folder)
        return found

    with ThreadPoolExecutor(ranks) as pool:
        steps = next(iter(list(pool.map(one, communicators)))).supersteps
    distance, _ = rank_result.gather(store, folder)
    kinds = {
        kind: sum(step["bytes_sent"][kind] for step in steps) for kind in steps[0]["bytes_sent"]
    }
    total = sum(communicator.sent for communicator in communicators)
    # In the end parents are told, with what rank 0 records.
    return distance, {
        "supersteps": len(steps),
        "exchanges": communicators[0].exchanges,
        "edges": sum(step["edges_examined"] for step in steps),
        **kinds,
        "end": total - sum(kinds.values()),
        "total": total,
    }


def weigh(store: Store, distance: NDArray[np.int32], ranks: int) -> dict[str, int]:
    """Vertices that go to other ranks along nn, in several ways of counting.

    edges: one for each edge. a superstep: each once from a rank in a superstep. sent: as we do.
    between nodes of k: those of them that leave their node; joined: once from each node in a
    superstep.
    """
    sends = []
    edges = in_superstep = 0
    for rank in range(ranks):
        offsets, targets = store.subgraph(rank, "nn", Team(1))
        rows = rows_of_edges(offsets, 0, len(targets)).astype(np.int64)
        level = distance[rows * ranks + rank].astype(np.int64)
        away = (level >= 0) & (targets % ranks != rank)
        keys = np.unique(level[away] << 32 | targets[away])
        edges += int(np.count_nonzero(away))
        in_superstep += len(keys)
        vertices, first = np.unique(keys & 0xFFFFFFFF, return_index=True)
        sends.append((keys[first] >> 32, vertices))
    counts = {
        "edges": edges,
        "a superstep": in_superstep,
        "sent": sum(len(vertices) for _, vertices in sends),
    }
    for size in (size for size in NODES if size < ranks):
        single = joined = 0
        for first in range(0, ranks, size):
            out = [
                (level[outside] << 32 | vertices[outside])
                for level, vertices in sends[first : first + size]
                for outside in [vertices % ranks // size != first // size]
            ]
            single += sum(map(len, out))
            joined += len(np.unique(np.concatenate(out)))
        counts |= {f"between nodes of {size}": single, f"{size} joined": joined}
    return counts


if __name__ == "__main__":
    main()
