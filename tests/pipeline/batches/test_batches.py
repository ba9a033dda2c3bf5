"""Batches that run, end, fail and resume."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
from pathlib import Path

import psutil
import pytest

from delegraph.partition.disk.work import begin_work
from delegraph.partition.errors import InputError
from delegraph.pipeline.batches import run as batches
from delegraph.pipeline.batches.ledger import Entry, open_ledger, try_of, with_cut_off
from support.graphs import random_edges
from support.marks import mostly_slow
from support.outputs import digest
from support.processes import command, wait_until

JOBS = """
[defaults]
memory_limit = "600MB"

[[job]]
name = "store"
command = "build"
edges = "edges.parquet"
output = "graph.dg"

[[job]]
name = "parts"
command = "components"
graph = "graph.dg"
output = "out/{run}/parts"
needs = ["store"]

[[job]]
name = "check"
command = "validate"
graph = "graph.dg"
result = "out/{run}/parts"
needs = ["parts"]
"""

LONG = """
[[job]]
name = "long"
command = "pagerank"
graph = "edges.parquet"
output = "long"
iterations = 1000000000
"""


@pytest.fixture
def folder(edge_list, tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    edge_list(*random_edges(1, 300, 900))
    (tmp_path / "jobs.toml").write_text(JOBS)
    return tmp_path


def states(delegraph) -> dict[str, str]:
    status = delegraph("batch", "status", "jobs.toml", "--json").json
    return {job["name"]: job["state"] for job in status["jobs"]}


RUN = ("batch", "run", "jobs.toml", "--set", "run=1")


@pytest.mark.slow
def test_what_is_done_is_not_done_again(ok, delegraph, edge_list, folder):
    planned = ok("batch", "plan", *RUN[2:]).out
    assert "parts  runs within 600 MB: after store" in planned
    run = ok(*RUN)
    assert run.out == "3 of 3 jobs done\n"
    assert run.err.splitlines()[0] == "store: begun"
    entries = json.loads(ok("batch", "status", "jobs.toml", "--json").out)["jobs"]
    assert [entry["attempts"] for entry in entries] == [1, 1, 1]
    assert all(entry["peak_bytes"] > 0 and entry["exit_code"] == 0 for entry in entries)
    assert '"event": "end", "exit_code": 0' in ok("batch", "logs", "jobs.toml", "check").out
    before = digest(folder / "out")
    assert ok(*RUN).err.splitlines() == [f"{name}: done already" for name in states(delegraph)]
    # Other edges: all that is made of them is made anew, in place of what the batch had written.
    edge_list(*random_edges(2, 300, 900))
    planned = ok("batch", "plan", *RUN[2:]).out
    assert "store  runs within 600 MB: its options or its inputs have changed" in planned
    run = ok(*RUN)
    assert "store: begun" in run.err
    assert "check: done in" in run.err
    assert digest(folder / "out") != before


@pytest.mark.slow
def test_another_output_is_another_question(ok, folder):
    ok(*RUN)
    args = (*RUN[:-1], "run=2")
    assert "its options or its inputs have changed" in ok("batch", "plan", *args[2:]).out
    assert "store: done already\nparts: begun\n" in ok(*args).err
    ok("batch", "retry", "jobs.toml", "parts", "--set", "run=2")
    assert "store: done already\nparts: begun\n" in ok(*args).err
    assert list(states(ok)) == ["store", "parts", "check"]


@pytest.mark.slow
def test_nothing_of_others_is_replaced(ok, delegraph, folder):
    """An output that another command wrote is replaced neither by a job with an earlier output of
    its own, nor after a job was cut off.
    """
    (folder / "jobs.toml").write_text(JOBS.split('[[job]]\nname = "check"')[0])
    ok(*RUN)
    ok("bfs", "graph.dg", "--source", 1, "-o", folder / "out" / "2")
    before = digest(folder / "out" / "2")
    (folder / "jobs.toml").write_text(
        (folder / "jobs.toml").read_text().replace("{run}/parts", "2")
    )
    run = delegraph(*RUN)
    assert run.code == 1
    assert "parts: failed: " in run.err
    assert digest(folder / "out" / "2") == before
    # Done, but killed before the ledger has it: it is the batch's all the same.
    ledger = sqlite3.connect(folder / "jobs.toml.batch" / "ledger.sqlite")
    ledger.executescript("update jobs set state = 'running', key = 'other' where name = 'store'")
    ledger.close()
    assert "cut off" in ok("batch", "status", "jobs.toml").out
    assert "store: done in" in delegraph(*RUN).err


def test_a_job_that_cannot_begin(delegraph, folder):
    (folder / "file").touch()
    text = JOBS.replace("out/{run}/parts", "file/parts")
    (folder / "jobs.toml").write_text(text.split('[[job]]\nname = "check"')[0])
    run = delegraph(*RUN, "--quiet")
    assert (run.code, run.out) == (1, "1 of 2 jobs done\n")
    assert run.err.startswith("parts: failed: ")
    assert "file is not a folder: " in run.err
    assert states(delegraph) == {"store": "done", "parts": "failed"}


@pytest.mark.slow
def test_a_failure_leaves_out_what_needs_it(delegraph, folder):
    """A failure leaves out the jobs that need the failed one, and a file that no job has written is
    not replaced.
    """
    (folder / "out" / "1" / "parts").mkdir(parents=True)
    (folder / "out" / "1" / "parts" / "mine").touch()
    other = '[[job]]\nname = "other"\ncommand = "report"\npath = "graph.dg"\noutput = "o.html"\n'
    (folder / "jobs.toml").write_text(JOBS + other + 'needs = ["store"]\n')
    run = delegraph(*RUN)
    assert (run.code, run.out) == (1, "2 of 4 jobs done\n")
    assert "parts: failed: " in run.err
    assert "check: left out: parts failed" in run.err
    assert states(delegraph) == {
        "store": "done",
        "parts": "failed",
        "check": "left out",
        "other": "done",
    }
    assert (folder / "out" / "1" / "parts" / "mine").exists()
    (folder / "out" / "1" / "parts" / "mine").unlink()
    (folder / "out" / "1" / "parts").rmdir()
    run = delegraph(*RUN)
    assert (run.code, run.out) == (0, "4 of 4 jobs done\n")
    assert "other: done already" in run.err


@pytest.mark.slow
def test_tried_again_where_that_helps(delegraph, folder, monkeypatch):
    """A job whose output another run holds is tried again; a job with bad input is not."""
    monkeypatch.setattr(batches, "_PAUSE_SECONDS", 0.1)
    (folder / "jobs.toml").write_text(JOBS.replace("[defaults]", "[defaults]\nretries = 1"))
    with begin_work(folder / "graph.dg", {}):
        run = delegraph(*RUN)
    assert run.code == 1
    assert "graph.dg at this moment: wait for it, or name another output; next try in" in run.err
    assert "store: begun, try 2" in run.err
    assert "store: failed" in run.err
    job = json.loads(delegraph("batch", "status", "jobs.toml", "--json").out)["jobs"][0]
    assert (job["attempts"], job["exit_code"]) == (2, 75)
    assert delegraph(*RUN).code == 0
    # Bad input is not tried again.
    (folder / "jobs.toml").write_text(
        JOBS.replace("[defaults]", '[defaults]\nretries = 9\nsrc = "x"')
    )
    run = delegraph(*RUN)
    assert run.code == 1
    assert "try" not in run.err


@pytest.mark.slow
def test_a_job_that_takes_too_long(delegraph, folder):
    text = JOBS + LONG + 'timeout = "2s"\nretries = 3\n'
    (folder / "jobs.toml").write_text(text)
    run = delegraph(*RUN, "--jobs", 2)
    assert (run.code, run.out) == (1, "3 of 4 jobs done\n")
    assert "long: failed: did not end within its timeout of 2 s" in run.err
    assert run.err.count("long: begun") == 1


def running_jobs(process: subprocess.Popen) -> list[psutil.Process]:
    return psutil.Process(process.pid).children()


@pytest.mark.parametrize("number", mostly_slow([signal.SIGTERM, signal.SIGKILL], signal.SIGKILL))
def test_jobs_end_with_their_batch(delegraph, folder, number):
    """Jobs end with their batch and save their work, even where a killed batch cannot tell them
    to.
    """
    (folder / "jobs.toml").write_text(LONG + "checkpoint = 1\n")
    line = command(*RUN, "--memory-limit", "1GB")
    with subprocess.Popen(line, stderr=subprocess.PIPE, text=True) as process:
        wait_until(lambda: any(folder.glob(".long.work/**/search.json")))
        (job,) = running_jobs(process)
        busy = delegraph(*RUN)
        assert busy.code == 75
        assert "jobs.toml at this moment: wait for it" in busy.err
        process.send_signal(number)
        process.communicate(timeout=60)
    assert process.returncode == (143 if number == signal.SIGTERM else -signal.SIGKILL)
    wait_until(lambda: not job.is_running() or job.status() == psutil.STATUS_ZOMBIE)
    log = (folder / "jobs.toml.batch" / "long.log").read_text()
    end = json.loads(log.splitlines()[-1])
    assert end["exit_code"] == 143
    assert "is saved" in end["error"]
    assert states(delegraph)["long"] == ("waiting" if number == signal.SIGTERM else "cut off")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_every_try_is_told(ok, delegraph, folder, number):
    """Every try of a job is told: one whose batch was killed or ended, and the next one."""
    (folder / "jobs.toml").write_text(LONG + "checkpoint = 1\n")
    line = command(*RUN, "--memory-limit", "1GB")
    with subprocess.Popen(line, stderr=subprocess.PIPE, text=True) as process:
        wait_until(lambda: any(folder.glob(".long.work/**/search.json")))
        (job,) = running_jobs(process)
        process.send_signal(number)
        process.communicate(timeout=60)
    wait_until(lambda: not job.is_running() or job.status() == psutil.STATUS_ZOMBIE)
    how = "cut off" if number == signal.SIGKILL else "ended"
    (first_run,) = delegraph("batch", "status", "jobs.toml", "--json").json["jobs"]
    assert [one["state"] for one in first_run["tries"]] == [how]
    (folder / "jobs.toml").write_text(LONG.replace("1000000000", "3"))
    (run,) = ok(*RUN, "--json").json["jobs"]
    first, last = run["tries"]
    assert (first["state"], first["began"]) == (how, first_run["began"])
    assert (first["ended"] is None) == (number == signal.SIGKILL)
    assert last == {name: run[name] for name in last}
    status = ok("batch", "status", "jobs.toml").out.splitlines()
    assert status[0].startswith("long  done      2 tries  ")
    assert status[1].startswith(f"      {how:8}  try 1, began {first_run['began'][:19]}")
    assert len(status) == 2
    ok("report", "jobs.toml", "-o", "page.html")
    assert "Tries before the last one of each job" in (folder / "page.html").read_text()
    # What is made anew after it was done has tries of its own.
    (folder / "jobs.toml").write_text(LONG.replace("1000000000", "4"))
    (run,) = ok(*RUN, "--json").json["jobs"]
    assert [one["state"] for one in run["tries"]] == ["done"]


def test_tries_that_are_kept(tmp_path, monkeypatch):
    """A ledger keeps a job's last tries since the job was last done; an older ledger without a
    table of tries has none.
    """
    monkeypatch.setattr("delegraph.pipeline.batches.ledger._MOST_TRIES", 5)
    path = tmp_path / "ledger.sqlite"
    entry = Entry("a", "running", attempts=1)
    with open_ledger(path, write=True) as ledger:
        for second in range(9):
            entry = entry._replace(began=f"2026-07-01T00:00:0{second}.000+00:00")
            ledger.put(entry, tried=try_of(entry, "running"))
            ledger.put(entry, tried=try_of(entry, "failed"))
        assert [len(rows) for rows in ledger.tries().values()] == [5]
        assert ledger.tries()["a"][-1].began == entry.began
        ledger.put(entry, tried=try_of(entry, "done"))
        assert ledger.tries()["a"][-1].state == "done"
        entry = entry._replace(began="2026-07-02T00:00:00+00:00")
        ledger.put(entry, tried=try_of(entry, "running"))
        assert [one.state for one in ledger.tries()["a"]] == ["running"]
        assert with_cut_off(ledger.tries()["a"])[0].state == "cut off"
        ledger.keep_only(set())
        assert not ledger.tries()
    sqlite3.connect(path).executescript("drop table tries")
    with open_ledger(path, write=False) as ledger:
        assert ledger.tries() == {}
    with open_ledger(path, write=True) as ledger:
        ledger.put(entry, tried=try_of(entry, "failed"))
        assert ledger.tries()["a"][0].state == "failed"


def test_jobs_whose_limits_do_not_fit_together(ok, folder):
    """Jobs whose memory limits do not fit together run one by one, which a plan and a run say."""
    two = "".join(
        f'[[job]]\nname = "{name}"\ncommand = "components"\ngraph = "edges.parquet"\n'
        f'output = "{name}"\nmemory_limit = "600MB"\n'
        for name in "abc"
    )
    (folder / "jobs.toml").write_text(two + 'needs = ["b"]\n')
    reason = "together they may take 1.20 GB, but the batch may use 1.00 GB: raise --memory-limit"
    with_two = (*RUN[2:], "--jobs", 2, "--memory-limit", "1GB")
    assert [line for line in ok("batch", "plan", *with_two).out.splitlines() if reason in line] == [
        f"b  not at the same time as a: {reason}, or lower those of the jobs",
        f"c  not at the same time as a: {reason}, or lower those of the jobs",
    ]
    planned = ok("batch", "plan", *with_two, "--json").json["jobs"]
    assert [job["not_beside"] for job in planned] == [[], ["a"], ["a"]]
    run = ok("batch", "run", *with_two)
    assert f"b: waits for a: {reason}, or lower those of the jobs" in run.err
    assert run.err.count("waits for") == 1  # the third one waits for what it needs
    for enough in (("--jobs", 2, "--memory-limit", "1.2GB"), ("--memory-limit", "1GB")):
        assert "not at the same time" not in ok("batch", "plan", *RUN[2:], *enough).out


def test_a_job_is_waited_for(ok, folder):
    """``batch logs --follow`` follows a job's log from before the job begins until the job has
    ended.
    """
    text = LONG.replace("1000000000", "3000") + JOBS.partition("\n\n")[2]
    (folder / "jobs.toml").write_text(
        text.replace('output = "graph.dg"', 'output = "graph.dg"\nneeds = ["long"]')
    )
    nowhere = subprocess.DEVNULL
    with subprocess.Popen(command(*RUN), stdout=nowhere, stderr=nowhere) as process:
        wait_until((folder / "jobs.toml.batch" / "long.log").exists)
        log = ok("batch", "logs", "jobs.toml", "check", "--follow").out
        process.wait(timeout=60)
    assert json.loads(log.splitlines()[-1])["exit_code"] == 0


def test_several_variables(ok, folder):
    text = JOBS.replace("out/{run}", "out/{run}/{part}-{date}")
    (folder / "jobs.toml").write_text(text)
    ok(*RUN, "--set", "part=a", "--set", "date=today")
    assert (folder / "out/1/a-today/parts").exists()


MORE = """
[[job]]
name = "{0}"
command = "{1}"
graph = "graph.dg"
output = "out/{0}"
needs = ["store"]
{2}
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_killed_again_and_again(ok, delegraph, folder, monkeypatch, request, number):
    """Each job of a batch killed at random moments is done in the end, once for its inputs, and
    nothing is left over. A batch that ends before the kill begins anew: every kill meets jobs that
    run. A batch that is told to end does so within 30 s.
    """
    kills = request.config.getoption("kills") or 6
    kinds = [
        ("bfs", "source = 1"),
        ("components", ""),
        ("pagerank", ""),
        ("closeness", "sources = 20"),
        ("betweenness", "sources = 5"),
        ("eccentricity", "sources = 9"),
    ]
    monkeypatch.setattr(batches, "_PAUSE_SECONDS", 0.5)
    jobs = "".join(MORE.format(kind, kind, more) for kind, more in kinds)
    # Jobs whose batch has died still save when the next one begins: their outputs are theirs then.
    (folder / "jobs.toml").write_text(JOBS.replace("[defaults]", "[defaults]\nretries = 5") + jobs)
    ok("build", "edges.parquet", "-o", "wanted.dg")
    rng = random.Random(1)
    hits = 0
    while hits < kills:
        line = command(*RUN, "--jobs", 3, "--memory-limit", "2GB")
        with subprocess.Popen(
            line, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        ) as process:
            try:
                assert process.wait(rng.uniform(0.3, 4)) == 0
            except subprocess.TimeoutExpired:
                process.send_signal(number)
                code = process.wait(30)
                assert code in (0, -number, 143)  # at an end; before it hears, or as it is killed
                hits += code != 0
                continue
        ok("batch", "retry", "jobs.toml", "store", *RUN[3:])  # all of it, once more
    run = delegraph(*RUN, "--jobs", 3, "--memory-limit", "2GB")
    assert (run.code, run.out) == (0, "9 of 9 jobs done\n"), run.err
    assert set(states(delegraph).values()) == {"done"}
    assert digest(folder / "graph.dg") == digest(folder / "wanted.dg")
    for kind, _ in kinds:
        ok("validate", "graph.dg", folder / "out" / kind)
    assert not list(folder.rglob(".*"))


@pytest.mark.slow
def test_an_output_that_is_not_its_own(ok, delegraph, folder):
    """A changed output is not taken for the job's own, nor replaced."""
    ok(*RUN)
    out = folder / "out" / "1" / "parts"
    (part,) = out.glob("*.parquet")
    data = part.read_bytes()
    part.write_bytes(data[:-1])
    plan = ok("batch", "plan", *RUN[2:]).out.splitlines()
    assert plan[1].endswith("its output has changed since the job wrote it")
    run = delegraph(*RUN)
    assert run.code == 1
    assert "parts: failed: " in run.err
    assert part.read_bytes() == data[:-1]
    part.write_bytes(data)
    ok(*RUN)
    assert part.read_bytes() == data


def test_an_output_that_is_another_ones_after_a_failure(ok, delegraph, folder, edge_list):
    """A failed job replaces only the output that it made before, not one that another command wrote
    since.
    """
    search = '[[job]]\nname = "s"\ncommand = "bfs"\ngraph = "e.parquet"\noutput = "o"\nsource = 0\n'
    (folder / "s.toml").write_text(search)
    run = ("batch", "run", "s.toml")
    edge_list([0, 4], [4, 5]).rename(folder / "e.parquet")
    ok(*run)
    edge_list([4], [5]).rename(folder / "e.parquet")
    assert "source 0 is not a vertex" in delegraph(*run).err
    edge_list([0, 4], [4, 6]).rename(folder / "e.parquet")
    ok(*run)  # what it has made before it failed is its own
    edge_list([4], [5]).rename(folder / "e.parquet")
    delegraph(*run)
    ok("bfs", "e.parquet", "--source", 4, "-o", "o", "--overwrite")
    theirs = digest(folder / "o")
    edge_list([0, 4], [4, 5]).rename(folder / "e.parquet")
    assert "o exists" in delegraph(*run).err
    assert digest(folder / "o") == theirs


def test_an_output_that_cannot_be_looked_at(ok, delegraph, folder, monkeypatch):
    """A job is done although its output cannot be looked at, and the batch's other jobs go on."""

    def looks(output: str) -> str:
        raise InputError("the object store does not answer")

    with monkeypatch.context() as patch:
        patch.setattr(batches, "looks_of", looks)
        assert ok(*RUN).out == "3 of 3 jobs done\n"
    assert ok("batch", "plan", *RUN[2:]).out.count("is done") == 3


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda path: path.write_bytes(b"no ledger" * 1000), "damaged, or not a ledger"),
        (
            lambda path: sqlite3.connect(path).executescript("update batch set version = 99"),
            "a ledger of version 99",
        ),
        (lambda path: sqlite3.connect(path).executescript("drop table jobs"), "no such table"),
    ],
)
def test_a_ledger_that_is_not_ours(ok, delegraph, folder, damage, reason):
    (folder / "jobs.toml").write_text(JOBS.split('[[job]]\nname = "parts"')[0])
    ok(*RUN)
    ledger = folder / "jobs.toml.batch" / "ledger.sqlite"
    damage(ledger)
    before = ledger.read_bytes()
    for args in (RUN, ("batch", "status", "jobs.toml")):
        run = delegraph(*args)
        assert run.code in (1, 2)
        assert reason in run.err
        assert len(run.err.splitlines()) == 1
    assert ledger.read_bytes() == before


def test_a_batch_that_asks_for_too_much(delegraph, folder):
    run = delegraph(*RUN, "--memory-limit", "500MB")
    assert run.code == 2
    assert "'store' asks for 600 MB, but the batch may use 500 MB" in run.err
    assert delegraph("batch", "status", "jobs.toml").code == 2
    assert delegraph("batch", "run", "nothing.toml").code == 2
    assert delegraph(*RUN[:3], "--set", "run").code == 2
    assert not os.path.exists("jobs.toml.batch")
