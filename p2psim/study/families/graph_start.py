"""Where the models of a graph's cell start, and what that costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from p2psim.errors import MeaningError
from p2psim.learning.graph_optimum import minimise_alone, propagate
from p2psim.learning.graph_problem import GraphProblem
from p2psim.learning.graph_replay import GraphRule
from p2psim.learning.starts import Given, Local, PrivateWarmStart, Start
from p2psim.paths import checked
from p2psim.study.streams import streams_of

if TYPE_CHECKING:
    from p2psim.study.scenario import Scenario


@dataclass(frozen=True)
class First:
    """Where the models start.

    Attributes
    ----------
    models : ndarray, shape (n, p)
    anchor : ndarray, shape (n, p)
        What updates without a release pull towards at first.
    epsilon : ndarray, shape (n,), or None
        ε of the release that this is.
    exceeded : ndarray, shape (n,)
        Longest gradient of a record over the bound that this release claims; 0 where within.
    """

    models: np.ndarray
    anchor: np.ndarray
    epsilon: np.ndarray | None
    exceeded: np.ndarray


def first_models(
    scenario: Scenario, start: Start, problem: GraphProblem, bound: float, rule: GraphRule, replica: int
) -> First:
    """First models; ``rule.bound`` on a record's gradient is checked where they are a private release."""
    private, n = scenario.privacy.mechanism.is_private, problem.agents
    fits, free = np.zeros(n), np.full(n, np.inf)
    if isinstance(start, Local):
        alone = minimise_alone(problem, start.reduction)
        return First(alone, alone, free if private else None, fits)
    if isinstance(start, PrivateWarmStart):
        exact = minimise_alone(problem)
        alone = _perturbed(scenario, problem, exact, bound, replica, start)
        models = propagate(problem, alone) if start.propagate else alone
        if not private:
            return First(models, alone, None, fits)
        return First(models, alone, np.full(n, start.epsilon), _excess(problem, exact, rule))
    if isinstance(start, Given):
        given = _read(start.path, (n, problem.dimension))
        return First(given, given, None, fits)
    zero = np.zeros((n, problem.dimension))
    return First(zero, zero, None, fits)


def _excess(problem: GraphProblem, theta: np.ndarray, rule: GraphRule) -> np.ndarray:
    """Norm of each agent's longest gradient at its model over the claim, 0 where within, shape (n,)."""
    slopes = problem.loss.slopes(problem.scores(theta), problem.y)
    longest = np.zeros(problem.agents)
    owners = np.repeat(np.arange(problem.agents), problem.records)
    np.maximum.at(longest, owners, np.abs(slopes) * problem.norms(rule.order))
    return np.where(longest > rule.bound, longest / rule.bound, 0.0)


def _read(path: str, shape: tuple[int, int]) -> np.ndarray:
    """Models from a file.

    Raises
    ------
    MeaningError
        If they have another shape, or are not finite numbers.
    MissingSourceError
        If there is no such file.
    """
    key = "learning.algorithm.start.path"
    place = checked(path, key)
    try:
        models = (
            np.load(place, allow_pickle=False)
            if place.suffix == ".npy"
            else np.loadtxt(place, delimiter=",", ndmin=2)
        )
    except (ValueError, OSError) as error:
        raise MeaningError(key, f"{path} cannot be read: {error}") from None
    if models.shape != shape or models.dtype.kind not in "fiu" or not np.isfinite(models).all():
        raise MeaningError(key, f"{path} must hold finite numbers of shape {shape}, got shape {models.shape}")
    return models.astype(np.float64)


def _perturbed(
    scenario: Scenario,
    problem: GraphProblem,
    alone: np.ndarray,
    bound: float,
    replica: int,
    start: PrivateWarmStart,
) -> np.ndarray:
    """Minimisers of the agents' own losses with noise for their release."""
    from p2psim.privacy.output_perturbation import minimiser_sensitivity
    from p2psim.streams import unit_laplace

    if not scenario.privacy.mechanism.is_private:
        return alone
    sensitivity = scenario.privacy.sensitivity
    if sensitivity is None or sensitivity.kind not in ("bounds", "declared"):
        raise MeaningError(
            "learning.algorithm.start",
            "a private warm start needs a bound on gradients that holds without clipping: bounds or declared",
        )
    moves = minimiser_sensitivity(bound, np.maximum(problem.records, 1), problem.ridge, problem.dimension)
    # As for all releases, noise is as if each record stood for many; the ledger puts that right.
    moves = moves / scenario.privacy.scale_records
    scales = scenario.privacy.mechanism.scales(moves, np.full(problem.agents, start.epsilon))
    noise = np.empty_like(alone)
    key, agents = streams_of(scenario, replica).key("start"), np.arange(problem.agents)
    unit_laplace(key, agents, np.zeros(problem.agents, np.int64), noise)
    return alone + noise * scales[:, None]


def after_start(budget: np.ndarray, initial: np.ndarray) -> np.ndarray:
    """What is left of the budgets after the start.

    Raises
    ------
    MeaningError
        If nothing is left.
    """
    left = budget - initial
    if (left <= 0).any():
        agent = int(np.argmax(left <= 0))
        raise MeaningError(
            "learning.algorithm.start.epsilon",
            f"must be less than privacy.epsilon, {budget[agent]:g} for agent {agent}, of which it is a part",
        )
    return left
