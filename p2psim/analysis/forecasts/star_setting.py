"""What a forecast of a central learner takes from a scenario and its data, and why the forecast may not be exact.

The module holds the numbers of the setting, how often owners answer, the quadratic model of a cell's owners, and the
list of what the cell contains and the forecast leaves out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from p2psim.analysis.forecasts.exchange import EXCHANGED
from p2psim.analysis.forecasts.moment_recursions import MomentRecursion, RoundsWalk, StarWalk
from p2psim.core.errors import MeaningError, SimulationError
from p2psim.core.registry import place_of
from p2psim.learning.owner_kernel import FROM_SUMS
from p2psim.learning.star.algorithms import AsyncStar
from p2psim.learning.star.expansion import balance, expansion
from p2psim.learning.steps import Weighting, inverse_frequencies
from p2psim.privacy.section import Limit
from p2psim.simulation.algorithms import adapter_of
from p2psim.simulation.algorithms.agents import answering, long_run_frequencies
from p2psim.simulation.algorithms.learner_cell import LearnerCell, plan_answers
from p2psim.simulation.algorithms.rounds import RoundsCell
from p2psim.simulation.algorithms.star import StarCell
from p2psim.simulation.algorithms.star_setting import StarAlgorithm, star_algorithm
from p2psim.theory.forecasts.linear_star import LinearStar, LocalModel, linear_star
from p2psim.theory.forecasts.star_path import path

if TYPE_CHECKING:
    from p2psim.network.section import NetworkSection
    from p2psim.privacy.plan import Plan
    from p2psim.scenario.model import Scenario
    from p2psim.simulation.prepared import PreparedData


@dataclass(frozen=True)
class Setting:
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

    @property
    def answers(self) -> int:
        """Number of steps of the learner: T answers, or T − 1 rounds."""
        return self.horizon if isinstance(self.cell, StarCell) else self.horizon - 1

    @property
    def algorithm(self) -> StarAlgorithm:
        """What the scenario says of it."""
        return star_algorithm(self.cell.scenario)

    def star(self, factor: float = 1.0, together: bool = False) -> LinearStar:
        """The asynchronous star, its step multiplied by a factor."""
        assert isinstance(self.cell, StarCell)
        assert isinstance(self.algorithm, AsyncStar)
        weighting = self.weighting.settled(self.frequencies)
        return linear_star(
            self.model,
            self.cell.method.step * factor,
            self.algorithm.form,
            self.frequencies,
            weighting.at_learner * weighting.at_owner,
            weighting.at_learner,
            together=together,
        )

    def walk(self, factor: float = 1.0) -> MomentRecursion:
        """A run whose noise is still open, all steps multiplied by a factor.

        Raises
        ------
        SimulationError
            If it grows beyond all numbers.
        """
        try:
            if isinstance(self.cell, StarCell):
                return StarWalk(path(self.star(factor), self.horizon), self.model.minimum)
            algorithm = self.algorithm
            assert isinstance(self.cell, RoundsCell)
            assert not isinstance(algorithm, AsyncStar)
            made = RoundsWalk(
                self.model,
                factor * (algorithm.c1 if algorithm.kind == "synchronous-averaging" else algorithm.rho),
                self.horizon,
                self.cell.method.averages,
                algorithm.form,
                self.frequencies * self.arrival,
                # Estimated frequencies tend to the known ones.
                "known" if algorithm.reweight == "estimated" else algorithm.reweight,
            )
            _ = made.noiseless
            return made
        except FloatingPointError:
            raise SimulationError(
                "the expected fitness grows beyond all numbers: the step is unstable; lower "
                f"learning.algorithm.{'c1' if self.algorithm.kind == 'synchronous-averaging' else 'rho'}"
            ) from None

    def plan(self, budgets: np.ndarray) -> Plan:
        """Plan of releases of these owners under other budgets, shape (N,)."""
        cell = self.cell
        privacy = cell.scenario.privacy
        records = np.maximum(1, np.round(self.model.records)).astype(np.int64)
        return plan_answers(
            cell.scenario,
            Limit(budgets, privacy.delta or 0.0, privacy.enforcing),
            cell.bound,
            records,
            cell.problem.dimension,
            self.frequencies if isinstance(cell, StarCell) else np.ones(len(records)),
            self.weighting,
        )

    def alike(self, owners: int) -> Setting:
        """As many owners of equal size, each with the second moments of all records together."""
        return self._of(
            self.model.alike(owners),
            np.full(owners, self.frequencies.mean()),
            np.full(owners, self.arrival.mean()),
        )

    def among(self, members: np.ndarray) -> Setting:
        """Some of the owners alone; what they reach is measured on the records of all."""
        return self._of(self.model.among(members), self.frequencies[members], self.arrival[members])

    def first(self) -> Setting:
        """The first of owners that are alike, with the part that it has among them."""
        return replace(
            self,
            model=self.model.among(np.array([0])),
            frequencies=self.frequencies[:1],
            arrival=self.arrival[:1],
            weighting=Weighting.equal(1),
        )

    def _of(self, model: LocalModel, frequencies: np.ndarray, arrival: np.ndarray) -> Setting:
        ones = np.ones(len(frequencies))
        equal = Weighting(ones, ones, self.weighting.estimated)
        if isinstance(self.cell, RoundsCell):
            return replace(self, model=model, frequencies=frequencies, arrival=arrival, weighting=equal)
        assert isinstance(self.algorithm, AsyncStar)
        gamma, weighting = frequencies / frequencies.sum(), equal
        if self.algorithm.reweight == "known":
            weights = inverse_frequencies(gamma)
            at_owner = self.algorithm.reweight_at == "owner"
            weighting = Weighting(equal.at_owner, weights) if at_owner else Weighting(weights, equal.at_owner)
        return replace(self, model=model, frequencies=gamma, arrival=arrival, weighting=weighting)


def setting(scenario: Scenario, case: PreparedData, replica: int = 0) -> Setting:
    """Take from a scenario (without a sweep) and its case what a forecast needs.

    Raises
    ------
    MeaningError
        If there is no forecast of such a scenario.
    """
    kind, loss = scenario.learning.algorithm.kind, scenario.learning.loss
    if not scenario.learning.algorithm.star_exchanges:
        raise MeaningError("learning.algorithm", f"forecasts of a learner are not of {kind}")
    if not np.isfinite(loss.curvature):
        raise MeaningError(
            "learning.loss",
            f"{loss.kind} has no curvature to forecast with; take logistic",
        )
    refuse_unknown(scenario.network)
    cell = adapter_of(scenario).cell(scenario, case, replica)
    assert isinstance(cell, LearnerCell)
    found = list(reasons(cell))
    if isinstance(cell, StarCell):
        frequencies, known = long_run_frequencies(cell.setup.network)
        arrival = np.ones(frequencies.size)
    else:
        frequencies, arrival, known, more = arrivals(cell)
        found += more
    if not known:
        found.append("how often owners are there is not known beforehand: taken as always")
    return Setting(cell, model_of(cell), frequencies, arrival, cell.weighting, tuple(found))


def refuse_unknown(network: NetworkSection) -> None:
    """Refuse a network with parts that forecasts know nothing of.

    Raises
    ------
    MeaningError
        Naming the first of them: an effect of the channel, or an exchange or an availability from outside p2psim.
    """
    availability, known = network.availability, "forecasts know nothing of the"
    for effect in network.channel.effects or ():
        raise MeaningError("network.channel.effects", f"{known} channel effect {effect.kind}")
    if place_of(network.exchange) is not None:
        raise MeaningError("network.exchange", f"{known} exchange {network.exchange.kind}")
    for part in (availability, *getattr(availability, "parts", ())):
        if place_of(part) is not None:
            raise MeaningError("network.availability", f"{known} availability {part.kind}")


def arrivals(cell: LearnerCell) -> tuple[np.ndarray, np.ndarray, bool, list[str]]:
    """Probabilities that an owner answers, and that its answer is used, shape (N,) both.

    And whether it is known how often owners are there, and why the rest is not exact.
    """
    network = cell.setup.network
    found = answering(network)
    reasons = list(found.lacking)
    if found.draws:
        reasons.append(f"who answers in time is counted in {found.draws:,} draws")
    has_deadline = getattr(network.exchange, "deadline", None) is not None
    if has_deadline and cell.scenario.privacy.allocation.kind != "horizon":
        reasons.append("answers after the deadline count as given")
    return found.heard, found.used, found.known, reasons


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
    if cell.setup.plan.clairvoyant:
        found.append(f"{scenario.privacy.allocation.kind}: budgets as expected before the run")
    if cell.rule.grid is not None:
        found.append("rounding to the grid is not in it")
    return found


def _of_star(cell: LearnerCell) -> list[str]:
    network, exchange, found = cell.setup.network, cell.scenario.network.exchange.kind, []
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
    availability = cell.setup.network.availability
    if availability.ideal or availability.kind == "bernoulli":
        return []
    return ["owners are away: their frequencies are right, but they miss rounds in a row"]
