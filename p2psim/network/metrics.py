"""What can be recorded of a network: one function of the tally a metric, and its line in `NETWORK_METRICS`.

They are read off the events alone, so that recording them changes nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from p2psim.network.channels.timing import Airtime

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
    airtime : Airtime
        Time that transmissions take.
    """

    tally: Tally
    time: float
    rate: float
    airtime: Airtime


@dataclass(frozen=True)
class NetworkMetric:
    """A metric, its meaning, and what it needs."""

    measure: Callable[[Seen], float]
    meaning: str
    #: "request", where it says something of a learner that serves; "clock", where agents have clocks; or nothing.
    needs: str = ""


def _delivery(seen: Seen) -> float:
    delivered = seen.tally["delivered"]
    return delivered / max(delivered + seen.tally["dropped"], 1)


def _share(part: str) -> Callable[[Seen], float]:
    def measure(seen: Seen) -> float:
        tally = seen.tally
        failed = sum(tally[name] for name in ("lost", "collided", "missed", "unsent"))
        return tally[part] / max(tally["delivered"] + failed, 1)

    return measure


def _throughput(seen: Seen) -> float:
    if not seen.time:
        return 0.0
    tally, airtime = seen.tally, seen.airtime
    receivers = 1 if tally.links.star else tally.links.agents
    questions = tally["questions"]
    heard = questions * airtime.question + (tally["received"] - questions) * airtime.loaded
    return heard / (receivers * seen.time)


def _utilisation(seen: Seen) -> float:
    tally = seen.tally
    busy = tally.sum("busy") + (seen.time - tally.sum("until") if tally.sum("is_busy") else 0.0)
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
    "retries": NetworkMetric(
        lambda seen: float(seen.tally["retries"]), "times so far that a message was sent again"
    ),
    "delivery": NetworkMetric(
        _delivery, "share of the messages that have ended at a receiver so far which arrived there"
    ),
    "loss_rate": NetworkMetric(
        _share("lost"), "share of the attempts to deliver a message so far that the channel lost"
    ),
    "collision_rate": NetworkMetric(_share("collided"), "share of these attempts that collided"),
    "offline_rate": NetworkMetric(
        _share("missed"), "share of these attempts whose receiver was away, or left before it answered"
    ),
    "unsent_rate": NetworkMetric(
        _share("unsent"), "share of these attempts that were not sent: their sender was busy, or gave up"
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
        lambda seen: seen.tally["wasted"] / max(seen.tally["releases"], 1),
        "share of the releases so far that have reached nobody and never will; one that is on its way, held for who is "
        "away, or in a model that may still be asked for, is not wasted",
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
