"""The GPU: finding one, compiling kernels for it, and refusing in one line what it cannot do.

Nothing else imports CuPy. The sources in ``cuda/`` are compiled by CuPy's RawModule and cached;
``source`` writes the headers that a source includes into its text, so that the cache, which goes
by the text, notices a change of theirs.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ..base.team import Team
from . import cubins

OLDEST_ARCHITECTURE = 75  # compute capability 7.5, the oldest that CUDA 13 compiles for

_SOURCES = Path(__file__).parents[1] / "cuda"
_INCLUDE = re.compile(r'^#include "([\w./]+)"\n', re.MULTILINE)


class DeviceError(RuntimeError):
    """An error for the user: there is no such device, or the device cannot do what was asked."""


class DeviceMemoryError(DeviceError):
    """An error for the user: the device's memory, or the share of it that was allowed, is too
    small.
    """


@cache
def source(name: str) -> str:
    """Return the text of ``cuda/name`` with all that it includes, each header once."""
    return with_headers(_SOURCES.joinpath(name).read_text())


def with_headers(text: str) -> str:
    """Return a text with all that it includes, each header once."""
    seen: set[str] = set()

    def include(text: str) -> str:
        return _INCLUDE.sub(lambda match: header(match[1]), text)

    def header(name: str) -> str:
        if name in seen:
            return ""
        seen.add(name)
        return include(_SOURCES.joinpath(name).read_text())

    return include(text)


def import_cupy() -> Any:
    """Import CuPy and return it. Raises DeviceError if CuPy is missing or broken."""
    try:
        import cupy  # pyright: ignore[reportMissingImports, reportMissingTypeStubs]
    except ImportError as error:
        reason = str(error.__cause__ or error).strip().splitlines()[0]
        raise DeviceError(
            f"CuPy is missing or broken ({reason}): pip install 'cupy-cuda13x[ctk]' (or 12x)"
        ) from error
    return cupy


@dataclass(frozen=True)
class Device:
    """A CUDA device; see ``open_device``.

    architecture: compute capability, times 10. memory_bytes: what may be held on it. shared_bytes:
    shared memory that a block may have. cache_bytes: of the second-level cache.
    """

    number: int
    name: str
    architecture: int
    multiprocessors: int
    memory_bytes: int
    shared_bytes: int
    cache_bytes: int
    cupy: Any = field(repr=False, compare=False)

    @property
    def cluster_blocks(self) -> int:
        """Return the blocks of a thread-block cluster; 1 if the device has no clusters."""
        most = cluster_blocks(self.architecture)
        return most if self.multiprocessors >= _WHOLE else min(most, _PORTABLE_BLOCKS)

    @contextlib.contextmanager
    def use(self) -> Iterator[Any]:
        """Make this device the current one, and give CuPy. Errors of CuPy become DeviceErrors."""
        cupy = self.cupy
        try:
            with cupy.cuda.Device(self.number):
                yield cupy
        except cupy.cuda.memory.OutOfMemoryError as error:
            raise DeviceMemoryError(
                f"the memory of {self} is too small ({error}): allow more with "
                "--device-memory-limit, or search with --device cpu"
            ) from error
        except (
            cupy.cuda.runtime.CUDARuntimeError,
            cupy.cuda.driver.CUDADriverError,
            cupy.cuda.compiler.CompileException,
        ) as error:
            told = str(error).splitlines()[0]
            kind = DeviceMemoryError if "cudaErrorMemoryAllocation" in told else DeviceError
            raise kind(f"{self} failed: {told}") from error

    @property
    def nccl(self) -> Any:
        """Return CuPy's module for NCCL; None if the module, or the library, is missing."""
        found = getattr(self.cupy.cuda, "nccl", None)
        if found is None:
            with warnings.catch_warnings():  # of CuPy, that the library is missing
                warnings.simplefilter("ignore")
                from cupy.cuda import nccl as found  # pyright: ignore[reportMissingImports]
        return found if found.available else None

    def kernel(
        self,
        name: str,
        function: str,
        shared_bytes: int = 0,
        cooperative: bool = False,
        cluster: int = 1,
    ) -> Any:
        """Return the function of ``cuda/name``, or a template's instance as ``f<A, B>``, to be
        launched.

        Call it as kernel((blocks,), (threads,), arguments); pass a structure as an array of one
        element (``pack``). shared_bytes: dynamic shared memory that it will be given. cooperative:
        whether its blocks are to run all at once. cluster: blocks of its thread-block cluster.
        """
        kernel = _compile(self.number, self.architecture, name, function, cooperative)
        if shared_bytes:  # by default there is what static shared memory leaves of 48 KiB
            kernel.max_dynamic_shared_size_bytes = shared_bytes
        if cluster > _PORTABLE_BLOCKS:
            self.cupy.cuda.driver.funcSetAttribute(kernel.kernel.ptr, _LARGE_CLUSTER, 1)
        return kernel

    def together(self, tasks: Sequence[Callable[[], object]]) -> None:
        """Run tasks that compile kernels on this device at the same time, each on its own thread.
        The first error is raised when all tasks have ended.
        """

        def run(task: Callable[[], object]) -> None:
            with self.use():
                task()

        Team(max(1, len(tasks))).map(run, tasks)

    def launch(self, name: str, function: str, items: int, arguments: Sequence[Any]) -> None:
        """Run a kernel whose threads share ``items`` items in a grid-stride loop."""
        if items:
            self.launch_kernel(self.kernel(name, function), items, arguments)

    def launch_kernel(self, kernel: Any, items: int, arguments: Sequence[Any]) -> None:
        if items:
            blocks = min(-(-items // _THREADS), self.multiprocessors * _BLOCKS_EACH)
            kernel((blocks,), (_THREADS,), tuple(arguments))

    def kernel_of_text(self, text: str, function: str) -> Any:
        """Return a function of a source that is not in ``cuda/``. The caller keeps it."""
        return _compiled(with_headers(text), function, cooperative=False)

    def pinned(self, length: int, dtype: Any) -> np.ndarray:
        """Return an array in host memory that kernels read in place."""
        dtype = np.dtype(dtype)
        with self.use() as cupy:
            # (The pool of pinned memory would round up to a power of two.)
            memory = cupy.cuda.PinnedMemory(length * dtype.itemsize)
            pointer = cupy.cuda.PinnedMemoryPointer(memory, 0)
        return np.frombuffer(pointer, dtype, length)

    def fetch(self, array: Any) -> np.ndarray:
        """Return a copy of a contiguous array in host memory.

        Threads copy a large one, each through pinned memory of its own. (The driver alone copies
        to memory that is not pinned with one thread, which also meets each new page of it.)
        """
        if array.nbytes <= _FETCHED:
            with self.use():
                return array.get()
        flat = array.reshape(-1)
        found = np.empty(len(flat), array.dtype)
        length = _FETCHED // array.itemsize

        def copy(first: int) -> None:
            with self.use():
                part = flat[first : first + length]
                stream, pinned = _own_pinned(self)
                to = pinned[: part.nbytes].view(part.dtype)
                part.get(stream=stream, out=to)
                found[first : first + length] = to

        with self.use() as cupy:
            cupy.cuda.Device().synchronize()  # kernels of other streams may still write to it
            _fetchers().map(copy, range(0, len(flat), length))
        return found.reshape(array.shape)

    def versions(self) -> dict[str, str]:
        runtime = self.cupy.cuda.runtime
        return {
            "cupy": self.cupy.__version__,
            "cuda": _version(runtime.runtimeGetVersion()),
            "driver": _version(runtime.driverGetVersion()),
        }

    def __str__(self) -> str:
        return f"cuda:{self.number} ({self.name})"


MOST_BLOCKS = 16
"""The number of blocks of the largest thread-block cluster that any device takes."""

LONG_STRIP = 1024
"""The number of items that a warp takes at a time in kernels that are launched for ``strip_lanes``
(cuda/base/work.cuh).
"""

_PORTABLE_BLOCKS = 8  # that any device takes which takes clusters
_WHOLE = 64  # multiprocessors: less is a slice of a device, which may not take large clusters
_LARGE_CLUSTER = 14  # CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
_THREADS = 256
_BLOCKS_EACH = 16
_FETCHED = 1 << 21  # bytes that a thread copies at a time
_MOST_FETCHERS = 8


class _Own(threading.local):
    """The stream and the pinned memory that a thread copies by, for each device's number."""

    def __init__(self) -> None:
        self.of: dict[int, tuple[Any, np.ndarray]] = {}


_own = _Own()


def _version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"


@cache
def _fetchers() -> Team:
    return Team(min(_MOST_FETCHERS, len(os.sched_getaffinity(0))))


def _own_pinned(device: Device) -> tuple[Any, np.ndarray]:
    """Return a stream of the device that only this thread uses, and pinned memory."""
    if device.number not in _own.of:
        stream = device.cupy.cuda.Stream(non_blocking=True)
        _own.of[device.number] = stream, device.pinned(_FETCHED, np.uint8)
    return _own.of[device.number]


@cache
def _compile(device: int, architecture: int, name: str, function: str, cooperative: bool) -> Any:
    del device  # of the key: a module belongs to one device
    text = source(name)
    return _shipped(text, function, cooperative, architecture) or _compiled(
        text, function, cooperative
    )


def _shipped(text: str, function: str, cooperative: bool, architecture: int) -> Any:
    """Return a function that comes with the package; None if it does not, or cannot be loaded."""
    found = cubins.find(text, function, architecture)
    if found is None:
        return None
    cupy = import_cupy()
    try:
        module = cupy.RawModule(path=str(found.path), enable_cooperative_groups=cooperative)
        return module.get_function(found.name)
    except (OSError, cupy.cuda.driver.CUDADriverError):  # a damaged file
        return None


def _compiled(text: str, function: str, cooperative: bool) -> Any:
    cupy = import_cupy()
    module = cupy.RawModule(
        code=text,
        options=cubins.OPTIONS,
        name_expressions=(function,),
        enable_cooperative_groups=cooperative,
    )
    try:
        return module.get_function(function)
    except cupy.cuda.compiler.CompileException:
        raise
    except RuntimeError as error:  # no compiler library
        raise DeviceError(f"kernels cannot be compiled: {str(error).splitlines()[0]}") from error


def open_device(number: int = 0, memory_limit: int | None = None) -> Device:
    """Open the CUDA device ``number``.

    memory_limit: bytes that may be held on it; None for what is free. Raises DeviceError where
    CuPy, the driver or the device is missing, or the device is too old.
    """
    cupy = import_cupy()
    runtime = cupy.cuda.runtime
    try:
        count = runtime.getDeviceCount()
        if not 0 <= number < count:
            raise DeviceError(f"there is no device cuda:{number}; the last one is cuda:{count - 1}")
        properties = runtime.getDeviceProperties(number)
        with cupy.cuda.Device(number):
            pool = cupy.get_default_memory_pool()
            pool.free_all_blocks()
            # What this process holds there counts for the limit, too.
            free = runtime.memGetInfo()[0] + pool.total_bytes()
            allowed = free if memory_limit is None else min(free, memory_limit)
            pool.set_limit(size=allowed)
    except runtime.CUDARuntimeError as error:
        told = str(error).splitlines()[0]
        raise DeviceError(f"cuda:{number} is not usable: {told}") from error
    architecture = 10 * properties["major"] + properties["minor"]
    name = properties["name"].decode()
    if architecture < OLDEST_ARCHITECTURE:
        raise DeviceError(
            f"cuda:{number} ({name}) is too old: it has compute capability {architecture / 10}, "
            f"but delegraph needs {OLDEST_ARCHITECTURE / 10}"
        )
    return Device(
        number,
        name,
        architecture,
        properties["multiProcessorCount"],
        allowed,
        properties["sharedMemPerBlockOptin"],
        properties["l2CacheSize"],
        cupy,
    )


def cluster_blocks(architecture: int) -> int:
    """Return the blocks of a cluster on whole devices of an architecture.

    >>> [cluster_blocks(architecture) for architecture in (89, 90, 100, 120)]
    [1, 16, 16, 8]
    """
    if architecture // 10 in (9, 10):
        return MOST_BLOCKS
    return _PORTABLE_BLOCKS if architecture >= 90 else 1


def strip_lanes(items: int) -> int:
    """Return the number of threads of the warps that take ``items`` items.

    >>> strip_lanes(1), strip_lanes(1025)
    (32, 64)
    """
    return -(-items // LONG_STRIP) * 32


def unsigned_name(dtype: Any) -> str:
    """Return the name in C++ of an unsigned type of 4 or 8 bytes."""
    return "u32" if np.dtype(dtype).itemsize == 4 else "u64"


def pack(kind: np.dtype, **values: Any) -> np.ndarray:
    """Return a kernel's structure, for passing by value. An array among the values gives its
    address.

    kind: an aligned structured dtype with the fields of the C++ structure, in its order.
    """
    packed = np.zeros(1, kind)
    for name, value in values.items():
        if value is not None:
            address = getattr(getattr(value, "data", None), "ptr", None)
            packed[name] = value if address is None else address
    return packed


def without_fields(packed: np.ndarray) -> np.ndarray:
    """Return a view of a structure as bytes, for kernels that are launched often. CuPy describes
    the fields of a structure at every launch, which takes 25 microseconds.
    """
    return packed.view(f"V{packed.itemsize}")
