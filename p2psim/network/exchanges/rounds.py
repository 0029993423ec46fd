"""The learner asks at regular times: everyone, or some, in rounds, with one step of all the answers of a round."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from p2psim.core.distributions import Quantity, least
from p2psim.core.errors import MeaningError
from p2psim.core.events import LEARNER, NEIGHBOURS, NONE
from p2psim.core.options import Few, Positive
from p2psim.network.channels.draws import UNIT
from p2psim.network.exchanges.protocol import Exchange, QueriedOwners
from p2psim.network.graph import Graph
from p2psim.network.order import DEADLINE, POLL, ROUND
from p2psim.network.spec import CompiledExchange, RunningNetwork, Steps


class Round(Exchange):
    """The learner broadcasts its model, waits for the answers, and then makes one step of all of them: a commit.

    A round begins when the one before has closed, and at the earliest an interval after that one began. It closes when
    nothing of it is on its way any more: the learner knows which owners are away or have no release left, and whose
    query or answer was lost. With a deadline it closes then at the latest; an answer that comes later arrives, and is
    not used. An owner that hears a query drops the answer that it still owes to an older one, touching no data for it.
    A learner that is away begins no round, and closes one when it returns.

    With ``participants``, this many owners are drawn for each round, uniformly and without replacement, whether they
    are there or not; each is sent a separate query, in their order, and the others hear nothing.
    """

    kind: Literal["round"] = "round"
    interval: Positive = Field(1.0, description="least time between the beginnings of two rounds")
    response: Quantity = Field(0.0, description="time between hearing a query and sending the answer")
    deadline: Positive | None = Field(
        None, description="time after which a round closes without the owners that have not answered"
    )
    participants: Few | None = Field(None, description="owners drawn for each round; all when left out")

    has_clocks: ClassVar[bool] = False
    needs_learner: ClassVar[bool] = True
    computes: ClassVar[bool] = True
    delay_key: ClassVar[str] = "response"
    in_rounds: ClassVar[bool] = True
    gathers: ClassVar[bool] = True

    @property
    def round_deadline(self) -> float | None:
        """Time after which a round closes."""
        return self.deadline

    def needs_delivery(self, _: str) -> bool:
        """Whether there is no commit without a message that arrives: a round without answers is one, too."""
        return False

    def asks_some(self, owners: int) -> bool:
        """Whether not all of so many owners are asked in each round."""
        return self.participants is not None and self.participants < owners

    def asked(self, owners: int) -> int:
        """How many of so many owners are asked in each round."""
        return self.participants if self.participants is not None else owners

    def asking_all(self) -> Round:
        """The same where all owners are asked."""
        return self.model_copy(update={"participants": None})

    def check(self, links: Graph) -> None:
        """Raise a MeaningError if more owners are to be drawn than there are."""
        if self.asked(links.agents) > links.agents:
            raise MeaningError(
                "network.exchange.participants",
                f"must be at most the number of owners, {links.agents}, got {self.participants}",
            )

    def compiled(self, links: Graph) -> CompiledExchange:
        """Form for the compiled engine; 0 drawn stands for all."""
        some = self.asked(links.agents) if self.asks_some(links.agents) else 0
        settings = {"interval": self.interval, "deadline": self.deadline or 0.0, "some": some}
        return CompiledExchange("rounds", "queries", settings, {"asked": np.zeros(links.agents, np.uint8)})

    def start(self, world: RunningNetwork) -> None:
        """Start the learner's rounds."""
        world.env.process(_Rounds(self, world).go_on())


def drawn(number: int, some: int, draws: Iterator[float]) -> set[int]:
    """So many of the first whole numbers, uniformly and without replacement (Floyd: Bentley 1987); a draw for each."""
    taken: set[int] = set()
    for last in range(number - some, number):
        one = int(next(draws) * (last + 1))
        taken.add(last if one in taken else one)
    return taken


class RoundTimes:
    """Beginnings of rounds: multiples of the interval, as long as rounds close in time.

    A round that closes late begins the next one at once. If its deadline closed it, multiples of the deadline are
    added; otherwise all are counted from then on.

    Parameters
    ----------
    interval : float
    deadline : float, optional
    """

    def __init__(self, interval: float, deadline: float | None):
        from p2psim.core.times import is_past  # compiled: not wanted by who only reads a scenario

        self._is_past = is_past
        self._interval, self._deadline = interval, deadline or 0.0
        self._is_slow = self._deadline > interval
        self._since, self._begun, self._rounds, self._late = 0.0, 0.0, 0, 0

    def _at(self, rounds: int, late: int) -> float:
        return self._since + (rounds * self._interval + late * self._deadline)

    def next(self, now: float, timed_out: bool) -> float:
        """When the next round begins, if the last one closed now; ``timed_out``: by its deadline."""
        if timed_out and self._is_slow:
            self._late += 1
        else:
            self._rounds += 1
        begins = self._at(self._rounds, self._late)
        if self._is_past(now, begins):
            self._since, self._rounds, self._late = now, 0, 0
        self._begun = max(begins, now)
        return self._begun

    def deadline(self) -> float:
        """When the round that has begun closes at the latest; rounding does not put it before the beginning."""
        if self._deadline == self._interval:
            return max(self._at(self._rounds + 1, self._late), self._begun)
        return max(self._at(self._rounds, self._late + 1), self._begun)


class _Rounds(QueriedOwners):
    """The round that is open, and what each owner still owes."""

    def __init__(self, options: Round, world: RunningNetwork):
        super().__init__(world, options.response)
        self._interval, self._deadline = options.interval, options.deadline
        self._some = options.participants if options.asks_some(len(self._owners)) else None
        self._draws = world.draws("participants", LEARNER, UNIT)
        self._query = NONE
        self._left = 0
        self._due = False
        self._closed = world.env.event()
        world.presence.returned.append(self._return)

    def go_on(self) -> Steps:
        """The learner: it holds one round after the other."""
        world, env, times = self._world, self._world.env, RoundTimes(self._interval, self._deadline)
        timed_out = False
        for number in itertools.count(1):
            yield from world.until(times.next(env.now, timed_out), LEARNER, number, ROUND)
            timed_out = False
            if not world.present[LEARNER]:
                continue
            closed = self._closed = env.event()
            # One more than are asked, so that it cannot close before everybody was asked.
            self._left, self._due = (self._some or len(self._owners)) + 1, False
            version = world.commits
            # Whatever has been answered is still to be used.
            world.keep_going()
            if self._some is None:
                self._query = self._ask()
            else:
                self._ask_some(self._some)
            self._end(version)
            if self._deadline is not None and not closed.triggered:
                env.process(self._wait_for_deadline(times.deadline(), number, version))
            timed_out = yield closed

    def _ask_some(self, number: int) -> None:
        """Send a query to each of so many owners that are drawn; the first one names the round."""
        self._query = NONE
        for owner in sorted(drawn(len(self._owners), number, self._draws)):
            query = self._world.send(
                LEARNER, (owner,), self._world.commits, NONE, NONE, self._hear, self._lose
            )
            if self._query == NONE:
                self._query = query

    def _wait_for_deadline(self, deadline: float, number: int, version: int) -> Steps:
        """The deadline of a round."""
        yield from self._world.until(deadline, LEARNER, number, DEADLINE)
        self._close(version, timed_out=True)

    def _end(self, version: int) -> None:
        """Note that one answer of a round is no longer waited for."""
        if version == self._world.commits:
            self._left -= 1
            if not self._left:
                self._close(version)

    def _close(self, version: int, timed_out: bool = False) -> None:
        """Close a round, at its deadline perhaps; a learner that is offline closes it when it comes back."""
        world = self._world
        if version != world.commits or self._closed.triggered:
            return
        if not world.present[LEARNER]:
            self._due = True
            return
        world.commit(LEARNER, NEIGHBOURS, self._query, NONE)
        self._closed.succeed(timed_out)
        world.may_end()

    def _return(self, agent: int) -> None:
        if agent == LEARNER and self._due:
            self._due = False
            self._close(self._world.commits)

    def _newest(self, owner: int) -> int:
        """Only an answer that is still owed supersedes: one of a closed round may be given after a later one."""
        return self._owed[owner][1] if owner in self._owed else 0

    def _use(self, owner: int, _: int, answer: int, version: int, release: int) -> None:
        """Take note that an answer has arrived; the commit that closes the round uses it."""
        self._end(version)


class Poll(Exchange):
    """The learner broadcasts its model at regular intervals; owners answer it after a random delay.

    Queries leave at times interval, 2·interval, …. An owner that hears a query drops the answer that it still
    owes to an older one, touching no data for it; a query with an older model than one heard before, which has
    overtaken it on the way, is superseded as well. Each answer that reaches the learner is a commit. An owner that has
    left when its answer is due does not give it; a learner that is away asks nobody.
    """

    kind: Literal["poll"] = "poll"
    interval: Positive = Field(1.0, description="time between queries")
    response: Quantity = Field(0.0, description="time between hearing a query and sending the answer")

    has_clocks: ClassVar[bool] = False
    needs_learner: ClassVar[bool] = True
    computes: ClassVar[bool] = True
    delay_key: ClassVar[str] = "response"
    events_per_commit: ClassVar[int] = 4

    @property
    def polled(self) -> float:
        """Interval of the queries."""
        return self.interval

    @model_validator(mode="after")
    def _can_answer(self) -> Poll:
        if least(self.response) > self.interval:
            raise ValueError(
                f"response: takes at least {least(self.response)}, longer than the interval {self.interval} between "
                "queries, so that the next query would supersede every answer"
            )
        return self

    def compiled(self, _: Graph) -> CompiledExchange:
        """Form for the compiled engine."""
        return CompiledExchange("polls", "queries", {"interval": self.interval})

    def start(self, world: RunningNetwork) -> None:
        """Start the learner's queries."""
        world.env.process(_Polling(world, self.response).poll(self.interval))


class _Polling(QueriedOwners):
    """The learner's queries, and what each owner still owes."""

    def poll(self, interval: float) -> Steps:
        """The learner: it sends a query at each multiple of the interval, unless it is offline."""
        for number in itertools.count(1):
            yield from self._world.until(number * interval, LEARNER, number, POLL)
            if self._world.present[LEARNER]:
                self._ask()

    def _use(self, owner: int, _: int, answer: int, version: int, release: int) -> None:
        self._world.commit(LEARNER, owner, answer, release)
