"""Adapters of algorithms: each turns a scenario into numbers, and replays events.

An adapter is the class of an algorithm's cells, `p2psim.simulation.algorithms.PreparedCell`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self, overload

import numpy as np

from p2psim.core.events import EVENT
from p2psim.core.options import derived
from p2psim.core.randomness import Streams
from p2psim.data.prepare import Prepared
from p2psim.learning.batches import Sampling, batch_of, sampling
from p2psim.network.graph import Graph
from p2psim.privacy.ledger import Caveats, mechanism_charges
from p2psim.privacy.plan import Claims, Plan
from p2psim.privacy.planning import replanned
from p2psim.privacy.releases import Violations
from p2psim.privacy.shares import UNLIMITED, Releases, Totals, of_shared_record
from p2psim.scenario.fields import alike
from p2psim.scenario.model import Scenario
from p2psim.scenario.notices import Compared
from p2psim.simulation.algorithms.replay import RecordedReplica, Replay, ReplaySetup, limit_of
from p2psim.simulation.prepared import PreparedData
from p2psim.simulation.recorder import Observer, observers

if TYPE_CHECKING:
    from p2psim.simulation.algorithms.learner_replay import Together

#: So many releases are accounted for before a run at most.
_MOST_RELEASES = 1_000_000

#: Numbers by the names that a person reads, an estimate of a replica's events, and warnings.
Facts = tuple[dict[str, object], int, list[str]]


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


@dataclass(frozen=True, eq=False)
class PrivacyOfAgents(Sequence[Privacy]):
    """What each agent may release, as columns: a million agents have no million objects until somebody looks.

    Attributes
    ----------
    budgets, releases, losses, scales : ndarray, shape (N,)
        As of `Privacy`; `UNLIMITED` for any number of releases.
    spent : dict of str to ndarray, shape (N,)
        By accountant.
    """

    budgets: np.ndarray
    releases: np.ndarray
    losses: np.ndarray
    scales: np.ndarray
    spent: dict[str, np.ndarray] = field(default_factory=dict)

    def __len__(self) -> int:
        return self.budgets.size

    @overload
    def __getitem__(self, agent: int) -> Privacy: ...

    @overload
    def __getitem__(self, agent: slice) -> tuple[Privacy, ...]: ...

    def __getitem__(self, agent: int | slice) -> Privacy | tuple[Privacy, ...]:
        if isinstance(agent, slice):
            return tuple(self[number] for number in range(len(self))[agent])
        releases = None if self.releases[agent] == UNLIMITED else int(self.releases[agent])
        budget, loss, scale = (float(each[agent]) for each in (self.budgets, self.losses, self.scales))
        spent = (
            {} if releases is None else {name: float(values[agent]) for name, values in self.spent.items()}
        )
        return Privacy(budget, releases, loss, scale, spent)


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
    privacy : PrivacyOfAgents
        Of each agent.
    warnings : tuple of str
    mean_work : tuple of float, optional
        Mean time that an update of each agent takes to compute, where that takes time.
    of_runs : tuple of str
        Those of the warnings that are given with results too.
    """

    facts: dict[str, Any]
    records: tuple[int, ...]
    events: int
    bytes_of_events: int
    bytes_of_data: int
    privacy: PrivacyOfAgents
    warnings: tuple[str, ...]
    mean_work: tuple[float, ...] | None = None
    of_runs: tuple[str, ...] = ()


@dataclass(frozen=True)
class PreparedCell(ABC):
    """A cell, ready to be simulated; its class turns scenarios into cells, and is the adapter of its algorithms.

    Attributes
    ----------
    scenario : Scenario
        Without a sweep.
    case : PreparedData
    problem : StarProblem or GraphProblem
    setup : ReplaySetup
        What determines events and unit noise.
    bound : float
        Ξ, the bound on the norm of one record's gradient; 0 where nothing is claimed.
    rule : GradientRule
    """

    scenario: Scenario
    case: PreparedData
    problem: Any
    setup: ReplaySetup
    bound: float
    rule: Any

    @staticmethod
    @abstractmethod
    def identify(scenario: Scenario) -> dict[str, Any]:
        """Return what determines the arrays of a case, beside the data section."""

    @staticmethod
    @abstractmethod
    def arrays(scenario: Scenario, prepared: Prepared) -> tuple[dict[str, np.ndarray], tuple[str, ...]]:
        """Make the arrays of a case, and warnings."""

    @staticmethod
    @abstractmethod
    def links_of(scenario: Scenario, case: PreparedData, replica: int) -> Graph:
        """Return who is linked with whom in a replica."""

    @classmethod
    @abstractmethod
    def cell(cls, scenario: Scenario, case: PreparedData, replica: int) -> Self:
        """Turn a scenario (without a sweep) and its case into what can be simulated.

        Raises
        ------
        MeaningError
            If something that depends on the data means nothing: an agent without a budget, ρ from the h of a hinge
            loss, a sensitivity from bounds that nobody gives.
        """

    def like(self, scenario: Scenario) -> Self | None:
        """The cell of a scenario that differs in budgets alone, from what these do not change; None for any other."""
        mine, privacy = self.scenario, scenario.privacy
        if scenario.independent or alike(mine, scenario) | {"privacy"} != vars(mine).keys():
            return None
        if alike(mine.privacy, privacy) | {"epsilon"} != vars(privacy).keys():
            return None
        limit = limit_of(scenario, self.case, self.setup.plan.budget.size)
        plan = replanned(self.setup.plan, limit)
        if plan is None:
            return None
        return derived(
            self, _OF_ANY_BUDGETS, scenario=scenario, setup=derived(self.setup, _SETS_UP, plan=plan)
        )

    @abstractmethod
    def replay(self, streams: Streams) -> Replay:
        """Begin a replica, which draws what it draws from ``streams``."""

    @abstractmethod
    def verify(self, recorded: RecordedReplica) -> Iterator[Compared]:
        """Compare what was recorded of a replica with what the reference makes of its events and noise."""

    @abstractmethod
    def facts(self, privacy: PrivacyOfAgents) -> Facts:
        """Numbers by the names that a person reads, an estimate of a replica's events, and warnings.

        Parameters
        ----------
        privacy : PrivacyOfAgents
            Of each agent.
        """

    @property
    @abstractmethod
    def centralities(self) -> dict[str, np.ndarray]:
        """Columns of the table of agents that depend on the graph."""

    @property
    def has_data_dependent_step(self) -> bool:
        """Whether steps depend on the records."""
        return False

    @property
    def together(self) -> "Together | None":
        """What simulates several replicas at once; None where they are simulated one by one.

        Raises
        ------
        InputError
            If its events cannot be made.
        """
        return None

    def sampling(self, streams: Streams) -> Sampling | None:
        """How batches are drawn in a replica."""
        batch = batch_of(self.scenario.learning.algorithm)
        if batch.code is None:
            return None
        return sampling(batch, self.problem.records, streams.key("batches"))

    def caveats(self, violations: Violations) -> Caveats:
        """Return what limits the guarantee."""
        return Caveats(violations, self._is_void, self.has_data_dependent_step)

    @cached_property
    def _is_void(self) -> bool:
        """Whether the mechanism guarantees nothing, whatever records do."""
        sensitivity, tune = self.scenario.privacy.sensitivity, self.scenario.tune
        # A value that was chosen by the records themselves, without noise, tells of them what nothing bounds.
        chosen = tune is not None and tune.validation == "split"
        return chosen or (sensitivity is not None and not sensitivity.holds)

    @cached_property
    def observers(self) -> tuple[Callable[[Totals | None], Observer], ...]:
        """What begins the series of the network and of the privacy spent that are recorded."""
        return observers(self.scenario.record, self.setup.network, self.setup.plan, self.setup.time)

    @cached_property
    def agents(self) -> dict[str, np.ndarray]:
        """Columns of the table of agents, from ``index`` on."""
        case, links = self.case, self.setup.network.links
        known = case.once("agents", (type(self), links, self.scenario.record), lambda: self._columns)
        return known | {"budget": self.setup.plan.budget}

    @property
    def _columns(self) -> dict[str, np.ndarray]:
        case, records = self.case, self.problem.records
        return {
            "index": np.arange(records.size, dtype=np.int32),
            "label": np.array(case.labels, dtype=object),
            "group": np.array(case.groups or ("",) * records.size, dtype=object),
            "records": records,
            **self.centralities,
        }

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What a person should know of a run, given with its results."""
        return self.assessment.warnings

    @cached_property
    def assessment(self) -> Assessment:
        """What can be said before the run."""
        problem, privacy = self.problem, privacy_of(self.setup.plan)
        facts, events, warnings = self.facts(privacy)
        work = self.setup.network.mean_work()
        mean_work = tuple(work.tolist()) if work is not None else None
        sizes = events, events * EVENT.itemsize, problem.bytes_of_data
        said = *warnings, *self.privacy_warnings()
        records = tuple(problem.records.tolist())
        return Assessment(facts, records, *sizes, privacy, said, mean_work, of_runs=said)

    def privacy_warnings(self) -> Iterator[str]:
        """Warnings of budgets that, for a record with several holders, exceed a promise; and of a δ that is large."""
        plan, delta = self.setup.plan, self.scenario.privacy.delta
        limit = plan.limit
        if plan.mechanism.is_private and limit.holders > 1:
            lost = of_shared_record(limit.epsilon, limit.holders)
            broken = np.flatnonzero(lost > plan.budget * (1 + 1e-9))
            if broken.size:
                first = int(broken[0])
                yield (
                    f"a record that {limit.holders} owners hold may lose more than was promised, for {broken.size} of "
                    f"{lost.size} owners: for owner {self.case.labels[first]} {lost[first]:.4g}, and "
                    f"{plan.budget[first]:g} was promised; privacy.overlap.form: corrected keeps all promises"
                )
        if delta is not None and delta * (smallest := int(self.problem.records.min())) >= 1:
            yield (
                f"δ = {delta:g} is at least 1/n for an agent of {smallest} records: it permits to publish a record"
            )


#: What of a cell, and of its set-up, does not depend on its budgets.
_OF_ANY_BUDGETS = ("_is_void", "rho", "metrics", "_draws", "_replay", "_groups", "_owners")
_SETS_UP = ("_sources", "limits", "lost_releases")


def privacy_of(plan: Plan) -> PrivacyOfAgents:
    """What each agent may release."""
    agents = plan.budget.size
    losses, scales = np.zeros(agents), np.zeros(agents)
    able = np.flatnonzero(plan.releases)
    if able.size:
        first = Releases(able, np.zeros(able.size, np.int64), np.zeros(able.size, np.int64))
        losses[able] = plan.claimed_of_each[able] if plan.even else plan.claimed(first)
        scales[able] = plan.scales(first)
    return PrivacyOfAgents(plan.budget, plan.releases, losses, scales)


def with_spent(private: PrivacyOfAgents, plan: Plan, accountants: Sequence[str]) -> PrivacyOfAgents:
    """With what the real records will have lost by all releases, where these are limited and not too many."""
    owners, ends = plan.all_of_each
    if not plan.mechanism.is_private or plan.clairvoyant or ends.sum() > _MOST_RELEASES:
        return private
    if plan.even:
        claims = Claims(owners, plan.claimed_of_each[owners], ends.astype(float))
    else:
        owners, numbers = np.repeat(owners, ends), np.arange(ends.sum())
        numbers -= np.repeat(np.cumsum(ends) - ends, ends)
        claims = Claims.of(plan, Releases(owners, numbers, np.zeros(owners.size, np.int64)), None)
    charges = mechanism_charges(plan, claims)
    return derived(private, spent={name: plan.epsilon(name, charges) for name in accountants})


#: For the legend under the table of ``p2psim check``.
FACT_MEANINGS = {
    "p": "number of entries of a model",
    "rho": "ρ, the parameter of the step sizes",
    "h": "largest step size times curvature of all owners, r·lr·λ_max; h = 1 converges fastest",
    "stable below": "the h from which on equal owners diverge in mean square",
    "step": "stable, unstable or undecided, from each owner's h",
    "T·lr·λ_min/(N+1)": "how often the flattest direction shrinks by the factor e in the whole run; 4 is enough",
    "noise floor of ψ": "ψ that noise alone keeps up in the long run",
    "ψ of θ = 0": "relative fitness of the zero model, where the run begins",
    "box filling": "standard deviation of a coordinate by noise, over theta_max; from 0.58 on noise fills the box Θ",
    "first step": "step size of the first round",
    "sum of steps": "of all rounds",
    "first step · λ": "first step times the largest curvature; below 2 it is stable",
    "sum of steps · L": "sum of steps times the smallest curvature; how often the flattest direction shrinks by e",
    "f(θ*)": "loss of the best model, without privacy",
    "Ξ": "bound on how far a record moves the gradient, as the noise assumes it",
    "updates": "updates of all agents that are expected",
    "μ": "weight of an agent's own loss beside its neighbours' models",
    "C": "factor by which an update shrinks the expected gap of the objective at least (B, Proposition 1)",
    "lambda2": "second smallest eigenvalue of the Laplacian D − W",
    "spectral_gap": "1 less the second largest eigenvalue of the walk D⁻¹W",
    "degree_min": "fewest neighbours of an agent; degree_mean, degree_max, degree_std alike",
    "weight_min": "smallest weight of a link; weight_mean, weight_max alike",
    "weighted_degree_min": "smallest sum of the weights of an agent's links; weighted_degree_max alike",
    "diameter": "links on the longest of all shortest paths",
    "rounds": "changes after which the graph is the first again",
    "product_gap": "1 − ‖P − 11ᵀ/n‖₂, P the product of the mixing matrices of these rounds",
}


def adapter_of(scenario: Scenario) -> type[PreparedCell]:
    """Adapter of a scenario's algorithm: of the module ``star`` the class ``StarCell``."""
    name = scenario.learning.algorithm.adapter
    adapter: type[PreparedCell] = getattr(
        import_module(f"p2psim.simulation.algorithms.{name}"), f"{name.title()}Cell"
    )
    return adapter
