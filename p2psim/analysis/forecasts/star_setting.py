"""What a forecast of a central learner takes from a scenario and its data, and why the forecast may not be exact.

The module holds the numbers of the setting, the quadratic model of a cell's owners, and the list of what the cell
contains and the forecast leaves out. `StarSetting` and `RoundsSetting` say what answers or rounds make of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np

from p2psim.analysis.forecasts.exchange import EXCHANGED
from p2psim.analysis.forecasts.variances import answer_variances
from p2psim.core.errors import MeaningError
from p2psim.core.registry import place_of
from p2psim.learning.star.expansion import balance, expansion
from p2psim.learning.star.owners import FROM_SUMS
from p2psim.learning.steps import Weighting
from p2psim.network.section import NetworkSection
from p2psim.privacy.allocations import Allocation
from p2psim.privacy.plan import Limit, Plan
from p2psim.scenario.model import Scenario
from p2psim.simulation.algorithms import adapter_of
from p2psim.simulation.algorithms.learner_cell import LearnerCell, star_algorithm
from p2psim.simulation.algorithms.replay import plan_releases
from p2psim.theory.forecasts.linear_star import LocalModel
from p2psim.theory.forecasts.split import Split

#: So many standard deviations around the mean are wanted inside the box.
INSIDE = 3.0


class MomentRecursion(Protocol):
    """A run whose noise is still open. All in units of f(θ*)."""

    @property
    def noiseless(self) -> float:
        """E[ψ] at the end without noise."""

    def split(self, variances: np.ndarray) -> Split:
        """E[ψ] along the run under noise of these variances, shape (answers or rounds, N)."""

    def noise(self, variances: np.ndarray) -> np.ndarray:
        """What each owner's noise adds at the end, shape (N,)."""


class Choice(NamedTuple):
    """A horizon, the parameter ρ or c₁, an allocation, and the E[ψ] that they reach."""

    horizon: int
    parameter: float
    allocation: Allocation
    psi: float


#: Allocations that are tried at a horizon, and the variances that they give.
Plans = Callable[[int], Iterator[tuple["Allocation", np.ndarray]]]


def changed(
    scenario: Scenario,
    allocation: object | None = None,
    budgets: np.ndarray | None = None,
    **algorithm: object | None,
) -> Scenario:
    """The scenario with another allocation, budget of each owner, horizon, ρ or c₁."""
    changes: dict[str, object] = {} if allocation is None else {"allocation": allocation}
    if budgets is not None:
        changes["epsilon"] = {str(i): float(budget) for i, budget in enumerate(budgets)}
    privacy, learning = scenario.privacy.model_copy(update=changes), scenario.learning
    given = {key: value for key, value in algorithm.items() if value is not None}
    other = learning.model_copy(update={"algorithm": learning.algorithm.model_copy(update=given)})
    return scenario.model_copy(update={"learning": other, "privacy": privacy})


@dataclass(frozen=True)
class Setting(ABC):
    """A learner and its owners as a forecast sees them.

    Attributes
    ----------
    cell : LearnerCell
    model : LocalModel
        Of the owners that take part, which may be others than the cell's.
    frequencies : ndarray, shape (N,)
        γ_i, the probability that an answer is owner i's; of rounds, that it answers in one.
    arrival : ndarray, shape (N,)
        Probability that what it answers is used.
    weighting : Weighting
    approximate : tuple of str
        Why the forecast is not exact; empty where it is.
    """

    cell: LearnerCell
    model: LocalModel
    frequencies: np.ndarray
    arrival: np.ndarray
    weighting: Weighting
    approximate: tuple[str, ...]

    @property
    def horizon(self) -> int:
        """T."""
        return self.cell.horizon

    @classmethod
    @abstractmethod
    def of(cls, cell: Any) -> Self:
        """Take from a cell what a forecast needs."""

    #: Whether a budget is planned for the owners' frequencies, or for an answer of each in every step.
    by_frequency: ClassVar[bool]

    @property
    @abstractmethod
    def answers(self) -> int:
        """Number of steps of the learner: T answers, or T − 1 rounds."""

    @property
    @abstractmethod
    def parameter(self) -> str:
        """Key of the step parameter, ``rho`` or ``c1``."""

    @abstractmethod
    def walk(self, factor: float = 1.0) -> MomentRecursion:
        """A run whose noise is still open, all steps multiplied by a factor.

        Raises
        ------
        SimulationError
            If it grows beyond all numbers.
        """

    @abstractmethod
    def leaves_the_box(self, variances: np.ndarray) -> bool:
        """Whether `INSIDE` standard deviations of what noise of these variances does reach the boundary, (N,)."""

    @abstractmethod
    def choices(self, horizons: list[int], plans: Plans) -> Iterator[Choice]:
        """Steps that are tried, with each horizon and allocation; the forecast may be a rough one."""

    def psi_of(self, choice: Choice, plans: Plans) -> float:
        """The forecast of a choice."""
        return choice.psi

    def factor_among(self, everybody: Setting) -> float:
        """By what the step is multiplied for some of the owners to keep the largest h_i that it has among all."""
        return 1.0

    def with_plan(self, **changes: Any) -> Self:
        """The setting under other budgets, allocation or horizon; its model is kept."""
        cell = self.cell
        scenario = changed(cell.scenario, rho=getattr(cell, "rho", None), **changes)
        other: Any = adapter_of(scenario).cell(scenario, cell.case, 0)
        return replace(self, cell=other)

    def plan(self, budgets: np.ndarray) -> Plan:
        """Plan of releases of these owners under other budgets, shape (N,)."""
        cell = self.cell
        privacy = cell.scenario.privacy
        records = np.maximum(1, np.round(self.model.records)).astype(np.int64)
        limit = Limit(budgets, privacy.delta or 0.0, privacy.enforcing)
        shares = self.frequencies if self.by_frequency else np.ones(len(records))
        more = {"dimension": cell.problem.dimension, "factors": self.weighting.at_owner}
        return plan_releases(cell.scenario, limit, cell.bound, records, cell.horizon, shares, **more)

    def variances(self, plan: Plan | None = None) -> np.ndarray:
        """Variances of the noise of answers under a plan for these owners, the cell's when left out."""
        return answer_variances(plan or self.cell.setup.plan, self.frequencies, self.answers)

    def alike(self, owners: int) -> Self:
        """As many owners of equal size, each with the second moments of all records together."""
        frequency, arrival = self.frequencies.mean(), self.arrival.mean()
        return self._of(self.model.alike(owners), np.full(owners, frequency), np.full(owners, arrival))

    def among(self, members: np.ndarray) -> Self:
        """Some of the owners alone; what they reach is measured on the records of all."""
        return self._of(self.model.among(members), self.frequencies[members], self.arrival[members])

    def first(self) -> Self:
        """The first of owners that are alike, with the part that it has among them."""
        return replace(
            self,
            model=self.model.among(np.array([0])),
            frequencies=self.frequencies[:1],
            arrival=self.arrival[:1],
            weighting=Weighting.equal(1),
        )

    def _of(self, model: LocalModel, frequencies: np.ndarray, arrival: np.ndarray) -> Self:
        ones = np.ones(len(frequencies))
        weighting = Weighting(ones, ones, self.weighting.estimated)
        return replace(self, model=model, frequencies=frequencies, arrival=arrival, weighting=weighting)


def refuse_unknown(network: NetworkSection) -> None:
    """Refuse a network with parts that forecasts do not cover.

    Raises
    ------
    MeaningError
        Naming the first of them: time to compute, an effect of the channel, or an exchange or an availability from
        outside p2psim.
    """
    known = "forecasts do not cover the"
    if network.compute is not None:
        raise MeaningError("network.compute", "forecasts do not cover the time that agents take to compute")
    for effect in network.channel.effects or ():
        raise MeaningError("network.channel.effects", f"{known} channel effect {effect.kind}")
    if place_of(network.exchange) is not None:
        raise MeaningError("network.exchange", f"{known} exchange {network.exchange.kind}")
    for part in network.availability.reasons:
        if place_of(part) is not None:
            raise MeaningError("network.availability", f"{known} availability {part.kind}")


def model_of(cell: LearnerCell) -> LocalModel:
    """Exact from sums where neither clipping nor the box acts on squared loss, else expanded."""
    problem, rule = cell.problem, cell.rule
    if problem.loss.is_squared_error and (cell.case.problem_id == EXCHANGED or rule.how == FROM_SUMS):
        # Sums over the records are all there is to know.
        gram, moment = problem.gram, problem.moment
        half_hessian = np.tensordot(problem.shares, gram, 1)
    else:
        clip = np.inf if rule.how == FROM_SUMS else rule.clip
        at = balance(problem, clip, rule.order)
        gradients, jacobians = expansion(problem, at, clip, rule.order)
        curves = expansion(problem, problem.optimum, np.inf)[1] if np.isfinite(clip) else jacobians
        gram, moment = jacobians / 2, jacobians @ at / 2 - gradients / 2
        half_hessian = np.tensordot(problem.shares, curves, 1) / 2
    hessian = half_hessian + problem.l2 * np.eye(problem.dimension)
    alone = problem.relative_fitness(problem.isolated_optima)
    sums = problem.records.astype(float), gram, moment
    return LocalModel(*sums, problem.l2, problem.optimum, hessian, problem.minimum, alone)


def those_that_hold(reasons: Mapping[str, bool]) -> tuple[str, ...]:
    """Reasons that are given, in their order."""
    return tuple(reason for reason, holds in reasons.items() if holds)


def reasons(cell: LearnerCell, more: Mapping[str, bool]) -> tuple[str, ...]:
    """Everything that a cell has and its forecast has not, with what its algorithm adds."""
    scenario, problem, algorithm = cell.scenario, cell.problem, star_algorithm(cell.scenario)
    sensitivity, exchanged = scenario.privacy.sensitivity, cell.case.problem_id == EXCHANGED
    clips = sensitivity is not None and sensitivity.clipping is not None
    clipped = cell.rule.how != FROM_SUMS and bool(np.isfinite(cell.rule.clip))
    return those_that_hold(
        {
            f"{problem.loss.kind} loss: a quadratic model at the minimiser": not problem.loss.is_squared_error,
            **dict.fromkeys(cell.case.warnings, exchanged),
            "statistics do not show which gradients are clipped: none is taken to be": exchanged and clips,
            "gradients may be clipped: a linear model of those that are not": not exchanged and clipped,
            "the box acts on the minimiser": problem.box_is_active,
            **more,
            "batches: the variance of sampling is not in it": algorithm.batch.code is not None,
            "estimated frequencies count as known": algorithm.reweight == "estimated",
            f"{scenario.privacy.allocation.kind}: budgets as expected before the run": cell.setup.plan.clairvoyant,
            "rounding to the grid is not in it": cell.rule.grid is not None,
        }
    )
