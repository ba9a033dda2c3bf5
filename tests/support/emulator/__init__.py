"""CuPy, as far as this package uses it, on the CPU: arrays are NumPy's, kernels run in cuda.h.

In this process ``sys.modules["cupy"]`` has to be ``cupy``. Sources are compiled by g++. A device
here has few threads. Logic and arithmetic are the GPU's; races, what threads do that meet at
different places, and speed can be seen on a GPU only. A cluster has one block.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import re
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from . import nccl

DEVICES = 4
SITE = Path(__file__).with_name("site")
"""For other processes' PYTHONPATH: CuPy and Dask-CUDA, emulated."""
FULL = "DELEGRAPH_EMULATED_FULL"
"""In the environment: a device has no memory for what ranks share."""
_BLOCKS, _THREADS = 2, 64
_ALIGNED = 512
_HEADER = Path(__file__).with_name("cuda.h")
_FOLDER = Path(tempfile.gettempdir()) / f"delegraph-emulated-{os.getuid()}"


def able() -> bool:
    return shutil.which("g++") is not None and platform.machine() == "x86_64"


class Array(np.ndarray):
    """Memory of the device."""

    __cuda_array_interface__ = None  # that there is one says what it is

    @property
    def data(self) -> Any:  # pyright: ignore
        return SimpleNamespace(ptr=self.ctypes.data)

    def __array_function__(self, *call: Any) -> Any:
        """Give what a function of NumPy makes as memory of the device, as CuPy does. Views stay
        what they are.
        """
        found = super().__array_function__(*call)
        is_view = isinstance(found, Array) and found.base is not None
        return found if is_view else _on_device(found)

    def get(self, stream: Any = None, out: np.ndarray | None = None) -> np.ndarray:
        if out is None:
            return np.array(self, copy=True, subok=False)
        out[...] = self
        return out

    def set(self, values: np.ndarray) -> None:
        self[...] = values


def _aligned(shape: Any, dtype: Any = float) -> Array:
    dtype = np.dtype(dtype)
    size = int(np.prod(shape)) * dtype.itemsize
    whole = np.full(-(-size // _ALIGNED) * _ALIGNED + _ALIGNED, 0xA5, np.uint8)
    begin = -whole.ctypes.data % _ALIGNED
    return whole[begin : begin + size].view(dtype).reshape(shape).view(Array)


def _on_device(values: Any) -> Any:
    if isinstance(values, tuple):
        return tuple(_on_device(some) for some in values)
    if not isinstance(values, np.ndarray | np.generic):
        return values
    found = _aligned(np.shape(values), values.dtype)
    found[...] = values
    return found


class _RuntimeError(RuntimeError):
    status = 0


class _Event:
    at = 0.0
    ptr = 0

    def record(self) -> None:
        self.at = time.perf_counter()

    def synchronize(self) -> None:
        pass


class _Device:
    current = threading.local()

    def __init__(self, number: int | None = None) -> None:
        self.id = getattr(self.current, "number", 0) if number is None else number

    def __enter__(self) -> _Device:
        self.before = getattr(self.current, "number", 0)
        self.current.number = self.id
        return self

    def __exit__(self, *error: object) -> None:
        self.current.number = self.before

    def synchronize(self) -> None:
        pass


class _Pointer:
    def __init__(self, memory: Array, at: int = 0) -> None:
        self.memory, self.at = memory, at

    @property
    def ptr(self) -> int:
        return self.memory.ctypes.data + self.at

    def __add__(self, more: int) -> _Pointer:
        return _Pointer(self.memory, self.at + more)


class _Pool:
    def free_all_blocks(self) -> None:
        pass

    def total_bytes(self) -> int:
        return 0

    used_bytes = total_bytes

    def get_limit(self) -> int:
        return 0

    def set_limit(self, size: int) -> None:
        pass


def _shared_memory(size: int) -> Array:
    if FULL in os.environ:
        raise MemoryError("emulated")
    return _aligned(size, np.uint8)


def _no_handle(address: int) -> bytes:
    raise _RuntimeError("one process")


class _Kernel:
    def __init__(self, library: Path, threads: int) -> None:
        self._threads = threads
        self._launch = ctypes.CDLL(str(library)).emulator_launch
        self._launch.argtypes = [ctypes.c_uint, ctypes.c_uint, ctypes.c_size_t, ctypes.c_void_p]
        self.max_dynamic_shared_size_bytes = 0

    def __call__(self, grid: Any, block: Any, arguments: Sequence[Any], shared_mem: int = 0):
        held = []
        for some in arguments:
            if isinstance(some, Array):
                some = np.array([some.ctypes.data], np.uint64)
            elif not isinstance(some, np.ndarray):
                some = np.array([some])
            place = _aligned(some.nbytes, np.uint8)
            place[:] = np.frombuffer(some.tobytes(), np.uint8)
            held.append(place)
        places = (ctypes.c_void_p * len(held))(*(some.ctypes.data for some in held))
        self._launch(min(grid[0], _BLOCKS), min(block[0], self._threads), shared_mem, places)


_TEXT = """#include "HEADER"
CODE
extern "C" __attribute__((visibility("default")))
void emulator_launch(unsigned _grid, unsigned _threads, size_t _bytes, void **_arguments) {
  emulator::launch(&NAME, _grid, _threads, _bytes, _arguments);
}
"""
_ASM = re.compile(r"asm volatile\((.*?)\);", re.DOTALL)


def _without_asm(code: str) -> str:
    def instead(match: re.Match) -> str:
        text = match[1]
        names = re.findall(r'"=?[rl]"\((\w+)\)', text)
        if "prefetch" in text:
            return ""
        if "atom.add" in text:
            return f"{names[0]} = __atomic_fetch_add({names[1]}, 1, __ATOMIC_SEQ_CST);"
        if "ld.acquire" in text:
            load = f"{names[0]} = __atomic_load_n({names[1]}, __ATOMIC_SEQ_CST);"
            return f"emulator::wait(); {load} emulator::be_late();"
        if "st.release" in text:
            return f"__atomic_store_n({names[0]}, {names[1]}, __ATOMIC_SEQ_CST);"
        return match[0]  # of clusters: not for a device like this

    code = _ASM.sub(instead, code)
    return re.sub(r"extern __shared__ (\w+) (\w+)\[\];", r"\1 *\2 = (\1 *)emulator::shared;", code)


class RawModule:
    _lock = threading.Lock()

    def __init__(self, code: str, **options: Any) -> None:
        self._code = code

    def get_function(self, name: str) -> _Kernel:
        code = _without_asm(self._code)
        text = _TEXT.replace("HEADER", str(_HEADER)).replace("CODE", code).replace("NAME", name)
        digest = hashlib.sha256((text + _HEADER.read_text()).encode()).hexdigest()[:24]
        library = _FOLDER / f"{digest}.so"
        with self._lock:
            if not library.exists():
                _FOLDER.mkdir(exist_ok=True)
                source = library.with_suffix(f".{os.getpid()}.cpp")  # others may compile it, too
                source.write_text(text)
                flags = ["-std=c++17", "-O1", "-w", "-fPIC", "-shared", "-pthread"]
                flags += ["-fvisibility=hidden", "-Wno-narrowing", "-fno-strict-aliasing"]
                made = source.with_suffix(".partial")
                command = ["g++", *flags, str(source), "-o", str(made)]
                subprocess.run(command, check=True, capture_output=True, text=True)
                made.rename(library)
                source.unlink()
        # (The narrow search goes by the number of threads that it was compiled for.)
        return _Kernel(library, 1024 if name.startswith("narrow") else _THREADS)


_runtime = SimpleNamespace(
    CUDARuntimeError=_RuntimeError,
    getDeviceCount=lambda: DEVICES,
    getDeviceProperties=lambda number: {
        "major": 8,
        "minor": 0,
        "name": b"emulated",
        "multiProcessorCount": _BLOCKS,
        "sharedMemPerBlockOptin": 1 << 18,
        "l2CacheSize": 1 << 20,
        "uuid": bytes([number] * 16),
    },
    memGetInfo=lambda: (1 << 32, 1 << 32),
    eventQuery=lambda event: 0,
    memset=ctypes.memset,
    memcpy=lambda to, of, size, kind: ctypes.memmove(to, of, size),
    ipcGetMemHandle=_no_handle,
    deviceCanAccessPeer=lambda one, other: True,
    deviceEnablePeerAccess=lambda other: None,
    runtimeGetVersion=lambda: 0,
    driverGetVersion=lambda: 0,
)
_pool = _Pool()


class _CuPy:
    """Functions of NumPy, unless they are told apart here."""

    __version__ = "emulated"
    RawModule = RawModule
    cuda = SimpleNamespace(
        Device=_Device,
        Event=_Event,
        Stream=nccl.Stream,
        Memory=_shared_memory,
        MemoryPointer=_Pointer,
        PinnedMemory=lambda size: _aligned(size, np.uint8),
        PinnedMemoryPointer=lambda memory, at: memory.view(np.ndarray),
        nccl=nccl,
        runtime=_runtime,
        driver=SimpleNamespace(CUDADriverError=_RuntimeError),
        compiler=SimpleNamespace(CompileException=_RuntimeError),
        memory=SimpleNamespace(OutOfMemoryError=MemoryError),
        get_elapsed_time=lambda begun, ended: (ended.at - begun.at) * 1e3,
    )

    @staticmethod
    def get_default_memory_pool() -> _Pool:
        return _pool

    @staticmethod
    def empty(shape: Any, dtype: Any = float) -> Array:
        return _aligned(shape, dtype)

    @staticmethod
    def zeros(shape: Any, dtype: Any = float) -> Array:
        return _CuPy.full(shape, 0, dtype)

    @staticmethod
    def full(shape: Any, value: Any, dtype: Any = float) -> Array:
        found = _aligned(shape, dtype)
        found[...] = value
        return found

    @staticmethod
    def asarray(values: Any, dtype: Any = None) -> Array:
        return values if isinstance(values, Array) else _on_device(np.asarray(values, dtype))

    @staticmethod
    def ndarray(shape: Any, dtype: Any, memptr: _Pointer) -> Array:
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        found = memptr.memory[memptr.at : memptr.at + size].view(dtype)
        return found.reshape(shape).view(Array)

    def __getattr__(self, name: str) -> Any:
        function = getattr(np, name)
        if isinstance(function, type) or not callable(function):
            return function
        return lambda *some, **named: _on_device(function(*some, **named))


cupy: Any = _CuPy()
