"""Columns of ids: types that are accepted, types that they are read as, and no id that is
changed.
"""

from __future__ import annotations

import math
from decimal import Decimal
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from delegraph.partition.errors import InputError
from delegraph.partition.input.edges import open_edges
from delegraph.partition.input.id_types import BYTES_16, UUID_TYPE, as_ids, stored
from delegraph.partition.input.ids import parse_id

WIDE = pa.decimal128(38, 0)


def written(tmp_path, src, dst=None, **columns):
    path = tmp_path / "e.parquet"
    pq.write_table(pa.table({"src": src, "dst": src if dst is None else dst, **columns}), path)
    return path


def read(path) -> list:
    edges = open_edges(path)
    return [value for chunk in edges.chunks() for src, _ in edges.batches(chunk) for value in src]


floats = st.one_of(
    st.integers(-(2**60), 2**60).map(float),
    st.integers(-(2**53) - 2, -(2**53) + 2).map(float),
    st.integers(2**53 - 2, 2**53 + 2).map(float),
    st.floats(),
    st.sampled_from([0.0, -0.0, 0.5, -1.0, 1e300, math.inf, -math.inf, math.nan]),
)


@given(st.lists(floats, min_size=1, max_size=4), st.sampled_from([pa.int64(), pa.uint64()]))
def test_floats_are_taken_where_they_are_whole_and_exact(values, wanted):
    """Floats are accepted as ids exactly where they are whole and below 2^53; a refusal names
    casts.
    """
    most = 2**53
    whole = [not math.isnan(v) and not math.isinf(v) and v == int(v) for v in values]
    low = -most if wanted == pa.int64() else -1
    fits = all(w and low < v < most for w, v in zip(whole, values, strict=True))
    column = pa.array(values, pa.float64())
    if fits:
        ids = as_ids(column, wanted, "here", "src")
        assert ids.type == wanted
        assert ids.to_pylist() == [int(v) for v in values]
        return
    with pytest.raises(InputError) as refused:
        as_ids(column, wanted, "here", "src")
    message = str(refused.value)
    if any(map(math.isnan, values)):
        assert "here holds NaN: every row needs both ids" in message
    else:
        assert "CAST(src AS VARCHAR)" in message
        assert "df['src'].astype('str')" in message


@given(st.lists(st.integers(-300, 300).map(lambda n: n / 4), min_size=1), st.data())
def test_narrow_floats(values, data):
    kind = data.draw(st.sampled_from([pa.float32(), pa.float16()]))
    column = pa.array(np.array(values, kind.to_pandas_dtype()))
    if all(v == int(v) for v in values):
        assert as_ids(column, pa.int64(), "", "src").to_pylist() == [int(v) for v in values]
    else:
        with pytest.raises(InputError, match="ids in floats must be whole numbers below"):
            as_ids(column, pa.int64(), "", "src")


@pytest.mark.parametrize(("kind", "bits"), [(pa.float16(), 11), (pa.float32(), 24)])
def test_floats_that_neighbours_are_rounded_to(kind, bits):
    """A float at or above the limit of exact integers is refused: 2^24 + 1 as a float of 32 bits is
    2^24.
    """
    for value, fits in ((2.0**bits - 1, True), (2.0**bits, False)):
        column = pa.array(np.array([value, -value], kind.to_pandas_dtype()))
        if fits:
            assert as_ids(column, pa.int64(), "", "src").to_pylist() == [value, -value]
        else:
            with pytest.raises(InputError, match=f"below {2**bits:,}"):
                as_ids(column, pa.int64(), "", "src")


@given(
    st.sampled_from(
        [WIDE, pa.decimal128(38, 10), pa.decimal256(60, 2), pa.decimal64(18, 0), pa.decimal32(9, 2)]
    ),
    st.lists(st.integers(-(2**70), 2**70) | st.integers(-99, 99), min_size=1, max_size=3),
    st.booleans(),
)
def test_decimals_are_taken_where_they_are_whole_and_fit(kind, values, halves):
    digits = kind.precision - kind.scale
    numbers = [Decimal(v % 10**digits if v >= 0 else -(-v % 10**digits)) for v in values]
    if halves and kind.scale:
        numbers[0] = numbers[0].copy_abs() % 10 ** (digits - 1) + Decimal("0.5")
    column = pa.array(numbers, kind)
    if all(v == int(v) and -(2**63) <= v < 2**63 for v in numbers):
        ids = as_ids(column, pa.int64(), "here", "src")
        assert ids.to_pylist() == [int(v) for v in numbers]
    else:
        with pytest.raises(InputError, match=r"here is decimal.*CAST\(src AS VARCHAR\)"):
            as_ids(column, pa.int64(), "here", "src")


@given(st.lists(st.uuids(), min_size=1, max_size=5))
def test_every_way_that_uuids_stand_in_a_column(values):
    ids = [value.bytes for value in values]
    plain = pa.array(ids, BYTES_16)
    ways = [plain, plain.cast(UUID_TYPE), plain.dictionary_encode(), pa.array(ids, pa.binary())]
    ways += [pa.array(ids, pa.large_binary()), pa.array(ids, pa.binary_view())]
    for column in ways:
        for wanted in (UUID_TYPE, BYTES_16):
            assert as_ids(column, wanted, "", "src").to_pylist() == ids
    for value in values:
        for text in (str(value), value.hex, value.urn, f"{{{value}}}".upper(), f" {value} "):
            assert parse_id(text, UUID_TYPE) == value.bytes
    assert stored(pa.chunked_array([plain.cast(UUID_TYPE)] * 2)).to_pylist() == ids * 2


def test_binary_of_another_size(tmp_path):
    path = written(tmp_path, pa.array([bytes(16), b"seventeen bytes.."], pa.binary()))
    with pytest.raises(InputError, match=r"not 16 bytes long: .*CAST\(src AS VARCHAR\)"):
        read(path)
    path = written(tmp_path, pa.array([bytes(8)], pa.binary(8)))
    with pytest.raises(
        InputError, match=r"is fixed_size_binary\[8\], but ids must be integers, strings"
    ):
        open_edges(path)


REFUSED = {
    "date": pa.array([1, 2], pa.date32()),
    "timestamp": pa.array([1, 2], pa.timestamp("us")),
    "boolean": pa.array([True, False]),
    "list": pa.array([[1], [2]]),
    "struct": pa.array([{"a": 1}, {"a": 2}]),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_no_id_names_the_cast(tmp_path, kind):
    with pytest.raises(InputError) as refused:
        open_edges(written(tmp_path, REFUSED[kind]))
    (line,) = str(refused.value).splitlines()
    assert "SELECT * REPLACE (CAST(src AS VARCHAR) AS src)" in line
    assert "df['src'].astype('str')" in line


def test_the_named_casts_do(tmp_path):
    """The casts that a refusal names work when a user types them."""
    duckdb, pandas = pytest.importorskip("duckdb"), pytest.importorskip("pandas")
    path = written(tmp_path, pa.array([1.5, 2.0]), pa.array([2.0, 7.0]))
    with pytest.raises(InputError, match=r"is double and holds 1\.5"):
        read(path)
    casts = "CAST(src AS VARCHAR) AS src, CAST(dst AS VARCHAR) AS dst"
    query = f"COPY (SELECT * REPLACE ({casts}) FROM '{path}') TO '{tmp_path}/duck.parquet'"
    duckdb.sql(query)
    assert [value.as_py() for value in read(tmp_path / "duck.parquet")] == ["1.5", "2.0"]
    frame = pandas.read_parquet(path)
    for name in ("src", "dst"):
        frame[name] = frame[name].astype("str")
    frame.to_parquet(tmp_path / "pandas.parquet")
    assert [value.as_py() for value in read(tmp_path / "pandas.parquet")] == ["1.5", "2.0"]


def test_nulls_are_refused_as_of_integers(tmp_path):
    for column in (
        pa.array([1.0, None]),
        pa.array([Decimal(1), None], WIDE),
        pa.array([bytes(16), None], BYTES_16),
        pa.array([bytes(16), None], BYTES_16).cast(UUID_TYPE),
    ):
        with pytest.raises(InputError, match="holds nulls in row group 0: every row needs both"):
            read(written(tmp_path, column))
    with pytest.raises(InputError, match="holds NaN"):
        read(written(tmp_path, pa.array([1.0, math.nan])))


@pytest.mark.parametrize(
    ("one", "other", "together"),
    [
        (pa.int32(), pa.float64(), pa.int64()),
        (pa.uint64(), pa.float64(), pa.uint64()),
        (pa.uint8(), WIDE, pa.int64()),
        (pa.float32(), WIDE, pa.int64()),
        (UUID_TYPE, BYTES_16, UUID_TYPE),
        (pa.binary(), BYTES_16, BYTES_16),
        (pa.binary(), UUID_TYPE, UUID_TYPE),
        (pa.string(), UUID_TYPE, None),
        (pa.int64(), BYTES_16, None),
        (pa.string(), pa.float64(), None),
    ],
)
def test_types_that_meet(tmp_path, one, other, together):
    def column(kind):
        if kind in (UUID_TYPE, BYTES_16, pa.binary()):
            plain = pa.array([bytes(15) + b"\1", bytes(15) + b"\2"], BYTES_16)
            return plain.cast(kind)
        if kind == pa.string():
            return pa.array(["1", "2"])
        return pa.array([1, 2]).cast(kind)

    for pair in ((one, other), (other, one)):
        path = written(tmp_path, *map(column, pair))
        if together is None:
            with pytest.raises(InputError, match=r"must have one type: .*CAST\(... AS VARCHAR\)"):
                open_edges(path)
            continue
        assert open_edges(path).id_type == together
        assert len(read(path)) == 2


def test_negative_ids_beside_unsigned_ones_of_64_bits(tmp_path):
    path = written(tmp_path, pa.array([-1.0]), pa.array([2**64 - 1], pa.uint64()))
    with pytest.raises(InputError, match=r"holds -1\.0: .*from 0 on"):
        read(path)


def test_what_duckdb_writes(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    path, ids = tmp_path / "e.parquet", [UUID(int=5), UUID(int=2**127 + 9)]
    rows = f"SELECT UUID '{ids[0]}' AS src, UUID '{ids[1]}' AS dst"
    duckdb.sql(f"COPY ({rows}) TO '{path}'")
    edges = open_edges(path)
    assert edges.id_type == UUID_TYPE
    assert [value.as_py() for value in read(path)] == [ids[0].bytes]
    duckdb.sql(f"COPY (SELECT 7::HUGEINT AS src, 8::DECIMAL(18, 0) AS dst) TO '{path}'")
    assert open_edges(path).id_type == pa.int64()
    assert [value.as_py() for value in read(path)] == [7]


def test_an_id_as_it_is_typed():
    for text, value in (("7", 7), ("7.0", 7), ("-7.", -7), ("+7.000", 7)):
        assert parse_id(text, pa.int64()) == value
    for text in ("7.5", ".0", "7.0.0", "x.0", "7e0"):
        with pytest.raises(InputError, match="is not an integer"):
            parse_id(text, pa.int64())
    assert parse_id("7.0", pa.string()) == "7.0"
    for text in ("7", "", str(UUID(int=3))[:-1], "g" * 32):
        with pytest.raises(InputError, match="is not a UUID, but the graph's ids are uuid"):
            parse_id(text, UUID_TYPE)
