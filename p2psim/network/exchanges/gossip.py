"""Gossip, the exchange of an agent with one neighbour at a time.

The agent pushes its model to a neighbour, pulls the neighbour's, or exchanges models with it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from p2psim.core.events import ALONE, BUSY, NOBODY, NONE, OFFLINE, SPENT, SUPERSEDED
from p2psim.network.channels.draws import UNIT
from p2psim.network.exchanges.protocol import Exchange, hear
from p2psim.network.graph import Graph, asking_side
from p2psim.network.spec import SINGLY, CompiledExchange, Conduct, RunningNetwork

#: What follows when an agent has computed; returns whether its links are there.
Then = Callable[[int], bool]


class Gossip(Exchange):
    """On waking, an agent turns to one neighbour.

    What follows depends on whether the algorithm updates a model when its agent wakes (``updates: wake`` of the
    network: coordinate descent, model propagation) or when it hears another model (``hear``: averaging).

    ``push``
        Wake: the agent updates its model and sends it. Hear: it sends its model, and the
        agent that hears it updates.
    ``pull``
        The agent asks (a send without a model: version −1); the neighbour sends its model; on hearing it the agent
        updates. The same for both kinds of algorithms.
    ``push-pull``
        The agent sends its model; the neighbour sends its own model back, and then updates with what it heard; on
        hearing the answer the agent updates. Both models are those from before the exchange. The same for both kinds.
        With some algorithms (``answerer_releases`` of the network) the agent that answers makes no release with its
        update.
    ``edge``
        A link wakes, for algorithms whose variables belong to links (gossip ADMM). The agent makes its local steps
        and sends; on hearing it the neighbour makes its own and sends back; on hearing that the agent commits. There
        is one commit for each link woken, with the neighbour as its peer. Local steps touch data, so that each end's
        release goes with its send, and the commit carries none.

    A commit that follows a delivery names it as its cause, and has the sender as its peer; where an update touches
    data the commit makes a release. Versions count an agent's commits; a model that is sent without a commit before
    carries the version that its agent then has. A lost question or answer ends the exchange: nobody waits for it.

    An agent that may make no more releases, and does not go on without its data, makes no more updates nor local
    steps; its wake is ``spent`` where it would lead to one. It still answers in ``pull`` and ``push-pull``, and still
    sends its model in ``push`` where waking makes no update.

    On a graph that changes, the neighbour is drawn among those of that moment; an agent that has none wakes ``alone``,
    and does nothing. What was sent arrives, even if its link goes meanwhile; but an answer needs a link too, and is
    not sent when there is none any more. In ``push-pull`` the neighbour then still updates with what it heard.

    Where agents take time to compute (``network.compute``), what they have computed follows after that time. A tick
    meanwhile is ``busy`` where it would lead to another update. A model that is heard meanwhile waits; a newer one
    takes its place. Agents go on to answer and to send their models. Links of ``edge`` that have gone when an agent has
    computed leave its local steps undone. Where the agent that answers in push-pull makes no release, its update takes
    no time, and the one that wakes computes before it sends if the algorithm updates on waking.

    With ``blocking`` an agent that waits for an answer does not answer others (AD-PSGD as it is printed). Agents that
    wait in a cycle wait for ever, so that it takes a bipartite graph: agents of one side ask, and those of the other
    answer, and update alone when they wake. The side that asks is that of the smallest agent of each component. It is
    for algorithms in which the agent that answers makes no release.

    Choices
    -------
    mode: push
        the one that wakes sends its model
    mode: pull
        the one that wakes gets the other's model
    mode: push-pull
        each gets the other's model
    mode: edge
        a link wakes, and both its ends act; for gossip ADMM
    partner: uniform
        every neighbour with the same chance
    partner: weight
        neighbours in proportion to the weights of their links
    """

    kind: Literal["gossip"] = "gossip"
    mode: Literal["push", "pull", "push-pull", "edge"] = Field("push", description="which way models go")
    partner: Literal["uniform", "weight"] = Field(
        "uniform", description="how the neighbour is drawn: each alike, or in proportion to the link's weight"
    )
    blocking: bool = Field(
        False,
        description="in push-pull, whether an agent that waits answers no other: then one side of a bipartite graph "
        "asks, and the other answers",
    )

    updates_on_hearing: ClassVar[bool] = True
    computes: ClassVar[bool] = True

    @property
    def by_edge(self) -> bool:
        """Whether links wake."""
        return self.mode == "edge"

    @property
    def pattern(self) -> str:
        """The mode."""
        return self.mode

    @property
    def hearers(self) -> int:
        """How many of two agents that meet hear the other's model."""
        return {"push": 1, "pull": 1, "push-pull": 2, "edge": 0}[self.mode]

    @property
    def sends_back(self) -> bool:
        """Whether agents who hear a message send one back."""
        return self.mode != "push"

    @property
    def blocks(self) -> bool:
        """Whether an agent that waits for an answer answers no other."""
        return self.blocking

    @model_validator(mode="after")
    def _waits_for_answers(self) -> Gossip:
        if self.blocking and self.mode != "push-pull":
            raise ValueError("blocking: is for push-pull, in which the agent that wakes waits for an answer")
        return self

    def check(self, links: Graph) -> None:
        """Raise a MeaningError if agents that wait answer no others, and agents could wait in a cycle."""
        if self.blocking:
            asking_side(links)

    def conduct(self, updates: str, answerer_releases: bool) -> Conduct:
        """What agents do, for the verifier of events."""
        wakers = Conduct("wakers", works_first=updates == "wake", blocks=self.blocking)
        return wakers if self.mode == "push-pull" and not answerer_releases else SINGLY

    def compiled(self, links: Graph) -> CompiledExchange:
        """Form for the compiled engine."""
        settings = {"by_weight": self.partner == "weight", "blocking": self.blocking}
        none = np.zeros(links.agents, np.uint8)
        arrays = {"asked": none, "asks": asking_side(links).astype(np.uint8)} if self.blocking else {}
        return CompiledExchange(self.mode, "gossip", settings, arrays)

    def releases_per_wake(self, answerer_releases: bool) -> float:
        """Two where both agents that meet make one."""
        return 2.0 if self.by_edge or (self.mode == "push-pull" and answerer_releases) else 1.0

    def needs_delivery(self, updates: str) -> bool:
        """Whether there is no commit without a message that arrives."""
        return self.mode != "push" or updates == "hear"

    def start(self, world: RunningNetwork) -> None:
        """Start the agents' clocks."""
        meet = _GossipRun(self, world)
        if self.mode == "push":
            world.start_clocks(meet.push if world.updates == "wake" else meet.tell)
        else:
            world.start_clocks({"pull": meet.ask, "push-pull": meet.swap, "edge": meet.join}[self.mode])


class _GossipRun:
    """What the agents of one world do when they wake or hear something."""

    def __init__(self, options: Gossip, world: RunningNetwork):
        self._world = world
        self._by_weight = options.partner == "weight"
        self._choices = [self._partners(agent) for agent in range(world.links.agents)]
        # Whether agents compute before they send, and not when they have heard.
        self._works_first = options.conduct(world.updates, world.answerer_releases).works_first
        # Who asks, and who of them waits for an answer, where that blocks.
        self._asks = asking_side(world.links).tolist() if options.blocking else None
        self._awaiting: set[int] = set()
        # Of each agent that computes: number of the delivery of a model that waits, and what it leads to.
        self._waiting: dict[int, tuple[int, Then]] = {}

    def _partners(self, agent: int) -> Iterator[tuple[int]]:
        """An agent's next partners, without end, each as the receivers of a message."""
        links, running, known = self._world.links, [], None
        weight_of = dict(zip(links.of(agent).tolist(), links.weights_of(agent).tolist(), strict=True))
        for u in self._world.draws("peers", agent, UNIT):
            neighbours = self._world.neighbours(agent)
            if self._by_weight:
                if neighbours is not known:
                    known, running = neighbours, list(accumulate(weight_of[peer] for peer in neighbours))
                # Rounding can lift the mark to the whole sum: that is the last link's.
                place = min(bisect_right(running, u * running[-1]), len(running) - 1)
            else:
                place = int(u * len(neighbours))
            yield (neighbours[place],)

    def _wake(self, agent: int) -> int | None:
        """Number of the wake of an agent that can make an update."""
        world = self._world
        if world.is_spent(agent) and not world.goes_on:
            world.wake(agent, SPENT)
            return None
        if world.is_computing(agent) or agent in self._awaiting:
            world.wake(agent, BUSY)
            return None
        if not world.neighbours(agent) and not self._only_answers(agent):
            world.wake(agent, ALONE)
            return None
        return world.wake(agent)

    def _only_answers(self, agent: int) -> bool:
        """Whether an agent is of the side that does not ask."""
        return self._asks is not None and not self._asks[agent]

    def _compute(self, agent: int, cause: int, then: Then) -> None:
        """Compute because of a wake, or of a model that was heard; a newer one takes the place of one that waits."""
        world = self._world
        read = world.versions[agent]
        if world.is_computing(agent) or agent in self._waiting:
            self._drop_waiting(agent, SUPERSEDED)
            self._waiting[agent] = cause, then
            return

        def done(cause: int) -> None:
            if not then(cause):
                world.drop(agent, NOBODY, read, cause, ALONE)
            self._compute_next(agent)

        def cancelled(_: int) -> None:
            self._drop_waiting(agent, OFFLINE)

        world.work(agent, read, cause, done, cancelled)

    def _compute_next(self, agent: int) -> None:
        """Begin with the model that waits, if there is one."""
        if agent not in self._waiting:
            return
        if self._world.is_spent(agent) and not self._world.goes_on:
            self._drop_waiting(agent, SPENT)
        elif not self._world.is_computing(agent):
            self._compute(agent, *self._waiting.pop(agent))

    def _drop_waiting(self, agent: int, outcome: int) -> None:
        if agent in self._waiting:
            delivery, _ = self._waiting.pop(agent)
            self._world.drop(agent, NOBODY, NONE, delivery, outcome)

    def _update(self, sender: int, agent: int, delivery: int, *_: int) -> None:
        """Commit with a model that was heard."""
        world = self._world

        def commit(cause: int) -> bool:
            world.commit(agent, sender, cause, world.release(agent))
            world.settle()
            return True

        if world.is_spent(agent) and not world.goes_on:
            return
        if self._works_first:
            commit(delivery)
        else:
            self._compute(agent, delivery, commit)

    # push

    def push(self, agent: int) -> None:
        """Update on waking, and tell a neighbour."""
        self._world.update_and_send(agent, self._choices, hear)

    def tell(self, agent: int) -> None:
        """Tell a neighbour, which then updates."""
        world = self._world
        if not world.neighbours(agent):
            world.wake(agent, ALONE)
            return
        wake = world.wake(agent)
        world.send(agent, next(self._choices[agent]), world.versions[agent], wake, NONE, self._update, hear)

    # pull

    def ask(self, agent: int) -> None:
        """Ask a neighbour for its model."""
        wake = self._wake(agent)
        if wake is not None:
            self._world.send(agent, next(self._choices[agent]), NONE, wake, NONE, self._answer, hear)

    def _answer(self, sender: int, agent: int, delivery: int, *_: int) -> None:
        """Send one's model to who asked or told, if it is still a neighbour."""
        world = self._world
        if not world.linked(agent, sender):
            self._awaiting.discard(sender)
            return
        world.send(
            agent, (sender,), world.versions[agent], delivery, NONE, self._hear_answer, self._lose_answer
        )

    def _hear_answer(self, sender: int, agent: int, delivery: int, *_: int) -> None:
        self._awaiting.discard(agent)
        self._update(sender, agent, delivery)

    def _lose_answer(self, _: int, agent: int, *__: int) -> None:
        """Take note that an agent waits for an answer that will not come."""
        self._awaiting.discard(agent)

    def _lose_question(self, agent: int, *_: int) -> None:
        self._awaiting.discard(agent)

    # push-pull

    def swap(self, agent: int) -> None:
        """Send one's model to a neighbour, which answers with its own."""
        wake = self._wake(agent)
        if wake is not None and self._only_answers(agent):
            self._compute(agent, wake, lambda cause: self._update_alone(agent, cause))
        elif wake is not None and self._works_first:
            self._compute(agent, wake, lambda cause: self._send_to_swap(agent, cause))
        elif wake is not None:
            self._send_to_swap(agent, wake)

    def _send_to_swap(self, agent: int, cause: int) -> bool:
        """Send one's model to a neighbour, if there is one now."""
        world = self._world
        is_linked = bool(world.neighbours(agent))
        if is_linked:
            partner, version = next(self._choices[agent]), world.versions[agent]
            if self._asks is not None:
                self._awaiting.add(agent)
            world.send(agent, partner, version, cause, NONE, self._swap_back, self._lose_question)
        return is_linked

    def _update_alone(self, agent: int, cause: int) -> bool:
        """Update without a neighbour."""
        world = self._world
        world.commit(agent, NOBODY, cause, world.release(agent))
        world.settle()
        return True

    def _swap_back(self, sender: int, agent: int, delivery: int, *_: int) -> None:
        world = self._world
        if world.answerer_releases:
            self._answer(sender, agent, delivery)
            self._update(sender, agent, delivery)
            return
        # The other's release may be the last one: this update still belongs to it.
        world.keep_going()
        self._answer(sender, agent, delivery)
        world.commit(agent, sender, delivery, NONE)
        world.may_end()

    # edge

    def join(self, agent: int) -> None:
        """Make local steps, and send to the other end of a link."""
        wake = self._wake(agent)
        if wake is not None:
            self._compute(agent, wake, lambda cause: self._send_first(agent, cause))

    def _send_first(self, agent: int, cause: int) -> bool:
        """Send local steps to a neighbour, if there is one now."""
        is_linked = bool(self._world.neighbours(agent))
        if is_linked:
            self._send_steps(agent, next(self._choices[agent]), cause, first=True)
        return is_linked

    def _join_back(self, sender: int, agent: int, delivery: int, *_: int) -> None:
        world = self._world
        if world.linked(agent, sender) and (not world.is_spent(agent) or world.goes_on):
            self._compute(agent, delivery, lambda cause: self._send_back(agent, sender, cause))

    def _send_back(self, agent: int, sender: int, cause: int) -> bool:
        """Answer with local steps, if the link is still there."""
        is_linked = self._world.linked(agent, sender)
        if is_linked:
            self._send_steps(agent, (sender,), cause, first=False)
        return is_linked

    def _send_steps(self, agent: int, receiver: tuple[int], cause: int, first: bool) -> None:
        world = self._world
        release, then = world.release(agent), self._join_back if first else self._close
        world.send(agent, receiver, world.versions[agent], cause, release, then, hear)

    def _close(self, sender: int, agent: int, delivery: int, *_: int) -> None:
        self._world.commit(agent, sender, delivery, NONE)
