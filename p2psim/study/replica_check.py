"""Recomputes a recorded replica with the plain reference, from its events, noise and data alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from p2psim.learning.async_star import RhoFromH, star_method
from p2psim.learning.star_problem import StarProblem
from p2psim.learning.star_reference import replay_plainly
from p2psim.theory.star import rho_for_h

if TYPE_CHECKING:
    from p2psim.study.outcome import Series
    from p2psim.study.scenario import Scenario


@dataclass(frozen=True)
class Differences:
    """How far a recorded replica is from the recomputed one.

    Attributes
    ----------
    values : int
        Numbers compared.
    largest : float
        Largest difference, relative to the larger of both; of ψ, relative to 1 + ψ, since f is what is computed.
    """

    values: int
    largest: float


def recompute(
    scenario: Scenario,
    arrays: Mapping[str, np.ndarray],
    events: np.ndarray,
    noise: np.ndarray,
    series: tuple[Series, ...],
    models: np.ndarray | None = None,
) -> Differences:
    """Replay a replica plainly and compare what was recorded.

    Parameters
    ----------
    scenario : Scenario
        Of the cell, without a sweep.
    arrays : mapping
        The prepared data, as in ``data.npz``.
    events : ndarray of EVENT
    noise : ndarray, shape (releases, p)
    series : tuple of Series
        What was recorded; ``relative_fitness`` of the main model is compared.
    models : ndarray, shape (records, p), optional
        The recorded models, in the order of the first such series.
    """
    learning = scenario.learning
    algorithm = learning.algorithm
    problem = StarProblem(
        loss=learning.loss,
        l2=learning.regularizer.l2,
        theta_max=algorithm.theta_max,
        minimum=float(arrays["minimum"]),
        **{name: np.asarray(arrays[name]) for name in _NAMES},
    )
    rho = algorithm.rho
    if isinstance(rho, RhoFromH):
        rho = rho_for_h(rho.h, algorithm.horizon, problem.l2, problem.records, problem.hessian_peaks())
    method = star_method(algorithm, rho, problem.l2, problem.owners)
    sensitivity = scenario.privacy.sensitivity
    clip = sensitivity.bound if sensitivity is not None and sensitivity.kind == "clip" else np.inf
    theta = replay_plainly(problem, method, events, noise, clip)
    compared = [one for one in series if one.metric == "relative_fitness" and one.model == "main"]
    values, largest = 0, 0.0
    for one in compared:
        psi = problem.fitness(theta[one.step]) / problem.minimum - 1
        difference = np.abs(psi - one.value) / (1 + np.abs(psi))
        values, largest = values + psi.size, max(largest, float(difference.max()))
    if models is not None and compared:
        again = theta[compared[0].step]
        scale = np.maximum(np.abs(again), np.abs(models)).max()
        values += models.size
        largest = max(largest, float(np.abs(again - models).max() / max(scale, np.finfo(float).tiny)))
    return Differences(values, largest)


_NAMES = ("X", "y", "offsets", "x_l1", "gram", "moment", "energy", "optimum")
