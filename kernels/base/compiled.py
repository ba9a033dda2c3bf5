"""Kernels for the CPU, and the types that each is called with: so all can be compiled beforehand.

What Python calls is declared with ``kernel``. ``compile_kernels`` compiles, or loads from the
cache, whatever some modules declare: what a run holds can then be measured before its work begins,
and no search waits for a compiler. What only kernels call needs no types.

    @kernel(OFFSETS, u32s, i64)
    def some(offsets, targets, level): ...

    compile_kernels(push, pull, offsets=np.uint32)

Kernels that come with the package (``shipped``) are not compiled. What is compiled is kept in
Numba's cache. Processes that need the same kernels at the same time
share the work: each compiles what no other one is at. A file of the cache that is damaged, as by a
loss of power, is made anew; where nothing can be kept, each process compiles for itself.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import hashlib
import io
import itertools
import os
import pickle
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import njit, typeof, types
from numba.core import environment
from numba.core.caching import FunctionCache, IndexDataCacheFile, NullCache
from numba.core.compiler import CompileResult
from numba.core.runtime.nrt import rtsys
from numpy.typing import DTypeLike

from . import shipped


class Several(NamedTuple):
    """Arrays with one dimension, of the type that ``compile_kernels`` is told for ``name``."""

    name: str
    read_only: bool = False


class Struct(NamedTuple):
    """A named tuple whose members are of these types."""

    kind: type
    members: tuple[Any, ...]


OFFSETS = Several("offsets")
"""Offsets of compressed sparse rows: uint32, or uint64 where there are more edges."""

DEGREES = Several("degrees")
"""Degrees: uint32, or uint64 where there are more rows."""

u8s, u16s, u32s, u64s = (t[::1] for t in (types.uint8, types.uint16, types.uint32, types.uint64))
i32s, i64s = types.int32[::1], types.int64[::1]
f64s = types.float64[::1]
booleans = types.boolean[::1]
i64, u64, f64, boolean = types.int64, types.uint64, types.float64, types.boolean

_declared: dict[str, list[tuple[Any, tuple[Any, ...]]]] = {}
_wanted_so_far: dict[tuple[Any, tuple[Any, ...]], None] = {}


_PATIENCE = 60.0  # seconds, until a process that compiles may be stuck
_LOOK_SECONDS = 0.01

_collector = threading.Lock()
_compiling = 0  # threads that compile: the last one gives the collector its thresholds back
_thresholds = gc.get_threshold()

notes: list[str] = []
"""Lines for the user, about a cache that is damaged or cannot be written. The same line may
repeat.
"""


_SHARED_FOLDERS = tuple(str(Path(__file__).parents[1] / name) for name in ("base", "pieces"))


@cache
def stamp_of(*folders: str) -> str:
    """Return a digest that changes whenever a Python file in one of some folders does: of names,
    times and sizes. A kernel may contain code of any of these files.
    """
    files = [
        (entry.name, entry.stat().st_mtime_ns, entry.stat().st_size)
        for folder in folders
        for entry in sorted(os.scandir(folder), key=lambda entry: entry.name)
        if entry.name.endswith(".py")
    ]
    return hashlib.sha256(repr(files).encode()).hexdigest()


class _Unpickler(pickle.Unpickler):
    """Reads a compiled kernel, without the modules of Numba that its parts were compiled from.

    Numba's own imports each of them, and with some of them SciPy, if that is installed. They would
    serve code that calls Python, which kernels do not.
    """

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == (environment.__name__, environment._rebuild_env.__name__):
            return _environment
        return super().find_class(module, name)


def _environment(module: str, constants: Any, name: str) -> Any:
    """Return what Numba keeps for a function in a compiled kernel. module: the function's."""
    found = environment.lookup_environment(name)
    if found is None:
        if module.partition(".")[0] != numba.__name__:
            return environment._rebuild_env(module, constants, name)
        found = environment.Environment({"__name__": module})
        found.consts[:] = constants
        found.env_name = name
        environment.Environment._memo[name] = found
    return found


class _CacheFile(IndexDataCacheFile):
    """Numba's files of a function's compiled kernels."""

    def _load_data(self, name: str) -> Any:
        with open(self._data_path(name), "rb") as file:
            return _Unpickler(file).load()


class _Cache(FunctionCache):
    """Numba's cache of a function. If a file of the cache is damaged in any way, the user is told,
    and the function is compiled again.
    """

    def __init__(self, function: Callable) -> None:
        super().__init__(function)
        # Numba's own stamp is of the function's file alone, which may contain code of others.
        source = function.__code__.co_filename
        stamp = stamp_of(os.path.dirname(source), *_SHARED_FOLDERS)
        self._cache_file = _CacheFile(self.cache_path, self._impl.filename_base, stamp)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        # Numba's own first imports all that it knows to compile, which takes longer than to load
        # the kernels of a command. What is compiled needs only the part of that which allocates.
        rtsys.initialize(target_context)
        found = _load_shipped(self._py_func, sig, target_context)
        if found is not None:
            return found
        try:
            with self._guard_against_spurious_io_errors():
                return self._load_overload(sig, target_context)
        except MemoryError:
            raise
        except Exception:  # what unpickling a damaged file raises may be anything
            notes.append(f"{self.cache_path}: damaged; compiling the kernels again")
            try:
                self.flush()
            except OSError:
                self.disable()  # as saving reads what is there first
            return None

    def file_of(self, sig: Any, target_context: Any) -> str | None:
        """Return the path of the file that holds a kernel; None if none does."""
        try:
            kept = self._cache_file._load_index()
            name = kept.get(self._index_key(sig, target_context.codegen()))
            path = None if name is None else self._cache_file._data_path(name)
            return path if path is not None and os.path.exists(path) else None
        except MemoryError:
            raise
        except Exception:  # load_overload says what is wrong
            return None

    def lock(self, wait: float) -> int | None:
        """Return a file descriptor. While it is open, no other process compiles this function.
        Returns None if another process still compiles the function after ``wait`` seconds. Raises
        OSError where there are no locks.
        """
        os.makedirs(self.cache_path, exist_ok=True)
        place, flags = f"{self._cache_file._index_path}.lock", os.O_RDWR | os.O_CREAT
        descriptor = os.open(place, flags, 0o600)
        until = time.monotonic() + wait
        try:
            while True:
                with contextlib.suppress(BlockingIOError):
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    mine, descriptor = descriptor, -1
                    return mine
                if time.monotonic() >= until:
                    return None
                time.sleep(_LOOK_SECONDS)
        finally:
            if descriptor >= 0:
                os.close(descriptor)

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except OSError as error:
            notes.append(f"{self.cache_path}: compiled kernels cannot be cached: {error.strerror}")


class _NoCache(NullCache):
    """The cache of a process that can keep no compiled kernel. It has the kernels that come with
    the package.
    """

    def __init__(self, function: Callable) -> None:
        self._function = function

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        rtsys.initialize(target_context)
        return _load_shipped(self._function, sig, target_context)


def _load_shipped(function: Callable, sig: Any, target_context: Any) -> Any:
    """Load a kernel that comes with the package; None if it does not, or is damaged."""
    try:
        data = shipped.find(function, sig)
        if data is None:
            return None
        return CompileResult._rebuild(target_context, *_Unpickler(io.BytesIO(data)).load())
    except MemoryError:
        raise
    except Exception:  # what unpickling a damaged file raises may be anything
        notes.append(f"{shipped.FILE}: damaged; compiling the kernels again")
        return None


def compiled(function: Callable) -> Any:
    """Declare a function that kernels call. The types of its arguments follow from those calls.

    Python cannot call it: the code by which it could takes a fifth of the time of compiling.
    """
    return _for_kernels(function)


def inlined(function: Callable) -> Any:
    """Declare a function as ``compiled`` does, whose code stands wherever it is called. It makes no
    arrays.

    It suits what is called for each edge or vertex: a call with arrays takes some 20 ns, and as
    much again to count references to them.
    """
    return _for_kernels(function, _nrt=False, forceinline=True)


def _for_kernels(function: Callable, **options: bool) -> Any:
    dispatcher = _dispatcher(function, no_cpython_wrapper=True, **options)

    def refuse(*args: Any, **named: Any) -> None:
        raise TypeError(f"{function.__name__} is for kernels alone: declare it with @kernel")

    # Numba would call code that is not there.
    dispatcher._insert, dispatcher._compile_for_args = (lambda *entry: None), refuse
    return dispatcher


def _dispatcher(function: Callable, **options: bool) -> Any:
    make: Any = njit
    dispatcher = make(nogil=True, no_cfunc_wrapper=True, **options)(function)
    try:
        dispatcher._cache = _Cache(function)
    except RuntimeError:  # there is no folder for it
        dispatcher._cache = _NoCache(function)
    return dispatcher


def kernel(*arguments: Any, allocates: bool = True) -> Callable[[Callable], Any]:
    """Declare a function to be compiled for arguments of these types: Numba's types, Several or
    Struct.

    If a function has several such decorators, it is compiled for the types of each. allocates:
    whether the function makes arrays; one that does not counts no references to its arguments,
    which would take longer than the work in an inner loop. The decorator next to the function says
    it.
    """

    def declare(function: Callable) -> Any:
        dispatcher: Any = function
        if hasattr(function, "signatures"):
            if not allocates:
                raise TypeError("the decorator next to the function says whether it allocates")
        else:
            dispatcher = _dispatcher(function, **({} if allocates else {"_nrt": False}))
        taken = dispatcher.py_func.__code__.co_argcount
        if len(arguments) != taken:
            raise TypeError(f"{function.__name__} takes {taken} arguments, not {len(arguments)}")
        _declared.setdefault(function.__module__, []).append((dispatcher, arguments))
        return dispatcher

    return declare


def compile_kernels(
    *kernels: ModuleType | Any,
    load: bool = True,
    leave_out: Collection[type] = (),
    **dtypes: DTypeLike | Iterable[DTypeLike],
) -> None:
    """Compile kernels, or load them from the cache.

    kernels: kernels, and modules, which stand for all kernels that they declare. load: False leaves
    kernels that the cache holds there until they are called, which takes some milliseconds each.
    leave_out: classes of Structs; kernels are not compiled for these. dtypes: for each Several that
    the kernels name, one dtype or some.
    """
    busy, missing = [], []
    several = tuple((name, tuple(_each(dtype))) for name, dtype in sorted(dtypes.items()))
    for dispatcher, signature in _wanted(kernels, frozenset(leave_out), several):
        if signature in dispatcher.overloads:
            continue
        if not load and (dispatcher, signature) in _wanted_so_far:
            continue  # the cache held it, or has it by now
        _wanted_so_far[dispatcher, signature] = None
        if not _is_kept(dispatcher, signature):
            missing.append((dispatcher, signature))
        elif load:
            dispatcher.compile(signature)
    with _few_collections() if missing else contextlib.nullcontext():
        for dispatcher, signature in missing:
            if not _compile(dispatcher, signature, 0.0):
                busy.append((dispatcher, signature))
        for dispatcher, signature in busy:
            if not _compile(dispatcher, signature, _PATIENCE):
                dispatcher.compile(signature)


@contextlib.contextmanager
def _few_collections() -> Iterator[None]:
    """Let the garbage collector run seldom: a compiler makes many objects that refer to each other,
    and looking through them as often as by default takes a fifth of its time.
    """
    global _compiling, _thresholds
    with _collector:
        if not _compiling:
            _thresholds = gc.get_threshold()
            gc.set_threshold(20_000, 50, 100)
        _compiling += 1
    try:
        yield
    finally:
        with _collector:
            _compiling -= 1
            if not _compiling:
                gc.set_threshold(*_thresholds)


@lru_cache  # each question over an open graph asks for the kernels of its program
def _wanted(
    kernels: tuple[ModuleType | Any, ...],
    leave_out: frozenset[type],
    dtypes: tuple[tuple[str, tuple[Any, ...]], ...],
) -> list[tuple[Any, tuple[Any, ...]]]:
    """Return functions, and the types to compile them for."""
    several, found = dict(dtypes), []
    for entry in kernels:
        whole = isinstance(entry, ModuleType)
        for dispatcher, arguments in _declared[entry.__name__ if whole else entry.__module__]:
            kinds = _kinds_in(arguments)
            if not (whole or dispatcher is entry) or kinds & leave_out:
                continue
            names = sorted({name for argument in arguments for name in _names_in(argument)})
            for chosen in product(*(several[name] for name in names)):
                known = dict(zip(names, chosen, strict=True))
                found.append((dispatcher, tuple(_type_of(one, known) for one in arguments)))
    return found


def _kinds_in(arguments: Sequence[Any]) -> set[type]:
    """Return the classes of the Structs among arguments, and of those in them."""
    structs = [argument for argument in arguments if isinstance(argument, Struct)]
    return {struct.kind for struct in structs}.union(*(_kinds_in(s.members) for s in structs))


def _compile(dispatcher: Any, signature: tuple[Any, ...], wait: float) -> bool:
    """Compile a kernel, or load it if another process has compiled it meanwhile. Returns False if
    another process still compiles it after ``wait`` seconds.
    """
    cache, lock = dispatcher._cache, None
    if isinstance(cache, _Cache):
        with contextlib.suppress(OSError):
            lock = cache.lock(wait)
            if lock is None:
                return False
    try:
        dispatcher.compile(signature)
    finally:
        if lock is not None:
            os.close(lock)
    return True


def _is_kept(dispatcher: Any, signature: tuple[Any, ...]) -> bool:
    """Return whether the package or the cache holds a compiled kernel."""
    return shipped.has(dispatcher.py_func, signature) or _file_of(dispatcher, signature) is not None


def _file_of(dispatcher: Any, signature: tuple[Any, ...]) -> str | None:
    """Return the file of the cache that holds a kernel; None if none does."""
    cache = dispatcher._cache
    return cache.file_of(signature, dispatcher.targetctx) if isinstance(cache, _Cache) else None


def cached_kernels() -> Iterator[tuple[str, bytes]]:
    """Yield the kernels that this process was to compile, if the cache has them by now, whichever
    process compiled them: the key, and what the cache holds.
    """
    for dispatcher, signature in _wanted_so_far:
        path = _file_of(dispatcher, signature)
        if path is not None:
            with open(path, "rb") as file:
                yield shipped.key(dispatcher.py_func, signature), file.read()


def count_kernels() -> tuple[int, int]:
    """Return how many kernels this process has compiled, and how many it has loaded."""
    stats = [dispatcher.stats for dispatcher in _dispatchers()]
    compiled = sum(sum(counter.cache_misses.values()) for counter in stats)
    return compiled, sum(sum(counter.cache_hits.values()) for counter in stats)


def _dispatchers() -> list[Any]:
    """Return all kernels that are declared, each once."""
    declared = itertools.chain.from_iterable(_declared.values())
    return list({id(dispatcher): dispatcher for dispatcher, _ in declared}.values())


def variants(*modules: ModuleType) -> dict[str, int]:
    """Count the compiled variants of each declared kernel."""
    return {
        f"{module.__name__}.{dispatcher.__name__}": len(dispatcher.signatures)
        for module in modules
        for dispatcher, _ in _declared[module.__name__]
    }


def _each(dtypes: Any) -> list[np.dtype]:
    choices = dtypes if isinstance(dtypes, set | list | tuple) else [dtypes]
    return sorted({np.dtype(dtype) for dtype in choices}, key=str)  # in the same order every time


def _names_in(argument: Any) -> Iterator[str]:
    """Yield the name of each ``Several`` in a declared argument."""
    if isinstance(argument, Several):
        yield argument.name
    elif isinstance(argument, Struct):
        for member in argument.members:
            yield from _names_in(member)


def _type_of(argument: Any, known: dict[str, np.dtype]) -> Any:
    if isinstance(argument, Struct):
        _meet(argument.kind)
        members = [_type_of(member, known) for member in argument.members]
        return types.BaseTuple.from_types(members, argument.kind)  # as Numba types a value
    if not isinstance(argument, Several):
        return argument
    item = getattr(types, str(known[argument.name]))
    return types.Array(item, 1, "C", readonly=argument.read_only)


@cache
def _meet(kind: type) -> None:
    """Have Numba find out how it types a class. Otherwise Numba does so when it is first given a
    value of the class, and this takes longer than a small search.
    """
    fields: tuple[str, ...] = getattr(kind, "_fields")  # noqa: B009  # of a named tuple
    typeof(kind(*range(len(fields))))
