"""What a topology is."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from p2psim.agent_names import some
from p2psim.errors import MeaningError
from p2psim.network.links import Given, Links
from p2psim.options import Options


class Topology(Options):
    """Base of all topologies: who is linked with whom.

    A topology of your own is a subclass with a ``kind``, keys of its own, and ``links``. One that draws random numbers
    sets ``is_random``; if it also has a key ``seed``, a number there fixes the graph for all replicas.

    Attributes
    ----------
    kind : str
        The name, as ``kind: Literal["caveman"] = "caveman"``.
    agents : int or None
        How many agents there are, where the topology says it: a key, or a property; None leaves it to the data.
    is_random : bool
        Whether it draws random numbers.
    """

    part_kind: ClassVar[str] = "topology"

    # Subclasses declare it with a Literal.
    kind: Any

    is_random: ClassVar[bool] = False

    @abstractmethod
    def links(
        self, agents: int | None, random: np.random.Generator, given: Given, learner: bool = False
    ) -> Links:
        """Make the graph.

        Parameters
        ----------
        agents : int or None
            Number of agents that a caller asks for; `p2psim.network.topologies.parts.settle` gives the one that all
            agree on.
        random : numpy.random.Generator
            The only source of random numbers.
        given : Given
            What the data says: the number of agents, their names, and what neighbours are found by.
        learner : bool
            Whether there shall be a central learner; only a star has a place for one
            (`p2psim.network.topologies.parts.no_learner` refuses it).

        Returns
        -------
        Links

        Raises
        ------
        MeaningError
            If there is no such graph.
        """

    @property
    def size(self) -> int | None:
        """Number of agents that the topology says, None where it leaves it to the data."""
        return getattr(self, "agents", None)

    def link_ends(self, agents: int) -> float:
        """Ends of links that a graph of so many agents has, about; at least two for each agent that is joined."""
        return 2.0 * agents

    def size_and_names(self) -> tuple[int | None, tuple[str, ...] | None]:
        """How many agents the topology asks for and their names, as far as it says either."""
        return self.size, None

    def check_owners(self, labels: Sequence[str]) -> None:
        """Raise if the data has another number of owners, of these names, than the topology asks for.

        Raises
        ------
        MeaningError
        """
        number, _ = self.size_and_names()
        if number is not None and number != len(labels):
            key = f"network.topology{'.agents' if 'agents' in type(self).model_fields else ''}"
            message = f"asks for {number} agents, but the data has {len(labels)} owners: {some(labels)}"
            raise MeaningError(key, message)
