"""Rules of `p2psim.scenario.rules` on agents: how many there are, and what they are called, wherever that is said.

They judge what is known before any record is read: the number of agents by the topology (a file of links has one) or by
the data section, and names that no column of a table gives.

Rules of `p2psim.scenario.rules` on privacy: which noise, bound, allocation and accountant mean something together.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from p2psim.core.agent_names import AgentNames
from p2psim.core.errors import Fault, InputError, MeaningError, MissingSourceError
from p2psim.core.options import per_agent
from p2psim.learning.batches import batch_of
from p2psim.learning.section import STARS
from p2psim.network.members import Members
from p2psim.privacy.allocations import Allocation
from p2psim.scenario.fields import ScenarioFields

#: Keys of availabilities that may be a mapping from agent to number.
_OF_AVAILABILITY = ("up", "down", "drop", "phase")


def _agents(scenario: ScenarioFields) -> Iterator[Fault]:
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
        # What the nodes of a file are called, where agents do not have their names yet.
        ordered = scenario.network.topology.model_copy(update={"nodes": "order"})
        nodes = ordered.size_and_names()[1] if names is None and scenario.data.source.generated else None
        joined = None if nodes is None else list(_checks(scenario, nodes))
        for i, check in enumerate(_checks(scenario, labels)):
            try:
                check()
            except MissingSourceError:
                pass  # said where the file is needed, too
            except MeaningError as error:
                cured = joined is not None and _passes(joined[i])
                cure = "; network.topology.nodes: order gives agents the names of the file's nodes"
                yield from (replace(fault, message=fault.message + cure * cured) for fault in error.faults)


def _passes(check: Callable[[], Any]) -> bool:
    try:
        check()
    except InputError:
        return False
    return True


#: Agents beyond which names are not judged one by one.
_MOST_LABELS = 10_000_000


def _numbers(scenario: ScenarioFields) -> Iterator[tuple[str, int]]:
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


def _labels(scenario: ScenarioFields, number: int, names: Sequence[str] | None) -> Sequence[str] | None:
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


def _checks(scenario: ScenarioFields, labels: Sequence[str]) -> Iterator[Callable[[], Any]]:
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


AGENT_RULES: tuple[Callable[[ScenarioFields], Iterator[Fault]], ...] = (_agents,)


def _noise(scenario: ScenarioFields) -> Iterator[Fault]:
    """Noise is scaled by a budget and a sensitivity."""
    privacy = scenario.privacy
    if not privacy.mechanism.is_private:
        return
    for key, what in (
        ("epsilon", "a budget (.inf is no noise)"),
        ("sensitivity", "a sensitivity, such as clip"),
    ):
        if getattr(privacy, key) is None:
            yield Fault(f"the {privacy.mechanism.kind} mechanism needs {what}", f"privacy.{key}")
    if (norm := privacy.mechanism.norm) not in ("l1", "l2"):
        yield Fault(f"{privacy.mechanism.kind} has the norm {norm!r}; must be l1 or l2", "privacy.mechanism")


def _norm(scenario: ScenarioFields) -> Iterator[Fault]:
    """A bound on an L2 norm is none on the L1 norm, unless that is asked for by its name; the converse holds."""
    sensitivity, star = scenario.privacy.sensitivity, scenario.learning.algorithm.kind in STARS
    if sensitivity is None:
        return
    if sensitivity.kind == "as-printed" and star:
        yield Fault("as-printed is for agents on a graph; give clip, or empirical", "privacy.sensitivity")
    elif sensitivity.kind == "clip" and sensitivity.norm == "l2":
        mechanism = scenario.privacy.mechanism
        if mechanism.is_private and mechanism.norm == "l1":
            message = f"{mechanism.title} needs l1: beside l2 clipping the loss is up to √p times the claim"
            hint = ", or give gaussian noise" if star else "; as-printed makes that claim, flagged"
            yield Fault(message + hint, "privacy.sensitivity.norm")


def _accountants(scenario: ScenarioFields) -> Iterator[Fault]:
    """Whoever accounts must know the noise, and have the δ that it needs."""
    privacy = scenario.privacy
    if not privacy.mechanism.is_private:
        return
    from p2psim.privacy.accounting.accountants import ACCOUNTANTS
    from p2psim.privacy.accounting.noises import Subsampled

    noise = privacy.mechanism.noise
    if batch_of(scenario.learning.algorithm).kind != "whole":
        noise = Subsampled(noise, 0.5)
    named = [(f"privacy.accountant.{i}", name) for i, name in enumerate(privacy.accountant)]
    named += [("privacy.enforce", privacy.enforce)] if privacy.enforce else []
    compose = getattr(privacy.allocation, "composed_by", None)
    named += [("privacy.allocation.compose", compose)] if compose else []
    what = "releases of batches of records" if isinstance(noise, Subsampled) else "noise"
    for key, name in named:
        if not ACCOUNTANTS[name].supports(noise):
            able = [other for other, accountant in ACCOUNTANTS.items() if accountant.supports(noise)]
            message = f"{name} cannot account for {privacy.mechanism.kind} {what}; {', '.join(able)} can"
            yield Fault(message, key)
    needing = [name for _, name in named if ACCOUNTANTS[name].needs_delta]
    if privacy.delta is None and (needing or privacy.mechanism.power != 1):
        who = f"{needing[0]} needs" if needing else f"{privacy.mechanism.kind} noise needs"
        yield Fault(f"{who} a δ: give a number between 0 and 1, below 1 over the records", "privacy.delta")
    if compose and privacy.accountant and compose != privacy.enforcing:
        message = (
            f"composes by {compose}, but {privacy.enforcing} enforces the budget: give enforce: {compose}"
        )
        yield Fault(message, "privacy.allocation.compose")


def _allocation(scenario: ScenarioFields) -> Iterator[Fault]:
    """What an allocation says of its keys."""
    allocation = scenario.privacy.allocation
    yield from allocation.faults(scenario.learning.algorithm.kind in STARS)
    if allocation.clairvoyant and type(allocation).logarithms is Allocation.logarithms:
        yield Fault(f"{allocation.kind} is clairvoyant, and its class lacks logarithms", "privacy.allocation")


def _overlap(scenario: ScenarioFields) -> Iterator[Fault]:
    """Who holds the same record is told of a star's owners."""
    if scenario.privacy.overlap.holders > 1 and scenario.learning.algorithm.kind not in STARS:
        yield Fault("is for the owners of a star", "privacy.overlap.holders")


def _tail(scenario: ScenarioFields) -> Iterator[Fault]:
    """The tail of a binomial counts the answers only where each answer is anyone's, independently."""
    if getattr(scenario.privacy.allocation, "tail", None) is None:
        return
    network, missing = scenario.network, []
    if network.exchange.kind != "request":
        missing.append("exchange: request")
    if not network.channel.ideal:
        missing.append("a channel without latency and loss")
    if not network.availability.ideal:
        missing.append("availability: always")
    if missing:
        yield Fault(f"needs {', '.join(missing)}; elsewhere give releases", "privacy.allocation.tail")


PRIVACY_RULES: tuple[Callable[[ScenarioFields], Iterator[Fault]], ...] = (
    _noise,
    _norm,
    _accountants,
    _allocation,
    _overlap,
    _tail,
)
