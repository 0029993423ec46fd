"""Clocks of agents: how often each of them wakes, as a scenario or a table says."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Discriminator, Field, Tag, ValidationInfo, model_validator

from p2psim.core.agent_names import AgentNames
from p2psim.core.errors import MeaningError
from p2psim.core.files import DataPath, Seal, checked, sealed
from p2psim.core.options import Options, PerAgent, per_agent
from p2psim.core.text_tables import BeyondFloatError, as_wide, header_of, lines_of, number, shown

#: Where the rate stands in a scenario.
KEY = "network.clock.rate"

COLUMNS = ("agent", "rate")


class RateTable(Options):
    """Rates from a table with one agent per line; every agent has its line."""

    path: DataPath = Field(description="a CSV file with columns agent, rate")
    sha256: Seal = ""

    @model_validator(mode="before")
    @classmethod
    def _seal(cls, value: Any, info: ValidationInfo) -> Any:
        return sealed(value, info)

    def read(self) -> dict[str, tuple[float, str]]:
        """Rate of each name, and the file and line where it stands.

        Raises
        ------
        MeaningError
            With file and line, if a column is missing, a line has more or fewer fields than the header, a rate is not
            positive and finite, or a name stands there twice.
        MissingSourceError
            If there is no such file.
        """
        key = f"{KEY}.path"
        path = checked(self.path, key)
        header = [name.strip() for name in header_of(path, key)]
        if any(header.count(name) != 1 for name in COLUMNS):
            raise MeaningError(
                key, f"{path} needs columns agent, rate, each once; it has {', '.join(header)}"
            )
        agent, rate = (header.index(name) for name in COLUMNS)
        found: dict[str, tuple[float, str]] = {}
        for line, cells in as_wide(itertools.islice(lines_of(path, key), 1, None), len(header), path, key):
            place, name = f"{path}:{line}", cells[agent]
            if name in found:
                raise MeaningError(key, f"{place}: {name!r} has a rate already, at {found[name][1]}")
            found[name] = _rate(cells[rate], place, key), place
        return found

    def check_names(self, labels: Sequence[str]) -> None:
        """Read the table; raise a MeaningError if it names an agent that there is not, or leaves one out."""
        self.rates(labels)

    def rates(self, labels: Sequence[str]) -> np.ndarray:
        """Rate of each agent, shape (n,); raises as `read` and `check_names` do."""
        table, key = self.read(), f"{KEY}.path"
        places = {name: place for name, (_, place) in table.items()}
        agents = AgentNames(labels).resolve(table, key, places)
        rates = np.full(len(labels), math.nan)
        for name, agent in agents.items():
            rates[agent] = table[name][0]
        missing = [label for label, rate in zip(labels, rates.tolist(), strict=True) if math.isnan(rate)]
        if missing:
            raise MeaningError(key, f"{self.path} has no line for agent {missing[0]}")
        return rates


def _rate(text: str, place: str, key: str) -> float:
    try:
        rate = number(text)
    except BeyondFloatError as error:
        raise MeaningError(key, f"{place}: {error}") from None
    if rate is None or not (0 < rate < math.inf):
        raise MeaningError(key, f"{place}: a rate must be a positive finite number, got {shown(text)}")
    return rate


def _form(value: Any) -> str:
    """Tell a table from numbers: an agent may be called path, but its rate is a number."""
    is_table = isinstance(value, RateTable) or (
        isinstance(value, Mapping) and isinstance(value.get("path"), str)
    )
    return "table" if is_table else "numbers"


Rate = Annotated[
    Annotated[PerAgent, Tag("numbers")] | Annotated[RateTable, Tag("table")], Discriminator(_form)
]


class Clock(Options):
    """Independent Poisson clocks."""

    kind: Literal["poisson"] = "poisson"
    rate: Rate = Field(
        1.0,
        description="mean number of wakes per unit of time; {path: FILE} takes it from a CSV file with columns "
        "agent, rate",
    )

    def rates(self, labels: Sequence[str], groups: Sequence[str] | None) -> np.ndarray:
        """Rate of each agent, shape (n,).

        Parameters
        ----------
        labels : sequence of str
            Names of the agents, in order.
        groups : sequence of str, optional
            The group of each.

        Raises
        ------
        MeaningError
            If an agent has no rate or two, or a name means no agent.
        """
        if isinstance(self.rate, RateTable):
            return self.rate.rates(labels)
        return per_agent(self.rate, labels, groups, key=KEY)
