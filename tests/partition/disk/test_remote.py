"""Files of an object store are read like files on disk, and failures are told in one line."""

from __future__ import annotations

import io
import os

import numpy as np
import pytest

from delegraph.partition.disk import remote
from delegraph.partition.disk.remote import RemoteFile, listed, put, state_of
from delegraph.partition.disk.urls import named, url_of
from delegraph.partition.errors import BusyError, InputError
from support.marks import mostly_slow, slow
from support.object_store import cut_off, refused, silent, trickling


@pytest.mark.parametrize(
    ("typed", "wanted"),
    [
        ("edges/", "edges/"),
        ("s3://b/k/?region=x", "s3://b/k?region=x"),
        ("gcs://b/k", "gs://b/k"),
        ("abfs://c@account.dfs.core.windows.net/k", "abfs://c@account.dfs.core.windows.net/k"),
        ("s3://b/part-?.parquet", "s3://b/part-?.parquet"),
        ("s3://anonymous@b/k", "s3://anonymous@b/k"),
    ],
)
def test_names(typed, wanted):
    assert named(typed) == wanted


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("http://host/edges", "unknown kind of URL"),
        ("file://host/edges", "cannot name another machine"),
        ("s3://", "names no bucket"),
        ("s3://b/k?regoin=x", "unknown option regoin"),
        ("abfs://account/k", "CONTAINER@ACCOUNT"),
    ],
)
def test_names_that_are_refused(name, reason):
    with pytest.raises(InputError, match=reason):
        named(name)


@pytest.mark.parametrize("name", ["s3://key:secret@b/k", "abfs://key:secret@account.net/k"])
def test_secrets_in_names_are_refused_and_not_told(name):
    with pytest.raises(InputError) as error:
        named(name)
    assert "secret" not in str(error.value)


def test_a_path_that_was_a_url(tmp_path):
    with pytest.raises(InputError, match="as a str"):
        named(type(tmp_path)("s3://bucket/edges"))


def test_reads_as_a_file_of_a_disk_does(bucket, monkeypatch):
    monkeypatch.setattr(remote, "AHEAD_BYTES", 100)
    monkeypatch.setattr(remote, "_MOST_BYTES", 700)
    rng = np.random.default_rng(1)
    data = rng.bytes(5000)
    file, wanted = RemoteFile(bucket.put("a/b.bin", data)), io.BytesIO(data)
    for _ in range(60):
        offset, size = int(rng.integers(0, 5200)), int(rng.choice([1, 60, 99, 100, 2000, 6000]))
        assert file.seek(offset) == wanted.seek(offset)
        assert file.read(size) == wanted.read(size)
        assert file.tell() == wanted.tell()
    assert file.seek(-8, os.SEEK_END) == 4992
    assert file.read() == data[-8:]
    filled = bytearray(300)
    file.seek(4900)
    assert (file.readinto(filled), bytes(filled[:100])) == (100, data[4900:])


def test_small_pieces_are_read_ahead(failing, bucket):
    file = RemoteFile(bucket.put("k", bytes(100_000)))
    for at in range(0, 100_000, 1000):
        file.seek(at)
        file.read(10)
    assert len([request for request in failing.asked if request.startswith("GET")]) == 1


def test_a_file_that_was_written_again_is_another(bucket):
    name = bucket.put("k", b"one")
    before = state_of(RemoteFile(name))
    assert before == state_of(RemoteFile(name))
    bucket.put("k", b"two")  # as long, and within the same second
    assert before != state_of(RemoteFile(name))


def test_a_file_that_shrinks_while_it_is_read(bucket):
    file = RemoteFile(bucket.put("k", bytes(1_000_000)))
    bucket.put("k", b"short")
    file.seek(500_000)
    with pytest.raises(InputError, match="changed while it was read"):
        file.read(400_000)


FAULTS = {"500": refused(500), "503": refused(503), "cut": cut_off}


@pytest.mark.parametrize("fault", mostly_slow(FAULTS, "cut"))
def test_what_fails_once_is_tried_again(failing, bucket, fault):
    file = RemoteFile(bucket.put("k", b"data" * 1000))
    failing.fail(FAULTS[fault], "GET", times=1)
    assert file.read() == b"data" * 1000
    assert len([request for request in failing.asked if request.startswith("GET")]) == 2


@pytest.mark.parametrize("attempts", [1, slow(4)])
@pytest.mark.parametrize("fault", FAULTS)
def test_what_fails_on_is_named(failing, bucket, fault, attempts, monkeypatch):
    monkeypatch.setattr(remote, "ATTEMPTS", attempts)
    remote._system.cache_clear()
    file = RemoteFile(bucket.put("k", b"data" * 1000))
    failing.fail(FAULTS[fault], "GET")
    with pytest.raises(BusyError) as error:
        file.read()
    assert len([request for request in failing.asked if request.startswith("GET")]) == attempts
    assert str(error.value).startswith(f"{bucket.url}/k: ")
    assert "\n" not in str(error.value)
    failing.heal()
    assert file.read() == b"data" * 1000


def test_an_answer_that_never_ends_is_named(failing, bucket, monkeypatch):
    monkeypatch.setattr(remote, "ATTEMPTS", 1)
    remote._system.cache_clear()
    file = RemoteFile(bucket.put("k", b"data" * 1000))
    failing.fail(trickling, "GET")
    monkeypatch.setattr(remote, "ANSWER_SECONDS", 0.3)
    with pytest.raises(BusyError, match=r"/k: no answer within 0\.3 s"):
        file.read()


@pytest.mark.slow
def test_silence_is_named(failing, bucket, monkeypatch):
    monkeypatch.setattr(remote, "SILENCE_SECONDS", 1.0)
    monkeypatch.setattr(remote, "ATTEMPTS", 1)
    remote._system.cache_clear()
    name = bucket.put("k", b"data")
    failing.fail(silent, "HEAD")
    with pytest.raises(BusyError, match=r"/k: no (usable )?answer"):
        RemoteFile(name)


SAID = {
    "AWS Error NETWORK_CONNECTION during GetObject operation: curlCode: 28": BusyError,
    "AWS Error UNKNOWN (HTTP status 503) during GetObject operation: No response body.": BusyError,
    "AWS Error SLOW_DOWN during PutObject operation: Please reduce your request rate.": BusyError,
    "AWS Error UNKNOWN (HTTP status 429) during GetObject operation": BusyError,
    "When reading information for key 'token/NO_SUCH/403' in bucket 'permission': AWS Error "
    "INTERNAL_FAILURE (HTTP status 500) during HeadObject operation": BusyError,
    "AWS Error ACCESS_DENIED during GetObject operation: Access Denied": InputError,
    "AWS Error UNKNOWN (HTTP status 400) during GetObject operation: Unable to parse "
    "ExceptionName: ExpiredToken Message: The provided token has expired.": InputError,
    "AWS Error UNKNOWN (HTTP status 301) during HeadObject operation": InputError,
    "Bucket 'b' not found": InputError,
    "google::cloud::Status(UNAVAILABLE: Retry policy exhausted": BusyError,
    "google::cloud::Status(PERMISSION_DENIED: no": InputError,
    "Azure Error: [] Fail to get a new connection": BusyError,
    "Azure Error: [ServerBusy] 503 The server is busy.": BusyError,
    "Azure Error: [AuthenticationFailed] 403 Server failed to authenticate": InputError,
    "Azure Error: [ContainerNotFound] 404 The container does not exist.": InputError,
}


@pytest.mark.parametrize("text", SAID)
def test_which_failures_another_try_may_mend(text):
    assert type(remote._told(url_of("s3://b/k"), text)) is SAID[text]


@pytest.mark.parametrize("name", ["gs://b/k?retry_limit_seconds=x", "s3://b/k?scheme=ftp"])
def test_options_that_are_wrong(name, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    remote._system.cache_clear()
    with pytest.raises(InputError, match="b/k"):
        RemoteFile(name)


@pytest.mark.parametrize("status", [401, 403])
def test_denied(failing, bucket, status, monkeypatch):
    name = bucket.put("k", b"data")
    failing.fail(refused(status), "HEAD")
    with pytest.raises(InputError, match="credentials of AWS_ACCESS_KEY_ID do not allow access"):
        RemoteFile(name)
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.setenv("HOME", "/nowhere")
    remote._system.cache_clear()
    with pytest.raises(InputError, match="no credentials are in the environment; set AWS_"):
        RemoteFile(name)
    assert len(failing.asked) == 2  # and no further attempts


def test_what_is_not_there(bucket):
    with pytest.raises(InputError, match=f"^{bucket.url}/k: no such file or folder"):
        RemoteFile(f"{bucket.url}/k")
    with pytest.raises(InputError, match="there is no bucket 'no-such-bucket'"):
        RemoteFile("s3://no-such-bucket/k")
    with pytest.raises(InputError, match="there is no bucket 'no-such-bucket'"):
        put(url_of("s3://no-such-bucket/k"), b"data")


def test_an_endpoint_may_stand_in_the_name(bucket, monkeypatch):
    name, place = bucket.put("a/k", b"data"), bucket.endpoint.removeprefix("http://")
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    name += f"?endpoint_override={place}&scheme=http"
    assert RemoteFile(name).read() == b"data"
    folder = f"{bucket.url}/a?endpoint_override={place}&scheme=http"
    assert [entry.name for entry in listed(url_of(folder))] == ["k"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "gs://anonymous@b/k?endpoint_override={}&scheme=http&retry_limit_seconds=1",
        "abfs://c@account/k?blob_storage_authority={}&blob_storage_scheme=http"
        "&dfs_storage_authority={}&dfs_storage_scheme=http",
    ],
    ids=["gs", "abfs"],
)
def test_other_stores_that_are_not_there_are_named(name, monkeypatch):
    monkeypatch.setenv("AZURE_STORAGE_KEY", "c2VjcmV0")
    with pytest.raises(BusyError, match="/k"):
        RemoteFile(name.replace("{}", "127.0.0.1:1"))
