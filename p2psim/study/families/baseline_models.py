"""The models of a cell's baselines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from p2psim.errors import MeaningError
from p2psim.learning.baselines import GlobalModel, LocalModels, LocalPrivacy
from p2psim.learning.graph_baselines import from_private_records, global_model, local_models
from p2psim.study.streams import streams_of

if TYPE_CHECKING:
    from p2psim.learning.losses import Loss
    from p2psim.study.families.graph import GraphCell
    from p2psim.study.scenario import Scenario
    from p2psim.study.workspace import Case


def check_baselines(scenario: Scenario, case: Case) -> None:
    """Raise a MeaningError if ``local-dp`` has no budget or no public bound to go by."""
    for i, baseline in enumerate(scenario.learning.baselines):
        if not isinstance(baseline, LocalPrivacy):
            continue
        key = f"learning.baselines.{i}"
        if not scenario.privacy.mechanism.is_private:
            raise MeaningError(key, "local-dp needs a privacy mechanism and a budget")
        if not np.isfinite(_public_bounds(scenario.learning.loss, case)).all():
            raise MeaningError(key, "local-dp needs public bounds: give data.scale")


def baseline_models(cell: GraphCell) -> dict[str, np.ndarray]:
    """Models by the baseline's name, shape (n, p) each."""
    made: dict[str, np.ndarray] = {}
    for baseline in cell.scenario.learning.baselines:
        if isinstance(baseline, LocalModels):
            made[baseline.kind] = local_models(cell.problem, baseline.reduction)
        elif isinstance(baseline, GlobalModel):
            made[baseline.kind] = global_model(cell.problem)
        else:
            made[baseline.kind] = _locally_private(cell)
    return made


def _locally_private(cell: GraphCell) -> np.ndarray:
    budget = cell.stage.plan.budget
    x_l1, y_max = _public_bounds(cell.problem.loss, cell.case)
    random = streams_of(cell.scenario, cell.replica).generator("baselines")
    return from_private_records(cell.problem, budget, x_l1, y_max, random)


def _public_bounds(loss: Loss, case: Case) -> tuple[float, float]:
    """Bounds on ‖x‖₁, the intercept not counted, and on |y|; NaN where there is none."""
    bounds, features = case.arrays["bounds"], case.arrays["X"].shape[1] - loss.intercept
    return (
        float(np.fmin(bounds[0], features * bounds[1])),
        1.0 if loss.needs_classes else float(bounds[2]),
    )
