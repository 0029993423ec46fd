"""What a network knows of its agents beside their links: names, groups, numbers, and tables of numbers in files."""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Discriminator, Field, Tag, ValidationInfo, model_validator

from p2psim.core.agent_names import AgentNames
from p2psim.core.errors import MeaningError
from p2psim.core.files import DataPath, Seal, checked, sealed
from p2psim.core.options import Column, Options, PerAgent, per_agent
from p2psim.core.text_tables import BeyondFloatError, as_wide, header_of, lines_of, number, shown


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
    columns : mapping of str to ndarray, shape (n,)
        Columns of the records that have one number per agent.
    """

    labels: Sequence[str]
    groups: Sequence[str] | None = None
    numbers: Mapping[str, np.ndarray] = field(default_factory=dict)
    columns: Mapping[str, np.ndarray] = field(default_factory=dict)

    @classmethod
    def unnamed(cls, agents: int) -> Members:
        """Agents that have nothing but their index."""
        return cls(tuple(map(str, range(agents))))

    def values(self, value: float | Mapping[str, float] | Column | AgentTable, key: str) -> np.ndarray:
        """One value per agent, shape (n,), from a table, or a number for all, a mapping or a column (`per_agent`).

        Raises
        ------
        MeaningError
            If an agent has no value or two, or a name means no agent.
        """
        if isinstance(value, AgentTable):
            return value.values(self.labels)
        return per_agent(value, self.labels, self.groups, key=key, columns=self.columns)

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
        # A column may be called as a number is.
        for name, array in (*sorted(self.numbers.items()), *sorted(self.columns.items())):
            made.update(name.encode())
            made.update(np.ascontiguousarray(array).tobytes())
        return made.hexdigest()


class AgentTable(Options):
    """Base of tables with one agent per line; every agent has its line.

    Attributes
    ----------
    column : str
        Name of the column, and of the quantity.
    key : str
        Where the quantity stands in a scenario.
    allowed : str
        What a number must be, in words.
    """

    column: ClassVar[str]
    key: ClassVar[str]
    allowed: ClassVar[str] = "a positive finite number"

    path: DataPath
    sha256: Seal = ""

    @model_validator(mode="before")
    @classmethod
    def _seal(cls, value: Any, info: ValidationInfo) -> Any:
        return sealed(value, info)

    def read(self) -> dict[str, tuple[float, str]]:
        """Number of each name, and the file and line where it stands.

        Raises
        ------
        MeaningError
            With file and line, if a column is missing, a line has more or fewer fields than the header, a number is not
            positive and finite, or a name stands there twice.
        MissingSourceError
            If there is no such file.
        """
        key, columns = f"{self.key}.path", ("agent", self.column)
        path = checked(self.path, key)
        header = [name.strip() for name in header_of(path, key)]
        if any(header.count(name) != 1 for name in columns):
            given = f"{path} needs columns agent, {self.column}, each once; it has {', '.join(header)}"
            mark = next((mark for mark in ";\t" if len(header) == 1 and mark in header[0]), "")
            raise MeaningError(key, given + (f"; separate fields by commas, not by {mark!r}" if mark else ""))
        agent, column = (header.index(name) for name in columns)
        found: dict[str, tuple[float, str]] = {}
        for line, cells in as_wide(itertools.islice(lines_of(path, key), 1, None), len(header), path, key):
            place, name = f"{path}:{line}", cells[agent]
            if name in found:
                raise MeaningError(
                    key, f"{place}: {self.column} of {name!r} stands already at {found[name][1]}"
                )
            found[name] = self._number(cells[column], place), place
        return found

    def _number(self, text: str, place: str) -> float:
        key = f"{self.key}.path"
        try:
            value = number(text)
        except BeyondFloatError as error:
            raise MeaningError(key, f"{place}: {error}") from None
        if value is None or not (0 < value < math.inf):
            raise MeaningError(key, f"{place}: {self.column} must be {self.allowed}, got {shown(text)}")
        return value

    def values(self, labels: Sequence[str]) -> np.ndarray:
        """Number of each agent, shape (n,); raises as `read` does, and for an agent that is not there or left out."""
        table, key = self.read(), f"{self.key}.path"
        places = {name: place for name, (_, place) in table.items()}
        agents = AgentNames(labels).resolve(table, key, places)
        values = np.full(len(labels), math.nan)
        for name, agent in agents.items():
            values[agent] = table[name][0]
        missing = [label for label, value in zip(labels, values.tolist(), strict=True) if math.isnan(value)]
        if missing:
            raise MeaningError(key, f"{self.path} has no line for agent {missing[0]}")
        return values


class RateTable(AgentTable):
    """Rates from a table with one agent per line; every agent has its line."""

    column: ClassVar[str] = "rate"
    key: ClassVar[str] = "network.clock.rate"

    path: DataPath = Field(description="a CSV file with columns agent, rate")


class SlowdownTable(AgentTable):
    """Slowdowns from a table with one agent per line; every agent has its line."""

    column: ClassVar[str] = "slowdown"
    key: ClassVar[str] = "network.compute.slowdown"

    path: DataPath = Field(description="a CSV file with columns agent, slowdown")


def _form(value: Any) -> str:
    """Tell a table from numbers: an agent may be called path, but its rate is a number."""
    is_table = isinstance(value, AgentTable) or (
        isinstance(value, Mapping) and isinstance(value.get("path"), str)
    )
    return "table" if is_table else "numbers"


Rate = Annotated[
    Annotated[PerAgent, Tag("numbers")] | Annotated[RateTable, Tag("table")], Discriminator(_form)
]

Slowdown = Annotated[
    Annotated[PerAgent, Tag("numbers")] | Annotated[SlowdownTable, Tag("table")], Discriminator(_form)
]
