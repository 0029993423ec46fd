"""Every agent updates its own model and tells all its neighbours."""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, ClassVar, Literal

from p2psim.options import Options

if TYPE_CHECKING:
    from p2psim.network.world import World


class Broadcast(Options):
    """On waking, an agent updates its model (a release) and sends it once, to all its neighbours.

    The send is one event; each neighbour that it reaches is one delivery.
    """

    kind: Literal["broadcast"] = "broadcast"

    has_clocks: ClassVar[bool] = True
    needs_learner: ClassVar[bool] = False

    @property
    def array_code(self) -> int | None:
        """Code in the array engine."""
        return 1

    def needs_delivery(self, _: str) -> bool:
        """Whether there is no commit without a message that arrives."""
        return False

    def start(self, world: World) -> None:
        """Start the agents' clocks."""
        neighbours = [repeat(world.links.of(agent).tolist()) for agent in range(world.links.agents)]

        def tick(agent: int) -> None:
            world.update_and_tell(agent, neighbours, hear)

        world.start_clocks(tick)


def hear(*_: int) -> None:
    """Do nothing yet: a neighbour's model is used when the agent next wakes."""
