"""Machine code of CUDA kernels that comes with the package: taken where it suits."""

from __future__ import annotations

import json
from typing import Any

import pytest

import delegraph
from delegraph.kernels.gpu import cubins, search
from delegraph.kernels.gpu import device as on_device
from delegraph.pipeline import warm_up
from support.graphs import random_edges

TEXT, FUNCTION = 'extern "C" __global__ void nothing() {}', "nothing"


class FakeCompiler:
    def compile(self, text: str, function: str, target: cubins.Target) -> tuple[str, bytes]:
        return f"_{function}", f"{target.name}: {text}".encode()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(cubins, "FOLDER", tmp_path / "cubins")
    cubins._names.cache_clear()
    yield cubins.FOLDER
    cubins._names.cache_clear()


@pytest.fixture
def made(folder):
    """The folder, with a function's files for all targets."""
    fake: Any = FakeCompiler()
    cubins.make(folder, fake, [(TEXT, FUNCTION, target) for target in cubins.TARGETS])
    return folder


def test_a_file_is_found_by_text_function_and_architecture(made):
    later = [(100, "compute_90"), (103, "compute_90"), (121, "compute_90")]
    for asked, made_for in ((80, "sm_80"), (86, "sm_80"), (89, "sm_80"), (90, "sm_90"), *later):
        found = cubins.find(TEXT, FUNCTION, asked)
        assert found is not None
        assert found.name == "_nothing"
        assert found.path.read_text() == f"{made_for}: {TEXT}"
        assert found.path.suffix == (".ptx" if asked >= 100 else ".cubin")
    for other in ((TEXT, FUNCTION, 75), (TEXT, "other", 80), (TEXT, "other", 120)):
        assert cubins.find(*other) is None
    assert cubins.find(TEXT + " ", FUNCTION, 80) is None


@pytest.mark.parametrize("index", [None, b"", b"[]", b"{", b"\xff"])
def test_without_an_index_nothing_is_found(made, index):
    path = made / "index.json"
    path.unlink() if index is None else path.write_bytes(index)
    assert cubins.find(TEXT, FUNCTION, 80) is None


def taken(monkeypatch, fails: bool) -> list[str]:
    """Ask an emulated device for a kernel, and return what was loaded or compiled."""
    emulated, asked = on_device.import_cupy(), []
    load = emulated.RawModule

    def module(code=None, path=None, **options):
        asked.append("compiled" if path is None else "loaded")
        if fails and path is not None:
            raise emulated.cuda.driver.CUDADriverError("damaged")
        return load(on_device.source("bfs/by_row.cu") if path is not None else code, **options)

    monkeypatch.setattr(emulated, "RawModule", module, raising=False)
    on_device.open_device().kernel("bfs/by_row.cu", "number_rows")
    return asked


@pytest.mark.parametrize("fails", [False, True])
def test_a_device_takes_a_file_unless_it_is_damaged(emulated, folder, monkeypatch, fails):
    class Same(FakeCompiler):
        def compile(self, text, function, target):
            return function, b"code"

    target = cubins.Target(emulated[0].architecture)
    monkeypatch.setattr(cubins, "TARGETS", (target,))
    wanted = on_device.source("bfs/by_row.cu"), "number_rows", target
    same: Any = Same()
    cubins.make(folder, same, [wanted])
    assert taken(monkeypatch, fails) == (["loaded", "compiled"] if fails else ["loaded"])


def test_a_device_compiles_what_has_no_file(emulated, folder, monkeypatch):
    assert taken(monkeypatch, fails=False) == ["compiled"]


def test_machine_code_is_made_without_a_device(folder):
    compiler = cubins.find_compiler()
    assert compiler is not None, "the package nvidia-cuda-nvrtc is among the test requirements"
    text = on_device.source("bfs/by_row.cu")
    cubins.make(folder, compiler, [(text, "number_rows", target) for target in cubins.TARGETS])
    for architecture, begins in ((80, b"\x7fELF"), (90, b"\x7fELF"), (120, b"//")):
        found = cubins.find(text, "number_rows", architecture)
        assert found is not None
        code = found.path.read_bytes().lstrip()
        assert code.startswith(begins)
        assert found.name in code.decode(errors="replace")
    with pytest.raises(cubins.CompilerError):
        compiler.compile("nonsense", "number_rows", cubins.TARGETS[0])


def test_a_build_without_the_compiler_makes_none(folder, monkeypatch):
    monkeypatch.setattr(cubins, "find_compiler", lambda: None)
    warm_up.ship_cuda(folder)
    assert not folder.exists()


def test_a_build_makes_those_of_searches(folder, monkeypatch):
    monkeypatch.setattr(cubins, "find_compiler", FakeCompiler)
    warm_up.ship_cuda(folder)
    names = json.loads((folder / "index.json").read_text())
    files = {path.stem for path in (*folder.glob("*.cubin"), *folder.glob("*.ptx"))}
    wanted = [
        one for blocks in ((1,), (16,), (16, 8)) for one in search.functions_of_searches(blocks)
    ]
    assert len(files) == len(wanted)
    assert files == names.keys()


@pytest.mark.parametrize("as_later", [False, True])
def test_searches_compile_none_of_their_kernels(device, folder, tmp_path, monkeypatch, as_later):
    """Where a build has made the files, an open graph compiles only CuPy's own functions.

    as_later: take the device for one that is newer than the machine code.
    """
    if as_later:
        monkeypatch.setattr(cubins, "TARGETS", [one for one in cubins.TARGETS if one.is_ptx])
    if not any(target.runs_on(device.architecture) for target in cubins.TARGETS):
        pytest.skip("no files are made for this device")
    warm_up.ship_cuda(folder)
    on_device._compile.cache_clear()
    compiled: list[str] = []
    compile_text = on_device._compiled

    def noted(text, function, cooperative):
        compiled.append(function)
        return compile_text(text, function, cooperative)

    monkeypatch.setattr(on_device, "_compiled", noted)
    delegraph.build(
        list(zip(*random_edges(5, 300, 900), strict=True)), tmp_path / "graph.dg", device="cpu"
    )
    with delegraph.open(tmp_path / "graph.dg", device="cuda") as graph:
        found = graph.bfs(1)
        assert found.reached > 1
    with delegraph.open(tmp_path / "graph.dg", device="cpu") as graph:
        assert graph.bfs(1).distance.equals(found.distance)
    assert not compiled
    on_device._compile.cache_clear()
