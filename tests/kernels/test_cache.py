"""Compiled kernels on disk: a damaged file is compiled anew, and an unwritable cache is not
needed.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType

import pytest
from numba import types
from numba.core import config
from numba.core.caching import IndexDataCacheFile

from delegraph.kernels.base import compiled


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(compiled, "notes", [])
    compiled._wanted.cache_clear()  # tests declare other kernels in one module
    return tmp_path / "cache"


def plus_one(value):
    return value + 1


def twice(value):
    return 2 * value


def compile_it() -> list[str]:
    """Compile and call a kernel as a new process does, and return the notes about the cache."""
    compiled.notes.clear()
    dispatcher = compiled.kernel(types.int64)(plus_one)
    dispatcher.compile((types.int64,))
    assert dispatcher(3) == 4
    return list(compiled.notes)


@pytest.mark.parametrize("size", [0, 20])
@pytest.mark.parametrize("kind", ["nbi", "nbc"])
def test_a_file_that_was_cut_off(cache, kind, size):
    assert compile_it() == []
    for path in cache.rglob(f"*.{kind}"):
        os.truncate(path, size)
    (note,) = compile_it()
    assert "damaged; compiling the kernels again" in note
    assert compile_it() == []


def test_code_that_has_changed(cache, tmp_path, monkeypatch):
    """A kernel is compiled again once any file that it may have code of has changed."""
    path = tmp_path / "pieces" / "some.py"
    path.parent.mkdir()
    path.write_text("1")
    monkeypatch.setattr(compiled, "_SHARED_FOLDERS", (str(path.parent),))

    def is_compiled() -> bool:
        """Return whether a new process compiles the kernel, and does not load it."""
        compiled.stamp_of.cache_clear()
        dispatcher = compiled.kernel(types.int64)(plus_one)
        dispatcher.compile((types.int64,))
        return sum(dispatcher.stats.cache_misses.values()) > 0

    assert is_compiled()
    assert not is_compiled()
    path.write_text("22")
    assert is_compiled()
    assert not is_compiled()
    compiled.stamp_of.cache_clear()


def full(*args):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_disk_that_is_full(cache, monkeypatch):
    monkeypatch.setattr(IndexDataCacheFile, "_save_data", full)
    (note,) = compile_it()
    assert f"{cache}/" in note
    assert "cannot be cached: No space left" in note


def test_a_damaged_one_that_cannot_be_replaced(cache, monkeypatch):
    compile_it()
    for path in cache.rglob("*.nbi"):
        os.truncate(path, 1)
    monkeypatch.setattr(IndexDataCacheFile, "_save_index", full)
    (note,) = compile_it()
    assert "damaged" in note


def test_no_folder_for_it(cache, monkeypatch):
    monkeypatch.setattr(compiled.FunctionCache._impl_class, "_locator_classes", [])
    assert compile_it() == []


DECLARED = ModuleType("declared")


def test_what_another_process_compiles_is_loaded(cache, monkeypatch):
    theirs, ours = compiled.kernel(types.int64)(plus_one), compiled.kernel(types.int64)(plus_one)
    signature = (types.int64,)
    monkeypatch.setitem(compiled._declared, DECLARED.__name__, [(ours, signature)])
    lock = theirs._cache.lock(0)
    assert lock is not None

    def compile_there() -> None:
        theirs.compile(signature)
        os.close(lock)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(time.sleep, 0.1)
        future = pool.submit(compile_there)
        compiled.compile_kernels(DECLARED)
        future.result()
    assert sum(ours.stats.cache_hits.values()) == 1
    assert not ours.stats.cache_misses
    assert ours(3) == 4


def test_a_process_that_is_stuck_is_not_waited_for(cache, monkeypatch):
    """A kernel that another, stuck process compiles comes last, and is then compiled here, too."""
    dispatchers = [compiled.kernel(types.int64)(function) for function in (plus_one, twice)]
    wanted = [(dispatcher, (types.int64,)) for dispatcher in dispatchers]
    monkeypatch.setitem(compiled._declared, DECLARED.__name__, wanted)
    monkeypatch.setattr(compiled, "_PATIENCE", 0.1)
    order, compile_one = [], compiled._compile

    def noted(dispatcher, *signature):
        did = compile_one(dispatcher, *signature)
        order.append((dispatcher.__name__, did))
        return did

    monkeypatch.setattr(compiled, "_compile", noted)
    lock = dispatchers[0]._cache.lock(0)
    assert lock is not None
    compiled.compile_kernels(DECLARED)
    os.close(lock)
    assert order == [("plus_one", False), ("twice", True), ("plus_one", False)]
    assert [dispatcher(3) for dispatcher in dispatchers] == [4, 6]
    assert all(len(dispatcher.signatures) == 1 for dispatcher in dispatchers)


def test_without_locks(cache, monkeypatch):
    """Kernels compile without locks, as on a file system that has none."""
    dispatcher = compiled.kernel(types.int64)(plus_one)
    monkeypatch.setitem(compiled._declared, DECLARED.__name__, [(dispatcher, (types.int64,))])
    monkeypatch.setattr(fcntl, "flock", full)
    compiled.compile_kernels(DECLARED)
    assert dispatcher(3) == 4
