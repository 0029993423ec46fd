"""Every agent updates its own model and tells one neighbour."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from p2psim.network.events import NOBODY, SPENT
from p2psim.network.exchanges.broadcast import hear
from p2psim.options import Options

if TYPE_CHECKING:
    from p2psim.network.world import World


class Gossip(Options):
    """On waking, an agent updates its model (a release) and sends it to one neighbour, drawn uniformly."""

    kind: Literal["gossip"] = "gossip"
    mode: Literal["push"] = Field("push", description="which way models go")

    has_clocks: ClassVar[bool] = True
    needs_learner: ClassVar[bool] = False

    @property
    def array_code(self) -> int | None:
        """Code in the array engine."""
        return 2

    def start(self, world: World) -> None:
        """Start the agents' clocks."""
        from p2psim.streams import uniform  # compiled: not wanted by who only reads a scenario

        neighbours = [world.links.of(agent).tolist() for agent in range(world.links.agents)]
        key = world.streams.key("peers")

        def tick(agent: int) -> None:
            if world.is_spent(agent) and not world.goes_on:
                world.wake(agent, SPENT)
                return
            wake = world.wake(agent)
            release = world.release(agent)
            commit = world.commit(agent, NOBODY, wake, release)
            version, near = world.versions[agent], neighbours[agent]
            peer = near[int(uniform(key, agent, version - 1) * len(near))]
            world.send(agent, (peer,), version, commit, release, hear, hear)

        world.start_clocks(tick)
