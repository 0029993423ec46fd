"""One simulation as a pure function: (scenario, replica) in, arrays out."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

import numpy as np

from p2psim.errors import SimulationError
from p2psim.learning.async_star import RhoFromH
from p2psim.learning.metrics import METRICS, Series
from p2psim.learning.star_replay import StarReplay
from p2psim.network.events import join
from p2psim.privacy.ledger import ledger
from p2psim.privacy.releases import ReleaseCounts, first_rows, noise_scales
from p2psim.randomness import Streams
from p2psim.study.agents import agents_table
from p2psim.study.assess import Assessment, assess
from p2psim.study.outcome import Outcome
from p2psim.study.record import EveryTime
from p2psim.study.setting import Setting, setting
from p2psim.study.tape import Tape

if TYPE_CHECKING:
    from p2psim.study.scenario import Scenario
    from p2psim.study.workspace import Workspace

# What consecutive simulations of one process share; neither changes any result.
_TAPE = Tape()
_SETTINGS: OrderedDict[tuple[int, str], tuple[Scenario, Setting, tuple[str, ...]]] = OrderedDict()
_KEPT_SETTINGS = 64


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
        Where prepared problems lie.
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
    state, warnings = _setting(scenario, replica, workspace)
    problem, record = state.case.problem, scenario.record
    keep_noise, keep_models = record.noise or record.events, record.models
    by_time = isinstance(record.every, EveryTime)
    replay = StarReplay(
        problem,
        state.method,
        state.rule,
        every_step=0 if isinstance(record.every, EveryTime) else record.every,
        every_time=record.every.time if by_time else np.inf,  # type: ignore[union-attr]
    )
    chunks: list[np.ndarray] = []
    noises: list[np.ndarray] = []
    counts = [ReleaseCounts.none(problem.owners)]
    for piece in _TAPE.play(scenario, state, streams_of(scenario, replica), check_events):
        noise = piece.unit * noise_scales(state.plan, piece.before, piece.after)[:, None]
        replay.feed(piece.events, noise, first_rows(piece.before, piece.after))
        counts.append(piece.after)
        if record.events:
            chunks.append(piece.events)
        if keep_noise:
            noises.append(noise)
    recorded = replay.result()
    series = tuple(one for name in record.metrics for one in METRICS[name].measure(problem, recorded))
    _check_finite(series)
    privacy = scenario.privacy
    book = ledger(
        state.plan,
        counts[-1],
        privacy.accountant,
        violations=replay.violations,
        empirical=privacy.sensitivity is not None and privacy.sensitivity.kind == "empirical",
        data_dependent_step=isinstance(scenario.learning.algorithm.rho, RhoFromH),
    )
    return Outcome(
        ended=_TAPE.ended,
        series=series,
        ledger=book,
        agents=agents_table(state),
        events=join(chunks) if record.events else None,
        noise=_by_agent(noises, counts, problem.dimension) if keep_noise else None,
        models=recorded.theta if keep_models else None,
        problem_id=state.case.problem_id,
        warnings=state.case.warnings + warnings,
    )


def streams_of(scenario: Scenario, replica: int) -> Streams:
    """Random streams of a replica; those in ``independent`` are told apart by the cell's content."""
    if not scenario.independent:
        return Streams(scenario.seed, replica)
    from p2psim.study.cells import content

    variant = content(scenario)
    return Streams(scenario.seed, replica, dict.fromkeys(scenario.independent, variant))


def check(scenario: Scenario, workspace: Workspace) -> Assessment:
    """Facts of one cell, and warnings, before it runs."""
    return assess(scenario, setting(scenario, workspace.case(scenario, 0)))


def _setting(scenario: Scenario, replica: int, workspace: Workspace) -> tuple[Setting, tuple[str, ...]]:
    """Setting of a cell and its warnings, kept between replicas; with the scenario, so that its id stays its own."""
    case = workspace.case(scenario, replica)
    key = id(scenario), case.problem_id
    if key not in _SETTINGS or _SETTINGS[key][1].case is not case:
        state = setting(scenario, case)
        _SETTINGS[key] = scenario, state, assess(scenario, state).warnings
    _SETTINGS.move_to_end(key)
    while len(_SETTINGS) > _KEPT_SETTINGS:
        _SETTINGS.popitem(last=False)
    return _SETTINGS[key][1:]


def _check_finite(series: tuple[Series, ...]) -> None:
    for one in series:
        if not np.isfinite(one.value).all():
            at = one.step[~np.isfinite(one.value)][0]
            raise SimulationError(f"{one.metric} is not finite from step {at} on")


def _by_agent(noises: list[np.ndarray], counts: list[ReleaseCounts], dimension: int) -> np.ndarray:
    """Noise of all chunks, from the order (chunk, agent, release) to (agent, release)."""
    total = counts[-1].made
    out = np.empty((int(total.sum()), dimension))
    first = np.cumsum(total) - total
    for noise, before, after in zip(noises, counts, counts[1:], strict=False):
        made = after.made - before.made
        start = np.cumsum(made) - made
        for agent in np.flatnonzero(made):
            to = first[agent] + before.made[agent]
            out[to : to + made[agent]] = noise[start[agent] : start[agent] + made[agent]]
    return out
