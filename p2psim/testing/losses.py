"""What a loss must do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from p2psim.errors import P2PSimError
from p2psim.learning.losses.protocol import Loss
from p2psim.learning.optimum import minimise

#: Half a step of a difference quotient.
STEP = 1e-5


def check_loss(part: Loss) -> Iterator[str]:
    """Yield what is wrong with a loss."""
    random = np.random.default_rng(0)
    z = np.concatenate([random.uniform(-6, 6, 400), random.uniform(-0.2, 0.2, 100)])
    y = random.choice([-1.0, 1.0], z.size) if part.needs_classes else random.uniform(-3, 3, z.size)
    values, slopes, seconds = part.values(z, y), part.slopes(z, y), part.second_slopes(z, y)
    for name, array in (("values", values), ("slopes", slopes), ("second_slopes", seconds)):
        if np.shape(array) != z.shape:
            yield f"{name}(z, y) of arrays of shape {z.shape} has the shape {np.shape(array)}"
            return
        if not np.isfinite(array).all():
            yield f"{name} is not finite for scores up to 6"
            return
    if (values < 0).any():
        yield "values are negative"
    yield from _derivatives(part, z, y, slopes, seconds)
    yield from _bounds(part, z, y, slopes, seconds)
    yield from _compiled(part, z, y, values, slopes)
    yield from _minimiser(part)


def _derivatives(
    part: Loss, z: np.ndarray, y: np.ndarray, slopes: np.ndarray, seconds: np.ndarray
) -> Iterator[str]:
    below, above = part.slopes(z - STEP, y), part.slopes(z + STEP, y)
    # Next to a kink or a corner a quotient means nothing.
    smooth = np.abs(above - below) <= 2 * STEP * (np.abs(seconds) + 1) * 1.5
    quotient = (part.values(z + STEP, y) - part.values(z - STEP, y)) / (2 * STEP)
    if not np.allclose(slopes[smooth], quotient[smooth], rtol=1e-4, atol=1e-5):
        yield "slopes are not the derivative of values"
    second = (above - below) / (2 * STEP)
    steady = smooth & np.isclose(part.second_slopes(z - STEP, y), part.second_slopes(z + STEP, y), atol=1e-3)
    if not np.allclose(seconds[steady], second[steady], rtol=1e-3, atol=1e-4):
        yield "second_slopes are not the derivative of slopes"
    if (above < below - 1e-9).any():
        yield "it is not convex: a slope falls as the score rises"


def _bounds(
    part: Loss, z: np.ndarray, y: np.ndarray, slopes: np.ndarray, seconds: np.ndarray
) -> Iterator[str]:
    if (seconds > part.curvature * (1 + 1e-9)).any():
        yield f"a second slope of {seconds.max():g} is above the curvature, {part.curvature:g}"
    if (np.abs(slopes) > part.slope_bound * (1 + 1e-9)).any():
        yield f"a slope of {np.abs(slopes).max():g} is above slope_bound, {part.slope_bound:g}"
    x_l1 = np.abs(z) / 2
    bounds = part.slope_bounds(x_l1, np.abs(y) if not part.needs_classes else y, 2.0)
    if (np.abs(slopes) > np.asarray(bounds) * (1 + 1e-9)).any():
        yield "a slope is above slope_bounds(‖x‖₁, y, θ_max) where |z| = θ_max·‖x‖₁"


def _compiled(
    part: Loss, z: np.ndarray, y: np.ndarray, values: np.ndarray, slopes: np.ndarray
) -> Iterator[str]:
    try:
        form = part.for_kernel()
    except P2PSimError as error:
        yield f"{error}"
        return
    found_values, found_slopes = _evaluate(form, z, y)
    for name, found, expected in (("value", found_values, values), ("slope", found_slopes, slopes)):
        if not np.allclose(found, expected, rtol=1e-9, atol=1e-12):
            worst = np.abs(found - expected).max()
            yield f"the compiled {name} differs from the one in NumPy by up to {worst:.2g}"


def _evaluate(form: Any, z: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    from numba import njit

    from p2psim.learning.losses import compiled

    value, slope = compiled.value, compiled.slope

    @njit
    def loop(loss: Any, z: np.ndarray, y: np.ndarray, out: np.ndarray) -> None:
        for i in range(z.size):
            out[0, i], out[1, i] = value(loss, z[i], y[i]), slope(loss, z[i], y[i])

    out = np.empty((2, z.size))
    loop(form, z, y, out)
    return out[0], out[1]


def _minimiser(part: Loss) -> Iterator[str]:
    random = np.random.default_rng(1)
    for l2, box in ((1e-3, 0.5), (0.1, 20.0)):
        X = random.standard_normal((60, 3))
        y = X @ np.array([1.0, -0.5, 0.3]) + 0.3 * random.standard_normal(60)
        y = np.where(y >= 0, 1.0, -1.0) if part.needs_classes else y
        try:
            theta = minimise(part, X, y, l2, box)
        except P2PSimError as error:
            yield f"its minimiser fails for l2 = {l2}, theta_max = {box}: {error}"
            continue

        def fitness(model: np.ndarray, X: np.ndarray = X, y: np.ndarray = y, l2: float = l2) -> float:
            return float(part.values(X @ model, y).mean() + l2 * model @ model)

        for scale in (1e-3, 1e-1, 1.0):
            others = np.clip(theta + scale * random.standard_normal((50, 3)), -box, box)
            if min(map(fitness, others)) < fitness(theta) - 1e-9:
                yield f"its minimiser is beaten by another model for l2 = {l2}, theta_max = {box}"
                break
