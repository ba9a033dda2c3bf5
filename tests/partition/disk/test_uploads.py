"""Results in an object store appear all at once, whatever ends the run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from itertools import count

import pytest

from delegraph.partition.disk import remote
from delegraph.partition.disk.uploads import (
    check_upload,
    clear_remains,
    files_of,
    publish_result,
    standing,
    whole_result,
)
from delegraph.partition.disk.urls import url_of
from delegraph.partition.errors import BusyError, DelegraphError, InputError
from support.marks import mostly_slow, slow
from support.object_store import refused

PARTS = 3


def record_of(what: str) -> bytes:
    return json.dumps({"schema_version": 2, "what": what}, indent=1).encode() + b"\n"


@pytest.fixture
def publish(tmp_path, bucket):
    """Return a function that publishes a result of several parts, each of which says ``what``."""

    def run(what: str, overwrite: bool = False) -> None:
        folder = tmp_path / what
        folder.mkdir(exist_ok=True)
        for i in range(PARTS):
            (folder / f"part-{i:05}.parquet").write_text(f"{what} {i}")
        publish_result(folder, url_of(f"{bucket.url}/out"), overwrite, record_of(what))

    return run


def read(bucket) -> list[str]:
    """Return the contents of the files that a reader of the result gets."""
    files = files_of(url_of(f"{bucket.url}/out"))
    return [bucket.get(name.removeprefix(f"{bucket.url}/")).decode() for name in files]


def said_by(what: str) -> list[str]:
    return [f"{what} {i}" for i in range(PARTS)]


def check_only(bucket, what: str) -> None:
    """Check that the bucket holds the result of ``what`` and nothing else."""
    parts = sorted(name.removeprefix(f"{bucket.url}/") for name in files_of_out(bucket))
    assert bucket.names() == sorted(["out.run.json", "out/_SUCCESS", *parts])
    assert read(bucket) == said_by(what)
    assert bucket.get("out.run.json") == record_of(what)


def files_of_out(bucket) -> dict[str, int]:
    return files_of(url_of(f"{bucket.url}/out"))


def test_it_appears_and_is_replaced(bucket, publish):
    url = url_of(f"{bucket.url}/out")
    assert whole_result(url) is None
    check_upload(url, False, None)
    publish("one")
    check_only(bucket, "one")
    result = whole_result(url)
    assert result is not None
    assert result.record == json.loads(record_of("one"))
    with pytest.raises(InputError, match="replace it with --overwrite"):
        check_upload(url, False, None)
    with pytest.raises(DelegraphError, match="was written by something else meanwhile"):
        publish("two")
    check_upload(url, True, None)
    publish("two", overwrite=True)
    check_only(bucket, "two")


@pytest.mark.parametrize("number", mostly_slow(range(20), PARTS + 1, PARTS + 2))
@pytest.mark.parametrize("existing", [slow("nothing"), "one"])
def test_cut_off_at_a_request(failing, bucket, publish, existing, number, monkeypatch):
    """A run cut off at any changing request leaves the old or the new result; the changing requests
    write a note, the parts, the marker, the record, and remove objects.
    """
    monkeypatch.setattr(remote, "ATTEMPTS", 1)
    remote._system.cache_clear()
    url = url_of(f"{bucket.url}/out")
    if existing == "one":
        publish("one")
    failing.fail_where(refused(500), partial(_is_change_after, number, count()))
    with suppress(BusyError):
        publish("two", overwrite=True)
        assert number > PARTS + 2
    failing.heal()
    if number >= PARTS + 2:
        assert read(bucket) == said_by("two")
    elif existing == "one":
        assert read(bucket) == said_by("one")
    else:
        assert whole_result(url) is None
    clear_remains(url)
    if whole_result(url) is not None:
        check_only(bucket, read(bucket)[0].split()[0])
    check_upload(url, True, None)
    publish("three", overwrite=True)
    check_only(bucket, "three")


def _is_change_after(number: int, changes: Iterator[int], request: str) -> bool:
    """Return whether a request changes something after ``number`` earlier changes."""
    return not request.startswith(("GET", "HEAD")) and next(changes) >= number


def test_half_a_result_is_none(failing, bucket, publish, monkeypatch):
    monkeypatch.setattr(remote, "ATTEMPTS", 1)
    remote._system.cache_clear()
    failing.fail(refused(500), "part-00001")
    with pytest.raises(BusyError, match="part-00001"):
        publish("one")
    assert any("part-00000" in key for key in bucket.names())
    with pytest.raises(InputError, match="no complete result: a run was interrupted there"):
        files_of_out(bucket)


def test_killed_while_a_store_empties_what_it_replaces(bucket, publish):
    """A run killed while the store empties ``_SUCCESS`` to replace it leaves no complete result; on
    Azure, Arrow empties an object before it writes.
    """
    publish("one")
    parts = [key.removeprefix("out/") for key in bucket.names("out") if "part-" in key]
    note = {"writer": "delegraph", "replaces": parts}
    bucket.put("out/_begun-0123456789abcdef", json.dumps(note).encode())
    bucket.put("out/_SUCCESS", b"")
    with pytest.raises(InputError, match="no complete result"):
        files_of_out(bucket)
    check_upload(url_of(f"{bucket.url}/out"), False, None)
    publish("two")
    check_only(bucket, "two")


def test_what_is_not_ours_is_left_alone(bucket, publish):
    url = url_of(f"{bucket.url}/out")
    publish("one")
    bucket.put("out/part-00007-0123456789abcdef.parquet", b"somebody's")
    assert whole_result(url) is None
    for overwrite in (False, True):
        with pytest.raises(InputError, match="is not a result that delegraph wrote"):
            check_upload(url, overwrite, None)
    with pytest.raises(DelegraphError, match="was written by something else meanwhile"):
        publish("two", overwrite=True)
    bucket.remove("out/part-00007-0123456789abcdef.parquet")
    check_only(bucket, "one")


@pytest.mark.parametrize(
    ("key", "data"),
    [("out", b"a file"), ("out/_SUCCESS", b""), ("out/_SUCCESS", b'{"files": {}}'), ("out/x", b"")],
)
def test_what_another_program_wrote_is_not_replaced(bucket, key, data):
    bucket.put(key, data)
    with pytest.raises(InputError, match="is not a result that delegraph wrote"):
        check_upload(url_of(f"{bucket.url}/out"), True, None)


def test_a_record_of_something_else(bucket):
    bucket.put("out.run.json", b"{}")
    with pytest.raises(InputError, match="the run record would replace it"):
        check_upload(url_of(f"{bucket.url}/out"), True, None)


def test_a_part_that_is_gone(bucket, publish):
    publish("one")
    bucket.remove(next(key for key in bucket.names("out") if "part-00001" in key))
    with pytest.raises(InputError, match="damaged: part-00001"):
        files_of_out(bucket)
    assert standing(url_of(f"{bucket.url}/out")).missing
    publish("two", overwrite=True)
    check_only(bucket, "two")


@pytest.mark.parametrize(
    ("read", "reason"),
    [
        ("out", "contains the input"),
        ("out/edges/*.parquet", "contains the input"),
        ("o*", "contains the input"),
        ("", "lies in the input's folder"),
        ("**/*.parquet", "lies in the input's folder"),
        ("other/*.parquet", None),
        ("*.parquet", None),
        ("out2", None),
    ],
)
def test_apart_from_what_is_read(bucket, read, reason):
    args = url_of(f"{bucket.url}/out"), False, f"{bucket.url}/{read}"
    if reason is None:
        check_upload(*args)
        return
    with pytest.raises(InputError, match=reason):
        check_upload(*args)
