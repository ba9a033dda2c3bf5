"""A device memory limit that is too small ends a bench with exit 2 and one line."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from delegraph.kernels.gpu.device import DeviceMemoryError
from delegraph.partition.errors import LimitError
from delegraph.pipeline.run.devices import device_errors
from support import emulator
from support.graphs import random_edges

pytestmark = pytest.mark.skipif(not emulator.able(), reason="g++ compiles the kernels")

ON = ("--device", "cuda", "--device-memory-limit", "1MB", "--sources", 1)


def test_of_a_store(ok, delegraph, edge_list, tmp_path, monkeypatch):
    ok("build", edge_list(*random_edges(1, 300, 2000)), "-o", tmp_path / "graph.dg")
    monkeypatch.setitem(sys.modules, "cupy", emulator.cupy)
    run = delegraph("bench", tmp_path / "graph.dg", *ON)
    assert run.code == 2
    assert "only 1 MB of memory may be used on cuda:0" in run.err
    assert "Traceback" not in run.err


def test_of_whatever_is_found_to_be_too_much():
    with pytest.raises(LimitError, match="too small") as raised, device_errors():
        raise DeviceMemoryError("the memory of cuda:0 is too small")
    assert raised.value.exit_code == 2


@pytest.mark.slow
def test_of_workers(ok, edge_list, tmp_path):
    edges = edge_list(*random_edges(1, 300, 2000))
    ok("build", edges, "-o", tmp_path / "graph.dg", "--partitions", 2)
    line = ("bench", tmp_path / "graph.dg", *ON, "--workers", 2)
    run = subprocess.run(
        [sys.executable, "-m", "delegraph", *map(str, line)],
        env={**os.environ, "PYTHONPATH": str(emulator.SITE)},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 2, run.stderr
    assert "only 1 MB of memory may be used on" in run.stderr


@pytest.mark.parametrize(
    "option", [("--partitions", 2), ("--exact",), ("--directed",), ("--order", "none")]
)
def test_a_plan_of_a_store_takes_nothing_that_is_decided(
    ok, delegraph, edge_list, tmp_path, option
):
    """A plan of a store refuses options that the build has decided, as bfs does."""
    ok("build", edge_list([0, 1], [1, 2]), "-o", tmp_path / "graph.dg")
    run = delegraph("plan", tmp_path / "graph.dg", *option)
    assert run.code == 2
    assert "was read and built with options of its own" in run.err
    assert len(run.err.splitlines()) == 1
