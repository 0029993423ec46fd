"""Search of horizons, steps and allocations for the least forecast of ψ under given budgets."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from p2psim.analysis.forecasts.star_setting import Setting
from p2psim.analysis.forecasts.variances import overruns
from p2psim.core.errors import MeaningError, SimulationError
from p2psim.privacy.allocations import Allocation, Cap, Geometric, Horizon
from p2psim.scenario.cells import display

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
    plans = partial(_plans, setting, budgets)
    choices = list(setting.choices(horizons, plans))
    if not choices:
        raise SimulationError("no step that was tried has a forecast")
    least = min(choices, key=lambda choice: choice.psi)
    step = {"rho": None, "c1": None, setting.parameter: least.parameter}
    psi = setting.psi_of(least, plans)
    return Best(least.horizon, step["rho"], step["c1"], display(least.allocation), psi)


def _plans(
    setting: Setting, budgets: np.ndarray | None, horizon: int
) -> Iterator[tuple[Allocation, np.ndarray]]:
    """Allocations that are tried at a horizon, and the variances that they give."""
    allocation = setting.cell.scenario.privacy.allocation
    answers = horizon * float(setting.frequencies.max())
    tried: list[Allocation] = [allocation]
    usual = Horizon(), Cap(tail=TAIL), Geometric(ratio=1 - 1 / (1 + answers))
    tried += [other for other in usual if other not in tried]
    for allocation in tried:
        try:
            other = setting.with_plan(horizon=horizon, allocation=allocation)
            plan = other.cell.setup.plan if budgets is None else other.plan(budgets)
            if overruns(plan, setting.frequencies, other.answers) > 10 * TAIL:
                continue
            yield allocation, other.variances(plan)
        except MeaningError:  # noise whose scale is no number, or an allocation that these cannot have
            continue
