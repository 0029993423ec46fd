"""The models of a cell's baselines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from p2psim.errors import MeaningError
from p2psim.learning.baselines import GlobalModel, LocalModels
from p2psim.learning.graph_baselines import from_private_records, global_model, local_models
from p2psim.study.streams import streams_of

if TYPE_CHECKING:
    from p2psim.study.families.graph import GraphCell


def baseline_models(cell: GraphCell) -> dict[str, np.ndarray]:
    """Models by the baseline's name, shape (n, p) each.

    Raises
    ------
    MeaningError
        If ``local-dp`` has no budget or no public bound to go by.
    """
    made: dict[str, np.ndarray] = {}
    for i, baseline in enumerate(cell.scenario.learning.baselines):
        if isinstance(baseline, LocalModels):
            made[baseline.kind] = local_models(cell.problem, baseline.reduction)
        elif isinstance(baseline, GlobalModel):
            made[baseline.kind] = global_model(cell.problem)
        else:
            made[baseline.kind] = _locally_private(cell, f"learning.baselines.{i}")
    return made


def _locally_private(cell: GraphCell, key: str) -> np.ndarray:
    from p2psim.study.families.graph import x_bound

    budget, bounds = cell.stage.plan.budget, cell.case.arrays["bounds"]
    x_l1 = x_bound(bounds, cell.problem.dimension - cell.problem.loss.intercept)
    y_max = 1.0 if cell.problem.loss.needs_classes else float(bounds[2])
    if not cell.stage.plan.mechanism.is_private:
        raise MeaningError(key, "local-dp needs a privacy mechanism and a budget")
    if x_l1 is None or not np.isfinite(y_max):
        raise MeaningError(key, "local-dp needs public bounds: give data.scale")
    random = streams_of(cell.scenario, cell.replica).generator("baselines")
    return from_private_records(cell.problem, budget, x_l1, y_max, random)
