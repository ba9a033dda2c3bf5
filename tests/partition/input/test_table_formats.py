"""Folders of tables whose log says which of their files count."""

from __future__ import annotations

import shutil

import pytest

from delegraph.partition.errors import InputError
from delegraph.partition.input.edges import open_edges
from delegraph.partition.input.find import find_files

LOGS = {
    "_delta_log/00000000000000000000.json": ("a Delta table", "delta_scan('{}')"),
    "_delta_log/_last_checkpoint": ("a Delta table", "COPY (FROM delta_scan('{}')) TO"),
    "metadata/00001-aa.metadata.json": ("an Iceberg table", "iceberg_scan('{}')"),
    "metadata/v3.gz.metadata.json": ("an Iceberg table", "iceberg_scan('{}')"),
    "metadata/version-hint.text": ("an Iceberg table", "iceberg_scan('{}')"),
    ".hoodie/hoodie.properties": ("a Hudi table", "load('{}').write.parquet('edges')"),
    "_spark_metadata/0": ("the output of a Spark stream", "spark.read.parquet('{}')"),
}
ASKED = ["t", "t/*", "t/*.parquet", "t/**/*.parquet", "t/day=1", "t/day=*", ".", "?", "link"]


@pytest.fixture
def table(tmp_path, monkeypatch, edge_list):
    """Return a function that makes a table ``t`` of two files with a log."""
    monkeypatch.chdir(tmp_path)

    def make(log):
        edge_list([0], [1], "t/removed.parquet")
        edge_list([1], [2], "t/day=1/added.parquet")
        path = tmp_path / "t" / log
        path.parent.mkdir()
        path.write_text("{}")
        (tmp_path / "link").symlink_to("t/day=1")
        return tmp_path / "t"

    return make


@pytest.mark.parametrize("log", LOGS)
def test_a_table_is_refused(table, log):
    """A table is refused however its files are named, except a single file by its own name."""
    folder, (kind, reads) = table(log), LOGS[log]
    for path in ASKED:
        with pytest.raises(InputError) as refused:
            find_files(path)
        assert f"is {kind} ({log.partition('/')[0]})" in str(refused.value)
        root = folder if path in ("t/day=1", "t/day=*", "link") else "t"
        assert reads.format(root) in str(refused.value)
    assert find_files("t/removed.parquet").files == ["t/removed.parquet"]
    shutil.rmtree(folder / log.partition("/")[0])
    assert len(find_files("t").files) == 2


def test_every_command_says_so(table, delegraph, tmp_path):
    folder = table("_delta_log/0.json")
    for words in (
        ("info", folder),
        ("plan", folder),
        ("build", folder, "-o", tmp_path / "out"),
        ("bfs", folder, "--source", 0, "-o", tmp_path / "out"),
        ("components", folder, "-o", tmp_path / "out"),
    ):
        run = delegraph(*words)
        assert run.code == 2
        (line,) = run.err.splitlines()
        assert f"{folder} is a Delta table (_delta_log)" in line
        assert f"COPY (FROM delta_scan('{folder}')) TO 'edges.parquet'" in line


def test_other_folders_of_these_names(tmp_path, edge_list):
    """Folders called ``metadata`` and files named like logs make no table."""
    path = edge_list([0], [1], "in/a.parquet")
    edge_list([1], [2], "in/metadata/b.parquet")
    (path.parent / "_delta_log").touch()
    (path.parent / "metadata" / "README").touch()
    assert open_edges(path.parent).rows == 2


@pytest.mark.parametrize("log", LOGS)
def test_in_an_object_store(bucket, log):
    kind, reads = LOGS[log]
    bucket.put("warehouse/t/data/day=1/a.parquet", b"")
    bucket.put("warehouse/plain/b.parquet", b"")
    bucket.put(f"warehouse/t/{log}", b"{}")
    bucket.put(f"elsewhere/{log}", b"{}")
    root = f"{bucket.url}/warehouse/t"
    inside = ["", "/data", "/data/day=1", "/*/*/*.parquet", "/**/*.parquet"]
    for path in [f"{root}{below}" for below in inside] + [f"{bucket.url}/warehouse"]:
        with pytest.raises(InputError) as refused:
            find_files(path)
        assert f"is {kind} (" in str(refused.value)
        assert reads.format(root) in str(refused.value)
    assert len(find_files(f"{bucket.url}/warehouse/plain").files) == 1
    assert len(find_files(f"{root}/data/day=1/a.parquet").files) == 1
