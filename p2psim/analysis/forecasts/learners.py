"""What forecasts know of the algorithms of a learner: the asynchronous star, and synchronous rounds."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import ClassVar, Self, cast

import numpy as np

from p2psim.analysis.forecasts import star_setting as stars
from p2psim.core.errors import MeaningError, SimulationError
from p2psim.learning.steps import Weighting, inverse_frequencies
from p2psim.simulation.algorithms import rounds, star
from p2psim.simulation.algorithms.agents import answering, is_shared, long_run_frequencies
from p2psim.simulation.algorithms.learner_cell import star_algorithm
from p2psim.theory import noise_floor as floors
from p2psim.theory.forecasts.linear_star import LinearStar, LocalModel, linear_star
from p2psim.theory.forecasts.split import Split, split
from p2psim.theory.forecasts.star_path import Path, path
from p2psim.theory.forecasts.synchronous import SynchronousForecast, synchronous_forecast

#: Largest h_i of the steps that are tried, all sure to be stable.
STEEPNESS = np.geomspace(2.0, 0.005, 10)

#: Why the forecast is not exact where owners are away in spells: …
_AWAY = "owners are away: their frequencies are right, but"

#: Why the forecast is not exact where it cannot be said how often owners are online.
UNKNOWN = "it is not known beforehand how often owners are online: assumed to be always"


@dataclass(frozen=True)
class StarWalk:
    """Of the asynchronous star."""

    path: Path
    minimum: float

    @property
    def noiseless(self) -> float:
        """E[ψ] at the end without noise."""
        return float(self.path.expected[-1] / self.minimum)

    def split(self, variances: np.ndarray) -> Split:
        """E[ψ] along the run."""
        return split(self.path, variances, self.minimum)

    def noise(self, variances: np.ndarray) -> np.ndarray:
        """What each owner's noise adds at the end, shape (N,)."""
        return np.asarray(np.einsum("kn,kn->n", self.path.gain[::-1], variances) / self.minimum)


@dataclass(frozen=True)
class StarSetting(stars.Setting):
    """Owners whose answers are applied one at a time."""

    cell: star.StarCell

    by_frequency: ClassVar[bool] = True
    parameter: ClassVar[str] = "rho"

    @classmethod
    def of(cls, cell: star.StarCell) -> Self:
        """See `Setting.of`."""
        frequencies, known = long_run_frequencies(cell.setup.network)
        lacking = stars.reasons(cell, _reasons(cell)) + (() if known else (UNKNOWN,))
        return cls(
            cell, stars.model_of(cell), frequencies, np.ones(frequencies.size), cell.weighting, lacking
        )

    @property
    def answers(self) -> int:
        """See `Setting.answers`."""
        return self.horizon

    def star(self, factor: float = 1.0, together: bool = False) -> LinearStar:
        """The linear star, its step multiplied by a factor."""
        weighting = self.weighting.settled(self.frequencies)
        form, reweights = star_algorithm(self.cell.scenario).form, weighting.at_learner * weighting.at_owner
        answers = self.frequencies, reweights, weighting.at_learner
        return linear_star(self.model, self.cell.method.step * factor, form, *answers, together=together)

    def walk(self, factor: float = 1.0) -> StarWalk:
        """See `Setting.walk`."""
        try:
            return StarWalk(path(self.star(factor), self.horizon), self.model.minimum)
        except FloatingPointError:
            raise SimulationError(unstable(self.parameter)) from None

    def leaves_the_box(self, variances: np.ndarray) -> bool:
        """See `Setting.leaves_the_box`: in the eigenvectors of the mean Hessian, as far as owners share them."""
        problem, model, linear = self.cell.problem, self.model, self.star(together=True)
        room = problem.theta_max - np.abs(problem.optimum)
        if (room <= 0).any():
            return True
        if not variances.any():
            return False
        _, basis = np.linalg.eigh(np.tensordot(model.shares, model.gram, 1))
        own = np.maximum(np.einsum("pj,gpq,qj->gj", basis, np.eye(len(basis)) - linear.own[0], basis), 0.0)
        noise = linear.noise_steps**2 * variances
        moments = floors.stationary_moments(own[linear.classes].T, noise, self.frequencies)
        if not (np.isfinite(moments.learner).all() and np.isfinite(moments.owners).all()):
            return True
        widest = np.maximum(moments.learner, moments.owners.max(axis=1))
        deviations = np.sqrt(np.maximum(basis**2 @ widest, 0.0))
        return bool((stars.INSIDE * deviations > room).any())

    def choices(self, horizons: list[int], plans: stars.Plans) -> Iterator[stars.Choice]:
        """See `Setting.choices`.

        A path depends on the step alone, not on the horizon or the budgets, so one serves all of these. Owners' second
        moments are taken along the eigenvectors of all together.
        """
        unit = 1 / (2 * self._steepest(self.weighting))  # α of h = 1
        planned = [(T, *plan) for T in horizons for plan in plans(T)]
        rough = replace(self, model=self.model.diagonal())
        for h in STEEPNESS:
            step = float(h * unit)
            try:
                walked = path(rough.star(step / self.cell.method.step), horizons[-1])
            except FloatingPointError:
                continue
            for T, allocation, variances in planned:
                noise = np.einsum("kn,kn->", walked.gain[:T][::-1], variances)
                psi = float((walked.expected[T] + noise) / self.model.minimum)
                yield stars.Choice(T, step * T**2 * 2 * self.model.l2, allocation, psi)

    def psi_of(self, choice: stars.Choice, plans: stars.Plans) -> float:
        """See `Setting.psi_of`: anew, with all of the owners' second moments."""
        step = choice.parameter / (choice.horizon**2 * 2 * self.model.l2)
        walked = StarWalk(path(self.star(step / self.cell.method.step), choice.horizon), self.model.minimum)
        variances = next(v for allocation, v in plans(choice.horizon) if allocation == choice.allocation)
        return float(walked.noiseless + walked.noise(variances).sum())

    def factor_among(self, everybody: stars.Setting) -> float:
        """See `Setting.factor_among`."""
        everybody = cast("StarSetting", everybody)
        largest, among = (one._steepest(one.weighting.settled(one.frequencies)) for one in (everybody, self))
        return largest / among

    def _steepest(self, weighting: Weighting) -> float:
        """Half of the largest h_i at a step α of one."""
        peaks = np.linalg.eigvalsh(self.model.gram)[:, -1]
        weights = weighting.at_learner * weighting.at_owner
        return float((len(peaks) * self.model.shares * peaks * weights).max())

    def _of(self, model: LocalModel, frequencies: np.ndarray, arrival: np.ndarray) -> Self:
        gamma, algorithm = frequencies / frequencies.sum(), star_algorithm(self.cell.scenario)
        other = super()._of(model, gamma, arrival)
        if algorithm.reweight != "known":
            return other
        ones, weights = np.ones(len(gamma)), inverse_frequencies(gamma)
        at_owner = algorithm.reweight_at == "owner"
        return replace(other, weighting=Weighting(ones, weights) if at_owner else Weighting(weights, ones))


def unstable(parameter: str) -> str:
    """Message about a step with which the forecast grows beyond all numbers."""
    return (
        "the expected fitness grows beyond all numbers: the step is unstable; lower "
        f"learning.algorithm.{parameter}"
    )


def _reasons(cell: star.StarCell) -> dict[str, bool]:
    network, exchange = cell.setup.network, cell.scenario.network.exchange
    asked = exchange.has_clocks and not is_shared(network)
    disturbed = asked and not network.channel.ideal
    discounts = star_algorithm(cell.scenario).staleness.weight(1) < 1
    return {
        f"{exchange.kind}: answers to older models, and not by independent owners": not asked,
        "the channel is not ideal: which owner answers depends on the past": disturbed,
        f"{_AWAY} their answers come in bursts": not network.availability.ideal,
        "all answers count as fresh": discounts and not asked,
    }


@dataclass(frozen=True)
class RoundsWalk:
    """Of synchronous rounds.

    Attributes
    ----------
    forecast : callable
        `synchronous_forecast` of all but the variances.
    shape : tuple of int
        Of variances: rounds and owners.
    """

    forecast: Callable[..., SynchronousForecast]
    shape: tuple[int, int]

    @property
    def noiseless(self) -> float:
        """E[ψ] at the end without noise."""
        return self._of_unit_noise[0]

    def split(self, variances: np.ndarray) -> Split:
        """E[ψ] along the run."""
        with np.errstate(over="raise", invalid="raise"):
            return self.forecast(variances=variances).average.parts

    def noise(self, variances: np.ndarray) -> np.ndarray:
        """What each owner's noise adds at the end, shape (N,)."""
        if (variances == variances[:1]).all():
            return self._of_unit_noise[1] * variances[0]
        return self.split(variances).noise[-1]

    @cached_property
    def _of_unit_noise(self) -> tuple[float, np.ndarray]:
        """E[ψ] at the end without noise, and what noise of variance 1 of each owner adds."""
        parts = self.split(np.ones(self.shape))
        return float(parts.noiseless[-1]), parts.noise[-1].copy()


@dataclass(frozen=True)
class RoundsSetting(stars.Setting):
    """Owners who are asked in rounds."""

    cell: rounds.RoundsCell

    by_frequency: ClassVar[bool] = False

    @classmethod
    def of(cls, cell: rounds.RoundsCell) -> Self:
        """See `Setting.of`: with the probabilities that owners answer, and that their answers are used."""
        for key in ("aggregate", "liars"):
            if getattr(cell.scenario.learning.algorithm, key) is not None:
                message = "forecasts cover sums of correct answers only"
                raise MeaningError(f"learning.algorithm.{key}", message)
        network = cell.setup.network
        response, availability = answering(network), network.availability
        in_spells = availability.has_spans
        has_deadline = network.exchange.round_deadline is not None
        asks_all = network.exchange.asked(network.links.agents) == network.links.agents
        by_answers = not cell.scenario.privacy.allocation.for_stars
        lacking = stars.reasons(
            cell, {f"{_AWAY} they miss rounds in a row": in_spells}
        ) + stars.those_that_hold(
            {
                **dict.fromkeys(response.lacking, True),
                f"which owners answer in time is counted in {response.draws:,} draws": bool(response.draws),
                "answers after the deadline count as given": has_deadline and by_answers,
                UNKNOWN: not response.known,
                "owners are drawn for each round: taken as independent of each other": not asks_all,
            }
        )
        return cls(cell, stars.model_of(cell), response.heard, response.used, cell.weighting, lacking)

    @property
    def answers(self) -> int:
        """See `Setting.answers`."""
        return self.horizon - 1

    @property
    def parameter(self) -> str:
        """See `Setting.parameter`."""
        return "c1" if self.cell.method.averages else "rho"

    @property
    def _step(self) -> float:
        return float(getattr(self.cell.scenario.learning.algorithm, self.parameter))

    def walk(self, factor: float = 1.0) -> RoundsWalk:
        """See `Setting.walk`."""
        algorithm, present = star_algorithm(self.cell.scenario), self.frequencies * self.arrival
        forecast = partial(
            synchronous_forecast,
            "averaging" if self.cell.method.averages else "descent",
            self.model,
            self.model.minimum,
            factor * self._step,
            self.horizon,
            form=algorithm.form,
            present=present,
            # Estimated frequencies tend to the known ones.
            reweight="known" if algorithm.reweight == "estimated" else algorithm.reweight,
        )
        walk = RoundsWalk(forecast, (self.answers, present.size))
        try:
            _ = walk.noiseless
        except FloatingPointError:
            raise SimulationError(unstable(self.parameter)) from None
        return walk

    def leaves_the_box(self, variances: np.ndarray) -> bool:
        """See `Setting.leaves_the_box`: in the flattest direction."""
        cell, problem = self.cell, self.cell.problem
        if not cell.method.projects or not variances.any():
            return False
        of_noise = (problem.shares**2 * variances).sum()
        curvature = 2 * float(np.linalg.eigvalsh(self.model.hessian)[0])
        # θ moves by (1 − s_k·H)z and noise of variance of_noise·s_k²: the recursion of the flattest direction.
        spread = largest = 0.0
        for step in cell.method.steps:
            spread = (1 - step * curvature) ** 2 * spread + step**2 * of_noise
            largest = max(largest, spread)
        return bool(stars.INSIDE * np.sqrt(largest) > problem.theta_max - np.abs(problem.optimum).max())

    def choices(self, horizons: list[int], plans: stars.Plans) -> Iterator[stars.Choice]:
        """See `Setting.choices`.

        Steps depend on the horizon as well, so each pair has a run of its own. `STEEPNESS` is the first step times the
        largest curvature, and in Algorithm 1 times the condition number as well, since its steps fall as 1/k.
        """
        curvatures = 2 * np.linalg.eigvalsh(self.model.hessian)
        spread = 1.0 if self.cell.method.averages else curvatures[-1] / curvatures[0]
        for T in horizons:
            other = self.with_plan(horizon=T)
            planned = list(plans(T))
            for h in STEEPNESS * spread:
                factor = float(h / curvatures[-1] / other.cell.method.steps[0])
                try:
                    walked = other.walk(factor)
                except SimulationError:
                    continue
                for allocation, variances in planned:
                    psi = float(walked.noiseless + walked.noise(variances).sum())
                    yield stars.Choice(T, factor * self._step, allocation, psi)
