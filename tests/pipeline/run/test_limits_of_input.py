"""Memory limits are kept whatever the file holds: strings of any length, pages of any size."""

from __future__ import annotations

import re
import subprocess

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delegraph.partition.disk import memory
from support.marks import partly_nightly
from support.processes import command, peak_of

MB = 10**6
ROWS = 300_000
LARGE_PAGES = {"data_page_size": 1 << 30, "write_batch_size": 1 << 28, "max_rows_per_page": 1 << 28}


def table_of(kind: str) -> pa.Table:
    rng = np.random.default_rng(2)
    if kind == "equal rows":
        one = np.full(30_000_000, 7)
        return pa.table({"src": one, "dst": one + 1})
    if kind == "large pages":
        src, dst = rng.integers(0, 500_000, (2, 6_000_000))
        return pa.table({"src": src, "dst": dst})
    if kind == "long after short":
        names = [f"v{i}" for i in range(50_000)]
        names += [f"https://example.org/{i}/" + "x" * 330 for i in range(50_000)]
        at = np.sort(rng.integers(0, 100_000, (2, ROWS)), axis=1)
        src, dst = (pa.array([names[i] for i in side], pa.large_string()) for side in at)
        return pa.table({"src": src, "dst": dst})
    if kind == "one long":
        src = [f"v{i}" for i in rng.integers(0, 60_000, ROWS)]
        src[0] = "z" * 2_000_000
        return pa.table({"src": src, "dst": src[::-1]})
    lengths = {
        "20 bytes": np.full(ROWS, 20),
        "2000 bytes": np.full(ROWS // 10, 2000),
        "skewed": 10 + (rng.random(ROWS) ** 12 * 3000).astype(int),
    }[kind]
    ids = rng.integers(0, len(lengths), (2, len(lengths)))
    text = [[f"{i:07}/" + "x" * (lengths[i] - 8) for i in side] for side in ids]
    return pa.table({"src": text[0], "dst": text[1]})


FILES = {
    "20 bytes": {},
    "2000 bytes": {},
    "2000 bytes, many row groups": {"row_group_size": 2000},
    "long after short": {"row_group_size": 30_000},
    "long after short, one row group": {},
    "skewed": {"row_group_size": 20_000},
    "one long": {},
    "equal rows": {"use_dictionary": False, "compression": "zstd", **LARGE_PAGES},
    "large pages": {"use_dictionary": False, **LARGE_PAGES},
}


OFTEN = {"2000 bytes", "large pages"}
"""Files that are read in every slow run; the others nightly."""


def least_limit(stderr: str) -> int:
    match = re.search(r"--memory-limit ([\d.]+[MG]B) or more", stderr)
    assert match, stderr
    return memory.parse_bytes(match[1])


@pytest.mark.nightly
@pytest.mark.parametrize("through", ["a store", "the edge list"])
def test_parents_with_long_names_are_written_within_a_limit(tmp_path, through):
    """A star around a name of 20 kB is written within a limit: a result has the name as often as
    there are leaves.
    """
    path, graph, leaves = tmp_path / "e.parquet", tmp_path / "g.dg", 100_000
    hub = pa.array(["hub" * 7000]).take(pa.array(np.zeros(leaves, np.int32)))
    pq.write_table(pa.table({"src": hub, "dst": [f"v{i}" for i in range(leaves)]}), path)
    if through == "a store":
        assert peak_of(command("build", path, "-o", graph))[0] == 0
    else:
        graph = path
    line = command("bfs", graph, "--source", "v1", "-o", tmp_path / "out")
    peak_of([*line, "--memory-limit", "600MB"])  # a process that compiles holds more
    code, _, stderr = peak_of([*line, "--overwrite", "--memory-limit", "1MB"])
    least = least_limit(stderr) + 2 * MB
    code, peak, stderr = peak_of([*line, "--overwrite", "--memory-limit", str(least)])
    assert (code, peak <= least) == (0, True), (stderr, peak, least)
    assert least < 900 * MB  # of two billion characters
    schema = pq.read_schema(next((tmp_path / "out").glob("*.parquet")))
    assert schema.names == ["vertex", "distance", "parent"]
    stderr = subprocess.run(command("validate", graph, tmp_path / "out"), capture_output=True)
    assert stderr.returncode == 0, stderr.stderr


@pytest.mark.parametrize("name", partly_nightly(FILES, *(FILES.keys() - OFTEN)))
def test_a_build_keeps_any_limit_or_refuses_within_it(tmp_path, name):
    path, out = tmp_path / "e.parquet", tmp_path / "g.dg"
    table = table_of(name.split(",")[0])
    pq.write_table(table, path, **{"row_group_size": len(table), **FILES[name]})
    line = command("build", path, "-o", out)
    peak_of([*line, "--memory-limit", "1MB"])  # a process that compiles holds more
    code, refusing, stderr = peak_of([*line, "--memory-limit", "1MB"])
    assert code == 2
    least = least_limit(stderr) + 2 * MB  # what a process holds before any work varies a little
    assert refusing < least
    assert not list(tmp_path.glob(".*"))
    for limit in (least, 1000 * MB):
        code, peak, stderr = peak_of([*line, "--overwrite", "--memory-limit", str(limit)])
        assert code == 0, stderr
        assert peak <= limit
    assert least < 1200 * MB
