"""The numbers that a forecast of a star takes from a scenario and its data, and what of it is approximate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from p2psim.errors import MeaningError
from p2psim.learning.async_star import AsyncStar
from p2psim.learning.owner_kernel import FROM_SUMS
from p2psim.learning.star_expansion import balance, expansion
from p2psim.privacy.allocations import UNLIMITED, Geometric, Releases
from p2psim.study.families import family_of
from p2psim.study.families.frequencies import long_run_frequencies
from p2psim.study.families.star import StarCell
from p2psim.study.forecasting.exchange import EXCHANGED
from p2psim.theory.forecast.linear_star import LinearStar, linear_star
from p2psim.theory.forecast.local_model import LocalModel
from p2psim.theory.forecast.noise import average_variances, geometric_variances

if TYPE_CHECKING:
    from p2psim.privacy.plan import Plan
    from p2psim.study.scenario import Scenario
    from p2psim.study.workspace import Case


@dataclass(frozen=True)
class Setting:
    """A star as a forecast sees it.

    Attributes
    ----------
    cell : StarCell
    model : LocalModel
    frequencies : ndarray, shape (N,)
        γ_i.
    approximate : tuple of str
        Why the forecast is not exact; empty where it is.
    """

    cell: StarCell
    model: LocalModel
    frequencies: np.ndarray
    approximate: tuple[str, ...]

    @property
    def horizon(self) -> int:
        """T."""
        return self.cell.horizon

    @property
    def algorithm(self) -> AsyncStar:
        """What the scenario says of it."""
        algorithm = self.cell.scenario.learning.algorithm
        assert isinstance(algorithm, AsyncStar)
        return algorithm

    def star(
        self, model: LocalModel | None = None, step: float | None = None, together: bool = False
    ) -> LinearStar:
        """The star, or one of as many owners with another model or step α."""
        assert self.cell.method.weighting is not None
        weighting = self.cell.method.weighting.settled(self.frequencies)
        return linear_star(
            self.model if model is None else model,
            self.cell.method.step if step is None else step,
            self.algorithm.form,
            self.frequencies,
            weighting.at_learner * weighting.at_owner,
            weighting.at_learner,
            together=together,
        )


def setting(scenario: Scenario, case: Case, replica: int = 0) -> Setting:
    """Take from a scenario (without a sweep) and its case what a forecast needs.

    Raises
    ------
    MeaningError
        If there is no forecast of such a scenario.
    """
    algorithm = scenario.learning.algorithm
    if not isinstance(algorithm, AsyncStar):
        raise MeaningError("learning.algorithm", f"forecasts are of async-star, got {algorithm.kind}")
    if not np.isfinite(scenario.learning.loss.curvature):
        raise MeaningError(
            "learning.loss", f"{scenario.learning.loss.kind} has no curvature to forecast with; take logistic"
        )
    cell = family_of(scenario).cell(scenario, case, replica)
    assert isinstance(cell, StarCell)
    frequencies, known = long_run_frequencies(cell.stage.network)
    reasons = list(_reasons(cell))
    if not known:
        reasons.append("how often owners are there is not known beforehand: taken as always")
    return Setting(cell, _model(cell), frequencies, tuple(reasons))


def _model(cell: StarCell) -> LocalModel:
    problem, rule = cell.problem, cell.rule
    if problem.loss.kind == "squared" and (cell.case.problem_id == EXCHANGED or rule.how == FROM_SUMS):
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


def _reasons(cell: StarCell) -> list[str]:
    scenario, problem, algorithm = cell.scenario, cell.problem, cell.scenario.learning.algorithm
    assert isinstance(algorithm, AsyncStar)
    network, exchange, found = cell.stage.network, scenario.network.exchange.kind, []
    if problem.loss.kind != "squared":
        found.append(f"{problem.loss.kind} loss: a quadratic model at the minimiser")
    sensitivity = scenario.privacy.sensitivity
    if cell.case.problem_id == EXCHANGED:
        found += cell.case.warnings
        if sensitivity is not None and sensitivity.kind == "clip":
            found.append("statistics do not show which gradients are clipped: none is taken to be")
    elif cell.rule.how != FROM_SUMS and np.isfinite(cell.rule.clip):
        found.append("gradients may be clipped: a linear model of those that are not")
    if problem.box_is_active:
        found.append("the box acts on the minimiser")
    if exchange != "request":
        found.append(f"{exchange}: answers to older models, and not by independent owners")
    elif not network.channel.ideal:
        found.append("the channel is not ideal: which owner answers depends on the past")
    if not network.availability.ideal:
        found.append("owners are away: their frequencies are right, but their answers come in bursts")
    if algorithm.batch.kind != "whole":
        found.append("batches: the variance of sampling is not in it")
    if algorithm.reweight == "estimated":
        found.append("estimated frequencies count as known")
    if algorithm.staleness.kind != "none" and exchange != "request":
        found.append("all answers count as fresh")
    if cell.stage.plan.clairvoyant:
        found.append(f"{scenario.privacy.allocation.kind}: budgets as expected before the run")
    if cell.rule.grid is not None:
        found.append("rounding to the grid is not in it")
    return found


def answer_variances(plan: Plan, frequencies: np.ndarray, steps: int) -> np.ndarray:
    """Variance of a coordinate of the noise of an answer, if the k-th answer is owner i's, shape (T, N).

    Averaged over how many of the owner's answers came before. An owner that may release no more is taken to go on:
    the tail of a cap is neglected; see `overruns`.

    Parameters
    ----------
    plan : Plan
    frequencies : ndarray, shape (N,)
        γ_i.
    steps : int
        T.

    Raises
    ------
    MeaningError
        If the variance of the mechanism is not known, or too large for a number.
    """
    N = len(frequencies)
    if not plan.mechanism.is_private:
        return np.zeros((1, N)).repeat(steps, axis=0)
    most = np.where(plan.releases == UNLIMITED, steps, np.minimum(plan.releases, steps))
    if isinstance(plan.allocation, Geometric) and plan.mechanism.kind == "laplace" and not plan.sampled:
        first = _variances(plan, np.ones(N, int))[:, 0]
        try:
            return geometric_variances(first, plan.allocation.ratio, frequencies, steps)
        except FloatingPointError:
            message = "the variance of late answers overflows; raise privacy.allocation.ratio"
            raise MeaningError("privacy.allocation", message) from None
    return average_variances(_variances(plan, most), frequencies, steps)


def _variances(plan: Plan, most: np.ndarray) -> np.ndarray:
    """Of each owner's releases, as many as it has; later ones count as its last, shape (N, largest number)."""
    width = int(most.max())
    if width == 0:
        return np.zeros((len(most), 1))
    numbers = np.minimum(np.arange(width), np.maximum(most, 1)[:, None] - 1)
    agents = np.repeat(np.arange(len(most)), width)
    flat = numbers.reshape(-1)
    variances = plan.mechanism.variance(plan.scales(Releases(agents, flat, np.zeros(flat.size, np.int64))))
    if np.isnan(variances).any():
        raise MeaningError(
            "privacy.mechanism", "the variance of its noise is not known, so nothing can be forecast"
        )
    return np.asarray(variances).reshape(len(most), width)


def overruns(plan: Plan, frequencies: np.ndarray, steps: int) -> float:
    """Largest probability that an owner is asked for more answers than it may give."""
    from scipy.stats import binom

    limited = plan.releases != UNLIMITED
    if not limited.any():
        return 0.0
    return float(binom.sf(plan.releases[limited], steps, frequencies[limited]).max())


def changed(
    scenario: Scenario,
    horizon: int | None = None,
    rho: float | None = None,
    allocation: object | None = None,
    budgets: np.ndarray | None = None,
) -> Scenario:
    """The scenario with another horizon, ρ, allocation, or budget of each owner."""
    algorithm: dict[str, object] = {}
    if horizon is not None:
        algorithm["horizon"] = horizon
    if rho is not None:
        algorithm["rho"] = rho
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
    scenario = changed(cell.scenario, rho=cell.rho, **changes)  # type: ignore[arg-type]
    made = family_of(scenario).cell(scenario, cell.case, 0)
    assert isinstance(made, StarCell)
    return replace(setting, cell=made)
