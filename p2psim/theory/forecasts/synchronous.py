"""Forecast of the synchronous star (W Algorithms 1 and 2; W as in `p2psim.theory.forecasts.rounds`).

Both start at θ[1] = 0 and make T − 1 rounds, θ[k+1] = θ[k] − s_k·(∇g + Σ_l (n_l/n)·Q̄_l), k = 1 … T − 1:

- Algorithm 1: s_k = ρ/(T²k) as printed, which moves the model by order ρ·ln T/T² in all; ρ/k corrected.
- Algorithm 2: s_k = c₁/√k and then the box; beside it the average θ̄, with e = 1/√T. As printed, θ̄[k+1] =
  ((k−1)/(e+k))·θ̄[k] + ((e+1)/(e+k))·θ[k], which leaves θ[T] out; corrected, θ̄[k+1] = (k/(k+1+e))·θ̄[k] +
  ((e+1)/(k+1+e))·θ[k+1] with θ̄[1] = θ[1]: polynomial-decay averaging (Shamir, Zhang 2013, equation (4)).

As exact as the quadratic model of the owners is: for squared loss, as long as neither clipping nor the box acts.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from p2psim.theory.forecasts.linear_star import Quadratic
from p2psim.theory.forecasts.rounds import ModelMoments, Reweight, Rounds, rounds, walk
from p2psim.theory.forecasts.split import Split
from p2psim.theory.forecasts.statistics import alike_rows
from p2psim.theory.star import Form


def descent_steps(rho: float, horizon: int, form: Form = "corrected") -> np.ndarray:
    """s_k of Algorithm 1, k = 1 … T − 1: ρ/(T²k) printed, ρ/k corrected.

    Parameters
    ----------
    rho : float
        ρ > 0.
    horizon : int
        T ≥ 1.
    form : {"printed", "corrected"}
    """
    steps: np.ndarray = rho / np.arange(1, horizon, dtype=float)
    return steps / float(horizon) ** 2 if form == "printed" else steps


def averaging_steps(c1: float, horizon: int) -> np.ndarray:
    """s_k = c₁/√k of Algorithm 2, k = 1 … T − 1."""
    return np.asarray(c1 / np.sqrt(np.arange(1, horizon, dtype=float)))


def average_kept(horizon: int, form: Form = "corrected") -> np.ndarray:
    """What round k = 1 … T − 1 keeps of the average: (k−1)/(e+k) printed, k/(k+1+e) corrected; the rest is θ's.

    Parameters
    ----------
    horizon : int
        T ≥ 1; e = 1/√T.
    form : {"printed", "corrected"}
    """
    k, e = np.arange(1, horizon, dtype=float), 1 / np.sqrt(horizon)
    return np.asarray((k - 1) / (k + e) if form == "printed" else k / (k + 1 + e))


@dataclass(frozen=True)
class ModelForecast:
    """Of θ or of θ̄, after r = 0 … T − 1 rounds (θ[r + 1]).

    Attributes
    ----------
    parts : Split
        E[ψ]; `order` is what chance adds through who answers in a round and who does not, and `bias` is ψ where the
        expected direction vanishes.
    mean : ndarray, shape (T, p)
        E[θ].
    variances : ndarray, shape (T, p)
        Variance of each coordinate.
    """

    parts: Split
    mean: np.ndarray
    variances: np.ndarray


@dataclass(frozen=True)
class SynchronousForecast:
    """Of both models; in Algorithm 1 the average is the model itself."""

    model: ModelForecast
    average: ModelForecast


def synchronous_forecast(
    algorithm: Literal["descent", "averaging"],
    statistics: Quadratic,
    minimum: float,
    parameter: float,
    horizon: int,
    variances: np.ndarray,
    form: Form = "corrected",
    present: np.ndarray | None = None,
    reweight: Reweight = "none",
) -> SynchronousForecast:
    """Forecast of W Algorithm 1 (descent), or of Algorithm 2 (averaging) while the box does not act.

    Parameters
    ----------
    algorithm : {"descent", "averaging"}
    statistics : Quadratic
    minimum : float
        f(θ*) > 0.
    parameter : float
        ρ > 0 of descent, or c₁ > 0 of averaging.
    horizon : int
        T: T − 1 rounds.
    variances : ndarray, shape (T − 1, N)
        Variance of a coordinate of the noise of owner l's answer in round k.
    form : {"printed", "corrected"}
        Of the steps of descent, or of the average.
    present, reweight
        As in `p2psim.theory.forecasts.rounds.rounds`.

    Raises
    ------
    ValueError
        If the parameter, f(θ*) or a probability is not positive, or variances have another shape.
    FloatingPointError
        If a moment is not finite.
    """
    if algorithm == "averaging":
        steps, kept = averaging_steps(parameter, horizon), average_kept(horizon, form)
    else:
        # Both models are the same where nothing of the average is kept.
        steps, kept = descent_steps(parameter, horizon, form), np.zeros(max(0, horizon - 1))
    average_new = algorithm == "descent" or form == "corrected"
    if not minimum > 0:
        raise ValueError(f"ψ needs f(θ*) > 0, got {minimum}")
    if not ((steps > 0) & np.isfinite(steps)).all():
        raise ValueError(f"steps must be positive and finite, got {steps}")
    expected = len(steps), len(statistics.moment)
    if variances.shape != expected:
        raise ValueError(f"variances must have shape {expected}, got {variances.shape}")
    star = rounds(statistics, present, reweight)
    sources, of_owner, scale = _profiles(variances)
    moved = walk(star, steps, kept, average_new, sources)
    shares = star.noise_factors * scale
    both = (_model(statistics, minimum, star, moments, of_owner, shares) for moments in moved)
    return SynchronousForecast(*both)


def _profiles(variances: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Histories of variances that differ by more than a factor, (R, J); each owner's, (N,), and its factor, (N,)."""
    largest = variances.max(axis=0, initial=0.0)
    shapes = np.divide(variances, largest, out=np.zeros(variances.shape), where=largest > 0)
    # Twelve digits: quotients of equal histories differ in the last one or two.
    of_owner, first = alike_rows(np.round(shapes, 12).T)
    return shapes[:, first], of_owner, largest


def _model(
    statistics: Quadratic,
    minimum: float,
    star: Rounds,
    moments: ModelMoments,
    of_owner: np.ndarray,
    shares: np.ndarray,
) -> ModelForecast:
    limit = np.linalg.solve(star.drift, -star.push[..., None])[..., 0]
    away = np.vstack([moments.mean, star.basis @ limit.reshape(-1)])
    excess = np.einsum("kp,pq,kq->k", away, statistics.hessian, away) / minimum
    # Covariances are never below 0, but for rounding.
    spread = np.maximum(moments.spread, 0.0)
    noise = spread[:, 1:][:, of_owner] * shares / minimum
    parts = Split(float(excess[-1]), excess[:-1] - excess[-1], spread[:, 0] / minimum, noise)
    together = np.bincount(of_owner, shares)
    variances = moments.variances[:, 0] + np.einsum("kjp,j->kp", moments.variances[:, 1:], together)
    return ModelForecast(parts, statistics.optimum + moments.mean, np.maximum(variances, 0.0))
