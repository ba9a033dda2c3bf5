"""HITS, eigenvector and Katz centrality of a graph in memory: delegraph against peers from PyPI.

    python benchmarks/scores.py [--graphs kron20,cnr-2000,...] [--data FOLDER] [--runs 3]

By default the generated graph below and all Parquet files of FOLDER and FOLDER/real, undirected,
without weights. Graphs are loaded beforehand; a time is a whole call, the median of several. SciPy
does the same steps as delegraph and stops at the same one, and its scores are compared with
delegraph's. NetworKit iterates to the same tolerance, in its own norm; igraph finds eigenvectors by
ARPACK. Ratios are to delegraph's time.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import environment
import numpy as np
import peers
import pyarrow.parquet as pq
import real

import delegraph

GENERATED = "kron20"


def main() -> None:
    parser = argparse.ArgumentParser(description="HITS, eigenvector and Katz centrality.")
    parser.add_argument("--graphs")
    parser.add_argument("--runs", type=int, default=3)
    real.add_option(parser)
    options = parser.parse_args()
    environment.share_cores()
    about = environment.describe(("numba", "scipy", "networkit", "igraph"))
    environment.show(about)
    results = []
    for name, edges in real.asked_for(options, GENERATED, real.scale_of):
        with tempfile.TemporaryDirectory() as folder:
            place = edges or generated(name, Path(folder))
            for result in measure(name, place, options.runs):
                results.append(result)
                show(result)
    environment.keep("scores", about, results)


def generated(name: str, folder: Path) -> Path:
    edges = folder / "edges"
    environment.delegraph("generate", "kronecker", "--scale", real.scale_of(name), "-o", edges)
    return edges


def measure(name: str, edges: Path, runs: int) -> Iterator[dict[str, Any]]:
    with delegraph.open(edges, device="cpu") as graph:
        adjacency = matrix(edges)
        alpha = float(graph.katz().record["katz"]["alpha"])
        known = others(adjacency, alpha)
        for question, tools in known.items():
            asked = {"alpha": alpha} if question == "katz" else {}
            ask = getattr(graph, question)
            iterations = ask(**asked).record[question]["iterations"]
            times: dict[str, list[float]] = {"delegraph": [], **{tool: [] for tool in tools}}
            for _ in range(runs):
                spent, result = clocked(lambda ask=ask, asked=asked: ask(**asked))
                times["delegraph"].append(spent)
                for tool, run in tools.items():
                    spent, found = clocked(run)
                    times[tool].append(spent)
                    if tool == "scipy":
                        check(result, found)
            yield {
                "graph": name,
                "question": question,
                "iterations": iterations,
                "seconds": {tool: median(spent) for tool, spent in times.items()},
                "worst": {tool: max(spent) for tool, spent in times.items()},
            }


def matrix(edges: Path) -> Any:
    """The adjacency matrix of the simple undirected graph, vertices by rising id."""
    import scipy.sparse  # pyright: ignore[reportMissingImports]

    table = pq.read_table(edges)
    src, dst = (table[end].to_numpy() for end in ("src", "dst"))
    ids, ends = np.unique(np.concatenate([src, dst]), return_inverse=True)
    u, v = np.split(ends, 2)
    u, v = np.r_[u, v][np.r_[u != v, u != v]], np.r_[v, u][np.r_[u != v, u != v]]
    made = scipy.sparse.csr_matrix((np.ones(len(u)), (u, v)), shape=(len(ids), len(ids)))
    made.data[:] = 1
    return made


def others(adjacency: Any, alpha: float) -> dict[str, dict[str, Callable[[], Any]]]:
    from networkit import centrality  # pyright: ignore[reportMissingImports]

    n = adjacency.shape[0]
    rows = adjacency.tocoo()
    once = rows.row < rows.col
    ends = rows.row[once], rows.col[once], n
    by_igraph, by_networkit = peers.igraph_graph(*ends), peers.networkit_graph(*ends)
    return {
        "hits": {
            "scipy": lambda: scipy_hits(adjacency),
            "igraph": lambda: by_igraph.hub_score(),
        },
        "eigenvector": {
            "scipy": lambda: scipy_eigenvector(adjacency),
            "networkit": lambda: centrality.EigenvectorCentrality(by_networkit, 1e-6).run(),
            "igraph": lambda: by_igraph.eigenvector_centrality(),
        },
        "katz": {
            "scipy": lambda: scipy_katz(adjacency, alpha),
            "networkit": lambda: centrality.KatzCentrality(by_networkit, alpha, 1.0, 1e-6).run(),
        },
    }


def scipy_hits(adjacency: Any) -> list[Any]:
    hub = np.full(adjacency.shape[0], 1 / adjacency.shape[0])
    authority = hub
    for _ in range(100):
        authority = adjacency @ hub
        came = adjacency @ authority
        came /= came.sum()
        change, hub = abs(came - hub).sum(), came
        if change < 1e-8:
            break
    return [hub, authority / authority.sum()]


def scipy_eigenvector(adjacency: Any) -> list[Any]:
    score = np.full(adjacency.shape[0], 1 / adjacency.shape[0])
    for _ in range(100):
        came = score + adjacency @ score
        came /= np.linalg.norm(came)
        change, score = abs(came - score).sum(), came
        if change < 1e-6:
            break
    return [score]


def scipy_katz(adjacency: Any, alpha: float) -> list[Any]:
    score = np.zeros(adjacency.shape[0])
    for _ in range(1000):
        came = alpha * (adjacency @ score) + 1
        change, score = abs(came - score).sum(), came
        if change < len(score) * 1e-6:
            break
    return [score / np.linalg.norm(score)]


def clocked(run: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    found = run()
    return time.perf_counter() - began, found


def check(result: Any, found: list[Any]) -> None:
    table = result.table.sort_by("vertex")
    for column, scores in zip(table.column_names[1:], found, strict=True):
        np.testing.assert_allclose(table[column].to_numpy(), scores, rtol=1e-9, atol=1e-300)


def show(result: dict[str, Any]) -> None:
    own = result["seconds"]["delegraph"]
    ratios = ", ".join(
        f"{tool} {spent / own:.2f} times"
        for tool, spent in result["seconds"].items()
        if tool != "delegraph"
    )
    print(
        f"{result['graph']:<20}{result['question']:<13}{1e3 * own:>9.1f} ms, worst "
        f"{1e3 * result['worst']['delegraph']:.1f}, {result['iterations']} iterations; {ratios}",
        flush=True,
    )


if __name__ == "__main__":
    main()
