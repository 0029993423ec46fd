"""Why a forecast of a central learner is not exact."""

from __future__ import annotations

import numpy as np

from p2psim.learning.async_star import AsyncStar
from p2psim.learning.owner_kernel import FROM_SUMS
from p2psim.study.families.learner_cell import LearnerCell
from p2psim.study.families.star import StarCell
from p2psim.study.families.star_setting import star_algorithm
from p2psim.study.forecasting.exchange import EXCHANGED


def reasons(cell: LearnerCell) -> list[str]:
    """Everything that a cell has and its forecast has not."""
    scenario, problem, algorithm = cell.scenario, cell.problem, star_algorithm(cell.scenario)
    sensitivity, found = scenario.privacy.sensitivity, []
    if not problem.loss.is_squared_error:
        found.append(f"{problem.loss.kind} loss: a quadratic model at the minimiser")
    if cell.case.problem_id == EXCHANGED:
        found += cell.case.warnings
        if sensitivity is not None and sensitivity.kind == "clip":
            found.append("statistics do not show which gradients are clipped: none is taken to be")
    elif cell.rule.how != FROM_SUMS and np.isfinite(cell.rule.clip):
        found.append("gradients may be clipped: a linear model of those that are not")
    if problem.box_is_active:
        found.append("the box acts on the minimiser")
    found += _of_star(cell) if isinstance(cell, StarCell) else _of_rounds(cell)
    if algorithm.batch.kind != "whole":
        found.append("batches: the variance of sampling is not in it")
    if algorithm.reweight == "estimated":
        found.append("estimated frequencies count as known")
    if cell.stage.plan.clairvoyant:
        found.append(f"{scenario.privacy.allocation.kind}: budgets as expected before the run")
    if cell.rule.grid is not None:
        found.append("rounding to the grid is not in it")
    return found


def _of_star(cell: LearnerCell) -> list[str]:
    network, exchange, found = cell.stage.network, cell.scenario.network.exchange.kind, []
    if exchange != "request":
        found.append(f"{exchange}: answers to older models, and not by independent owners")
    elif not network.channel.ideal:
        found.append("the channel is not ideal: which owner answers depends on the past")
    if not network.availability.ideal:
        found.append("owners are away: their frequencies are right, but their answers come in bursts")
    algorithm = star_algorithm(cell.scenario)
    assert isinstance(algorithm, AsyncStar)
    if algorithm.staleness.kind != "none" and exchange != "request":
        found.append("all answers count as fresh")
    return found


def _of_rounds(cell: LearnerCell) -> list[str]:
    availability = cell.stage.network.availability
    if availability.ideal or availability.kind == "bernoulli":
        return []
    return ["owners are away: their frequencies are right, but they miss rounds in a row"]
