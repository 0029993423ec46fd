"""Which agent a name means: every place where a scenario or a table names agents asks here."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from p2psim.core.errors import MeaningError


class AgentNames:
    """Names of agents: an agent is called by its label, or by its index from 0.

    Parameters
    ----------
    labels : sequence of str
        The agents' labels, in order.
    """

    def __init__(self, labels: Sequence[str]):
        self.labels = labels
        self._by_label = {label: i for i, label in enumerate(labels)}
        self._are_indices = all(str(i) in self._by_label for i in range(len(labels)))

    def find(self, name: str) -> set[int]:
        """Agents that a name may mean: one by its label, and one by its index."""
        matches = {self._by_label[name]} if name in self._by_label else set()
        if len(name) <= len(str(len(self.labels))) and name.isdecimal() and name == str(int(name)):
            matches |= {int(name)} if int(name) < len(self.labels) else set()
        return matches

    def resolve(
        self, names: Iterable[str], key: str, places: Mapping[str, str] | None = None
    ) -> dict[str, int]:
        """Return the agent that each name means.

        A mapping or a table that names every agent by its label is read by labels. In others, a name that is the
        index of one agent and the label of another is refused.

        Parameters
        ----------
        names : iterable of str
            All that is named in one mapping or table.
        key : str
            The dotted scenario key, named in errors.
        places : mapping, optional
            Where a name stands, such as a line of a file.

        Raises
        ------
        MeaningError
            If a name means no agent or two, or two names mean the same agent.
        """
        names = dict.fromkeys(names)
        indices: dict[str, int] = {}
        first: dict[int, str] = {}
        by_label = names.keys() == self._by_label.keys() and not self._are_indices
        for name in names:
            where = f"{places[name]}: " if places else ""
            meant = {self._by_label[name]} if by_label else self.find(name)
            if not meant:
                raise MeaningError(key, f"{where}no agent is called {name!r}; there are {some(self.labels)}")
            if len(meant) > 1:
                agent = self._by_label[name]
                raise MeaningError(
                    key,
                    f"{where}{name!r} is the label of agent {agent} (from 0) and the index of the agent with the label "
                    f"{self.labels[int(name)]!r}; name every agent by its label",
                )
            agent = meant.pop()
            if agent in first:
                again = f"as {first[agent]!r} and as {name!r}"
                raise MeaningError(key, f"{where}agent {self.labels[agent]} is named twice, {again}")
            first[agent] = name
            indices[name] = agent
        return indices


def differing(names: Iterable[str], labels: Iterable[str], whose: str = "data") -> str:
    """Which names the graph alone has, and which the other side."""
    ours, theirs = set(names), set(labels)
    alone = {"graph": sorted(ours - theirs), whose: sorted(theirs - ours)}
    return ", ".join(f"only the {side} has {some(listed)}" for side, listed in alone.items() if listed)


def some(names: Collection[str], most: int = 8) -> str:
    """The first of some names, and how many there are."""
    shown = ", ".join(list(names)[:most])
    return shown + (f", … ({len(names)} in all)" if len(names) > most else "")
