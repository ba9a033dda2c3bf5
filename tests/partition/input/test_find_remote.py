"""Files of an object store are chosen by the rules for files of a folder."""

from __future__ import annotations

import pytest

from delegraph.partition.errors import InputError
from delegraph.partition.input.find import find_files

FILES = [
    "a.parquet",
    "b/c.parquet",
    "b/d.PQ",
    "b/e/f.parq",
    "b/notes.txt",
    "plain",
    "_temporary/g.parquet",
    "b/.hidden.parquet",
    "b/_SUCCESS",
    "x=1/h.parquet",
    "x=2/h.parquet",
]
PATTERNS = [
    "",
    "b",
    "a.parquet",
    "plain",
    "*.parquet",
    "*",
    "x=*/h.parquet",
    "x=[1]",
    "**/*.parquet",
    "b/**",
    "_*/*.parquet",
]


@pytest.fixture
def places(bucket, tmp_path):
    folder = tmp_path / "data"
    for name in FILES:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"data")
        bucket.put(f"data/{name}", b"data")
    return str(folder), f"{bucket.url}/data"


def test_as_of_a_folder(places):
    for pattern in PATTERNS:
        local, stored = (find_files(f"{place}/{pattern}".rstrip("/")) for place in places)
        assert [name.removeprefix(places[1]) for name in stored.files] == [
            name.removeprefix(places[0]) for name in local.files
        ], pattern
        if "**" in pattern:  # of which a folder tells once for each file
            continue
        for reason, names in local.left_out._asdict().items():
            assert [name.removeprefix(places[1]) for name in getattr(stored.left_out, reason)] == [
                name.removeprefix(places[0]) for name in names
            ], (pattern, reason)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("data/none", "no such file or folder"),
        ("data/none*", "no file matches"),
        ("data/b/e/*.txt", "no file matches"),
    ],
)
def test_what_is_not_there(places, bucket, name, reason):
    with pytest.raises(InputError, match=reason):
        find_files(f"{bucket.url}/{name}")


def test_a_folder_without_parquet(bucket):
    bucket.put("texts/notes.txt", b"")
    with pytest.raises(InputError, match="the folder holds no Parquet files"):
        find_files(f"{bucket.url}/texts")


def test_a_store_is_not_read_there(bucket):
    bucket.put("graph.dg/manifest.json", b"{}")
    with pytest.raises(InputError, match="is a store: copy it to a disk"):
        find_files(f"{bucket.url}/graph.dg")
