"""Work that begins before a command has imported its modules."""

from __future__ import annotations

import os
import threading
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from delegraph.kernels.gpu import driver
from delegraph.pipeline.run import fork_server

OUT = ("-o", "out")


@pytest.mark.parametrize(
    ("line", "number"),
    [
        (("bfs", "no.dg", *OUT, "--source", 1), "nothing"),
        (("bfs", "no.dg", *OUT, "--source", 1, "--device", "cpu"), "nothing"),
        (("bfs", "no.dg", *OUT, "--source", 1, "--device", "cuda:3"), 3),
        (("bfs", "no.dg", *OUT, "--source", 1, "--scheduler", "tcp://127.0.0.1:1"), "nothing"),
        (("components", "no.dg", *OUT), "nothing"),
        (("components", "no.dg", *OUT, "--device", "cuda"), 0),
        (("build", "no.parquet", *OUT), 0),
        (("info", "no.dg"), "nothing"),
    ],
)
def test_a_context_of_the_device_that_will_be_asked_for(delegraph, monkeypatch, line, number):
    starts: list[int | None] = []
    monkeypatch.setattr(driver, "begin_driver", starts.append)
    assert delegraph(*line).code == 2
    assert starts == ([] if number == "nothing" else [number])


@pytest.mark.parametrize("more", [(), ("--device", "cpu")])
@pytest.mark.parametrize("there", [False, True])
def test_local_workers_and_the_driver_without_a_context(delegraph, monkeypatch, more, there):
    starts: list[object] = []
    exists = os.path.exists
    monkeypatch.setattr(
        os.path, "exists", lambda path: there if path == "/proc/driver/nvidia" else exists(path)
    )
    monkeypatch.setattr(driver, "begin_driver", starts.append)

    def fork(devices: bool) -> nullcontext:
        starts.append(("fork", devices))
        return nullcontext()

    monkeypatch.setattr(fork_server, "fork_server", fork)
    assert delegraph("bfs", "no.dg", *OUT, "--source", 1, "--workers", 2, *more).code == 2
    devices = there and not more
    assert starts == [("fork", devices), *([None] if devices else [])]


def test_without_cupy_no_driver_is_begun(monkeypatch):
    monkeypatch.setattr(driver, "find_spec", lambda name: None)
    before = threading.active_count()
    driver.begin_driver.__wrapped__(0)
    assert threading.active_count() == before


def test_without_a_driver_there_are_no_devices(monkeypatch):
    def missing(name: str) -> None:
        raise OSError(name)

    monkeypatch.setattr(driver.ctypes, "CDLL", missing)
    assert driver.count_devices() == 0
    driver._begin(10**30)


def fake_driver() -> SimpleNamespace:
    """Return a driver with two devices."""
    capabilities = ((8, 6), (12, 0))

    def tell(value: Any, what: int) -> int:
        value._obj.value = what
        return 0

    return SimpleNamespace(
        cuDeviceGetCount=lambda count: tell(count, len(capabilities)),
        cuDeviceGet=tell,
        cuDeviceGetAttribute=lambda value, attribute, device: tell(
            value, capabilities[device.value][(75, 76).index(attribute)]
        ),
    )


def test_architectures_of_devices(monkeypatch):
    monkeypatch.setattr(driver, "_started", fake_driver)
    assert driver.architectures() == {86, 120}
    monkeypatch.setattr(driver, "_started", lambda: None)
    assert driver.architectures() == set()


def test_a_device_has_its_architecture(device):
    assert device.architecture in driver.architectures()
