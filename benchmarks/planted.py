"""Planted partitions: are the blocks of ``generate blocks`` found by Leiden's method?

    python benchmarks/planted.py [--vertices 100000] [--blocks 200] [--degree 16]
        [--sizes equal,zipf] [--mixings 0.1,0.2,0.3,0.4,0.5,0.6,0.7] [--tools networkit,igraph]

Peers are called as in algorithms.py. Printed are the adjusted mutual information of communities and
blocks (1: they are the same; 0: no more alike than by chance), the number of communities, their
modularity, and the time of the search alone. The first line has the modularity of the blocks
themselves: where communities have a greater one, modularity does not ask for the blocks.

Adjusted mutual information: Vinh, Epps, Bailey: Information Theoretic Measures for Clusterings
Comparison, Journal of Machine Learning Research 11, 2010; adjusted by the mean of both entropies.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import environment
import numpy as np
import pyarrow.parquet as pq
from algorithm_peers import LIBRARIES
from algorithms import modularity
from scipy.special import gammaln, xlogy  # pyright: ignore[reportMissingImports]

import delegraph


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--vertices", type=int, default=100_000)
    parser.add_argument("--blocks", type=int, default=200)
    parser.add_argument("--degree", type=int, default=16)
    parser.add_argument("--sizes", default="equal,zipf")
    parser.add_argument("--mixings", default="0.1,0.2,0.3,0.4,0.5,0.6,0.7")
    parser.add_argument("--tools", default="networkit,igraph")
    options = parser.parse_args()
    environment.share_cores()
    tools = [tool for tool in options.tools.split(",") if tool]
    about = environment.describe(("numba", "scipy", *tools))
    environment.show(about)
    print(f"\n{options.vertices:,} vertices, {options.blocks:,} blocks, degree {options.degree}")
    results = []
    shape = {name: getattr(options, name) for name in ("vertices", "blocks", "degree")}
    for sizes in options.sizes.split(","):
        print(f"{sizes:<18}{'AMI':>8}{'communities':>13}{'modularity':>12}{'seconds':>9}")
        for mixing in map(float, options.mixings.split(",")):
            recipe = {**shape, "sizes": sizes, "mixing": mixing}
            print(f"mixing {mixing:g}")
            for result in measure(recipe, tools):
                show(result)
                results.append({**recipe, **result})
    environment.keep("planted", about, results)


def measure(recipe: dict[str, Any], tools: list[str]) -> Iterator[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        edges, truth = Path(folder, "edges"), Path(folder, "truth")
        delegraph.generate("blocks", edges, **recipe)
        delegraph.generate("blocks", truth, **recipe, truth=True)
        rows, blocks = pq.read_table(edges), pq.read_table(truth)
        n = recipe["vertices"]
        block = np.empty(n, np.int64)
        block[blocks["vertex"]] = blocks["block"]
        ends = np.sort(np.stack([rows["src"].to_numpy(), rows["dst"].to_numpy()]), axis=0)
        once = np.unique(ends[0].astype(np.int64) * n + ends[1])  # each edge
        src, dst = once // n, once % n
        found = delegraph.leiden(edges, device="cpu")
    community = np.arange(n)  # vertices without edges are alone
    community[found["vertex"]] = found["community"]
    searches = {"delegraph": (found.record["seconds"]["search"], community)}
    for tool in tools:
        library = LIBRARIES[tool]
        assert library.leiden is not None
        graph = library.simple(src, dst, n)
        began = time.perf_counter()
        communities = library.leiden(graph)
        searches[tool] = time.perf_counter() - began, np.asarray(communities)
    for tool, (seconds, label) in {"blocks": (None, block), **searches}.items():
        yield {
            "tool": tool,
            "ami": adjusted_mutual_information(block, label),
            "communities": len(np.unique(label)),
            "modularity": modularity(src, dst, label),
            "seconds": seconds,
        }


def show(result: dict[str, Any]) -> None:
    seconds = "" if result["seconds"] is None else f"{result['seconds']:.2f}"
    print(
        f"  {result['tool']:<16}{result['ami']:>8.4f}{result['communities']:>13,}"
        f"{result['modularity']:>12.5f}{seconds:>9}",
        flush=True,
    )


def adjusted_mutual_information(first: np.ndarray, second: np.ndarray) -> float:
    """first, second: a label for each vertex."""
    labels = [np.unique(given, return_inverse=True)[1] for given in (first, second)]
    sizes = [np.bincount(label) for label in labels]
    n = len(first)
    pairs, both = np.unique(labels[0] * len(sizes[1]) + labels[1], return_counts=True)
    a, b = sizes[0][pairs // len(sizes[1])], sizes[1][pairs % len(sizes[1])]
    shared = float((both / n * np.log(both * (n / a) / b)).sum())
    entropy = float(np.mean([-xlogy(size / n, size / n).sum() for size in sizes]))
    expected = expected_information(*sizes)
    if abs(entropy - expected) < 1e-12:  # nothing to tell, in both
        return 1.0
    return (shared - expected) / (entropy - expected)


def expected_information(first: np.ndarray, second: np.ndarray) -> float:
    """The mutual information of labels with these numbers of vertices, given out at random."""
    n = int(first.sum())
    total = 0.0
    others, times = np.unique(second, return_counts=True)
    for a, often in zip(*np.unique(first, return_counts=True), strict=True):
        for b, count in zip(others, times, strict=True):
            both = np.arange(max(1, a + b - n), min(a, b) + 1)
            log_probability = (
                gammaln(a + 1)
                + gammaln(b + 1)
                + gammaln(n - a + 1)
                + gammaln(n - b + 1)
                - gammaln(n + 1)
                - gammaln(both + 1)
                - gammaln(a - both + 1)
                - gammaln(b - both + 1)
                - gammaln(n - a - b + both + 1)
            )
            told = both / n * np.log(both * (n / a) / b) * np.exp(log_probability)
            total += often * count * float(told.sum())
    return total


if __name__ == "__main__":
    main()
