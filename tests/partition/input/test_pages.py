"""Bytes that reading holds are bounded by page headers, and no batch passes the bound."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delegraph.partition.dictionary import on_disk as dictionary
from delegraph.partition.input import pages
from delegraph.partition.input.arrow import string_ends
from delegraph.partition.input.edges import open_edges
from delegraph.partition.input.ids import read_encoded
from support.marks import mostly_slow

SHORT = [f"v{i}" for i in range(9000)]
LONG = [f"https://example.org/{i}/{'x' * (20 + i % 700)}" for i in range(9000)]
STRINGS = {
    "short": SHORT,
    "long after short": SHORT + LONG,
    "long before short": LONG + SHORT,
    "one long": ["z" * 300_000, *SHORT],
    "one long in every second row": [s for short in SHORT[:2000] for s in (short, "z" * 5000)],
    "few and long": [f"{i % 97}" + "z" * 500 for i in range(9000)],
    "empty": [""] * 3000,
}
WRITTEN = {
    "as pyarrow does": {},
    "without a dictionary": {"use_dictionary": False},
    "a small dictionary": {"dictionary_pagesize_limit": 20_000},
    "small pages": {"data_page_size": 10_000, "compression": "zstd"},
    "pages of version 2": {"data_page_version": "2.0", "compression": "gzip"},
    "one page": {"data_page_size": 1 << 30, "write_batch_size": 1 << 20, "use_dictionary": False},
    "row groups": {"row_group_size": 1500},
    "lengths apart": {
        "use_dictionary": False,
        "column_encoding": {"src": "DELTA_LENGTH_BYTE_ARRAY", "dst": "PLAIN"},
    },
}


@pytest.mark.parametrize(
    "written", mostly_slow(WRITTEN, "small pages", "row groups", "lengths apart")
)
@pytest.mark.parametrize("strings", STRINGS)
def test_no_batch_passes_what_the_pages_say(tmp_path, monkeypatch, strings, written):
    monkeypatch.setattr(pages, "_SMALL", 1000)  # look at pages however small they are
    monkeypatch.setattr(pages, "_LEAST_ROWS", 64)
    monkeypatch.setattr(pages, "BATCH_BYTES", 1 << 15)
    src = STRINGS[strings]
    path = tmp_path / "e.parquet"
    pq.write_table(pa.table({"src": src, "dst": src[::-1]}), path, **WRITTEN[written])
    edges = open_edges(path)
    bound = edges.reading
    ids, texts = [], 0
    for pair in edges.batches(edges.chunks()[0]):
        size = [np.ptp(string_ends(column.dictionary)) for column in pair]
        assert sum(size) + 24 * sum(len(c.dictionary) for c in pair) <= bound.batch
        texts += sum(size)
        ids += pair[0].to_pylist()
        assert all(len(c) for c in pair)
    first = {s for chunk in edges.chunks()[:1] for s in src[: chunk.rows]}
    assert set(ids) == first
    assert texts <= bound.texts
    assert sum(len(s) for s in set(src)) <= bound.distinct <= bound.texts


def test_strings_are_read_a_few_rows_at_a_time_where_they_are_long(tmp_path):
    """Long strings are read at most 4,096 rows at a time, not some 260,000 whose bytes nothing
    bounds.
    """
    values = [f"{i:06}" + "x" * 2000 for i in range(10_000)]
    pq.write_table(pa.table({"src": values, "dst": values}), tmp_path / "e.parquet")
    edges = open_edges(tmp_path / "e.parquet")
    rows = [len(src) for src, _ in edges.batches(edges.chunks()[0])]
    assert max(rows) <= 4096
    assert edges.reading.batch < 40_000_000


def test_a_large_page_is_counted_packed_and_unpacked(tmp_path):
    rows = 1_000_000
    table = pa.table({"src": np.arange(rows), "dst": np.zeros(rows, np.int64)})
    large = {"data_page_size": 1 << 30, "write_batch_size": rows, "max_rows_per_page": rows}
    sizes = {}
    for name, options in (("large", large), ("small", {})):
        pq.write_table(table, tmp_path / f"{name}.parquet", use_dictionary=False, **options)  # pyright: ignore
        sizes[name] = open_edges(tmp_path / f"{name}.parquet").reading.held
    assert sizes["large"] >= 2 * 8 * rows
    assert sizes["small"] < 4_000_000


@pytest.mark.parametrize("dictionary", [False, True])
@pytest.mark.parametrize("row_group", [1000, 700_000])
def test_footers_alone_bound_it_as_well(tmp_path, dictionary, row_group):
    src = np.random.default_rng(1).integers(0, 50_000, 700_000)
    options = {"use_dictionary": dictionary, "row_group_size": row_group}
    pq.write_table(pa.table({"src": src, "dst": src}), tmp_path / "e.parquet", **options)
    edges = open_edges(tmp_path / "e.parquet")
    assert edges.reading.held <= edges.reading_at_most.held
    assert edges.reading_at_most.held <= 2 * 4 * 9 * min(row_group, len(src))
    names = pa.array(src).cast(pa.string())
    pq.write_table(pa.table({"src": names, "dst": names}), tmp_path / "s.parquet", **options)
    named = open_edges(tmp_path / "s.parquet")
    assert named.reading_at_most == named.reading


def test_pages_that_cannot_be_read_are_bounded_by_the_footer(tmp_path):
    rows = 600_000
    pq.write_table(pa.table({"src": range(rows), "dst": range(rows)}), tmp_path / "e.parquet")
    wanted = open_edges(tmp_path / "e.parquet").reading.held
    data = bytearray((tmp_path / "e.parquet").read_bytes())
    data[4:2000] = b"\xff" * 1996  # the first page of the first column
    (tmp_path / "e.parquet").write_bytes(data)
    assert open_edges(tmp_path / "e.parquet").reading.held > wanted


def test_pieces_end_by_bytes(tmp_path, monkeypatch):
    from delegraph.partition.input import ids

    monkeypatch.setattr(ids, "ENCODE_BYTES", 100_000)
    monkeypatch.setattr(pages, "_LEAST_ROWS", 64)
    monkeypatch.setattr(pages, "BATCH_BYTES", 1 << 15)
    pq.write_table(pa.table({"src": LONG, "dst": SHORT}), tmp_path / "e.parquet")
    edges = open_edges(tmp_path / "e.parquet")
    pieces = list(read_encoded(edges, edges.chunks()[0]))
    assert len(pieces) > 10
    ends = [np.ptp(string_ends(strings)) for _, strings in pieces]
    assert max(ends) <= 100_000 + edges.reading.batch
    src = [strings[int(i)].as_py() for (src, _), strings in pieces for i in src]
    assert src == LONG


def test_unused_strings_of_a_dictionary_are_no_vertices(ok, tmp_path):
    column = pa.DictionaryArray.from_arrays(pa.array([0, 2], pa.int32()), ["a", "unused", "c"])
    pq.write_table(pa.table({"src": column, "dst": column}), tmp_path / "e.parquet")
    ok("build", tmp_path / "e.parquet", "-o", tmp_path / "g.dg")
    vertices = pq.read_table(tmp_path / "g.dg" / "vertices.parquet")
    assert vertices["vertex"].to_pylist() == ["a", "c"]


@pytest.mark.parametrize("lengths", ["short", "skewed", "one long"])
def test_ranges_are_cut_by_bytes(lengths):
    rng = np.random.default_rng(0)
    size = {
        "short": np.full(50_000, 10),
        "skewed": (rng.random(50_000) ** 8 * 4000).astype(int),
        "one long": np.r_[np.full(20_000, 9), 3_000_000, np.full(20_000, 9)],
    }[lengths]
    ends = np.cumsum(size + 24)
    at, weights = dictionary._sample(ends)
    assert at[0] == 0
    assert weights.sum() == ends[-1]
    assert weights.max() <= max(ends[-1] // 128, 1 << 17) + size.max() + 24
    assert np.all(np.diff(at) > 0)
