"""What adapters of all algorithms share: what determines a replay, the replay itself, and its results."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from p2psim.core.errors import AgentError, MeaningError
from p2psim.core.options import per_agent
from p2psim.core.randomness import Streams
from p2psim.data.prepare import Prepared
from p2psim.learning.batches import POISSON, GradientRule, batch_of
from p2psim.learning.losses import Loss
from p2psim.network.graph import Graph
from p2psim.network.section import Clock, Network
from p2psim.network.simulation import EventStream, event_source
from p2psim.network.tally import LostReleases
from p2psim.network.verify import EventChecker
from p2psim.privacy.plan import Limit, Plan
from p2psim.privacy.planning import plan
from p2psim.privacy.releases import Violations
from p2psim.privacy.shares import UNLIMITED, budgets_of
from p2psim.scenario.model import Scenario
from p2psim.simulation.algorithms.agents import columns_of, members_of
from p2psim.simulation.outcome import Series
from p2psim.simulation.prepared import PreparedData
from p2psim.simulation.recorder import Marks

if TYPE_CHECKING:
    from p2psim.learning.graph.problem import GraphProblem
    from p2psim.learning.sgd.problem import SharedProblem
    from p2psim.learning.star.problem import StarProblem


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
    queries : int
        Gradients in a release. The plan, the noise and the ledger count these; events count releases.
    """

    network: Network
    plan: Plan
    commits: int | None
    time: float | None
    dimension: int
    key: str
    queries: int = 1

    @cached_property
    def _sources(self) -> dict[str, Callable[[Streams], EventStream]]:
        return {}

    def events(self, streams: Streams, engine: str) -> EventStream:
        """Events of a replica, by its random streams and what makes them."""
        if engine not in self._sources:
            self._sources[engine] = event_source(self.network, self.commits, self.time, self.limits, engine)
        return self._sources[engine](streams)

    @cached_property
    def limits(self) -> np.ndarray | None:
        """The most releases that each agent may make, shape (n,); None where nobody is limited."""
        limits = self.plan.limits
        if limits is None or self.queries == 1:
            return limits
        return np.where(limits == UNLIMITED, UNLIMITED, limits // self.queries)

    @cached_property
    def lost_releases(self) -> LostReleases:
        """Begins to count the releases of a replica that are lost."""
        return LostReleases(self.network, self.limits, self.time)

    def checker(self) -> EventChecker:
        """Checks the invariants of the events, chunk by chunk."""
        network, exchange = self.network, self.network.exchange
        end = np.inf if self.time is None else self.time
        rules = network.goes_on, exchange.by_edge, network.channel.resending, end, exchange.polled
        return EventChecker(network.links, self.limits, *rules, network.ordering, network.conduct)


def replay_setup(
    scenario: Scenario,
    case: PreparedData,
    network: Network,
    plan: Plan,
    commits: int | None,
    time: float | None,
    dimension: int,
    queries: int = 1,
) -> ReplaySetup:
    """Set up the replays of a cell.

    Raises
    ------
    MeaningError
        If an agent that does nothing without its data may not even make one release.
    """
    setup = ReplaySetup(network, plan, commits, time, dimension, "", queries)
    limits = setup.limits
    if limits is not None and not network.goes_on and not limits.all():
        agent = int(np.argmin(limits))
        most = int(np.asarray(plan.limits)[agent])
        message = (
            f"the first release of agent {{agent}} would exceed its budget, ε = {plan.budget[agent]:g}: give it more, "
            "or the release a smaller loss"
        )
        if most:
            message = (
                f"allows agent {{agent}} {most} gradients, and a release takes {queries}: allow more, or take fewer "
                "learning.algorithm.local_steps"
            )
        raise AgentError("privacy.allocation", message, agent)
    said = case.once("network in words", (scenario.network, network), lambda: _in_words(scenario, network))
    counts = (
        None if limits is None else np.unique(limits).tolist() if np.ptp(limits) == 0 else limits.tolist()
    )
    # What unit noise is drawn, and by which rule; only its scale may differ within one setup.
    drawn = scenario.privacy.mechanism.model_dump_json()
    parts = [counts, commits, time, dimension, drawn, *([] if queries == 1 else [queries])]
    return replace(setup, key=said + json.dumps(parts))


def _in_words(scenario: Scenario, network: Network) -> str:
    """What tells networks apart."""
    rates, work, members = network.rates, network.mean_work(), network.members
    # What a topology makes can depend on the data; so can who is away, and how long agents compute.
    away = None if network.availability.ideal or members is None else members.digest()
    clocks = None if rates is None or (rates == 1).all() else rates.tolist()
    parts = [scenario.network.model_dump(mode="json"), _digest(network.links), away, network.goes_on]
    parts += [network.updates, network.answerer_releases, clocks, None if work is None else work.tolist()]
    return json.dumps(parts)


def order_of(norm: str) -> int:
    """Order of a norm, 1 or 2."""
    return 1 if norm == "l1" else 2


def x_bound(bounds: Sequence[float | None] | np.ndarray, features: int, order: int) -> float | None:
    """Public bound on ‖x‖ of order 1 or 2, the intercept not counted; None if there is none.

    ‖x‖₁ is at most p·max|x_j|, and ‖x‖₂ at most √p·max|x_j| and at most ‖x‖₁. The first two of ``bounds`` are those on
    ‖x‖₁ and |x_j|; None or NaN for none.
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
        message = "bounds needs a public bound on x: give data.scale.x, or clip"
        raise MeaningError("privacy.sensitivity", message)
    return float((bound**order + intercept) ** (1 / order))


def claim_of(
    scenario: Scenario,
    case: PreparedData,
    problem: StarProblem | GraphProblem | SharedProblem,
    public: Callable[[int], float],
) -> tuple[float, GradientRule]:
    """Ξ, in the mechanism's norm, and how an agent computes its gradient.

    Parameters
    ----------
    scenario, case, problem
        Of the cell.
    public : callable
        Bound on the norm, of order 1 or 2, of any record's gradient, from what is public.

    Raises
    ------
    MeaningError
        If what is asked for gives no bound.
    """
    sensitivity, mechanism = scenario.privacy.sensitivity, scenario.privacy.mechanism
    order = order_of(mechanism.norm)
    rule = GradientRule(order=order, grid=mechanism.lattice)
    if sensitivity is not None and sensitivity.clipping is not None:
        # Clipping is part of the algorithm, with or without noise. An L1 bound is one on the L2 norm as well.
        norm, clip = sensitivity.clipping
        rule = replace(rule, clip=clip, order=order_of(norm))
    if sensitivity is None or not mechanism.is_private:
        return 0.0, rule
    largest = partial(case.once, "largest gradient", (problem, order))
    empirical = partial(largest, lambda: float(problem.largest_gradients(order).max()))
    bound = sensitivity.claim(lambda: public(order), empirical)
    return bound, replace(rule, bound=bound) if sensitivity.is_checked else rule


def refuse_labels(loss: Loss, prepared: Prepared) -> None:
    """Raise a MeaningError if a loss needs labels of two classes, and they are others, or there are more classes."""
    if prepared.class_count > 2:
        raise MeaningError(
            "learning.loss",
            f"{loss.kind} is for numbers or two classes; these labels are {prepared.class_count} classes: choose two "
            f"of them, such as data.classes: [{prepared.class_names[0]}, {prepared.class_names[1]}]",
        )
    if loss.needs_classes and not prepared.class_count:
        raise MeaningError("learning.loss", f"{loss.kind} needs labels that are +1 or −1; these are not")


def limit_of(scenario: Scenario, case: PreparedData, agents: int) -> Limit:
    """What each agent's releases may cost; any number without noise.

    Raises
    ------
    MeaningError
        If an agent has no budget.
    """
    privacy = scenario.privacy
    if privacy.mechanism.is_private and privacy.epsilon is not None:
        columns = columns_of(case.arrays)
        budget = per_agent(privacy.epsilon, case.labels, case.groups, key="privacy.epsilon", columns=columns)
    else:
        budget = np.full(agents, np.inf)
    holders = privacy.overlap.holders
    if holders > agents:
        message = f"must be at most the number of owners, {agents}, got {holders}"
        raise MeaningError("privacy.overlap.holders", message)
    epsilon, delta = budgets_of(privacy.overlap, budget), (privacy.delta or 0.0) / holders
    return Limit(epsilon, delta, privacy.enforcing, promise=budget, holders=holders)


def network_of(scenario: Scenario, case: PreparedData, links: Graph, dimension: int) -> Network:
    """The network of a replica, from its case, who is linked with whom, and p of its models.

    Raises
    ------
    MeaningError
        If the channel, or an availability, means nothing for these agents.
    """
    depends = scenario.network, scenario.learning, links, dimension, goes_on(scenario)
    return case.once("network", depends, lambda: _network_of(scenario, case, links, dimension))


def _network_of(scenario: Scenario, case: PreparedData, links: Graph, dimension: int) -> Network:
    section, algorithm, members = scenario.network, scenario.learning.algorithm, members_of(case.arrays)
    network = Network(
        links,
        section.exchange,
        section.channel,
        section.availability,
        (section.clock or Clock()).rates(members),
        goes_on=goes_on(scenario),
        updates=algorithm.updates_under(section.exchange),
        answerer_releases=algorithm.answerer_releases,
        members=members,
        vectors=algorithm.vectors,
        dimension=dimension,
        compute=section.compute,
        work=algorithm.work(members.numbers["records"]) if section.compute is not None else None,
    )
    network.shares()
    network.check_compute()
    return network


def plan_releases(
    scenario: Scenario,
    limit: Limit,
    bound: float,
    records: np.ndarray,
    horizon: int,
    shares: np.ndarray,
    **rest: Any,
) -> Plan:
    """Plan the releases of all agents, which hold so many records; for the rest see `p2psim.privacy.planning.plan`."""
    privacy, batch = scenario.privacy, batch_of(scenario.learning.algorithm)
    rest |= {"scale_records": privacy.scale_records, "rates": batch.rates(records)}
    rest["poisson"] = batch.code == POISSON
    divisors = batch.divisors(records)
    return plan(privacy.mechanism, privacy.allocation, limit, bound, divisors, horizon, shares, **rest)


def _digest(links: Graph) -> str:
    """Short hash of who is linked with whom, and of all numbers that links have: channels may take any of them."""
    made = hashlib.blake2b(digest_size=16)
    for array in (links.indptr, links.indices, links.weights):
        made.update(array.tobytes())
    for name, values in sorted(links.attributes.items()):
        # The length tells where a name ends.
        made.update(f"{len(name)} {name}".encode())
        made.update(values.tobytes())
    if links.changes is not None:
        made.update(links.changes.digest.encode())
    return made.hexdigest()


def goes_on(scenario: Scenario) -> bool:
    """Whether agents that may release nothing more go on without their data."""
    return scenario.privacy.when_spent != "silent" or not scenario.learning.algorithm.touches_data


class RecordedReplica(NamedTuple):
    """What was recorded of a replica, to be verified.

    Attributes
    ----------
    streams : Streams
        From which it drew what it drew.
    events : ndarray of EVENT
    noise : ndarray, shape (releases, p)
        Ordered by (agent, release).
    marks : Marks
        Where in the events something was recorded.
    series : tuple of Series
        Of the models.
    models : ndarray, shape (records, …), optional
    """

    streams: Streams
    events: np.ndarray
    noise: np.ndarray
    marks: Marks
    series: tuple[Series, ...]
    models: np.ndarray | None


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


class Replay(ABC):
    """One replica in progress.

    Parameters
    ----------
    replay : LearnerReplay or ModelReplay
        What replays its events.
    """

    def __init__(self, replay: Any):
        self._replay = replay

    @property
    def violations(self) -> Violations:
        """Releases so far at which a record exceeded the claimed bound."""
        return self._replay.violations

    @abstractmethod
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

    @abstractmethod
    def finish(self, marks: Marks) -> ReplayResult:
        """Record what the marks after the last event ask for, and return what was recorded."""
