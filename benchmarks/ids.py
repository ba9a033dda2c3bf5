"""How long numbering the vertices takes, by the kind of their ids.

    python benchmarks/ids.py [--delegraph PATH ...] [--runs 3] [--rows 20000000]

Random edges between random vertices, as Parquet, with three kinds of ids: dense integers, random
64-bit integers, and strings of 35 bytes. ``components`` of each program runs as a whole process.
DuckDB and Polars do the numbering alone, in a process each: all distinct ids, sorted and numbered,
and both ends of each row as such numbers. Prints medians of wall and processor seconds, and the
greatest peak of memory.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import environment
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROW_GROUP = 1 << 20

DUCKDB = """
import duckdb, sys
duckdb.sql(f"create table edges as select src, dst from '{sys.argv[1]}'")
duckdb.sql("create table ids as select id, row_number() over (order by id) - 1 as place"
           " from (select src as id from edges union select dst from edges)")
duckdb.sql("create table numbered as select a.place as s, b.place as d from edges"
           " join ids a on a.id = src join ids b on b.id = dst")
print(duckdb.sql("select count(*) from numbered").fetchall()[0][0])
"""

POLARS = """
import polars as pl, sys
edges = pl.read_parquet(sys.argv[1], columns=["src", "dst"])
ids = pl.concat([edges["src"], edges["dst"].alias("src")]).unique().sort()
table = pl.DataFrame({"id": ids}).with_row_index("place")
numbered = (
    edges.lazy()
    .join(table.lazy(), left_on="src", right_on="id")
    .join(table.lazy(), left_on="dst", right_on="id", suffix="_d")
    .select("place", "place_d")
    .collect()
)
print(len(numbered))
"""


def write_edges(folder: Path, rows: int) -> dict[str, Path]:
    """Write the three edge lists, of the same graph, and return their paths by the kind of ids."""
    rng = np.random.default_rng(1)
    vertices = rows * 3 // 10
    ends = rng.integers(0, vertices, (2, rows))
    hashes = rng.integers(-(2**63), 2**63 - 1, vertices)
    texts = pa.array([f"https://example.org/users/{i % 10**9:09}" for i in hashes.tolist()])
    columns = {"dense integers": None, "64-bit integers": pa.array(hashes), "strings": texts}
    paths = {}
    for name, ids in columns.items():
        both = [pa.array(end) if ids is None else ids.take(pa.array(end)) for end in ends]
        paths[name] = folder / f"{name.replace(' ', '-')}.parquet"
        pq.write_table(pa.table(both, ["src", "dst"]), paths[name], row_group_size=ROW_GROUP)
    return paths


def run(command: list[str]) -> tuple[float, float, float]:
    """Return the wall seconds, processor seconds and peak bytes of one process."""
    began = os.times().elapsed
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    said = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(said.decode())
    seconds = os.times().elapsed - began
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def main() -> None:
    parser = argparse.ArgumentParser(description="Time of numbering vertices, by kind of ids.")
    parser.add_argument("--delegraph", action="append", help="a program; may be given repeatedly")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--rows", type=int, default=20_000_000)
    options = parser.parse_args()
    programs = options.delegraph or [str(Path(sys.executable).with_name("delegraph"))]
    environment.show(environment.describe(("duckdb", "polars", "pyarrow", "numba")))
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:  # peaks would count its memory
            paths = pool.submit(write_edges, folder, options.rows).result()
        for kind, edges in paths.items():
            output = ["-o", str(folder / "output"), "--overwrite"]
            commands = {
                **{path: [path, "components", str(edges), *output] for path in programs},
                "DuckDB": [sys.executable, "-c", DUCKDB, str(edges)],
                "Polars": [sys.executable, "-c", POLARS, str(edges)],
            }
            measured: dict[str, list[tuple[float, float, float]]] = {name: [] for name in commands}
            for _ in range(options.runs):
                for name, command in commands.items():
                    measured[name].append(run(command))
            for name, runs in measured.items():
                walls, processors, peaks = zip(*runs, strict=True)
                print(
                    f"{kind:16} {statistics.median(walls):6.1f} s "
                    f"{statistics.median(processors):6.1f} s of processors "
                    f"{max(peaks) / 1e9:5.1f} GB  {name}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
