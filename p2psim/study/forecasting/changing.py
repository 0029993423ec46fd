"""The same scenario or cell with something else in it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from p2psim.study.families import family_of
from p2psim.study.families.learner_cell import LearnerCell

if TYPE_CHECKING:
    from p2psim.study.forecasting.setting import Setting
    from p2psim.study.scenario import Scenario


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
    made = family_of(scenario).cell(scenario, cell.case, 0)
    assert isinstance(made, LearnerCell)
    return replace(setting, cell=made)
