"""Damaged Parquet files: the right edges or one line, never another error or other edges."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delegraph.partition.errors import InputError
from delegraph.partition.input.edges import open_edges
from delegraph.pipeline.build.read import read_edges
from delegraph.pipeline.run.execute import Executor
from support.marks import mostly_slow

NUMBERS = np.arange(60)
NAMES = [f"https://example.org/{number}" for number in range(60)]
TABLES = {
    "integers": pa.table({"src": NUMBERS % 16, "dst": NUMBERS}),
    "sparse": pa.table({"src": NUMBERS * 10**9, "dst": -NUMBERS, "weight": NUMBERS / 7}),
    "narrow": pa.table({"n": NAMES, "src": NUMBERS.astype("u1"), "dst": NUMBERS.astype("i4")}),
    "strings": pa.table({"src": NAMES, "dst": NAMES[::-1]}),
    "categories": pa.table(
        {"src": pa.array(NAMES).dictionary_encode(), "dst": pa.array(NAMES[:6] * 10)}
    ),
}
WRITTEN = [
    {},
    {"compression": "none", "use_dictionary": False},
    {"compression": "zstd", "write_page_index": True, "data_page_version": "2.0"},
    {"data_page_size": 64, "write_batch_size": 8, "store_schema": False},
]


def write(path: Path, table: pa.Table, **options) -> Path:
    pq.write_table(table, path, write_page_checksum=True, row_group_size=25, **options)
    return path


def read(path: Path) -> list[tuple]:
    """Return the edges, after a check that every way of reading gives the same ones."""
    edges = open_edges(path)
    rows = [
        row
        for chunk in edges.chunks(1)
        for src, dst in edges.batches(chunk)
        for row in zip(src.to_pylist(), dst.to_pylist(), strict=True)
    ]
    dense = read_edges(edges, Executor(1))
    columns = [
        dense.ids.decode(pa.array(np.concatenate(column))).to_pylist()
        for column in zip(*dense.batches, strict=True)
    ]
    assert list(zip(*columns, strict=True)) == rows
    return rows


def refusal(path: Path, right: list[tuple]) -> str | None:
    """Return the refusal's message, or None where the right edges are read."""
    try:
        edges = read(path)
    except InputError as error:
        return str(error)
    assert edges == right
    return None


def footer_at(data: bytes) -> int:
    return len(data) - 8 - int.from_bytes(data[-8:-4], "little")


def changed(data: bytes, at: int, byte: int) -> bytes:
    return data[:at] + bytes([byte]) + data[at + 1 :]


def damaged(data: bytes, rng: np.random.Generator) -> bytes:
    """Return the data with a few bytes or bits changed, mostly in the footer, or cut off, or with
    two parts swapped.
    """
    kind, other = rng.integers(12), bytearray(data)
    if kind == 0:
        return data[: rng.integers(len(data))]
    if kind == 1:
        size = rng.integers(1, 64)
        a, b = rng.integers(len(data) - size, size=2)
        other[a : a + size], other[b : b + size] = data[b : b + size], data[a : a + size]
        return bytes(other)
    first = 0 if kind < 5 else footer_at(data)
    for at in rng.integers(first, len(data), rng.integers(1, 4)):
        other[at] = rng.integers(256) if kind % 2 else data[at] ^ (1 << rng.integers(8))
    return bytes(other)


@pytest.mark.slow
@pytest.mark.parametrize("options", WRITTEN, ids=str)
@pytest.mark.parametrize("table", TABLES)
def test_damaged_at_random(tmp_path, table, options):
    path = write(tmp_path / "e.parquet", TABLES[table], **options)
    data, right = path.read_bytes(), read(path)
    lines = []
    for seed in range(500):
        path.write_bytes(damaged(data, np.random.default_rng(seed)))
        try:
            lines.append(refusal(path, right))
        except Exception as error:
            raise AssertionError(f"seed {seed}") from error
    refused = [line for line in lines if line]
    assert all(str(path) in line and "\n" not in line for line in refused)
    assert 100 < len(refused) < 500


@pytest.mark.parametrize("table", mostly_slow(["integers", "strings"], "integers"))
def test_every_byte_of_a_footer(tmp_path, table):
    """A change of any byte of a footer gives the right edges or a refusal that names the file, also
    in size histograms, where damage makes PyArrow's metadata end the process.
    """
    path = write(tmp_path / "e.parquet", TABLES[table].slice(0, 20), store_schema=False)
    data, right = path.read_bytes(), read(path)
    for at in range(footer_at(data), len(data)):
        path.write_bytes(changed(data, at, data[at] ^ 1 << at % 8))
        line = refusal(path, right)
        assert line is None or str(path) in line


@pytest.fixture
def of_77(tmp_path):
    """Write a file of two row groups of 77 rows; return its path, its bytes and the offsets of 77
    as Thrift encodes it.
    """
    path, numbers = tmp_path / "e.parquet", np.arange(154)
    table = pa.table({"src": numbers % 16, "dst": numbers})
    pq.write_table(table, path, row_group_size=77, compression="none", use_dictionary=False)
    data = path.read_bytes()
    return path, data, [at for at in range(len(data)) if data.startswith(b"\x9a\x01", at)]


def test_counts_that_disagree(of_77):
    path, data, places = of_77
    right, refused = read(path), []
    for at in places:
        for wrong in (76, 78):
            path.write_bytes(changed(data, at, 2 * wrong & 127 | 128))
            refused.append(refusal(path, right))  # or it is a size, or in the statistics
    total = data.index(b"\xb4\x02", footer_at(data))  # 154
    path.write_bytes(changed(data, total, 2 * 155 & 127 | 128))
    refused.append(refusal(path, right))
    footer = "its footer is damaged; write the file again"
    for reason in (
        f"row group 0 has 77 rows, but 76 values in column 'src': {footer}",
        f"row group 1 has 77 rows, but 78 values in column 'dst': {footer}",
        f"row group 1 has 76 rows, but 77 values in column 'src': {footer}",
        f"155 rows, but 154 rows in its row groups: {footer}",
        "row group 1 cannot be read: columns do not have the same size",
    ):
        assert f"{path}: {reason}" in refused


def test_fewer_rows_than_all_of_the_footer_says(of_77):
    path, data, _ = of_77
    footer = data[footer_at(data) :].replace(b"\x9a\x01", b"\x9c\x01")
    path.write_bytes(data[: footer_at(data)] + footer.replace(b"\xb4\x02", b"\xb8\x02"))
    edges = open_edges(path)
    assert edges.rows == 156
    with pytest.raises(InputError, match="row group 0 does not hold 78 values in both columns"):
        list(edges.batches(edges.chunks()[0]))


def test_row_groups_that_are_not_what_was_opened(of_77, monkeypatch):
    """Columns shorter than their row group are refused, whatever Arrow makes of a changed file."""
    path, _, _ = of_77
    edges = open_edges(path)
    chunk = edges.chunks()[0]
    column = edges.__class__._column

    for cut in (["src"], ["dst"], ["src", "dst"]):

        def shorter(self, batch, name, *where, cut=cut):
            return column(self, batch, name, *where)[1 if name in cut else 0 :]

        monkeypatch.setattr(edges.__class__, "_column", shorter)
        with pytest.raises(InputError, match="row group 0 does not hold 77 values in both"):
            list(edges.batches(chunk))


def test_an_offset_that_leads_to_another_column(tmp_path):
    path = tmp_path / "e.parquet"
    table = pa.table({"src": np.arange(5), "dst": np.arange(5) + 100})
    pq.write_table(table, path, compression="none", use_dictionary=False)
    data, chunk = path.read_bytes(), pq.read_metadata(path).row_group(0).column(1)
    offset = bytes([2 * chunk.data_page_offset & 127 | 128, 2 * chunk.data_page_offset >> 7])
    assert data.count(offset, footer_at(data)) >= 1
    path.write_bytes(data[: footer_at(data)] + data[footer_at(data) :].replace(offset, b"\x88\x00"))
    with pytest.raises(InputError, match="two columns overlap"):
        open_edges(path)


def test_page_checksums_are_verified(tmp_path):
    path = write(tmp_path / "e.parquet", TABLES["integers"], **WRITTEN[1])
    data, value = path.read_bytes(), np.int64(7).tobytes()
    path.write_bytes(data.replace(value, np.int64(8).tobytes(), 1))
    with pytest.raises(InputError, match=r"row group 0 cannot be read: .*CRC"):
        read(path)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), "dictionary"], ids=str)
def test_text_that_is_not_utf8(tmp_path, kind):
    path = tmp_path / "e.parquet"
    names = pa.array(["a", "b", "c", "1\u20ac"])
    column = names.dictionary_encode() if kind == "dictionary" else names.cast(kind)
    table = pa.table({"src": names.take([0, 1, 2, 0]), "dst": column})
    pq.write_table(table, path, row_group_size=2, compression="none", write_statistics=False)
    before, _, after = path.read_bytes().rpartition("\u20ac".encode())
    path.write_bytes(before + b"\x80  " + after)
    reason = "column 'dst' holds text that is not UTF-8 in row group 1"
    with pytest.raises(InputError, match=reason):
        read(path)


def test_the_name_of_a_column_is_not_utf8(tmp_path):
    path = tmp_path / "e.parquet"
    pq.write_table(pa.table({"src": [1], "dst": [2], "other": [3]}), path, store_schema=False)
    path.write_bytes(path.read_bytes().replace(b"other", b"\xff\xfeher"))
    with pytest.raises(InputError, match="the name of a column is not UTF-8"):
        open_edges(path)


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("kind", ["int", "uint"])
def test_bounds_are_those_of_the_statistics(tmp_path, kind, bits):
    id_type = pa.type_for_alias(f"{kind}{bits}")
    least = -(1 << bits - 1) if kind == "int" else 0
    most = least + (1 << bits) - 1
    path = tmp_path / "e.parquet"
    src, dst = pa.array([most, 1, 2], id_type), pa.array([3, 4, least], id_type)
    pq.write_table(pa.table({"w": ["a"] * 3, "src": src, "dst": dst}), path, row_group_size=2)
    assert open_edges(path).bounds == (least, most)
    pq.write_table(pa.table({"src": src, "dst": dst}), path, write_statistics=False)
    assert open_edges(path).bounds is None


def test_a_file_that_the_system_refuses(tmp_path, monkeypatch):
    """A file that the system refuses is not called damaged; the error is simulated because root may
    read every file.
    """

    def refuse(source: object) -> None:
        raise PermissionError(13, "Permission denied", source)

    path = write(tmp_path / "edges.parquet", TABLES["integers"])
    monkeypatch.setattr(pq, "ParquetFile", refuse)
    with pytest.raises(InputError, match=r"edges\.parquet: cannot be read: Permission denied$"):
        open_edges(path)
