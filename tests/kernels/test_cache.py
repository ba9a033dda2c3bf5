"""Compiled kernels on disk: what is damaged is made anew, what cannot be kept is not needed."""

from __future__ import annotations

import errno
import os

import pytest
from numba import types
from numba.core import config
from numba.core.caching import IndexDataCacheFile

from delegraph.kernels.base import compiled


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(compiled, "notes", [])
    return tmp_path / "cache"


def plus_one(value):
    return value + 1


def compile_it() -> list[str]:
    """As a new process does, and call it; what there is to tell."""
    compiled.notes.clear()
    dispatcher = compiled.compiled(plus_one)
    dispatcher.compile((types.int64,))
    assert dispatcher(3) == 4
    return list(compiled.notes)


@pytest.mark.parametrize("kept", [0, 20])
@pytest.mark.parametrize("kind", ["nbi", "nbc"])
def test_a_file_that_was_cut_off(cache, kind, kept):
    assert compile_it() == []
    for path in cache.rglob(f"*.{kind}"):
        os.truncate(path, kept)
    (told,) = compile_it()
    assert "damaged; kernels are compiled anew" in told
    assert compile_it() == []


def full(*args):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_disk_that_is_full(cache, monkeypatch):
    monkeypatch.setattr(IndexDataCacheFile, "_save_data", full)
    (told,) = compile_it()
    assert f"{cache}/" in told
    assert "not kept: No space left" in told


def test_a_damaged_one_that_cannot_be_replaced(cache, monkeypatch):
    compile_it()
    for path in cache.rglob("*.nbi"):
        os.truncate(path, 1)
    monkeypatch.setattr(IndexDataCacheFile, "_save_index", full)
    (told,) = compile_it()
    assert "damaged" in told


def test_no_folder_for_it(cache, monkeypatch):
    monkeypatch.setattr(compiled.FunctionCache._impl_class, "_locator_classes", [])
    assert compile_it() == []
