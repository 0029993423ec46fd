"""What can be recorded of a network: one function of the tally a metric, and its line in the list below.

They are read off the events alone, so that recording them changes nothing else.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from p2psim.core.figures import Metric, Registered
from p2psim.core.registry import register_all
from p2psim.network.channels.draws import Airtime

if TYPE_CHECKING:
    from p2psim.network.tally import Tally  # compiled: not wanted by who only reads a scenario

#: Largest number of agents whose effective graph's eigenvalue is found, at every record anew.
MOST_FOR_LAMBDA2 = 1_000


@dataclass(frozen=True)
class NetworkState:
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
    places : int
        The most owners that a learner serves at once.
    """

    tally: Tally
    time: float
    rate: float
    airtime: Airtime
    places: int = 1


class NetworkMetric(Metric):
    """Base of metrics of the network; see `p2psim.core.figures.Metric` for what they say of themselves.

    Attributes
    ----------
    needs : str
        ``request`` where it says something of a learner that serves; ``clock`` where agents have clocks; ``version``
        where each update is a commit, a version of a model; or nothing.
    most_agents : int or None
        Number of agents up to which it is found.
    starts_undefined : bool
        Whether it is a share or a mean of what has happened so far, which is no number before anything has: what it
        measures then only fills tables, and is not drawn.
    measure_each : callable or None
        As `measure`, of each agent, shape (n,), where it is ``each``.
    """

    needs: ClassVar[Literal["", "request", "clock", "version"]] = ""
    most_agents: ClassVar[int | None] = None
    starts_undefined: ClassVar[bool] = False
    measure_each: ClassVar[Callable[[NetworkState], np.ndarray] | None] = None

    @staticmethod
    @abstractmethod
    def measure(seen: NetworkState) -> float:
        """Measure the network at one moment.

        Parameters
        ----------
        seen : NetworkState

        Returns
        -------
        float
            Finite.
        """

    @classmethod
    def refusal(cls, exchange: str, has_clocks: bool, by_edge: bool = False) -> str:
        """Why it says nothing of networks with an exchange of this name; empty where it does."""
        if cls.needs == "request" and exchange != "request":
            return f"{cls.name} is for a learner that serves owners on request: exchange: request"
        if cls.needs == "clock" and not has_clocks:
            return f"{cls.name} compares with the ticks of clocks, and {exchange} has none"
        if cls.needs == "version" and by_edge:
            return f"{cls.name} compares versions of models, and where links wake updates come between them"
        return ""


def _delivery(seen: NetworkState) -> float:
    delivered = seen.tally["delivered"]
    return delivered / max(delivered + seen.tally["dropped"], 1)


def _share(part: str) -> Callable[[NetworkState], float]:
    def measure(seen: NetworkState) -> float:
        tally = seen.tally
        failed = sum(tally[name] for name in ("lost", "collided", "missed", "unsent"))
        return tally[part] / max(tally["delivered"] + failed, 1)

    return measure


def _throughput(seen: NetworkState) -> float:
    if not seen.time:
        return 0.0
    tally, airtime = seen.tally, seen.airtime
    receivers = 1 if tally.links.star else tally.links.agents
    questions = tally["questions"]
    heard = questions * airtime.question + (tally["received"] - questions) * airtime.loaded
    return heard / (receivers * seen.time)


def _utilisation(seen: NetworkState) -> float:
    return seen.tally.served(seen.time) / (seen.places * seen.time) if seen.time else 0.0


def _participation(seen: NetworkState) -> float:
    return seen.tally["wakes"] / (seen.rate * seen.time) if seen.time else 1.0


def gini(values: np.ndarray) -> float:
    """Gini coefficient of non-negative values, shape (n,): 0 where all are alike, 1 − 1/n where one has everything."""
    total = values.sum()
    if total == 0:
        return 0.0
    n = values.size
    return float((2 * np.arange(1, n + 1) - n - 1) @ np.sort(values) / (n * total))


def _lambda2(seen: NetworkState) -> float:
    from p2psim.network.spectrum import dense_lambda2

    links, heard = seen.tally.links, seen.tally.heard
    n = links.agents
    size = n + 1 if links.star else n
    matrix = np.zeros((size, size))
    rows = np.repeat(np.arange(n), np.diff(links.indptr))
    columns = np.where(links.indices < 0, n, links.indices)
    matrix[rows[heard], columns[heard]] = 1.0
    return dense_lambda2(np.maximum(matrix, matrix.T))


_rising = partial(NetworkMetric.of, rises=True)
_so_far = partial(NetworkMetric.of, starts_undefined=True)
_of_requests = partial(_so_far, needs="request")


def _of_each(
    name: str,
    measure: Callable[[NetworkState], float],
    meaning: str,
    measure_each: Callable[[NetworkState], np.ndarray],
    **facts: Any,
) -> type[NetworkMetric]:
    return NetworkMetric.of(
        name, measure, meaning, each=True, measure_each=staticmethod(measure_each), **facts
    )


register_all(
    [
        _rising(
            "messages",
            lambda seen: float(seen.tally["messages"]),
            "messages sent so far; a broadcast counts once",
        ),
        _rising(
            "retries", lambda seen: float(seen.tally["retries"]), "times so far that a message was sent again"
        ),
        _so_far(
            "delivery",
            _delivery,
            "share of the messages that have ended at a receiver so far which arrived there",
            rises=True,
        ),
        _so_far(
            "loss_rate",
            _share("lost"),
            "share of the attempts to deliver a message so far that the channel lost",
        ),
        _so_far(
            "collision_rate",
            _share("collided"),
            "share of these attempts that collided",
            label="collision rate (fraction of deliveries)",
        ),
        _so_far(
            "offline_rate",
            _share("missed"),
            "share of these attempts whose receiver was away, or left before it answered",
        ),
        _so_far(
            "unsent_rate",
            _share("unsent"),
            "share of these attempts that were not sent: their sender was busy, or gave up",
        ),
        _so_far(
            "throughput",
            _throughput,
            "airtime of what arrived, per receiver (the learner of a star), over time so far",
            label="throughput (fraction of airtime)",
            rises=True,
        ),
        _so_far(
            "participation",
            _participation,
            "wakes so far over the ticks of the clocks that are expected until then",
            needs="clock",
            rises=True,
        ),
        _rising(
            "present",
            lambda seen: 1 - seen.tally["absent"] / seen.tally.links.agents,
            "share of the agents that are there",
        ),
        _of_requests(
            "turned_away",
            lambda seen: seen.tally["turned_away"] / max(seen.tally["wakes"], 1),
            "share of wakes so far that the learner refused, busy or away",
        ),
        _of_requests(
            "utilisation",
            _utilisation,
            "share of time so far that the learner was busy; with concurrency the mean share of its places",
        ),
        _of_requests(
            "waiting_time",
            lambda seen: seen.tally.sum("waited") / max(seen.tally["served"], 1),
            "mean time that the served have waited for, so far",
        ),
        _of_each(
            "staleness",
            lambda seen: seen.tally.of_each("age").sum() / max(seen.tally.of_each("aged").sum(), 1),
            "mean number of newer versions that there were when a model (of a star: an answer to it) arrived, so far; "
            "of each agent, of the models that it sent",
            lambda seen: seen.tally.of_each("age") / np.maximum(seen.tally.of_each("aged"), 1),
            starts_undefined=True,
        ),
        _of_each(
            "version_lag",
            lambda seen: seen.tally.of_each("lag").sum() / max(seen.tally["commits"], 1),
            "mean number of newer versions that there were of a model when an update that was computed from it was "
            "committed, so far",
            lambda seen: seen.tally.of_each("lag") / np.maximum(seen.tally.updates, 1),
            needs="version",
            starts_undefined=True,
        ),
        _so_far(
            "updates_gini",
            lambda seen: gini(seen.tally.updates),
            "inequality of the agents' shares of the updates so far",
        ),
        _of_each(
            "releases",
            lambda seen: float(seen.tally["releases"]),
            "releases so far, of all agents, or of each",
            lambda seen: seen.tally.made.astype(float),
            rises=True,
        ),
        _so_far(
            "releases_wasted",
            lambda seen: seen.tally["wasted"] / max(seen.tally["releases"], 1),
            "share of the releases so far that have reached nobody and never will; one that is on its way, held for "
            "who is away, or in a model that may still be asked for, is not wasted",
        ),
        _so_far(
            "links_heard",
            lambda seen: float(seen.tally.heard.mean()),
            "share of the links, by direction, over which anything arrived since the last record",
            rises=True,
        ),
        _so_far(
            "effective_lambda2",
            _lambda2,
            f"λ₂ of the unweighted graph of these links, in either direction; for up to {MOST_FOR_LAMBDA2:,} agents",
            most_agents=MOST_FOR_LAMBDA2,
            rises=True,
        ),
    ]
)

#: Metrics of the network that are registered.
NETWORK_METRICS = Registered(NetworkMetric)  # type: ignore[type-abstract]
