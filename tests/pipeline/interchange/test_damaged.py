"""Damaged files give an edge list, or a line that names the file, and leave nothing."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import delegraph
from delegraph.partition.errors import InputError
from support.interchange import write_compressed

BANNER = "%%MatrixMarket matrix coordinate"
ENTRIES = np.array([1, 5, 0, 6], "<i4").tobytes()
FILES = {
    "a.csv": 'src,dst,weight\na,"b, c",1\n"d\ne",f,2.5\n',
    "a.tsv": "dst\tsrc\n1\t2\n3\t4\n",
    "a.txt": "# c\n1\t2\n3 4\n",
    "a.el": "0 1\n1 2\n",
    "a.wel": "0 1 5\n1 2 .5\n",
    "a.mtx": f"{BANNER} real symmetric\n% c\n4 4 2\n2 1 0.5\n3 2 1e0\n",
    "a.graph": "4 3 001\n2 5 3 6\n1 5 3 7\n% c\n1 6 2 7\n\n",
    "a.e": "1 2 0.5\n2 3 7\n",
    "a.sg": struct.pack("<?qq3qii", False, 2, 2, 0, 1, 2, 1, 0),
    "a.wsg": struct.pack("<?qq3q", False, 2, 2, 0, 1, 2) + ENTRIES,
    "b.el.gz": "0 1\n1 2\n",
    "b.el.zst": "0 1\n1 2\n",
}


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.graph", b"4 3 001\n2 5\x0b3 6\n1 \x0b5 3\x1f7\n1 6 2 7\n\n"),
        ("a.graph", b"4 3 001\n2 5 3 6\n\x8d"),
        ("a.csv", b"\rr',dst,weight\n1,2,3\n"),
    ],
)
def test_odd_bytes(tmp_path, name, data):
    """Control characters separate words, as blanks do; an error names other bytes."""
    (tmp_path / name).write_bytes(data)
    if b"\x0b" in data:
        record = delegraph.convert(tmp_path / name, tmp_path / "edges").record
        assert (record["rows"], record["isolated"]) == (4, 1)
        return
    with pytest.raises(InputError, match=", line "):
        delegraph.convert(tmp_path / name, tmp_path / "edges")


@pytest.mark.parametrize("name", FILES)
@given(
    cut=st.integers(0, 200),
    places=st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), max_size=3),
)
def test_damaged_anywhere(tmp_path_factory, name, cut, places):
    folder = tmp_path_factory.mktemp("damaged")
    path = write_compressed(folder / name, FILES[name])
    if name == "a.e":
        (folder / "a.v").write_text("1\n2\n3\n4\n")
    data = bytearray(path.read_bytes())[: len(path.read_bytes()) if cut > 100 else cut]
    for place, value in places:
        if data:
            data[place % len(data)] = value
    path.write_bytes(data)
    before = set(folder.iterdir())
    try:
        delegraph.convert(path, folder / "edges")
    except InputError as error:
        line = str(error)
    else:
        assert delegraph.plan(folder / "edges").facts is not None
        return
    assert line.startswith(str(folder)) or "memory limit" in line
    assert "\n" not in line
    assert set(folder.iterdir()) == before
