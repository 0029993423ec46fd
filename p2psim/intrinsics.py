"""Instructions of the processor that compiled code has no words for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import extending
from numba.core import cgutils, types

intrinsic: Callable[[Callable[..., Any]], Callable[..., Any]] = extending.intrinsic
insert: Callable[..., Any] = cgutils.get_or_insert_function


@intrinsic
def prefetch(typing_context: Any, array: Any, place: Any) -> Any:
    """Have the cache line of a C-contiguous array's element fetched, by its place in the flattened array.

    Nothing is read: a place outside the array does no harm, and no result depends on it.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        pointer = builder.bitcast(builder.gep(data, [arguments[1]]), cgutils.voidptr_t)
        number, byte = ir.IntType(32), cgutils.voidptr_t
        wanted = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        function = insert(builder.module, wanted, "llvm.prefetch.p0")
        # To read, to be kept in all levels of the cache, data.
        builder.call(function, [pointer, number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.none(array, types.intp), generate


@intrinsic
def high_product(typing_context: Any, a: Any, b: Any) -> Any:
    """Upper 64 bits of the product of two unsigned numbers of 64 bits."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        wide = ir.IntType(128)
        a, b = (builder.zext(argument, wide) for argument in arguments)
        return builder.trunc(builder.lshr(builder.mul(a, b), wide(64)), ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), generate
