"""Whole commands on a machine with a GPU: on it, on the CPU, and as ``--device auto`` chooses, in
turn.

    python benchmarks/gpu_commands.py [--graphs kron22,cnr-2000,...] [--commands bfs,sssp,...]
        [--devices cpu,cuda,auto] [--data FOLDER] [--runs 3]

By default the generated graphs below and all Parquet files of FOLDER and FOLDER/real, undirected.
Each command goes to Parquet, from a store and, where it says so, from the edge list; shortest paths
want weights, which generated graphs have. Prints the median seconds of the whole process and the
worst, and of its record's phases; the ratio is the CPU's time over the GPU's, run by run. Of auto
it prints the chosen device, and how many times as long that one takes as the faster of both. Before
the first graph the commands run once, so that compiled kernels are in their caches.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import environment
import real

GENERATED = "kron22,kron24"
COMMANDS = {
    "bfs": ("--source", None),
    "bfs together": ("--sources", None, "--together"),
    "components": (),
    "pagerank": (),
    "sssp": ("--source", None),
    "betweenness": ("--sources", 16),
    "closeness": ("--sources", 64),
    "degree": (),
    "hits": (),
    "labels": (),
    "cores": (),
    "forest": (),
    "leiden": (),
}
OF_EDGES = ("bfs", "components", "pagerank", "sssp", "degree", "leiden")
WEIGHT = ("--weight", "weight")
DEVICES = ("cpu", "cuda", "auto")


def main() -> None:
    parser = argparse.ArgumentParser(description="Whole commands on a GPU and on the CPU.")
    parser.add_argument("--graphs")
    parser.add_argument("--commands", default=",".join(COMMANDS))
    parser.add_argument("--devices", default=",".join(DEVICES))
    parser.add_argument("--runs", type=int, default=3)
    real.add_option(parser)
    options = parser.parse_args()
    about = environment.describe(("numba", "pyarrow", "cupy"))
    environment.show(about)
    results: list[dict[str, Any]] = []
    asked = options.commands.split(","), options.devices.split(",")
    with tempfile.TemporaryDirectory() as folder:
        list(compare("kron16", None, Path(folder), 1, *asked))
    for name, edges in real.asked_for(options, GENERATED, real.scale_of):
        with tempfile.TemporaryDirectory() as folder:
            for result in compare(name, edges, Path(folder), options.runs, *asked):
                results.append(result)
                show(result)
    environment.keep("gpu_commands", about, results)


def compare(
    name: str,
    edges: Path | None,
    folder: Path,
    runs: int,
    commands: list[str],
    devices: list[str],
) -> Iterator[dict[str, Any]]:
    """edges: of a real graph; None for one to generate."""
    weight: tuple[str, ...] = ()
    if edges is None:
        edges, weight = folder / "edges", WEIGHT
        how = "--scale", real.scale_of(name), "--weighted"
        environment.delegraph("generate", "kronecker", *how, "-o", edges)
    store = folder / "graph.dg"
    environment.delegraph("build", edges, "-o", store, "--device", "cuda", *weight)
    environment.delegraph("closeness", store, "-o", folder / "some", "--sources", 8)
    source = vertex_of(folder / "some")
    possible = [command for command in commands if command != "sssp" or weight]
    jobs = [(command, store) for command in possible]
    jobs += [(command, edges) for command in possible if command in OF_EDGES]
    for command, graph in jobs:
        times: dict[str, list[float]] = {device: [] for device in devices}
        phases: dict[str, dict[str, float]] = {}
        used: dict[str, str] = {}
        for _ in range(runs):
            for device in devices:
                place = folder / "out", source, device
                spent, phases[device], used[device] = run(command, graph, *place)
                times[device].append(spent)
        result = {
            "graph": name,
            "command": command,
            "from": "store" if graph == store else "edges",
            **{f"{device}_seconds": median(times[device]) for device in devices},
            **{f"{device}_worst": max(times[device]) for device in devices},
            "phases": phases,
        }
        if {"cpu", "cuda"} <= {*devices}:
            pairs = zip(times["cpu"], times["cuda"], strict=True)
            result["ratio"] = median(a / b for a, b in pairs)
            if "auto" in devices:
                both = {name: median(times[name]) for name in ("cpu", "cuda")}
                result["chosen"] = used["auto"].partition(":")[0]
                result["chosen_ratio"] = both[result["chosen"]] / min(both.values())
        yield result


def vertex_of(result: Path) -> str:
    """One that reaches most: the first of those with the greatest closeness."""
    import pyarrow.parquet as pq

    table = pq.read_table(result).sort_by([("closeness", "descending")])
    return str(table["vertex"][0].as_py())


def run(
    command: str, graph: Path, out: Path, source: str, device: str
) -> tuple[float, dict[str, float], str]:
    """Seconds of the process, and of its phases, and the device."""
    asked = [source if value is None else value for value in COMMANDS[command]]
    asked += WEIGHT if command == "sssp" and graph.name == "edges" else ()
    began = time.perf_counter()
    how = "-o", out, "--overwrite", "--device", device
    environment.delegraph(command.split()[0], graph, *how, *asked)
    spent = time.perf_counter() - began
    record = json.loads(out.with_name("out.run.json").read_text())
    used = record["device"]
    assert device == "auto" or used.startswith(device), used
    return spent, {name: round(value, 3) for name, value in record["seconds"].items()}, used


def show(result: dict[str, Any]) -> None:
    line = f"{result['graph']:<20}{result['command']:<13}{result['from']:<6}"
    for device, phases in result["phases"].items():
        median, worst = (result[f"{device}_{figure}"] for figure in ("seconds", "worst"))
        line += f"{median:>7.2f} s {device} (worst {worst:.2f}; {phases})"
    line += f"; {result['ratio']:.2f} times" if "ratio" in result else ""
    if "chosen" in result:
        line += f"; auto: {result['chosen']}, {result['chosen_ratio']:.2f} times the faster one"
    print(line, flush=True)


if __name__ == "__main__":
    main()
