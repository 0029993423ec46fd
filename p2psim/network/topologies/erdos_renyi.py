"""Every pair by the toss of a coin."""

from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from p2psim.network.links import Given, Links
from p2psim.network.topologies.base import Topology
from p2psim.network.topologies.drawing import draw_until_joined, pairs_within
from p2psim.network.topologies.parts import Agents, AllowDisconnected, Seed, no_learner, settle


class ErdosRenyi(Topology):
    """Each pair is linked with the same probability, independently; drawn again until connected.

    G(n, p) of Gilbert (1959), conditioned on being connected.
    """

    kind: Literal["erdos-renyi"] = "erdos-renyi"
    probability: Annotated[float, Field(gt=0, le=1)] = Field(description="chance that two agents are linked")
    agents: Agents = None
    seed: Seed = None
    allow_disconnected: AllowDisconnected = False

    is_random: ClassVar[bool] = True

    def link_ends(self, agents: int) -> float:
        """Ends of links, about; see :class:`p2psim.network.topologies.base.Topology`."""
        return self.probability * agents * (agents - 1)

    def links(
        self, agents: int | None, random: np.random.Generator, given: Given, learner: bool = False
    ) -> Links:
        """Links of one draw; see :func:`p2psim.network.topologies.draw_links`."""
        no_learner(self.kind, learner)
        number = settle(self.agents, agents, given)
        return draw_until_joined(
            number,
            lambda: pairs_within(number, self.probability, random),
            self.allow_disconnected,
            f"a probability well above ln(n)/n = {np.log(number) / number:.3g} would help, or random-regular",
        )
