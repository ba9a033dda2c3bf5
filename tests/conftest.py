"""Fixtures: edge lists on disk, the command line in this process, devices, real graphs."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

# Two threads entering Numba's own parallel runtime at once abort the process with this layer:
# no kernel may use it (kernels/base/team.py says why).
os.environ.setdefault("NUMBA_THREADING_LAYER", "workqueue")

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import is_hypothesis_test, settings

from delegraph.cli.main import main
from delegraph.kernels.base.threads import available_threads
from delegraph.kernels.gpu import device as on_device
from delegraph.kernels.gpu.device import Device, DeviceError, open_device
from delegraph.partition.disk import remote
from support import emulator
from support.object_store import ENVIRONMENT, Before, Bucket, serving, standing_before

collect_ignore = ["support"]  # holds no tests

settings.register_profile("few", max_examples=20, deadline=None)
settings.register_profile("many", max_examples=40, deadline=None)

DATA = Path(__file__).parents[1] / ".." / "shared" / "data"


def pytest_addoption(parser):
    parser.addoption("--kills", type=int, default=0, help="of each program, each way")
    parser.addoption(
        "--emulate", action="store_true", help="run GPU tests on the CPU: kernels by g++, slowly"
    )
    parser.addoption(
        "--multiprocessors", type=int, help="use so many of a device, so that racecheck ends"
    )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """Return one process more than there are threads: tests wait for processes and disks for
    long.
    """
    return available_threads() + 1


def pytest_configure(config):
    settings.load_profile("many" if config.option.markexpr == "slow" else "few")
    if config.getoption("--emulate"):
        sys.modules["cupy"] = emulator.cupy
    # Tests that are started in the background ignore SIGINT, and so would what they start.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Mark tests that use devices; mark property tests, too, where slow tests are run."""
    for item in items:
        parameters = item.callspec.params if hasattr(item, "callspec") else {}
        fixtures = set(getattr(item, "fixturenames", ())) - set(parameters)
        if fixtures & {"two_devices", "four_devices", "eight_devices"}:
            item.add_marker("multi_gpu")
        elif "device" in fixtures:
            item.add_marker("gpu")
        elif config.option.markexpr == "slow" and is_hypothesis_test(getattr(item, "obj", None)):
            item.add_marker("slow")


@pytest.fixture(autouse=True, scope="module")
def _garbage_of_one_module():
    """Make the collector look at objects of one test module, not at all that has been imported and
    collected.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def _nothing_left_where_tests_start():
    """Commands leave files in the folders that they are given, and in no other."""
    before = _seen_here()
    yield
    assert _seen_here() - before == set()


def _seen_here() -> set[str]:
    return {name for name in os.listdir() if not name.startswith((".", "__pycache__"))}


@dataclass(frozen=True)
class CommandRun:
    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture
def delegraph(capfd, monkeypatch):
    """Return a function that runs the command line: ``delegraph("bfs", path, "--source", 0)``."""

    def run(*args) -> CommandRun:
        capfd.readouterr()
        monkeypatch.setattr("sys.argv", ["delegraph", *(str(arg) for arg in args)])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capfd.readouterr()
        code = ended.value.code
        return CommandRun(code if isinstance(code, int) else 0, out, err)

    return run


@pytest.fixture
def ok(delegraph):
    """Return a function like ``delegraph`` whose commands have to succeed."""

    def run(*args) -> CommandRun:
        run = delegraph(*args)
        assert run.code == 0, run.err
        return run

    return run


@pytest.fixture
def edge_list(tmp_path):
    """Return a function that writes an edge list, ``edge_list([0, 1], [1, 2])``, and gives its
    path.
    """

    def write(src, dst, name="edges.parquet", id_type=None, row_group_size=None, **columns):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        table = pa.table({"src": pa.array(src, id_type), "dst": pa.array(dst, id_type), **columns})
        pq.write_table(table, path, row_group_size=row_group_size)
        return path

    return write


@pytest.fixture(scope="session")
def object_store() -> Iterator[str]:
    """Yield the endpoint of an object store on loopback."""
    with serving() as endpoint:
        yield endpoint


@pytest.fixture
def bucket(object_store, tmp_path, monkeypatch) -> Iterator[Bucket]:
    """Yield a new bucket that commands find by the environment; temporary files are in tmp_path
    meanwhile.
    """
    for name, value in {**ENVIRONMENT, "AWS_ENDPOINT_URL": object_store}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    remote._system.cache_clear()
    yield Bucket(object_store, f"test-{uuid.uuid4()}")
    remote._system.cache_clear()


@pytest.fixture
def failing(bucket, monkeypatch) -> Iterator[Before]:
    """Yield a failing server that commands find in the bucket's place; commands make three attempts
    each.
    """
    with standing_before(bucket.endpoint) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.endpoint)
        monkeypatch.setattr(remote, "ATTEMPTS", 3)
        remote._system.cache_clear()
        yield server


def devices(count: int, config: pytest.Config) -> list[Device]:
    try:
        gpus = [open_device(number) for number in range(count)]
    except DeviceError as error:
        pytest.skip(str(error))  # as where CI runs, or with fewer GPUs
    few = config.getoption("--multiprocessors")
    return [replace(one, multiprocessors=few or one.multiprocessors) for one in gpus]


@pytest.fixture(scope="module")
def device(pytestconfig) -> Device:
    return devices(1, pytestconfig)[0]


@pytest.fixture
def two_devices(pytestconfig) -> Iterator[list[Device]]:
    """Yield two devices. Neither reads the other's memory at first, whatever tests before did."""
    both = devices(2, pytestconfig)
    yield both
    for one, other in (both, reversed(both)):
        runtime = one.cupy.cuda.runtime
        with one.use(), contextlib.suppress(runtime.CUDARuntimeError):
            runtime.deviceDisablePeerAccess(other.number)


@pytest.fixture(scope="module")
def four_devices(pytestconfig) -> list[Device]:
    return devices(4, pytestconfig)


@pytest.fixture(scope="module")
def eight_devices(pytestconfig) -> list[Device]:
    return devices(8, pytestconfig)


@pytest.fixture
def emulated(monkeypatch) -> Iterator[list[Device]]:
    """Yield devices that this CPU emulates, so that kernels run where there is no GPU."""
    if not emulator.able():
        pytest.skip("kernels are emulated on x86-64, by g++")
    monkeypatch.setitem(sys.modules, "cupy", emulator.cupy)
    on_device._compile.cache_clear()
    yield [open_device(number) for number in range(emulator.DEVICES)]
    on_device._compile.cache_clear()


@pytest.fixture
def eight_emulated(emulated, monkeypatch) -> list[Device]:
    monkeypatch.setattr(emulator, "DEVICES", 8)
    return [open_device(number) for number in range(8)]


@pytest.fixture
def real_graph():
    """Return a function that gives the path of a real edge list, or skips where the data are not at
    hand.
    """

    def find(name: str) -> Path:
        path = DATA / f"{name}.parquet"
        if not path.exists():
            pytest.skip(f"real graphs are not here: no {path}")
        return path

    return find
