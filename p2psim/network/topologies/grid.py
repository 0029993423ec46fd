"""Rows and columns."""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from p2psim.network.links import Given, Links, from_edges
from p2psim.network.topologies.base import Topology
from p2psim.network.topologies.parts import no_learner, settle
from p2psim.options import AS_TUPLE, Count


class Grid(Topology):
    """Agents in rows and columns, linked with those beside, above and below; ``[1, n]`` is a path."""

    kind: Literal["grid"] = "grid"
    shape: Annotated[tuple[Count, Count], AS_TUPLE] = Field(
        description="rows and columns; agent r·columns + c stands in row r, column c"
    )

    @property
    def agents(self) -> int:
        """Rows times columns."""
        return self.shape[0] * self.shape[1]

    def links(
        self, agents: int | None, random: np.random.Generator, given: Given, learner: bool = False
    ) -> Links:
        """Links of the grid; see :func:`p2psim.network.topologies.draw_links`."""
        no_learner(self.kind, learner)
        number = settle(self.agents, agents, given, key="network.topology.shape")
        place = np.arange(number).reshape(self.shape)
        a = np.concatenate([place[:, :-1].ravel(), place[:-1].ravel()])
        b = np.concatenate([place[:, 1:].ravel(), place[1:].ravel()])
        return from_edges(number, a, b)
