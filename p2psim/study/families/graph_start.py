"""Where the models of a graph's cell start, and what that costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from p2psim.errors import MeaningError, first_line
from p2psim.learning.graph_optimum import minimise_alone, propagate
from p2psim.learning.graph_problem import GraphProblem
from p2psim.learning.graph_replay import GraphRule
from p2psim.learning.releases_reference import on_grid
from p2psim.learning.starts import Given, Local, PrivateWarmStart, Start
from p2psim.paths import checked
from p2psim.privacy.budgets import allowance
from p2psim.privacy.mechanisms import noise_scales
from p2psim.privacy.output_perturbation import minimiser_sensitivity
from p2psim.study.streams import streams_of
from p2psim.text_tables import matrix_of

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
    loss, loss_real : ndarray, shape (n,), or None
        Loss of the release that this is, for the records as scaled and for the real ones.
    exceeded : ndarray, shape (n,)
        Longest gradient of a record over the bound that this release claims; 0 where within.
    """

    models: np.ndarray
    anchor: np.ndarray
    exceeded: np.ndarray
    loss: np.ndarray | None = None
    loss_real: np.ndarray | None = None


def first_models(
    scenario: Scenario, start: Start, problem: GraphProblem, bound: float, rule: GraphRule, replica: int
) -> First:
    """First models; ``rule.bound`` on a record's gradient is checked where they are a private release."""
    private, n = scenario.privacy.mechanism.is_private, problem.agents
    fits, free = np.zeros(n), np.full(n, np.inf)
    if isinstance(start, Local):
        alone = minimise_alone(problem, start.reduction)
        return First(alone, alone, fits, free, free) if private else First(alone, alone, fits)
    if isinstance(start, PrivateWarmStart):
        exact = minimise_alone(problem)
        if not private:
            return First(propagate(problem, exact) if start.propagate else exact, exact, fits)
        scales, loss, real = start_scales(scenario, problem, bound, start)
        alone = _perturbed(scenario, exact, scales, replica)
        models = propagate(problem, alone) if start.propagate else alone
        return First(models, alone, _excess(problem, exact, rule), loss, real)
    if isinstance(start, Given):
        given = _read(start.path, (n, problem.dimension))
        return First(given, given, fits)
    zero = np.zeros((n, problem.dimension))
    return First(zero, zero, fits)


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
        # Mapped: of a file that is shorter than it says, no memory is taken.
        models = np.lib.format.open_memmap(place, "r") if place.suffix == ".npy" else matrix_of(place, key)
    except (ValueError, OSError, EOFError) as error:
        raise MeaningError(key, f"{path} cannot be read as an array: {first_line(error)}") from None
    if models.shape != shape or models.dtype.kind not in "fiu" or not np.isfinite(models).all():
        raise MeaningError(key, f"{path} must hold finite numbers of shape {shape}, got shape {models.shape}")
    return models.astype(np.float64)


def start_scales(
    scenario: Scenario, problem: GraphProblem, bound: float, start: PrivateWarmStart
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scale of the noise of each agent's first model, and its loss, claimed and real, shape (n,) each.

    Raises
    ------
    MeaningError
        If no bound on gradients holds without clipping.
    """
    privacy, p = scenario.privacy, problem.dimension
    mechanism, sensitivity = privacy.mechanism, privacy.sensitivity
    if sensitivity is None or sensitivity.kind not in ("bounds", "declared"):
        raise MeaningError(
            "learning.algorithm.start",
            "a private warm start needs a bound on gradients that holds without clipping: bounds or declared",
        )
    norm = mechanism.norm
    moves = minimiser_sensitivity(bound, np.maximum(problem.records, 1), problem.ridge, p, norm, norm)
    # As for all releases, noise is as if each record stood for many; the ledger puts that right.
    claimed = mechanism.sensitivity_of(moves / privacy.scale_records, p)
    worth = allowance(mechanism, np.array([start.epsilon]), privacy.delta or 0.0, privacy.enforcing)
    loss = np.full(problem.agents, float(worth[0]) ** (1 / mechanism.power))
    return noise_scales(claimed, loss), loss, loss * mechanism.sensitivity_of(moves, p) / claimed


def _perturbed(scenario: Scenario, alone: np.ndarray, scales: np.ndarray, replica: int) -> np.ndarray:
    """Minimisers of the agents' own losses with noise of these scales."""
    mechanism, agents = scenario.privacy.mechanism, np.arange(len(alone))
    unit = np.empty_like(alone)
    key = streams_of(scenario, replica).key("start")
    mechanism.draw(key, agents, np.zeros(agents.size, np.int64), unit)
    return on_grid(alone + mechanism.of_scale(unit, scales), mechanism.lattice)
