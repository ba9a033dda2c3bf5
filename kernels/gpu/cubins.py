"""Machine code of CUDA kernels that comes with the package, so that a first search on a GPU does
not wait for a compiler.

A build of the package makes it where it finds NVRTC, CUDA's compiler library, with or without a
GPU. A process takes a kernel's file if it is of the same text and for the device's architecture;
otherwise CuPy compiles the kernel, and keeps it in a cache of its own.
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
ARCHITECTURES = (80, 90)
"""Compute capabilities, times 10, that files are made for on a machine without a GPU. Code for 8.0
also runs on 8.6 and 8.9. (PTX, which all later devices take, would save nothing: the driver
translates it on one thread, which takes longer than to compile on several.)
"""

OPTIONS = ("-std=c++17",)
"""Options of the compiler."""

_INDEX = "index.json"


class Cubin(NamedTuple):
    """A kernel's file. name: of the function in it."""

    path: Path
    name: str


def find(text: str, function: str, architecture: int) -> Cubin | None:
    """Return the file of a function of a source for a device; None if there is none.

    text: of the source with all that it includes. architecture: of the device.
    """
    for made_for in (architecture, architecture // 10 * 10):
        key = _key(text, function, made_for)
        if name := _names().get(key):
            return Cubin(FOLDER / f"{key}.cubin", name)
    return None


@cache
def _names() -> dict[str, str]:
    """Return the functions' names by key; an empty dict if there are no files."""
    try:
        names = json.loads((FOLDER / _INDEX).read_bytes())
    except (OSError, ValueError):
        return {}
    return names if isinstance(names, dict) else {}


def _key(text: str, function: str, architecture: int) -> str:
    named = f"sm_{architecture} {' '.join(OPTIONS)} {function}\n{text}"
    return hashlib.sha256(named.encode()).hexdigest()[:32]


class CompilerError(RuntimeError):
    """NVRTC does not compile a source, or is missing."""


class Compiler:
    """NVRTC."""

    def __init__(self, library: str | os.PathLike[str]) -> None:
        self._nvrtc = ctypes.CDLL(os.fspath(library))

    def compile(self, text: str, function: str, architecture: int) -> tuple[str, bytes]:
        """Return the name and the machine code of a function. Raises CompilerError."""
        nvrtc, program = self._nvrtc, ctypes.c_void_p()
        created = nvrtc.nvrtcCreateProgram
        self._check(created(ctypes.byref(program), text.encode(), None, 0, None, None))
        try:
            name = function.encode()
            self._check(nvrtc.nvrtcAddNameExpression(program, name))
            options = [*OPTIONS, f"-arch=sm_{architecture}"]
            array = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
            self._check(nvrtc.nvrtcCompileProgram(program, len(options), array))
            lowered, size = ctypes.c_char_p(), ctypes.c_size_t()
            self._check(nvrtc.nvrtcGetLoweredName(program, name, ctypes.byref(lowered)))
            self._check(nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size)))
            code = ctypes.create_string_buffer(size.value)
            self._check(nvrtc.nvrtcGetCUBIN(program, code))
            assert lowered.value is not None
            return lowered.value.decode(), code.raw
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


def make(folder: Path, compiler: Compiler, wanted: Sequence[tuple[str, str, int]]) -> None:
    """Make the files of functions. wanted: the text of each source, the function, and the
    architecture.
    """
    folder.mkdir(parents=True, exist_ok=True)

    def make_one(of: tuple[str, str, int]) -> tuple[str, str]:
        text, function, architecture = of
        name, code = compiler.compile(text, function, architecture)
        key = _key(text, function, architecture)
        (folder / f"{key}.cubin").write_bytes(code)
        return key, name

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        names = dict(pool.map(make_one, wanted))
    (folder / _INDEX).write_text(json.dumps(names))
