"""One simulation as a pure function from a scenario and a replica to arrays, and the checks of a cell before it runs.

The module also warns of runs that end early because every agent has made all releases that its budget allows.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba.core.errors import NumbaError

from p2psim.core.errors import AgentError, MeaningError, first_line
from p2psim.core.events import EVENT, event_table
from p2psim.core.options import derived
from p2psim.privacy.ledger import ledger, ledgers
from p2psim.privacy.releases import by_agent, joined
from p2psim.privacy.shares import Releases
from p2psim.scenario.model import Scenario
from p2psim.scenario.record import EveryTime, between_records
from p2psim.simulation.algorithms import Assessment, adapter_of, with_spent
from p2psim.simulation.algorithms.replay import ReplaySetup
from p2psim.simulation.outcome import Outcome, link_table, streams_of
from p2psim.simulation.recorder import Marks, Recorder
from p2psim.simulation.session import EventChunk, PlayedReplica, Session, draws_anew
from p2psim.simulation.workspace import Workspace

#: What simulations of this process share.
SESSION = Session()

_NO_EVENTS, _NO_RELEASES = np.empty(0, EVENT), joined([])


def simulate(
    scenario: Scenario,
    replica: int,
    workspace: Workspace,
    check_events: bool = False,
    share: bool = True,
    known: tuple[str, ...] | None = None,
) -> Outcome:
    """Simulate one replica of one cell.

    The result depends on the scenario and the replica alone. Consecutive calls with the same network and replica
    reuse events and noise, so the cells of a replica are best run one after the other.

    Parameters
    ----------
    scenario : Scenario
        Without a sweep.
    replica : int
    workspace : Workspace
        Where prepared data lie.
    check_events : bool
        Check the invariants of the event stream.
    share : bool
        Keep events and noise for other cells of the replica.
    known : tuple of str, optional
        Warnings of the cell's first replica, where it was assessed: what they follow from need not be found out again.

    Returns
    -------
    Outcome

    Raises
    ------
    SimulationError
        If a model or a metric is not finite.
    """
    case, cell = SESSION.cell(scenario, replica, workspace)
    setup, record, plan = cell.setup, scenario.record, cell.setup.plan
    keep_noise = record.noise or record.events
    streams = streams_of(scenario, replica)
    # A clairvoyant allocation must know all releases before the first one's noise; for others nothing is played here.
    keep = share or plan.clairvoyant
    played = SESSION.events.replica(setup, streams, scenario.network.engine, check_events, keep)
    totals = plan.totals(chunk.releases for chunk in played.read())
    replay = cell.replay(streams)
    reader = _EventReader(setup, record.every, played)
    watching = [begin(totals) for begin in cell.observers]
    events, noises = list[Any](), list[np.ndarray]()
    for chunk in played.read():
        noise = plan.noise(chunk.unit, chunk.releases, totals)
        marks = reader.read(chunk)
        replay.feed(chunk.events, noise, chunk.releases.places, marks)
        for observer in watching:
            observer.feed(chunk.events, chunk.releases, marks)
        if record.events:
            # As columns at once: a processor's cache still holds the chunk, which need not be kept.
            events.append(event_table(chunk.events, brief=True))
        if keep_noise:
            noises.append(noise)
    facts = reader.finish()
    result = replay.finish(facts.marks[-1])
    series = result.series
    for observer in watching:
        observer.feed(_NO_EVENTS, _NO_RELEASES, facts.marks[-1])
        series += observer.finish()
    caveats = cell.caveats(replay.violations)
    warnings = cell.warnings if known is None or (replica and draws_anew(scenario)) else known
    return Outcome(
        ended=played.ended,
        series=series,
        ledger=ledger(plan, *facts.lost, facts.releases, totals, scenario.privacy.accountant, caveats),
        agents=cell.agents,
        columns=tuple(events or [event_table(_NO_EVENTS)]) if record.events else (),
        links=link_table(setup.network.links, facts.last, setup.time) if record.events else None,
        noise=_in_order(noises, setup.dimension, facts.releases) if keep_noise else None,
        models=result.models if record.models else None,
        problem_id=case.problem_id,
        warnings=(*case.warnings, *warnings, *facts.early),
    )


def _in_order(noises: list[np.ndarray], dimension: int, releases: Releases) -> np.ndarray:
    """Noise of all chunks by agent; that of a single chunk, as of short runs, is copied once."""
    whole = noises[0] if len(noises) == 1 else np.concatenate([np.empty((0, dimension)), *noises])
    return whole[by_agent(releases)]


def simulated_at_once(scenario: Scenario, workspace: Workspace) -> int:
    """How many replicas of a cell `simulate_together` takes at once; 1 where `simulate` takes one after the other."""
    if draws_anew(scenario):
        return 1
    together = SESSION.cell(scenario, 0, workspace)[1].together
    return 1 if together is None else together.most


def simulate_together(
    scenario: Scenario, replicas: Sequence[int], workspace: Workspace, known: tuple[str, ...] | None = None
) -> list[Outcome]:
    """Simulate several replicas of one cell at once, in less time than one after the other: the same bytes.

    Consecutive calls with the same network and replicas share events and noise.

    Parameters
    ----------
    scenario : Scenario
        Of which more than one are `simulated_at_once`.
    replicas : sequence of int
        So many at most.
    workspace : Workspace

    Raises
    ------
    P2PSimError
        If one of them cannot be simulated: which, `simulate` shows one by one.
    """
    case, cell = SESSION.cell(scenario, replicas[0], workspace)
    setup, record, together = cell.setup, scenario.record, cell.together
    assert together is not None
    streams = [streams_of(scenario, replica) for replica in replicas]
    replayed = together.play(SESSION.events.bundle(setup, streams, record, together))
    accounts, accountants = [one.account for one in replayed], scenario.privacy.accountant
    # An agent's sum of losses is the same bytes whatever stands beside it; of other accounts nobody says so.
    groups = [[account] for account in accounts] if setup.plan.limit.delta else [accounts]
    books = [book for group in groups for book in ledgers(setup.plan, group, accountants)]
    warnings = *case.warnings, *(cell.warnings if known is None else known)
    outcomes = []
    for one, book in zip(replayed, books, strict=True):
        early = []
        if one.ended == "exhausted":
            early = early_end_notice(setup, one.made, one.commits, one.last)
        outcomes.append(
            Outcome(
                ended=one.ended,
                series=one.series,
                ledger=book,
                agents=cell.agents,
                columns=one.columns,
                links=link_table(setup.network.links, one.last) if record.events else None,
                noise=one.noise[by_agent(one.account.releases)] if record.events or record.noise else None,
                models=one.models if record.models else None,
                problem_id=case.problem_id,
                warnings=(*warnings, *early),
            )
        )
    return outcomes


@dataclass(frozen=True)
class EventFacts:
    """What the events of a replica say by themselves, whatever is learned from them.

    Attributes
    ----------
    marks : tuple of Marks
        Where something is recorded in each chunk, and after the last event.
    releases : Releases
        All of the run.
    lost : tuple of ndarray of int, shape (n,) each
        Releases of each agent that reached nobody, and failed deliveries of its releases.
    last : float
        Time of the last event.
    early : list of str
        Warning of a run that ended since nobody could act any more.
    """

    marks: tuple[Marks, ...]
    releases: Releases
    lost: tuple[np.ndarray, np.ndarray]
    last: float
    early: list[str]


class _EventReader:
    """Reads facts of events chunk by chunk, or takes those that a cell before this one has read."""

    def __init__(self, setup: ReplaySetup, every: int | EveryTime, played: PlayedReplica):
        self._key, self._played = between_records(every), played
        self._known: EventFacts | None = played.facts.get(self._key)
        if self._known is not None:
            self._ahead = iter(self._known.marks)
            return
        self._setup, self._recorder, self._losses = setup, Recorder(every), setup.lost_releases.begin()
        self._marks: list[Marks] = []
        self._released: list[Releases] = []
        self._last = 0.0

    def read(self, chunk: EventChunk) -> Marks:
        if self._known is not None:
            return next(self._ahead)
        marks = self._recorder.read(chunk.events, chunk.kinds)
        self._marks.append(marks)
        self._released.append(chunk.releases)
        self._losses.read(chunk.events, chunk.kinds)
        self._last = float(chunk.events["time"][-1])
        return marks

    def finish(self) -> EventFacts:
        if self._known is not None:
            return self._known
        setup, played, early = self._setup, self._played, list[str]()
        if played.ended == "exhausted":
            early = early_end_notice(setup, played.counter.made, played.counter.commits, self._last)
        end = self._recorder.finish(None if early else setup.time)
        lost = self._losses.releases * setup.queries, self._losses.deliveries
        facts = EventFacts((*self._marks, end), joined(self._released), lost, self._last, early)
        played.facts[self._key] = facts
        return facts


#: Events, and seconds that they took.
Stretch = tuple[int, float]


def sample(
    scenario: Scenario, replica: int, workspace: Workspace, until: float
) -> tuple[list[Stretch], bool]:
    """Play a replica until a moment, to see how fast it goes.

    Parameters
    ----------
    scenario, replica, workspace
        As for `simulate`.
    until : float
        Moment of ``time.perf_counter``. The chunk of events in which it comes is played to its end.

    Returns
    -------
    stretches : list of (int, float)
        Events of each chunk, and seconds until it was played.
    ended : bool
        Whether that was all.
    """
    _, cell = SESSION.cell(scenario, replica, workspace)
    setup, streams = cell.setup, streams_of(scenario, replica)
    ended = False

    def chunks() -> Iterator[EventChunk]:
        nonlocal ended
        late = False
        for chunk in SESSION.events.replica(setup, streams, scenario.network.engine).read():
            if late:
                return
            yield chunk
            late = time.perf_counter() > until
        ended = True

    # What a clairvoyant allocation knows is here only what will be played.
    known = list(chunks()) if setup.plan.clairvoyant else chunks()
    totals = setup.plan.totals(chunk.releases for chunk in known)
    replay, stretches, begun = cell.replay(streams), [], time.perf_counter()
    recorder = Recorder(scenario.record.every)
    for chunk in known:
        noise = setup.plan.noise(chunk.unit, chunk.releases, totals)
        replay.feed(chunk.events, noise, chunk.releases.places, recorder.read(chunk.events))
        stretches.append((chunk.events.size, -begun + (begun := time.perf_counter())))
    return stretches, ended


def check(scenario: Scenario, workspace: Workspace, keep: bool = False, account: bool = True) -> Assessment:
    """Facts of one cell, and warnings, before it runs; with `keep`, it is kept for simulations of this process.

    Without `account` nobody wants to know what all releases will have cost: sums of losses, which cannot fail, are left
    out.
    """
    for key in ("loss", "algorithm"):
        part: Any = getattr(scenario.learning, key)
        try:
            getattr(part, "for_kernel", lambda: None)()
        except NumbaError as error:
            message = f"{part.kind} cannot be compiled: {first_line(error)}"
            raise MeaningError(f"learning.{key}", message) from None
    try:
        if keep:
            _, cell = SESSION.cell(scenario, 0, workspace)
        else:
            cell = adapter_of(scenario).cell(scenario, workspace.case(scenario, 0), 0)
        facts = cell.assessment
    except AgentError as error:
        raise error.named(workspace.case(scenario, 0).labels) from None
    privacy, plan = facts.privacy, cell.setup.plan
    if account or plan.limit.delta:
        privacy = with_spent(privacy, plan, scenario.privacy.accountant)
    return derived(facts, privacy=privacy, warnings=(*facts.warnings, *early_end_warning(cell.setup)))


#: Moments at which it is asked whether all are spent.
_GRID = 4_001


def early_end_warning(setup: ReplaySetup) -> list[str]:
    """Warning for a run that is more likely than not to end early, with its expected end and the cure.

    Every agent that is never away makes releases as its clock ticks: the k-th after a time Gamma(k).
    """
    network, limits = setup.network, setup.limits
    if limits is None or network.goes_on:
        return []
    if setup.commits is not None:
        # As floats: of agents without a limit it is the largest integer.
        most = float(limits.sum(dtype=float))
        if network.exchange.in_rounds and network.exchange.needs_learner:
            # Drawn owners are asked in their share of the rounds, on average.
            most = float(limits.max()) * limits.size / network.exchange.asked(limits.size)
        return [] if most >= setup.commits else [_message(f"commit {most:,.0f} of {setup.commits:,}", setup)]
    if setup.time is None or network.compute is not None:
        # Who computes misses ticks, so that releases come later than with the clocks.
        return []
    if network.exchange.round_length is not None:
        # Who is there releases once a round, until the last one.
        end = float(limits.max()) * network.exchange.round_length
        return [] if end >= setup.time else [_message(f"time {end:.3g} of {setup.time:g}", setup)]
    shares = np.nan_to_num(network.shares(), nan=1.0) if network.members is not None else 1.0
    each = shares * network.exchange.releases_per_wake(network.answerer_releases)
    expected, chance = _expected_end(limits, network.known_rates * each, setup.time)
    return [] if chance < 0.5 else [_message(f"time {expected:.3g} of {setup.time:g}", setup)]


def early_end_notice(setup: ReplaySetup, made: np.ndarray, commits: int, time: float) -> list[str]:
    """Warning for a run that has ended since nobody can act any more, if budgets are why or commits are missing."""
    limits = setup.limits
    if limits is None or setup.network.goes_on or not (made >= limits).any():
        if setup.commits is None:
            return []
        where = f"commit {commits:,} of {setup.commits:,}"
        return [
            f"the run ended at {where}: nobody could act any more, as where all agents have left for good"
        ]
    if setup.commits is not None:
        return [_message(f"commit {commits:,} of {setup.commits:,}", setup, "ended")]
    return [_message(f"time {time:.3g} of {setup.time:g}", setup, "ended")]


def _expected_end(limits: np.ndarray, rates: np.ndarray, time: float) -> tuple[float, float]:
    """Expected end of a run that lasts until a time at most, and the probability that it ends before."""
    from scipy.special import gammainc

    grid = np.linspace(0.0, time, _GRID)
    spent = np.ones(_GRID)
    # Agents that have the same limit and rate are alike.
    pairs, counts = np.unique(np.stack([limits.astype(float), rates]), axis=1, return_counts=True)
    for (limit, rate), agents in zip(pairs.T.tolist(), counts.tolist(), strict=True):
        spent *= gammainc(max(limit, 1e-9), rate * grid) ** agents
    return float(np.trapezoid(1 - spent, grid)), float(spent[-1])


def _message(where: str, setup: ReplaySetup, verb: str = "are expected to end") -> str:
    runs = "the run" if verb == "ended" else "runs"
    who = "owner" if setup.network.links.star else "agent"
    cure = "; let agents go on without their data (privacy.when_spent: coast or anchored)"
    later = "" if setup.network.links.star else cure
    return (
        f"{runs} {verb} at {where}: by then every {who} that is there has made all releases that its budget allows; "
        f"allow more releases (privacy.allocation), or end sooner (learning.algorithm){later}"
    )
