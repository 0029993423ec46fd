"""Numbers that belong to links: attributes of a graph's edges, such as their delay."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pydantic import Field

from p2psim.errors import MeaningError
from p2psim.network.events import LEARNER
from p2psim.options import Options

if TYPE_CHECKING:
    import numpy as np

    from p2psim.network.links import Links

#: A number of the link from a sender to a receiver.
OfLink = Callable[[int, int], float]


class EdgeValue(Options):
    """An attribute of the graph's edges, where the graph has been given: a number for each link."""

    edge: str = Field(description="name of the attribute; every link must have it")

    def column(self, links: Links, key: str, most: float) -> np.ndarray:
        """Value of each entry of ``links.indices``, shape (m,).

        Raises
        ------
        MeaningError
            If a link has none, or one that is negative or above ``most``.
        """
        if self.edge not in links.attributes:
            known = ", ".join(sorted(links.attributes)) or "none"
            raise MeaningError(
                f"{key}.edge",
                f"not every link of the graph has a number called {self.edge!r}; attributes that all have: {known}",
            )
        values = links.attributes[self.edge]
        wrong = values[(values < 0) | (values > most)]
        if wrong.size:
            limit = f"between 0 and {most:g}" if most < float("inf") else "0 or more"
            raise MeaningError(
                f"{key}.edge", f"{self.edge!r} must be {limit} on every link, got {wrong[0]:g}"
            )
        return values

    def of_link(self, links: Links, key: str, most: float = float("inf")) -> OfLink:
        """Value of a link, by sender and receiver."""
        column = self.column(links, key, most).tolist()
        if links.star:
            return lambda sender, receiver: column[receiver if sender == LEARNER else sender]
        tables: list[dict[int, float] | None] = [None] * links.agents

        def value(sender: int, receiver: int) -> float:
            table = tables[sender]
            if table is None:
                first, last = int(links.indptr[sender]), int(links.indptr[sender + 1])
                table = tables[sender] = dict(
                    zip(links.indices[first:last].tolist(), column[first:last], strict=True)
                )
            return table[receiver]

        return value


def number_or_mapping(value: Any) -> str:
    """Tell apart what a channel's latency can be, by its shape."""
    if isinstance(value, EdgeValue) or (isinstance(value, dict) and "edge" in value):
        return "edge"
    return "number" if not isinstance(value, dict | Options) else "mapping"
