"""Threads that start, threads that fail to start, and the number of threads that is of use."""

from __future__ import annotations

import subprocess
import sys
import threading
from functools import partial

import pytest

from delegraph.kernels.base import threads
from delegraph.kernels.base.team import Team

FAILING = """
import sys, threading
from concurrent.futures import ThreadPoolExecutor
from delegraph.kernels.base import threads

threads.START_SECONDS = {seconds}
threads.bound_thread_starts()

def fails(thread):
    {how}

threading.Thread._bootstrap_inner = fails
try:
    {begin}
except RuntimeError as error:
    print(error)
"""
BEGIN = ["threading.Thread(target=print).start()", "ThreadPoolExecutor(1).submit(print)"]


@pytest.mark.parametrize("begin", BEGIN)
@pytest.mark.parametrize(("how", "seconds"), [("raise MemoryError", 600), ("pass", 0.1)])
def test_a_thread_that_does_not_begin(begin, how, seconds):
    """A thread that cannot start raises an error, where Python's own ``start`` waits without end;
    the test replaces ``start`` in a process of its own.
    """
    program = FAILING.format(how=how, seconds=seconds, begin=begin) + "sys.stdout.flush()\n"
    program += "import os; os._exit(0)\n"  # a pool's lock is held, and its threads are waited for
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
    )
    assert run.stdout == "can't start new thread: no memory for its first steps\n", run.stderr
    assert "Traceback" not in run.stderr


@pytest.mark.parametrize("what", ["start", "run"])
def test_a_team_that_is_not_complete(monkeypatch, what):
    """A team that cannot start all its threads ends the work of the started ones before it raises,
    and waits for no other.
    """
    start, started = threading.Thread.start, []

    def few(thread):
        if len(started) == 2:
            gate.set()
            raise RuntimeError(threads.CANNOT_START)
        started.append(thread)
        start(thread)

    team, gate = Team(4), threading.Event()

    def work():
        assert gate.wait(30)

    monkeypatch.setattr(threading.Thread, "start", few)
    begin = team.start if what == "start" else partial(team.run, work)
    with pytest.raises(RuntimeError, match="can't start"):
        begin()
    del begin
    del team
    for thread in started:
        thread.join(30)
        assert not thread.is_alive()


def test_how_many_are_of_use(monkeypatch):
    monkeypatch.setattr(threads, "available_threads", lambda: 3)
    assert [threads.useful_threads(limit) for limit in (None, 1, 64, 65, 10**5)] == [
        3,
        1,
        64,
        64,
        64,
    ]
    monkeypatch.setattr(threads, "available_threads", lambda: 100)
    assert [threads.useful_threads(limit) for limit in (None, 300, 10**5)] == [100, 300, 400]
