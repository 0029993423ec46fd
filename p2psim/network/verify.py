"""Invariants that every stream of events must keep, whatever made it.

The check is a second, plain reading of the event format: it shares no code with the engines.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from p2psim.core import events as ev
from p2psim.core.times import ROUNDING
from p2psim.network.graph import Graph
from p2psim.network.spec import SINGLY, Conduct
from p2psim.network.verify_messages import NEVER, Event, EventsError, Resending
from p2psim.network.verify_order import UNKNOWN, OrderChecker, Ordering
from p2psim.network.verify_rules import check_begin, check_commit, check_end, check_send
from p2psim.network.verify_state import VerifierState

__all__ = ["EventChecker", "EventsError", "verify"]


class EventChecker:
    """Reads a stream chunk by chunk and raises at the first event that breaks an invariant.

    Checked: sequence numbers count from 0; time is finite, never goes back, and does not pass the end; a poll's queries
    leave at multiples of its interval; kinds, outcomes, agents and peers exist, and peers are neighbours; what is sent
    goes over links of that moment, and an agent that wakes alone has none; nobody wakes, sends or commits while
    offline; every delivery and every drop of a message has a send, of that message and to that receiver, and there is
    at most one for each; a query is superseded, a waiting owner turned away, only once; every commit of a model carries
    the next version, and its cause comes before it; the learner sends the model of that moment, and commits the release
    that the answer carries, or closes the round of its last query to all, once; who hears another agent's model answers
    and commits at that moment or never, once each, and answers before it commits; answers are not answered; agents that
    act in rounds all wake at one moment, send their models once to all their neighbours, and commit together, when all
    that was sent has ended unless there is a deadline; a message is sent again no more often than allowed, as it was,
    and after it failed; a query is answered again, with a new release, only after the answer was lost; releases of an
    agent count from 0, each is made once, where the exchange makes them, and none exceeds the limit; where agents take
    time to compute, each update and answer follows a beginning, with the model that its agent had then (or the
    query's), and an agent computes one thing at a time; events of one instant keep the order of the model, as far as
    it can be told from them (`p2psim.network.verify_order`).

    Parameters
    ----------
    links : Graph
        Who is linked with whom; links that change are read anew, apart from the engines.
    limits : ndarray of int, shape (n,), optional
        The most releases that each agent may make.
    goes_on : bool
        Whether agents go on without their data when they may make no more.
    by_edge : bool
        Whether links wake, so that the releases of agents go with their sends, and their commits carry none.
    resending : Resending
        What may be sent again.
    end : float
        Time after which nothing happens.
    polled : float, optional
        Interval of a poll.
    order : Ordering
        What is known of the network for the order of events at one instant.
    conduct : Conduct
        What agents on a graph do: which events make their releases, and whether they act in rounds.
    """

    def __init__(
        self,
        links: Graph,
        limits: np.ndarray | None = None,
        goes_on: bool = False,
        by_edge: bool = False,
        resending: Resending = NEVER,
        end: float = np.inf,
        polled: float | None = None,
        order: Ordering = UNKNOWN,
        conduct: Conduct = SINGLY,
    ):
        work = order.computes, order.own_links
        self._state = VerifierState(links, limits, goes_on, by_edge, resending, end, *work, conduct)
        self._end, self._polled = end, polled
        self._order = OrderChecker(order, self._state, resending)

    def check(self, events: np.ndarray) -> None:
        """Check the next chunk.

        Raises
        ------
        EventsError
            Naming the event and the invariant.
        """
        if events.dtype != ev.EVENT:
            raise EventsError(f"events have dtype {events.dtype}, not that of the event format")
        for event in map(Event, *(events[name].tolist() for name in Event._fields)):
            self._check_event(event)

    def _check_event(self, event: Event) -> None:
        state, must = self._state, event.must
        seq, time, kind, agent, peer, version, cause, release, outcome = event
        must(seq == state.seq, f"its number should be {state.seq}")
        is_later = bool(np.isfinite(time)) and time >= state.time
        must(is_later, f"time goes back or is not finite; it was {state.time}")
        must(time <= self._end, f"the run ended at {self._end}")
        must(kind < len(ev.KINDS) and outcome < len(ev.OUTCOMES), "unknown kind or outcome")
        exists = 0 <= agent < state.links.agents or (agent == ev.LEARNER and state.links.star)
        must(exists, "there is no such agent")
        must(ev.NONE <= cause < seq, f"its cause, event {cause}, does not come before it")
        if time > state.time:
            state.heard.clear()
            state.work.advance()
            state.waits.advance()
        state.seq, state.time = seq + 1, time
        state.active.advance(time)
        if kind in (ev.WAKE, ev.SEND, ev.COMMIT, ev.RETRY, ev.BEGIN):
            must(agent not in state.offline, "the agent is offline")
        if kind in (ev.SEND, ev.COMMIT):
            must(outcome == ev.OK, "a send or a commit is ok")
        if peer >= ev.LEARNER:
            must(state.linked(agent, peer), f"it is not linked with {peer}")
        is_in_turn = not state.rounds.is_closing or state.rounds.owns(event)
        must(is_in_turn, "agents of a round have not all closed it")
        places = self._order.places(event)
        if kind == ev.WAKE:
            must(agent != ev.LEARNER and peer == ev.NOBODY, "only agents wake, and with nobody")
            is_bare = (version, cause, release) == (ev.NONE, ev.NONE, ev.NONE)
            must(is_bare, "a wake carries and releases nothing, of no cause")
            must(
                outcome in (ev.OK, ev.QUEUED, ev.BUSY, ev.SPENT, ev.OFFLINE, ev.ALONE),
                "its outcome is not that of a wake",
            )
            may_be_alone = self._order.known.own_links or state.is_alone(agent)
            must(outcome != ev.ALONE or may_be_alone, "the agent has neighbours")
            must(outcome != ev.OFFLINE or ev.LEARNER in state.offline, "the learner is online")
            is_busy = outcome == ev.BUSY and not state.links.star
            may_be_busy = state.work.computing(agent) or (state.conduct.blocks and state.waits.waits(agent))
            must(not is_busy or may_be_busy, "it is not busy: it computes nothing, and waits for nothing")
            if state.conduct.in_rounds:
                state.rounds.wake(event)
            elif outcome in (ev.OK, ev.QUEUED):
                state.causes[seq] = event
        elif kind == ev.SEND:
            if agent == ev.LEARNER and cause == ev.NONE and self._polled is not None:
                must(self._is_due(time), f"it is due at a multiple of {self._polled}")
            check_send(state, event)
        elif kind in (ev.DELIVER, ev.DROP):
            check_end(state, event)
        elif kind == ev.COMMIT:
            check_commit(state, event)
        elif kind == ev.BEGIN:
            check_begin(state, event)
        elif kind == ev.RETRY:
            state.retries.check(event, state.open.get(cause), event.peer in state.offline)
        elif kind == ev.LEAVE:
            must(agent not in state.offline, "only an agent that is online leaves")
            must((peer, version) == (ev.NOBODY, ev.NONE), "an agent that leaves takes nothing along")
            state.offline.add(agent)
        elif kind == ev.JOIN:
            must(agent in state.offline, "the agent was online already")
            state.offline.discard(agent)
            _check_return(state, event)
        self._order.check(event, places)

    def _is_due(self, time: float) -> bool:
        """Whether a poll's query leaves at a multiple of its interval, or at an end that is one but for rounding."""
        assert self._polled is not None
        due = round(time / self._polled) * self._polled
        return time == due or (time == self._end and abs(due - time) <= ROUNDING * time)


def verify(
    chunks: Iterable[np.ndarray],
    links: Graph,
    limits: np.ndarray | None = None,
    goes_on: bool = False,
    **options: Any,
) -> int:
    """Check a whole stream.

    Parameters
    ----------
    chunks : iterable of ndarray
        Chunks of events, in order.
    links : Graph
    limits : ndarray of int, shape (n,), optional
    goes_on : bool
    **options
        These and other parameters are those of `EventChecker`.

    Returns
    -------
    int
        Number of events.

    Raises
    ------
    EventsError
        Naming the first event that breaks an invariant.
    """
    checker = EventChecker(links, limits, goes_on, **options)
    total = 0
    for events in chunks:
        checker.check(events)
        total += events.size
    return total


def _check_return(state: VerifierState, event: Event) -> None:
    if event.peer >= ev.LEARNER:
        event.must(event.peer not in state.offline, "it fetches a model from an agent that is offline")
        event.must(state.linked_now(event.agent, event.peer), "its link with that agent is not there now")
        is_current = event.version == state.versions.get(event.peer, 0)
        event.must(is_current, "it does not fetch the model of that moment")
    else:
        is_known = event.peer == ev.NOBODY and event.version in (ev.NONE, 0)
        event.must(is_known, "it comes back with a model that nobody has")
