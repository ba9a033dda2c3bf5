"""An object store on loopback, by moto, and a server before the store that fails when told to."""

from __future__ import annotations

import http.client
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow.fs as fs

ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "key",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_REGION": "us-east-1",
}


@contextmanager
def serving() -> Iterator[str]:
    """Yield the endpoint of an object store that ends with the block."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
    finally:
        server.stop()


class Bucket:
    """A bucket of one test, looked at from outside. url: of the bucket, as users write it."""

    def __init__(self, endpoint: str, name: str) -> None:
        self.url = f"s3://{name}"
        self.endpoint = endpoint
        self._name = name
        self._system = fs.S3FileSystem(
            access_key="key",
            secret_key="secret",
            region="us-east-1",
            scheme="http",
            endpoint_override=urlsplit(endpoint).netloc,
            allow_bucket_creation=True,
        )
        self._system.create_dir(name)

    def put(self, key: str, data: bytes) -> str:
        """Write an object and return the object's URL."""
        with self._system.open_output_stream(f"{self._name}/{key}") as file:
            file.write(data)
        return f"{self.url}/{key}"

    def copy(self, path: Path, key: str) -> str:
        """Copy a file, or the Parquet files of a folder, and return the URL."""
        for file in [path] if path.is_file() else sorted(path.rglob("*.parquet")):
            inside = "" if path.is_file() else f"/{file.relative_to(path)}"
            self.put(f"{key}{inside}", file.read_bytes())
        return f"{self.url}/{key}"

    def get(self, key: str) -> bytes:
        with self._system.open_input_file(f"{self._name}/{key}") as file:
            return file.read()

    def names(self, below: str = "") -> list[str]:
        """Return the names of objects; a folder's own marker is no object."""
        selected = fs.FileSelector(f"{self._name}/{below}", allow_not_found=True, recursive=True)
        infos = self._system.get_file_info(selected)
        return sorted(info.path.partition("/")[2] for info in infos if info.is_file)

    def remove(self, key: str) -> None:
        self._system.delete_file(f"{self._name}/{key}")


Fault = Callable[[Any, bytes], None]
"""A function that is called in place of an answer, with the request and the body of the right
answer.
"""


def refused(status: int) -> Fault:
    def answer(request: Any, body: bytes) -> None:
        request.send_response(status)
        request.send_header("Content-Length", "0")
        request.end_headers()

    return answer


def cut_off(request: Any, body: bytes) -> None:
    """Send half of the body, and close the connection."""
    request.begin(len(body))
    request.wfile.write(body[: len(body) // 2])
    request.close_connection = True


def trickling(request: Any, body: bytes) -> None:
    """Send a byte now and then: the connection is never silent, and never done."""
    request.begin(len(body))
    for i in range(len(body)):
        request.wfile.write(body[i : i + 1])
        request.wfile.flush()
        if request.server.closing.wait(0.05):
            request.close_connection = True
            return


def silent(request: Any, body: bytes) -> None:
    request.server.closing.wait()
    request.close_connection = True


class Before(ThreadingHTTPServer):
    """A server that stands before a store. asked: the requests so far, each "METHOD PATH"."""

    daemon_threads = True

    def __init__(self, endpoint: str) -> None:
        super().__init__(("127.0.0.1", 0), _Passing)
        self.store = urlsplit(endpoint).netloc
        self.endpoint = f"http://127.0.0.1:{self.server_address[1]}"
        self.closing = threading.Event()
        self.asked: list[str] = []
        self._fault: Fault | None = None
        self._concerned: Callable[[str], bool] = lambda request: False
        self._times = 0
        self._lock = threading.Lock()

    def fail(self, fault: Fault, what: str = "", times: int = 1 << 30) -> None:
        """Make the next ``times`` requests ("METHOD PATH") that contain ``what`` fail."""
        self.fail_where(fault, lambda request: what in request, times)

    def fail_where(
        self, fault: Fault, concerned: Callable[[str], bool], times: int = 1 << 30
    ) -> None:
        self._fault, self._concerned, self._times = fault, concerned, times

    def heal(self) -> None:
        self._times = 0

    def fault_of(self, request: str) -> Fault | None:
        with self._lock:
            self.asked.append(request)
            if not self._times or not self._concerned(request):
                return None
            self._times -= 1
            return self._fault

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore errors of a connection: the client has left."""


_OWN = ("host", "transfer-encoding", "expect", "content-length")
"""Headers that belong to a connection, not to a request."""


class _Passing(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Before  # pyright: ignore[reportIncompatibleVariableOverride]

    def begin(self, length: int) -> None:
        self.send_response(206 if "Range" in self.headers else 200)
        self.send_header("Content-Length", str(length))
        self.end_headers()

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        chunks = []
        while size := int(self.rfile.readline(), 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():  # trailers
            pass
        return b"".join(chunks)

    def _pass(self) -> None:
        body = self._body()
        fault = self.server.fault_of(f"{self.command} {self.path}")
        if fault is not None and self.command != "GET":
            fault(self, b"")  # and the store is not asked
            return
        store = http.client.HTTPConnection(self.server.store, timeout=60)
        try:
            headers = {key: value for key, value in self.headers.items() if key.lower() not in _OWN}
            store.request(self.command, self.path, body, headers)
            answer = store.getresponse()
            data = answer.read()
        finally:
            store.close()
        if fault is not None:
            fault(self, data)
            return
        self.send_response(answer.status)
        length = str(len(data))
        for key, value in answer.getheaders():
            if key.lower() == "content-length" and self.command == "HEAD":
                length = value
            elif key.lower() not in ("content-length", "transfer-encoding", "connection", "server"):
                self.send_header(key, value)
        self.send_header("Content-Length", length)
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _pass  # noqa: N815 - http.server's names

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


@contextmanager
def standing_before(endpoint: str) -> Iterator[Before]:
    with Before(endpoint) as server:
        thread = threading.Thread(target=server.serve_forever, args=[0.02], daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.closing.set()
            server.shutdown()
            thread.join()


def wait_for_request(server: Before, what: str, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not any(what in request for request in server.asked):
        assert time.monotonic() < deadline, f"nobody asks for {what}: {server.asked}"
        time.sleep(0.005)
