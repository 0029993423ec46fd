"""Random graphs of blocks: two clusters, and stochastic block models of any number of blocks."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from p2psim.core.options import AS_TUPLE, Count, Fraction, stands_for
from p2psim.network.topologies import base


class TwoCluster(base.RedrawnTopology):
    """Two halves, linked densely within and sparsely between; drawn again until connected.

    A stochastic block model: the first ⌈n/2⌉ agents are one cluster, the others the other; every pair is linked
    independently.
    """

    kind: Annotated[Literal["two-cluster", "planted-partition"], stands_for("two-cluster")] = "two-cluster"
    within: Fraction = Field(description="chance that two agents of a cluster are linked")
    between: Fraction = Field(description="chance that two agents of different clusters are linked")
    agents: base.Agents = None
    seed: base.Seed = None
    allow_disconnected: base.AllowDisconnected = False
    weights: base.Weights = None
    normalise: base.Normalise = None

    def block_sizes(self, agents: int) -> Sequence[int]:
        """Agents of both halves."""
        return agents - agents // 2, agents // 2

    def link_ends(self, agents: int) -> float:
        """Ends of links, about; see :class:`p2psim.network.topologies.base.Topology`."""
        return (self.within + self.between) / 2 * agents * (agents - 2)

    def advice(self, agents: int) -> str:
        """What would help."""
        return "larger chances would help, or allow_disconnected: true"

    def draw(self, agents: int, random: np.random.Generator) -> base.EdgeEnds:
        """Draw one graph."""
        first, second = self.block_sizes(agents)
        one, two = (
            base.pairs_within(first, self.within, random),
            base.pairs_within(second, self.within, random),
        )
        across = base.pairs_between(first, second, self.between, random)
        a = np.concatenate([one[0], two[0] + first, across[0]])
        b = np.concatenate([one[1], two[1] + first, across[1]])
        return a, b


_Row = Annotated[tuple[Fraction, ...], AS_TUPLE]


class StochasticBlock(base.RedrawnTopology):
    """Blocks of agents; a pair is linked by a chance that depends on the blocks of both; drawn again until connected.

    Holland, Laskey and Leinhardt (1983). The first agents are the first block, and so on. Pairs are linked
    independently, before drawing again.
    """

    kind: Literal["stochastic-block"] = "stochastic-block"
    blocks: Count | None = Field(
        None,
        description="number of blocks, whose sizes differ by one at most, the larger first; or give sizes",
    )
    sizes: Annotated[tuple[Count, ...], AS_TUPLE] | None = Field(None, description="agents of each block")
    within: Fraction | None = Field(
        None, description="chance that two agents of a block are linked; with between, or give chances"
    )
    between: Fraction | None = Field(
        None, description="chance that two agents of different blocks are linked"
    )
    chances: Annotated[tuple[_Row, ...], AS_TUPLE] | None = Field(
        None, description="chance for each two blocks: a symmetric matrix, as a list of rows"
    )
    agents: base.Agents = None
    seed: base.Seed = None
    allow_disconnected: base.AllowDisconnected = False
    weights: base.Weights = None
    normalise: base.Normalise = None

    unsaid: ClassVar[tuple[str, ...]] = (
        "blocks", "sizes", "within", "between", "chances", *base.RedrawnTopology.unsaid,
    )  # fmt: skip

    @model_validator(mode="after")
    def _say_each_once(self) -> Self:
        if (self.blocks is None) == (self.sizes is None):
            raise ValueError("give exactly one of blocks, a number, and sizes, a list")
        pair = (self.within is not None, self.between is not None)
        if (self.chances is None and not all(pair)) or (self.chances is not None and any(pair)):
            raise ValueError("give within and between, or chances alone")
        if self.sizes is not None and self.agents not in (None, sum(self.sizes)):
            raise ValueError(f"agents is {self.agents}, but sizes sum to {sum(self.sizes)}")
        if self.chances is not None:
            count = len(self.sizes) if self.sizes is not None else self.blocks
            if len(self.chances) != count or any(len(row) != count for row in self.chances):
                raise ValueError(
                    f"chances must have {count} rows of {count} numbers, as there are {count} blocks"
                )
            if any(
                self.chances[a][b] != self.chances[b][a] for a in range(len(self.chances)) for b in range(a)
            ):
                raise ValueError("chances must be symmetric: links go both ways")
        return self

    @property
    def size(self) -> int | None:
        """Number of agents that the topology says, None where it leaves it to the data."""
        return sum(self.sizes) if self.sizes is not None else self.agents

    @property
    def size_key(self) -> str:  # type: ignore[override]
        """The key that says how many agents there are."""
        return f"network.topology.{'agents' if self.sizes is None else 'sizes'}"

    @property
    def least(self) -> int:  # type: ignore[override]
        """Fewest agents: one in each block."""
        return max(2, self.blocks or 0)

    def link_ends(self, agents: int) -> float:
        """Ends of links, about; see :class:`p2psim.network.topologies.base.Topology`."""
        sizes = np.array(self.block_sizes(agents), dtype=float)
        return float(sizes @ self._chances() @ sizes - sizes @ np.diag(self._chances()))

    def advice(self, agents: int) -> str:
        """What would help."""
        return "larger chances would help, or allow_disconnected: true"

    def draw(self, agents: int, random: np.random.Generator) -> base.EdgeEnds:
        """Draw one graph."""
        sizes, chances = self.block_sizes(agents), self._chances()
        starts = np.concatenate([[0], np.cumsum(sizes)])
        ends = []
        for a, first in enumerate(sizes):
            one, other = base.pairs_within(first, chances[a, a], random)
            ends.append((one + starts[a], other + starts[a]))
            for b in range(a + 1, len(sizes)):
                one, other = base.pairs_between(first, sizes[b], chances[a, b], random)
                ends.append((one + starts[a], other - first + starts[b]))
        return np.concatenate([end[0] for end in ends]), np.concatenate([end[1] for end in ends])

    def block_sizes(self, agents: int) -> Sequence[int]:
        """Agents of each block."""
        if self.sizes is not None:
            return list(self.sizes)
        assert self.blocks is not None
        return [agents // self.blocks + (k < agents % self.blocks) for k in range(self.blocks)]

    def _chances(self) -> np.ndarray:
        if self.chances is not None:
            return np.array(self.chances)
        count = len(self.sizes) if self.sizes is not None else self.blocks
        assert count is not None
        return np.where(np.eye(count, dtype=bool), self.within or 0.0, self.between or 0.0)
