"""Compiled gradients of models: sums over the records of a batch, each record's gradient clipped by itself.

A kernel takes a model as `Model.for_kernel` gives it, a named tuple whose type selects the code: a kernel compiles the
code of the one model that it is called with. Sums run in the order of the records, and within a record in the order of
its features, whatever records are computed together: the bits depend on neither the grouping nor the processor.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload

from p2psim.core.compiled import njit
from p2psim.learning.losses.compiled import slope

#: Activations of hidden layers.
RELU, TANH = 0, 1

#: Records that layers are computed for at once.
BLOCK = 8


class LinearModel(NamedTuple):
    """A loss of the score θᵀx.

    Attributes
    ----------
    loss : int or tuple
        `Loss.for_kernel`.
    """

    loss: Any


class LayeredModel(NamedTuple):
    """Dense layers, the last one with the cross-entropy of its softmax.

    A layer's parameters are its weights, an output's after another's, then its biases, as those of
    ``torch.nn.Linear``; layers follow one another.

    Attributes
    ----------
    sizes : ndarray of int64, shape (layers + 1,)
        Number of inputs, of the outputs of each hidden layer, and of classes.
    activation : int
        `RELU` or `TANH`, after each hidden layer.
    columns : ndarray, shape (total, BLOCK)
        Room for the values of a block of records: all layers' values, the inputs first; one column per record.
    values, deltas : ndarray, shape (BLOCK, total)
        Room for the same values, one row per record, and for the loss's derivatives by the sums that they come from.
    """

    sizes: np.ndarray
    activation: int
    columns: np.ndarray
    values: np.ndarray
    deltas: np.ndarray

    @classmethod
    def of(cls, sizes: tuple[int, ...], activation: int) -> LayeredModel:
        """With room of its own: what is computed at the same time needs one each."""
        total = sum(sizes)
        room = np.zeros((total, BLOCK)), np.zeros((BLOCK, total)), np.zeros((BLOCK, total))
        return cls(np.array(sizes, np.int64), activation, *room)


def _add(
    theta: Any, X: Any, y: Any, rows: Any, count: Any, clip: Any, order: Any, model: Any, out: Any
) -> Any:
    """`add_gradient` of the model at hand; for kernels."""
    raise NotImplementedError("for compiled code")


@njit()
def add_gradient(theta, X, y, rows, count, clip, order, model, out):  # type: ignore[no-untyped-def]
    """Add the sum of the clipped gradients of a batch's records to ``out``; returns the largest norm before clipping.

    Parameters
    ----------
    theta : ndarray, shape (p,)
    X : ndarray, shape (records, features)
    y : ndarray, shape (records,)
    rows : ndarray of int64
        Records of the batch: ``rows[:count]``.
    count : int
    clip : float
        Norm to which each record's gradient is clipped; infinite for none.
    order : int
        Order of that norm, 1 or 2; 0 if no norms are needed: nothing is clipped then, and 0 is returned.
    model : LinearModel or LayeredModel
    out : ndarray, shape (p,)
    """
    return _add(theta, X, y, rows, count, clip, order, model, out)


@overload(_add)
def _of_add(theta, X, y, rows, count, clip, order, model, out):  # type: ignore[no-untyped-def]
    chosen = {LinearModel: _add_linear, LayeredModel: _add_layered}[model.instance_class]
    return lambda theta, X, y, rows, count, clip, order, model, out: chosen(
        theta, X, y, rows, count, clip, order, model, out
    )


@njit(inline="always")
def _scale(norm, clip):  # type: ignore[no-untyped-def]
    """Factor that brings a gradient of this norm to at most ``clip``."""
    return clip / norm if norm > clip else 1.0


@njit()
def _norm(X, r, order):  # type: ignore[no-untyped-def]
    """Norm of a row."""
    total = 0.0
    if order == 1:
        for a in range(X.shape[1]):
            total += abs(X[r, a])
        return total
    for a in range(X.shape[1]):
        total += X[r, a] * X[r, a]
    return math.sqrt(total)


@njit()
def _add_linear(theta, X, y, rows, count, clip, order, model, out):  # type: ignore[no-untyped-def]
    """Four rows are scored together; each is summed, and added to the gradient, in its own order."""
    p, loss = theta.size, model.loss
    longest = 0.0
    k = 0
    while k + 4 <= count:
        r0, r1, r2, r3 = rows[k], rows[k + 1], rows[k + 2], rows[k + 3]
        z0 = z1 = z2 = z3 = 0.0
        for a in range(p):
            t = theta[a]
            z0 += X[r0, a] * t
            z1 += X[r1, a] * t
            z2 += X[r2, a] * t
            z3 += X[r3, a] * t
        d0, d1, d2, d3 = (
            slope(loss, z0, y[r0]),
            slope(loss, z1, y[r1]),
            slope(loss, z2, y[r2]),
            slope(loss, z3, y[r3]),
        )
        if order != 0:
            n0, n1 = abs(d0) * _norm(X, r0, order), abs(d1) * _norm(X, r1, order)
            n2, n3 = abs(d2) * _norm(X, r2, order), abs(d3) * _norm(X, r3, order)
            longest = max(longest, n0, n1, n2, n3)
            d0, d1, d2, d3 = (
                d0 * _scale(n0, clip),
                d1 * _scale(n1, clip),
                d2 * _scale(n2, clip),
                d3 * _scale(n3, clip),
            )
        for a in range(p):
            g = out[a]
            g += d0 * X[r0, a]
            g += d1 * X[r1, a]
            g += d2 * X[r2, a]
            g += d3 * X[r3, a]
            out[a] = g
        k += 4
    while k < count:
        r = rows[k]
        z = 0.0
        for a in range(p):
            z += X[r, a] * theta[a]
        d = slope(loss, z, y[r])
        if order != 0:
            norm = abs(d) * _norm(X, r, order)
            longest = max(longest, norm)
            d *= _scale(norm, clip)
        for a in range(p):
            out[a] += d * X[r, a]
        k += 1
    return longest


@njit()
def _add_layered(theta, X, y, rows, count, clip, order, model, out):  # type: ignore[no-untyped-def]
    sizes, columns, values, deltas = model.sizes, model.columns, model.values, model.deltas
    longest = 0.0
    for first in range(0, count, BLOCK):
        m = min(BLOCK, count - first)
        _load(X, rows, first, m, columns, values)
        _forward(theta, sizes, model.activation, m, columns, values)
        _backward(theta, sizes, model.activation, y, rows, first, m, values, deltas)
        if order != 0:
            for k in range(m):
                norm = _gradient_norm(sizes, k, order, values, deltas)
                longest = max(longest, norm)
                scale = _scale(norm, clip)
                if scale != 1.0:
                    for a in range(sizes[0], deltas.shape[1]):
                        deltas[k, a] *= scale
        _accumulate(sizes, m, values, deltas, out)
    return longest


@njit()
def _load(X, rows, first, m, columns, values):  # type: ignore[no-untyped-def]
    """Write the inputs of a block's records; a block with less than its number of records has zeros besides."""
    for k in range(m):
        r = rows[first + k]
        for i in range(X.shape[1]):
            values[k, i] = X[r, i]
            columns[i, k] = X[r, i]
    for k in range(m, BLOCK):
        for i in range(X.shape[1]):
            columns[i, k] = 0.0


@njit()
def _forward(theta, sizes, activation, m, columns, values):  # type: ignore[no-untyped-def]
    """Write each layer's values; those of the last are the sums themselves."""
    weight, start = 0, 0
    for layer in range(sizes.size - 1):
        n, outputs = sizes[layer], sizes[layer + 1]
        inputs, results = columns[start : start + n], columns[start + n : start + n + outputs]
        weights = theta[weight : weight + n * outputs].reshape((outputs, n))
        biases = theta[weight + n * outputs : weight + (n + 1) * outputs]
        for o in range(outputs):
            z0 = z1 = z2 = z3 = z4 = z5 = z6 = z7 = biases[o]
            for i in range(n):
                w = weights[o, i]
                z0 += w * inputs[i, 0]
                z1 += w * inputs[i, 1]
                z2 += w * inputs[i, 2]
                z3 += w * inputs[i, 3]
                z4 += w * inputs[i, 4]
                z5 += w * inputs[i, 5]
                z6 += w * inputs[i, 6]
                z7 += w * inputs[i, 7]
            results[o, 0] = z0
            results[o, 1] = z1
            results[o, 2] = z2
            results[o, 3] = z3
            results[o, 4] = z4
            results[o, 5] = z5
            results[o, 6] = z6
            results[o, 7] = z7
        if layer < sizes.size - 2:
            for o in range(outputs):
                for k in range(BLOCK):
                    z = results[o, k]
                    if activation == RELU:
                        # As it stands, NaN stays NaN.
                        results[o, k] = 0.0 if z <= 0.0 else z
                    else:
                        results[o, k] = math.tanh(z)
        for k in range(m):
            for o in range(outputs):
                values[k, start + n + o] = results[o, k]
        weight, start = weight + (n + 1) * outputs, start + n


@njit()
def _backward(theta, sizes, activation, y, rows, first, m, values, deltas):  # type: ignore[no-untyped-def]
    """Write the derivatives of each record's loss by the sums of each layer."""
    classes = sizes[-1]
    last = values.shape[1] - classes
    for k in range(m):
        top = -np.inf
        for c in range(classes):
            top = max(top, values[k, last + c])
        total = 0.0
        for c in range(classes):
            e = math.exp(values[k, last + c] - top)
            deltas[k, last + c] = e
            total += e
        for c in range(classes):
            deltas[k, last + c] /= total
        deltas[k, last + int(y[rows[first + k]])] -= 1.0
    weight, start = 0, 0
    for layer in range(sizes.size - 1):
        weight, start = weight + (sizes[layer] + 1) * sizes[layer + 1], start + sizes[layer]
    for layer in range(sizes.size - 2, 0, -1):
        n, outputs = sizes[layer], sizes[layer + 1]
        weight -= (n + 1) * outputs
        weights = theta[weight : weight + n * outputs].reshape((outputs, n))
        for k in range(m):
            here, above = deltas[k, start - n : start], deltas[k, start : start + outputs]
            reached = values[k, start - n : start]
            here[:] = 0.0
            o = 0
            while o + 4 <= outputs:
                d0, d1, d2, d3 = above[o], above[o + 1], above[o + 2], above[o + 3]
                for i in range(n):
                    d = here[i]
                    d += d0 * weights[o, i]
                    d += d1 * weights[o + 1, i]
                    d += d2 * weights[o + 2, i]
                    d += d3 * weights[o + 3, i]
                    here[i] = d
                o += 4
            while o < outputs:
                for i in range(n):
                    here[i] += above[o] * weights[o, i]
                o += 1
            for i in range(n):
                if activation == RELU:
                    if reached[i] <= 0.0:
                        here[i] = 0.0
                else:
                    here[i] *= 1.0 - reached[i] * reached[i]
        start -= n


@njit()
def _gradient_norm(sizes, k, order, values, deltas):  # type: ignore[no-untyped-def]
    """Norm of a record's gradient: that of a layer is the outer product of its derivatives with its inputs and one."""
    total, start = 0.0, 0
    for layer in range(sizes.size - 1):
        n, outputs = sizes[layer], sizes[layer + 1]
        inputs, sums = 1.0, 0.0
        if order == 1:
            for i in range(start, start + n):
                inputs += abs(values[k, i])
            for o in range(start + n, start + n + outputs):
                sums += abs(deltas[k, o])
        else:
            for i in range(start, start + n):
                inputs += values[k, i] * values[k, i]
            for o in range(start + n, start + n + outputs):
                sums += deltas[k, o] * deltas[k, o]
        total += inputs * sums
        start += n
    return total if order == 1 else math.sqrt(total)


@njit()
def _accumulate(sizes, m, values, deltas, out):  # type: ignore[no-untyped-def]
    """Add the gradients of a block's records."""
    weight, start = 0, 0
    for layer in range(sizes.size - 1):
        n, outputs = sizes[layer], sizes[layer + 1]
        inputs, above = values[:, start : start + n], deltas[:, start + n : start + n + outputs]
        weights = out[weight : weight + n * outputs].reshape((outputs, n))
        biases = out[weight + n * outputs : weight + (n + 1) * outputs]
        for o in range(outputs):
            k = 0
            while k + 4 <= m:
                d0, d1, d2, d3 = above[k, o], above[k + 1, o], above[k + 2, o], above[k + 3, o]
                for i in range(n):
                    g = weights[o, i]
                    g += d0 * inputs[k, i]
                    g += d1 * inputs[k + 1, i]
                    g += d2 * inputs[k + 2, i]
                    g += d3 * inputs[k + 3, i]
                    weights[o, i] = g
                k += 4
            while k < m:
                for i in range(n):
                    weights[o, i] += above[k, o] * inputs[k, i]
                k += 1
            for k in range(m):
                biases[o] += above[k, o]
        weight, start = weight + (n + 1) * outputs, start + n
