"""The first models of a cell on a graph, with their privacy loss, and the models of its baselines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from p2psim.core.errors import MeaningError, first_line
from p2psim.core.files import checked
from p2psim.core.text_tables import matrix_of
from p2psim.learning.graph.optimum import (
    from_private_records,
    global_model,
    local_models,
    minimise_alone,
    propagate,
)
from p2psim.learning.graph.problem import GraphProblem
from p2psim.learning.graph.replay import GraphRule
from p2psim.learning.reference import on_grid
from p2psim.learning.section import GlobalModel, LocalModels, LocalPrivacy
from p2psim.learning.steps import Given, Local, PrivateWarmStart, Start
from p2psim.privacy.mechanisms import minimiser_sensitivity, noise_scales
from p2psim.privacy.section import allowance
from p2psim.simulation.outcome import streams_of

if TYPE_CHECKING:
    from p2psim.learning.losses import Loss
    from p2psim.scenario.model import Scenario
    from p2psim.simulation.algorithms.graph_setting import GraphNumbers
    from p2psim.simulation.prepared import PreparedData


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


def check_baselines(scenario: Scenario, case: PreparedData) -> None:
    """Raise a MeaningError if ``local-dp`` has no budget or no public bound to go by."""
    for i, baseline in enumerate(scenario.learning.baselines):
        if not isinstance(baseline, LocalPrivacy):
            continue
        key = f"learning.baselines.{i}"
        if not scenario.privacy.mechanism.is_private:
            raise MeaningError(key, "local-dp needs a privacy mechanism and a budget")
        if not np.isfinite(_public_bounds(scenario.learning.loss, case)).all():
            raise MeaningError(key, "local-dp needs public bounds: give data.scale")


def baseline_models(cell: GraphNumbers) -> dict[str, np.ndarray]:
    """Models by the baseline's name, shape (n, p) each."""
    made: dict[str, np.ndarray] = {}
    for baseline in cell.scenario.learning.baselines:
        if isinstance(baseline, LocalModels):
            made[baseline.kind] = local_models(cell.problem, baseline.reduction)
        elif isinstance(baseline, GlobalModel):
            made[baseline.kind] = global_model(cell.problem)
        else:
            made[baseline.kind] = _locally_private(cell)
    return made


def _locally_private(cell: GraphNumbers) -> np.ndarray:
    budget = cell.setup.plan.budget
    x_l1, y_max = _public_bounds(cell.problem.loss, cell.case)
    random = streams_of(cell.scenario, cell.replica).generator("baselines")
    return from_private_records(cell.problem, budget, x_l1, y_max, random)


def _public_bounds(loss: Loss, case: PreparedData) -> tuple[float, float]:
    """Bounds on ‖x‖₁, the intercept not counted, and on |y|; NaN where there is none."""
    bounds, features = case.arrays["bounds"], case.arrays["X"].shape[1] - loss.intercept
    return (
        float(np.fmin(bounds[0], features * bounds[1])),
        1.0 if loss.needs_classes else float(bounds[2]),
    )
