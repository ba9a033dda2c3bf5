"""Jobs on one graph, run one after another, share a process and a loaded graph, with the same
results.
"""

from __future__ import annotations

import json
import signal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from delegraph.kernels.base.team import Team
from delegraph.kernels.gpu.device import Device
from delegraph.partition.store.store import Store, open_store
from delegraph.pipeline.batches.process import JobProcess
from delegraph.pipeline.engines import engine_cache
from delegraph.pipeline.engines.host.disk import DiskEngine
from delegraph.pipeline.engines.host.programs import HostProgramEngine
from delegraph.pipeline.engines.host.rows import StoreGraph, StoreRows
from delegraph.pipeline.engines.host.search import HostSearchEngine
from delegraph.pipeline.engines.one_device.program import DeviceProgramEngine
from delegraph.pipeline.engines.one_device.rows import StoreRowsOnDevice
from delegraph.pipeline.engines.operations.program import DeviceProgram
from delegraph.pipeline.engines.subjects import subject_of
from delegraph.pipeline.parameter_checks import algorithm_of
from delegraph.pipeline.questions import QUESTIONS
from delegraph.pipeline.results.store_names import StoreNames
from delegraph.pipeline.run.ending import KEEP
from support.graphs import random_edges
from support.marks import nightly, slow
from support.outputs import digest
from support.processes import cluster, wait_until

JOB = """
[[job]]
name = "{0}"
command = "{0}"
output = "out/{0}"
{1}
"""
COMMANDS = {
    "components": "",
    "pagerank": "",
    "bfs": "source = 1",
    "sssp": "source = 1",
    "closeness": "sources = 3",
}


def algorithm(name, **values):
    return algorithm_of(QUESTIONS[name], values)[1]


@pytest.fixture
def folder(edge_list, ok, tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "alone").mkdir()
    src, dst = random_edges(1, 300, 900)
    edge_list(src, dst, weight=pa.array(np.arange(900) % 7, pa.int32()))
    ok("build", "edges.parquet", "-o", "graph.dg", "--weight", "weight")
    ok("build", "edges.parquet", "-o", "parts.dg", "--partitions", 3)
    return tmp_path


def write_jobs(commands: dict[str, str], defaults: str = 'graph = "graph.dg"') -> None:
    """Write a file of jobs; commands: the options of each command, beside the defaults."""
    jobs = "".join(JOB.format(name, more) for name, more in commands.items())
    Path("jobs.toml").write_text(f'[defaults]\nmemory_limit = "600MB"\n{defaults}\n{jobs}')


def processes() -> dict[str, list[int]]:
    """Return the ids of the processes that have run each job."""
    pids = {}
    for log in sorted(Path("jobs.toml.batch").glob("*.log")):
        events = [json.loads(line) for line in log.read_text().splitlines()]
        pids[log.stem] = [event["pid"] for event in events if event["event"] == "begin"]
    return pids


def test_one_process_and_the_same_results(ok, folder):
    write_jobs(COMMANDS)
    ok("batch", "run", "jobs.toml")
    assert len({pid for pids in processes().values() for pid in pids}) == 1
    entries = json.loads(ok("batch", "status", "jobs.toml", "--json").out)["jobs"]
    assert all(entry["peak_bytes"] > 0 for entry in entries)
    for name, more in COMMANDS.items():
        words = [f"--{more.replace(' = ', '=')}"] if more else []
        ok(name, "graph.dg", *words, "-o", folder / "alone" / name)
        assert digest(folder / "alone" / name) == digest(folder / "out" / name)
        record = json.loads((folder / "out" / f"{name}.run.json").read_bytes())
        assert record["command"][1] == name
        out = (folder / "jobs.toml.batch" / f"{name}.out").read_text()
        assert out == ok(name, "graph.dg", *words, "-o", folder / "alone" / name).out
        log = (folder / "jobs.toml.batch" / f"{name}.log").read_text().splitlines()
        assert json.loads(log[0])["command"][1] == name
        assert json.loads(log[-1])["exit_code"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("graph", ["parts.dg", "edges.parquet"])
def test_of_any_graph(ok, folder, graph):
    commands = {name: more for name, more in COMMANDS.items() if name != "sssp"}
    write_jobs(commands, f'graph = "{graph}"')
    ok("batch", "run", "jobs.toml", "--jobs", 2, "--memory-limit", "1200MB")
    for name, more in commands.items():
        words = [f"--{more.replace(' = ', '=')}"] if more else []
        ok(name, graph, *words, "-o", folder / "alone" / name)
        assert digest(folder / "alone" / name) == digest(folder / "out" / name)


def test_what_fails_there_has_a_process_of_its_own(delegraph, folder):
    """A job that fails in a shared process runs again alone, as the same try: earlier jobs of the
    process may be the cause.
    """
    write_jobs({"components": "", "bfs": "source = 99999", "pagerank": ""})
    run = delegraph("batch", "run", "jobs.toml")
    assert (run.code, run.out) == (1, "2 of 3 jobs done\n")
    assert "bfs: source 99999 is not a vertex of the graph; next try in 0 s" in run.err
    assert "bfs: failed: source 99999 is not a vertex of the graph" in run.err
    jobs = json.loads(delegraph("batch", "status", "jobs.toml", "--json").out)["jobs"]
    assert {entry["name"]: entry["attempts"] for entry in jobs}["bfs"] == 1
    assert len(set(processes()["bfs"])) == 2


@pytest.mark.slow
def test_other_graphs_and_other_threads_share_nothing(ok, folder):
    write_jobs(
        {"components": 'graph = "parts.dg"', "pagerank": "", "bfs": "source = 1\nthreads = 1"}
    )
    ok("batch", "run", "jobs.toml")
    assert len({pid for pids in processes().values() for pid in pids}) == 3


def test_a_process_that_waits(folder):
    """A waiting process ends when it is told to, and a killed one is not used again."""
    words = ["components", "graph.dg", "--log-format=json", "-o"]
    process = JobProcess(stays=True)
    for name in ("one", "two"):
        process.begin([*words, name], folder / f"{name}.log")
        wait_until(lambda: process.code() == 0)
        assert process.is_alive()
        assert process.last_event()["exit_code"] == 0
        assert "component; the largest" in (folder / f"{name}.out").read_text()
    process.send(signal.SIGKILL)
    wait_until(lambda: not process.is_alive())
    assert process.code() == 0  # that of the job, which was done
    process.let_go()
    other = JobProcess(stays=True)
    other.begin([*words, "three"], folder / "one.log")
    wait_until(lambda: other.code() == 0)
    other.let_go()
    assert not other.is_alive()
    assert other.code() == 0


def test_a_process_that_dies_between_jobs(folder):
    """A process that dies before it begins its second job reports this job as killed, not as the
    first job's success.
    """
    words = ["components", "graph.dg", "--log-format=json", "-o"]
    process = JobProcess(stays=True)
    process.begin([*words, "one"], folder / "one.log")
    wait_until(lambda: process.code() == 0)
    process.send(signal.SIGSTOP)
    process.begin([*words, "two"], folder / "two.log")
    process.send(signal.SIGKILL)
    wait_until(lambda: process.code() is not None)
    assert process.code() == -signal.SIGKILL
    assert process.last_event() == {}
    process.end(0)


# Sockets that the cluster itself leaves to the garbage collector.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.slow
@pytest.mark.parametrize("at_once", [1, 2])
def test_on_a_cluster(ok, folder, at_once):
    """A process holds a cluster's workers, whatever the graph, until another process needs them."""
    with cluster(2) as (_, client):
        jobs = {"pagerank": "graph.dg", "components": "parts.dg", "eccentricity": "parts.dg"}
        text = "".join(JOB.format(name, f'graph = "{graph}"') for name, graph in jobs.items())
        address = client.scheduler.address
        Path("jobs.toml").write_text(f'[defaults]\nscheduler = "{address}"\n{text}')
        ok("batch", "run", "jobs.toml", "--jobs", at_once)
        pids = {pid for pids in processes().values() for pid in pids}
        assert at_once == 2 or len(pids) == 1


def engine_of(store: Store, name: str) -> HostSearchEngine | HostProgramEngine | DiskEngine:
    subject = subject_of(store, StoreNames(store, Team(1)))
    if name == "memory":
        return HostSearchEngine(StoreGraph(store, subject), 1)
    if name == "disk":
        return DiskEngine(StoreRows(store, subject, 1, "disk"), 1)
    question = (
        algorithm("sssp", source="1")
        if name == "weighted"
        else algorithm("pagerank", unweighted=True)
    )
    program = question.program(subject.names, store.info)
    place = "merged" if name == "merged" else "memory"
    return HostProgramEngine(StoreRows(store, subject, 1, place, program.weighted), program, 1)


@pytest.mark.parametrize(
    ("first", "then", "other", "loads"),
    [
        ("memory", "memory", "graph.dg", False),
        ("memory", "memory", "parts.dg", True),
        ("memory", "program", "graph.dg", False),
        ("program", "program", "graph.dg", False),
        ("program", "program", "parts.dg", True),
        ("program", "weighted", "graph.dg", True),
        ("program", "memory", "graph.dg", True),
        ("disk", "disk", "graph.dg", True),
    ],
)
def test_what_is_kept(folder, monkeypatch, first, then, other, loads):
    """An engine takes over what another engine has loaded of the same store, if it reads no more of
    it.
    """
    check_what_is_kept(monkeypatch, folder / "graph.dg", first, folder / other, then, loads)


@pytest.mark.parametrize(
    ("first", "then", "loads"),
    [
        ("memory", "merged", False),
        ("merged", "merged", False),
        ("merged", "program", True),
        ("program", "merged", True),
        ("memory", "program", True),
    ],
)
def test_what_is_kept_of_partitions(folder, monkeypatch, first, then, loads):
    """Partitions merged for searches are taken over by programs that run on merged ones."""
    store = folder / "parts.dg"
    check_what_is_kept(monkeypatch, store, first, store, then, loads)


def check_what_is_kept(
    monkeypatch: pytest.MonkeyPatch, one: Path, first: str, other: Path, then: str, loads: bool
) -> None:
    monkeypatch.setenv(KEEP, "1")
    limit = 4 << 30
    engine = engine_of(open_store(one), first)
    engine.load()
    engine_cache.put_away(engine, limit)
    following = engine_of(open_store(other), then)
    before = following.need().host
    engine_cache.take_over([following], limit)
    assert (following.need().host == before) == loads
    with monkeypatch.context() as patched:
        if not loads:
            patched.setattr(Store, "shards", None)  # no targets are read
        following.load()
    following.close()
    assert following.need().host == before


def test_nothing_is_kept_that_leaves_no_room(folder, monkeypatch):
    engine = engine_of(open_store(folder / "graph.dg"), "memory")
    for limit, keeps in ((4 << 30, False), (1 << 20, True)):
        if keeps:
            monkeypatch.setenv(KEEP, "1")
        engine.load()
        engine_cache.put_away(engine, limit)
        assert isinstance(engine, HostSearchEngine)
        assert engine.graph is None


def on_device(store: Store, device: Device, name: str) -> DeviceProgramEngine:
    subject = subject_of(store, StoreNames(store, Team(1)))
    values = {"components": {}, "pagerank": {"unweighted": True}, "sssp": {"source": "1"}}
    question = algorithm(name, **values[name])
    program = question.program(subject.names, store.info)
    assert isinstance(program, DeviceProgram)
    rows = StoreRowsOnDevice(store, subject, device, 1)
    return DeviceProgramEngine(rows, program, device)


@pytest.mark.parametrize(
    ("first", "then", "other", "loads"),
    [
        nightly("pagerank", "pagerank", "graph.dg", False),
        slow("pagerank", "components", "graph.dg", False),
        slow("components", "pagerank", "graph.dg", True),  # degrees are missing
        slow("components", "sssp", "graph.dg", True),  # and weights
        slow("pagerank", "pagerank", "parts.dg", True),
    ],
)
def test_what_is_kept_on_a_device(emulated, folder, monkeypatch, first, then, other, loads):
    monkeypatch.setenv(KEEP, "1")
    limit = 4 << 30
    engine = on_device(open_store(folder / "graph.dg"), emulated[0], first)
    engine.load()
    engine_cache.put_away(engine, limit)
    following = on_device(open_store(folder / other), emulated[0], then)
    before = following.need()
    engine_cache.take_over([following], limit)
    assert (following.need() == before) == loads
    assert loads or not following.need().device
    with monkeypatch.context() as patched:
        if not loads:
            patched.setattr(Store, "shards", None)  # no targets are read
        following.load()
    following.compile()
    result = following.run(None, lambda *progress: None)
    fresh = on_device(open_store(folder / other), emulated[0], then)
    fresh.load()
    for name, values in fresh.run(None, lambda *progress: None).values.items():
        np.testing.assert_array_equal(result.values[name], values)
    following.close()
    assert following.need() == before
