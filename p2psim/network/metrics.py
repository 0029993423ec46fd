"""What can be recorded of a network: one function of the tally a metric, and its line in `NETWORK_METRICS`.

They are read off the events alone, so that recording them changes nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from p2psim.network.tally import Tally  # compiled: not wanted by who only reads a scenario

#: Largest number of agents whose effective graph's eigenvalue is found, at every record anew.
MOST_FOR_LAMBDA2 = 1_000


@dataclass(frozen=True)
class Seen:
    """The network at one moment.

    Attributes
    ----------
    tally : Tally
        Of the events until then.
    time : float
        The moment.
    rate : float
        Ticks of all clocks per unit of time; 0 where nobody has a clock.
    airtime : float
        Time that a transmission takes.
    """

    tally: Tally
    time: float
    rate: float
    airtime: float


@dataclass(frozen=True)
class NetworkMetric:
    """A metric, its meaning, and what it needs."""

    measure: Callable[[Seen], float]
    meaning: str
    #: "request", where it says something of a learner that serves; "clock", where agents have clocks; or nothing.
    needs: str = ""


def _ended(tally: Tally) -> int:
    return tally["delivered"] + tally["lost"] + tally["collided"] + tally["missed"]


def _share(part: str) -> Callable[[Seen], float]:
    def measure(seen: Seen) -> float:
        return seen.tally[part] / max(_ended(seen.tally), 1)

    return measure


def _throughput(seen: Seen) -> float:
    receivers = 1 if seen.tally.links.star else seen.tally.links.agents
    return seen.tally["received"] * seen.airtime / (receivers * seen.time) if seen.time else 0.0


def _utilisation(seen: Seen) -> float:
    since = seen.tally.sum("busy_since")
    busy = seen.tally.sum("busy") + (seen.time - since if since >= 0 else 0.0)
    return busy / seen.time if seen.time else 0.0


def _participation(seen: Seen) -> float:
    return seen.tally["wakes"] / (seen.rate * seen.time) if seen.time else 1.0


def gini(values: np.ndarray) -> float:
    """Gini coefficient of non-negative values, shape (n,): 0 where all are alike, 1 − 1/n where one has everything."""
    total = values.sum()
    if total == 0:
        return 0.0
    n = values.size
    return float((2 * np.arange(1, n + 1) - n - 1) @ np.sort(values) / (n * total))


def _lambda2(seen: Seen) -> float:
    from p2psim.network.spectrum import dense_lambda2

    links, heard = seen.tally.links, seen.tally.heard
    n = links.agents
    size = n + 1 if links.star else n
    matrix = np.zeros((size, size))
    rows = np.repeat(np.arange(n), np.diff(links.indptr))
    columns = np.where(links.indices < 0, n, links.indices)
    matrix[rows[heard], columns[heard]] = 1.0
    return dense_lambda2(np.maximum(matrix, matrix.T))


NETWORK_METRICS: dict[str, NetworkMetric] = {
    "messages": NetworkMetric(
        lambda seen: float(seen.tally["messages"]), "messages sent so far; a broadcast counts once"
    ),
    "delivery": NetworkMetric(_share("delivered"), "share of the deliveries that ended so far which arrived"),
    "loss_rate": NetworkMetric(_share("lost"), "share of them that the channel lost"),
    "collision_rate": NetworkMetric(_share("collided"), "share of them that collided"),
    "offline_rate": NetworkMetric(
        _share("missed"), "share of them whose receiver was away, or left before it answered"
    ),
    "throughput": NetworkMetric(
        _throughput, "airtime of what arrived, per receiver (the learner of a star), over time so far"
    ),
    "participation": NetworkMetric(
        _participation, "wakes so far over the ticks of the clocks that are expected until then", "clock"
    ),
    "present": NetworkMetric(
        lambda seen: 1 - seen.tally["absent"] / seen.tally.links.agents, "share of the agents that are there"
    ),
    "turned_away": NetworkMetric(
        lambda seen: seen.tally["turned_away"] / max(seen.tally["wakes"], 1),
        "share of wakes so far that the learner refused, busy or away",
        "request",
    ),
    "utilisation": NetworkMetric(_utilisation, "share of time so far that the learner was busy", "request"),
    "waiting_time": NetworkMetric(
        lambda seen: seen.tally.sum("waited") / max(seen.tally["served"], 1),
        "mean time that the served have waited for, so far",
        "request",
    ),
    "staleness": NetworkMetric(
        lambda seen: seen.tally.sum("age") / max(seen.tally["aged"], 1),
        "mean number of newer versions that there were when a model (of a star: an answer to it) arrived, so far",
    ),
    "updates_gini": NetworkMetric(
        lambda seen: gini(seen.tally.updates), "inequality of the agents' shares of the updates so far"
    ),
    "releases": NetworkMetric(lambda seen: float(seen.tally["releases"]), "releases so far, of all agents"),
    "releases_wasted": NetworkMetric(
        lambda seen: (
            1 - seen.tally["reached"] / max(seen.tally["releases"], 1) if seen.tally["releases"] else 0.0
        ),
        "share of the releases so far that have reached nobody",
    ),
    "links_heard": NetworkMetric(
        lambda seen: float(seen.tally.heard.mean()),
        "share of the links, by direction, over which anything arrived since the last record",
    ),
    "effective_lambda2": NetworkMetric(
        _lambda2,
        f"λ₂ of the unweighted graph of these links, in either direction; for up to {MOST_FOR_LAMBDA2:,} agents",
    ),
}
