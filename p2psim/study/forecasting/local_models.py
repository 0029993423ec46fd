"""The quadratic model of a cell's owners."""

from __future__ import annotations

import numpy as np

from p2psim.learning.owner_kernel import FROM_SUMS
from p2psim.learning.star_expansion import balance, expansion
from p2psim.study.families.learner_cell import LearnerCell
from p2psim.study.forecasting.exchange import EXCHANGED
from p2psim.theory.forecast.local_model import LocalModel


def model_of(cell: LearnerCell) -> LocalModel:
    """Exact from sums where neither clipping nor the box acts on squared loss, else expanded."""
    problem, rule = cell.problem, cell.rule
    if problem.loss.is_squared_error and (cell.case.problem_id == EXCHANGED or rule.how == FROM_SUMS):
        # Sums over the records are all there is to know.
        return LocalModel(
            problem.records.astype(float),
            problem.gram,
            problem.moment,
            problem.l2,
            problem.optimum,
            np.tensordot(problem.shares, problem.gram, 1) + problem.l2 * np.eye(problem.dimension),
            problem.minimum,
            problem.relative_fitness(problem.isolated_optima),
        )
    clip = np.inf if rule.how == FROM_SUMS else rule.clip
    at = balance(problem, clip, rule.order)
    gradients, jacobians = expansion(problem, at, clip, rule.order)
    curves = jacobians
    if np.isfinite(clip):
        _, curves = expansion(problem, problem.optimum, np.inf)
    return LocalModel(
        problem.records.astype(float),
        jacobians / 2,
        jacobians @ at / 2 - gradients / 2,
        problem.l2,
        problem.optimum,
        np.tensordot(problem.shares, curves, 1) / 2 + problem.l2 * np.eye(problem.dimension),
        problem.minimum,
        problem.relative_fitness(problem.isolated_optima),
    )
