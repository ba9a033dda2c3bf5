"""The digest of an edge list: a hash of the sizes, the footers and the read columns of its
files.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xxhash

from delegraph.partition.input import contents
from delegraph.partition.input.edges import open_edges


@pytest.fixture
def edges(tmp_path):
    """Write two files of two row groups each, with a column that is not read."""
    folder = tmp_path / "edges"
    folder.mkdir()
    for number in range(2):
        src = np.random.default_rng(number).integers(0, 900, 6000)
        table = pa.table({"src": src, "other": src, "dst": src[::-1]})
        pq.write_table(table, folder / f"{number}.parquet", row_group_size=3000)
    return folder


def definition(folder) -> str:
    digest = xxhash.xxh3_128(b"src\0dst")
    for path in sorted(folder.iterdir()):
        data, metadata = path.read_bytes(), pq.read_metadata(path)
        footer = int.from_bytes(data[-8:-4], "little")
        parts = []
        for group in range(metadata.num_row_groups):
            for column in (0, 2):
                chunk = metadata.row_group(group).column(column)
                places = chunk.data_page_offset, chunk.dictionary_page_offset
                first = min(place for place in places if place)
                parts.append(data[first : first + chunk.total_compressed_size])
        digest.update(f"{len(data)}\0".encode())
        for part in (*parts, data[-8 - footer : -8]):
            for at in range(0, len(part), 5000):
                digest.update(xxhash.xxh3_128_digest(part[at : at + 5000]))
    return digest.hexdigest()


@pytest.mark.parametrize("size", [7, 1000, 1 << 22])
@pytest.mark.parametrize("threads", [1, 2, 4])
def test_it_is_the_same_however_it_is_read(edges, monkeypatch, size, threads):
    monkeypatch.setattr(contents, "_PIECE_BYTES", 5000)
    monkeypatch.setattr(contents, "_READ_BYTES", size)
    monkeypatch.setattr(contents, "_MOST_THREADS", threads)
    assert open_edges(edges).fingerprint == definition(edges)


def test_a_file_that_ends_early_is_looked_at_as_far_as_it_goes(edges):
    whole, opened = open_edges(edges).fingerprint, open_edges(edges)
    path = sorted(edges.iterdir())[0]
    path.write_bytes(path.read_bytes()[:3000])
    assert opened.fingerprint not in ("", whole)
