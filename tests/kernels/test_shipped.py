"""Kernels that come with the package: taken where they suit, and compiled anew where not."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from numba import types
from numba.core import config

from delegraph.kernels.base import compiled, shipped

SIGNATURE = (types.int64,)


def plus_two(value):
    return value + 2


def compile_it():
    """Compile and call a kernel as a new process does. Returns how many kernels were compiled."""
    dispatcher = compiled.kernel(*SIGNATURE)(plus_two)
    compiled.compile_kernels(dispatcher)
    assert dispatcher(3) == 5
    return sum(dispatcher.stats.cache_misses.values())


@pytest.fixture
def file(tmp_path, monkeypatch):
    """The file of a package that has one kernel, in a process whose cache is empty."""
    monkeypatch.setattr(shipped, "runs_here", lambda: True)
    monkeypatch.setattr(shipped, "FILE", tmp_path / "shipped.bin")
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "written"))
    monkeypatch.setattr(compiled, "notes", [])
    monkeypatch.setattr(compiled, "_declared", {})
    monkeypatch.setattr(compiled, "_wanted_so_far", {})
    read = shipped._entries
    read.cache_clear()
    assert compile_it() == 1
    assert shipped.write(shipped.FILE, compiled.cached_kernels()) == 1
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "empty"))
    read.cache_clear()
    yield shipped.FILE
    read.cache_clear()


def test_a_kernel_is_loaded(file):
    assert shipped.has(plus_two, SIGNATURE)
    assert not shipped.has(plus_two, (types.int32,))
    assert compile_it() == 0
    assert compiled.notes == []
    assert not list(file.parent.glob("empty/**/*.nbc"))


def test_it_is_loaded_where_nothing_can_be_kept(file, monkeypatch):
    monkeypatch.setattr(compiled.FunctionCache._impl_class, "_locator_classes", [])
    dispatcher = compiled.kernel(*SIGNATURE)(plus_two)
    assert compiled._is_kept(dispatcher, SIGNATURE)
    assert dispatcher._cache.load_overload(SIGNATURE, dispatcher.targetctx) is not None


@pytest.mark.parametrize("key", ["sources", "baseline", "python", "numba", "llvmlite"])
def test_a_file_of_something_else_is_left_alone(file, monkeypatch, key):
    """A file of other sources, another Python or another Numba is not used."""
    suits = {**shipped._suits(), key: "another"}
    monkeypatch.setattr(shipped, "_suits", lambda: suits)
    assert compile_it() == 1
    assert compiled.notes == []


def test_another_processor(file, monkeypatch):
    monkeypatch.setattr(shipped, "runs_here", lambda: False)
    assert compile_it() == 1


@pytest.mark.parametrize("name", ["CPU_NAME", "CPU_FEATURES"])
def test_a_processor_that_the_user_names(file, monkeypatch, name):
    """A user who names a processor for Numba gets code for it."""
    monkeypatch.setattr(config, name, "")
    assert not shipped.has(plus_two, SIGNATURE)


def test_a_processor_needs_every_feature(monkeypatch):
    features = dict.fromkeys(shipped.FEATURES, True)
    monkeypatch.setattr(shipped, "get_host_cpu_features", lambda: features)
    if os.uname().machine == "x86_64":
        assert shipped.runs_here()
    for feature in shipped.FEATURES:
        monkeypatch.setattr(
            shipped, "get_host_cpu_features", lambda one=feature: features | {one: False}
        )
        assert not shipped.runs_here()


@pytest.mark.parametrize("left", [0, 4, 8, 100])
def test_a_file_whose_table_is_cut_off(file, left):
    os.truncate(file, left)
    assert compile_it() == 1
    assert compiled.notes == []


@pytest.mark.parametrize("text", [b"[]", b"{}", b'{"kernels": 3}', b"\xff"])
def test_a_file_of_another_kind(file, text):
    file.write_bytes(len(text).to_bytes(8, "little") + text)
    assert compile_it() == 1


@pytest.mark.parametrize("damage", ["cut off", "changed", "gone"])
def test_a_damaged_kernel_is_compiled_anew(file, damage):
    assert shipped.has(plus_two, SIGNATURE)
    data = file.read_bytes()
    if damage == "gone":
        file.unlink()
    else:
        file.write_bytes(data[:-1] + (b"" if damage == "cut off" else bytes([data[-1] ^ 1])))
    assert compile_it() == 1
    assert compiled.notes == [f"{file}: damaged; compiling the kernels again"]


def test_a_kernel_that_another_process_compiled_is_shipped(file, monkeypatch):
    """A kernel that the cache holds is written, though this process has not loaded it."""
    monkeypatch.setattr(shipped, "FILE", file.with_name("none"))
    shipped._entries.cache_clear()
    assert compile_it() == 1
    monkeypatch.setattr(compiled, "_declared", {})
    monkeypatch.setattr(compiled, "_wanted_so_far", {})
    dispatcher = compiled.kernel(*SIGNATURE)(plus_two)
    compiled.compile_kernels(dispatcher, load=False)
    assert not dispatcher.signatures
    keys = [key for key, _ in compiled.cached_kernels()]
    assert keys == [shipped.key(plus_two, SIGNATURE)]


def test_a_file_that_cannot_be_written_whole_is_not_left(tmp_path, monkeypatch):
    def full(path, data):
        path.touch()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space"):
        shipped.write(tmp_path / "shipped.bin", [("key", b"code")])
    assert os.listdir(tmp_path) == []


def test_sources_that_differ(tmp_path):
    """The digest of sources tells apart another text, another name, and another cut of texts."""
    digests = set()
    for i, files in enumerate(
        [{"a": "12", "b": ""}, {"a": "1", "b": "2"}, {"a": "12"}, {"c": "12"}]
    ):
        folder = tmp_path / str(i)
        folder.mkdir()
        for name, text in files.items():
            (folder / f"{name}.py").write_text(text)
        digests.add(shipped._digest(folder))
    assert len(digests) == 4
