"""A run that is ended in any way leaves work from which the same command ends as if undisturbed,
and nothing else.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import resource
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delegraph.partition.disk import outputs, work
from delegraph.partition.disk.journal import read_journal
from delegraph.partition.disk.work import begin_work
from delegraph.pipeline.build import build, prepare
from delegraph.pipeline.run.execute import Executor
from support.graphs import random_edges
from support.marks import nightly, slow
from support.outputs import digest, distances_of
from support.processes import (
    KILLED_BEFORE_THE_RECORD,
    command,
    is_forked,
    wait_until,
    workers_of,
)

KILLS = [2, nightly(12)]


def killed_at(line: list[str], moment: float | Callable[[], bool]) -> bool:
    """Start a command and kill it after some seconds, or once ``moment()`` is true; return whether
    the command was still alive.
    """
    process = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if callable(moment):
        while process.poll() is None and not moment():
            time.sleep(0.001)
    else:
        time.sleep(moment)
    process.kill()
    return process.wait() == -signal.SIGKILL


def kill_again_and_again(
    line: list[str], check, kills: int, reusable: Callable[[], bool] | None
) -> int:
    """Kill a command at random moments, and run it to its end after each kill.

    check: called after each run to the end; leaves all files as before the run. reusable: whether
    another attempt can reuse a step; the first kill comes then, since random kills may all miss
    such a moment. None: no step can be reused. Returns how often steps were reused.
    """
    rng = random.Random(kills)
    started = time.monotonic()
    subprocess.run(line, check=True, capture_output=True)
    whole = time.monotonic() - started
    check()
    hits = reused = 0
    while hits < kills:
        # Importing takes a good part of the time, and nothing can be lost then.
        seconds = rng.uniform(0.3, 1.0) * whole
        if not killed_at(line, seconds if hits or reusable is None else reusable):
            whole = min(whole, seconds)  # the first run may have compiled kernels
            subprocess.run(line, check=True, capture_output=True)
            check()
            continue
        hits += 1
        run = subprocess.run(line, capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        reused += "reused steps" in run.stderr
        check()
    return reused


@pytest.fixture(scope="module")
def edges(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("faults")
    src, dst = random_edges(5, 30_000, 400_000)
    pq.write_table(pa.table({"src": src, "dst": dst}), folder / "edges.parquet")
    return folder / "edges.parquet"


@pytest.mark.slow
@pytest.mark.parametrize(("loops", "kills"), [("drop", 12), ("keep", 6)])
def test_a_build_killed_at_any_moment(edges, tmp_path, ok, loops, kills):
    (tmp_path / "scratch").mkdir()
    out = tmp_path / "graph.dg"
    line = command("build", edges, "-o", out, "--scratch", tmp_path / "scratch", "--loops", loops)
    ok("build", edges, "-o", tmp_path / "wanted.dg", "--loops", loops)
    wanted = digest(tmp_path / "wanted.dg")

    def check():
        assert digest(out) == wanted
        names = {path.name for path in tmp_path.iterdir()}
        assert names == {"graph.dg", "graph.dg.run.json", "wanted.dg", "wanted.dg.run.json"} | {
            "scratch"
        }
        assert not list((tmp_path / "scratch").iterdir())
        for path in (*out.iterdir(), out, tmp_path / "graph.dg.run.json"):
            remove(path)

    journal = tmp_path / ".graph.dg.work" / "journal.json"
    assert (
        kill_again_and_again(line, check, kills, lambda: bool(read_journal(journal).get("steps")))
        > 0
    )


def remove(path: Path) -> None:
    if path.is_dir():
        for entry in path.iterdir():
            remove(entry)
        path.rmdir()
    else:
        path.unlink()


STREAMED = (
    "from delegraph.pipeline.engines import table; "
    "table.HostSearchEngine = lambda graph, threads: table.DiskEngine("
    "table.StoreRows(graph.store, graph.subject, threads, 'disk'), threads); "
    "from delegraph.cli.main import run; run()"
)

STREAMED_PROGRAM = (
    "from delegraph.pipeline.engines import table; "
    "rows = table.StoreRows; "
    "table.StoreRows = lambda store, subject, threads, place, *more: "
    "rows(store, subject, threads, 'disk', *more); "
    "from delegraph.cli.main import run; run()"
)


@pytest.mark.parametrize("kills", KILLS)
@pytest.mark.parametrize("way", ["in memory", slow("streamed")])
def test_a_search_killed_at_any_moment(tmp_path, ok, way, kills):
    ok("generate", "grid", "--width", 150, "--height", 150, "-o", tmp_path / "edges")
    ok("build", tmp_path / "edges", "-o", tmp_path / "graph.dg")
    ok("bfs", tmp_path / "graph.dg", "--source", 0, "-o", tmp_path / "wanted")
    wanted = distances_of(tmp_path / "wanted")
    before = {path.name for path in tmp_path.iterdir()}
    out = tmp_path / "out"
    line = command("bfs", tmp_path / "graph.dg", "--source", 0, "-o", out, "--checkpoint", 0)
    if way == "streamed":
        line[1:3] = ["-c", STREAMED]

    def check():
        assert distances_of(out) == wanted
        ok("validate", tmp_path / "graph.dg", out)
        assert {path.name for path in tmp_path.iterdir()} == before | {"out", "out.run.json"}
        remove(out)
        remove(tmp_path / "out.run.json")

    saved = tmp_path / ".out.work" / "scratch" / "checkpoint" / "search.json"
    assert kill_again_and_again(line, check, kills // 2, saved.exists) > 0


def sources_of(edges: Path, count: int) -> str:
    return ",".join(map(str, sorted(set(pq.read_table(edges)["src"][:count].to_pylist()))))


def pairs_of(edges: Path, count: int) -> Path:
    """Write a file of pairs, and return its path."""
    table, path = pq.read_table(edges), edges.with_name("pairs.parquet")
    ends = table["src"][:count], table["dst"][-count:]
    pq.write_table(pa.table({"source": ends[0], "target": ends[1]}), path)
    return path


PROGRAMS = {
    "components": lambda edges: ["components"],
    "pagerank": lambda edges: ["pagerank", "--tolerance", 1e-14],
    "hits": lambda edges: ["hits", "--tolerance", 1e-15],
    "katz": lambda edges: ["katz", "--tolerance", 1e-14],
    "labels": lambda edges: ["labels", "--iterations", 200],
    "leiden": lambda edges: ["leiden"],
    "louvain": lambda edges: ["louvain", "--iterations", "until-stable"],
    "cores": lambda edges: ["cores"],
    "strong": lambda edges: ["strong"],
    "condensation": lambda edges: ["strong", "--condense"],
    "clustering": lambda edges: ["clustering"],
    "truss": lambda edges: ["truss"],
    "forest": lambda edges: ["forest"],
    "sssp": lambda edges: ["sssp", "--source", sources_of(edges, 1)],
    "path": lambda edges: ["path", "--unweighted", "--pairs", pairs_of(edges, 300)],
    "path-nodes": lambda edges: ["path", "--nodes", "--pairs", pairs_of(edges, 200)],
    "betweenness": lambda edges: ["betweenness", "--sources", 20],
    "closeness": lambda edges: ["closeness", "--sources", 500],
    "eccentricity": lambda edges: ["eccentricity", "--sources", 500],
    "bfs-each": lambda edges: ["bfs", "--sources", sources_of(edges, 200)],
    "bfs-together": lambda edges: ["bfs", "--together", "--sources", sources_of(edges, 200)],
}


WAYS = ["in memory", "streamed", "by workers"]
KILLED_ONCE = [
    ("sssp", "in memory"),
    ("betweenness", "streamed"),
    ("bfs-each", "in memory"),
    ("pagerank", "by workers"),
]
"""Programs and ways that run without --kills: all others take minutes."""


def program_over_two(ok, folder: Path, edges: Path, program: str) -> list[str]:
    """Build a store of two partitions, and return a command over it that saves at every step and
    writes to ``out``.
    """
    ends = pq.read_table(edges)
    table = {"from": ends["src"], "to": ends["dst"], "w": pa.array(range(len(ends)))}
    pq.write_table(pa.table(table), folder / "named.parquet")
    options = "--src", "from", "--dst", "to", "--weight", "w", "--partitions", 2
    ok("build", folder / "named.parquet", "-o", folder / "graph.dg", *options)
    name, *args = PROGRAMS[program](edges)
    args += ["--unweighted"] if name == "pagerank" else []
    args += [] if name == "components" else ["--checkpoint", 0]
    return command(name, folder / "graph.dg", *args, "-o", folder / "out")


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_killed_at_any_moment(request, tmp_path, ok, edges, program, way):
    """A killed program resumes from its checkpoint, if it has any, and has the same bits.

    --kills N: number of kills of each way; without --kills, one kill of some ways. By workers, the
    client is killed.
    """
    kills = request.config.getoption("kills")
    if not kills and (program, way) not in KILLED_ONCE:
        pytest.skip("--kills N")
    line = program_over_two(ok, tmp_path, edges, program)
    out = tmp_path / "out"
    if way == "by workers":
        line += ["--workers", "2"]
    if way == "streamed":
        line[1:3] = ["-c", STREAMED_PROGRAM]
    run = subprocess.run(line, check=True, capture_output=True)  # sums depend on the engine
    assert run.stdout
    record = json.loads((tmp_path / "out.run.json").read_text())
    facts = (fact for fact in record.values() if isinstance(fact, dict))
    methods = {fact["method"] for fact in facts if "method" in fact}
    assert way == "by workers" or methods == {way}
    wanted = pq.read_table(out)
    columns = [column for column in wanted.column_names if column != "parent"]
    remove(out)
    remove(tmp_path / "out.run.json")
    before = {path.name for path in tmp_path.iterdir()}

    def check():
        assert pq.read_table(out).select(columns).equals(wanted.select(columns))
        if program == "sssp":
            ok("validate", tmp_path / "graph.dg", out)
        assert {path.name for path in tmp_path.iterdir()} == before | {"out", "out.run.json"}
        remove(out)
        remove(tmp_path / "out.run.json")

    saves = program not in {"components", "clustering"}  # so few edges are one range
    journal = tmp_path / ".out.work" / "journal.json"

    def saved() -> bool:
        """Return whether the checkpoint that the journal has noted is also written."""
        whole = journal.with_name("scratch") / "checkpoint" / "search.json"
        return whole.exists() and bool(read_journal(journal).get("steps"))

    reused = kill_again_and_again(line, check, kills or 1, saved if saves else None)
    assert reused > 0 or not saves


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_worker_of_a_program_killed_at_any_moment(request, tmp_path, ok, edges, program):
    """A command whose worker is killed at any moment ends well by itself: the remaining workers
    resume from the checkpoint.

    --kills N: number of kills; each takes minutes.
    """
    kills = request.config.getoption("kills")
    if not kills:
        pytest.skip("--kills N")
    line = [*program_over_two(ok, tmp_path, edges, program), "--workers", "2"]
    work = tmp_path / ".out.work"

    def begun() -> bool:
        """Return whether the folder for results of ranks exists."""
        return any(work.glob("scratch/tmp*"))

    def saved() -> bool:
        return bool(read_journal(work / "journal.json").get("steps"))

    with subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        wait_until(begun)
        start = time.monotonic()
    whole = time.monotonic() - start
    wanted = pq.read_table(tmp_path / "out")
    columns = [column for column in wanted.column_names if column != "parent"]
    rng, hits = random.Random(kills), 0
    while hits < kills:
        remove(tmp_path / "out")
        remove(tmp_path / "out.run.json")
        before = {path.name for path in tmp_path.iterdir()}
        with subprocess.Popen(
            line, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        ) as process:
            workers = workers_of(process)
            wait_until(begun if hits or program == "components" else saved)
            time.sleep(rng.uniform(0, whole) * (hits > 0))
            with contextlib.suppress(ProcessLookupError):  # it was faster
                os.kill(rng.choice(workers), signal.SIGKILL)
            _, stderr = process.communicate(timeout=120)
        hits += "started again" in stderr
        assert process.returncode == 0, stderr
        table = pq.read_table(tmp_path / "out")
        for column in columns:  # sums depend on the ranks
            if pa.types.is_floating(table[column].type):
                np.testing.assert_allclose(table[column], wanted[column], rtol=1e-9)
            else:
                assert table[column].equals(wanted[column])
        assert {path.name for path in tmp_path.iterdir()} == before | {"out", "out.run.json"}
        assert not any(map(is_forked, workers))


STEPS = ["encode", "ids", "loops", "degrees", "order", "threshold", "scatter", "build"]


CUTS = [("delegate", "drop", last) for last in range(len(STEPS))]
OTHER_CUTS = [("2d", "drop", 4), ("2d", "drop", 6), ("delegate", "keep", 3), ("2d", "keep", 6)]


@pytest.mark.parametrize(("layout", "loops", "last"), [*CUTS, *OTHER_CUTS])
def test_every_finished_step_is_reused(ok, delegraph, tmp_path, monkeypatch, layout, loops, last):
    """A build cut off after ``last`` steps runs only the following steps again."""
    left_out = {"threshold"} if layout != "delegate" else set()
    left_out |= {"loops"} if loops == "drop" else set()
    steps = [name for name in STEPS if name not in left_out]
    src, dst = random_edges(2, 500, 5000)
    dst[::9] = src[::9]
    path = tmp_path / "edges.parquet"
    pq.write_table(pa.table({"src": src * -(10**12), "dst": dst * -(10**12)}), path)
    (tmp_path / "scratch").mkdir()
    options = ("--layout", layout, "--loops", loops)
    args = (path, "-o", tmp_path / "graph.dg", *options, "--scratch", tmp_path / "scratch")
    step = Executor._run

    def cut_off(self, pool, name, *rest):
        if name == [*steps, "vertices"][last]:
            raise KeyboardInterrupt
        return step(self, pool, name, *rest)

    monkeypatch.setattr(Executor, "_run", cut_off)
    assert delegraph("build", *args, "--partitions", 3).code == 130
    monkeypatch.undo()
    for folder in tmp_path.glob(".graph.dg.work/output"):  # a file in the making, when killed
        (folder / ".nn.targets-0007.npy.partial-1-2").touch()
    if last:
        refused = ("--memory-limit", "1MB"), ("--scheduler", "nowhere"), ("--scratch", tmp_path)
        for other in refused:
            assert delegraph("build", *args, "--partitions", 3, *other).code == 2
        run = delegraph("build", *args, "--partitions", 4)
        assert run.code == 2
        assert "--partitions was 3, now 4" in run.err
    run = ok("build", *args, "--partitions", 3)
    note = f"reused steps: {', '.join(steps[:last])}\n"
    assert (note in run.err) == (last > 0)
    ok("build", path, "-o", tmp_path / "wanted.dg", "--partitions", 3, *options)
    assert digest(tmp_path / "graph.dg") == digest(tmp_path / "wanted.dg")
    assert not list((tmp_path / "scratch").iterdir())


def test_restart_starts_over(ok, delegraph, edges, tmp_path, monkeypatch):
    args = (edges, "-o", tmp_path / "graph.dg")
    monkeypatch.setattr(prepare, "IN_MEMORY_ROWS", 0)
    monkeypatch.setattr(build, "write_store", interrupt)
    assert delegraph("build", *args).code == 130
    monkeypatch.undo()
    assert sorted(path.name for path in tmp_path.iterdir()) == [".graph.dg.work"]
    run = ok("build", *args, "--restart", "--order", "none")
    assert "reused steps" not in run.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["graph.dg", "graph.dg.run.json"]


def interrupt(*args):
    raise KeyboardInterrupt


def test_input_that_changes_between_attempts(ok, delegraph, tmp_path, monkeypatch):
    path = tmp_path / "edges.parquet"
    pq.write_table(pa.table({"src": [1, 2], "dst": [2, 3]}), path)
    args = (path, "-o", tmp_path / "graph.dg")
    monkeypatch.setattr(prepare, "IN_MEMORY_ROWS", 0)
    monkeypatch.setattr(build, "write_store", interrupt)
    assert delegraph("build", *args).code == 130
    monkeypatch.undo()
    pq.write_table(pa.table({"src": [1, 2], "dst": [2, 4]}), path)
    run = delegraph("build", *args)
    assert run.code == 2
    assert f"{path} was" in run.err
    assert "--restart" in run.err
    ok("build", *args, "--restart")
    assert "already built" in ok("build", *args).err
    os.utime(path)
    assert "already built" in ok("build", *args).err
    pq.write_table(pa.table({"src": [1, 2], "dst": [2, 5]}), path)
    run = delegraph("build", *args)
    assert run.code == 2
    assert "--overwrite" in run.err
    ok("build", *args, "--overwrite")


def test_input_that_changes_while_it_is_read(delegraph, tmp_path, monkeypatch):
    path = tmp_path / "edges.parquet"
    pq.write_table(pa.table({"src": [1, 2], "dst": [2, 3]}), path)
    monkeypatch.setattr(prepare, "IN_MEMORY_ROWS", 0)
    count = build.count

    def count_and_write(run):
        counted = count(run)
        pq.write_table(pa.table({"src": [1, 2], "dst": [2, 7]}), path)
        return counted

    monkeypatch.setattr(build, "count", count_and_write)
    outcome = delegraph("build", path, "-o", tmp_path / "graph.dg")
    assert outcome.code == 2
    assert f"{path}: changed while it was read" in outcome.err
    assert [entry.name for entry in tmp_path.iterdir()] == ["edges.parquet"]


def test_killed_between_appearing_and_cleaning_up(ok, delegraph, edges, tmp_path, monkeypatch):
    """A run killed after its output has appeared leaves work that does not make the output a second
    time.
    """
    args = ("build", edges, "-o", tmp_path / "graph.dg", "--overwrite", "--order", "none")
    ok(*args)
    before = digest(tmp_path / "graph.dg")
    monkeypatch.setattr(prepare, "IN_MEMORY_ROWS", 0)
    monkeypatch.setattr(work, "publish", published_and_killed)
    assert delegraph(*args).code == 130
    monkeypatch.undo()
    assert (tmp_path / ".graph.dg.work").is_dir()
    run = ok(*args)
    assert "reused steps" not in run.err
    assert digest(tmp_path / "graph.dg") == before
    monkeypatch.setattr(prepare, "IN_MEMORY_ROWS", 0)
    monkeypatch.setattr(work, "publish", published_and_killed)
    assert delegraph(*args).code == 130
    monkeypatch.undo()
    assert "already built" in ok(*args[:4], "--order", "none").err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["graph.dg", "graph.dg.run.json"]


def published_and_killed(*args):
    outputs.publish(*args)
    raise KeyboardInterrupt


@pytest.mark.parametrize("command_name", ["build", "bfs"])
def test_killed_before_the_record(ok, edges, tmp_path, command_name):
    """A run killed between its output and its record leaves work from which the same command writes
    the record.
    """
    source = ("--source", 0) if command_name == "bfs" else ()
    args = (command_name, edges, *source, "-o", tmp_path / "out")
    line = command(*args)
    killed = subprocess.run(
        [line[0], "-c", KILLED_BEFORE_THE_RECORD, *line[3:]], capture_output=True
    )
    assert killed.returncode == -signal.SIGKILL
    assert (tmp_path / "out").is_dir()
    assert not (tmp_path / "out.run.json").exists()
    assert "already" in ok(*args).err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "out.run.json"]


def test_what_is_not_ours_is_left_alone(ok, delegraph, edges, tmp_path):
    for name in (".graph.dg.old", ".graph.dg.work"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "thesis.tex").touch()
    assert delegraph("build", edges, "-o", tmp_path / "graph.dg").code == 2
    (tmp_path / ".graph.dg.work" / "thesis.tex").unlink()
    ok("build", edges, "-o", tmp_path / "graph.dg")
    assert (tmp_path / ".graph.dg.old" / "thesis.tex").exists()


def test_scratch_of_a_killed_run_is_found(ok, delegraph, edges, tmp_path, monkeypatch):
    """Scratch of a killed run is found, even where the next attempt has its scratch elsewhere."""
    (tmp_path / "scratch").mkdir()
    args = ("build", edges, "-o", tmp_path / "graph.dg")
    monkeypatch.setattr(build, "write_store", interrupt)
    assert delegraph(*args, "--scratch", tmp_path / "scratch").code == 130
    monkeypatch.undo()
    assert list((tmp_path / "scratch").iterdir())
    run = delegraph(*args)
    assert run.code == 2
    assert f"--scratch was {tmp_path}/scratch, now not given" in run.err
    ok(*args, "--restart")
    assert not list((tmp_path / "scratch").iterdir())


def test_built_already(ok, delegraph, edges, tmp_path):
    args = (edges, "-o", tmp_path / "graph.dg")
    ok("build", *args)
    before = digest(tmp_path)
    run = ok("build", *args, "--memory-limit", "4GB")
    assert "already built" in run.err
    assert digest(tmp_path) == before
    for choice, reason in (
        (("--directed",), "--directed was not given, now given"),
        (("--partitions", 2), "--partitions was 1, now 2"),
        (("--order", "none"), "--order was degree, now none"),
    ):
        run = delegraph("build", *args, *choice)
        assert run.code == 2
        assert reason in run.err
        assert digest(tmp_path) == before
    args = (edges, "-o", tmp_path / "grid.dg", "--layout", "2d")
    ok("build", *args, "--grid", "2x2")
    assert "already built" in ok("build", *args, "--partitions", 4).err
    run = delegraph("build", *args, "--grid", "1x4")
    assert (run.code, "--grid was 2x2, now 1x4" in run.err) == (2, True)


def test_searched_already(ok, delegraph, edges, tmp_path):
    args = ("bfs", edges, "-o", tmp_path / "out")
    first = ok(*args, "--source", 0, "--json")
    before = digest(tmp_path)
    rerun = ok(*args, "--source", 0, "--json")
    assert rerun.json == {**first.json, "already": True}
    run = delegraph(*args, "--source", 1)
    assert run.code == 2
    assert "--source was 0, now 1" in run.err
    assert digest(tmp_path) == before


def test_two_runs_to_one_output(delegraph, edges, tmp_path):
    out = tmp_path / "graph.dg"
    with begin_work(out, {}) as mine:
        (mine.scratch / "mine").touch()
        run = delegraph("build", edges, "-o", out)
        assert run.code == 75
        assert "another run is writing" in run.err
        assert (mine.scratch / "mine").exists()
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("scratch", [False, True])
def test_a_disk_that_fills(ok, delegraph, edges, tmp_path, scratch):
    """A disk that fills is told in one line; a limit on the size of files stands for the disk."""
    ok("build", edges, "-o", tmp_path / "graph.dg", "--order", "none")
    before = digest(tmp_path)
    place = tmp_path.parent / f"{tmp_path.name}-scratch"
    place.mkdir()
    where = ("--scratch", place) if scratch else ()
    line = command("build", edges, "-o", tmp_path / "graph.dg", "--overwrite", *where)
    for size in (50_000, 500_000, 3_000_000):
        run = subprocess.run(
            line,
            preexec_fn=lambda size=size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)),
            capture_output=True,
            text=True,
        )
        assert run.returncode == 1
        assert "no space left" in run.stderr
        assert "bytes are needed" in run.stderr
        assert f"the limit of {size:,} bytes (ulimit -f)" in run.stderr
        assert len(run.stderr.splitlines()) == 1
        paths = {p for p in tmp_path.iterdir() if not p.name.endswith(".work")}
        assert {path.name for path in paths} == {"graph.dg", "graph.dg.run.json"}
    run = subprocess.run(line, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert ("reused steps" in run.stderr) == scratch
    assert digest(tmp_path) != before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["graph.dg", "graph.dg.run.json"]
    assert not list(place.iterdir())


@pytest.mark.parametrize("scratch", [False, True])
def test_a_row_group_in_the_middle_that_cannot_be_read(delegraph, tmp_path, scratch):
    folder = tmp_path / "edges"
    folder.mkdir()
    rng = np.random.default_rng(1)
    for i in range(5):
        table = pa.table({name: rng.integers(0, 9000, 30_000) for name in ("src", "dst")})
        path = folder / f"part-{i}.parquet"
        pq.write_table(table, path, row_group_size=10_000, use_dictionary=False)
    path = folder / "part-2.parquet"
    column = pq.read_metadata(path).row_group(1).column(0)
    content = bytearray(path.read_bytes())
    at = column.data_page_offset
    content[at : at + column.total_compressed_size] = b"\xff" * column.total_compressed_size
    path.write_bytes(content)
    where = ("--scratch", tmp_path) if scratch else ()
    run = delegraph("build", folder, "-o", tmp_path / "graph.dg", *where)
    assert run.code == 2
    assert f"{path}: row group 1 cannot be read" in run.err
    assert [entry.name for entry in tmp_path.iterdir()] == ["edges"]


LEVELS_ON_DISK = (
    "import time; "
    "from delegraph.pipeline.algorithms import contractions as c; "
    "c.Contractions.fits = lambda *given: False; "
    "write = c.write_rows; "
    "c.write_rows = lambda *given: time.sleep(0.2) or write(*given); "
    "from delegraph.cli.main import run; run()"
)
"""A command whose levels of communities do not fit memory, and that waits once their pairs are on
disk.
"""


@pytest.fixture
def leiden_on_disk(ok, tmp_path) -> list[str]:
    """Return a command that asks for communities, with levels and scratch on disk."""
    src, dst = random_edges(5, 3000, 20_000)
    pq.write_table(pa.table({"src": src, "dst": dst}), tmp_path / "edges.parquet")
    ok("leiden", tmp_path / "edges.parquet", "-o", tmp_path / "wanted")
    (tmp_path / "scratch").mkdir()
    ok("build", tmp_path / "edges.parquet", "-o", tmp_path / "graph.dg")
    place = "-o", tmp_path / "out", "--scratch", tmp_path / "scratch"
    line = command("leiden", tmp_path / "graph.dg", *place)
    line[1:3] = ["-c", LEVELS_ON_DISK]
    return line


@pytest.mark.parametrize("name", [nightly("run-0"), slow("targets")])
def test_levels_on_disk_killed(leiden_on_disk, tmp_path, name):
    """A run that is killed while a level is made on disk, or read there, leaves files that the same
    command removes.
    """
    before = {path.name for path in tmp_path.iterdir()}
    scratch = tmp_path / "scratch"
    assert killed_at(leiden_on_disk, lambda: any(scratch.glob(f"*/delegraph-*/*/{name}")))
    run = subprocess.run(leiden_on_disk, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert digest(tmp_path / "out") == digest(tmp_path / "wanted")
    record = json.loads((tmp_path / "out.run.json").read_text())
    assert [level["on_disk"] for level in record["levels"][:2]] == [False, True]
    assert {path.name for path in tmp_path.iterdir()} == before | {"out", "out.run.json"}
    assert not list(scratch.iterdir())


@pytest.mark.parametrize("size", [nightly(10_000), slow(150_000)])
def test_levels_on_a_disk_that_fills(leiden_on_disk, tmp_path, size):
    """A disk that fills while a level is made is told in one line, and nothing is left."""
    before = {path for path in tmp_path.rglob("*") if path.is_file()}
    run = subprocess.run(
        leiden_on_disk,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)),
        capture_output=True,
        text=True,
    )
    assert run.returncode == 1, run.stderr
    assert f"the limit of {size:,} bytes (ulimit -f)" in run.stderr
    assert len(run.stderr.splitlines()) == 1
    assert {path for path in tmp_path.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("moment", [0.3, slow(0.6)])
def test_a_worker_that_dies(ok, tmp_path, moment):
    """A worker killed while it scatters or builds loses its tasks, which run again on the remaining
    workers.
    """
    ok("generate", "kronecker", "--scale", 16, "-o", tmp_path / "edges")
    ok("build", tmp_path / "edges", "-o", tmp_path / "wanted.dg")
    line = command("build", tmp_path / "edges", "-o", tmp_path / "graph.dg", "--workers", 2)
    process = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    workers = workers_of(process)
    scratch = tmp_path / ".graph.dg.work" / "scratch"
    wanted = "position-0.npy" if moment < 0.5 else "index-00000.npy"
    while process.poll() is None and not (scratch / wanted).exists():
        time.sleep(0.001)
    assert process.poll() is None
    os.kill(random.choice(workers), signal.SIGKILL)
    _, stderr = process.communicate()
    assert process.returncode == 0, stderr
    assert digest(tmp_path / "graph.dg") == digest(tmp_path / "wanted.dg")
    assert not list(tmp_path.glob(".*"))
