"""The forecast of one cell: expected ψ along the run in its parts, and what each party gains."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from p2psim.analysis.forecasts.moment_recursions import MomentRecursion, answer_variances, overruns
from p2psim.analysis.forecasts.star_setting import Setting
from p2psim.simulation.algorithms.rounds import RoundsCell
from p2psim.simulation.algorithms.star import StarCell
from p2psim.theory import noise_floor as floors
from p2psim.theory.forecasts.split import Split

#: So many standard deviations around the mean are wanted inside the box.
_INSIDE = 3.0

#: Probability that an owner runs out of answers, from which on it is told.
_RUNS_OUT = 1e-3

#: Points of a forecast where a scenario records by time.
POINTS = 20


@dataclass(frozen=True)
class Forecast:
    """What a cell will reach.

    Attributes
    ----------
    setting : Setting
    walk : MomentRecursion
        Without noise, and what noise would add.
    parts : Split
        E[ψ] after k = 0 … K answers or rounds.
    approximate : tuple of str
        Why it is not exact; empty where it is.
    """

    setting: Setting
    walk: MomentRecursion
    parts: Split
    approximate: tuple[str, ...]

    @property
    def psi(self) -> float:
        """E[ψ] at the end."""
        return float(self.parts.psi[-1])

    @property
    def records(self) -> np.ndarray:
        """Numbers of answers or rounds at which the scenario records, and the last."""
        every, T = self.setting.cell.scenario.record.every, self.setting.answers
        length = every if isinstance(every, int) else max(1, T // POINTS)
        return np.unique(np.append(np.arange(0, T + 1, length), T))

    @property
    def alone(self) -> np.ndarray:
        """ψ of what each owner reaches alone, without noise, shape (N,)."""
        return self.setting.model.isolated


def forecast(setting: Setting) -> Forecast:
    """Forecast a cell.

    Raises
    ------
    MeaningError
        If the variance of the noise is not known.
    SimulationError
        If the step is unstable and the forecast grows beyond all numbers.
    """
    plan, steps = setting.cell.setup.plan, setting.answers
    walked = setting.walk()
    variances = answer_variances(plan, setting.frequencies, steps)
    parts = walked.split(variances)
    reasons = list(setting.approximate)
    tail = overruns(plan, setting.frequencies, steps)
    if tail > _RUNS_OUT:
        reasons.append(f"an owner runs out of answers with probability {tail:.2g}, and is taken to go on")
    if _leaves_the_box(setting, variances.max(axis=0)):
        reasons.append("models may leave the box, and are taken to: ψ saturates where this is forecast above")
    return Forecast(setting, walked, parts, tuple(reasons))


def _leaves_the_box(setting: Setting, variances: np.ndarray) -> bool:
    """Whether three standard deviations of what noise does to any model, once it is at rest, reach the boundary.

    In the eigenvectors of the mean Hessian, as far as owners share them; of rounds, in the flattest direction.
    """
    if not isinstance(setting.cell, StarCell):
        return _rounds_leave(setting, variances)
    problem, model = setting.cell.problem, setting.model
    star = setting.star(together=True)
    room = problem.theta_max - np.abs(problem.optimum)
    if (room <= 0).any():
        return True
    if not variances.any():
        return False
    _, basis = np.linalg.eigh(np.tensordot(model.shares, model.gram, 1))
    own = np.maximum(np.einsum("pj,gpq,qj->gj", basis, np.eye(len(basis)) - star.own[0], basis), 0.0)
    moments = floors.stationary_moments(
        own[star.classes].T, star.noise_steps**2 * variances, setting.frequencies
    )
    if not (np.isfinite(moments.learner).all() and np.isfinite(moments.owners).all()):
        return True
    widest = np.maximum(moments.learner, moments.owners.max(axis=1))
    deviations = np.sqrt(np.maximum(basis**2 @ widest, 0.0))
    return bool((_INSIDE * deviations > room).any())


def _rounds_leave(setting: Setting, variances: np.ndarray) -> bool:
    cell = setting.cell
    assert isinstance(cell, RoundsCell)
    problem = cell.problem
    if not cell.method.projects or not variances.any():
        return False
    one = (problem.shares**2 * variances).sum()
    curve = 2 * float(np.linalg.eigvalsh(setting.model.hessian)[0])
    # θ moves by (1 − s_k·H)z and noise of variance one·s_k²: the recursion of the flattest direction.
    spread = largest = 0.0
    for step in cell.method.steps:
        spread = (1 - step * curve) ** 2 * spread + step**2 * one
        largest = max(largest, spread)
    room = problem.theta_max - np.abs(problem.optimum).max()
    return bool(_INSIDE * np.sqrt(largest) > room)
