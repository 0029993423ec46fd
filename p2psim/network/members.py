"""What a network knows of its agents beside their links: names, groups, and numbers that absences may depend on."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from p2psim.core.errors import MeaningError
from p2psim.core.options import per_agent


@dataclass(frozen=True)
class Members:
    """The agents of a network.

    Attributes
    ----------
    labels : sequence of str
        Their names, in order.
    groups : sequence of str, optional
        The group of each.
    numbers : mapping of str to ndarray, shape (n,)
        What else is known of each, such as ``records``.
    """

    labels: Sequence[str]
    groups: Sequence[str] | None = None
    numbers: Mapping[str, np.ndarray] = field(default_factory=dict)

    @classmethod
    def unnamed(cls, agents: int) -> Members:
        """Agents that have nothing but their index."""
        return cls(tuple(map(str, range(agents))))

    def values(self, value: float | Mapping[str, float], key: str) -> np.ndarray:
        """One value an agent, shape (n,), from a number for all or a mapping (`per_agent`)."""
        return per_agent(value, self.labels, self.groups, key=key)

    def number(self, name: str, key: str) -> np.ndarray:
        """A known number of each agent, shape (n,).

        Raises
        ------
        MeaningError
            If it is not known here.
        """
        if name not in self.numbers:
            known = ", ".join(self.numbers) or "nothing"
            raise MeaningError(key, f"{name} of the agents is not known here; known: {known}")
        return self.numbers[name]

    def grouped(self, key: str) -> dict[str, np.ndarray]:
        """Agents of each group, in the order in which groups first occur.

        Raises
        ------
        MeaningError
            If there are no groups.
        """
        if self.groups is None:
            raise MeaningError(key, "needs groups of agents: give data.groups")
        names = np.array(self.groups, dtype=object)
        return {name: np.flatnonzero(names == name) for name in dict.fromkeys(self.groups)}

    def digest(self) -> str:
        """Short hash of all that is known."""
        made = hashlib.blake2b(repr((tuple(self.labels), self.groups)).encode(), digest_size=16)
        for name, array in sorted(self.numbers.items()):
            made.update(name.encode())
            made.update(np.ascontiguousarray(array).tobytes())
        return made.hexdigest()
