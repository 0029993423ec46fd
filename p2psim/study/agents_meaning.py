"""Rules of `p2psim.study.meaning` on agents: how many there are, and what they are called, wherever that is said.

They judge what is known before any record is read: the number of agents by the topology (a file of links has one) or by
the data section, and names that no column of a table gives.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from p2psim.agent_names import AgentNames
from p2psim.errors import Fault, MeaningError, MissingSourceError
from p2psim.network.members import Members
from p2psim.options import per_agent
from p2psim.study.scenario import Scenario

#: Keys of availabilities that may be a mapping from agent to number.
_OF_AVAILABILITY = ("up", "down", "drop", "phase")


def _agents(scenario: Scenario) -> Iterator[Fault]:
    """Sections must agree on how many agents there are, and name no others."""
    try:
        number, names = scenario.network.topology.size_and_names()
    except MissingSourceError:
        return  # said where the file is needed: what a finished run was made from may be gone
    said = dict(_numbers(scenario))
    if number is not None:
        for key, other in said.items():
            if other != number:
                yield Fault(f"gives {other} owners, but network.topology asks for {number}", key)
    number = number if number is not None else next(iter(said.values()), None)
    if number is None:
        return
    holders = scenario.privacy.overlap.holders
    if holders > number:
        message = f"must be at most the number of owners, {number}, got {holders}"
        yield Fault(message, "privacy.overlap.holders")
    labels = _labels(scenario, number, names)
    if labels is not None:
        for check in _checks(scenario, labels):
            try:
                check()
            except MissingSourceError:
                pass  # said where the file is needed, too
            except MeaningError as error:
                yield from error.faults


#: Agents beyond which names are not judged one by one.
_MOST_LABELS = 10_000_000


def _numbers(scenario: Scenario) -> Iterator[tuple[str, int]]:
    """Numbers of agents that the data section gives, each by its key."""
    data = scenario.data
    if data.groups is not None and data.groups.merge:
        yield "data.groups.merge", len(data.groups.names)
        return
    for key, part in (("data.source", data.source), ("data.partition", data.partition)):
        agents, sizes = getattr(part, "agents", None), getattr(part, "sizes", None)
        if isinstance(agents, int):
            yield f"{key}.agents", agents
        if isinstance(sizes, list):
            yield f"{key}.sizes", len(sizes)


def _labels(scenario: Scenario, number: int, names: Sequence[str] | None) -> Sequence[str] | None:
    """What agents are called; None where the records say it."""
    data = scenario.data
    if data.groups is not None and data.groups.merge:
        return data.groups.names
    if data.partition.divides_by is not None if data.partition is not None else not data.source.generated:
        return None
    if names is not None:
        return names
    # So many do not fit into memory, which is said elsewhere.
    return [str(i) for i in range(number)] if number <= _MOST_LABELS else None


def _checks(scenario: Scenario, labels: Sequence[str]) -> Iterator[Callable[[], Any]]:
    """What names agents, each to be checked by itself."""
    network, groups = scenario.network, scenario.data.groups
    of_group = groups.names if groups is not None and not groups.merge else []
    availability, points = network.availability, getattr(scenario.data.source, "points", None)
    values = {f"network.availability.{name}": getattr(availability, name, None) for name in _OF_AVAILABILITY}
    if scenario.privacy.mechanism.is_private:
        values["privacy.epsilon"] = scenario.privacy.epsilon
    if network.clock is not None:
        values["network.clock.rate"] = network.clock.rate
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield partial(_check_mapping, value, labels, of_group, key)
    if isinstance(points, Mapping):
        yield partial(per_agent, points, labels, key="data.source.points")
    if availability.kind == "scripted":
        yield partial(availability.table, Members(labels))


def _check_mapping(
    value: Mapping[str, float], labels: Sequence[str], groups: Sequence[str], key: str
) -> None:
    """Check the names; who is in which group the records say."""
    if not groups:
        per_agent(value, labels, key=key)
    AgentNames(labels).resolve((name for name in value if name not in groups), key)


AGENT_RULES: tuple[Callable[[Scenario], Iterator[Fault]], ...] = (_agents,)
