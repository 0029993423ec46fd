"""The best horizon, step and allocation for given budgets: the least forecast of all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from p2psim.errors import MeaningError, SimulationError
from p2psim.privacy.allocations import Allocation, Cap, Geometric, Horizon
from p2psim.study.cells import display
from p2psim.study.forecasting.forecast import walk
from p2psim.study.forecasting.setting import Setting, answer_variances, overruns, with_plan
from p2psim.theory.forecast.local_model import LocalModel
from p2psim.theory.forecast.split import accumulate
from p2psim.theory.forecast.star_path import Path

#: Largest h_i of the steps that are tried; all are sure to be stable.
STEEPNESS = np.geomspace(2.0, 0.005, 10)

#: Horizons that are tried, as multiples of the scenario's.
HORIZONS = np.geomspace(1 / 16, 4.0, 7)

#: Chance that an owner of a capped allocation runs out of answers.
TAIL = 1e-6


@dataclass(frozen=True)
class Best:
    """A choice.

    Attributes
    ----------
    horizon : int
    rho : float
    allocation : str
        As in a scenario.
    psi : float
        Its forecast, exact to the extent that forecasts of this scenario are.
    """

    horizon: int
    rho: float
    allocation: str
    psi: float


def best(setting: Setting) -> Best:
    """Search horizons, steps and allocations for the least forecast.

    A path depends on the step alone, not on the horizon or the budgets, so one serves all of these. The search takes
    owners' second moments along the eigenvectors of all together; what it finds is forecast anew with all of them.

    Raises
    ------
    SimulationError
        If nothing that is tried has a forecast.
    """
    cell = setting.cell
    shares = cell.problem.records / cell.problem.records.sum()
    weighting = cell.method.weighting
    assert weighting is not None
    # α of h = 1.
    peaks = np.linalg.eigvalsh(2 * setting.model.gram)[:, -1]
    unit = 1 / float((len(shares) * shares * peaks * weighting.at_learner * weighting.at_owner).max())
    horizons = sorted({max(2, round(setting.horizon * factor)) for factor in HORIZONS})
    plans = [(T, allocation, variances) for T in horizons for allocation, variances in _plans(setting, T)]
    model = setting.model.diagonal()
    found: list[tuple[float, float, int, Allocation]] = []
    for h in STEEPNESS:
        try:
            walked = walk(setting.star(model, h * unit), horizons[-1])
        except SimulationError:
            continue
        for T, allocation, variances in plans:
            found.append((_psi(walked, variances, T, setting.model), h * unit, T, allocation))
    if not found:
        raise SimulationError("no step that was tried has a forecast")
    _, step, T, allocation = min(found, key=lambda one: one[0])
    variances = next(v for t, a, v in plans if t == T and a == allocation)
    exact = walk(setting.star(step=step), T)
    rho = step * T**2 * 2 * setting.model.l2
    return Best(T, float(rho), display(allocation), _psi(exact, variances, T, setting.model))


def _psi(walked: Path, variances: np.ndarray, horizon: int, model: LocalModel) -> float:
    noise = accumulate(walked.gain[:horizon], variances)[-1].sum()
    return float((walked.expected[horizon] + noise) / model.minimum)


def _plans(setting: Setting, horizon: int) -> Iterator[tuple[Allocation, np.ndarray]]:
    """Allocations that are tried at a horizon, and the variances that they give."""
    own = setting.cell.scenario.privacy.allocation
    answers = horizon * float(setting.frequencies.max())
    tried: list[Allocation] = [own]
    for one in (Horizon(), Cap(tail=TAIL), Geometric(ratio=1 - 1 / (1 + answers))):
        if one not in tried:
            tried.append(one)
    for allocation in tried:
        try:
            other = with_plan(setting, horizon=horizon, allocation=allocation)
            plan = other.cell.stage.plan
            if overruns(plan, setting.frequencies, horizon) > 10 * TAIL:
                continue
            yield allocation, answer_variances(plan, setting.frequencies, horizon)
        except MeaningError:  # noise whose scale is no number, or an allocation that these cannot have
            continue
