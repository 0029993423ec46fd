"""What all algorithms of a central learner make of a scenario: the problem, the network, and the bound on gradients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from p2psim.core.errors import MeaningError
from p2psim.learning.star.algorithms import AsyncStar, SynchronousAveraging, SynchronousDescent
from p2psim.learning.star.problem import StarProblem, star_problem
from p2psim.learning.star.replay import GradientRule, gradient_rule
from p2psim.network.clocks import Clock
from p2psim.network.graph import Graph, TopologyInputs
from p2psim.network.section import Network
from p2psim.network.topologies import Topology, draw_links
from p2psim.simulation.algorithms.agents import members_of, names_of
from p2psim.simulation.algorithms.replay import order_of

if TYPE_CHECKING:
    from p2psim.data.prepare import Prepared
    from p2psim.scenario.model import Scenario
    from p2psim.simulation.prepared import PreparedData

StarAlgorithm = AsyncStar | SynchronousDescent | SynchronousAveraging

_ARRAYS = ("X", "y", "offsets", "x_l1", "gram", "moment", "energy", "optimum")


def star_algorithm(scenario: Scenario) -> StarAlgorithm:
    """The algorithm, which is one of a central learner."""
    algorithm = scenario.learning.algorithm
    assert isinstance(algorithm, AsyncStar | SynchronousDescent | SynchronousAveraging)
    return algorithm


def l2_of(scenario: Scenario) -> float:
    """Weight of the regulariser."""
    l2 = scenario.learning.regularizer.l2
    assert not isinstance(l2, str)  # refused by p2psim.scenario.rules
    return l2


def identify(scenario: Scenario) -> dict[str, Any]:
    """Return what determines the arrays of a case, beside the data section."""
    learning = scenario.learning
    return {
        "loss": learning.loss.model_dump(),
        "l2": l2_of(scenario),
        "theta_max": star_algorithm(scenario).theta_max,
    }


def arrays(scenario: Scenario, prepared: Prepared) -> tuple[dict[str, np.ndarray], tuple[str, ...]]:
    """Arrays of `StarProblem` and its minimum, and warnings."""
    learning = scenario.learning
    if learning.loss.needs_classes and not prepared.classes:
        raise MeaningError(
            "learning.loss", f"{learning.loss.kind} needs labels that are +1 or −1; these are not"
        )
    problem = star_problem(
        prepared.X,
        prepared.y,
        prepared.offsets,
        learning.loss,
        l2_of(scenario),
        star_algorithm(scenario).theta_max,
    )
    made = {name: np.asarray(getattr(problem, name)) for name in _ARRAYS}
    made["minimum"] = np.array(problem.minimum)
    made |= names_of(prepared)
    active = ("the optimum lies on the boundary of Θ: theta_max is active",) if problem.box_is_active else ()
    return made, active


def links_of(scenario: Scenario, arrays: Mapping[str, np.ndarray], replica: int) -> Graph:
    """Who is linked with whom."""
    return _links(scenario.network.topology, arrays["offsets"].size - 1)


@lru_cache(maxsize=8)
def _links(topology: Topology, agents: int) -> Graph:
    return draw_links(topology, TopologyInputs(agents), learner=True)


def problem_of(scenario: Scenario, arrays: Mapping[str, np.ndarray]) -> StarProblem:
    """What is minimised, from the arrays of a case."""
    learning = scenario.learning
    return StarProblem(
        loss=learning.loss,
        l2=l2_of(scenario),
        theta_max=star_algorithm(scenario).theta_max,
        minimum=float(arrays["minimum"]),
        **{name: np.asarray(arrays[name]) for name in _ARRAYS},
    )


def network_of(scenario: Scenario, arrays: Mapping[str, np.ndarray], replica: int) -> Network:
    """The network of a replica."""
    members, clock = members_of(arrays), scenario.network.clock or Clock()
    return Network(
        links_of(scenario, arrays, replica),
        scenario.network.exchange,
        scenario.network.channel,
        scenario.network.availability,
        clock.rates(members.labels, members.groups),
        members=members,
    )


#: A box that no finite run leaves, small enough that its square is a number.
_ANYWHERE = 1e150


def rule_of(
    scenario: Scenario, case: PreparedData, problem: StarProblem, projects: bool = True
) -> tuple[float, GradientRule]:
    """Ξ, in the mechanism's norm, and how an owner computes its gradient, at models in Θ or anywhere.

    Raises
    ------
    MeaningError
        If public bounds are asked for and say nothing.
    """
    sensitivity, mechanism = scenario.privacy.sensitivity, scenario.privacy.mechanism
    order, grid = order_of(mechanism.norm), mechanism.lattice
    reach = problem if projects else replace(problem, theta_max=_ANYWHERE)
    if sensitivity is not None and sensitivity.kind == "clip":
        # Clipping is part of the algorithm, with or without noise. An L1 bound is one on the L2 norm as well.
        rule = gradient_rule(reach, sensitivity.bound, order=order_of(sensitivity.norm), grid=grid)
        return sensitivity.bound if mechanism.is_private else 0.0, rule
    if sensitivity is None or not mechanism.is_private:
        return 0.0, gradient_rule(reach, grid=grid)
    if sensitivity.kind == "empirical":
        return float(problem.largest_gradients(order).max()), gradient_rule(reach, order=order, grid=grid)
    if sensitivity.kind == "bounds" and not projects and np.isinf(problem.loss.slope_bound):
        raise MeaningError(
            "privacy.sensitivity",
            f"bounds needs models that stay in Θ, which {scenario.learning.algorithm.kind} does not see to; give clip",
        )
    declared = sensitivity.bound if sensitivity.kind == "declared" else None
    bound = public_bound(case, problem, order) if declared is None else declared
    return bound, gradient_rule(reach, bound=bound, order=order, grid=grid)


def public_bound(case: PreparedData, problem: StarProblem, order: int = 1) -> float:
    """Bound on the norm of a record's gradient on Θ, of order 1 or 2, from the public bounds on x and y.

    |∂ℓ/∂z|·B, with ‖x‖ ≤ B in that norm. ‖x‖₁ is at most p·x_max where |x_j| ≤ x_max is known, and ‖x‖₂ at most
    √p·x_max and at most ‖x‖₁; an intercept adds one to ‖x‖₁ and to ‖x‖₂². The slope is at most 2(θ_max·B₁ + y_max) for
    the squared loss, B₁ the bound on ‖x‖₁; other losses have a bound at any score, 1 for hinge and logistic.

    Raises
    ------
    MeaningError
        If no bound on x is public, or none on y where the loss needs it.
    """
    B1, B = (x_bound_of(case, problem, one) for one in (1, order))
    if np.isfinite(problem.loss.slope_bound):
        return problem.loss.slope_bound * B
    if case.y_max is None:
        raise MeaningError(
            "privacy.sensitivity", "bounds needs a public bound on y: give data.scale.y, or clip"
        )
    slope = problem.loss.slope_bounds(np.array([B1]), np.array([case.y_max]), problem.theta_max)
    return float(slope[0] * B)


def x_bound_of(case: PreparedData, problem: StarProblem, order: int) -> float:
    """Public bound on ‖x‖ of order 1 or 2, the intercept counted.

    Raises
    ------
    MeaningError
        If there is none.
    """
    features = problem.dimension - problem.loss.intercept
    by_coordinate = None if case.x_max is None else features ** (1 / order) * case.x_max
    known = [bound for bound in (case.x_l1, by_coordinate) if bound is not None]
    if not known:
        raise MeaningError(
            "privacy.sensitivity", "bounds needs a public bound on x: give data.scale.x, or clip"
        )
    return float((min(known) ** order + problem.loss.intercept) ** (1 / order))
