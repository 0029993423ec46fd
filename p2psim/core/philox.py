"""Compiled random streams: the same numbers as NumPy's Philox, at any place, without storage.

The generator is Philox4x64-10 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
Block ``j`` of an agent's stream is the cipher of the counter (j + 1, 0, agent, 0) under the stream's key, which
:func:`p2psim.core.randomness.generator` yields in the same order; being a function of the address, it serves a million
agents without a million generators. A consumer whose number of draws is not known beforehand has a series of blocks of
its own: (j + 1, series, agent, 0). The last word is the lane of `p2psim.core.randomness.generator`. Wide multiplication
uses an instruction of the processor.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba import extending
from numba.core import cgutils, types

from p2psim.core.compiled import njit

_M0 = np.uint64(0xD2E7470EE14C6C93)
_M1 = np.uint64(0xCA5A826395121157)
_W0 = np.uint64(0x9E3779B97F4A7C15)
_W1 = np.uint64(0xBB67AE8584CAA73B)
_TO_DOUBLE = 1.0 / 9007199254740992.0  # 2**-53
_TURN = 2.0 * math.pi
# Bits of √½, of 1 and of 2**52; ln 2 in two parts, of which whole multiples of the higher are exact.
_ROOT_OF_HALF = np.uint64(0x3FE6A09E667F3BCD)
_BIAS = np.uint64(0x3FF0000000000000)
_POWER_52 = np.uint64(0x4330000000000000)
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10


@njit(inline="always")
def _block_here(k0, k1, agent, block, series, lane):  # type: ignore[no-untyped-def]
    """`philox_block`, pasted into a loop that fills an array, where a call takes a sixth of the time."""
    c0, c1, c2, c3 = np.uint64(block) + np.uint64(1), np.uint64(series), np.uint64(agent), np.uint64(lane)
    for _ in range(10):
        high0, low0 = high_product(_M0, c0), _M0 * c0
        high1, low1 = high_product(_M1, c2), _M1 * c2
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0 += _W0
        k1 += _W1
    return c0, c1, c2, c3


@njit()
def philox_block(key, agent, block, series=0, lane=0):  # type: ignore[no-untyped-def]
    """Four 64 bit words: block ``block`` (from 0) of a series of a lane of the stream of ``agent``."""
    return _block_here(key[0], key[1], agent, block, series, lane)


@njit(inline="always")
def unit(word):  # type: ignore[no-untyped-def]
    """Number on [0, 1) of a word's upper 53 bits."""
    return float(word >> np.uint64(11)) * _TO_DOUBLE


@njit()
def uniform(key, agent, place, lane=0):  # type: ignore[no-untyped-def]
    """Uniform draw on [0, 1) at a place of a lane of an agent's stream."""
    return unit(philox_block(key, agent, place >> 2, 0, lane)[place & 3])


@njit()
def exponential(key, agent, place):  # type: ignore[no-untyped-def]
    """Exponential draw of mean one. ``1 - u`` lies in (0, 1], so the logarithm is finite."""
    return -math.log(1.0 - uniform(key, agent, place))


@njit(inline="always")
def _log(x):  # type: ignore[no-untyped-def]
    """Natural logarithm of a normal number x > 0, less than one unit in the last place off.

    With x = 2**k (1 + f) and √½ ≤ 1 + f < √2 it is k ln 2 + ln(1 + f), the latter by the polynomial in s = f / (2 + f)
    of fdlibm (Sun Microsystems 1993, ``e_log.c``). Without branches and calls the processor works on four numbers at a
    time, which it cannot with ``math.log``; sums, products and a division are rounded in one way by all processors.
    """
    bits = np.float64(x).view(np.uint64)
    exponent = (bits - _ROOT_OF_HALF + _BIAS) >> np.uint64(52)
    k = np.uint64(exponent | _POWER_52).view(np.float64) - (4503599627370496.0 + 1023.0)
    f = np.uint64(bits - (exponent << np.uint64(52)) + _BIAS).view(np.float64) - 1.0
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    even = w * (0.3999999999940941908 + w * (0.2222219843214978396 + w * 0.1531383769920937332))
    odd = z * (
        0.6666666666666735130
        + w * (0.2857142874366239149 + w * (0.1818357216161805012 + w * 0.1479819860511658591))
    )
    half = 0.5 * f * f
    return k * _LN2_HIGH - ((half - (s * (half + even + odd) + k * _LN2_LOW)) - f)


@njit(inline="always")
def laplace_quantile(u):  # type: ignore[no-untyped-def]
    """Inverse distribution function of the unit Laplace law, with u in [0, 1); zero stands for 2**-54.

    Which half u lies in nobody can predict, so that nothing branches on it: it gives the logarithm its sign. The lesser
    of u and 1 − u is found without rounding.
    """
    lesser = 0.5 - abs(u - 0.5)
    return _log(2.0 * lesser if u > 0.0 else 2.0**-54) * (1.0 - 2.0 * (u >= 0.5))


@njit(error_model="numpy")
def unit_laplace(key, agents, numbers, out):  # type: ignore[no-untyped-def]
    """Fill ``out`` (rows, p), C-contiguous, with Laplace noise of scale one: row r is release numbers[r] of agents[r].

    A release takes whole blocks of four words, so that each can be drawn alone.
    """
    unit_uniform(key, agents, numbers, out)
    flat = out.reshape(out.size)
    for i in range(flat.size):
        flat[i] = laplace_quantile(flat[i])


@njit(inline="always")
def _gaussians_of(u, v):  # type: ignore[no-untyped-def]
    """Two independent standard normal numbers of two uniform ones on [0, 1) (Box and Muller 1958).

    The radius is √(−2 ln(1 − u)) with 1 − u in [2**-53, 1]: no draw is larger than 8.58, beyond which a normal number
    is found with probability 1e-17.
    """
    radius, angle = math.sqrt(-2.0 * math.log(1.0 - u)), _TURN * v
    return radius * math.cos(angle), radius * math.sin(angle)


@njit()
def unit_gaussian(key, agents, numbers, out):  # type: ignore[no-untyped-def]
    """Fill ``out`` (rows, p) with standard normal noise: row r is release numbers[r] of agents[r].

    A release takes the same blocks of words as in `unit_laplace`, each of which gives four numbers.
    """
    rows, p = out.shape
    blocks = (p + 3) >> 2
    for r in range(rows):
        base = numbers[r] * blocks
        for b in range(blocks):
            words = philox_block(key, agents[r], base + b, 0, 0)
            for lane in (0, 2):
                column = (b << 2) + lane
                if column < p:
                    first, second = _gaussians_of(unit(words[lane]), unit(words[lane + 1]))
                    out[r, column] = first
                    if column + 1 < p:
                        out[r, column + 1] = second


@njit()
def unit_uniform(key, agents, numbers, out):  # type: ignore[no-untyped-def]
    """Fill ``out`` (rows, p) with uniform draws on [0, 1): row r is release numbers[r] of agents[r].

    The same words as in `unit_laplace`.
    """
    rows, p = out.shape
    blocks, k0, k1 = (p + 3) >> 2, key[0], key[1]
    for r in range(rows):
        for b in range(blocks):
            words = _block_here(k0, k1, agents[r], numbers[r] * blocks + b, 0, 0)
            column = b << 2
            if column + 4 <= p:
                out[r, column], out[r, column + 1] = unit(words[0]), unit(words[1])
                out[r, column + 2], out[r, column + 3] = unit(words[2]), unit(words[3])
            else:
                for lane in range(p - column):
                    out[r, column + lane] = unit(words[lane])


@njit()
def _fill_together(key, edges, widths, heights, normals, parts):  # type: ignore[no-untyped-def]
    left = np.empty(len(normals), np.int64)
    count = 0
    for i in range(len(normals)):
        place, words, is_tail = 0, philox_block(key, i, 0), False
        for c in range(normals.shape[1]):
            while True:
                word = words[place & 3]
                place += 1
                if place & 3 == 0:
                    words = philox_block(key, i, place >> 2)
                layer, size = word & np.uint64(255), (word >> np.uint64(9)) & np.uint64(0x000FFFFFFFFFFFFF)
                x = float(size) * widths[layer]
                normals[i, c] = -x if word & np.uint64(256) else x
                if size < edges[layer]:
                    break
                is_tail |= layer == 0
                if is_tail:
                    break
                u = unit(words[place & 3])
                place += 1
                if place & 3 == 0:
                    words = philox_block(key, i, place >> 2)
                low = heights[layer]
                if (heights[layer - np.uint64(1)] - low) * u + low < math.exp(-0.5 * x * x):
                    break
        if is_tail:
            left[count] = i
            count += 1
            continue
        for part in parts:
            for c in range(part.shape[1]):
                part[i, c] = unit(words[place & 3])
                place += 1
                if place & 3 == 0:
                    words = philox_block(key, i, place >> 2)
    return left[:count]


def fill_together(key: np.ndarray, normals: np.ndarray, uniforms: Sequence[np.ndarray]) -> list[int]:
    """Fill arrays with what NumPy's generator draws for each agent: normal numbers, then uniform ones on [0, 1).

    Normal numbers are found by the ziggurat of Marsaglia and Tsang (2000) with NumPy's 256 layers, which Numba has too.

    Parameters
    ----------
    key : ndarray of uint64, shape (2,)
    normals : ndarray, shape (agents, some)
        Row i is drawn from the beginning of the stream of agent i.
    uniforms : sequence of ndarray
        C-contiguous, with as many numbers for each agent, one agent after the other; drawn one array after the other.

    Returns
    -------
    list of int
        The agents that are left to NumPy: a few, of which a number fell into the tail; all where Numba has no layers.
    """
    agents = len(normals)
    try:
        from numba.np.random import _constants as layers
    except ImportError:
        return list(range(agents))
    tables = layers.ki_double, layers.wi_double, layers.fi_double
    parts = tuple(part.reshape(agents, part.size // agents) for part in uniforms)
    left: list[int] = _fill_together(key, *tables, normals, parts).tolist()
    return left


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
