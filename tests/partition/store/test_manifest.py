"""A manifest's values, and the files that they describe, are checked when a store is opened."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import delegraph
from delegraph.partition.disk.outputs import is_store
from delegraph.partition.errors import InputError
from delegraph.partition.store.store import open_store
from support.graphs import random_edges
from support.stores import copied, edit_manifest

NN = "partition-0000/nn.targets-0000.npy"


@pytest.fixture(scope="module")
def stores(tmp_path_factory) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = tmp_path_factory.mktemp("stores")
    edges = random_edges(1, 60, 300)
    pq.write_table(pa.table(list(edges), ["src", "dst"]), folder / "edges.parquet")
    for name, options in {"delegate": {}, "2d": {"layout": "2d"}, "1d": {"layout": "1d"}}.items():
        delegraph.build(folder / "edges.parquet", folder / name, partitions=4, **options)
    return folder


@pytest.fixture
def store(stores, tmp_path) -> Path:
    return copied(stores / "delegate", tmp_path)


def refused(store: Path, *says: str) -> None:
    with pytest.raises(InputError) as error:
        open_store(store)
    assert "\n" not in str(error.value)
    for words in (str(store), *says):
        assert words in str(error.value)


@pytest.mark.parametrize("layout", ["delegate", "2d", "1d"])
def test_a_store_as_it_was_built_opens(stores, layout):
    assert open_store(stores / layout).info.layout == layout


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("partitions", 0),
        ("partitions", -1),
        ("partitions", 10**9),
        ("partitions", True),
        ("partitions", 4.0),
        ("partitions", 3),
        ("vertices", 0),
        ("vertices", 1 << 32),
        ("vertices", 61),
        ("vertices", "60"),
        ("edges", 1),
        ("rows", 1),
        ("self_loops", -1),
        ("duplicates", None),
        ("delegates", 1 << 31),
        ("delegates", 0),
        ("threshold", -1),
        ("threshold_chosen_by", "me"),
        ("nn_row_share", float("nan")),
        ("nn_row_share", 1.5),
        ("nn_row_share", False),
        ("fingerprint", 7),
        ("src", None),
        ("dst", "\ud800"),
        ("id_type", "float32"),
        ("id_type", ["int64"]),
        ("directed", 0),
        ("directed", True),
        ("order", "rising"),
        ("layout", "csr"),
        ("layout", "2d"),
        ("grid", [2, 2]),
        ("degree_histogram", {}),
        ("degree_histogram", [60, "0"]),
        ("degree_histogram", [1]),
        ("subgraph_edges", None),
        ("subgraph_edges", {"nn": 1}),
    ],
)
def test_a_field_that_no_graph_has(store, field, value):
    edit_manifest(store, lambda manifest: manifest["graph"].update({field: value}))
    refused(store, "manifest.json is damaged: ")


@pytest.mark.parametrize("grid", [None, [2], [0, 4], [-2, -2], [4, 2], [2.0, 2.0], [1, 4, 1], "22"])
@pytest.mark.parametrize("layout", ["2d", "1d"])
def test_a_grid_that_is_none(stores, tmp_path, layout, grid):
    store = copied(stores / layout, tmp_path)
    edit_manifest(store, lambda manifest: manifest["graph"].update(grid=grid))
    refused(store, "manifest.json is damaged: grid is ")


@pytest.mark.parametrize("value", [-1, "4", None, True, [1]])
@pytest.mark.parametrize("field", ["bytes", "xxh3"])
def test_a_record_that_no_file_has(store, field, value):
    edit_manifest(store, lambda manifest: manifest["files"][NN].update({field: value}))
    refused(store, "manifest.json is damaged: ", field, NN)


@pytest.mark.parametrize(
    "change",
    [
        lambda files: files.update({"../other.npy": files[NN]}),
        lambda files: files.update({"/etc/passwd": files[NN]}),
        lambda files: files.update({"partition-0000/../x\n.npy": files[NN]}),
        lambda files: files.update({"partition-0004/nn.targets-0000.npy": files[NN]}),
        lambda files: files.update({"partition-0000/nn.targets-0002.npy": files[NN]}),
        lambda files: files.pop(NN),
        lambda files: files.pop("vertices.parquet"),
        lambda files: files.pop("delegates.npy"),
        lambda files: files.pop("partition-0003/dd.offsets.npy"),
        lambda files: files[NN].update(xxh3=[]),
        lambda files: files[NN].update(more=1),
        lambda files: files.update({NN: 5}),
    ],
)
def test_files_of_no_such_graph(store, change):
    edit_manifest(store, lambda manifest: change(manifest["files"]))
    refused(store, "manifest.json is damaged: ")


@pytest.mark.parametrize("part", ["format", "graph", "files"])
def test_a_manifest_that_lacks_a_part_or_has_another(store, part):
    edit_manifest(store, lambda manifest: manifest.pop(part))
    refused(store)


@pytest.mark.parametrize(
    "content", [b"", bytes(300), b"{", b"[]", b"null", b"[" * 100_000, b"\xff\xfe", b'{"a": 1}']
)
def test_a_damaged_manifest_is_told_as_such(store, content):
    (store / "manifest.json").write_bytes(content)
    assert is_store(store)
    refused(store, "manifest.json")


def test_a_manifest_that_is_gone_is_told_as_such(store):
    (store / "manifest.json").unlink()
    assert is_store(store)
    refused(store, "no manifest.json in it")


def test_searching_a_store_with_a_damaged_manifest(store, tmp_path, delegraph):
    whole = (store / "manifest.json").read_bytes()
    for content in (bytes(len(whole)), whole[:50], whole[:2000]):
        (store / "manifest.json").write_bytes(content)
        for command in (["bfs", store, "--source", 1, "-o", tmp_path / "out"], ["info", store]):
            run = delegraph(*command)
            assert run.code == 2
            assert "manifest.json is damaged" in run.err
            assert run.err.count("\n") == 1


def test_a_damaged_store_is_not_overwritten(store, tmp_path, delegraph):
    """A store with a damaged manifest is not overwritten, as nothing says that delegraph wrote the
    store.
    """
    (store / "manifest.json").write_bytes(bytes(100))
    edges = tmp_path / "e.parquet"
    shutil.copy(store / "vertices.parquet", edges)
    options = ["--src", "vertex", "--dst", "global_id", "--overwrite"]
    run = delegraph("build", edges, "-o", store, *options)
    assert run.code == 2
    assert "is not a store that delegraph wrote" in run.err


@pytest.mark.parametrize("name", ["manifest.json", "vertices.parquet", NN])
@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_anything_but_a_regular_file_is_refused(store, name, kind):
    path = store / name
    if kind == "link":
        path.rename(store.parent / "elsewhere")
        path.symlink_to(store.parent / "elsewhere")
    else:
        path.unlink()
        os.mkfifo(path) if kind == "pipe" else path.mkdir()
    assert is_store(store)
    refused(store, name)


def test_a_folder_behind_a_link_is_refused(store):
    (store / "partition-0001").rename(store.parent / "elsewhere")
    (store / "partition-0001").symlink_to(store.parent / "elsewhere")
    refused(store, "partition-0001: not a folder")


def test_a_store_behind_a_link_opens(store, tmp_path):
    (tmp_path / "link.dg").symlink_to(store)
    assert open_store(tmp_path / "link.dg").info.partitions == 4


@pytest.fixture
def weighted(tmp_path) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"src": [1, 2, 3], "dst": [2, 3, 1], "w": [0.1, 0.5, 0.3]})
    pq.write_table(table, tmp_path / "weighted.parquet")
    delegraph.build(tmp_path / "weighted.parquet", tmp_path / "weighted.dg", weight="w")
    return tmp_path / "weighted.dg"


def test_weights_of_an_older_store_are_rounded_nobody_knows_how(weighted, ok):
    """An older store with weights opens although its number of rounded weights is unknown, and no
    note tells of rounding.
    """

    def older(manifest):
        manifest["format_version"] = 4
        for name in ("rounded", "greatest_change"):
            del manifest["graph"]["weights"][name]

    edit_manifest(weighted, older)
    info = open_store(weighted).info.weights
    assert info is not None
    assert (info.rounded, info.greatest_change) == (None, None)
    run = ok("sssp", weighted, "--source", 1, "-o", weighted.parent / "paths", "--json").json
    assert run["graph"]["weights"]["rounded"] is None
    assert run["notes"] == []
    assert "rounded" not in ok("info", weighted).out


def test_an_older_store_without_weights_opens(store):
    edit_manifest(store, lambda manifest: manifest.update(format_version=4))
    assert open_store(store).info.weights is None

    def oldest(manifest):
        manifest["format_version"] = 3
        del manifest["graph"]["weights"]

    edit_manifest(store, oldest)
    assert open_store(store).info.weights is None


@pytest.mark.parametrize(
    "change",
    [
        {"rounded": -1},
        {"rounded": 4},
        {"rounded": 2.0},
        {"rounded": 0},
        {"rounded": None},
        {"greatest_change": -0.5},
        {"greatest_change": 1.5},
        {"greatest_change": float("nan")},
        {"greatest_change": 0.0},
        {"greatest_change": None},
        {"greatest_change": "0.5"},
    ],
)
def test_roundings_that_no_weights_have(weighted, change):
    edit_manifest(weighted, lambda manifest: manifest["graph"]["weights"].update(change))
    refused(weighted, "manifest.json is damaged: weights.")
