"""Columns of weights: decimals and booleans, too."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import delegraph as dg
from delegraph.partition.errors import InputError
from delegraph.partition.input.edges import open_edges

TAKEN = {
    "decimals": (pa.array([Decimal("0.5"), Decimal("2.25")], pa.decimal128(9, 2)), "float32"),
    "wide decimals": (pa.array([Decimal("0.5"), Decimal(7)], pa.decimal256(60, 5)), "float32"),
    "narrow decimals": (pa.array([Decimal("0.5"), Decimal(7)], pa.decimal32(9, 2)), "float32"),
    "whole decimals": (pa.array([Decimal(3), Decimal(2**32 - 1)], pa.decimal128(38, 0)), "uint32"),
    "narrow ones": (pa.array([Decimal(3), Decimal(9)], pa.decimal64(12, 0)), "uint32"),
    "booleans": (pa.array([True, False]), "uint32"),
}


@pytest.mark.parametrize("kind", TAKEN)
def test_taken_as_they_are(tmp_path, kind):
    """Weights of a table, of a file and through a store give the same distances."""
    weight, wanted = TAKEN[kind]
    values = [float(value) for value in weight.to_pylist()]
    table = pa.table({"src": [0, 1], "dst": [1, 2], "w": weight})
    path = tmp_path / "edges.parquet"
    pq.write_table(table, path)
    assert open_edges(path, weight="w").weight == ("w", wanted)
    dg.build(path, tmp_path / "graph.dg", weight="w")
    for graph in (path, table, tmp_path / "graph.dg"):
        options = {} if graph == tmp_path / "graph.dg" else {"weight": "w"}
        with dg.open(graph, **options) as opened:  # pyright: ignore[reportArgumentType]
            distances = opened.sssp(0)["distance"].to_pylist()
        assert distances == [0, values[0], values[0] + values[1]]


def test_kinds_that_meet(tmp_path):
    """Booleans and whole decimals of one file are floats where another file has floats."""
    rows = {"src": [0], "dst": [1]}
    for name, weight in (
        ("a", pa.array([True])),
        ("b", pa.array([0.5])),
        ("c", pa.array([Decimal(3)], pa.decimal128(5, 0))),
    ):
        pq.write_table(pa.table({**rows, "w": weight}), tmp_path / f"{name}.parquet")
    edges = open_edges(tmp_path, weight="w")
    assert edges.weight == ("w", "float32")
    bits = [bits for c in edges.chunks() for *_, bits in edges.weighted_batches(c, True)]
    assert np.concatenate(bits).view(np.float32).tolist() == [1, 0.5, 3]


@pytest.mark.parametrize(
    ("weight", "reason"),
    [
        (pa.array([Decimal(-1)], pa.decimal128(9, 0)), "must be from 0 to 4,294,967,295, not -1"),
        (
            pa.array([Decimal(2**32)], pa.decimal128(11, 0)),
            "must be from 0 to 4,294,967,295, not 42949",
        ),
        (
            pa.array([Decimal(10**30)], pa.decimal128(38, 0)),
            "must be from 0 to 4,294,967,295, not 1000",
        ),
        (pa.array([Decimal("-0.5")], pa.decimal128(9, 2)), "weights must be numbers from 0 to"),
        (pa.array([Decimal(10**60)], pa.decimal256(70, 1)), "would become infinite in 32 bits"),
        (pa.array([None], pa.bool_()), "holds nulls"),
    ],
)
def test_what_does_not_fit(tmp_path, weight, reason):
    path = tmp_path / "edges.parquet"
    pq.write_table(pa.table({"src": [0], "dst": [1], "w": weight}), path)
    with pytest.raises(InputError, match=reason):
        dg.build(path, tmp_path / "graph.dg", weight="w")
    assert not (tmp_path / "graph.dg").exists()


def test_what_is_no_number_names_the_cast(tmp_path):
    path = tmp_path / "edges.parquet"
    for weight in (pa.array(["1"]), pa.array([1], pa.duration("s")), pa.array([1], pa.date32())):
        pq.write_table(pa.table({"src": [0], "dst": [1], "w": weight}), path)
        with pytest.raises(InputError) as refused:
            open_edges(path, weight="w")
        (line,) = str(refused.value).splitlines()
        assert "SELECT * REPLACE (CAST(w AS DOUBLE) AS w)" in line
        assert "df['w'].astype('float64')" in line
