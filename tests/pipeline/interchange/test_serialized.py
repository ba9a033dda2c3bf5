"""GAP's serialized graphs."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

from delegraph.kernels import reference
from delegraph.partition.errors import InputError
from delegraph.pipeline.interchange import serialized
from support.graphs import graphs
from support.interchange import converted
from support.marks import slow


def rows_of(src, dst, vertices, weighted) -> bytes:
    offsets, targets = reference.compressed_rows(src, dst, vertices)
    sources = np.repeat(np.arange(vertices), np.diff(offsets.astype(np.int64)))
    entries = [targets, weight_of(sources, targets)] if weighted else [targets]
    return offsets.astype("<i8").tobytes() + np.column_stack(entries).astype("<i4").tobytes()


def weight_of(src, dst):
    """Return a weight that is equal in both directions."""
    return np.minimum(src, dst).astype(np.int64) - 3 * np.maximum(src, dst).astype(np.int64)


def write(path: Path, src, dst, vertices, directed) -> Path:
    """Write a graph as GAP's writer.h does."""
    weighted = path.suffix == ".wsg"
    if not directed:
        src, dst = np.concatenate([src, dst]), np.concatenate([dst, src])
    out = rows_of(src, dst, vertices, weighted)
    entries = (len(out) - 8 * (vertices + 1)) // (8 if weighted else 4)
    inverse = rows_of(dst, src, vertices, weighted) if directed else b""
    path.write_bytes(struct.pack("<?qq", directed, entries, vertices) + out + inverse)
    return path


@pytest.mark.parametrize("name", [slow("a.sg"), "a.wsg"])
@given(graph=graphs())
def test_random_graphs(tmp_path_factory, graph, name):
    src, dst, vertices, directed = graph
    apart = src != dst  # GAP drops loops, too
    src, dst = src[apart].astype(np.int64), dst[apart].astype(np.int64)
    if not vertices:
        return
    path = write(tmp_path_factory.mktemp("sg") / name, src, dst, vertices, directed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(serialized, "EDGES", 7)
        columns, record = converted(path)
    assert record["directed"] == directed
    if not directed:
        src, dst = np.minimum(src, dst), np.maximum(src, dst)
    isolated = np.setdiff1d(np.arange(vertices), np.concatenate([src, dst])).tolist()
    wanted = sorted(set(zip(src.tolist(), dst.tolist(), strict=True)))
    pairs = list(zip(columns["src"], columns["dst"], strict=True))
    assert pairs == wanted + [(vertex, vertex) for vertex in isolated]
    assert record["isolated"] == len(isolated)
    if name == "a.wsg":
        edges = np.array(wanted, np.int64).reshape(-1, 2).T
        assert columns["weight"] == [*weight_of(*edges).tolist(), *[0] * len(isolated)]


SRC, DST = np.array([0, 0, 1, 3]), np.array([1, 2, 2, 0])


@pytest.mark.parametrize("name", ["a.sg", "a.wsg"])
@pytest.mark.parametrize("directed", [False, True])
def test_cut_off_or_longer(tmp_path, name, directed):
    path = write(tmp_path / name, SRC, DST, 5, directed)
    data = path.read_bytes()
    for wrong in (data[:0], data[:16], data[:17], data[:-1], data + b"\0"):
        path.write_bytes(wrong)
        with pytest.raises(InputError, match=f"{name}: .*bytes"):
            converted(path)
    assert [file.name for file in tmp_path.iterdir()] == [name]


def read(path: Path):
    """Return the edge list, or None where the file is refused in a line that names the file."""
    try:
        return converted(path)[0]
    except InputError as error:
        line = str(error)
    assert line.startswith(str(path))
    assert "\n" not in line
    return None


@pytest.mark.parametrize(
    ("name", "directed"),
    [("a.wsg", True), slow("a.sg", False), slow("a.wsg", False), slow("a.sg", True)],
)
def test_a_changed_byte_gives_no_other_edges(tmp_path, name, directed):
    """A changed byte is refused in either copy of the edges, also in offsets, whose differences may
    seem right.
    """
    path = write(tmp_path / name, SRC, DST, 5, directed)
    data, right = path.read_bytes(), read(path)
    assert right
    for place in range(len(data)):
        path.write_bytes(data[:place] + bytes([data[place] ^ 1 << place % 8]) + data[place + 1 :])
        assert read(path) is None, place


@pytest.mark.parametrize("name", ["a.sg", "a.wsg"])
@pytest.mark.parametrize("directed", [False, True])
def test_offsets_whose_differences_pass_64_bits(tmp_path, name, directed):
    """Offsets that rise by 2^63 - 1, wrap around and return to right values are refused, in either
    half of the file.
    """
    path = write(tmp_path / name, SRC, DST, 5, directed)
    data = path.read_bytes()
    entries = struct.unpack_from("<q", data, 1)[0]
    halves = [17, 17 + (len(data) - 17) // 2] if directed else [17]
    for start in halves:
        wrong = struct.pack("<4q", 2**63 - 1, -2, 1, 2)
        path.write_bytes(data[: start + 8] + wrong + data[start + 40 :])
        reason = f"byte {start}: offsets do not rise from 0 to {entries}"
        with pytest.raises(InputError, match=reason):
            converted(path)


def test_what_cannot_be(tmp_path):
    path = write(tmp_path / "a.sg", SRC, DST, 5, False)
    data = path.read_bytes()
    offsets, entries = 17, 17 + 8 * 6
    for at, value, reason in (
        (0, b"\7", "byte 0: direction 7"),
        (1, struct.pack("<q", -1), "byte 0: direction 0, -1 entries"),
        (offsets, struct.pack("<q", 1), "byte 17: offsets do not rise from 0 to 8"),
        (offsets + 8, struct.pack("<q", 9), "byte 17: offsets do not rise"),
        (offsets + 40, struct.pack("<q", 7), "byte 17: offsets do not rise"),
        (entries + 4, struct.pack("<i", 5), f"byte {entries + 4}: vertex 5 of 5"),
        (entries + 8, struct.pack("<i", -1), f"byte {entries + 8}: vertex -1 of 5"),
        (entries, struct.pack("<i", 0), "3 edges are in the row of their smaller vertex, and 4"),
    ):
        path.write_bytes(data[:at] + value + data[at + len(value) :])
        with pytest.raises(InputError) as refused:
            converted(path)
        assert reason in str(refused.value)
    assert [file.name for file in tmp_path.iterdir()] == ["a.sg"]
