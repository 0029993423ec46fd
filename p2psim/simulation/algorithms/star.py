"""The cell of a star: a central learner and its owners.

The module also draws up what is known before a run: size, step, stability, noise, privacy, and warnings.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from p2psim.core.errors import MeaningError
from p2psim.learning.star.algorithms import RhoFromH, StarMethod, star_method
from p2psim.learning.star.problem import StarProblem
from p2psim.learning.star.reference import reference_replay
from p2psim.learning.star.replay import StarReplay
from p2psim.learning.steps import Weighting, inverse_frequencies
from p2psim.network.section import Network
from p2psim.scenario.model import Scenario
from p2psim.simulation.algorithms import Facts, PrivacyOfAgents
from p2psim.simulation.algorithms.agents import is_shared, long_run_frequencies
from p2psim.simulation.algorithms.learner_cell import LearnerCell, star_algorithm
from p2psim.simulation.algorithms.learner_replay import Together, together
from p2psim.theory import noise_floor as floors
from p2psim.theory import star


@dataclass(frozen=True)
class Steps:
    """What the steps of a star do, whatever the noise.

    Attributes
    ----------
    facts, warnings : dict, tuple of str
        For whoever runs it.
    problem : StarProblem
    lengths : ndarray, shape (N,)
        r_i·lr_i.
    moves : ndarray, shape (N,)
        Factor from the variance of an answer's noise to that of what it moves a coordinate of θ_i by.
    frequencies : ndarray, shape (N,)
        γ_i.
    """

    facts: dict[str, object]
    warnings: tuple[str, ...]
    problem: StarProblem
    lengths: np.ndarray
    moves: np.ndarray
    frequencies: np.ndarray

    @cached_property
    def eigenvectors(self) -> tuple[np.ndarray, np.ndarray]:
        """Those of the mean Hessian, as columns, and the curvatures of each owner's loss along them, shape (N, p)."""
        hessians = self.problem.loss.curvature * self.problem.gram
        _, basis = np.linalg.eigh(np.tensordot(self.problem.shares, hessians, axes=1))
        return basis, np.maximum(np.einsum("pj,ipq,qj->ij", basis, hessians, basis), 0.0)


@dataclass(frozen=True)
class StarCell(LearnerCell):
    """A star's cell."""

    method: StarMethod

    compiled = StarReplay
    reference = reference_replay

    @staticmethod
    def weigh(scenario: Scenario, network: Network) -> Weighting:
        """See `LearnerCell.weigh`."""
        algorithm, ones = star_algorithm(scenario), np.ones(network.links.agents)
        if algorithm.reweight != "known":
            return Weighting(ones, ones, algorithm.reweight == "estimated", algorithm.staleness)
        frequencies, known = long_run_frequencies(network)
        if not known or is_shared(network):
            what = "concurrency" if is_shared(network) else scenario.network.availability.kind
            message = f"known frequencies cannot be said under {what}; take estimated"
            raise MeaningError("learning.algorithm.reweight", message)
        weights = inverse_frequencies(frequencies)
        if algorithm.reweight_at == "owner":
            return Weighting(ones, weights, staleness=algorithm.staleness)
        return Weighting(weights, ones, staleness=algorithm.staleness)

    @staticmethod
    def method_of(scenario: Scenario, problem: StarProblem, weighting: Weighting) -> StarMethod:
        """See `LearnerCell.method_of`."""
        rho = _rho(scenario, problem)
        return star_method(star_algorithm(scenario), rho, problem.l2, problem.owners, weighting)

    @cached_property
    def rho(self) -> float:
        """The step parameter, given or chosen."""
        return _rho(self.scenario, self.problem)

    @property
    def has_data_dependent_step(self) -> bool:
        """See `PreparedCell.has_data_dependent_step`."""
        return isinstance(star_algorithm(self.scenario).rho, RhoFromH)

    @cached_property
    def together(self) -> Together | None:
        """See `PreparedCell.together`."""
        return None if self._draws or self.metrics.of_graph else together(self)

    def facts(self, privacy: PrivacyOfAgents) -> Facts:
        """See `PreparedCell.facts`."""
        problem, plan, horizon, case = self.problem, self.setup.plan, self.horizon, self.case
        zero = np.zeros((1, problem.dimension))
        start = case.once("ψ of 0", (problem,), lambda: float(problem.relative_fitness(zero)[0]))
        facts: dict[str, object] = {
            "owners": problem.owners,
            "records": int(problem.records.sum()),
            "p": problem.dimension,
            "rho": self.rho,
            **dict.fromkeys(("h", "stable below", "step", "T·lr·λ_min/(N+1)", "noise floor of ψ")),
            "ψ of θ = 0": start,
            "box filling": None,
            "f(θ*)": problem.minimum,
            "Ξ": self.bound,
        }
        warnings: list[str] = []
        if np.isfinite(problem.loss.curvature):
            known = case.once("steps", (self.method, self.setup.network), lambda: self._steps)
            facts |= known.facts
            warnings += known.warnings
            # Theory knows the noise of releases, of equal size, and not that of batches.
            equal = plan.allocation.alike and not plan.sampled
            variances = plan.mechanism.variance(privacy.scales)
            if equal and problem.loss.is_squared_error and np.isfinite(variances).all():
                floor, filling = self._noise(known, known.moves * variances)
                facts |= {"noise floor of ψ": floor, "box filling": filling}
                warnings += _noise_warnings(filling, floor, start)
        return facts, horizon * self.scenario.network.exchange.events_per_commit, warnings

    @property
    def _steps(self) -> Steps:
        problem = self.problem
        steps = star.step_sizes(self.rho, self.horizon, problem.l2, problem.records)
        # A gradient that counts r times is a step r times as long.
        frequencies, _ = long_run_frequencies(self.setup.network)
        weighting = self.weighting.settled(frequencies)
        reweights = weighting.at_learner * weighting.at_owner
        h = star.steepness(steps, problem.hessian_peaks()) * reweights
        hessians = problem.loss.curvature * problem.gram
        contraction = star.contraction(self.rho, self.horizon, problem.l2, problem.records, hessians)
        facts: dict[str, object] = {
            "h": float(h.max()),
            "stable below": star.stability_threshold(problem.owners),
        }
        facts |= {"step": star.stability(h), "T·lr·λ_min/(N+1)": contraction}
        moves, warnings = (steps * weighting.at_learner) ** 2, tuple(_step_warnings(h, contraction))
        return Steps(facts, warnings, problem, steps * reweights, moves, frequencies)

    def _noise(self, known: Steps, variances: np.ndarray) -> tuple[float, float]:
        """Expected ψ from noise alone after convergence, and how far noise fills the box.

        In the eigenvectors of the mean Hessian: exact for as far as owners share them, answer independently of the
        past, and neither clipping nor the box acts.

        Parameters
        ----------
        known : Steps
        variances : ndarray, shape (N,)
            Variance of what the noise of an answer moves a coordinate of θ_i by.
        """
        problem, method = self.problem, self.method
        if not variances.any():
            return 0.0, 0.0
        pull = method.step * problem.l2
        basis, curvatures = known.eigenvectors
        steep, decay = (known.lengths[:, None] * curvatures).T, 2 * method.learner_weight * pull
        moments = floors.stationary_moments(steep, variances, known.frequencies, decay, pull)
        spread = np.sqrt(np.maximum(moments.learner, 0.0))
        weight = 2 * problem.l2 + problem.shares @ curvatures
        floor = 0.5 * float(np.sum(weight * moments.learner)) / problem.minimum
        return floor, floors.box_filling(spread, problem.theta_max, basis)


def _rho(scenario: Scenario, problem: StarProblem) -> float:
    """ρ, given or chosen.

    Raises
    ------
    MeaningError
        If it is to be chosen for a loss without curvature.
    """
    rho = star_algorithm(scenario).rho
    if not isinstance(rho, RhoFromH):
        return rho
    peaks = problem.hessian_peaks()
    if not np.isfinite(peaks).all():
        message = f"the {problem.loss.kind} loss has no curvature; give ρ as a number"
        raise MeaningError("learning.algorithm.rho", message)
    return star.rho_for_h(rho.h, star_algorithm(scenario).horizon, problem.l2, problem.records, peaks)


def _step_warnings(h: np.ndarray, contraction: float) -> Iterator[str]:
    verdict, highest = star.stability(h), float(h.max())
    if verdict != "stable":
        equal = f"equal owners are stable below {star.stability_threshold(h.size):.3g}"
        differing = "and owners whose h differ are sure to be stable only up to h = 2"
        known = equal if verdict == "unstable" else differing
        yield f"step size outside the stability range: h = {highest:.3g}, {known}; lower learning.algorithm.rho"
    if contraction < 1e-9 * highest:
        yield (
            "features depend on each other linearly, as those of a one-hot column do: T·lr·λ_min/(N+1) is 0, and noise "
            "alone moves the model in some direction; begin data.features with {kind: pca, components: …}"
        )
    elif contraction < 4:
        yield (
            f"the slowest direction does not converge: T·lr·λ_min/(N+1) = {contraction:.3g}, and 4 is needed; "
            "raise the horizon or learning.algorithm.rho, or whiten the features"
        )


def _noise_warnings(filling: float, floor: float, start: float) -> Iterator[str]:
    if filling >= floors.FILLS:
        known = f"its standard deviation is {filling:.3g} times theta_max"
        spread = known if np.isfinite(filling) else "at this step it would grow without bound"
        yield f"noise fills Θ: {spread}, so ψ saturates; fit no slopes here"
    if floor > start:
        yield (
            "the noise hides what is learned: the noise floor of ψ is above the ψ of θ = 0, where every run starts; "
            "raise privacy.epsilon or the number of records, or make fewer releases (a smaller horizon, or allocation: "
            "cap)"
        )
