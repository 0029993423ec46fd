"""The base of all exchanges, and the answers of owners to a learner's queries.

An owner gives a lost answer again, with a new release, if the channel asks for that.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

from p2psim.core.distributions import Quantity
from p2psim.core.events import LEARNER, NONE, OFFLINE, SUPERSEDED
from p2psim.core.options import Options
from p2psim.network.channels.draws import Draws
from p2psim.network.graph import Graph
from p2psim.network.order import RESENDING, RESPONSE
from p2psim.network.spec import SINGLY, CompiledExchange, Conduct, Ended, RunningNetwork, Steps


class Exchange(Options):
    """Base of all exchanges: what agents do when their clock ticks, or a message reaches them.

    An exchange of your own is a subclass with a ``kind``, its own keys, and ``start``. It writes no events itself:
    ``wake``, ``send``, ``commit`` and ``drop`` of the running network do, and see that they keep the event format. A
    message that was sent ends for each receiver in just one call, to ``heard`` or to ``lost``, whatever the channel
    does in between, so that an exchange need not know of delays, losses and collisions. An agent commits because of its
    own wake, or of a message that it has just heard, whose sender is then the peer of the commit.

    Attributes
    ----------
    kind : str
        The name, as ``kind: Literal["lazy"] = "lazy"``.
    has_clocks : bool
        Whether agents wake by their own clocks.
    needs_learner : bool
        Whether it is for a star: a central learner and its owners.
    in_rounds : bool
        Whether commits are made when a round closes, each of all that was heard in it: on a star by the learner, of all
        answers to its queries, and on a graph by each agent, of what its neighbours have sent.
    sends_to_all : bool
        Whether a release is sent to all neighbours of its agent; otherwise it is sent to one.
    updates_on_hearing : bool
        Whether agents can update a model when they hear another one (``updates: hear`` of the network), as averaging
        does.
    events_per_commit : int
        Of a star, events for each commit, to estimate the size of a run by.
    computes : bool
        Whether what agents compute takes the time of ``network.compute``: it calls ``work`` of the running network.
    delay_key : str
        Key of the exchange's time that ``network.compute`` takes the place of.
    anyone_answers : bool
        Whether each answer is any owner's by its rate, no matter which gave those before, on an ideal channel.
    gathers : bool
        Whether the learner uses all answers to a query that come until `round_deadline`.
    """

    part_kind: ClassVar[str] = "exchange"

    # Subclasses declare it with a Literal.
    kind: Any

    has_clocks: ClassVar[bool] = True
    needs_learner: ClassVar[bool] = False
    in_rounds: ClassVar[bool] = False
    sends_to_all: ClassVar[bool] = False
    updates_on_hearing: ClassVar[bool] = False
    events_per_commit: ClassVar[int] = 6
    computes: ClassVar[bool] = False
    delay_key: ClassVar[str] = ""
    anyone_answers: ClassVar[bool] = False
    gathers: ClassVar[bool] = False

    @property
    def pattern(self) -> str:
        """What agents do when they meet, in a word: its name, or that of its mode."""
        return str(self.kind)

    @property
    def hearers(self) -> int:
        """How many of two agents that meet hear the other's model, and may update at once: 0, 1 or 2."""
        return 0

    @property
    def sends_back(self) -> bool:
        """Whether agents who hear a message send one back."""
        return False

    @property
    def blocks(self) -> bool:
        """Whether an agent that waits for an answer answers no other."""
        return False

    @property
    def round_deadline(self) -> float | None:
        """Time after which a learner's round closes without the answers that have not come."""
        return None

    @property
    def by_edge(self) -> bool:
        """Whether links wake, so that releases go with sends, and not with commits (`EventChecker`)."""
        return False

    @property
    def polled(self) -> float | None:
        """Interval at which the learner asks everyone, where that is fixed."""
        return None

    @property
    def round_length(self) -> float | None:
        """Least time between two rounds of agents, where these act in rounds."""
        return None

    def asked(self, owners: int) -> int:
        """How many of so many owners the learner asks in a round."""
        return owners

    def asking_all(self) -> Exchange:
        """The same where the learner asks all owners in each round."""
        return self

    def needs_delivery(self, updates: str) -> bool:
        """Whether there is no commit without a message that arrives; ``updates`` as in the network."""
        return self.needs_learner or updates == "hear"

    def names_releases(self, updates: str) -> bool:
        """Whether messages name the releases that they carry; otherwise these are in the version of the model."""
        return self.needs_learner or self.by_edge or not self.needs_delivery(updates)

    def releases_per_wake(self, answerer_releases: bool) -> float:
        """Releases of all agents that follow one wake, about."""
        return 1.0

    def places(self, owners: int) -> int:
        """The most owners that a learner serves at once, out of all."""
        return 1

    @property
    def answer_delay(self) -> Quantity:
        """Time of the exchange that passes before an answer: the value of ``delay_key``."""
        return getattr(self, self.delay_key) if self.delay_key else 0.0

    def conduct(self, updates: str, answerer_releases: bool) -> Conduct:
        """What agents on a graph do, for the verifier of events; arguments as in the network.

        By default every commit makes a release; in rounds, every send where messages name releases. Override it if
        rounds can close before their messages have ended, if only those that woke make releases, or if an agent that
        waits for an answer answers nobody.
        """
        if not self.in_rounds or self.needs_learner:
            return SINGLY
        is_named = self.names_releases(updates)
        return Conduct("sends" if is_named else "commits", in_rounds=True, works_first=is_named)

    def check(self, links: Graph) -> None:
        """Raise a MeaningError if keys mean nothing on a graph; of p2psim's exchanges."""

    def compiled(self, links: Graph) -> CompiledExchange:
        """Form for the compiled engine, which asks p2psim's exchanges alone: SimPy runs those from outside."""
        raise NotImplementedError(f"{self.kind} has no compiled form")

    @abstractmethod
    def start(self, world: RunningNetwork) -> None:
        """Begin to act on the running network; called once, before time runs.

        Start clocks (``world.start_clocks(act)``) or processes of SimPy, which react to what they and the channel
        report: ``world.begin(steps)`` starts a process, in which ``yield from world.wait(delay, agent)`` and ``yield
        from world.until(time, agent)`` let time pass. Random numbers come from ``world.draws`` or ``world.streams``
        alone, each agent's from its own stream: purposes are those of `p2psim.core.randomness.PURPOSES`, such as
        ``peers``.

        Parameters
        ----------
        world : RunningNetwork
        """


_TO_LEARNER = (LEARNER,)


class Answers:
    """Gives answers, each with a release; a lost one again, while it is still wanted.

    An owner answers again, after a backoff, as long as it has not heard of a newer query, may make a release, and is
    online; no more often than the channel allows. Then, or without such a rule at once, the answer counts as lost.
    """

    def __init__(self, world: RunningNetwork):
        self._world = world
        self._limit = world.fresh.limit if world.fresh is not None else 0
        self._backoffs = Draws(world, "retransmit", world.fresh.backoff if world.fresh is not None else 0.0)
        # The query that each owner answers, as long as it may answer it again.
        self._wanted: dict[int, int] = {}

    def give(self, owner: int, query: int, version: int, heard: Ended, lost: Ended, again: int = 0) -> None:
        """Answer a query; ``again``: so often it was answered before."""
        world = self._world
        self._wanted[owner] = query

        def give_again(_: int, __: int, drop: int, ___: int, release: int) -> None:
            world.begin(self._give_again(owner, query, version, heard, lost, again + 1, drop, release))

        fails = give_again if again < self._limit else lost
        world.send(owner, _TO_LEARNER, version, query, world.release(owner), heard, fails)

    def _give_again(
        self,
        owner: int,
        query: int,
        version: int,
        heard: Ended,
        lost: Ended,
        again: int,
        drop: int,
        release: int,
    ) -> Steps:
        """After a backoff, answer a query again whose answer was lost, if that is still wanted."""
        world = self._world
        yield from world.wait(next(self._backoffs.of(owner)), owner, query, RESENDING)
        is_wanted = self._wanted.get(owner) == query
        if is_wanted and world.present[owner] and not world.is_spent(owner):
            self.give(owner, query, version, heard, lost, again)
        else:
            lost(owner, LEARNER, drop, version, release)

    def forget(self, owner: int) -> None:
        """Answer an older query no more: a newer one was heard."""
        self._wanted.pop(owner, None)


def hear(*_: int) -> None:
    """Do nothing yet: a neighbour's model is used when the agent next wakes."""


class QueriedOwners:
    """Owners that the learner asks all at once: each owes one answer, to the newest query that it has heard."""

    def __init__(self, world: RunningNetwork, response: Quantity):
        self._world = world
        self._owners = range(world.links.agents)
        self._delays = [world.draws("response", owner, response) for owner in self._owners]
        # Of each owner: number of the query that it will answer, and its version; version of the newest that it heard.
        self._owed: dict[int, tuple[int, int]] = {}
        self._versions = [0] * len(self._owners)
        self._answers = Answers(world)

    def _ask(self) -> int:
        """Send a query to all owners."""
        return self._world.send(
            LEARNER, self._owners, self._world.commits, NONE, NONE, self._hear, self._lose
        )

    @abstractmethod
    def _use(self, owner: int, _: int, answer: int, version: int, release: int) -> None:
        """Take note that an answer has arrived."""

    def _end(self, version: int) -> None:
        """Take note that one answer to a query is no longer waited for."""

    def _newest(self, owner: int) -> int:
        """Version of the query by which older ones, that it has overtaken on the way, are superseded."""
        return self._versions[owner]

    def _lose(self, _: int, __: int, ___: int, version: int, ____: int) -> None:
        """Take note that a query, or its answer, was lost."""
        self._end(version)

    def _hear(self, _: int, owner: int, query: int, version: int, __: int) -> None:
        """Hear a query; the owner will answer it, and no older one."""
        world = self._world
        self._answers.forget(owner)
        if world.is_spent(owner):
            self._end(version)
        elif world.misses(owner):
            world.drop(owner, LEARNER, version, query, OFFLINE)
            self._end(version)
        elif version < self._newest(owner):
            world.drop(owner, LEARNER, version, query, SUPERSEDED)
        else:
            if world.is_computing(owner):
                world.drop(owner, LEARNER, self._versions[owner], world.stop_work(owner), SUPERSEDED)
            elif owner in self._owed:
                older, its_version = self._owed[owner]
                world.drop(owner, LEARNER, its_version, older, SUPERSEDED)
            self._versions[owner] = version
            self._owed[owner] = query, version
            self._compute(owner, query, version)

    def _compute(self, owner: int, query: int, version: int) -> None:
        """Let an owner compute the answer to a query that it has heard."""

        def done(cause: int) -> None:
            self._world.begin(self._answer(owner, query, version, cause))

        def cancelled(_: int) -> None:
            del self._owed[owner]
            self._end(version)

        self._world.work(owner, version, query, done, cancelled)

    def _answer(self, owner: int, query: int, version: int, cause: int) -> Steps:
        """An owner that has heard a query: it answers after a delay, unless it has heard a newer one."""
        world = self._world
        yield from world.wait(next(self._delays[owner]), owner, query, RESPONSE)
        if self._owed.get(owner) != (query, version):
            return
        del self._owed[owner]
        if world.present[owner]:
            self._answers.give(owner, cause, version, self._use, self._lose)
        else:
            world.drop(owner, LEARNER, version, query, OFFLINE)
            self._end(version)
