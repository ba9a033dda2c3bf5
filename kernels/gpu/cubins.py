"""Machine code of CUDA kernels that comes with the package, so that a first search on a GPU does
not wait for a compiler.

A build of the package makes it where it finds NVRTC, CUDA's compiler library, with or without a
GPU. For devices that are newer than the build's targets it makes PTX, from which the driver makes
machine code, and keeps that in a cache of its own. A process takes a kernel's file if it is of the
same text and runs on the device; otherwise CuPy compiles the kernel, and keeps it likewise.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from ctypes.util import find_library
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parents[1] / "cubins"


class Target(NamedTuple):
    """What a file is made for. architecture: the lowest compute capability that it runs on, times
    10. is_ptx: whether it is PTX, which all later devices take; machine code runs on later ones of
    the same major version alone.
    """

    architecture: int
    is_ptx: bool = False

    @property
    def name(self) -> str:
        """Return the compiler's name of the target."""
        return f"{'compute' if self.is_ptx else 'sm'}_{self.architecture}"

    def runs_on(self, architecture: int) -> bool:
        same_major = architecture // 10 == self.architecture // 10
        return architecture >= self.architecture and (self.is_ptx or same_major)


TARGETS = (Target(80), Target(90), Target(90, is_ptx=True))
"""The targets that files are made for, the preferred one first."""

OPTIONS = ("-std=c++17",)
"""Options of the compiler."""

_INDEX = "index.json"


class Code(NamedTuple):
    """A kernel's file. name: of the function in it."""

    path: Path
    name: str


def find(text: str, function: str, architecture: int) -> Code | None:
    """Return the file of a function of a source for a device; None if there is none.

    text: of the source with all that it includes. architecture: of the device.
    """
    for target in TARGETS:
        if target.runs_on(architecture):
            key = _key(text, function, target)
            if name := _names().get(key):
                return Code(_path(FOLDER, key, target), name)
    return None


@cache
def _names() -> dict[str, str]:
    """Return the functions' names by key; an empty dict if there are no files."""
    try:
        names = json.loads((FOLDER / _INDEX).read_bytes())
    except (OSError, ValueError):
        return {}
    return names if isinstance(names, dict) else {}


def _path(folder: Path, key: str, target: Target) -> Path:
    return folder / f"{key}.{'ptx' if target.is_ptx else 'cubin'}"


def _key(text: str, function: str, target: Target) -> str:
    named = f"{target.name} {' '.join(OPTIONS)} {function}\n{text}"
    return hashlib.sha256(named.encode()).hexdigest()[:32]


class CompilerError(RuntimeError):
    """NVRTC does not compile a source, or is missing."""


class Compiler:
    """NVRTC."""

    def __init__(self, library: str | os.PathLike[str]) -> None:
        self._nvrtc = ctypes.CDLL(os.fspath(library))

    def compile(self, text: str, function: str, target: Target) -> tuple[str, bytes]:
        """Return the name of a function in its code, and the code. Raises CompilerError."""
        nvrtc, program = self._nvrtc, ctypes.c_void_p()
        created = nvrtc.nvrtcCreateProgram
        self._check(created(ctypes.byref(program), text.encode(), None, 0, None, None))
        try:
            name = function.encode()
            self._check(nvrtc.nvrtcAddNameExpression(program, name))
            options = [*OPTIONS, f"-arch={target.name}"]
            array = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
            self._check(nvrtc.nvrtcCompileProgram(program, len(options), array))
            lowered, size = ctypes.c_char_p(), ctypes.c_size_t()
            self._check(nvrtc.nvrtcGetLoweredName(program, name, ctypes.byref(lowered)))
            get = "nvrtcGetPTX" if target.is_ptx else "nvrtcGetCUBIN"
            self._check(nvrtc[f"{get}Size"](program, ctypes.byref(size)))
            code = ctypes.create_string_buffer(size.value)
            self._check(nvrtc[get](program, code))
            assert lowered.value is not None
            return lowered.value.decode(), code.raw.rstrip(b"\0") if target.is_ptx else code.raw
        finally:
            nvrtc.nvrtcDestroyProgram(ctypes.byref(program))

    def _check(self, status: int) -> None:
        if status:
            raise CompilerError(f"NVRTC failed with status {status}")


def find_compiler() -> Compiler | None:
    """Return NVRTC of CUDA's toolkit, or of NVIDIA's package; None if there is none."""
    spec = find_spec("nvidia")
    packages = [Path(place) for place in (spec.submodule_search_locations if spec else None) or ()]
    roots = [Path(os.environ[name]) for name in ("CUDA_HOME", "CUDA_PATH") if name in os.environ]
    found = [
        *(path for place in packages for path in sorted(place.rglob("libnvrtc.so.*"))),
        *(root / "lib64" / "libnvrtc.so" for root in (*roots, Path("/usr/local/cuda"))),
        find_library("nvrtc"),
    ]
    for library in found:
        try:
            if library is not None:
                return Compiler(library)
        except OSError:
            continue
    return None


def make(folder: Path, compiler: Compiler, wanted: Sequence[tuple[str, str, Target]]) -> None:
    """Make the files of functions. wanted: the text of each source, the function, and the
    target.
    """
    folder.mkdir(parents=True, exist_ok=True)

    def make_one(of: tuple[str, str, Target]) -> tuple[str, str]:
        text, function, target = of
        name, code = compiler.compile(text, function, target)
        key = _key(text, function, target)
        _path(folder, key, target).write_bytes(code)
        return key, name

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        names = dict(pool.map(make_one, wanted))
    (folder / _INDEX).write_text(json.dumps(names))
