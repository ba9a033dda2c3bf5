"""Stores as matrices that SciPy loads."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given

import delegraph
from delegraph.partition.errors import LimitError
from support.graphs import graphs, random_edges


def entries(path) -> tuple[dict, dict]:
    """Return values by source and target, and all arrays."""
    with np.load(path) as file:
        arrays = dict(file)
    ids = arrays["vertex"].tolist()
    n = len(ids)
    assert arrays["format"].item() == b"csr"
    assert arrays["shape"].tolist() == [n, n]
    assert (arrays["indptr"].dtype, arrays["indices"].dtype) == (np.int64, np.int32)
    rows = np.repeat(np.arange(n), np.diff(arrays["indptr"]))
    places = zip(rows, arrays["indices"], strict=True)
    values = arrays["data"].tolist()
    assert list(zip(rows, arrays["indices"], strict=True)) == sorted(places)
    value_of = {
        (ids[row], ids[column]): value
        for row, column, value in zip(rows, arrays["indices"], values, strict=True)
    }
    assert len(value_of) == len(values)
    return value_of, arrays


@given(graphs())
def test_random_graphs(tmp_path_factory, graph):
    src, dst, _, directed = graph
    if not len(src):
        return
    folder = tmp_path_factory.mktemp("matrix")
    table = pa.table({"src": src, "dst": dst})
    pq.write_table(table, folder / "edges.parquet")
    partitions = 1 + len(src) % 3
    delegraph.build(
        folder / "edges.parquet", folder / "g.dg", directed=directed, partitions=partitions
    )
    delegraph.convert(folder / "g.dg", folder / "g.npz")
    value_of, arrays = entries(folder / "g.npz")
    edges = {(u, v) for u, v in zip(src.tolist(), dst.tolist(), strict=True) if u != v}
    wanted = edges if directed else edges | {(v, u) for u, v in edges}
    assert value_of == dict.fromkeys(wanted, 1.0)
    assert arrays["vertex"].tolist() == sorted({*src.tolist(), *dst.tolist()})


@pytest.mark.parametrize("weights", [pa.array([5, 7, 0]), pa.array([0.5, 2.0, 0.25])])
@pytest.mark.parametrize("partitions", [1, 2])
def test_weights_and_names(tmp_path, edge_list, weights, partitions):
    edges = edge_list(["b", "a", "äß"], ["a", "äß", "c"], w=weights)
    delegraph.build(
        edges, tmp_path / "g.dg", weight="w", directed=True, partitions=partitions, order="random"
    )
    record = delegraph.convert(tmp_path / "g.dg", tmp_path / "g.npz").record
    value_of, arrays = entries(tmp_path / "g.npz")
    values = weights.to_pylist()
    assert value_of == {("b", "a"): values[0], ("a", "äß"): values[1], ("äß", "c"): values[2]}
    assert arrays["vertex"].tolist() == ["a", "b", "c", "äß"]
    assert (record["rows"], record["directed"], record["weighted"]) == (3, True, True)


def test_scipy_loads_it(tmp_path, edge_list):
    sparse = pytest.importorskip("scipy.sparse")
    src, dst = random_edges(1, 300, 4000)
    delegraph.build(edge_list(src, dst), tmp_path / "g.dg")
    delegraph.convert(tmp_path / "g.dg", tmp_path / "g.npz")
    matrix = sparse.load_npz(tmp_path / "g.npz")
    assert matrix.has_canonical_format
    assert (matrix != matrix.T).nnz == 0
    distances = sparse.csgraph.shortest_path(matrix, unweighted=True, indices=0)
    with delegraph.open(tmp_path / "g.dg") as graph:
        distance = graph.bfs(int(np.load(tmp_path / "g.npz")["vertex"][0])).distance.to_pylist()
    assert [np.inf if hops is None else hops for hops in distance] == distances.tolist()


def test_refused_before_it_is_read(tmp_path, edge_list):
    delegraph.build(edge_list(*random_edges(1, 300, 4000)), tmp_path / "g.dg")
    with pytest.raises(LimitError, match="memory limit of 1 MB is too small"):
        delegraph.convert(tmp_path / "g.dg", tmp_path / "g.npz", memory_limit="1MB")
    assert not list(tmp_path.glob("*g.npz*"))
