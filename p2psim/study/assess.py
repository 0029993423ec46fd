"""What can be said of a cell before it runs: size, step, stability, noise, privacy; and what is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from p2psim.learning.losses import Hinge
from p2psim.network.events import EVENT
from p2psim.privacy.allocations import UNLIMITED
from p2psim.privacy.plan import Plan
from p2psim.theory import noise_floor as floors
from p2psim.theory import star

if TYPE_CHECKING:
    from p2psim.study.scenario import Scenario
    from p2psim.study.setting import Setting

#: Events of one served request, and of one answered query of a poll.
_EVENTS_A_COMMIT = {"request": 6, "poll": 4}


@dataclass(frozen=True)
class Privacy:
    """What one agent may release: ε in all, the most releases, and the first one's ε and Laplace scale."""

    budget: float
    releases: int | None
    epsilon: float
    scale: float


@dataclass(frozen=True)
class Assessment:
    """Facts of one cell.

    Attributes
    ----------
    owners, dimension : int
    records : tuple of int
        n_i.
    events, bytes_of_events : int
        Estimates for one replica.
    bytes_of_data : int
    rho : float
    h : tuple of float or None
        h_i of each owner; None for a loss without curvature, as the next four.
    threshold : float or None
        Mean-square stable below it, for equal owners; for others, 2 is enough.
    verdict : str or None
        ``stable``, ``unstable`` or ``undecided``.
    contraction : float or None
        T·lr·λ_min/(N+1); 4 or more is needed to converge.
    noise_floor : float or None
        Expected ψ from noise alone after convergence, for as far as owners share eigenvectors and neither
        clipping nor the box acts; None also where noise is not the same at every release.
    box_filling : float or None
        Standard deviation of the noise in the learner's widest coordinate, over theta_max.
    minimum : float
        f(θ*).
    bound : float
        Ξ.
    privacy : tuple of Privacy
        Of each owner.
    warnings : tuple of str
    """

    owners: int
    dimension: int
    records: tuple[int, ...]
    events: int
    bytes_of_events: int
    bytes_of_data: int
    rho: float
    h: tuple[float, ...] | None
    threshold: float | None
    verdict: str | None
    contraction: float | None
    noise_floor: float | None
    box_filling: float | None
    minimum: float
    bound: float
    privacy: tuple[Privacy, ...]
    warnings: tuple[str, ...]


def assess(scenario: Scenario, state: Setting) -> Assessment:
    """Draw up the facts of one cell."""
    problem, algorithm = state.case.problem, scenario.learning.algorithm
    horizon = algorithm.horizon
    steps = star.step_sizes(state.rho, horizon, problem.l2, problem.records)
    curved = not isinstance(problem.loss, Hinge)
    h = star.steepness(steps, problem.hessian_peaks()) if curved else None
    private = [_privacy(state.plan, i) for i in range(problem.owners)]
    scales = np.array([one.scale for one in private])
    floor = filling = contraction = None
    if curved:
        hessians = problem.loss.curvature * problem.gram
        contraction = star.contraction(state.rho, horizon, problem.l2, problem.records, hessians)
        if scenario.privacy.allocation.kind != "geometric" and problem.loss.kind == "squared":
            floor, filling = _noise(state, steps, scales, hessians)
    events = horizon * _EVENTS_A_COMMIT[scenario.network.exchange.kind]
    partial = Assessment(
        owners=problem.owners,
        dimension=problem.dimension,
        records=tuple(problem.records.tolist()),
        events=events,
        bytes_of_events=events * EVENT.itemsize,
        bytes_of_data=problem.X.nbytes + problem.y.nbytes + problem.x_l1.nbytes,
        rho=state.rho,
        h=tuple(h.tolist()) if h is not None else None,
        threshold=star.stability_threshold(problem.owners) if curved else None,
        verdict=star.stability(h) if h is not None else None,
        contraction=contraction,
        noise_floor=floor,
        box_filling=filling,
        minimum=problem.minimum,
        bound=state.bound,
        privacy=tuple(private),
        warnings=(),
    )
    return Assessment(**{**vars(partial), "warnings": tuple(_warnings(scenario, state, partial))})


def _privacy(plan: Plan, owner: int) -> Privacy:
    releases = int(plan.releases[owner])
    return Privacy(
        float(plan.budget[owner]),
        None if releases == UNLIMITED else releases,
        float(plan.claimed(owner, 0, 1)[0]),
        float(plan.scales(owner, 0, 1)[0]),
    )


def _noise(
    state: Setting, steps: np.ndarray, scales: np.ndarray, hessians: np.ndarray
) -> tuple[float, float]:
    """Expected ψ from noise, and how far it fills the box: in the eigenvectors of the mean Hessian."""
    problem = state.case.problem
    if not scales.any():
        return 0.0, 0.0
    mean = np.tensordot(problem.shares, hessians, axes=1)
    _, basis = np.linalg.eigh(mean)
    own = np.maximum(np.einsum("pj,ipq,qj->ij", basis, hessians, basis), 0.0)
    moments = floors.stationary_moments((steps[:, None] * own).T, 2 * (steps * scales) ** 2)
    spread = np.sqrt(np.maximum(moments.learner, 0.0))
    floor = 0.5 * float(np.sum((2 * problem.l2 + problem.shares @ own) * moments.learner)) / problem.minimum
    return floor, floors.box_filling(spread, problem.theta_max, basis)


def _warnings(scenario: Scenario, state: Setting, facts: Assessment) -> list[str]:
    found = []
    if facts.h is not None and facts.verdict != "stable":
        highest = max(facts.h)
        known = (
            f"equal owners are stable below {facts.threshold:.3g}"
            if facts.verdict == "unstable"
            else "unequal owners are surely stable only up to 2"
        )
        found.append(
            f"step size outside the stability range: h = {highest:.3g}, {known}; lower learning.algorithm.rho"
        )
    if facts.box_filling is not None and facts.box_filling >= floors.FILLS:
        found.append(
            f"noise fills Θ: its standard deviation is {facts.box_filling:.3g} times theta_max, so ψ saturates; "
            "fit no slopes here"
        )
    delta, smallest = scenario.privacy.delta, min(facts.records)
    if delta is not None and delta >= 1 / smallest:
        found.append(
            f"δ = {delta:g} is at least 1/n for an owner of {smallest} records: it permits to publish a record"
        )
    return found
