"""Counts of what happened in a stream of events, for metrics of the network, and of releases that were lost.

`LostReleases` counts the releases that have reached nobody and never will, and the deliveries that failed.

State of the compiled pass, kept between pieces of the stream:

- ``totals`` (len(TOTALS),), whole numbers, by the names below;
- ``sums`` (len(SUMS),), times;
- ``each`` (n, len(EACH)), whole numbers of each agent;
- ``versions`` (n + 1,): commits of each agent, and last of the learner;
- ``updates`` (n,): commits to which each agent gave, as itself or, on a star, as the owner whose answer was used;
- ``answered`` (n,): version of the last query of each owner's answer that reached the learner, −1 for none;
- ``made`` (n,): releases of each agent;
- ``awaiting`` (n, capacity): ends that are still to come of messages with a release; `GOT` or `GONE` when clear;
- ``within`` (n, capacity): version of the model that a release made, by which messages that name none carry it;
- ``failed`` (n,): deliveries of each agent's releases that failed;
- ``begun`` (n, 2): number of the event with which each agent began to compute last, and the version that it read;
- ``heard`` (m,): whether something was delivered over each entry of `Graph.indices` since it was last cleared;
- ``until`` (n,): until when it has been counted that the learner serves each owner; ``is_served`` (n,): whether it
  still does.
"""

import numpy as np

from p2psim.core import events as ev
from p2psim.core.compiled import njit
from p2psim.network.availability import Always
from p2psim.network.changes import ActiveLinks
from p2psim.network.exchanges import Broadcast
from p2psim.network.graph import Graph
from p2psim.network.section import Network

#: Whole numbers that are counted. Messages end at a receiver delivered or dropped; attempts to deliver one fail lost,
#: collided, missed (its receiver away) or unsent (its sender busy, or never finding the medium free). ``arrived`` is
#: the version of the model that the answer was to which has reached the learner of a star last.
TOTALS = (
    "messages", "retries", "delivered", "dropped", "lost", "collided", "missed", "unsent", "wakes",
    "turned_away", "releases", "wasted", "received", "questions", "served", "absent", "commits", "arrived",
)  # fmt: skip
(
    MESSAGES, RETRIES, DELIVERED, DROPPED, LOST, COLLIDED, MISSED, UNSENT, WAKES, TURNED_AWAY, RELEASES,
    WASTED, RECEIVED, QUESTIONS, SERVED, ABSENT, COMMITS, ARRIVED,
) = range(len(TOTALS))  # fmt: skip

#: Sums: time that owners have been served for; time that they have waited for before.
SUMS = ("busy", "waited")
BUSY_TIME, WAITED = range(len(SUMS))

#: Of each agent: ages in versions of its models that arrived (of a star: of those that its answers were to), and how
#: many arrived; by how many versions its updates lagged behind.
EACH = ("age", "aged", "lag")
AGE, AGED, LAG = range(len(EACH))


#: In place of when a wake was queued: it waits no more.
DONE = -1.0

#: What has become of a release: it has reached somebody, or never will.
GOT, GONE = -1, -2


@njit()
def _carried(event, sender, star, made, within):  # type: ignore[no-untyped-def]
    """Release that a message carries: the one that it names, or the one that made its version; −1 for none."""
    if event.release >= 0 or star or event.version <= 0:
        return event.release
    release = made[sender] - 1
    while release >= 0 and within[sender, release] > event.version:
        release -= 1
    return release if release >= 0 and within[sender, release] == event.version else -1


@njit()
def _lose(totals, awaiting, agent, release):  # type: ignore[no-untyped-def]
    """Count a release as wasted if no message with it is on its way and nobody has it."""
    if release >= 0 and awaiting[agent, release] == 0:
        awaiting[agent, release] = GONE
        totals[WASTED] += 1


@njit()
def _count_failure(totals, outcome):  # type: ignore[no-untyped-def]
    """Count an attempt by why it failed; an attempt whose acknowledgement was lost has not."""
    if outcome == ev.LOSS:
        totals[LOST] += 1
    elif outcome == ev.COLLISION:
        totals[COLLIDED] += 1
    elif outcome == ev.OFFLINE:
        totals[MISSED] += 1
    elif outcome in ev.FAILURES:
        totals[UNSENT] += 1


@njit()
def _lag(event, totals, begun):  # type: ignore[no-untyped-def]
    """How many newer versions there are when a commit is made than the one that it was computed from."""
    agent = event.agent
    if agent < 0:
        return event.version - 1 - totals[ARRIVED] if event.peer >= 0 else 0
    # What takes no time to compute is computed from the model of that moment.
    return event.version - 1 - begun[agent, 1] if event.cause == begun[agent, 0] else 0


@njit()
def _end_exchange(totals, sums, until, is_served, owner, time):  # type: ignore[no-untyped-def]
    """Count an owner as served until now: where the learner serves, the exchange of its last query to it has ended.

    If a lost answer is given again, the exchange ends once more, later.
    """
    if totals[SERVED]:
        sums[BUSY_TIME] += time - until[owner]
        until[owner], is_served[owner] = time, False


@njit()
def _leave_line(waiting_seq, waiting_time, line, wake, time):  # type: ignore[no-untyped-def]
    """Take a queued wake off the line; returns for how long it has waited, 0 if it has not."""
    low, high = line[0], line[1]
    while low < high:
        middle = (low + high) >> 1
        if waiting_seq[middle % waiting_seq.size] < wake:
            low = middle + 1
        else:
            high = middle
    place, waited = low % waiting_seq.size, 0.0
    if low < line[1] and waiting_seq[place] == wake:
        waited = time - waiting_time[place]
        waiting_time[place] = DONE
    while line[0] < line[1] and waiting_time[line[0] % waiting_seq.size] == DONE:
        line[0] += 1
    return waited


@njit(forceinline=True)
def edge_of(indices, first, last, peer):  # type: ignore[no-untyped-def]
    """Place of a neighbour in an agent's sorted row."""
    while first < last:
        middle = (first + last) >> 1
        if indices[middle] < peer:
            first = middle + 1
        else:
            last = middle
    return first


@njit()
def tally(  # type: ignore[no-untyped-def]
    events, receivers, star, totals, sums, each, versions, updates, answered, made, awaiting, within, failed, heard,
    begun, indptr, indices, until, is_served, waiting_seq, waiting_time, line,
):  # fmt: skip
    """Count a piece of the stream; ``line`` (2,) are the ends of the line of queued wakes in ``waiting_*``.

    ``receivers`` says of each event to how many it sends, where links come and go; otherwise it is empty.
    """
    for e in range(events.size):
        event = events[e]
        kind, agent, peer, outcome = event.kind, event.agent, event.peer, event.outcome
        if (
            event.release >= 0
            and agent >= 0
            and kind in (ev.SEND, ev.COMMIT)
            and event.release == made[agent]
        ):
            made[agent] += 1
            totals[RELEASES] += 1
        if kind == ev.WAKE:
            totals[WAKES] += 1
            if outcome in (ev.BUSY, ev.OFFLINE):
                totals[TURNED_AWAY] += 1
            elif outcome == ev.QUEUED:
                place = line[1] % waiting_seq.size
                waiting_seq[place], waiting_time[place] = event.seq, event.time
                line[1] += 1
        elif kind == ev.SEND:
            totals[MESSAGES] += 1
            release = _carried(event, agent, star, made, within)
            if release >= 0 and awaiting[agent, release] >= 0:
                if peer >= ev.LEARNER:
                    awaiting[agent, release] += 1
                else:
                    every = indptr[agent + 1] - indptr[agent]
                    awaiting[agent, release] += receivers[e] if receivers.size else every
            if agent == ev.LEARNER and event.cause >= 0:
                totals[SERVED] += 1
                until[peer], is_served[peer] = event.time, True
                sums[WAITED] += _leave_line(waiting_seq, waiting_time, line, event.cause, event.time)
        elif kind == ev.DELIVER:
            totals[DELIVERED] += 1
            if not star or agent == ev.LEARNER:
                totals[RECEIVED] += 1
                totals[QUESTIONS] += event.version < 0
            release = _carried(event, peer, star, made, within)
            if release >= 0:
                awaiting[peer, release] = GOT
            if event.version >= 0 and (agent == ev.LEARNER or not star):
                # The versions of a star are the learner's.
                origin = versions[-1] if star else versions[peer]
                each[peer, AGE] += origin - event.version
                each[peer, AGED] += 1
            if star:
                if agent == ev.LEARNER:
                    totals[ARRIVED] = event.version
                    answered[peer] = max(answered[peer], event.version)
                heard[peer if agent == ev.LEARNER else agent] = True
            else:
                heard[edge_of(indices, indptr[agent], indptr[agent + 1], peer)] = True
        elif kind == ev.RETRY:
            totals[RETRIES] += 1
            _count_failure(totals, outcome)
        elif kind == ev.DROP:
            release = _carried(event, peer, star, made, within) if peer >= 0 else ev.NONE
            if release >= 0:
                failed[peer] += 1
            if release >= 0 and awaiting[peer, release] > 0:
                awaiting[peer, release] -= 1
                # Whoever is asked for its model can give it again, as long as it has no newer one.
                if event.release >= 0 or versions[peer] > event.version:
                    _lose(totals, awaiting, peer, release)
            if outcome in ev.FAILURES and event.cause >= 0 and peer >= ev.LEARNER:
                totals[DROPPED] += 1
                _count_failure(totals, outcome)
            if peer == ev.NOBODY:
                _leave_line(waiting_seq, waiting_time, line, event.cause, event.time)
            elif peer >= ev.LEARNER:
                owner = agent if agent >= 0 else peer
                _end_exchange(totals, sums, until, is_served, owner, event.time)
        elif kind == ev.BEGIN:
            # A tuple for a row would be compiled with the words of numba's error.
            begun[agent, 0], begun[agent, 1] = event.seq, event.version
        elif kind == ev.COMMIT:
            totals[COMMITS] += 1
            if peer == ev.NEIGHBOURS and agent == ev.LEARNER:
                for i in range(updates.size):
                    updates[i] += answered[i] == versions[-1]
            else:
                whose = peer if agent == ev.LEARNER else agent
                updates[whose] += 1
                each[whose, LAG] += _lag(event, totals, begun)
            versions[agent] = event.version
            if agent >= 0:
                # Nobody can be given the version before any more.
                before = made[agent] - 1 - (event.release >= 0)
                if before >= 0 and within[agent, before] > 0:
                    _lose(totals, awaiting, agent, before)
                if event.release >= 0:
                    within[agent, event.release] = event.version
            if peer >= 0:
                _end_exchange(totals, sums, until, is_served, peer, event.time)
        elif agent >= 0 and kind == ev.LEAVE:
            totals[ABSENT] += 1
        elif agent >= 0 and kind == ev.JOIN:
            totals[ABSENT] -= 1


class Tally:
    """What a stream of events amounts to so far.

    Parameters
    ----------
    links : Graph
        Who is linked with whom.
    end : float, optional
        End of the run, for links that come and go (`p2psim.network.changes.ActiveLinks`).
    """

    def __init__(self, links: Graph, end: float | None = None):
        n = links.agents
        self.links = links
        self._active = None if links.changes is None else ActiveLinks(links, end)
        self.totals = np.zeros(len(TOTALS), np.int64)
        self.sums = np.zeros(len(SUMS))
        self._each = np.zeros((n, len(EACH)), np.int64)
        self.time = 0.0
        self.updates = np.zeros(n, np.int64)
        self.heard = np.zeros(links.indices.size, np.bool_)
        self._versions = np.zeros(n + 1, np.int64)
        self._answered = np.full(n, -1)
        self.made = np.zeros(n, np.int64)
        self._awaiting, self._within = np.zeros((n, 8), np.int32), np.zeros((n, 8), np.int64)
        self.failed = np.zeros(n, np.int64)
        self._begun = np.full((n, 2), -2, np.int64)
        self._waiting = np.zeros(8, np.int64), np.zeros(8)
        self._line = np.zeros(2, np.int64)
        self._until, self._is_served = np.zeros(n), np.zeros(n, np.bool_)

    def __getitem__(self, name: str) -> int:
        return int(self.totals[TOTALS.index(name)])

    @property
    def lost_releases(self) -> np.ndarray:
        """Releases of each agent that have reached nobody and never will, shape (n,)."""
        return np.asarray((self._awaiting == GONE).sum(axis=1))

    def sum(self, name: str) -> float:
        """One of `SUMS`."""
        return float(self.sums[SUMS.index(name)])

    def of_each(self, name: str) -> np.ndarray:
        """One of `EACH`, shape (n,)."""
        return self._each[:, EACH.index(name)]

    def served(self, time: float) -> float:
        """Time that owners have been served until a moment, of all owners together."""
        return self.sum("busy") + float((time - self._until[self._is_served]).sum())

    def count(self, events: np.ndarray) -> None:
        """Read the next piece of the stream."""
        if not events.size:
            return
        self._make_room(events)
        receivers = np.zeros(0, np.int64) if self._active is None else self._active.receivers(events)
        tally(
            events, receivers, self.links.star, self.totals, self.sums, self._each, self._versions,
            self.updates, self._answered, self.made, self._awaiting, self._within, self.failed, self.heard, self._begun,
            self.links.indptr, self.links.indices,
            self._until, self._is_served, *self._waiting, self._line,
        )  # fmt: skip
        self.time = float(events["time"][-1])

    def _make_room(self, events: np.ndarray) -> None:
        most = int(events["release"].max()) + 1
        agents, room = self._awaiting.shape
        if most > room:
            more = np.zeros((agents, max(most, 2 * room) - room), np.int32)
            self._awaiting = np.hstack([self._awaiting, more])
            self._within = np.hstack([self._within, more.astype(np.int64)])
        queued = int(np.count_nonzero(events["outcome"] == ev.QUEUED))
        first, last = self._line.tolist()
        seqs, times = self._waiting
        if last - first + queued > seqs.size:
            places = np.arange(first, last) % seqs.size
            size = 2 * (last - first + queued)
            self._waiting = np.zeros(size, np.int64), np.zeros(size)
            self._waiting[0][: last - first], self._waiting[1][: last - first] = seqs[places], times[places]
            self._line[:] = 0, last - first


class LostReleases:
    """Reads a stream of events, piece by piece.

    A release is lost when every message with it has failed at each receiver, and no other will have it. One that is on
    its way at the end, held for who is away, or in a model that may still be asked for, is not.

    Parameters
    ----------
    network : Network
    limits : ndarray of int, shape (n,), optional
        Most releases of each agent; no limit when left out.
    end : float, optional
        End of the run.
    """

    def __init__(self, network: Network, limits: np.ndarray | None = None, end: float | None = None):
        links, exchange = network.links, network.exchange
        self._links, self._end = links, end
        self._receivers = np.diff(links.indptr) if exchange.sends_to_all else np.ones(links.agents, int)
        # On an ideal network a broadcast reaches all neighbours at once; what derives from it may do otherwise.
        arrives = type(exchange) is Broadcast and network.channel.ideal
        arrives = arrives and network.compute is None and type(network.availability) is Always
        releases = (limits is None or bool(limits.any())) and not (arrives and links.changes is None)
        # Where messages name no release, it is in the version of the model. Or not all go to as many.
        named = links.changes is None and exchange.names_releases(network.updates)
        self._tallies = releases and not named
        self._failed = np.zeros((links.agents, 0), np.int64)  # by agent and release
        self._tally = Tally(links, end) if self._tallies else None

    def begin(self) -> "LostReleases":
        """One for a stream of the same network, where this one has read nothing."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._tally = Tally(self._links, self._end) if self._tallies else None
        return other

    def read(self, events: np.ndarray, kinds: np.ndarray | None = None) -> None:
        """Read the next piece of the stream; ``kinds`` are those of the events, where they are at hand."""
        if self._tally is not None:
            self._tally.count(events)
            return
        dropped = (events["kind"] if kinds is None else kinds) == ev.DROP
        if not dropped.any():
            return
        drops = events[dropped]
        drops = drops[(drops["release"] >= 0) & (drops["peer"] >= 0)]
        if drops.size:
            more = int(drops["release"].max()) + 1 - self._failed.shape[1]
            if more > 0:
                self._failed = np.pad(self._failed, ((0, 0), (0, max(more, self._failed.shape[1]))))
            np.add.at(self._failed, (drops["peer"], drops["release"]), 1)

    @property
    def releases(self) -> np.ndarray:
        """Releases of each agent that are lost, shape (n,)."""
        if self._tally is not None:
            return self._tally.lost_releases
        return np.asarray((self._failed == self._receivers[:, None]).sum(axis=1))

    @property
    def deliveries(self) -> np.ndarray:
        """Deliveries of each agent's releases that failed, shape (n,)."""
        return self._tally.failed if self._tally is not None else np.asarray(self._failed.sum(axis=1))
