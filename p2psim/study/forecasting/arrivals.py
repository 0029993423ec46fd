"""How often owners hear a round, and how often what they answer is used."""

from __future__ import annotations

import numpy as np

from p2psim.distributions import Distribution, Quantity
from p2psim.network.channels import GilbertElliott
from p2psim.network.channels.edges import EdgeValue
from p2psim.network.exchanges import Round
from p2psim.study.families.rounds import RoundsCell
from p2psim.study.families.star_setting import star_algorithm

#: Delays that are drawn where their distribution function is not written down here.
_DRAWS = 200_000


def arrivals(cell: RoundsCell) -> tuple[np.ndarray, np.ndarray, bool, list[str]]:
    """Probabilities that an owner answers, and that its answer is used, shape (N,) both.

    And whether it is known how often owners are there, and why the rest is not exact.

    Losses of the query and of the answer are independent. An answer that comes after the deadline is not used.
    """
    network, N, found = cell.stage.network, cell.problem.owners, []
    channel, exchange = network.channel, network.exchange
    assert isinstance(exchange, Round)
    assert network.members is not None
    shares = network.availability.shares(network.members, network.links)
    known = not np.isnan(shares).any()
    heard, used = shares if known else np.ones(N), np.ones(N)
    if isinstance(channel.loss, EdgeValue | GilbertElliott):
        found.append("losses that differ or come in bursts: taken as none")
    elif channel.loss > 0:
        heard, used = heard * (1 - channel.loss), used * (1 - channel.loss)
    if channel.collision != "none" or channel.airtime or channel.bandwidth is not None:
        found.append("collisions and airtime are not in it")
    if channel.retransmit.kind != "none":
        found.append("what is sent again is not in it")
    if exchange.deadline is not None:
        used = used * _within(exchange.response, exchange.deadline, found)
        if channel.latency != 0:
            found.append("latency is not in what comes before a deadline")
        if cell.scenario.privacy.allocation.kind != "horizon":
            found.append("answers after the deadline count as given")
    if star_algorithm(cell.scenario).reweight == "known" and (used * heard < shares).any():
        found.append("known frequencies are without losses and deadlines, and are taken to be with them")
    return heard, used, known, found


def _within(delay: Quantity, deadline: float, found: list[str]) -> float:
    """P(delay ≤ deadline)."""
    if not isinstance(delay, Distribution):
        return float(delay <= deadline)
    if delay.exponential is not None:
        return float(-np.expm1(-deadline / delay.exponential))
    if delay.uniform is not None:
        low, high = delay.uniform
        return float(np.clip((deadline - low) / (high - low), 0, 1)) if high > low else float(low <= deadline)
    found.append(f"who answers in time is counted in {_DRAWS:,} draws")
    return float((delay.sample(np.random.default_rng(0), _DRAWS) <= deadline).mean())
