"""Owners ask, the learner serves one at a time, or several."""

from collections import deque
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Discriminator, Field, Tag

from p2psim.core.distributions import Quantity
from p2psim.core.events import BUSY, LEARNER, NOBODY, NONE, OFFLINE, QUEUED, SPENT
from p2psim.core.options import Few
from p2psim.network.exchanges.protocol import Answers, Exchange
from p2psim.network.graph import Graph
from p2psim.network.order import SERVICE
from p2psim.network.spec import CompiledExchange, RunningNetwork, Steps


def _number_or_all(value: Any) -> str:
    return "all" if isinstance(value, str) else "number"


Concurrency = Annotated[
    Annotated[Few, Tag("number")] | Annotated[Literal["all"], Tag("all")], Discriminator(_number_or_all)
]


class Request(Exchange):
    """An owner asks when its clock ticks; the learner serves one at a time (F Algorithm 1), or several.

    The learner sends its model, the owner computes for the service time and answers with a release, the learner
    commits. From the tick that it accepts until the answer has come or been lost, the learner is busy; ticks
    meanwhile, those of the served owner included unless its clock stops, are refused or queued (first in, first out).
    The asking itself takes no time and is not lost. An owner that leaves before it has answered ends the exchange.
    While the learner is away, owners that ask are turned away, and waiting owners go on waiting.

    With a ``concurrency`` of c the learner is busy when it serves c owners. An owner is served once at a time: if its
    clock ticks meanwhile it is refused, or waits, even where others could be served. Waiting owners are served in
    their order, except those that are already being served.

    Choices
    -------
    busy: refuse
        an owner that asks meanwhile is turned away
    busy: queue
        an owner that asks meanwhile waits for its turn
    served_clock: runs
        ticks of the owner that is being served count like all others
    served_clock: stops
        the owner that is being served does not tick
    concurrency: all
        every owner can be served at any time
    """

    kind: Literal["request"] = "request"
    service: Quantity = Field(0.0, description="time the owner takes for its answer, in mean clock periods")
    busy: Literal["refuse", "queue"] = Field(
        "refuse", description="what a busy learner does with an owner that asks"
    )
    concurrency: Concurrency = Field(
        1, description="the most owners that are served at once: a number, or all"
    )
    served_clock: Literal["runs", "stops"] = Field(
        "runs", description="whether the ticks of the owner that is being served are refused or queued too"
    )

    needs_learner: ClassVar[bool] = True
    computes: ClassVar[bool] = True
    delay_key: ClassVar[str] = "service"
    anyone_answers: ClassVar[bool] = True

    def compiled(self, links: Graph) -> CompiledExchange:
        """Form for the compiled engine."""
        settings = {"queues": self.busy == "queue", "stops": self.served_clock == "stops"}
        return CompiledExchange("request", "request", settings | {"places": self.places(links.agents)})

    def start(self, world: RunningNetwork) -> None:
        """Start the owners' clocks."""
        world.start_clocks(_Desk(self, world).ask)

    def places(self, owners: int) -> int:
        """The most of so many owners that are served at once."""
        return owners if self.concurrency == "all" else min(self.concurrency, owners)


class _Desk:
    """The owners that the learner serves, and those that wait."""

    def __init__(self, options: Request, world: RunningNetwork):
        self._world = world
        self._queues = options.busy == "queue"
        self._services = world.draws("service", LEARNER, options.service)
        self._stops = options.served_clock == "stops"
        self._places = options.places(world.links.agents)
        self._served: set[int] = set()
        self._calling = False
        self._waiting: deque[tuple[int, int]] = deque()
        self._answers = Answers(world)
        world.presence.returned.append(self._call)

    def ask(self, owner: int) -> None:
        """An owner's clock ticked."""
        world = self._world
        if world.is_spent(owner):
            world.wake(owner, SPENT)
        elif self._stops and owner in self._served:
            return
        elif not world.present[LEARNER]:
            world.wake(owner, OFFLINE)
        elif len(self._served) < self._places and owner not in self._served:
            self._serve(owner, world.wake(owner))
        elif self._queues:
            self._waiting.append((owner, world.wake(owner, QUEUED)))
        else:
            world.wake(owner, BUSY)

    def _serve(self, owner: int, wake: int) -> None:
        """Send the model to an owner, which then computes its answer."""
        self._served.add(owner)
        world = self._world

        def hear(_: int, owner: int, query: int, version: int, __: int) -> None:
            def done(cause: int) -> None:
                world.begin(self._answer(owner, query, version, cause))

            world.work(owner, version, query, done, lambda _: self._finish(owner))

        world.send(LEARNER, (owner,), world.commits, wake, NONE, hear, self._lose)

    def _answer(self, owner: int, query: int, version: int, cause: int) -> Steps:
        """An owner that is served: it answers after the service time, if it is online then."""
        world = self._world
        yield from world.wait(next(self._services), owner, query, SERVICE)
        if world.present[owner]:
            self._answers.give(owner, cause, version, self._commit, self._lose)
        else:
            world.drop(owner, LEARNER, version, query, OFFLINE)
            self._finish(owner)

    def _commit(self, owner: int, _: int, answer: int, version: int, release: int) -> None:
        self._world.commit(LEARNER, owner, answer, release)
        self._finish(owner)

    def _lose(self, sender: int, receiver: int, *_: int) -> None:
        """Take note that a query, or its answer, was lost."""
        self._finish(receiver if sender == LEARNER else sender)

    def _finish(self, owner: int) -> None:
        """End the service of an owner, and call the waiting owners."""
        self._served.discard(owner)
        self._call()

    def _call(self, *_: int) -> None:
        """Serve waiting owners; not from within a call, so that a long queue needs no deep stack."""
        if self._calling:
            return
        world, self._calling = self._world, True
        while len(self._served) < self._places and world.present[LEARNER]:
            place = self._next()
            if place is None:
                break
            owner, wake = self._waiting[place]
            del self._waiting[place]
            if world.is_spent(owner):
                world.drop(owner, NOBODY, NONE, wake, SPENT)
            elif not world.present[owner]:
                world.drop(owner, NOBODY, NONE, wake, OFFLINE)
            else:
                self._serve(owner, wake)
        self._calling = False

    def _next(self) -> int | None:
        """Place of the first that waits and is not being served; None if there is none."""
        return next(
            (place for place, (owner, _) in enumerate(self._waiting) if owner not in self._served), None
        )
