"""What an exchange pattern must offer, and what it may ask of the world.

What owners answer to a learner's queries, and again with a new release where the channel asks for that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Protocol

from p2psim.core.events import LEARNER
from p2psim.network.channels.draws import Draws

if TYPE_CHECKING:
    from p2psim.network.spec import Ended, RunningNetwork


class ExchangePattern(Protocol):
    """A frozen part of the scenario that, once started, acts on the world until the run is over.

    ``start`` is called once, before time runs. It starts clocks (:meth:`RunningNetwork.start_clocks`) or processes of
    its own (``world.env.process``) and reacts to what they and the channel tell it. It writes nothing itself:
    the world's ``wake``, ``send``, ``commit`` and ``drop`` do. A message sent with :meth:`RunningNetwork.send` ends for
    each receiver in just one call, to ``heard`` or to ``lost``, whatever the channel does in between; so
    channels can delay, lose and collide without a pattern knowing.
    """

    #: Whether agents wake by clocks of their own.
    has_clocks: ClassVar[bool]
    #: Whether the pattern is one of a central learner and its owners.
    needs_learner: ClassVar[bool]

    @property
    def array_code(self) -> int | None:
        """Code of the pattern in the array engine, None where only SimPy can run it as configured."""

    def needs_delivery(self, updates: str) -> bool:
        """Whether there is no commit without a message that arrives; ``updates`` as in the network."""

    def start(self, world: RunningNetwork) -> None:
        """Begin to act on the world."""


_TO_LEARNER = (LEARNER,)


class Answers:
    """Gives answers, each with a release; a lost one again, while it is still wanted.

    An owner answers again, after a backoff, as long as it has not heard of a newer query, may make a release, and is
    there; no more often than the channel allows. Then, or without such a rule at once, the answer counts as lost.
    """

    def __init__(self, world: RunningNetwork):
        self._world = world
        self._fresh = world.fresh
        self._backoffs = Draws(world, "retransmit", world.fresh.backoff if world.fresh is not None else 0.0)
        # The query that each owner answers, as long as it may answer it again.
        self._wanted: dict[int, int] = {}

    def give(self, owner: int, query: int, version: int, heard: Ended, lost: Ended) -> None:
        """Answer a query for the first time."""
        if self._fresh is not None:
            self._wanted[owner] = query
            self._send(owner, query, version, heard, lost, self._fresh.limit)
        else:
            world = self._world
            world.send(owner, _TO_LEARNER, version, query, world.release(owner), heard, lost)

    def forget(self, owner: int) -> None:
        """Answer an older query no more: a newer one was heard."""
        if self._wanted:
            self._wanted.pop(owner, None)

    def _send(self, owner: int, query: int, version: int, heard: Ended, lost: Ended, left: int) -> None:
        world = self._world

        def give_again(_: int, __: int, drop: int, ___: int, release: int) -> None:
            def send() -> None:
                wanted = self._wanted.get(owner) == query
                if wanted and world.present[owner] and not world.is_spent(owner):
                    self._send(owner, query, version, heard, lost, left - 1)
                else:
                    lost(owner, LEARNER, drop, version, release)

            world.after(next(self._backoffs.of(owner)), send)

        world.send(
            owner, _TO_LEARNER, version, query, world.release(owner), heard, give_again if left else lost
        )
