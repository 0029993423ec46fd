"""Metrics of the network read off a stream of events plainly: what the fast counting is held to.

Written from the words of `NETWORK_METRICS`, one event after the other, with Python's own lists and sets.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from p2psim.core.events import FAILURES, KINDS, LEARNER, NEIGHBOURS, NOBODY, NONE, OUTCOMES
from p2psim.network.changes import ActiveLinks
from p2psim.network.channels.draws import Airtime
from p2psim.network.graph import Graph

_FAILURES = {OUTCOMES[code] for code in FAILURES}


class EventRecord(NamedTuple):
    """An event in words; fields as in `p2psim.core.events.EVENT`."""

    seq: int
    time: float
    kind: str
    agent: int
    peer: int
    version: int
    cause: int
    release: int
    outcome: str


def in_words(events: np.ndarray) -> list[EventRecord]:
    """Events of dtype `EVENT`, one by one."""
    columns = [events[name].tolist() for name in EventRecord._fields]
    return [
        EventRecord(seq, time, KINDS[kind], agent, peer, version, cause, release, OUTCOMES[outcome])
        for seq, time, kind, agent, peer, version, cause, release, outcome in zip(*columns, strict=True)
    ]


class ReferenceTally:
    """What has happened on a network so far.

    Parameters
    ----------
    links : Graph
    rate : float
        Ticks of all clocks per unit of time.
    airtime : Airtime
        Time that transmissions take.
    places : int
        The most owners that a learner serves at once.
    end : float, optional
        End of the run, for links that come and go.
    """

    def __init__(
        self, links: Graph, rate: float, airtime: Airtime, places: int = 1, end: float | None = None
    ):
        self._active = ActiveLinks(links, end)
        self._links, self._rate, self._airtime, self._places = links, rate, airtime, places
        self._messages = self._retries = self._wakes = self._turned_away = 0
        self._delivered = self._dropped = 0
        self._failed: Counter[str] = Counter()
        self._heard_for = 0.0
        self._made: set[tuple[int, int]] = set()
        self._reached: set[tuple[int, int]] = set()
        #: How many messages with a release are on their way, which releases messages have named, and the release by
        #: which an agent made a version of its model.
        self._underway: Counter[tuple[int, int]] = Counter()
        self._named: set[tuple[int, int]] = set()
        self._made_by: dict[tuple[int, int], tuple[int, int]] = {}
        self._versions: Counter[int] = Counter()
        #: Ages of the models of each agent that arrived, together, and how many did.
        self._ages: Counter[int] = Counter()
        self._aged: Counter[int] = Counter()
        #: Version that each beginning and each answer stands for, by the number of the event; what commits lag behind.
        self._read: dict[int, int] = {}
        self._lags: Counter[int] = Counter()
        self._commits = 0
        self._updates: Counter[int] = Counter()
        #: Version of each owner's newest answer at the learner.
        self._answered: dict[int, int] = {}
        self._away: set[int] = set()
        self._asked: dict[int, float] = {}
        self._waited, self._served = 0.0, 0
        #: Of each owner: events of its last exchange with the learner, its beginning, and its end if it has one; and
        #: how long all exchanges before took.
        self._exchanges: dict[int, set[int]] = {}
        self._begun: dict[int, float] = {}
        self._ended: dict[int, float] = {}
        self._busy = 0.0
        self._heard: set[tuple[int, int]] = set()

    def read(self, happened: Iterable[EventRecord]) -> None:
        """Read on."""
        for event in happened:
            getattr(self, f"_{event.kind}")(event)

    def record(self, time: float, names: Iterable[str]) -> dict[str, float]:
        """Some metrics at a moment; from here on links count as heard anew."""
        star, n = self._links.star, self._links.agents
        attempts = max(self._delivered + self._failed.total(), 1)
        some_time = max(time, np.finfo(float).tiny)
        values: dict[str, Callable[[], float]] = {
            "messages": lambda: self._messages,
            "retries": lambda: self._retries,
            "delivery": lambda: self._delivered / max(self._delivered + self._dropped, 1),
            "loss_rate": lambda: self._failed["loss"] / attempts,
            "collision_rate": lambda: self._failed["collision"] / attempts,
            "offline_rate": lambda: self._failed["offline"] / attempts,
            "unsent_rate": lambda: (self._failed["busy"] + self._failed["gave-up"]) / attempts,
            "throughput": lambda: self._heard_for / ((1 if star else n) * some_time),
            "participation": lambda: self._wakes / (self._rate * time) if time else 1.0,
            "present": lambda: 1 - len(self._away) / n,
            "turned_away": lambda: self._turned_away / max(self._wakes, 1),
            "utilisation": lambda: self._served_for(time) / (self._places * some_time),
            "waiting_time": lambda: self._waited / max(self._served, 1),
            "staleness": lambda: self._ages.total() / max(self._aged.total(), 1),
            "version_lag": lambda: self._lags.total() / max(self._commits, 1),
            "updates_gini": lambda: _gini(np.array([self._updates[agent] for agent in range(n)])),
            "releases": lambda: len(self._made),
            "releases_wasted": lambda: self._wasted() / max(len(self._made), 1),
            "links_heard": self._links_heard,
            "effective_lambda2": self._lambda2,
        }
        found = {name: float(values[name]()) for name in names}
        self._heard.clear()
        return found

    def record_each(self, names: Iterable[str]) -> dict[str, list[float]]:
        """Some metrics of each agent at a moment."""
        made = Counter(agent for agent, _ in self._made)
        values: dict[str, Callable[[int], float]] = {
            "staleness": lambda agent: self._ages[agent] / max(self._aged[agent], 1),
            "version_lag": lambda agent: self._lags[agent] / max(self._updates[agent], 1),
            "releases": lambda agent: made[agent],
        }
        return {name: [float(values[name](agent)) for agent in range(self._links.agents)] for name in names}

    def _wake(self, event: EventRecord) -> None:
        self._wakes += 1
        self._turned_away += event.outcome in ("busy", "offline")
        self._asked[event.seq] = event.time

    def _send(self, event: EventRecord) -> None:
        self._messages += 1
        self._release(event)
        self._underway[self._carried(event, event.agent)] += (
            self._neighbours(event) if event.peer == NEIGHBOURS else 1
        )
        if event.release >= 0:
            self._named.add((event.agent, event.release))
        if event.agent == LEARNER and event.cause != NONE:
            owner = event.peer
            self._waited += event.time - self._asked[event.cause]
            self._served += 1
            self._busy += self._ended.get(owner, 0.0) - self._begun.get(owner, 0.0)
            self._exchanges[owner], self._begun[owner] = {event.seq}, event.time
            self._ended[owner] = math.inf
        self._follow(event)

    def _neighbours(self, event: EventRecord) -> int:
        """To how many a message to all goes."""
        if self._links.changes is None:
            return self._links.of(event.agent).size
        return self._active.advance(event.time).degree(event.agent)

    def _retry(self, event: EventRecord) -> None:
        self._retries += 1
        if event.outcome in _FAILURES:
            self._failed[event.outcome] += 1

    def _deliver(self, event: EventRecord) -> None:
        self._delivered += 1
        if event.agent == LEARNER or not self._links.star:
            self._heard_for += self._airtime.question if event.version < 0 else self._airtime.loaded
        self._heard.add((event.agent, event.peer))
        if self._links.star and event.agent == LEARNER:
            self._read[event.seq] = event.version
        self._reached.add(self._carried(event, event.peer))
        self._underway[self._carried(event, event.peer)] -= 1
        if event.version >= 0 and (event.agent == LEARNER or not self._links.star):
            whose = LEARNER if self._links.star else event.peer
            self._answered[event.peer] = max(event.version, self._answered.get(event.peer, -1))
            self._ages[event.peer] += self._versions[whose] - event.version
            self._aged[event.peer] += 1
        self._follow(event)

    def _drop(self, event: EventRecord) -> None:
        if event.outcome in _FAILURES and event.peer != NOBODY:
            self._dropped += 1
            self._failed[event.outcome] += 1
        self._underway[self._carried(event, event.peer)] -= 1
        self._follow(event, ends=True)

    def _begin(self, event: EventRecord) -> None:
        self._read[event.seq] = event.version
        self._follow(event)

    def _commit(self, event: EventRecord) -> None:
        self._commits += 1
        before = event.version - 1
        self._lags[event.peer if event.agent == LEARNER else event.agent] += before - self._read.get(
            event.cause, before
        )
        if event.peer == NEIGHBOURS and event.agent == LEARNER:
            self._updates.update(i for i, of in self._answered.items() if of == event.version - 1)
        else:
            self._updates[event.peer if event.agent == LEARNER else event.agent] += 1
        self._versions[event.agent] = event.version
        self._release(event)
        if event.release >= 0 and event.agent != LEARNER:
            self._made_by[event.agent, event.version] = event.agent, event.release
        self._follow(event, ends=True)

    def _join(self, event: EventRecord) -> None:
        self._away.discard(event.agent)

    def _leave(self, event: EventRecord) -> None:
        if event.agent != LEARNER:
            self._away.add(event.agent)

    def _release(self, event: EventRecord) -> None:
        if event.release >= 0 and event.agent != LEARNER:
            self._made.add((event.agent, event.release))

    def _wasted(self) -> int:
        """Releases that have reached nobody, are not on their way, and will not be sent any more."""
        # A message that names the next release carries the model with this one.
        old = {
            (agent, release)
            for (agent, version), (_, release) in self._made_by.items()
            if self._versions[agent] > version and (agent, release + 1) not in self._named
        }
        left = (self._named | old) & self._made - self._reached
        return sum(not self._underway[one] for one in left)

    def _carried(self, event: EventRecord, sender: int) -> tuple[int, int]:
        """The release that a message names, or else the one by which its sender made the version that it holds."""
        if event.release >= 0:
            return sender, event.release
        nothing = NOBODY, NONE
        return nothing if self._links.star else self._made_by.get((sender, event.version), nothing)

    def _follow(self, event: EventRecord, ends: bool = False) -> None:
        """Take note of what follows from the learner's last query to an owner, and when it ends."""
        owner = event.agent if event.agent != LEARNER else event.peer
        if event.cause in self._exchanges.get(owner, ()):
            self._exchanges[owner].add(event.seq)
            if ends:
                self._ended[owner] = event.time

    def _served_for(self, time: float) -> float:
        """Time that owners have been served until a moment, together."""
        last = (min(time, self._ended[owner]) - begun for owner, begun in self._begun.items())
        return self._busy + sum(last)

    def _links_heard(self) -> float:
        """Share of directions of links; on a star of links."""
        star = self._links.star
        over = {frozenset(pair) for pair in self._heard} if star else self._heard
        return len(over) / self._links.indices.size

    def _lambda2(self) -> float:
        places = {
            agent: i for i, agent in enumerate(range(-1 if self._links.star else 0, self._links.agents))
        }
        laplacian = np.zeros((len(places), len(places)))
        for pair in {frozenset(pair) for pair in self._heard}:
            i, j = (places[agent] for agent in pair)
            laplacian[i, i] += 1
            laplacian[j, j] += 1
            laplacian[i, j] = laplacian[j, i] = -1
        return float(np.linalg.eigvalsh(laplacian)[1])


def _gini(counts: np.ndarray) -> float:
    """Half the mean difference of two, relative to the mean."""
    total = counts.sum()
    return float(np.abs(counts[:, None] - counts).sum() / (2 * counts.size * total)) if total else 0.0
