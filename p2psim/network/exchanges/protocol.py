"""What an exchange pattern must offer, and what it may ask of the world."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Protocol

if TYPE_CHECKING:
    from p2psim.network.world import World


class ExchangePattern(Protocol):
    """A frozen part of the scenario that, once started, acts on the world until the run is over.

    ``start`` is called once, before time runs. It starts clocks (:meth:`World.start_clocks`) or processes of
    its own (``world.env.process``) and reacts to what they and the channel tell it. It writes nothing itself:
    the world's ``wake``, ``send``, ``commit`` and ``drop`` do. A message sent with :meth:`World.send` ends for
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

    def start(self, world: World) -> None:
        """Begin to act on the world."""
