"""Fixtures: edge lists on disk, the command line in this process, real graphs."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path

# Two threads entering Numba's own parallel runtime at once abort the process with this layer:
# no kernel may use it (kernels/base/team.py says why).
os.environ.setdefault("NUMBA_THREADING_LAYER", "workqueue")

import emulator
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import strategies as st

from delegraph.cli.main import main
from delegraph.kernels.gpu.device import Device, DeviceError, open_device
from delegraph.partition.store.grid import Grid
from delegraph.pipeline.build.prepare import BuildOptions

collect_ignore = ["emulator"]  # holds no tests

DATA = Path(__file__).parents[1] / ".." / "shared" / "data"


def pytest_addoption(parser):
    parser.addoption(
        "--emulate", action="store_true", help="run GPU tests on the CPU: kernels by g++, slowly"
    )


def pytest_configure(config):
    if config.getoption("--emulate"):
        sys.modules["cupy"] = emulator.cupy


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture
def delegraph(capfd, monkeypatch):
    """Runs the command line: ``delegraph("bfs", path, "--source", 0)``."""

    def run(*args) -> Ran:
        capfd.readouterr()
        monkeypatch.setattr("sys.argv", ["delegraph", *(str(arg) for arg in args)])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capfd.readouterr()
        code = ended.value.code
        return Ran(code if isinstance(code, int) else 0, out, err)

    return run


@pytest.fixture
def ok(delegraph):
    """Like ``delegraph``, for commands that have to succeed."""

    def run(*args) -> Ran:
        ran = delegraph(*args)
        assert ran.code == 0, ran.err
        return ran

    return run


@pytest.fixture
def edge_list(tmp_path):
    """Writes an edge list: ``edge_list([0, 1], [1, 2])``; returns its path."""

    def write(src, dst, name="edges.parquet", id_type=None, row_group_size=None, **columns):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        table = pa.table({"src": pa.array(src, id_type), "dst": pa.array(dst, id_type), **columns})
        pq.write_table(table, path, row_group_size=row_group_size)
        return path

    return write


@pytest.fixture(scope="module")
def device() -> Device:
    try:
        return open_device()
    except DeviceError as error:  # as where CI runs: tests marked ``gpu`` are for such machines
        pytest.skip(str(error))


def devices(count: int) -> list[Device]:
    try:
        return [open_device(number) for number in range(count)]
    except DeviceError as error:
        pytest.skip(str(error))  # as where CI runs, or with fewer GPUs: see ``device``


@pytest.fixture(scope="module")
def two_devices() -> list[Device]:
    return devices(2)


@pytest.fixture(scope="module")
def four_devices() -> list[Device]:
    return devices(4)


@pytest.fixture
def real_graph():
    """Path of a real edge list, or a skip where the data are not at hand."""

    def find(name: str) -> Path:
        path = DATA / f"{name}.parquet"
        if not path.exists():
            pytest.skip(f"real graphs are not here: no {path}")
        return path

    return find


@st.composite
def store_options(draw) -> BuildOptions:
    """Any layout, of one partition and of more than a small graph has vertices."""
    layout = draw(st.sampled_from(["delegate", "2d", "1d"]))
    grid = draw(st.sampled_from([None, Grid(2, 1), Grid(3, 2)])) if layout == "2d" else None
    return BuildOptions(
        directed=draw(st.booleans()),
        partitions=None if grid else draw(st.sampled_from([None, 1, 2, 3, 4, 5])),
        threshold=draw(st.sampled_from([None, 1, 4, 1000])) if layout == "delegate" else None,
        order=draw(st.sampled_from(["degree", "none", "random"])),
        layout=layout,
        grid=grid,
    )


def read_result(path) -> dict:
    """Distance and parent by vertex."""
    table = pq.read_table(path)
    rows = zip(*(table[name].to_pylist() for name in ("vertex", "distance", "parent")), strict=True)
    return {vertex: (distance, parent) for vertex, distance, parent in rows}


def distances_of(path) -> dict:
    return {vertex: distance for vertex, (distance, _) in read_result(path).items()}


def grid(side: int) -> tuple[np.ndarray, np.ndarray]:
    """Cells, numbered row by row, joined to their neighbours."""
    cell = np.arange(side * side).reshape(side, side)
    right = cell[:, :-1].ravel(), cell[:, 1:].ravel()
    down = cell[:-1].ravel(), cell[1:].ravel()
    return np.concatenate([right[0], down[0]]), np.concatenate([right[1], down[1]])


def random_edges(seed: int, vertices: int, edges: int) -> tuple[np.ndarray, np.ndarray]:
    """A skewed random graph: squared uniform numbers make hubs."""
    rng = np.random.default_rng(seed)
    src, dst = (rng.random((2, edges)) ** 2 * vertices).astype(np.int64)
    return src, dst
