"""Whole commands inside a memory limit: time, peaks against the plan, growth with the graph.

    python benchmarks/memory.py --cases kron18@860MB,...,kron25@860MB,kron24@512MB --folder /data

A case is a graph and a limit: kronN; kronN-sparse (64-bit ids all over their range); kronN-strings;
kronN-group (one file, one row group). For each: a build through scratch files with the input out
of the page cache and again with it in, both timed; a build in memory where that is what the
default does; a search with the store out of the page cache and again with it in. Peaks are the
proportional set sizes summed over the process tree, sampled, and the high-water mark of the
process; the plan's projection stands beside.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import environment
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from delegraph.partition.disk.memory import held_bytes, process_tree
from delegraph.pipeline.build.prepare import fits_in_memory

DELEGRAPH = [sys.executable, "-m", "delegraph"]
CASES = ",".join(
    [
        *(f"kron{scale}@860MB" for scale in range(18, 26)),
        *("kron24@512MB", "kron22-sparse@600MB", "kron22-strings@600MB", "kron22-group@600MB"),
    ]
)
COLUMNS = (
    *("rows", "cold s", "warm s", "M rows/s", "in memory", "peak", "mark", "plan"),
    *("search s", "cold", "peak", "mark", "plan", "prepare/search"),
)


class Run(NamedTuple):
    """seconds; bytes: peak of the tree, high-water mark of the process, the plan's projection."""

    seconds: float
    peak: int
    mark: int
    projected: int
    limit: int
    record: dict


def main() -> None:
    parser = argparse.ArgumentParser(description="Whole commands inside a memory limit.")
    parser.add_argument("--cases", default=CASES)
    parser.add_argument("--folder", type=Path, required=True, help="keeps the edge lists")
    options = parser.parse_args()
    about = environment.describe(("numba", "pyarrow", "dask"))
    environment.show(about)
    print(f"\n{'case':<22}" + "".join(f"{name:>{max(9, len(name) + 2)}}" for name in COLUMNS))
    results = []
    for case in options.cases.split(","):
        figures = measure(case, options.folder)
        row = "".join(
            f"{figure:>{max(9, len(name) + 2)}}"
            for name, figure in zip(COLUMNS, shown(figures), strict=True)
        )
        print(f"{case:<22}{row}", flush=True)
        results.append({"case": case, **figures})
        environment.keep("memory", about, results)


def measure(case: str, folder: Path) -> dict:
    graph, limit = case.split("@")
    edges = edge_list(graph, folder)
    store, out, scratch = folder / "graph.dg", folder / "out", folder / "scratch"
    scratch.mkdir(exist_ok=True)
    build = ["build", edges, "-o", store, "--overwrite", "--memory-limit", limit]
    figures: dict = {}
    drop_pages(edges)
    figures["build_cold"] = run([*build, "--scratch", scratch], store)
    figures["build_warm"] = run([*build, "--scratch", scratch], store)
    if fits_in_memory(figures["build_warm"].record["graph"]["rows"], os.cpu_count() or 1):
        build[-1] = "100GB"
        figures["build_in_memory"] = run(build, store)
    ids = pq.ParquetFile(store / "vertices.parquet").read_row_group(0, columns=["vertex"])
    source = ids["vertex"][len(ids) // 2].as_py()
    bfs = ["bfs", store, f"--source={source}", "-o", out, "--overwrite", "--memory-limit", limit]
    drop_pages(store)
    figures["search_cold"] = run(bfs, out)
    figures["search_warm"] = run(bfs, out)
    for path in (store, out):
        shutil.rmtree(path)
    return {
        name: {
            **found._asdict(),
            "record": {
                "steps": found.record["plan"]["steps"],
                **{key: found.record[key] for key in ("graph", "search") if key in found.record},
            },
        }
        for name, found in figures.items()
    }


def run(command: list, output: Path) -> Run:
    """Run a command to its end, watching what its processes hold."""
    peak = 0
    started = time.perf_counter()
    process = subprocess.Popen(
        [*DELEGRAPH, *map(str, command), "--quiet"], stdout=subprocess.DEVNULL
    )
    while process.poll() is None:
        peak = max(peak, sum(held_bytes(pid) for pid in process_tree(process.pid)))
        time.sleep(0.02)
    seconds = time.perf_counter() - started
    if process.returncode:
        raise SystemExit(f"{command} ended with {process.returncode}")
    record = json.loads(Path(f"{output}.run.json").read_text())
    plan = record["plan"]
    return Run(
        seconds,
        peak,
        plan["measured_peak_bytes"],
        plan["projected_peak_bytes"],
        plan["memory_limit_bytes"],
        record,
    )


def shown(figures: dict) -> list[str]:
    cold, warm = figures["build_cold"], figures["build_warm"]
    search, search_cold = figures["search_warm"], figures["search_cold"]
    in_memory = figures.get("build_in_memory")
    rows = warm["record"]["graph"]["rows"]
    mega = [f"{cold[key] / 1e6:.0f}" for key in ("peak", "mark", "projected")]
    search_mega = [f"{search_cold[key] / 1e6:.0f}" for key in ("peak", "mark", "projected")]
    return [
        f"{rows / 1e6:.1f} M",
        f"{cold['seconds']:.1f}",
        f"{warm['seconds']:.1f}",
        f"{rows / warm['seconds'] / 1e6:.1f}",
        f"x{warm['seconds'] / in_memory['seconds']:.2f}" if in_memory else "-",
        *mega,
        f"{search['seconds']:.1f}",
        f"{search_cold['seconds']:.1f}",
        *search_mega,
        f"{cold['seconds'] / search_cold['seconds']:.1f}",
    ]


def edge_list(graph: str, folder: Path) -> Path:
    """The graph's edge list, made if it is not there."""
    name, _, kind = graph.partition("-")
    plain = folder / name
    if not plain.exists():
        scale = name.removeprefix("kron")
        subprocess.run(
            [*DELEGRAPH, "generate", "kronecker", "--scale", scale, "-o", plain, "--quiet"],
            check=True,
            stdout=subprocess.DEVNULL,
        )
    if not kind:
        return plain
    path = folder / f"{graph}.parquet"
    if not path.exists():
        rewrite(plain, path, kind)
    return path


def rewrite(plain: Path, path: Path, kind: str) -> None:
    """The same graph with other ids, or in one row group."""
    schema = pa.schema([(name, pa.string() if kind == "strings" else pa.int64()) for name in ENDS])
    files = [pq.ParquetFile(file) for file in sorted(plain.glob("*.parquet"))]
    batches = (batch for file in files for batch in file.iter_batches(1 << 20))
    with pq.ParquetWriter(path, schema, use_dictionary=False) as writer:
        if kind == "group":
            table = pa.Table.from_batches(list(batches)).cast(schema)
            writer.write_table(table, row_group_size=table.num_rows)
            return
        for batch in batches:
            columns = [renamed(column, kind) for column in batch.columns]
            writer.write_batch(pa.record_batch(columns, schema=schema))


ENDS = ("src", "dst")


def renamed(column: pa.Array, kind: str) -> pa.Array:
    ids = column.to_numpy().astype(np.int64)
    if kind == "sparse":  # an odd factor: no two ids meet
        return pa.array(ids * np.int64(0x5851F42D4C957F2D))
    parts = [pa.scalar("user-"), pa.array(ids).cast(pa.string()), pa.scalar("")]
    return pc.call_function("binary_join_element_wise", parts)


def drop_pages(folder: Path) -> None:
    """Take files out of the page cache."""
    os.sync()
    for path in folder.rglob("*") if folder.is_dir() else [folder]:
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)


if __name__ == "__main__":
    main()
