"""All that a cell's simulations have in common: the scenario's words turned into numbers and arrays."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from p2psim.errors import MeaningError
from p2psim.learning.async_star import RhoFromH, StarMethod, star_method
from p2psim.learning.star_replay import GradientRule, gradient_rule
from p2psim.network.clocks import Clock
from p2psim.network.graphs import Complete, Links, Ring, Star, links
from p2psim.network.simulation import Network
from p2psim.options import per_agent
from p2psim.privacy.plan import Plan, plan
from p2psim.theory.star import rho_for_h

if TYPE_CHECKING:
    from p2psim.learning.star_problem import StarProblem
    from p2psim.study.scenario import Scenario
    from p2psim.study.workspace import Case


@dataclass(frozen=True)
class Setting:
    """One cell, ready to be simulated.

    Attributes
    ----------
    case : Case
    network : Network
    rho : float
        The step parameter, given or chosen.
    method : StarMethod
    bound : float
        Ξ, the bound on the L1 norm of one record's gradient; 0 where nothing is claimed.
    rule : GradientRule
    plan : Plan
    tape_key : str
        All of the cell that determines events and unit noise.
    """

    case: Case
    network: Network
    rho: float
    method: StarMethod
    bound: float
    rule: GradientRule
    plan: Plan
    tape_key: str


def setting(scenario: Scenario, case: Case) -> Setting:
    """Turn a scenario (without a sweep) and its case into numbers.

    Raises
    ------
    MeaningError
        If something that depends on the data means nothing: an agent without a budget, ρ from the h of a hinge
        loss, a sensitivity from bounds that nobody gives.
    """
    problem, learning, privacy = case.problem, scenario.learning, scenario.privacy
    algorithm, owners = learning.algorithm, problem.owners
    clock = scenario.network.clock or Clock()
    rates = per_agent(clock.rate, case.labels, case.groups, key="network.clock.rate")
    network = Network(
        _links(type(scenario.network.topology), owners), scenario.network.exchange, scenario.network.channel,
        scenario.network.availability, rates,
    )  # fmt: skip
    rho = _rho(scenario, problem)
    bound, clip, claim = _bound(scenario, case)
    budget = np.full(owners, np.inf)
    if privacy.mechanism.is_private and privacy.epsilon is not None:
        budget = per_agent(privacy.epsilon, case.labels, case.groups, key="privacy.epsilon")
    plans = plan(
        privacy.mechanism, privacy.allocation, budget, bound, problem.records, algorithm.horizon,
        rates / rates.sum(), privacy.scale_records,
    )  # fmt: skip
    method = star_method(algorithm, rho, learning.regularizer.l2, owners)
    rule = gradient_rule(problem, clip, claim)
    return Setting(
        case, network, rho, method, bound, rule, plans, _tape_key(scenario, network, plans, problem.dimension)
    )


def _tape_key(scenario: Scenario, network: Network, plans: Plan, dimension: int) -> str:
    parts = [
        scenario.network.model_dump(mode="json"),
        network.links.agents,
        None if network.rates is None else network.rates.tolist(),
        None if plans.limits is None else plans.limits.tolist(),
        scenario.learning.algorithm.horizon,
        dimension,
        plans.mechanism.kind,
    ]
    return json.dumps(parts)


@lru_cache(maxsize=8)
def _links(topology: type[Star | Complete | Ring], agents: int) -> Links:
    return links(topology().build(agents))


def _rho(scenario: Scenario, problem: StarProblem) -> float:
    rho = scenario.learning.algorithm.rho
    if not isinstance(rho, RhoFromH):
        return rho
    peaks = problem.hessian_peaks()
    if not np.isfinite(peaks).all():
        raise MeaningError(
            "learning.algorithm.rho", f"the {problem.loss.kind} loss has no curvature; give ρ as a number"
        )
    return rho_for_h(rho.h, scenario.learning.algorithm.horizon, problem.l2, problem.records, peaks)


def _bound(scenario: Scenario, case: Case) -> tuple[float, float, float]:
    """Ξ, the norm to clip to, and the bound to check at every release."""
    sensitivity, problem = scenario.privacy.sensitivity, case.problem
    if not scenario.privacy.mechanism.is_private or sensitivity is None:
        # Clipping is part of the algorithm, with or without noise.
        clip = sensitivity.bound if sensitivity is not None and sensitivity.kind == "clip" else np.inf
        return 0.0, clip, np.inf
    if sensitivity.kind == "clip":
        return sensitivity.bound, sensitivity.bound, np.inf
    if sensitivity.kind == "declared":
        return sensitivity.bound, np.inf, sensitivity.bound
    if sensitivity.kind == "empirical":
        return float(problem.largest_gradients().max()), np.inf, np.inf
    bound = public_bound(case)
    return bound, np.inf, bound


def public_bound(case: Case) -> float:
    """Bound on the L1 norm of a record's gradient on Θ, from the public bounds on x and y.

    With ‖x‖₁ ≤ B (p·x_max where only |x_j| ≤ x_max is known; one more for an intercept): |∂ℓ/∂z|·B, which is
    2(θ_max·B + y_max)·B for the squared loss and at most B for hinge and logistic.

    Raises
    ------
    MeaningError
        If no bound on x is public, or none on y where the loss needs it.
    """
    problem = case.problem
    features = problem.dimension - problem.loss.intercept
    known = [b for b in (case.x_l1, None if case.x_max is None else features * case.x_max) if b is not None]
    if not known:
        raise MeaningError(
            "privacy.sensitivity", "bounds needs a public bound on x: give data.scale.x, or clip"
        )
    B = min(known) + problem.loss.intercept
    if problem.loss.needs_classes:
        return B
    if case.y_max is None:
        raise MeaningError(
            "privacy.sensitivity", "bounds needs a public bound on y: give data.scale.y, or clip"
        )
    slope = problem.loss.slope_bounds(np.array([B]), np.array([case.y_max]), problem.theta_max)
    return float(slope[0] * B)
