"""A store with right checksums and wrong contents is refused in one line, and no read passes an
array's end.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import delegraph
from delegraph.kernels.base.team import Team
from delegraph.partition.errors import DelegraphError, InputError
from delegraph.partition.store.store import Store, open_store
from delegraph.pipeline.results.store_names import StoreNames
from support.graphs import random_edges
from support.ranks import search_by_threads, stream_search, streamed
from support.stores import copied, edit_array, sealed

TEAM = Team(2)
SHAPES = {
    "csr": {},
    "directed": {"directed": True},
    "delegate": {"partitions": 3, "threshold": 25},
    "random": {"partitions": 3, "threshold": 25, "order": "random"},
    "2d": {"partitions": 4, "layout": "2d"},
}


def stream(store: Store) -> None:
    stream_search(streamed(store), 0, TEAM, direction=lambda *_: "push")
    stream_search(streamed(store), 0, TEAM, direction=lambda *_: "pull")


READ = {
    "in memory": lambda store: store.graph(TEAM),
    "streamed": stream,
    "by ranks": lambda store: search_by_threads(store, 0, 2, store.path.parent / "out"),
}


@pytest.fixture(scope="module")
def stores(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("stores")
    edges = pa.table(list(random_edges(1, 60, 500)), ["src", "dst"])
    pq.write_table(edges, folder / "edges.parquet", row_group_size=100)
    for name, options in SHAPES.items():
        delegraph.build(folder / "edges.parquet", folder / name, **options)
    names = [column.cast(pa.string()) for column in edges.columns]
    pq.write_table(pa.table(names, ["src", "dst"]), folder / "names.parquet")
    delegraph.build(folder / "names.parquet", folder / "names")
    return folder


def refused(store: Path, name: str, says: str, *ways: str) -> None:
    says = rf"{name}: invalid contents: .*{says}"
    for way in ways or READ:
        with pytest.raises(DelegraphError, match=says) as error:
            READ[way](open_store(store))
        assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("shape", "name"),
    [
        ("csr", "partition-0000/nn"),
        ("directed", "partition-0000/nn"),
        ("directed", "partition-0000/reverse-nn"),
        ("delegate", "partition-0000/nn"),
        ("delegate", "partition-0000/nd"),
        ("delegate", "partition-0001/dn"),
        ("delegate", "partition-0002/dd"),
        ("2d", "partition-0003/nn"),
    ],
)
@pytest.mark.parametrize("beyond", [0, 2**32 - 1])
def test_targets_beyond_the_vertices(stores, tmp_path, shape, name, beyond):
    store = copied(stores / shape, tmp_path)
    opened = open_store(store)
    partition, kind = int(name[13]), name[15:]
    first = beyond or opened.info.targets_of(partition, kind).stop
    file = f"{name}.targets-0000.npy"
    edit_array(store, file, lambda targets: np.put(targets, len(targets) // 2, first))
    ways = ["streamed"] if "reverse" in name else ["in memory", "streamed"]
    changed = open_store(store)
    line = f"{file}: invalid contents: value {first:,} in block 0 is not from "
    with pytest.raises(InputError, match=line):
        changed.subgraph(partition, kind, TEAM)
    refused(store, file, f"{first:,} in block 0", *ways)


def test_a_delegate_among_the_normal_vertices(stores, tmp_path):
    store = copied(stores / "delegate", tmp_path)
    name = "partition-0000/nn.targets-0000.npy"
    edit_array(store, name, lambda targets: np.put(targets, 0, 0))
    refused(store, name, "value 0 in block 0 is not from ")


@pytest.mark.parametrize("shape", ["csr", "delegate", "2d"])
@pytest.mark.parametrize(
    "change",
    [
        lambda offsets: np.put(offsets, len(offsets) // 2, 2**32 - 1),
        lambda offsets: np.put(offsets, 0, 1),
        lambda offsets: np.put(offsets, -1, offsets[-1] - 1),
        lambda offsets: np.put(offsets, -1, offsets[-1] + 1),
        lambda offsets: offsets[::-1].copy(),
    ],
)
def test_offsets_that_are_none(stores, tmp_path, shape, change):
    store = copied(stores / shape, tmp_path)
    name = "partition-0000/nn.offsets.npy"
    edit_array(store, name, change)
    refused(store, name, "the offsets do not rise from 0 to its")


def test_offsets_are_checked_across_pieces(stores, tmp_path, monkeypatch):
    monkeypatch.setattr("delegraph.partition.store.store._WINDOW", 4)
    store = copied(stores / "csr", tmp_path)
    open_store(store).graph(TEAM)
    name = "partition-0000/nn.offsets.npy"
    for k in range(1, 12):
        whole = (store / name).read_bytes()
        edit_array(store, name, lambda offsets, k=k: np.put(offsets, k, offsets[k + 1] + 1))
        refused(store, name, "the offsets do not rise", "in memory")
        (store / name).write_bytes(whole)


@pytest.mark.parametrize("dtype", [np.int32, ">u4", np.float32])
@pytest.mark.parametrize("kind", ["offsets", "targets-0000"])
def test_an_array_of_another_type(stores, tmp_path, dtype, kind):
    store = copied(stores / "csr", tmp_path)
    name = f"partition-0000/nn.{kind}.npy"
    edit_array(store, name, lambda array: array.view(dtype))
    refused(store, name, "header is not that of a NumPy array of uint32")


@pytest.mark.parametrize("shape", ["delegate", "random"])
@pytest.mark.parametrize("value", ["beyond", "twice"])
def test_delegates_that_are_none(stores, tmp_path, shape, value):
    store = copied(stores / shape, tmp_path)
    wrong = open_store(store).info.vertices if value == "beyond" else None
    edit_array(store, "delegates.npy", lambda ids: np.put(ids, -1, wrong or ids[0]))
    refused(store, "delegates.npy", "")


def edit_table(store: Path, change) -> None:
    table = pq.read_table(store / "vertices.parquet")
    columns = {name: table[name].to_pylist() for name in table.column_names}
    kinds = dict(zip(table.column_names, table.schema.types, strict=True))
    change(columns, kinds)
    fields = [pa.field(name, kinds[name], nullable=None in columns[name]) for name in columns]
    changed = pa.table(list(columns.values()), pa.schema(fields))
    pq.write_table(changed, store / "vertices.parquet", row_group_size=16)
    sealed(store, "vertices.parquet")


def set_at(column: str, i: int, value):
    return lambda columns, _: columns[column].__setitem__(i, value)


TABLES = {
    "a global id beyond": set_at("global_id", 3, 10**6),
    "a global id twice": lambda columns, _: set_at("global_id", 3, columns["global_id"][40])(
        columns, _
    ),
    "no global id": set_at("global_id", 3, None),
    "no vertex": set_at("vertex", 3, None),
    "vertices that fall": lambda columns, _: columns["vertex"].reverse(),
    "a vertex twice": lambda columns, _: set_at("vertex", 16, columns["vertex"][15])(columns, _),
    "one row less": lambda columns, _: [column.pop() for column in columns.values()],
    "another type": lambda _, kinds: kinds.update(global_id=pa.int64()),
    "one column less": lambda columns, _: columns.pop("degree"),
}


@pytest.mark.parametrize("change", TABLES)
@pytest.mark.parametrize("shape", ["csr", "names", "random"])
def test_a_vertex_table_that_is_none(stores, tmp_path, shape, change):
    store = copied(stores / shape, tmp_path)
    edit_table(store, lambda *_: None)
    names = StoreNames(open_store(store), TEAM)
    assert len(names.decode(pa.array([0, 1], pa.uint32()))) == 2
    edit_table(store, TABLES[change])
    says = r"vertices.parquet: invalid contents: "
    with pytest.raises(InputError, match=says):
        StoreNames(open_store(store), TEAM).decode(pa.array([0], pa.uint32()))
    with pytest.raises(InputError, match=says):
        open_store(store).vertices(TEAM, ["vertex", "global_id"])


def test_a_vertex_table_that_is_no_parquet_file(stores, tmp_path, delegraph):
    store = copied(stores / "csr", tmp_path)
    (store / "vertices.parquet").write_bytes(b"PAR1" + bytes(5000) + b"PAR1")
    sealed(store, "vertices.parquet")
    for command in ["bfs", store, "--source", 1, "-o", tmp_path / "out"], ["plan", store]:
        run = delegraph(*command)
        assert run.code == 2
        assert "vertices.parquet: invalid contents: " in run.err


def test_names_that_are_no_utf_8(stores, tmp_path, delegraph):
    store = copied(stores / "names", tmp_path)
    table = pq.read_table(store / "vertices.parquet").to_pydict()
    wrong = [b"\xff" + name.encode() for name in table["vertex"]]
    fields = pq.read_schema(store / "vertices.parquet")
    columns = [
        pa.array(wrong, pa.binary()).view(pa.string()),
        *(pa.array(table[name], fields.field(name).type) for name in fields.names[1:]),
    ]
    pq.write_table(pa.table(columns, fields), store / "vertices.parquet")
    sealed(store, "vertices.parquet")
    run = delegraph("bfs", store, "--source", "1", "-o", tmp_path / "out")
    assert run.code == 2
    assert "vertices.parquet: invalid contents: " in run.err
