"""LLVM instructions that Numba does not offer: atomics on array elements, bit search, and loads and
copies of bytes.

The atomics use relaxed ordering, which is enough here: threads meet at the end of every
superstep, and nothing read within one depends on the order in which others wrote.
"""

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic


def _pointer(context, builder, array_type, array, index):
    """Return the address of an element of an array."""
    values = context.make_array(array_type)(context, builder, array)
    return cgutils.get_item_pointer(
        context, builder, array_type, values, [index], wraparound=False, boundscheck=False
    )


def _read_modify_write(operation: str):
    def typer(typingctx, array, index, value):
        def codegen(context, builder, signature, args):
            pointer = _pointer(context, builder, signature.args[0], args[0], args[1])
            return builder.atomic_rmw(operation, pointer, args[2], "monotonic")

        return array.dtype(array, types.intp, array.dtype), codegen

    return typer


fetch_or: Any = intrinsic(_read_modify_write("or"))
"""``fetch_or(array, index, value)``: ``array[index] |= value``; returns the value before."""

fetch_min: Any = intrinsic(_read_modify_write("umin"))
"""``fetch_min(array, index, value)``: ``array[index] = min(array[index], value)``, of unsigned
integers; returns the value before.
"""

fetch_add: Any = intrinsic(_read_modify_write("add"))
"""``fetch_add(array, index, value)``: ``array[index] += value``; returns the value before."""


def _exchange(typingctx, array, index, expected, value):
    def codegen(context, builder, signature, args):
        pointer = _pointer(context, builder, signature.args[0], args[0], args[1])
        done = builder.cmpxchg(pointer, args[2], args[3], "monotonic", "monotonic")
        return builder.extract_value(done, 1)

    return types.boolean(array, types.intp, array.dtype, array.dtype), codegen


compare_and_swap: Any = intrinsic(_exchange)
"""``compare_and_swap(array, index, expected, value)``: ``array[index] = value`` if it is
``expected``; returns whether it was.
"""


def _lowest_bit(typingctx, word):
    def codegen(context, builder, signature, args):
        return builder.cttz(args[0], cgutils.true_bit)

    return types.uint64(types.uint64), codegen


trailing_zeros: Any = intrinsic(_lowest_bit)
"""``trailing_zeros(word)``: index of the lowest set bit of a uint64 that is not zero."""


def _highest_bit(typingctx, word):
    def codegen(context, builder, signature, args):
        return builder.ctlz(args[0], cgutils.true_bit)

    return types.uint64(types.uint64), codegen


leading_zeros: Any = intrinsic(_highest_bit)
"""``leading_zeros(word)``: the number of zeros before the highest set bit of a uint64 that is not
zero.
"""


def _prefetch(typingctx, array, index):
    def codegen(context, builder, signature, args):
        pointer = _pointer(context, builder, signature.args[0], args[0], args[1])
        flag = ir.IntType(32)
        function = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, flag, flag, flag]),
            "llvm.prefetch.p0",
        )
        pointer = builder.bitcast(pointer, cgutils.voidptr_t)
        builder.call(function, [pointer, flag(0), flag(3), flag(1)])
        return context.get_dummy_value()

    return types.void(array, types.intp), codegen


prefetch: Any = intrinsic(_prefetch)
"""``prefetch(array, index)``: have the cache fetch ``array[index]``, which is read soon."""


def _load_word(typingctx, bytes, index):
    def codegen(context, builder, signature, args):
        pointer = _pointer(context, builder, signature.args[0], args[0], args[1])
        word = builder.load(builder.bitcast(pointer, ir.IntType(64).as_pointer()), align=1)
        return builder.bswap(word)  # processors that we run on have the first byte lowest

    return types.uint64(bytes, types.intp), codegen


load_word: Any = intrinsic(_load_word)
"""``load_word(bytes, index)``: the eight bytes from ``bytes[index]`` on as a uint64, whose highest
byte is the first one. Such words are in the order of their bytes.
"""


def _copy_bytes(typingctx, source, first, target, into, count):
    def codegen(context, builder, signature, args):
        begin = _pointer(context, builder, signature.args[0], args[0], args[1])
        place = _pointer(context, builder, signature.args[2], args[2], args[3])
        cgutils.raw_memcpy(builder, place, begin, args[4], 1)
        return context.get_dummy_value()

    return types.void(source, types.intp, target, types.intp, types.intp), codegen


copy_bytes: Any = intrinsic(_copy_bytes)
"""``copy_bytes(source, first, target, into, count)``: copy bytes from ``source[first]`` on to
``target[into]`` and on.
"""
