"""Files with false contents, by hand or by damage: conversion finds what a plain reader finds in
the file.
"""

from __future__ import annotations

import gzip
import re
import struct
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import delegraph
from delegraph.partition.errors import InputError, LimitError
from delegraph.pipeline.interchange import text
from support.interchange import converted

BANNER = "%%MatrixMarket matrix coordinate"
LONG = "9" * 5000
ODD = (
    *("007", "00", "-0", "-07", "+7", "0x1f", "0X1", "1e3", "7.0", "1_0", "٣", "²", "inf", "--1"),
    *(LONG, "-" + LONG, "0" * 5000, "99999999999999999999", "-99999999999999999999", "x" * 5000),
    *(str(bound + more) for bound in (-(2**63), 2**31, 2**32, 2**63, 2**64) for more in (-1, 0, 1)),
)
words = st.sampled_from(ODD) | st.integers(0, 6).map(str)
Edges = list[tuple[str, ...]]


def read(path: Path, **options) -> Edges | None:
    """Return the edges as they print, or None for a file that is refused in one line that names the
    file.
    """
    before = set(path.parent.iterdir())
    try:
        edges, record = converted(path, **options)
    except InputError as error:
        line, limited = str(error), isinstance(error, LimitError)
    else:
        assert record["rows"] == len(edges["src"])
        return [tuple(map(str, row)) for row in zip(*edges.values(), strict=True)]
    assert limited or line.startswith(str(path.parent))
    assert "\n" not in line
    assert len(line) < 1000
    assert set(path.parent.iterdir()) == before
    return None


def integers(line: str, least: int, most: int, exact: bool) -> list[int] | None:
    """Return the numbers of a line, or None if a word is no number. exact: words have to be as
    numbers print.
    """
    numbers = []
    for word in line.split():
        if not re.fullmatch("-?[0-9]{1,5000}", word, re.ASCII):
            return None
        number = (
            int(word.replace("0" * 4000, "")) if len(word) < 4000 or word[0] == "0" else most + 1
        )
        if not least <= number <= most or (exact and str(number) != word):
            return None
        numbers.append(number)
    return numbers


@given(st.sampled_from(["a.csv", "a.snap", "a.el"]), st.lists(st.tuples(words, words), min_size=1))
@example("a.el", [("0", "1"), ("007", "2")])
@example("a.snap", [("1", LONG)])
def test_ids(tmp_path_factory, name, rows):
    path = tmp_path_factory.mktemp("ids") / name
    blank = "," if name == "a.csv" else " "
    header = "src,dst\n" if name == "a.csv" else ""
    path.write_text(header + "".join(f"{u}{blank}{v}\n" for u, v in rows))
    wanted: Edges | None = rows
    if name == "a.el" and not all(integers(" ".join(row), 0, 2**63 - 1, True) for row in rows):
        wanted = None
    assert read(path) == wanted


@given(
    st.lists(words, min_size=0, max_size=4),
    st.sampled_from(["general", "symmetric"]),
    st.lists(st.lists(words, min_size=1, max_size=3), max_size=5),
)
@example([LONG, LONG, "1"], "general", [["1", "2"]])
@example(["6", "6", "2"], "general", [["1", "2"], ["007", "1"]])
@example(["4", "4", "1"], "general", [["001", "4"]])
@example([], "general", [["1", "1", "00"]])
def test_matrices(tmp_path_factory, sizes, symmetry, rows):
    path = tmp_path_factory.mktemp("mtx") / "a.mtx"
    lines = [f"{BANNER} pattern {symmetry}", " ".join(sizes), *map(" ".join, rows)]
    path.write_text("\n".join(lines))
    # Blank lines may stand anywhere.
    head, *rest = [line for line in lines[1:] if line.strip()] or [""]
    size = integers(head, 0, 2**63 - 1, False) or []
    edges = [integers(line, 1, size[0] if size else 0, False) or [] for line in rest]
    right = len(size) == 3 and size[0] == size[1] and size[2] == len(edges)
    right = right and "-" not in head and all(len(edge) == 2 for edge in edges)
    wanted = None
    if right and 8 * size[0] <= 256 << 20 and (edges or size[0]):
        alone = sorted(set(range(1, size[0] + 1)) - {end for edge in edges for end in edge})
        wanted = [tuple(map(str, edge)) for edge in edges + [[v, v] for v in alone]]
    assert read(path) == wanted


GRAPHS = {
    "": "7 11\n5 3 2\n1 3 4\n5 4 2 1\n2 3 6 7\n1 3 6\n5 4 7\n6 4",
    "edge weights": "4 3 001\n2 5 3 6\n1 5 3 7\n1 6 2 7\n",
    "vertex weights": "4 3 010 2\n9 9 2 3\n9 9 1 3\n9 9 1 2\n9 9",
}


def metis(lines: list[str]) -> Edges | None:
    """Return edges, then vertices without edges, by the definition of METIS's format."""
    head = integers(lines[0], 0, 2**62, False) or []
    form = lines[0].split()[2].zfill(3) if len(head) > 2 else "000"
    if not 2 <= len(head) <= 4 or len(form) > 3 or set(form) - {"0", "1"} or "-" in lines[0]:
        return None
    first = int(form[0]) + int(form[1]) * (head[3] if len(head) == 4 else 1)
    step = 1 + int(form[2])
    rows = [integers(line, -(2**63), 2**63 - 1, False) for line in lines[1:]]
    if len(rows) < head[0] or None in rows or any(rows[head[0] :]):
        return None
    entries = []
    for vertex, row in enumerate(rows[: head[0]], 1):
        assert row is not None
        if row and (len(row) < first or (len(row) - first) % step):
            return None
        neighbours = row[first::step]
        weights = row[first + 1 :: step] if step == 2 else [0] * len(neighbours)
        entries += [(vertex, *entry) for entry in zip(neighbours, weights, strict=True)]
    if any(not 1 <= target <= head[0] for _, target, _ in entries):
        return None
    loops = sum(u == v for u, v, _ in entries)
    if sorted((v, u, w) for u, v, w in entries if u > v) != sorted(
        e for e in entries if e[0] < e[1]
    ):
        return None
    if 2 * head[1] not in (len(entries), len(entries) + loops):
        return None
    alone = sorted(set(range(1, head[0] + 1)) - {end for entry in entries for end in entry[:2]})
    edges = [entry for entry in entries if entry[0] <= entry[1]] + [(v, v, 0) for v in alone]
    return [tuple(map(str, edge[: step + 1])) for edge in edges] or None


@given(
    st.sampled_from(list(GRAPHS)),
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 8), words), min_size=0, max_size=2),
    st.sampled_from(["replace", "add", "remove"]),
)
@example("vertex weights", [(0, 3, "99999999999999999999")], "replace")
@example("", [(0, 0, LONG)], "replace")
def test_metis(tmp_path_factory, kind, changes, how):
    """A METIS file with words changed, added or left out is read as the definition reads it, or
    refused.
    """
    lines = [line.split() for line in GRAPHS[kind].split("\n")]
    for row, place, word in changes:
        line = lines[row % len(lines)]
        if how == "add" or not line:
            line.insert(place % (len(line) + 1), word)
        else:
            line[place % len(line) : place % len(line) + 1] = [word] * (how == "replace")
    written = [" ".join(line) for line in lines]
    path = tmp_path_factory.mktemp("metis") / "a.graph"
    path.write_text("\n".join(written) + "\n")
    assert read(path) == metis(written)


SERIALIZED = {
    False: struct.pack("<?qq5q8i", False, 8, 4, 0, 3, 5, 7, 8, 1, 2, 3, 0, 2, 0, 1, 0),
    True: struct.pack("<?qq4q3i", True, 3, 3, 0, 2, 3, 3, 1, 2, 2)
    + struct.pack("<4q3i", 0, 0, 1, 3, 0, 0, 1),
}
BOUNDS = (0, 1, -1, -2, 2**31, 2**32, 2**62, 2**63 - 1, -(2**63), 10**12)


@given(
    st.booleans(),
    st.lists(st.tuples(st.integers(0, 200), st.sampled_from(BOUNDS)), min_size=1, max_size=4),
)
@example(True, [(25, 2**63 - 1), (33, -2)])
def test_serialized(tmp_path_factory, directed, changes):
    """A serialized graph with random 64-bit numbers in any place gives the same edges, or is
    refused.
    """
    path = tmp_path_factory.mktemp("sg") / "a.sg"
    whole = SERIALIZED[directed]
    path.write_bytes(whole)
    right = read(path)
    assert right is not None
    data = bytearray(whole)
    for place, value in changes:
        struct.pack_into("<q", data, place % (len(data) - 7), value)
    path.write_bytes(data)
    edges = read(path)
    assert (edges == right) if bytes(data) == whole else (edges is None or edges == right)


UNITS = [b"\n", b" ", b"1", b"1 ", b"1 2\n", b"#\n", b"% a\n", b'"', b'"\n', b",\n", b"\0", b"\r\n"]
BEGINNINGS = {
    "a.csv": b"src,dst\n",
    "a.snap": b"",
    "a.el": b"3 4\n",
    "a.mtx": f"{BANNER} pattern general\n2 2 1\n".encode(),
    "a.graph": b"2 1\n2\n1\n",
    "a.e": b"1 2\n",
}


@given(
    st.sampled_from(list(BEGINNINGS)),
    st.sampled_from([".gz", ".zst"]),
    st.sampled_from(UNITS),
    st.integers(0, 300_000),
    st.booleans(),
)
def test_bombs(tmp_path_factory, name, ending, unit, size, lifted):
    """A compressed file of one repeated unit is refused when it unpacks to too much, and else read
    like its text.
    """
    whole = BEGINNINGS[name] + unit * (size // len(unit))
    data = gzip.compress(whole, 1)
    if ending == ".zst":
        data = pa.compress(whole, codec="zstd", asbytes=True)
    plain, packed = tmp_path_factory.mktemp("plain"), tmp_path_factory.mktemp("packed")
    for folder in (plain, packed):
        (folder / "a.v").write_text("1\n2\n")
    (plain / name).write_bytes(whole)
    (packed / f"{name}{ending}").write_bytes(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "BLOCK_BYTES", 1 << 14)
        patch.setattr(text, "LINE_BYTES", 1 << 15)
        patch.setattr(text, "UNPACKED_BYTES", 1 << 16)
        right = read(plain / name)
        edges = read(packed / f"{name}{ending}", max_unpacked="none" if lifted else None)
    if not lifted and len(whole) > max(1 << 16, text.UNPACKED_RATIO * len(data)):
        right = None
    assert edges == right


def test_what_unpacks_from_how_little(tmp_path, monkeypatch):
    monkeypatch.setattr(text, "UNPACKED_BYTES", 1 << 20)
    monkeypatch.setattr(text, "UNPACKED_RATIO", 1)
    path = tmp_path / "a.el.gz"
    path.write_bytes(gzip.compress(b"1 2\n" * (1 << 19)))
    size = path.stat().st_size
    with pytest.raises(InputError) as refused:
        delegraph.convert(path, tmp_path / "edges")
    reason = (
        f"{path}: its {size:,} bytes unpack to more than 2 MB, which is unusual for a graph file: "
    )
    advice = 'if the file is right, give max_unpacked=, or max_unpacked="none"'
    assert str(refused.value) == f"{reason}{advice}"
    assert [file.name for file in tmp_path.iterdir()] == ["a.el.gz"]
    for most in (2 << 20, "3MiB", "none"):
        record = delegraph.convert(
            path, tmp_path / "edges", max_unpacked=most, overwrite=True
        ).record
        assert record["rows"] == 1 << 19
    with pytest.raises(InputError, match="unpack to more than"):
        delegraph.convert(path, tmp_path / "other", max_unpacked=(2 << 20) - 1)
    with pytest.raises(InputError, match="not a size"):
        delegraph.convert(path, tmp_path / "other", max_unpacked="much")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a.snap.gz", "a.csv.gz", "a.graph.gz", "a.mtx.zst"])
@pytest.mark.parametrize("unit", [b"\n", b"1"])
def test_three_hundred_million_of_a_byte(tmp_path, name, unit):
    """Compressed files of 300 million bytes are refused at once: a few kilobytes to 0.3 MB once
    took minutes, or all memory.
    """
    path = tmp_path / name
    before = BEGINNINGS["a.graph"] if name == "a.graph.gz" else b""
    codec = "gzip" if name.endswith(".gz") else "zstd"
    with pa.CompressedOutputStream(path, codec) as file:
        file.write(before)
        for _ in range(300):
            file.write(unit * 1_000_000)
    with pytest.raises(InputError, match=re.escape(str(path))):
        delegraph.convert(path, tmp_path / "edges")
