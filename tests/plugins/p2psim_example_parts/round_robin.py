"""An exchange: agents tell their neighbours in turn."""

import itertools
from typing import ClassVar, Literal

import p2psim
from p2psim.network.spec import RunningNetwork


@p2psim.register
class RoundRobin(p2psim.Exchange):
    """On waking, an agent updates its model and sends it to one neighbour: to each in turn."""

    kind: Literal["round-robin"] = "round-robin"

    computes: ClassVar[bool] = True

    def start(self, world: RunningNetwork) -> None:
        agents = range(world.links.agents)
        turns = [itertools.cycle([(peer,) for peer in world.links.of(agent).tolist()]) for agent in agents]
        world.start_clocks(lambda agent: world.update_and_send(agent, turns, lambda *_: None))
