"""Search of horizons, steps and allocations for the least forecast of ψ under given budgets.

`with_plan` gives a forecast's setting under other budgets, allocation or horizon, for this search and other analyses.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from p2psim.analysis.forecasts.moment_recursions import StarWalk, answer_variances, overruns
from p2psim.analysis.forecasts.star_setting import Setting
from p2psim.core.errors import MeaningError, SimulationError
from p2psim.learning.star.algorithms import AsyncStar
from p2psim.privacy.allocations import Allocation, Cap, Geometric, Horizon
from p2psim.scenario.cells import display
from p2psim.simulation.algorithms import adapter_of
from p2psim.simulation.algorithms.learner_cell import LearnerCell
from p2psim.simulation.algorithms.rounds import RoundsCell
from p2psim.simulation.algorithms.star import StarCell
from p2psim.theory.forecasts.star_path import path

if TYPE_CHECKING:
    from p2psim.scenario.model import Scenario


def changed(
    scenario: Scenario,
    horizon: int | None = None,
    rho: float | None = None,
    c1: float | None = None,
    allocation: object | None = None,
    budgets: np.ndarray | None = None,
) -> Scenario:
    """The scenario with another horizon, ρ, c₁, allocation, or budget of each owner."""
    algorithm: dict[str, object] = {}
    if horizon is not None:
        algorithm["horizon"] = horizon
    if rho is not None:
        algorithm["rho"] = rho
    if c1 is not None:
        algorithm["c1"] = c1
    privacy: dict[str, object] = {}
    if allocation is not None:
        privacy["allocation"] = allocation
    if budgets is not None:
        privacy["epsilon"] = {str(i): float(budget) for i, budget in enumerate(budgets)}
    learning = scenario.learning
    return scenario.model_copy(
        update={
            "learning": learning.model_copy(
                update={"algorithm": learning.algorithm.model_copy(update=algorithm)}
            ),
            "privacy": scenario.privacy.model_copy(update=privacy),
        }
    )


def with_plan(setting: Setting, **changes: object) -> Setting:
    """The setting under other budgets, allocation or horizon; its model is kept."""
    cell = setting.cell
    scenario = changed(cell.scenario, rho=getattr(cell, "rho", None), **changes)  # type: ignore[arg-type]
    made = adapter_of(scenario).cell(scenario, cell.case, 0)
    assert isinstance(made, LearnerCell)
    return replace(setting, cell=made)


#: Largest h_i of the star's steps that are tried, all sure to be stable; of rounds, the first step times the largest
#: curvature, and in Algorithm 1 times the condition number as well, since its steps fall as 1/k.
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
    rho, c1 : float or None
        Whichever the algorithm has.
    allocation : str
        As in a scenario.
    psi : float
        Its forecast, exact to the extent that forecasts of this scenario are.
    """

    horizon: int
    rho: float | None
    c1: float | None
    allocation: str
    psi: float


@dataclass(frozen=True)
class _Tried:
    """A horizon, the parameter ρ or c₁, an allocation, and the E[ψ] that they reach."""

    horizon: int
    parameter: float
    allocation: Allocation
    psi: float


def best(setting: Setting, budgets: np.ndarray | None = None) -> Best:
    """Search horizons, steps and allocations for the least forecast.

    Parameters
    ----------
    setting : Setting
        The scenario's, or one with other owners (`Setting.alike`, `Setting.among`); these need budgets.
    budgets : ndarray, shape (N,), optional
        ε of each owner; those of the scenario when left out.

    Raises
    ------
    SimulationError
        If nothing that is tried has a forecast.
    """
    horizons = sorted({max(2, round(setting.horizon * factor)) for factor in HORIZONS})
    of_star = isinstance(setting.cell, StarCell)
    found = list(_stars(setting, horizons, budgets) if of_star else _rounds(setting, horizons, budgets))
    if not found:
        raise SimulationError("no step that was tried has a forecast")
    least = min(found, key=lambda one: one.psi)
    psi = _star_psi(setting, least, budgets) if of_star else least.psi
    averages = setting.algorithm.kind == "synchronous-averaging"
    rho, c1 = (None, least.parameter) if averages else (least.parameter, None)
    return Best(least.horizon, rho, c1, display(least.allocation), psi)


def _stars(setting: Setting, horizons: list[int], budgets: np.ndarray | None) -> Iterator[_Tried]:
    """A path depends on the step alone, not on the horizon or the budgets, so one serves all of these.

    Owners' second moments are taken along the eigenvectors of all together.
    """
    assert isinstance(setting.cell, StarCell)
    shares, weighting = setting.model.shares, setting.weighting
    # α of h = 1.
    peaks = np.linalg.eigvalsh(2 * setting.model.gram)[:, -1]
    unit = 1 / float((len(shares) * shares * peaks * weighting.at_learner * weighting.at_owner).max())
    plans = [(T, *one) for T in horizons for one in _plans(setting, T, budgets)]
    rough = replace(setting, model=setting.model.diagonal())
    for h in STEEPNESS:
        step = float(h * unit)
        try:
            walked = path(rough.star(step / setting.cell.method.step), horizons[-1])
        except FloatingPointError:
            continue
        for T, allocation, variances in plans:
            noise = np.einsum("kn,kn->", walked.gain[:T][::-1], variances)
            psi = float((walked.expected[T] + noise) / setting.model.minimum)
            yield _Tried(T, step * T**2 * 2 * setting.model.l2, allocation, psi)


def _star_psi(setting: Setting, tried: _Tried, budgets: np.ndarray | None) -> float:
    """The forecast anew, with all of the owners' second moments."""
    assert isinstance(setting.cell, StarCell)
    step = tried.parameter / (tried.horizon**2 * 2 * setting.model.l2)
    star = setting.star(step / setting.cell.method.step)
    walked = StarWalk(path(star, tried.horizon), setting.model.minimum)
    variances = next(v for one, v in _plans(setting, tried.horizon, budgets) if one == tried.allocation)
    return float(walked.noiseless + walked.noise(variances).sum())


def _rounds(setting: Setting, horizons: list[int], budgets: np.ndarray | None) -> Iterator[_Tried]:
    """Steps of rounds depend on the horizon as well: each pair has a run of its own."""
    curves = 2 * np.linalg.eigvalsh(setting.model.hessian)
    algorithm = setting.algorithm
    assert not isinstance(algorithm, AsyncStar)
    averages = algorithm.kind == "synchronous-averaging"
    own = algorithm.c1 if algorithm.kind == "synchronous-averaging" else algorithm.rho
    for T in horizons:
        other = with_plan(setting, horizon=T)
        assert isinstance(other.cell, RoundsCell)
        plans = list(_plans(setting, T, budgets))
        for h in STEEPNESS * (1.0 if averages else curves[-1] / curves[0]):
            factor = float(h / curves[-1] / other.cell.method.steps[0])
            try:
                walked = other.walk(factor)
            except SimulationError:
                continue
            for allocation, variances in plans:
                psi = float(walked.noiseless + walked.noise(variances).sum())
                yield _Tried(T, factor * own, allocation, psi)


def _plans(
    setting: Setting, horizon: int, budgets: np.ndarray | None
) -> Iterator[tuple[Allocation, np.ndarray]]:
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
            plan = other.cell.setup.plan if budgets is None else other.plan(budgets)
            if overruns(plan, setting.frequencies, other.answers) > 10 * TAIL:
                continue
            yield allocation, answer_variances(plan, setting.frequencies, other.answers)
        except MeaningError:  # noise whose scale is no number, or an allocation that these cannot have
            continue
