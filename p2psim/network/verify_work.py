"""Invariants of work that takes time: an agent begins to compute, is done, or stops; models wait until it is done."""

from collections.abc import Callable

from p2psim.core import events as ev
from p2psim.network.verify_event import Event, Heard


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
        must((event.peer, event.version) == (ev.NOBODY, ev.NONE), "it is nobody's message any more")
        is_newest = event.cause == max(waits)
        why = {ev.SUPERSEDED: not is_newest, ev.OFFLINE: is_offline, ev.SPENT: is_spent}
        must(why.get(event.outcome, False), "there is no reason to drop the model that waits")
        del waits[event.cause]
        return True
