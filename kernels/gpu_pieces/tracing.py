"""Functions of vectors as kernels.

A function is traced: it is called once with stand-ins for the arrays, which write down what it does
with each element. The kernel that is made of this reads each value once and writes it once, where
CuPy would call a kernel for each operator. Only whole numbers are traced, since their results do
not depend on how sums are ordered or products rounded. What cannot be traced is called with CuPy's
arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from ..gpu.device import Device
from ..gpu.graph import Array

_NAMES = {
    "bool": "bool",
    "uint8": "u8",
    "int32": "int",
    "uint32": "u32",
    "int64": "long long",
    "uint64": "u64",
}
TYPES = {np.dtype(name).char: of_c for name, of_c in _NAMES.items()}
"""Names in C++ of the types of whole numbers, by NumPy's character for them."""

_NUMBERS = {
    "add": "{} + {}",
    "subtract": "{} - {}",
    "multiply": "{} * {}",
    "left_shift": "{} << {}",
    "right_shift": "{} >> {}",
    "minimum": "min({}, {})",
    "maximum": "max({}, {})",
}
_WORDS = {"bitwise_and": "{} & {}", "bitwise_or": "{} | {}", "bitwise_xor": "{} ^ {}"}
_COMPARISONS = {
    "equal": "{} == {}",
    "not_equal": "{} != {}",
    "less": "{} < {}",
    "less_equal": "{} <= {}",
    "greater": "{} > {}",
    "greater_equal": "{} >= {}",
}


class TracingError(Exception):
    """A function does something that a kernel of its own cannot do."""


class _Trace:
    """Statements in C++ that do with an element what a function does. sums: the number of sums.
    masks: variables that must stay, as they have chosen elements.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.masks: set[str] = set()
        self.sums = 0
        self._names = 0

    def new(self, kind: np.dtype, expression: str, chosen: str = "") -> _Value:
        """Return a new variable. chosen: as of ``_Value``."""
        if kind.char not in TYPES:
            raise TracingError
        name = f"v{self._names}"
        self._names += 1
        self.lines.append(f"{TYPES[kind.char]} {name} = {expression};")
        return _Value(self, name, kind, chosen)


class _Positive:
    """The size of arrays, of which a function may ask whether there is anything."""

    def __bool__(self) -> bool:
        return True


class _Value(NDArrayOperatorsMixin):
    """A stand-in for an array: a variable for its element. chosen: the mask that chose the elements
    of this array from another one; empty for none. A kind of None is that of a plain number of
    Python, which has the type of what it is combined with.
    """

    size = _Positive()

    def __init__(self, trace: _Trace, name: str, kind: np.dtype | None, chosen: str = "") -> None:
        self.trace, self.name, self.kind, self.chosen = trace, name, kind, chosen

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None) -> Any:
        forms = _NUMBERS | _WORDS | _COMPARISONS
        if method != "__call__" or (ufunc.__name__ not in forms and ufunc is not np.invert):
            raise TracingError
        chosen = _common(inputs)
        samples = [_sample(some) for some in inputs]
        found = ufunc(*samples).dtype
        if found.name == "bool" and ufunc.__name__ in _NUMBERS:
            raise TracingError
        kind = found
        if ufunc.__name__ in _COMPARISONS:
            kind = np.result_type(*(s if isinstance(s, int) else s.dtype for s in samples))
        parts = [_text(some, kind) for some in inputs]
        if ufunc is np.invert:
            text = f"!{parts[0]}" if found.name == "bool" else f"~{parts[0]}"
        else:
            text = forms[ufunc.__name__].format(*parts)
        if out is None:
            return self.trace.new(found, f"({_c(found)})({text})", chosen)
        (into,) = out
        into.assign(f"({text})", chosen)
        return into

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function is np.where and len(args) == 3:
            mask, one, other = args
            kind = np.result_type(*(_kind_of(some) for some in (one, other)))
            text = f"{_text(mask, np.dtype(bool))} ? {_text(one, kind)} : {_text(other, kind)}"
            return self.trace.new(kind, text, _common(args))
        raise TracingError

    def astype(self, kind: Any) -> _Value:
        return self.trace.new(np.dtype(kind), _text(self, np.dtype(kind)), self.chosen)

    def sum(self) -> _Sum:
        if self.kind is None or self.kind.char not in TYPES:
            raise TracingError
        text = f"(u64){self.name}"
        if self.chosen:
            text = f"{self.chosen} ? {text} : 0"
        self.trace.lines.append(f"s{self.trace.sums} += {text};")
        self.trace.sums += 1
        return _Sum(self.trace.sums - 1, self.kind.kind == "i")

    def __getitem__(self, at: Any) -> _Value:
        if not isinstance(at, _Value) or at.kind != np.dtype(bool) or self.kind is None:
            raise TracingError
        self.trace.masks.add(at.name)
        return self.trace.new(self.kind, self.name, at.name)

    def __setitem__(self, at: Any, value: Any) -> None:
        if isinstance(at, slice):
            if at != slice(None):
                raise TracingError
            self.assign(_text(value, self.kind), _common([value]))
        elif isinstance(at, _Value) and at.kind == np.dtype(bool):
            if _common([value]) not in ("", at.name):
                raise TracingError
            self.trace.lines.append(f"if ({at.name}) {self.name} = {_text(value, self.kind)};")
        else:
            raise TracingError

    def assign(self, text: str, chosen: str) -> None:
        if self.kind is None or chosen != self.chosen or self.name in self.trace.masks:
            raise TracingError
        self.trace.lines.append(f"{self.name} = ({_c(self.kind)}){text};")

    def __bool__(self) -> bool:
        raise TracingError

    __int__ = __float__ = __index__ = __len__ = __iter__ = __bool__  # pyright: ignore


class _Sum:
    """A sum, by its number. signed: whether it may be negative."""

    def __init__(self, number: int, signed: bool) -> None:
        self.number, self.signed = number, signed

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function is np.stack and not kwargs:
            return tuple(*args)
        raise TracingError


def _c(kind: np.dtype) -> str:
    if kind.char not in TYPES:
        raise TracingError
    return TYPES[kind.char]


def _common(inputs: Sequence[Any]) -> str:
    """Return the mask that all values have been chosen by."""
    masks = {some.chosen for some in inputs if isinstance(some, _Value) and some.kind is not None}
    if len(masks) > 1:
        raise TracingError
    return next(iter(masks), "")


def _kind_of(some: Any) -> Any:
    if isinstance(some, _Value):
        return 1 if some.kind is None else some.kind
    return some if isinstance(some, int) else some.dtype


def _sample(some: Any) -> Any:
    """Return an array of the type of a value; a plain number of Python stays one."""
    kind = _kind_of(some)
    return kind if isinstance(kind, int) else np.ones(1, kind)


def _text(some: Any, kind: np.dtype | None) -> str:
    """Return a value in C++, as of a type."""
    if kind is None:
        raise TracingError
    if isinstance(some, _Value):
        return f"({_c(kind)}){some.name}"
    if not isinstance(some, int | np.integer | np.bool_):
        raise TracingError
    number = int(np.array(some).astype(kind))
    return f"({_c(kind)}){number}" + ("ull" if number >= 1 << 31 else "")


class Traced(NamedTuple):
    """The kernel of a function. sums: what the function returns, sums or nothing."""

    kernel: Any
    given: Any
    sums: int


_BASE = "base/warp.cuh", "base/work.cuh"

_HEAD = """
__global__ void each({parameters}const u32 *places, u64 count, u64 *sums) {{
  {sums}
  FOR_ITEMS(i, count) {{
    const u64 at = places ? places[i] : i;
"""


@cache
def _traced(
    device: Device, function: Any, fixed: tuple[Any, ...], kinds: tuple[str, ...], changing: int
) -> Traced | None:
    """Return the kernel of a function of vectors of some types; None if it cannot be traced.

    fixed: the first arguments; the type ``int`` stands for any number. changing: the number of the
    first vectors, which may change.
    """
    trace, parameters = _Trace(), []
    given: list[Any] = []
    for at, some in enumerate(fixed):
        given.append(_Value(trace, f"p{at}", None) if some is int else some)
        if some is int:
            parameters.append(f"long long p{at}, ")
    try:
        cells = [_Value(trace, f"c{at}", np.dtype(kind)) for at, kind in enumerate(kinds)]
        loads = [f"{TYPES[kind]} c{at} = a{at}[at];" for at, kind in enumerate(kinds)]
        parameters += [f"{TYPES[kind]} *a{at}, " for at, kind in enumerate(kinds)]
        result = function(*given, *cells)
    except (TracingError, KeyError, TypeError, AttributeError, OverflowError):
        return None
    if not all(isinstance(some, _Sum) for some in _each_of(result)):
        return None
    stores = [f"a{at}[at] = c{at};" for at in range(changing)]
    sums = " ".join(f"u64 s{number} = 0;" for number in range(trace.sums))
    text = _HEAD.format(parameters="".join(parameters), sums=sums)
    text += "\n".join([*loads, *trace.lines, *stores, "}"])
    for number in range(trace.sums):
        text += f"\ns{number} = __shfl_sync(ALL, warp_scan(s{number}), 31);"
        text += f"\nif (lane_id() == 0 && s{number}) atomicAdd(sums + {number}, s{number});"
    base = "".join(f'#include "{name}"\n' for name in _BASE)
    with device.use():
        kernel = device.kernel_of_text(base + text + "\n}\n", "each")
    return Traced(kernel, result, trace.sums)


def _each_of(result: Any) -> Sequence[Any]:
    if result is None:
        return ()
    return result if isinstance(result, tuple) else (result,)


def call_traced(
    device: Device,
    function: Callable[..., Any],
    arrays: Sequence[Array],
    changing: int,
    places: Array | None,
) -> list[int] | None:
    """Call a function with values of vectors, at some places or all, as one kernel. Returns the
    sums that the function returns; None, with nothing done, if no kernel can be made of it.

    changing: the number of the first arrays, which may change.
    """
    fixed: tuple[Any, ...] = ()
    while isinstance(function, partial) and not function.keywords:
        fixed, function = (*function.args, *fixed), function.func
    if not isinstance(function, FunctionType) or function.__closure__ is not None:
        return None
    kinds = tuple(array.dtype.char for array in arrays)
    if any(type(some) is int and not -(1 << 63) <= some < 1 << 63 for some in fixed):
        return None
    of_fixed = tuple(int if type(some) is int else some for some in fixed)
    try:
        traced = _traced(device, function, of_fixed, kinds, changing)
    except TypeError:  # an argument that cannot be a key
        return None
    if traced is None:
        return None
    numbers = [np.int64(some) for some in fixed if type(some) is int]
    with device.use() as cupy:
        sums = cupy.zeros(max(1, traced.sums), np.uint64)
        among = np.uint64(0) if places is None else places
        count = len(arrays[0]) if places is None else len(places)
        device.launch_kernel(
            traced.kernel, count, (*numbers, *arrays, among, np.uint64(count), sums)
        )
        if not traced.sums:
            return []
        found = sums.get()
    whole = _each_of(traced.given)
    return [int(found.view(np.int64 if s.signed else np.uint64)[s.number]) for s in whole]
