"""Shortest paths between pairs of vertices of a graph in memory: delegraph against peers.

    python benchmarks/paths.py [--graphs usa_road_t_ny,...] [--data FOLDER] [--pairs 1000]
                               [--peer-pairs 20] [--runs 3]

By default the road graph usa_road_t_ny of FOLDER/real; a name such as grid512 is a generated grid
with so many vertices on each side, weights from 1 to 100. Pairs are random, their sources all
different. Graphs are undirected and loaded beforehand. delegraph answers all pairs in one call, the
median of several; peers answer the first few pairs one by one, and their distances are compared.
SciPy and igraph search from the source alone; NetworKit from both ends if there are no weights.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import environment
import numpy as np
import peers
import pyarrow as pa
import pyarrow.parquet as pq
import real
from numpy.typing import NDArray

import delegraph

DEFAULT = "usa_road_t_ny"


class Edges(NamedTuple):
    """Edges of a graph, vertices by rising id, each pair of ends once, with the least weight."""

    ids: NDArray
    src: NDArray
    dst: NDArray
    weight: NDArray


def main() -> None:
    parser = argparse.ArgumentParser(description="Shortest paths between pairs.")
    parser.add_argument("--graphs", default=DEFAULT)
    parser.add_argument("--pairs", type=int, default=1000)
    parser.add_argument("--peer-pairs", type=int, default=20)
    parser.add_argument("--runs", type=int, default=3)
    real.add_option(parser)
    options = parser.parse_args()
    environment.share_cores()
    about = environment.describe(("numba", "scipy", "networkit", "igraph"))
    environment.show(about)
    results = []
    for name, edges in real.asked_for(options, DEFAULT, grid_of):
        with tempfile.TemporaryDirectory() as folder:
            place = edges or generated(name, Path(folder))
            for result in measure(name, place, options):
                results.append(result)
                show(result)
    environment.keep("paths", about, results)


def grid_of(name: str) -> int:
    """The side of a generated grid."""
    return int(name.removeprefix("grid"))


def generated(name: str, folder: Path) -> Path:
    side = grid_of(name)
    cell = np.arange(side * side).reshape(side, side)
    src = np.concatenate([cell[:, :-1].ravel(), cell[:-1].ravel()])
    dst = np.concatenate([cell[:, 1:].ravel(), cell[1:].ravel()])
    weight = np.random.default_rng(1).integers(1, 100, len(src))
    pq.write_table(pa.table({"src": src, "dst": dst, "weight": weight}), folder / "edges.parquet")
    return folder / "edges.parquet"


def measure(name: str, place: Path, options: Any) -> Iterator[dict[str, Any]]:
    edges = read(place)
    rng = np.random.default_rng(1)
    count = min(options.pairs, len(edges.ids))
    ends = [rng.choice(len(edges.ids), count, replace=kept) for kept in (False, True)]
    pairs = list(zip(*(edges.ids[end].tolist() for end in ends), strict=True))
    few = list(zip(*(end[: options.peer_pairs].tolist() for end in ends), strict=True))
    for weight in (None, "weight"):
        with delegraph.open(place, weight=weight, device="cpu") as graph:
            for nodes in (False, True):
                ask = partial(graph.path, pairs=pairs, nodes=nodes)
                runs = [clocked(ask) for _ in range(options.runs)]
                spent, result = [seconds for seconds, _ in runs], runs[0][1]
                tools = {} if nodes else peers_of(edges, weight is not None)
                wanted = [] if nodes else result["distance"].to_pylist()
                yield {
                    "graph": name,
                    "question": "weights" if weight else "hops",
                    "nodes": nodes,
                    "pairs": count,
                    "seconds": median(spent),
                    "worst": max(spent),
                    "seconds_a_pair": {
                        tool: by_pairs(ask, few, wanted) for tool, ask in tools.items()
                    },
                }


def read(place: Path) -> Edges:
    table = pq.read_table(place)
    src, dst = (table[end].to_numpy() for end in ("src", "dst"))
    ids, ends = np.unique(np.concatenate([src, dst]), return_inverse=True)
    u, v = np.sort(ends.reshape(2, -1), axis=0)
    weight = table["weight"].to_numpy()
    order = np.lexsort([weight, v, u])
    u, v, weight = u[order], v[order], weight[order]
    first = (np.diff(u * len(ids) + v, prepend=-1) != 0) & (u != v)
    return Edges(ids, u[first], v[first], weight[first])


def peers_of(edges: Edges, weighted: bool) -> dict[str, Callable[[int, int], float]]:
    """Functions that return the distance between two vertices."""
    import networkit  # pyright: ignore[reportMissingImports]
    import scipy.sparse  # pyright: ignore[reportMissingImports]
    from scipy.sparse.csgraph import dijkstra  # pyright: ignore[reportMissingImports]

    n = len(edges.ids)
    ends = edges.src, edges.dst, n
    heavy = edges.weight.astype(float)
    matrix = scipy.sparse.csr_matrix((heavy, (edges.src, edges.dst)), (n, n))
    by_igraph = peers.igraph_graph(*ends)
    rows = (heavy, (edges.src, edges.dst)) if weighted else (edges.src, edges.dst)
    by_networkit = networkit.GraphFromCoo(rows, n=n, weighted=weighted)
    known = networkit.distance

    def by_networkit_of(source: int, target: int) -> float:
        if weighted:  # its search from both ends crashes
            run = known.Dijkstra(by_networkit, source, False, False, target)
            return run.run().distance(target)
        run = known.BidirectionalBFS(by_networkit, source, target, False)
        return run.run().getDistance()

    def by_scipy(source: int, target: int) -> float:
        how = {"directed": False, "unweighted": not weighted}
        return dijkstra(matrix, indices=source, **how)[target]

    if weighted:
        by_igraph.es["weight"] = heavy

    def igraph(source: int, target: int) -> float:
        return by_igraph.distances(source, target, weights="weight" if weighted else None)[0][0]

    return {"networkit": by_networkit_of, "igraph": igraph, "scipy": by_scipy}


def by_pairs(
    ask: Callable[[int, int], float], pairs: list[tuple[int, int]], wanted: list[float | None]
) -> float:
    """The median seconds of a pair, after a check of its distance."""
    spent = []
    for pair, distance in zip(pairs, wanted, strict=False):
        seconds, found = clocked(lambda pair=pair: ask(*pair))
        assert distance is None or found == distance, (pair, found, distance)
        spent.append(seconds)
    return median(spent)


def clocked(run: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    found = run()
    return time.perf_counter() - began, found


def show(result: dict[str, Any]) -> None:
    own = result["seconds"] / result["pairs"]
    ratios = ", ".join(
        f"{tool} {1e3 * spent:.1f} ms ({spent / own:.1f} times)"
        for tool, spent in result["seconds_a_pair"].items()
    )
    question = result["question"] + (" --nodes" if result["nodes"] else "")
    print(
        f"{result['graph']:<20}{question:<17}{result['pairs']} pairs {result['seconds']:>6.2f} s, "
        f"worst {result['worst']:.2f}, a pair {1e3 * own:.2f} ms; {ratios}",
        flush=True,
    )


if __name__ == "__main__":
    main()
