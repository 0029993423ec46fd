"""What the verifier of a stream of events remembers of the events so far."""

import numpy as np

from p2psim.core import events as ev
from p2psim.network.changes import ActiveLinks
from p2psim.network.graph import Graph
from p2psim.network.verify_event import Event, Heard, OpenMessage
from p2psim.network.verify_resending import FreshAnswers, Resending, Retries
from p2psim.network.verify_rounds import SINGLY, AgentRounds, Conduct, LearnersRound, Waits
from p2psim.network.verify_work import WorkRules


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
