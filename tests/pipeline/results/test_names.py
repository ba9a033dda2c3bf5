"""Names streamed from a store's vertex table, against names held in memory."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delegraph.kernels.base.team import Team
from delegraph.partition.disk.files import record_of
from delegraph.partition.errors import DelegraphError, InputError
from delegraph.partition.input.edges import open_edges
from delegraph.partition.store.store import Store
from delegraph.pipeline.build.build import build_store
from delegraph.pipeline.build.prepare import BuildOptions
from delegraph.pipeline.results.names import file_rows, names_of_store
from delegraph.pipeline.results.result import parts_of
from delegraph.pipeline.results.store_names import StoreNames
from delegraph.pipeline.results.weights import find_places
from delegraph.pipeline.run.execute import Executor
from delegraph.pipeline.run.resources import Resources

TEAM = Team(2)
IDS = {
    "int32": pa.array(np.arange(100, dtype=np.int32)),
    "int64": pa.array(np.arange(100) * 10**12 - 5 * 10**13),
    "uint64": pa.array(np.arange(100, dtype=np.uint64) * 3 + np.uint64(2**63)),
    "int8": pa.array(np.arange(-50, 50, dtype=np.int8)),
    "string": pa.array([f"{'ä' * (i % 3)}{i:03}" for i in range(100)]),
    "large_string": pa.array([f"{i:03}" for i in range(100)], pa.large_string()),
}


def build(folder: Path, ids: pa.Array, row_group: int = 7) -> Store:
    """Build a store whose vertex table has row groups of a few rows."""
    rng = np.random.default_rng(1)
    ends = [ids.take(pa.array(rng.integers(0, len(ids), 300))) for _ in range(2)]
    pq.write_table(pa.table(ends, names=["src", "dst"]), folder / "edges.parquet")
    edges = open_edges(folder / "edges.parquet")
    store = build_store(
        edges, folder / "graph.dg", BuildOptions(order="random"), Executor(2), Resources()
    )
    path = store.path / "vertices.parquet"
    pq.write_table(pq.read_table(path), path, row_group_size=row_group)
    return replace(store, files={**store.files, path.name: record_of(path)})


@pytest.mark.parametrize("kind", IDS)
def test_streamed_names_are_those_in_memory(kind, tmp_path):
    store = build(tmp_path, IDS[kind])
    held, streamed = names_of_store(store, TEAM), StoreNames(store, TEAM)
    assert streamed.id_type == held.id_type == IDS[kind].type
    assert sum(streamed.pieces) == sum(held.pieces) == store.info.vertices
    assert max(streamed.pieces) == 7

    ids, places = zip(*map(streamed.piece, range(len(streamed.pieces))), strict=True)
    assert np.concatenate(places).tolist() == held.index.tolist()
    all_ids, at = held.piece(0)
    assert [value for piece in ids for value in piece.to_pylist()] == all_ids.to_pylist()
    for value, place in zip(all_ids.to_pylist(), at.tolist(), strict=True):
        assert streamed.find(value) == held.find(value) == place

    numbers = pa.array([5, None, 0, store.info.vertices - 1], pa.uint32())
    for part in (numbers, numbers.slice(1, 2), numbers.slice(0, 0)):
        decoded = streamed.decode(part)
        assert decoded.type == IDS[kind].type
        assert decoded.to_pylist() == held.decode(part).to_pylist()


@pytest.mark.parametrize("room", [0, 20, 1000, 1 << 20])
def test_pieces_are_kept_within_their_room(room, tmp_path, monkeypatch):
    """Pieces that are kept are those that are read, take no more bytes than they may, and are
    dropped with the store that they are of.
    """
    store = build(tmp_path, IDS["int64"])
    names, wanted = StoreNames(store, TEAM), StoreNames(store, TEAM)
    names.keep(room)
    for number in [*range(len(names.pieces)), *range(len(names.pieces))]:
        (ids, places), (same, at) = names.piece(number), wanted.piece(number)
        assert ids.equals(same)
        assert places.tolist() == at.tolist()
    kept = sum(ids.nbytes + places.nbytes for ids, places in names._kept.values())
    assert kept <= room
    assert (len(names._kept) > 0) == (room > 20)
    assert len(names._kept) == len(names.pieces) or room < 1 << 20
    os.utime(store.path / "vertices.parquet", (0, 0))
    with pytest.raises(DelegraphError, match="has changed since it was opened"):
        names.find(0)


@pytest.mark.parametrize("row_group", [1, 7, 1000])
def test_what_is_no_vertex_is_not_found(row_group, tmp_path):
    ids = pa.array(np.arange(100) * 10 + 5)
    store = build(tmp_path, ids, row_group)
    names = StoreNames(store, TEAM)
    for value in (-1, 0, 7, 500, 994, 996, 10**9):
        assert names.find(value) is None
    text = tmp_path / "text"
    text.mkdir()
    names = StoreNames(build(text, IDS["string"], row_group), TEAM)
    for value in ("", "0", "0005", "z", "ä"):
        assert names.find(value) is None


def test_a_damaged_vertex_table_is_named(tmp_path):
    store = build(tmp_path, IDS["int64"])
    path = store.path / "vertices.parquet"
    data = bytearray(path.read_bytes())
    data[100] ^= 1
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"vertices.parquet: damaged: block 0"):
        StoreNames(store, TEAM)


def test_files_of_a_result_hold_whole_pieces():
    assert parts_of([]) == []
    rows = file_rows(1)
    assert parts_of([rows]) == [range(1)]
    assert parts_of([rows - 1, 1, 1]) == [range(2), range(2, 3)]
    assert parts_of([4 * rows, 1]) == [range(1), range(1, 2)]
    most = file_rows(1 << 31)
    assert parts_of([most // 2] * 40)[0] == range(2)


@pytest.mark.parametrize("kind", IDS)
def test_places_of_ids(tmp_path, kind):
    """Ids in any order, some of them between, before and behind those of the graph, are found as
    one by one.
    """
    ids = IDS[kind]
    kept = ids.take(pa.array(range(5, 95, 2)))  # row groups have gaps between their ids
    names = StoreNames(build(tmp_path, kept), TEAM)
    rng = np.random.default_rng(3)
    for count in (0, 1, 40, len(ids)):
        some = ids.take(pa.array(rng.permutation(len(ids))[:count], pa.int64()))
        places, found = find_places(some.cast(names.id_type), names)
        one_by_one = [names.find(value) for value in some.to_pylist()]
        assert found.tolist() == [place is not None for place in one_by_one]
        assert places[found].tolist() == [place for place in one_by_one if place is not None]
