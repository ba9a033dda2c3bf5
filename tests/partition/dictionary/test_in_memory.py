"""Dictionaries merged by ranges, against one dictionary of all ids."""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delegraph.partition.dictionary import in_memory
from delegraph.partition.input import ids as input_ids
from delegraph.partition.input.arrow import as_arrow
from delegraph.partition.input.edges import open_edges
from delegraph.partition.input.ids import merge_dictionaries, read_encoded
from delegraph.pipeline.build.read import read_edges
from delegraph.pipeline.run.execute import Executor

texts = st.one_of(
    st.text(max_size=3),
    st.text("ab\0", max_size=12),
    st.text("01", min_size=1, max_size=12).map("http://example.org/resource/".__add__),
    st.text("01", min_size=1, max_size=30).map("http://another.org/name#".__add__),
    st.text("äö", max_size=9).map("ä".__add__),
)
KINDS = {
    "int8": (st.integers(-128, 127), pa.int8()),
    "int64": (st.integers(-(2**63), 2**63 - 1), pa.int64()),
    "near": (st.integers(2**62, 2**62 + 50), pa.int64()),
    "uint32": (st.integers(0, 2**32 - 1), pa.uint32()),
    "uint64": (st.integers(0, 2**64 - 1), pa.uint64()),
    "strings": (texts, pa.large_string()),
    "bytes": (st.integers(0, 2**128 - 1).map(lambda i: UUID(int=i).bytes), pa.binary(16)),
    "bytes that begin alike": (st.integers(0, 99).map(lambda i: UUID(int=i).bytes), pa.binary(16)),
}


def merged(dictionaries: list[pa.Array]) -> in_memory.Merged:
    cuts = in_memory.choose_cuts(dictionaries)
    by_range = [in_memory.sort_by_range(some, cuts) for some in dictionaries]
    parts = [in_memory.merge_range(number, by_range) for number in range(len(cuts) + 1)]
    return in_memory.Merged(by_range, parts)


def check(dictionaries: list[pa.Array]) -> None:
    """Compare with all dictionaries as one range."""
    ours = merged(dictionaries)
    wanted, places = merge_dictionaries(dictionaries, dictionaries[0].type)
    assert ours.count == wanted.domain
    assert ours.ids().equals(wanted.values)
    for number, want in enumerate(places):
        assert ours.places(number).dtype == np.uint32
        assert ours.places(number).tolist() == want.tolist()


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data(), ids_a_range=st.sampled_from([1, 2, 7]))
@settings(max_examples=25)
def test_ranges_are_merged_as_one(kind, data, ids_a_range):
    values, id_type = KINDS[kind]
    some = data.draw(st.lists(st.lists(values, unique=True, max_size=30), min_size=1, max_size=4))
    dictionaries = [pa.array(ids, id_type) for ids in some]
    whole = pa.concat_arrays(dictionaries)  # as slices, too: they begin in the middle of a buffer
    ends = np.cumsum([0, *map(len, dictionaries)])
    slices = [whole[start:stop] for start, stop in pairwise(ends.tolist())]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(in_memory, "RANGE_IDS", ids_a_range)
        check(dictionaries)
        check(slices)


@pytest.mark.parametrize("kind", ["numbers", "strings", "strings that begin alike"])
def test_many_ids(kind, monkeypatch):
    """Many ids in many ranges, whose sizes differ by little."""
    monkeypatch.setattr(in_memory, "RANGE_IDS", 1000)
    rng = np.random.default_rng(7)
    numbers = rng.integers(-(2**63), 2**63 - 1, 20_000)
    if kind == "numbers":
        ids = as_arrow(numbers)
    else:
        before = "http://example.org/" * 3 if kind == "strings that begin alike" else ""
        ids = pa.array([f"{before}{number}" for number in numbers.tolist()], pa.large_string())
    chosen = (rng.choice(len(ids), 9000, replace=False) for _ in range(5))
    dictionaries = [ids.take(as_arrow(some)) for some in chosen]
    check(dictionaries)
    cuts = in_memory.choose_cuts(dictionaries)
    assert len(cuts) == 44
    sizes = sum(np.diff(in_memory.sort_by_range(some, cuts).starts) for some in dictionaries)
    assert np.min(sizes) > 300
    assert np.max(sizes) < 3000


def test_a_string_is_in_the_range_of_the_last_cut_that_is_not_above_it():
    cuts = sorted(["", "a", "ab", "abc\0", "abcdefghi", "abcdefghij", "b\0", "http://a", "ä"])
    strings = [*cuts, "\0", "abc", "abcdefgh", "abcdefghi\0", "b", "http://", "http://b", "ö", "z"]
    ranges = np.empty(len(strings), np.uint16)
    of_strings, of_cuts = (
        in_memory._texts_of(pa.array(some, pa.large_string())) for some in (strings, cuts)
    )
    in_memory.kernels.find_text_ranges(*of_strings, *of_cuts, ranges)
    assert ranges.tolist() == [bisect_right(cuts, one) for one in strings]


def test_too_few_ids_for_ranges():
    for ids in ([], [3], [5, 1]):
        dictionaries = [pa.array(ids, pa.int64()), pa.array(ids[:1], pa.int64())]
        assert len(in_memory.choose_cuts(dictionaries)) == 0
        check(dictionaries)


@pytest.mark.parametrize("kind", ["int64", "string"])
@pytest.mark.parametrize("vertices", [3, 5000])
def test_ids_that_repeat_in_a_dictionary(edge_list, monkeypatch, kind, vertices):
    """Edges are the same whether or not each piece's ids are made distinct first."""
    rng = np.random.default_rng(3)
    ends = rng.integers(0, vertices, (2, 4000)) * 10**15 - 10**16
    ends[1, ::40] = ends[0, ::40]
    path = edge_list(*(end.astype(str).tolist() if kind == "string" else end for end in ends))
    edges = open_edges(path, "src", "dst")
    pieces = [piece for chunk in edges.chunks() for piece in read_encoded(edges, chunk)]
    assert all(len(ids.unique()) == len(ids) for _, ids in pieces)
    monkeypatch.setattr(in_memory, "RANGE_IDS", 100)
    read = []
    for share in (0.0, 0.75, 2.0):
        monkeypatch.setattr(input_ids, "_FEW_REPEAT", share)
        monkeypatch.setattr(input_ids, "ENCODE_ROWS", 1000)
        read.append(read_edges(edges, Executor(2), count_loops=True))
    for each in read:
        assert each.self_loops == np.count_nonzero(ends[0] == ends[1])
        assert each.ids.values.equals(read[0].ids.values)
        assert len(each.batches) == len(read[0].batches)
        for batch, other in zip(each.batches, read[0].batches, strict=True):
            assert all(map(np.array_equal, batch, other))
    decoded = [
        read[0].ids.decode(as_arrow(np.concatenate(end)))
        for end in zip(*read[0].batches, strict=True)
    ]
    assert [end.cast(pa.string()).to_pylist() for end in decoded] == ends.astype(str).tolist()
