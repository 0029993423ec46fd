"""What the verifier of a stream remembers of the events so far, and invariants of work that takes time."""

from collections.abc import Callable

import numpy as np

from p2psim.core import events as ev
from p2psim.network.changes import ActiveLinks
from p2psim.network.graph import Graph
from p2psim.network.spec import SINGLY, Conduct
from p2psim.network.verify_messages import Event, FreshAnswers, Heard, OpenMessage, Resending, Retries
from p2psim.network.verify_rounds import AgentRounds, LearnersRound, Waits


class WorkRules:
    """Who computes, and which models wait until it is done.

    Parameters
    ----------
    computes : bool
        Whether agents of the network take time to compute.
    own_links : bool
        Whether it is not known when links come and go.
    """

    def __init__(self, computes: bool, own_links: bool = False):
        self.computes, self._own_links = computes, own_links
        # Of each agent that computes: how it began, and what led to it.
        self._begun: dict[int, tuple[Event, Event]] = {}
        # Of each agent: models that it has heard while it computed, by the number of their delivery. Those who update
        # on waking use none of them.
        self._heard: dict[int, dict[int, Heard]] = {}
        self._done: set[int] = set()

    def advance(self) -> None:
        """Take note that time goes on: models that wait for who is done are not used any more."""
        for agent in self._done - self._begun.keys():
            self._heard.pop(agent, None)
        self._done.clear()

    def computing(self, agent: int) -> bool:
        """Whether an agent computes."""
        return agent in self._begun

    def hear(self, heard: Heard) -> None:
        """Take note of a model that an agent has heard from another one."""
        agent = heard.delivery.agent
        if heard.delivery.version != ev.NONE and (agent in self._begun or agent in self._done):
            self._heard.setdefault(agent, {})[heard.delivery.seq] = heard

    def waiting(self, agent: int, cause: int) -> Heard | None:
        """Take the model that has waited for an agent, if it is what the agent begins with now."""
        return self._heard.get(agent, {}).pop(cause, None)

    def check_begin(self, event: Event, origin: Event) -> None:
        """Check the beginning of a work, and take note of it and of what has led to it."""
        event.must(
            event.agent != ev.LEARNER and event.peer == ev.NOBODY, "only agents compute, by themselves"
        )
        event.must((event.release, event.outcome) == (ev.NONE, ev.OK), "it releases nothing, and is ok")
        event.must(event.agent not in self._begun, "it computes already")
        others = self._heard.pop(event.agent, {})
        event.must(self._own_links or not others, "a newer model has taken the place of that one")
        self._begun[event.agent] = event, origin

    def end(self, agent: int, cause: int) -> tuple[Event, Event] | None:
        """End the work of an agent, if it is what an event names as its cause: how it began, and what led to it."""
        begun = self._begun.get(agent)
        if begun is None or begun[0].seq != cause:
            return None
        del self._begun[agent]
        self._done.add(agent)
        return begun

    def drop(
        self, event: Event, is_offline: bool, is_spent: bool, links: Callable[[int | None], bool]
    ) -> bool:
        """Check the drop of work on a graph, or of a model that waits for it; returns whether it is one.

        ``links`` says whether the agent is linked now: with an agent, or with any.
        """
        agent, must = event.agent, event.must
        begun = self.end(agent, event.cause)
        waits = self._heard.get(agent, {})
        if begun is not None:
            if event.outcome == ev.ALONE:
                other = begun[1].peer if begun[1].kind == ev.DELIVER else None
                must(self._own_links or not links(other), "its links are there")
            else:
                must(event.outcome == ev.OFFLINE and is_offline, "work is dropped only when its agent leaves")
            must(
                (event.peer, event.version) == (ev.NOBODY, begun[0].version),
                "it is other work that was begun",
            )
            return True
        if event.cause not in waits:
            return False
        must((event.peer, event.version) == (ev.NOBODY, ev.NONE), "it is the message of no agent any more")
        is_newest = event.cause == max(waits)
        why = {ev.SUPERSEDED: not is_newest, ev.OFFLINE: is_offline, ev.SPENT: is_spent}
        must(why.get(event.outcome, False), "there is no reason to drop the model that waits")
        del waits[event.cause]
        return True


class VerifierState:
    """The events so far, as far as they bear on later ones; the parameters are those of `EventChecker`."""

    def __init__(
        self,
        links: Graph,
        limits: np.ndarray | None,
        goes_on: bool,
        by_edge: bool,
        resending: Resending,
        end: float = np.inf,
        computes: bool = False,
        own_links: bool = False,
        conduct: Conduct = SINGLY,
    ):
        self.links, self.limits, self.goes_on, self.by_edge = links, limits, goes_on, by_edge
        self.near = [set(links.of(agent).tolist()) for agent in range(links.agents)]
        self.active = ActiveLinks(links, end)
        self.seq, self.time = 0, 0.0
        self.offline: set[int] = set()
        # By seq: messages by that of their send, what a later event may name as its cause, and what agents heard of
        # each other at this moment by that of the delivery.
        self.open: dict[int, OpenMessage] = {}
        self.causes: dict[int, Event] = {}
        self.heard: dict[int, Heard] = {}
        self.versions: dict[int, int] = {}
        self.releases = [0] * links.agents
        self.retries, self.fresh = Retries(resending), FreshAnswers(resending)
        self.work, self.own_links = WorkRules(computes, own_links), own_links
        self.conduct, self.learners_round = conduct, LearnersRound()
        self.rounds, self.waits = AgentRounds(conduct, computes), Waits()

    def is_spent(self, agent: int) -> bool:
        """Whether an agent may make no more releases."""
        return self.limits is not None and agent != ev.LEARNER and self.releases[agent] >= self.limits[agent]

    def linked(self, agent: int, peer: int) -> bool:
        """Whether two are linked."""
        return 0 <= peer < self.links.agents if agent == ev.LEARNER else peer in self.near[agent]

    def receivers(self, send: Event) -> set[int]:
        """Who is to hear a message."""
        if send.peer != ev.NEIGHBOURS:
            return {send.peer}
        if send.agent == ev.LEARNER:
            return set(range(self.links.agents))
        return set(
            self.near[send.agent] if self.links.changes is None else self.active.of(send.agent).tolist()
        )

    def linked_now(self, agent: int, peer: int) -> bool:
        """Whether two that are linked some time are so at this moment."""
        return self.links.changes is None or self.active.linked(agent, peer)

    def is_alone(self, agent: int) -> bool:
        """Whether an agent has no neighbour at this moment."""
        return self.links.changes is not None and not self.active.degree(agent)

    def make_release(self, event: Event) -> None:
        """Check that an agent makes its next release, if it may."""
        agent, release = event.agent, event.release
        if release == ev.NONE and self.goes_on:
            event.must(self.limits is None or self.is_spent(agent), "it releases nothing, though it may")
            return
        event.must(release == self.releases[agent], f"its release should be number {self.releases[agent]}")
        self.releases[agent] += 1
        self.keep_limit(event)

    def keep_limit(self, event: Event) -> None:
        """Check that an agent does not exceed its limit."""
        if self.limits is not None:
            most = self.limits[event.agent]
            event.must(event.release < most, f"more than {most} releases")
