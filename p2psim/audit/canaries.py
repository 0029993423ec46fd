"""Worst-case adjacent data: two records whose gradients are known, and as far apart as the claim allows."""

from dataclasses import dataclass

import numpy as np

from p2psim.core.errors import MeaningError
from p2psim.learning.losses import Loss

#: A target this far beyond the norm of clipping keeps a squared loss's gradient clipped at any model in reach.
FAR = 1e6

#: Margin −y·θᵀx at which a logistic loss's slope is its bound, and stays so while the model moves and shrinks.
SATURATED = 100.0

#: Share of x that lies along the coordinate which keeps the slope at its bound.
TILT = 0.01


@dataclass(frozen=True)
class GradientLimits:
    """What limits a record's gradient.

    Attributes
    ----------
    loss : Loss
    clip : float
        Norm to which gradients are clipped; infinite for none.
    bound : float
        Ξ, the bound that is claimed. Where nothing is clipped, no record in hand may exceed it.
    order : int
        Order of the norm that is clipped or bounded: 1 or 2.
    theta_max : float
        Models lie in a box of this size; infinite for none.
    x_bound, y_bound : float or None
        Public bounds on a record from which Ξ follows; None where it does not.
    """

    loss: Loss
    clip: float
    bound: float
    order: int
    theta_max: float = np.inf
    x_bound: float | None = None
    y_bound: float | None = None


@dataclass(frozen=True)
class Record:
    """One record, and the model that its agent begins at."""

    x: np.ndarray
    y: float
    start: np.ndarray


#: Two records, in the one data set and in the other; both with the model to begin at.
Pair = tuple[Record, Record]


def pairs(limits: GradientLimits, p: int) -> dict[str, Pair]:
    """Two canaries by name: gradients that differ in one coordinate, and ones that differ alike in all.

    The first never tells an L2 bound from an L1 bound. The dense one does: under an L2 bound C each coordinate is
    C/√p, which adds up to √p·C in L1; under an L1 bound it is C/p, and the claim is just met. A single coordinate has
    but one.

    Parameters
    ----------
    limits : GradientLimits
    p : int
        Coordinates, at least one.
    """
    single, dense = np.eye(1, p)[0], np.ones(p)
    if p == 1:
        return {"one coordinate": _opposite(limits, single)}
    saturates = _saturates(limits.loss)
    if saturates and np.isinf(limits.theta_max):
        dense[-1] = 0.0
        return {"one coordinate": _tilted(limits, single), "dense": _tilted(limits, dense)}
    needs_model = saturates or (limits.loss.is_squared_error and limits.x_bound is not None)
    if needs_model and np.isinf(limits.clip):
        half = (np.arange(p) < p // 2).astype(float)
        alone = _apart(limits, single, np.roll(single, 1))
        return {"one coordinate": alone, "dense": _apart(limits, half, 1 - half)}
    return {"one coordinate": _opposite(limits, single), "dense": _opposite(limits, dense)}


def _saturates(loss: Loss) -> bool:
    """Whether a loss of classes reaches its steepest slope, which is one, far from a score of zero only.

    Raises
    ------
    MeaningError
        If it is a loss for which no worst records are known.
    """
    if loss.is_squared_error:
        return False
    if not (loss.needs_classes and loss.slope_bound == 1):
        raise MeaningError(
            "learning.loss",
            "worst records are known for squared loss and for losses of classes with slopes up to 1, "
            f"not for {loss.kind}",
        )
    return bool(np.abs(loss.slopes(np.zeros(1), np.ones(1)))[0] < 1)


def _unit(direction: np.ndarray, order: int) -> np.ndarray:
    return np.asarray(direction / np.linalg.norm(direction, ord=order))


def _size(limits: GradientLimits) -> float:
    """Norm of x for losses of classes, whose slope is at most one; clipped gradients stay so down to an eighth."""
    return 8 * limits.clip if np.isfinite(limits.clip) else limits.x_bound or limits.bound


def _opposite(limits: GradientLimits, direction: np.ndarray) -> Pair:
    """Opposite gradients of one x, by its label, at the model zero."""
    u = _unit(direction, limits.order)
    start = np.zeros(u.size)
    if not limits.loss.is_squared_error:
        x = _size(limits) * u
        return Record(x, 1.0, start), Record(-x, 1.0, start)
    if np.isfinite(limits.clip):
        size, target = 1.0, FAR * max(1.0, limits.clip)
    elif limits.x_bound is not None:
        size, target = limits.x_bound, limits.y_bound or 0.0
    else:
        # So small an x that where the model is hardly matters: |θᵀx| is far below |y|.
        size = np.sqrt(limits.bound) * 1e-4
        target = limits.bound * (1 - 1e-6) / (2 * size)
    return Record(size * u, -target, start), Record(size * u, target, start)


def _tilted(limits: GradientLimits, direction: np.ndarray) -> Pair:
    """Nearly opposite x for a logistic loss, at a model so far along the last coordinate that both slopes are one."""
    u = _unit(direction, limits.order) * (1 - TILT)
    u[-1] = TILT
    v = -u
    v[-1] = TILT
    start = np.zeros(u.size)
    start[-1] = -SATURATED / (_size(limits) * TILT)
    # Normed again: (1 − τ, τ) is shorter than one in L2.
    first, second = (_size(limits) * _unit(x, limits.order) for x in (u, v))
    return Record(first, 1.0, start), Record(second, 1.0, start)


def _apart(limits: GradientLimits, first: np.ndarray, second: np.ndarray) -> Pair:
    """Gradients along two directions, at a model in a corner of the box, where both are largest."""
    # The slope of a squared loss is bounded by ‖x‖₁, whatever the norm of its gradient.
    order = 1 if limits.loss.is_squared_error else limits.order
    u, v = _unit(first, order), _unit(second, order)
    corner = np.full(u.size, limits.theta_max)
    if limits.loss.is_squared_error:
        assert limits.x_bound is not None
        size, target = limits.x_bound, -(limits.y_bound or 0.0)
    else:
        size, target, corner = _size(limits), 1.0, -corner
    return Record(size * u, target, corner), Record(size * v, target, corner)


def gradients(limits: GradientLimits, x: np.ndarray, y: float, theta: np.ndarray) -> np.ndarray:
    """Clipped gradient of one record at each model, shape (…, p) to (…, p): plainly, not by the kernels."""
    raw = limits.loss.slopes(theta @ x, np.asarray(y))[..., None] * x
    norms = np.linalg.norm(raw, ord=limits.order, axis=-1, keepdims=True)
    return np.asarray(raw * np.minimum(1.0, limits.clip / np.maximum(norms, 1e-300)))
