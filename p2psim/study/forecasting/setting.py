"""The numbers that a forecast of a central learner takes from a scenario and its data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from p2psim.errors import MeaningError, SimulationError
from p2psim.learning.async_star import AsyncStar
from p2psim.learning.section import STARS
from p2psim.learning.weighting import Weighting, inverse_frequencies
from p2psim.privacy.budgets import Limit
from p2psim.study.families import family_of
from p2psim.study.families.frequencies import long_run_frequencies
from p2psim.study.families.learner_cell import LearnerCell, plan_answers
from p2psim.study.families.rounds import RoundsCell
from p2psim.study.families.star import StarCell
from p2psim.study.families.star_setting import StarAlgorithm, star_algorithm
from p2psim.study.forecasting.arrivals import arrivals
from p2psim.study.forecasting.local_models import model_of
from p2psim.study.forecasting.reasons import reasons
from p2psim.study.forecasting.walks import RoundsWalk, StarWalk, Walk
from p2psim.theory.forecast.linear_star import LinearStar, linear_star
from p2psim.theory.forecast.local_model import LocalModel
from p2psim.theory.forecast.star_path import path

if TYPE_CHECKING:
    from p2psim.privacy.plan import Plan
    from p2psim.study.scenario import Scenario
    from p2psim.study.workspace import Case


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

    def walk(self, factor: float = 1.0) -> Walk:
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


def setting(scenario: Scenario, case: Case, replica: int = 0) -> Setting:
    """Take from a scenario (without a sweep) and its case what a forecast needs.

    Raises
    ------
    MeaningError
        If there is no forecast of such a scenario.
    """
    kind, loss = scenario.learning.algorithm.kind, scenario.learning.loss
    if kind not in STARS:
        raise MeaningError("learning.algorithm", f"forecasts of a learner are not of {kind}")
    if not np.isfinite(loss.curvature):
        raise MeaningError(
            "learning.loss",
            f"{loss.kind} has no curvature to forecast with; take logistic",
        )
    cell = family_of(scenario).cell(scenario, case, replica)
    assert isinstance(cell, LearnerCell)
    found = list(reasons(cell))
    if isinstance(cell, StarCell):
        frequencies, known = long_run_frequencies(cell.stage.network)
        arrival = np.ones(frequencies.size)
    else:
        frequencies, arrival, known, more = arrivals(cell)
        found += more
    if not known:
        found.append("how often owners are there is not known beforehand: taken as always")
    return Setting(cell, model_of(cell), frequencies, arrival, cell.weighting, tuple(found))
