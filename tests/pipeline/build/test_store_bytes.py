"""A store's arrays and tables are the bytes that earlier versions wrote.

``store_bytes.json`` holds digests of stores that were built before the source code was rearranged
into layers. A change of the store format writes the digests anew: run this file by ``python``.
Files of arrays count byte for byte; the vertex table counts by its columns, as the bytes of a
Parquet file depend on the version of its writer.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import delegraph

KNOWN = Path(__file__).with_name("store_bytes.json")

SHAPES = {
    "one": {},
    "delegates": {"partitions": 4},
    "threshold": {"partitions": 3, "threshold": 5},
    "none": {"partitions": 4, "order": "none"},
    "random": {"partitions": 2, "order": "random"},
    "2d": {"partitions": 6, "layout": "2d"},
    "1d": {"partitions": 3, "layout": "1d", "order": "none"},
}


def kronecker(folder: Path) -> Path:
    delegraph.generate("kronecker", folder / "kronecker", scale=10, seed=7)
    return folder / "kronecker"


def grid(folder: Path) -> Path:
    delegraph.generate("grid", folder / "grid", height=40, width=50, drop=0.1, seed=7)
    return folder / "grid"


def names(folder: Path) -> Path:
    """Write edges with string ids, self-loops and duplicates."""
    numbers = np.random.default_rng(7).integers(0, 300, (2, 2000))
    columns = [pa.array([f"page {number:x}" for number in column]) for column in numbers]
    pq.write_table(pa.table(columns, ["src", "dst"]), folder / "names.parquet", row_group_size=700)
    return folder / "names.parquet"


def sparse(folder: Path) -> Path:
    """Write edges with integer ids far apart, some of them negative."""
    numbers = np.random.default_rng(8).integers(0, 400, (2, 3000)) * 10**12 - 10**14
    table = pa.table([pa.array(column) for column in numbers], ["src", "dst"])
    pq.write_table(table, folder / "sparse.parquet")
    return folder / "sparse.parquet"


GRAPHS = {graph.__name__: graph for graph in (kronecker, grid, names, sparse)}
CASES = [f"{g}-{s}-{d}" for g, s, d in product(GRAPHS, SHAPES, ("undirected", "directed"))]


def digest(store: Path) -> str:
    """Return a digest of all the arrays and columns that a search reads."""
    sha = hashlib.sha256()
    for path in sorted(store.rglob("*.npy")):
        sha.update(str(path.relative_to(store)).encode())
        sha.update(path.read_bytes())
    table = pq.read_table(store / "vertices.parquet")
    for name in table.column_names:
        sha.update(json.dumps([name, table[name].to_pylist()]).encode())
    return sha.hexdigest()[:16]


def build(case: str, edges: Path, folder: Path) -> str:
    _, shape, direction = case.split("-")
    directed = direction == "directed"
    delegraph.build(edges, folder / "store", directed=directed, threads=2, **SHAPES[shape])
    return digest(folder / "store")


@pytest.fixture(scope="module")
def edges(tmp_path_factory):
    folder = tmp_path_factory.mktemp("edges")
    return {name: graph(folder) for name, graph in GRAPHS.items()}


@pytest.mark.parametrize("case", CASES)
def test_bytes(case, edges, tmp_path):
    assert build(case, edges[case.split("-")[0]], tmp_path) == json.loads(KNOWN.read_text())[case]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        made = {graph: make(Path(name)) for graph, make in GRAPHS.items()}
        known = {}
        for number, case in enumerate(CASES):
            place = Path(name, str(number))
            place.mkdir()
            known[case] = build(case, made[case.split("-")[0]], place)
        KNOWN.write_text(json.dumps(known, indent=1) + "\n")
