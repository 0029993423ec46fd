"""Availability at fixed times: a part of every period, or spans from the scenario or from a table.

A table has one span per line: agent, begin, end.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
from pydantic import Field, ValidationInfo, model_validator

from p2psim.core.agent_names import AgentNames
from p2psim.core.errors import MeaningError
from p2psim.core.files import DataPath, Seal, checked, sealed
from p2psim.core.options import OneOf, Options, Positive, ProperSharePerAgent, SharePerAgent, Whole
from p2psim.core.randomness import Streams
from p2psim.core.text_tables import as_wide, header_of, lines_of, moment
from p2psim.network.availability.absence import KEY, Availability
from p2psim.network.graph import Graph
from p2psim.network.members import Members
from p2psim.network.spec import RunningNetwork


class Diurnal(Availability):
    """Each agent is there for the same part of every period: [phase, phase + participation) of it."""

    kind: Literal["diurnal"] = "diurnal"
    period: Positive = Field(description="length of a day, in mean clock periods")
    participation: ProperSharePerAgent = Field(description="share of a period that an agent is there")
    phase: SharePerAgent | None = Field(
        None,
        description="where in the period an agent's presence begins, as a share of it; null: at random for each",
    )

    def phases(self, members: Members, random: np.random.Generator) -> np.ndarray:
        """Phase of each agent, shape (n,), in [0, 1)."""
        if self.phase is None:
            return random.random(len(members.labels))
        return members.values(self.phase, f"{KEY}.phase") % 1.0

    def start(self, world: RunningNetwork, streams: Streams) -> None:
        """Begin everyone's days."""
        phases = self.phases(world.members, streams.generator("availability", world.links.agents))
        there = self._there(world.members)
        for agent, (phase, share) in enumerate(zip(phases.tolist(), there.tolist(), strict=True)):
            # Of the day before and the first one, what has happened by time 0: there after an odd number of turns.
            past = [turn for turn in itertools.islice(self._turns(phase, share), 4) if turn <= 0]
            turns = itertools.islice(self._turns(phase, share), len(past), None)
            world.presence.alternate((agent,), len(past) % 2 == 1, turns)

    def _there(self, members: Members) -> np.ndarray:
        return members.values(self.participation, f"{KEY}.participation")

    def _turns(self, phase: float, share: float) -> Iterator[float]:
        """When an agent comes and goes, by turns, from the day before the first one on."""
        for day in itertools.count(-1):
            yield (day + phase) * self.period
            yield (day + (phase + share)) * self.period

    def shares(self, members: Members, links: Graph) -> np.ndarray:
        """The participation; phases are looked at so that wrong ones are found early."""
        self.phases(members, np.random.default_rng(0))
        return self._there(members)


class ScriptedInterval(Options):
    """A span of time of one agent."""

    agent: str | Whole = Field(description="index or label")
    begin: Annotated[float, Field(ge=0)] = Field(description="first moment")
    end: Annotated[float, Field(gt=0, allow_inf_nan=True)] = Field(
        description="moment after the last; .inf for ever"
    )


class Scripted(Availability, OneOf):
    """Agents are there, or away, in the spans of a table; agents that it does not name are there all the time.

    Spans of an agent may come in any order and may touch, but not overlap.

    Choices
    -------
    spans_are: present
        the agent is there in its spans
    spans_are: absent
        the agent is away in its spans
    """

    kind: Literal["scripted"] = "scripted"
    alternatives: ClassVar[tuple[str, ...]] = ("path", "intervals")
    path: DataPath | None = Field(
        None, description="a CSV file with columns agent, begin, end (.inf or empty: for ever)"
    )
    sha256: Seal = ""
    intervals: list[ScriptedInterval] | None = Field(None, description="the spans, instead of path")
    spans_are: Literal["present", "absent"] = Field("present", description="what an agent is in its spans")

    @model_validator(mode="before")
    @classmethod
    def _seal(cls, value: Any, info: ValidationInfo) -> Any:
        return sealed(value, info)

    def check_names(self, members: Members) -> None:
        """Read the table."""
        self.table(members)

    def table(self, members: Members) -> dict[int, list[tuple[float, float]]]:
        """Spans of each agent, in order.

        Raises
        ------
        MeaningError
            If an agent is not known, its name may mean another one as well, or spans are empty or overlap.
        """
        key = f"{KEY}.{'path' if self.path is not None else 'intervals'}"
        self._refuse_zeros(members.labels, key)
        spans = list(self._spans(key))
        agent_of = AgentNames(members.labels).resolve(
            (span.agent for span in spans), key, {span.agent: span.place for span in reversed(spans)}
        )
        found: dict[int, list[tuple[float, float, str]]] = {}
        for place, name, begin, end in spans:
            if not begin < end:
                raise MeaningError(
                    key, f"{place}: a span must end after it begins, got {begin:.17g} to {end:.17g}"
                )
            found.setdefault(agent_of[name], []).append((begin, end, place))
        for agent, rows in found.items():
            rows.sort()
            for (_, until, first), (begin, _, second) in itertools.pairwise(rows):
                if begin < until:
                    label = members.labels[agent]
                    raise MeaningError(
                        key, f"{second}: this span of agent {label} and that at {first} overlap"
                    )
        return {agent: [(begin, end) for begin, end, _ in rows] for agent, rows in found.items()}

    def _refuse_zeros(self, labels: Sequence[str], key: str) -> None:
        """Refuse a number that may have been a label such as 007, which reads as 7 without quotes."""
        decimal = [label for label in labels if label.isdecimal() and len(label) < 20]
        codes = {int(label): label for label in decimal if label != str(int(label))}
        for place, row in enumerate(self.intervals or ()):
            if isinstance(row.agent, int) and row.agent in codes:
                message = (
                    f"entry {place}: {row.agent} may be the label {codes[row.agent]}; put the name in quotes"
                )
                raise MeaningError(key, message)

    def _spans(self, key: str) -> Iterator[Span]:
        if self.path is not None:
            return read_spans(checked(self.path, key), key)
        rows = enumerate(self.intervals or ())
        return (Span(f"entry {number}", str(row.agent), row.begin, row.end) for number, row in rows)

    def start(self, world: RunningNetwork, streams: Streams) -> None:
        """Begin the spans."""
        for agent, rows in self.table(world.members).items():
            inside = self.spans_are == "present"
            begins = inside if rows[0][0] == 0 else not inside
            world.presence.alternate((agent,), begins, _turns(rows))

    def shares(self, members: Members, links: Graph) -> np.ndarray:
        """Ones for agents that the table does not name; of the others it cannot be said."""
        shares = np.ones(links.agents)
        shares[list(self.table(members))] = np.nan
        return shares


def _turns(rows: list[tuple[float, float]]) -> Iterator[float]:
    """When something turns after time 0; adjacent spans are one."""
    turns: list[float] = []
    for begin, end in rows:
        if turns and turns[-1] == begin:
            turns.pop()
        else:
            turns.append(begin)
        turns.append(end)
    return (turn for turn in turns if turn > 0 and math.isfinite(turn))


COLUMNS = ("agent", "begin", "end")


class Span(NamedTuple):
    """A span of time of an agent, and where it was written."""

    place: str
    agent: str
    begin: float
    end: float


def read_spans(path: Path, key: str) -> Iterator[Span]:
    """Read a table; an empty end, or .inf, is for ever.

    Raises
    ------
    MeaningError
        With file and line, if a column is missing, a line has more or fewer fields than the header, or a time is none.
    """
    header = [name.strip() for name in header_of(path, key)]
    if any(header.count(name) != 1 for name in COLUMNS):
        raise MeaningError(
            key, f"{path} needs columns agent, begin, end, each once; it has {', '.join(header)}"
        )
    places = [header.index(name) for name in COLUMNS]
    for line, cells in as_wide(itertools.islice(lines_of(path, key), 1, None), len(header), path, key):
        place = f"{path}:{line}"
        agent, begin, end = (cells[i] for i in places)
        yield Span(place, agent, moment(begin, place, key), moment(end.strip() or "inf", place, key))
