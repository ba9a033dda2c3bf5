"""How long `validate` takes, beside the command that made the result: whole processes, in turn.

    python benchmarks/validation.py [--graphs karate,chain,grid,kron16] [--runs 3] [--edges]

Prints the median seconds of the command and of `validate`, and the median ratio, run by run: of
wall time, and of what processors took, which other work on the machine changes less. Kernels are
compiled before. --edges: of Parquet edge lists; else of stores.

- karate: Zachary's club, 34 vertices; as NetworkX has it.
- chain: a path of 10,000 vertices.
- grid: 600 x 600 vertices.
- kron16: a Kronecker graph of 2^16 vertices and a million edges.

Several sources are 64 at random (34 of karate), those of betweenness 4.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import tempfile
import time
from pathlib import Path

import environment
import networkx
import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

GRAPHS = ("karate", "chain", "grid", "kron16")
SEVERAL, FEW = 64, 4


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--graphs", default=",".join(GRAPHS))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--edges", action="store_true", help="edge lists instead of stores")
    options = parser.parse_args()
    about = environment.describe(("numba", "pyarrow"))
    environment.show(about)
    print(f"{'':32}{'command':>10}{'validate':>10}{'ratio':>8}{'of processors':>15}")
    results = []
    for name in options.graphs.split(","):
        with tempfile.TemporaryDirectory() as folder:
            results += compare(name, Path(folder), options)
    environment.keep("validation_of_edges" if options.edges else "validation", about, results)


def compare(name: str, folder: Path, options: argparse.Namespace) -> list[dict]:
    edges, weighted = generate(name, folder)
    graphs = {"alike": [edges], "weighted": [weighted, "--weight", "weight"]}
    if not options.edges:
        for kind, of in graphs.items():
            environment.delegraph("build", *of, "-o", folder / f"{kind}.dg")
            graphs[kind] = [folder / f"{kind}.dg"]
    results = []
    for question, asked in questions(edges).items():
        command, *arguments = asked
        graph = graphs["weighted" if command == "sssp" else "alike"]
        ask = (command, *graph, *arguments, "-o", folder / "out", "--overwrite", "--restart")
        judge = ("validate", graph[0], folder / "out", *graph[1:])
        runs = [(*spent(ask), *spent(judge)) for _ in range(options.runs + 1)][1:]
        asking, _, judging, _ = (statistics.median(some) for some in zip(*runs, strict=True))
        ratio = statistics.median(judged / asked for asked, _, judged, _ in runs)
        work = statistics.median(judged / asked for _, asked, _, judged in runs)
        times = f"{asking:10.2f}{judging:10.2f}{ratio:8.2f}{work:15.2f}"
        print(f"{name:10}{question:22}{times}", flush=True)
        figures = {"command": asking, "validate": judging, "ratio": ratio, "work_ratio": work}
        results.append({"graph": name, "question": question, **figures})
    return results


def generate(name: str, folder: Path) -> tuple[Path, Path]:
    """Its edges, and the same with weights from 1 to 255."""
    if name.startswith("kron"):
        made = folder / "generated"
        environment.delegraph("generate", "kronecker", "--scale", name[4:], "-o", made)
        table = ds.dataset(made).to_table(columns=["src", "dst"])
    else:
        table = pa.table(dict(zip(("src", "dst"), edges_of(name), strict=True)))
    weight = np.random.default_rng(1).integers(1, 256, table.num_rows)
    pq.write_table(table, folder / "edges.parquet")
    pq.write_table(table.append_column("weight", pa.array(weight)), folder / "weighted.parquet")
    return folder / "edges.parquet", folder / "weighted.parquet"


def edges_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    if name == "karate":
        src, dst = zip(*networkx.karate_club_graph().edges, strict=True)
        return np.array(src), np.array(dst)
    if name == "chain":
        return np.arange(9_999), np.arange(1, 10_000)
    at = np.arange(600 * 600).reshape(600, 600)
    src = np.concatenate([at[:, :-1].ravel(), at[:-1].ravel()])
    return src, np.concatenate([at[:, 1:].ravel(), at[1:].ravel()])


def questions(edges: Path) -> dict[str, tuple[object, ...]]:
    """Commands, by name, with their arguments."""
    vertices = np.unique(np.concatenate([end.to_numpy() for end in pq.read_table(edges)]))
    several = min(SEVERAL, len(vertices))
    some = np.random.default_rng(1).choice(vertices, several, replace=False)
    named = ",".join(map(str, some))
    return {
        "bfs": ("bfs", "--source", some[0]),
        "bfs --sources": ("bfs", "--sources", named),
        "bfs --together": ("bfs", "--sources", named, "--together"),
        "components": ("components",),
        "pagerank": ("pagerank",),
        "sssp": ("sssp", "--source", some[0]),
        "betweenness": ("betweenness", "--sources", FEW),
        "betweenness of ids": ("betweenness", "--sources", ",".join(map(str, some[:FEW]))),
        "closeness": ("closeness", "--sources", several),
        "eccentricity": ("eccentricity", "--sources", several),
    }


def spent(arguments: tuple[object, ...]) -> tuple[float, float]:
    """Seconds that a command takes, and those of processors."""
    started, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    environment.delegraph(*arguments)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    work = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return time.perf_counter() - started, work


if __name__ == "__main__":
    main()
