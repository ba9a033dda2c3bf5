"""A team whose threads fail: all threads have ended when the caller gets the error."""

from __future__ import annotations

import gc
import os
import threading
import time
import weakref

import pytest

from delegraph.kernels.base.team import Team

THREADS = 3


@pytest.mark.parametrize("caller_fails", [True, False])
def test_all_are_done_before_an_error_is_raised(caller_fails):
    caller, running = threading.get_ident(), []
    barrier = threading.Barrier(THREADS)

    def kernel() -> None:
        running.append(threading.get_ident())
        barrier.wait(10)
        if (threading.get_ident() == caller) == caller_fails:
            running.remove(threading.get_ident())
            raise ValueError("no")
        time.sleep(0.2)  # at what the caller would close
        running.remove(threading.get_ident())

    with pytest.raises(ValueError, match="no"):
        Team(THREADS).run(kernel)
    assert not running


def test_threads_that_are_begun_do_the_work():
    before = set(threading.enumerate())
    team = Team(THREADS).start()
    started_threads = set(threading.enumerate()) - before
    assert len(started_threads) == THREADS - 1
    together = threading.Barrier(THREADS)

    def kernel() -> threading.Thread:
        together.wait(10)
        return threading.current_thread()

    assert set(team.run(kernel)) == {*started_threads, threading.current_thread()}


def test_the_first_error_is_raised():
    caller, failed = threading.get_ident(), threading.Event()

    def kernel() -> None:
        if threading.get_ident() == caller:
            failed.wait(10)
            raise ValueError("in consequence")
        failed.set()
        raise OSError("first")

    with pytest.raises(OSError, match="first"):
        Team(2).run(kernel)


def test_items_that_are_begun_are_done():
    starts, ended = set(), set()
    both = threading.Barrier(2)

    def work(item: int) -> None:
        starts.add(item)
        both.wait(10)
        if item == 0:
            raise ValueError("no")
        time.sleep(0.2)
        ended.add(item)

    with pytest.raises(ValueError, match="no"):
        Team(2).map(work, range(100))
    assert starts == {0, 1}  # nothing more is begun
    assert ended == {1}


def test_an_error_keeps_nothing_that_the_kernel_held():
    """An error frees the arrays of its kernel at once, not at the next garbage collection: a caller
    may then try with less memory.
    """

    class Held:
        pass

    refs: list[weakref.ref[Held]] = []
    both = threading.Barrier(2)

    def kernel() -> None:
        value = Held()
        both.wait(10)
        refs.append(weakref.ref(value))
        raise ValueError("no")

    gc.disable()
    try:
        with pytest.raises(ValueError, match="no") as raised:
            Team(2).run(kernel)
        del raised
        assert [ref() for ref in refs] == [None, None]
    finally:
        gc.enable()


@pytest.mark.parametrize("threads", [1, 2, THREADS])
def test_a_stream_keeps_the_order(threads):
    taken, used = [], []

    def items():
        for i in range(20):
            taken.append(i)
            yield i

    def square(i: int) -> int:
        time.sleep(0.001 * (i % 3))
        return i * i

    for result in Team(threads).stream(square, items()):
        used.append(result)
        assert len(taken) - len(used) < threads
    assert used == [i * i for i in range(20)]


def test_a_stream_that_fails_leaves_nothing_running():
    running = []

    def work(i: int) -> None:
        if i == 1:
            raise ValueError("no")
        running.append(i)
        time.sleep(0.05)
        running.remove(i)

    with pytest.raises(ValueError, match="no"):
        list(Team(THREADS).stream(work, range(9)))
    assert not running


def test_a_process_that_is_forked_off_has_threads_of_its_own():
    team, both = Team(2).start(), threading.Barrier(2)
    child = os.fork()
    if not child:
        os._exit(len(team.run(both.wait, 10)) if team.map(abs, [-1, -2]) == [1, 2] else 9)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2
    assert len(team.run(both.wait, 10)) == 2


def test_a_thread_that_comes_late_does_not_call():
    team, busy, go_on = Team(2).start(), threading.Event(), threading.Event()
    held = team.stream(lambda _: busy.set() or go_on.wait(10), [0, 1])
    reader = threading.Thread(target=list, args=(held,))
    reader.start()
    busy.wait(10)  # the other thread works at something else
    assert team.run(threading.get_ident) == [threading.get_ident()]
    go_on.set()
    reader.join(10)
    assert not reader.is_alive()


def test_a_call_that_comes_late_holds_nothing():
    class Held:
        pass

    team, busy, go_on = Team(2).start(), threading.Event(), threading.Event()
    held = team.stream(lambda _: busy.set() or go_on.wait(10), [0, 1])
    reader = threading.Thread(target=list, args=(held,))
    reader.start()
    busy.wait(10)  # the other thread takes the next call later
    value = Held()
    ref = weakref.ref(value)
    team.run(lambda value: None, value)
    del value
    assert ref() is None
    go_on.set()
    reader.join(10)


def test_a_stream_that_fails_keeps_nothing_that_it_held():
    class Held:
        pass

    refs: list[weakref.ref[Held]] = []

    def work(_: int) -> None:
        value = Held()
        refs.append(weakref.ref(value))
        raise ValueError("no")

    gc.disable()
    try:
        with pytest.raises(ValueError, match="no") as raised:
            list(Team(2).stream(work, [0]))
        del raised
        assert [ref() for ref in refs] == [None]
    finally:
        gc.enable()


def test_threads_end_with_their_team():
    before = set(threading.enumerate())
    team = Team(THREADS).start()
    started = set(threading.enumerate()) - before
    del team
    for thread in started:
        thread.join(10)
    assert not any(thread.is_alive() for thread in started)
