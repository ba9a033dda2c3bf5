"""Machine code of CUDA kernels that comes with the package: taken where it suits."""

from __future__ import annotations

import json
from typing import Any

import pytest

import delegraph
from delegraph.kernels.gpu import cubins, driver, search
from delegraph.kernels.gpu import device as on_device
from delegraph.pipeline import warm_up
from support.graphs import random_edges

TEXT, FUNCTION = 'extern "C" __global__ void nothing() {}', "nothing"


class FakeCompiler:
    def compile(self, text: str, function: str, architecture: int) -> tuple[str, bytes]:
        return f"_{function}", f"{architecture}: {text}".encode()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(cubins, "FOLDER", tmp_path / "cubins")
    cubins._names.cache_clear()
    yield cubins.FOLDER
    cubins._names.cache_clear()


@pytest.fixture
def made(folder):
    """The folder, with a function's files for two architectures."""
    fake: Any = FakeCompiler()
    cubins.make(folder, fake, [(TEXT, FUNCTION, architecture) for architecture in (80, 90)])
    return folder


def test_a_file_is_found_by_text_function_and_architecture(made):
    for asked, made_for in ((80, 80), (86, 80), (89, 80), (90, 90)):
        found = cubins.find(TEXT, FUNCTION, asked)
        assert found is not None
        assert found.name == "_nothing"
        assert found.path.read_text() == f"{made_for}: {TEXT}"
    for other in ((TEXT, FUNCTION, 75), (TEXT, FUNCTION, 100), (TEXT, "other", 80)):
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
        def compile(self, text, function, architecture):
            return function, b"code"

    wanted = on_device.source("bfs/by_row.cu"), "number_rows", emulated[0].architecture
    same: Any = Same()
    cubins.make(folder, same, [wanted])
    assert taken(monkeypatch, fails) == (["loaded", "compiled"] if fails else ["loaded"])


def test_a_device_compiles_what_has_no_file(emulated, folder, monkeypatch):
    assert taken(monkeypatch, fails=False) == ["compiled"]


def test_machine_code_is_made_without_a_device(folder):
    compiler = cubins.find_compiler()
    assert compiler is not None, "the package nvidia-cuda-nvrtc is among the test requirements"
    cubins.make(folder, compiler, [(on_device.source("bfs/by_row.cu"), "number_rows", 80)])
    found = cubins.find(on_device.source("bfs/by_row.cu"), "number_rows", 80)
    assert found is not None
    assert found.path.read_bytes().startswith(b"\x7fELF")
    assert found.name in found.path.read_bytes().decode(errors="replace")
    with pytest.raises(cubins.CompilerError):
        compiler.compile("nonsense", "number_rows", 80)


def test_a_build_without_the_compiler_makes_none(folder, monkeypatch):
    monkeypatch.setattr(cubins, "find_compiler", lambda: None)
    warm_up.ship_cuda(folder)
    assert not folder.exists()


@pytest.mark.parametrize("there", [(), (75,), (86, 120)])
def test_a_build_makes_those_of_searches(folder, monkeypatch, there):
    """For the devices of the machine, or for usual ones."""
    monkeypatch.setattr(cubins, "find_compiler", FakeCompiler)
    monkeypatch.setattr(driver, "architectures", lambda: {*there})
    warm_up.ship_cuda(folder)
    names = json.loads((folder / "index.json").read_text())
    files = {path.stem for path in folder.glob("*.cubin")}
    assert files == names.keys()
    cubins._names.cache_clear()
    wanted = 0
    for architecture in there or (80, 90):
        blocks = on_device.cluster_blocks(architecture)
        for name, function in search.functions_of_searches(blocks):
            found = cubins.find(on_device.source(name), function, architecture)
            assert found is not None
            assert found.path.stem in files
            wanted += 1
    assert len(files) == wanted


def test_searches_compile_none_of_their_kernels(device, folder, tmp_path, monkeypatch):
    """Where a build has made the files, an open graph compiles only CuPy's own functions."""
    assert device.architecture in driver.architectures()
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
