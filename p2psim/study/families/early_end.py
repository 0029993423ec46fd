"""Runs that end before their time, because every agent has made all releases that its budget allows."""

from __future__ import annotations

import numpy as np

from p2psim.network.exchanges import Gossip, Round
from p2psim.study.families.stage import Stage

#: Moments at which it is asked whether all are spent.
_GRID = 4_001


def early_end_warning(stage: Stage) -> list[str]:
    """Warning for a run that is more likely than not to end early, with its expected end and the cure.

    Every agent that is never away makes releases as its clock ticks: the k-th after a time Gamma(k).
    """
    network, limits = stage.network, stage.plan.limits
    if limits is None or network.goes_on:
        return []
    if stage.commits is not None:
        is_round = isinstance(network.exchange, Round)
        # As floats: of agents without a limit it is the largest integer.
        most = float(limits.max() if is_round else limits.sum(dtype=float))
        return [] if most >= stage.commits else [_message(f"commit {most:,.0f} of {stage.commits:,}", stage)]
    if stage.time is None or network.rates is None:
        return []
    expected, chance = _expected_end(limits, network.rates * _releases_a_tick(stage), stage.time)
    return [] if chance < 0.5 else [_message(f"time {expected:.3g} of {stage.time:g}", stage)]


def early_end_notice(stage: Stage, made: np.ndarray, commits: int, time: float) -> list[str]:
    """Warning for a run that has ended since nobody can act any more, if budgets are a reason."""
    limits = stage.plan.limits
    if limits is None or stage.network.goes_on or not (made >= limits).any():
        return []
    if stage.commits is not None:
        return [_message(f"commit {commits:,} of {stage.commits:,}", stage, "ended")]
    return [_message(f"time {time:.3g} of {stage.time:g}", stage, "ended")]


def _expected_end(limits: np.ndarray, rates: np.ndarray, time: float) -> tuple[float, float]:
    """Expected end of a run that lasts until a time at most, and the probability that it ends before."""
    from scipy.special import gammainc

    grid = np.linspace(0.0, time, _GRID)
    spent = np.ones(_GRID)
    for (limit, rate), agents in _alike(limits, rates):
        spent *= gammainc(max(limit, 1e-9), rate * grid) ** agents
    return float(np.trapezoid(1 - spent, grid)), float(spent[-1])


def _alike(limits: np.ndarray, rates: np.ndarray) -> list[tuple[tuple[float, float], int]]:
    """Limit and rate of agents that are alike, and how many there are."""
    pairs, counts = np.unique(np.stack([limits.astype(float), rates]), axis=1, return_counts=True)
    return [((float(a), float(b)), int(n)) for (a, b), n in zip(pairs.T, counts, strict=True)]


def _releases_a_tick(stage: Stage) -> np.ndarray:
    """Releases that an agent makes for each tick of its own clock, about."""
    network = stage.network
    shares = np.nan_to_num(network.shares(), nan=1.0) if network.members is not None else 1.0
    exchange = network.exchange
    both = isinstance(exchange, Gossip) and exchange.mode in ("push-pull", "edge")
    return np.asarray(shares * (2.0 if both else 1.0))


def _message(where: str, stage: Stage, verb: str = "are expected to end") -> str:
    runs = "the run" if verb == "ended" else "runs"
    who = "owner" if stage.network.links.star else "agent"
    later = (
        ""
        if stage.network.links.star
        else "; let agents go on without their data (privacy.when_spent: coast or anchored)"
    )
    return (
        f"{runs} {verb} at {where}: by then every {who} that is there has made all releases that its budget allows; "
        f"allow more releases (privacy.allocation), or end sooner (learning.algorithm){later}"
    )
