"""What adapters of all algorithms share: what determines a replay, the replay itself, and its results."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from p2psim.core.errors import AgentError, MeaningError
from p2psim.core.options import per_agent
from p2psim.core.randomness import Streams
from p2psim.network.graph import Graph
from p2psim.network.section import Network
from p2psim.privacy.ledger import Caveats
from p2psim.privacy.plan import Claims, Limit, Plan
from p2psim.privacy.releases import Violations
from p2psim.privacy.shares import UNLIMITED, Releases, budgets_of, of_shared_record
from p2psim.scenario.notices import Compared
from p2psim.simulation.outcome import Series

if TYPE_CHECKING:
    from p2psim.learning.graph.problem import GraphProblem
    from p2psim.learning.star.problem import StarProblem
    from p2psim.scenario.model import Scenario
    from p2psim.simulation.prepared import PreparedData
    from p2psim.simulation.recorder import Marks

#: So many releases are accounted for before a run at most.
_MOST_RELEASES = 1_000_000


@dataclass(frozen=True)
class ReplaySetup:
    """All of a cell that determines events and unit noise, and the plan of releases.

    Attributes
    ----------
    network : Network
    plan : Plan
    commits, time : optional
        Where the run ends.
    dimension : int
        p, the length of a release.
    key : str
        Tells apart setups whose events or unit noise differ, in the same replica.
    """

    network: Network
    plan: Plan
    commits: int | None
    time: float | None
    dimension: int
    key: str


def replay_setup(
    scenario: Scenario, network: Network, plan: Plan, commits: int | None, time: float | None, dimension: int
) -> ReplaySetup:
    """Set up the replays of a cell.

    Raises
    ------
    MeaningError
        If an agent that does nothing without its data may not even make one release.
    """
    limits, rates = plan.limits, network.rates
    if limits is not None and not network.goes_on and not limits.all():
        agent = int(np.argmin(limits))
        raise AgentError(
            "privacy.allocation",
            f"the first release of agent {{agent}} would exceed its budget, ε = {plan.budget[agent]:g}: give it more, "
            "or the release a smaller loss",
            agent,
        )
    parts = [
        scenario.network.model_dump(mode="json"),
        # What a topology makes can depend on the data.
        _digest(network.links),
        # So can who is away.
        None if network.availability.ideal or network.members is None else network.members.digest(),
        network.goes_on,
        network.updates,
        None if rates is None or (rates == 1).all() else rates.tolist(),
        None if limits is None else np.unique(limits).tolist() if np.ptp(limits) == 0 else limits.tolist(),
        commits,
        time,
        dimension,
        # What unit noise is drawn, and by which rule; only its scale may differ within one setup.
        scenario.privacy.mechanism.model_dump_json(),
    ]
    return ReplaySetup(network, plan, commits, time, dimension, json.dumps(parts))


def order_of(norm: str) -> int:
    """Order of a norm, 1 or 2."""
    return 1 if norm == "l1" else 2


def x_bound(bounds: Sequence[float | None] | np.ndarray, features: int, order: int) -> float | None:
    """Public bound on ‖x‖ of order 1 or 2, the intercept not counted; None if there is none.

    ‖x‖₁ is at most p·max|x_j|, and ‖x‖₂ at most √p·max|x_j| and at most ‖x‖₁.

    Parameters
    ----------
    bounds : sequence or ndarray
        Public bounds on ‖x‖₁ and |x_j|, first of all; None or NaN for none.
    features, order : int
    """
    x_l1, x_max = np.array(bounds[:2], dtype=float)
    known = [value for value in (x_l1, features ** (1 / order) * x_max) if np.isfinite(value)]
    return float(min(known)) if known else None


def record_bound(
    bounds: Sequence[float | None] | np.ndarray, problem: StarProblem | GraphProblem, order: int
) -> float:
    """The same with the intercept, which adds one to ‖x‖₁ and to ‖x‖₂².

    Raises
    ------
    MeaningError
        If there is none.
    """
    intercept = problem.loss.intercept
    bound = x_bound(bounds, problem.dimension - intercept, order)
    if bound is None:
        raise MeaningError(
            "privacy.sensitivity", "bounds needs a public bound on x: give data.scale.x, or clip"
        )
    return float((bound**order + intercept) ** (1 / order))


def limit_of(scenario: Scenario, case: PreparedData, agents: int) -> Limit:
    """What each agent's releases may cost; any number without noise.

    Raises
    ------
    MeaningError
        If an agent has no budget.
    """
    privacy = scenario.privacy
    budget = np.full(agents, np.inf)
    if privacy.mechanism.is_private and privacy.epsilon is not None:
        budget = per_agent(privacy.epsilon, case.labels, case.groups, key="privacy.epsilon")
    holders = privacy.overlap.holders
    if holders > agents:
        raise MeaningError(
            "privacy.overlap.holders", f"must be at most the number of owners, {agents}, got {holders}"
        )
    return Limit(
        budgets_of(privacy.overlap, budget),
        (privacy.delta or 0.0) / holders,
        privacy.enforcing,
        promise=budget,
        holders=holders,
    )


def check_availability(network: Network) -> None:
    """Refuse an availability that means nothing for these agents, before anything runs.

    Raises
    ------
    MeaningError
    """
    network.shares()


def _digest(links: Graph) -> str:
    """Short hash of who is linked with whom, and of all numbers that links have: channels may take any of them."""
    made = hashlib.blake2b(digest_size=16)
    for array in (links.indptr, links.indices, links.weights):
        made.update(array.tobytes())
    for name, values in sorted(links.attributes.items()):
        # The length tells where a name ends.
        made.update(f"{len(name)} {name}".encode())
        made.update(values.tobytes())
    return made.hexdigest()


def goes_on(scenario: Scenario) -> bool:
    """Whether agents that may release nothing more go on without their data."""
    touches_data = getattr(scenario.learning.algorithm, "touches_data", True)
    return scenario.privacy.when_spent != "silent" or not touches_data


@dataclass(frozen=True)
class ReplayResult:
    """What a replica gave.

    Attributes
    ----------
    series : tuple of Series
    models : ndarray, shape (records, …)
        The recorded models.
    """

    series: tuple[Series, ...]
    models: np.ndarray


class Replay(Protocol):
    """One replica in progress."""

    @property
    def violations(self) -> Violations:
        """Releases so far at which a record exceeded the claimed bound."""

    def feed(self, events: np.ndarray, noise: np.ndarray, places: np.ndarray, marks: Marks) -> None:
        """Replay a chunk of events, and record at its marks.

        Parameters
        ----------
        events : ndarray of EVENT
        noise : ndarray, shape (releases, p)
            Noise of the releases in the chunk, in their order.
        places : ndarray of int, shape (releases,)
            Places in the chunk of the events that make them.
        marks : Marks
            Where to record.
        """

    def finish(self, marks: Marks) -> ReplayResult:
        """Record what the marks after the last event ask for, and return what was recorded."""


@dataclass(frozen=True)
class Privacy:
    """What one agent may release.

    Attributes
    ----------
    budget : float
        ε in all.
    releases : int or None
        The most; None for any number.
    loss, scale : float
        Claimed loss of the first, and the scale of its noise.
    spent : dict
        ε of the real records by each accountant once all are made; empty where any number may be.
    """

    budget: float
    releases: int | None
    loss: float
    scale: float
    spent: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Assessment:
    """What can be said of a cell before it runs.

    Attributes
    ----------
    facts : dict
        Numbers by the names that a person reads; None where something cannot be said.
    records : tuple of int
        Of each agent.
    events, bytes_of_events : int
        Estimates for one replica.
    bytes_of_data : int
    privacy : tuple of Privacy
        Of each agent.
    warnings : tuple of str
    """

    facts: dict[str, Any]
    records: tuple[int, ...]
    events: int
    bytes_of_events: int
    bytes_of_data: int
    privacy: tuple[Privacy, ...]
    warnings: tuple[str, ...]


class PreparedCell(Protocol):
    """A cell, ready to be simulated."""

    @property
    def setup(self) -> ReplaySetup:
        """What determines events and unit noise."""

    def replay(self, streams: Streams) -> Replay:
        """Begin a replica, which draws what it draws from ``streams``."""

    def verify(
        self,
        streams: Streams,
        events: np.ndarray,
        noise: np.ndarray,
        marks: Marks,
        series: tuple[Series, ...],
        models: np.ndarray | None,
    ) -> Iterator[Compared]:
        """Compare what was recorded of a replica with what the reference makes of its events and noise."""

    def caveats(self, violations: Violations) -> Caveats:
        """Return what limits the guarantee."""

    def agents(self) -> dict[str, np.ndarray]:
        """Columns of the table of agents, from ``index`` on."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a person should know of a run, told with its results."""

    def assess(self) -> Assessment:
        """Say what can be said before the run."""


def privacy_of(plan: Plan) -> tuple[Privacy, ...]:
    """What each agent may release."""
    agents = plan.budget.size
    losses, scales = np.zeros(agents), np.zeros(agents)
    able = np.flatnonzero(plan.releases)
    if able.size:
        first = Releases(able, np.zeros(able.size, np.int64), np.zeros(able.size, np.int64))
        losses[able], scales[able] = plan.claimed(first), plan.scales(first)
    return tuple(
        Privacy(
            float(plan.budget[i]),
            None if plan.releases[i] == UNLIMITED else int(plan.releases[i]),
            float(losses[i]),
            float(scales[i]),
        )
        for i in range(agents)
    )


def with_spent(private: Sequence[Privacy], plan: Plan, accountants: Sequence[str]) -> tuple[Privacy, ...]:
    """With what the real records will have lost by all releases, where these are limited and not too many."""
    ends = np.where(plan.releases == UNLIMITED, 0, plan.releases)
    if not plan.mechanism.is_private or plan.clairvoyant or ends.sum() > _MOST_RELEASES:
        return tuple(private)
    owners = np.repeat(np.arange(ends.size), ends)
    numbers = np.arange(owners.size) - np.repeat(np.cumsum(ends) - ends, ends)
    made = Releases(owners, numbers, np.zeros(owners.size, np.int64))
    claims = Claims(owners, plan.claimed(made) * plan.stretch[owners])
    charges = plan.charges(claims, plan.limit.start_real)
    spent = {name: plan.epsilon(name, charges) for name in accountants}
    return tuple(
        one
        if one.releases is None
        else replace(one, spent={name: float(values[i]) for name, values in spent.items()})
        for i, one in enumerate(private)
    )


def overlap_warning(plan: Plan, labels: Sequence[str]) -> list[str]:
    """Warning for budgets that, where several hold the same record, add up to more than was promised for it."""
    limit = plan.limit
    if not plan.mechanism.is_private or limit.holders == 1:
        return []
    lost = of_shared_record(limit.epsilon, limit.holders)
    broken = np.flatnonzero(lost > plan.budget * (1 + 1e-9))
    if not broken.size:
        return []
    first = int(broken[0])
    return [
        f"a record that {limit.holders} owners hold may lose more than was promised, for {broken.size} of {lost.size} "
        f"owners: for owner {labels[first]} {lost[first]:.4g}, and {plan.budget[first]:g} was promised; "
        "privacy.overlap.form: corrected keeps all promises"
    ]


def delta_warning(delta: float | None, records: np.ndarray) -> list[str]:
    """Warning for a δ that permits to publish a record."""
    smallest = int(records.min())
    if delta is None or delta * smallest < 1:
        return []
    return [
        f"δ = {delta:g} is at least 1/n for an agent of {smallest} records: it permits to publish a record"
    ]
