"""How often an owner answers a round, and how often what it answers is used."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from p2psim.distributions import Distribution, Quantity
from p2psim.network.channels import GilbertElliott
from p2psim.network.channels.edges import EdgeValue
from p2psim.network.exchanges import Round
from p2psim.network.simulation import Network

#: Delays that are drawn where their distribution function is not written down here.
_DRAWS = 200_000


@dataclass(frozen=True)
class Answering:
    """Chances in one round, independent of other owners and rounds.

    Attributes
    ----------
    heard : ndarray, shape (N,)
        That an owner is there, hears the query and answers.
    used : ndarray, shape (N,)
        That its answer, once given, arrives before the round closes.
    known : bool
        Whether it can be said how often owners are there; if not, they are taken to be there always.
    lacking : tuple of str
        What of the network is not in these numbers.
    draws : int
        In how many draws it was counted who answers in time; 0 where that is exact.
    """

    heard: np.ndarray
    used: np.ndarray
    known: bool
    lacking: tuple[str, ...]
    draws: int = 0


def answering(network: Network) -> Answering:
    """Chances of the owners of a network with rounds.

    Losses of the query and of the answer are independent. An answer that comes after the deadline is not used.
    """
    channel, exchange, lacking = network.channel, network.exchange, []
    assert isinstance(exchange, Round)
    shares = network.shares()
    known = not np.isnan(shares).any()
    heard, used = shares if known else np.ones(shares.size), np.ones(shares.size)
    if isinstance(channel.loss, EdgeValue | GilbertElliott):
        lacking.append("losses that differ or come in bursts: taken as none")
    elif channel.loss > 0:
        heard, used = heard * (1 - channel.loss), used * (1 - channel.loss)
    if channel.collision != "none" or channel.airtime or channel.bandwidth is not None:
        lacking.append("collisions and airtime are not in it")
    if channel.retransmit.kind != "none":
        lacking.append("what is sent again is not in it")
    draws = 0
    if exchange.deadline is not None:
        chance, draws = _within(exchange.response, exchange.deadline)
        used = used * chance
        if channel.latency != 0:
            lacking.append("latency is not in what comes before a deadline")
    return Answering(heard, used, known, tuple(lacking), draws)


def _within(delay: Quantity, deadline: float) -> tuple[float, int]:
    """P(delay ≤ deadline), and the draws that it was counted in, 0 for none."""
    if not isinstance(delay, Distribution):
        return float(delay <= deadline), 0
    if delay.exponential is not None:
        return float(-np.expm1(-deadline / delay.exponential)), 0
    if delay.uniform is not None:
        low, high = delay.uniform
        share = (deadline - low) / (high - low) if high > low else float(low <= deadline)
        return float(np.clip(share, 0, 1)), 0
    return float((delay.sample(np.random.default_rng(0), _DRAWS) <= deadline).mean()), _DRAWS
