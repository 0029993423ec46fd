"""Invariants of rounds: of agents, which all commit when one closes, and of a learner, whose commit closes it."""

from collections.abc import Collection

from p2psim.core import events as ev
from p2psim.network.spec import Conduct
from p2psim.network.verify_messages import Event


class AgentRounds:
    """The round of agents that is open.

    Parameters
    ----------
    conduct : Conduct
    computes : bool
        Whether agents take time to compute.
    """

    def __init__(self, conduct: Conduct, computes: bool):
        self._has_deadline = conduct.has_deadline
        self._works_first, self._works_last = (
            computes and works for works in (conduct.works_first, not conduct.works_first)
        )
        # When it began; the last agent that has woken; the wake of each whose part has not ended, and what it computes;
        # and the number of the send of each that has sent.
        self._begun, self._woken = -1.0, ev.NONE
        self._wakes: dict[int, Event] = {}
        self._works: dict[int, Event] = {}
        self._sends: dict[int, int] = {}
        # Who has still to close it, once it closes.
        self._closing: list[int] = []

    @property
    def is_closing(self) -> bool:
        """Whether the round closes, but not all agents have."""
        return bool(self._closing)

    def owns(self, event: Event) -> bool:
        """Whether an event is an update in the round that is open, its beginning, or in its place."""
        causes = [of[event.agent].seq for of in (self._wakes, self._works) if event.agent in of]
        return event.cause in causes and event.kind in (ev.BEGIN, ev.COMMIT, ev.DROP)

    def wake(self, event: Event) -> None:
        """Check that an agent begins a round with all others, in their order."""
        is_next = event.time > self._begun or event.agent > self._woken
        event.must(is_next, "agents begin a round in their order, each once")
        event.must(event.time == self._begun or not self._wakes, "the round before has not closed")
        if event.time > self._begun:
            self._sends.clear()
        self._begun, self._woken = event.time, event.agent
        if event.outcome == ev.OK:
            self._wakes[event.agent] = event

    def begin(self, event: Event, on_their_way: Collection[int]) -> Event:
        """Check the beginning of a work, before the send or as the round closes; returns the wake that led to it."""
        must, no_wake = event.must, "its cause is not its agent's wake in this round"
        wake = event.known(self._wakes.get(event.agent), no_wake)
        must(wake.seq == event.cause, no_wake)
        must(event.agent not in self._works, "it has begun already")
        if self._works_first:
            must(event.time == self._begun, "it does not begin as it wakes")
        else:
            self._check_turn(event, on_their_way, False)
        self._works[event.agent] = event
        return wake

    def send(self, event: Event) -> None:
        """Check that an agent sends its model once, as it wakes, or when it has computed."""
        agent, must = event.agent, event.must
        origin = (self._works if self._works_first else self._wakes).get(agent)
        must(
            origin is not None and origin.seq == event.cause,
            "its cause is not its sender's part in this round",
        )
        must(self._works_first or event.time == self._begun, "it is not sent as its sender wakes")
        must(agent not in self._sends, "it is its sender's second message of this round")
        self._sends[agent] = event.seq
        self._works.pop(agent, None)

    def end(self, event: Event, on_their_way: Collection[int], is_offline: bool, may_be_alone: bool) -> bool:
        """Check the commit of an agent that took part, or what comes in its place; returns whether it has sent.

        Parameters
        ----------
        event : Event
        on_their_way : collection of int
            Numbers of the sends of messages that have not ended.
        is_offline : bool
            Whether the agent is.
        may_be_alone : bool
            Whether there may have been nobody to send to.
        """
        agent, must = event.agent, event.must
        work = self._works.pop(agent, None)
        is_work = work is not None and work.seq == event.cause
        if event.kind == ev.COMMIT:
            must(event.peer == ev.NEIGHBOURS, "it closes its round with what one agent has sent")
            is_alone = may_be_alone and self._works_first and agent not in self._sends
            must(is_work == (self._works_last or is_alone), "its update was not computed, or not then")
        else:
            version = work.version if work is not None and is_work else ev.NONE
            about = event.peer, event.version, event.release
            must(about == (ev.NOBODY, version, ev.NONE), "an agent that does not update carries nothing")
            is_late = is_work and self._works_first and event.outcome == ev.SUPERSEDED
            must(is_late or event.outcome == ev.OFFLINE, "an agent that does not update is away, or too late")
            must(is_late or is_offline, "it takes part in the round, and is online")
        is_turn = not is_work or event.outcome == ev.SUPERSEDED
        if is_turn or (self._works_first and event.kind == ev.COMMIT):
            must(is_work or agent in self._sends or may_be_alone, "it has not sent its model")
            self._check_turn(event, on_their_way, may_be_alone)
        elif agent in self._closing:
            self._closing.remove(agent)
        del self._wakes[agent]
        return agent in self._sends

    def _check_turn(self, event: Event, on_their_way: Collection[int], may_be_alone: bool) -> None:
        """Check that agents close a round one after the other, when nothing is waited for."""
        if not self._closing:
            is_over = (may_be_alone or not self._works) and not any(
                seq in on_their_way for seq in self._sends.values()
            )
            must_wait = not self._has_deadline and event.outcome != ev.SUPERSEDED
            event.must(is_over or not must_wait, "messages of its round are on their way")
            self._closing = sorted(self._wakes)
        event.must(event.agent == self._closing.pop(0), "another agent closes this round before it")


class Waits:
    """Who waits for an answer, where that blocks: who asks answers nobody, and waits for one answer at a time."""

    def __init__(self) -> None:
        # The question of each that waits; which of them were heard at this moment, and may get no answer as their links
        # have gone; who waits for each answer; and who has ever asked, or answered.
        self._asks: dict[int, int] = {}
        self._heard: set[int] = set()
        self._answers: dict[int, int] = {}
        self._askers: set[int] = set()
        self._answerers: set[int] = set()

    def waits(self, agent: int) -> bool:
        """Whether an agent waits."""
        return agent in self._asks and agent not in self._heard

    def send(self, event: Event, is_answer: bool) -> None:
        """Check a question or an answer."""
        agent, must = event.agent, event.must
        if is_answer:
            must(agent not in self._askers, "it answers, and is of those that ask and wait")
            self._answerers.add(agent)
            self._answers[event.seq] = event.peer
            self._heard.discard(event.peer)
        else:
            must(not self.waits(agent), "it asks while it waits for an answer")
            must(agent not in self._answerers, "it asks, and is of those that answer")
            self._askers.add(agent)
            self._asks[agent] = event.seq

    def end(self, event: Event) -> None:
        """Take note of the end of a message."""
        if event.cause in self._answers:
            self._asks.pop(self._answers.pop(event.cause), None)
        elif self._asks.get(event.peer) == event.cause:
            if event.kind == ev.DELIVER:
                self._heard.add(event.peer)
            else:
                del self._asks[event.peer]

    def advance(self) -> None:
        """Take note that time goes on: who was heard and got no answer does not wait any more."""
        for agent in self._heard:
            del self._asks[agent]
        self._heard.clear()


class LearnersRound:
    """The queries of a learner that no wake has caused: to all owners, or to some at one moment."""

    def __init__(self) -> None:
        # The last query to all, or the first one to some, as long as no commit has closed its round; when it was sent,
        # and to which owners. With one owner, a poll's query is as good as a round's.
        self._first, self._time = ev.NONE, -1.0
        self._asked: set[int] = set()

    def ask(self, event: Event) -> None:
        """Take note of a query: the first of a round, or another one to some owners."""
        is_more = event.peer >= 0 and bool(self._asked) and self._time == event.time
        if is_more:
            event.must(event.peer > max(self._asked), "owners are asked in their order, each once")
        else:
            self._first, self._time = event.seq, event.time
            self._asked.clear()
        if event.peer >= 0:
            self._asked.add(event.peer)

    def close(self, event: Event) -> None:
        """Check the commit that closes a round."""
        is_open = event.cause != ev.NONE and event.cause == self._first
        event.must(is_open, "it closes no round: that is its last query to all, or the first to some, once")
        event.must(event.release == ev.NONE, "it carries a release of one owner")
        self._first = ev.NONE
        self._asked.clear()
