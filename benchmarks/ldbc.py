"""delegraph run as LDBC Graphalytics asks, and the published times of others on their machines.

    python benchmarks/ldbc.py [--graphs FOLDER/graph500-22.e,...] [--scale 22] [--runs 3]

--graphs are Graphalytics' graphs: NAME.e, with NAME.v and NAME.properties beside it, and the
reference answers NAME-BFS, NAME-PR and so on where they are at hand. Without it,
Graph500's Kronecker graph is generated, as for Graphalytics' graph500-22 (2,396,657 vertices and
64,155,735 edges), but from other random numbers. Graphalytics gives it no weights: shortest paths
run over the same graph with integer weights from 1 to 255.

What is measured, in the words of the specification (ldbcouncil.org/benchmarks/graphalytics):

- load: to convert the graph to the platform's format, once for all runs. Here `convert` and
  `build` (`build` alone of a generated graph), with the kernels compiled.
- makespan: from the command to the output. Here a whole process, from the store to the Parquet
  files of the result.
- processing: the algorithm alone, without loading or writing. Here `seconds.search` of the run's
  record, the time that `delegraph bench` reports too.
- EVPS: vertices and edges over the processing time.

Times are arithmetic means of --runs runs, as the competition of 2023 takes them. Beside them
("kept loaded") stands the median of `delegraph bench`: it keeps the graph in memory between runs.

Answers are held against the references by Graphalytics' rules: BFS and CDLP equal, WCC equal up to
a renaming of labels, PR, LCC and SSSP within 1e-4, relatively. Where there is no reference,
`delegraph validate` judges.

The second table holds published times. Each is of another machine, so none is divided by ours.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import environment
import processes
import pyarrow.dataset as ds

COMMANDS = {
    "bfs": "bfs",
    "pr": "pagerank",
    "wcc": "components",
    "cdlp": "labels",
    "lcc": "clustering",
    "sssp": "sssp",
}
"""Graphalytics' names of algorithms, and delegraph's."""
ITERATIONS, DAMPING = 10, 0.85
"""Parameters of PageRank, and of label propagation, on generated graphs."""
NEAR = 1e-4
"""How far PageRanks, coefficients and shortest paths may be from the reference, relatively."""


class Dataset(NamedTuple):
    """A graph to run on.

    edges: a Graphalytics file, or a generated Parquet edge list. parameters: those of the
    algorithms, by names such as "bfs.source-vertex". references: prefix of the files with reference
    answers; None of a generated graph.
    """

    name: str
    edges: Path
    directed: bool
    weighted: bool
    algorithms: tuple[str, ...]
    parameters: dict[str, str]
    references: Path | None = None


class Published(NamedTuple):
    """A published time. seconds: None where it is not published. source: a key of SOURCES."""

    system: str
    machine: str
    graph: str
    algorithm: str
    makespan: float | None
    processing: float
    source: str


SOURCES = {
    "report": "Graphalytics 2023 Competition Report (ldbcouncil.org/post/"
    "graphalytics-2023-competition-report): means over the data sets of size S, graph500-22 among "
    "them, and all six algorithms, CDLP and LCC included",
    "libgrape-lite": "github.com/alibaba/libgrape-lite, Performance.md: evaluation time, graph "
    "loaded",
}
GRAPH500_26 = 32_804_978 + 1_051_922_853
"""Vertices and edges of graph500-26."""

_CLOUD = "4 x r6.8xlarge, 32 threads each"
PUBLISHED = [
    *(
        Published(system, machine, "size S", "all six", makespan, processing, "report")
        for system, machine, makespan, processing in (
            ("GeaCompute", "1 x ecs.c8i.24xlarge or c8a.48xlarge (96 or 192 cores)", 2.25, 0.20),
            ("GraphBLAS", "2 x Xeon Platinum 8480 (224 threads), 1 TB", 2.46, 1.23),
            ("libgrape-lite", "2 x r7.16xlarge (32 cores of a Xeon 8480B each)", 9.51, 0.37),
            ("GraphBLAS", "Xeon Gold 6342, 16 GB", 10.40, 3.62),
            ("libgrape-gpu", "8 x A100, 2 x Xeon Platinum 8396 (64 cores), 1 TB", 27.42, 0.04),
        )
    ),
    *(
        Published(system, _CLOUD, "graph500-26", algorithm, None, seconds, "libgrape-lite")
        for system, times in {
            "libgrape-lite": {"bfs": 0.20, "pr": 2.42, "wcc": 0.71, "cdlp": 7.59, "lcc": 201.20},
            "GeminiGraph": {"bfs": 0.53, "wcc": 1.60},
            "Plato": {"bfs": 1.56, "wcc": 4.79, "cdlp": 12.86},
            "PowerGraph": {"bfs": 4.86, "pr": 28.66, "wcc": 13.71, "cdlp": 425.55, "lcc": 1859.86},
        }.items()
        for algorithm, seconds in times.items()
    ),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--graphs", help="Graphalytics' files NAME.e, separated by commas")
    parser.add_argument("--scale", type=int, default=22, help="of the graph to generate")
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    about = environment.describe(("numba", "pyarrow"))
    environment.show(about)
    results = []
    print(
        "\n| graph | algorithm | load s | makespan s | processing s | million EVPS "
        "| kept loaded s | peak GB | answer |\n|---|---|--:|--:|--:|--:|--:|--:|---|"
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if options.graphs:
            data = [graphalytics(Path(path)) for path in options.graphs.split(",")]
        else:
            data = generated(options.scale, folder)
        for dataset in data:
            results += measure(dataset, options.runs, folder)
            environment.keep("ldbc", about, results)
    print()
    for name, vertices, edges in {(one["graph"], one["vertices"], one["edges"]) for one in results}:
        print(f"{name}: {vertices:,} vertices, {edges:,} edges")
    print()
    show_published()
    about["published"] = [one._asdict() for one in PUBLISHED]
    about["sources"] = SOURCES
    environment.keep("ldbc", about, results)


def graphalytics(edges: Path) -> Dataset:
    """A graph by its file NAME.e and what NAME.properties says of it."""
    name = edges.stem
    lines = edges.with_suffix(".properties").read_text().splitlines()
    pairs = [line.split("=", 1) for line in lines if "=" in line and not line.startswith("#")]
    prefix = f"graph.{name}."
    said = {key.strip().removeprefix(prefix): value.strip() for key, value in pairs}
    offered = [one.strip() for one in said["algorithms"].split(",")]
    return Dataset(
        name,
        edges,
        said["directed"] == "true",
        "edge-properties.names" in said,
        tuple(one for one in COMMANDS if one in offered),
        said,
        edges.with_suffix(""),
    )


def generated(scale: int, folder: Path) -> list[Dataset]:
    """Graph500's Kronecker graph, and the same with weights for shortest paths."""
    data = []
    for weighted in (False, True):
        edges = folder / f"kron{scale}{'w' * weighted}"
        weights = ("--weighted",) if weighted else ()
        environment.delegraph("generate", "kronecker", "--scale", scale, "-o", edges, *weights)
        source = str(ds.dataset(edges).head(1)["src"][0].as_py())
        parameters = {
            "bfs.source-vertex": source,
            "sssp.source-vertex": source,
            "pr.num-iterations": str(ITERATIONS),
            "pr.damping-factor": str(DAMPING),
            "cdlp.max-iterations": str(ITERATIONS),
        }
        name = f"Kronecker {scale}{' with weights' if weighted else ''} (generated)"
        algorithms = ("sssp",) if weighted else ("bfs", "pr", "wcc", "cdlp", "lcc")
        data.append(Dataset(name, edges, False, weighted, algorithms, parameters))
    return data


def measure(dataset: Dataset, runs: int, folder: Path) -> list[dict]:
    """Load a graph and run its algorithms; prints their rows."""
    store = folder / "graph.dg"
    load(dataset, store, folder)  # compiles
    seconds = load(dataset, store, folder)
    info = json.loads(delegraph("info", store, "--json"))
    size = info["vertices"] + info["edges"]
    results = []
    for algorithm in dataset.algorithms:
        result = {"graph": dataset.name, "algorithm": algorithm, "load": seconds}
        result |= {key: info[key] for key in ("vertices", "edges")}
        result |= run(dataset, algorithm, store, runs, folder)
        result["evps"] = size / result["processing"]
        result["kept_loaded"] = kept_loaded(dataset, algorithm, store, runs)
        print(
            f"| {dataset.name} | {algorithm.upper()} | {seconds:.2f} | {result['makespan']:.2f} "
            f"| {result['processing']:.4f} | {result['evps'] / 1e6:,.0f} "
            f"| {result['kept_loaded']:.4f} | {result['peak'] / 1e9:.2f} | {result['answer']} |",
            flush=True,
        )
        results.append(result)
    return results


def load(dataset: Dataset, store: Path, folder: Path) -> float:
    """Seconds to convert a graph and to build its store."""
    rows, seconds = dataset.edges, 0.0
    if dataset.references is not None:
        rows = folder / "converted"
        seconds += command("convert", dataset.edges, "-o", rows, "--overwrite").seconds
    options = ["--directed"] if dataset.directed else []
    options += ["--weight", "weight"] if dataset.weighted else []
    return seconds + command("build", rows, "-o", store, "--overwrite", *options).seconds


def run(dataset: Dataset, algorithm: str, store: Path, runs: int, folder: Path) -> dict:
    """Means of runs, and whether the last answer is right."""
    out = folder / "out"
    line = (COMMANDS[algorithm], store, "-o", out, "--overwrite", "--restart")
    line = (*line, *arguments(dataset, algorithm))
    command(*line)  # compiles
    done, processing = [], []
    for _ in range(runs):
        done.append(command(*line))
        record = json.loads(Path(f"{out}.run.json").read_text())
        processing.append(record["seconds"]["search"])
    return {
        "makespan": statistics.mean(one.seconds for one in done),
        "processing": statistics.mean(processing),
        "peak": statistics.median(one.peak for one in done),
        "answer": judged(dataset, algorithm, store, out),
    }


def arguments(dataset: Dataset, algorithm: str) -> tuple[str, ...]:
    """Options of delegraph's command, from the parameters of the graph."""
    said = dataset.parameters
    if algorithm in ("bfs", "sssp"):
        return ("--source", said[f"{algorithm}.source-vertex"])
    if algorithm == "pr":
        iterations = ("--iterations", said["pr.num-iterations"])
        return (*iterations, "--damping", said["pr.damping-factor"], "--unweighted")
    if algorithm == "cdlp":
        return ("--iterations", said["cdlp.max-iterations"], "--unweighted")
    return ()


def judged(dataset: Dataset, algorithm: str, store: Path, out: Path) -> str:
    """How right an answer is, in words."""
    reference = dataset.references and Path(f"{dataset.references}-{algorithm.upper()}")
    if not reference or not reference.exists():
        delegraph("validate", store, out)
        return "valid (own rules)"
    right = agree(algorithm, answer(algorithm, out), values(reference))
    return "equals the reference" if right else "WRONG"


def answer(algorithm: str, out: Path) -> dict[str, str]:
    """A result's values by vertex, as text."""
    if algorithm == "lcc":  # the result has the triangles, too
        table = ds.dataset(out).to_table()
        pairs = zip(table["vertex"].to_pylist(), table["clustering"].to_pylist(), strict=True)
        return {str(vertex): str(value) for vertex, value in pairs}
    text = out.with_suffix(".txt")
    command("convert", out, "-o", text, "--overwrite")
    return values(text)


def values(path: Path) -> dict[str, str]:
    """Values by vertex, as Graphalytics writes them."""
    return dict(line.split() for line in path.read_text().splitlines())


def agree(algorithm: str, found: dict[str, str], wanted: dict[str, str]) -> bool:
    """Whether an answer equals the reference by Graphalytics' rules."""
    if found.keys() != wanted.keys():
        return False
    if algorithm in ("bfs", "cdlp"):
        return found == wanted
    if algorithm == "wcc":
        pairs = {(found[vertex], wanted[vertex]) for vertex in wanted}
        return len(pairs) == len(set(found.values())) == len(set(wanted.values()))
    return all(
        math.isclose(float(found[vertex]), float(wanted[vertex]), rel_tol=NEAR) for vertex in wanted
    )


def kept_loaded(dataset: Dataset, algorithm: str, store: Path, runs: int) -> float:
    """Median seconds of a run over a store that stays loaded, by ``delegraph bench``.

    PageRank's stop there is a tolerance: an iteration's time is multiplied.
    """
    name = () if algorithm == "bfs" else ("--algorithm", COMMANDS[algorithm])
    report = json.loads(delegraph("bench", store, *name, "--sources", runs, "--json"))
    if algorithm == "bfs":
        return report["search_seconds"]["median"]
    if algorithm == "pr":
        iterations = int(dataset.parameters["pr.num-iterations"])
        return report["iteration_seconds"]["median"] * iterations
    return report["seconds"]["median"]


def command(*line: object) -> processes.Run:
    """Run a command of delegraph, measured."""
    return processes.run([sys.executable, "-m", "delegraph", *map(str, line), "--quiet"])


def delegraph(*line: object) -> str:
    """Run a command of delegraph, and return its output."""
    whole = [sys.executable, "-m", "delegraph", *map(str, line)]
    return subprocess.run(whole, check=True, capture_output=True, text=True).stdout


def show_published() -> None:
    print(
        "| system | its machine | graph | algorithm | makespan s | processing s | million EVPS "
        "| source |\n|---|---|---|---|--:|--:|--:|---|"
    )
    for one in PUBLISHED:
        makespan = "" if one.makespan is None else f"{one.makespan:.2f}"
        evps = f"{GRAPH500_26 / one.processing / 1e6:,.0f}" if one.graph == "graph500-26" else ""
        print(
            f"| {one.system} | {one.machine} | {one.graph} | {one.algorithm.upper()} | {makespan} "
            f"| {one.processing:.2f} | {evps} | {one.source} |"
        )
    print()
    for name, text in SOURCES.items():
        print(f"- {name}: {text}")


if __name__ == "__main__":
    main()
