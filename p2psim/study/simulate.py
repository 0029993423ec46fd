"""One simulation as a pure function: (scenario, replica) in, arrays out."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from p2psim.errors import AgentError
from p2psim.network.events import join
from p2psim.network.lost_releases import LostReleases
from p2psim.privacy.allocations import Releases
from p2psim.privacy.ledger import ledger
from p2psim.privacy.releases import Book, by_agent, joined
from p2psim.study.families import family_of
from p2psim.study.families.early_end import early_end_notice, early_end_warning
from p2psim.study.families.network_watch import NetworkWatch
from p2psim.study.families.spending import Spending
from p2psim.study.families.stage import Assessment, FamilyCell, with_spent
from p2psim.study.outcome import Outcome
from p2psim.study.streams import streams_of
from p2psim.study.tape import Piece, Tape

if TYPE_CHECKING:
    from p2psim.study.scenario import Scenario
    from p2psim.study.workspace import Case, Workspace

# What consecutive simulations of one process share; neither changes any result.
_TAPE = Tape()
_CELLS: OrderedDict[tuple[int, str, int | None], tuple[Scenario, Case, FamilyCell, tuple[str, ...]]] = (
    OrderedDict()
)
_KEPT_CELLS = 64


def simulate(scenario: Scenario, replica: int, workspace: Workspace, check_events: bool = False) -> Outcome:
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

    Returns
    -------
    Outcome

    Raises
    ------
    SimulationError
        If a model or a metric is not finite.
    """
    case, cell, warnings = _cell(scenario, replica, workspace)
    stage, record = cell.stage, scenario.record
    keep_noise = record.noise or record.events
    streams, engine = streams_of(scenario, replica), scenario.network.engine
    # A clairvoyant allocation must know all releases before the first one's noise; for others nothing is played here.
    totals = stage.plan.totals(piece.releases for piece in _TAPE.play(stage, streams, engine, check_events))
    player = cell.player(streams)
    watch, spending = NetworkWatch(record, stage.network), Spending(record, stage.plan, totals)
    chunks: list[np.ndarray] = []
    noises = [np.empty((0, stage.dimension))]
    released: list[Releases] = []
    losses = LostReleases(stage.network, stage.plan.limits)
    book, last = Book.empty(stage.network.links.agents), 0.0
    for piece in _TAPE.play(stage, streams, engine, check_events):
        noise = stage.plan.noise(piece.unit, piece.releases, totals)
        player.feed(piece.events, noise, piece.releases.places)
        watch.feed(piece.events)
        spending.feed(piece.events, piece.releases)
        released.append(piece.releases)
        losses.read(piece.events)
        book = piece.book
        last = float(piece.events[-1]["time"])
        if record.events:
            chunks.append(piece.events)
        if keep_noise:
            noises.append(noise)
    played, releases = player.finish(), joined(released)
    exhausted = _TAPE.ended == "exhausted"
    early = early_end_notice(stage, book.made, book.commits, last) if exhausted else []
    caveats = cell.caveats(played.violations)
    return Outcome(
        ended=_TAPE.ended,
        series=played.series + watch.finish() + spending.finish(),
        ledger=ledger(
            stage.plan,
            losses.releases,
            losses.deliveries,
            releases,
            totals,
            scenario.privacy.accountant,
            caveats,
        ),
        agents=cell.agents(),
        events=join(chunks) if record.events else None,
        noise=np.concatenate(noises)[by_agent(releases)] if keep_noise else None,
        models=played.models if record.models else None,
        problem_id=case.problem_id,
        warnings=(*case.warnings, *warnings, *early),
    )


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
    _, cell, _ = _cell(scenario, replica, workspace)
    stage, streams = cell.stage, streams_of(scenario, replica)
    ended = False

    def pieces() -> Iterator[Piece]:
        nonlocal ended
        for piece in _TAPE.play(stage, streams, scenario.network.engine, False):
            yield piece
            if time.perf_counter() > until:
                return
        ended = True

    # What a clairvoyant allocation knows is here only what will be played.
    known = list(pieces()) if stage.plan.clairvoyant else pieces()
    totals = stage.plan.totals(piece.releases for piece in known)
    player, stretches, begun = cell.player(streams), [], time.perf_counter()
    for piece in known:
        player.feed(piece.events, stage.plan.noise(piece.unit, piece.releases, totals), piece.releases.places)
        stretches.append((piece.events.size, -begun + (begun := time.perf_counter())))
    return stretches, ended


def check(scenario: Scenario, workspace: Workspace) -> Assessment:
    """Facts of one cell, and warnings, before it runs."""
    case = workspace.case(scenario, 0)
    try:
        cell = family_of(scenario).cell(scenario, case, 0)
        facts = cell.assess()
    except AgentError as error:
        raise error.named(case.labels) from None
    return replace(
        facts,
        privacy=with_spent(facts.privacy, cell.stage.plan, scenario.privacy.accountant),
        warnings=(*facts.warnings, *early_end_warning(cell.stage)),
    )


def _cell(scenario: Scenario, replica: int, workspace: Workspace) -> tuple[Case, FamilyCell, tuple[str, ...]]:
    """Case, cell and warnings, kept between replicas; with the scenario, so that its id stays its own."""
    case = workspace.case(scenario, replica)
    own = replica if scenario.data.redrawn or _is_drawn(scenario) else None
    key = id(scenario), case.problem_id, own
    if key not in _CELLS or _CELLS[key][1] is not case:
        cell = family_of(scenario).cell(scenario, case, replica)
        _CELLS[key] = scenario, case, cell, cell.warnings
        if (
            own is not None
        ):  # the cells of a replica follow each other: those of others, and their data, can go
            for other in [other for other in _CELLS if other[2] not in (None, own)]:
                del _CELLS[other]
    _CELLS.move_to_end(key)
    while len(_CELLS) > _KEPT_CELLS:
        _CELLS.popitem(last=False)
    return _CELLS[key][1:]


def _is_drawn(scenario: Scenario) -> bool:
    """Whether every replica draws something of a cell anew: its graph, its first models, or a baseline's noise."""
    learning = scenario.learning
    parts = [scenario.network.topology, getattr(learning.algorithm, "start", None), *learning.baselines]
    return any(getattr(part, "is_random", False) and getattr(part, "seed", None) is None for part in parts)
