"""Rules between the sections of a scenario: values that are valid alone and contradict each other.

Each rule is a function from a scenario (of one cell) to faults with a key. Rules judge what is known before any record
is read; what depends on the data itself, such as sizes, is checked where the data is prepared.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from p2psim.core.agent_names import AgentNames
from p2psim.core.errors import Fault, InputError, MeaningError, MissingSourceError
from p2psim.core.faults import unknown
from p2psim.core.figures import meanings
from p2psim.core.options import columns_in, mappings_from_agents, per_agent
from p2psim.core.registry import load_installed, parts
from p2psim.learning.graph.metrics import GRAPH_FACTS, GRAPH_METRICS
from p2psim.learning.metrics import METRICS
from p2psim.network.members import Members
from p2psim.network.metrics import NETWORK_METRICS
from p2psim.scenario import section_rules
from p2psim.scenario.fields import ScenarioFields, alike, is_whole
from p2psim.scenario.record import SPENDING, named_metrics
from p2psim.scenario.tuning import tuning

Rule = Callable[[ScenarioFields], Iterator[Fault]]
#: Raises an error where something names an agent that has none of some labels.
NameCheck = Callable[[Sequence[str]], Any]

#: Agents beyond which names are not judged one by one.
_MOST_LABELS = 10_000_000


class Reading:
    """A scenario in which somebody reads, and the names of what was read: all that the outcome can depend on."""

    def __init__(self, scenario: ScenarioFields):
        self._scenario, self.read = scenario, set[str]()

    def __getattr__(self, name: str) -> Any:
        self.read.add(name)
        return getattr(self._scenario, name)


@dataclass
class Found:
    """What each rule read of the scenario that was checked last, and what it found in it."""

    last: ScenarioFields | None = None
    of_rules: dict[Rule, tuple[set[str], list[Fault]]] = field(default_factory=dict)


def check_consistency(scenario: ScenarioFields, known: Found | None = None) -> list[Fault]:
    """Return everything in a scenario that contradicts something else in it.

    Of a scenario without some of its sections or keys (see :mod:`p2psim.scenario.partly`), what the others contradict.
    Of whole scenarios that are checked one after the other, `known` keeps what rules found: a rule that reads nothing
    in which the next one differs finds the same.
    """
    rules, known = RULES, known or Found()
    # Whatever holds of the last one is then known of this one.
    same, known.last = alike(known.last, scenario), scenario
    with suppress(AttributeError):
        rules = rules_of(scenario.learning.algorithm) + rules
    faults, of_rules, lenient = list[Fault](), known.of_rules, False
    for rule in (section_rules.model, *rules):
        if rule not in of_rules or not of_rules[rule][0] <= same:
            reading = Reading(scenario)
            of_rules[rule] = reading.read, list(_faults_of(rule, scenario, lenient, reading))
        faults += of_rules[rule][1]
        if rule is section_rules.model:
            # Without the loss that it needs, rules that read it are skipped.
            lenient = bool(faults)
    return list(dict.fromkeys(faults))


def _faults_of(rule: Rule, scenario: ScenarioFields, lenient: bool, reading: Any) -> Iterator[Fault]:
    """Faults that a rule yields, or that a part of the user's own raises."""
    try:
        yield from rule(reading)
    except MeaningError as error:
        yield from error.faults
    except AttributeError:
        # A rule that asked for a part that is not well formed.
        if not lenient and is_whole(scenario):
            raise


def _star(scenario: ScenarioFields) -> Iterator[Fault]:
    """Algorithms of a central learner need one, and an exchange in which it asks."""
    network, algorithm = scenario.network, scenario.learning.algorithm
    if not network.topology.is_star:
        yield Fault(f"{algorithm.kind} needs a star, got {network.topology.kind}", "network.topology")
    exchange, known = network.exchange, algorithm.star_exchanges
    if not exchange.needs_learner or exchange.in_rounds != ("round" in known):
        yield Fault(f"{algorithm.kind} needs {' or '.join(known)}, got {exchange.kind}", "network.exchange")


def _silent_owners(scenario: ScenarioFields) -> Iterator[Fault]:
    """An owner sends the learner nothing without its data."""
    if scenario.privacy.when_spent != "silent":
        message = "an owner of a star sends nothing to the learner without its data; only silent is possible"
        yield Fault(message, "privacy.when_spent")


def _graph(scenario: ScenarioFields) -> Iterator[Fault]:
    """Algorithms of agents who learn their own models each."""
    exchange, algorithm, key = scenario.network.exchange, scenario.learning.algorithm, "network.exchange"
    kind = algorithm.kind
    if exchange.needs_learner:
        known = "broadcast, gossip or synchronous" if algorithm.takes_rounds else "broadcast or gossip"
        yield Fault(f"{kind} needs {known}, got {exchange.kind}", key)
    if algorithm.by_edge and not exchange.by_edge:
        yield Fault(f"{kind} is for links that wake: {{kind: gossip, mode: edge}}", key)
    if exchange.by_edge and not algorithm.by_edge:
        message = f"links that wake are for gossip-admm; {kind} takes push, pull or push-pull"
        yield Fault(message, f"{key}.mode")
    if exchange.in_rounds and not exchange.needs_learner and not algorithm.takes_rounds:
        yield Fault(f"{kind} is for agents that act each for itself: it takes broadcast or gossip", key)
    if exchange.blocks and algorithm.answerer_releases:
        message = (
            f"is for algorithms whose answering agent makes no release, such as decentralised-sgd; got {kind}"
        )
        yield Fault(message, f"{key}.blocking")
    hears = getattr(algorithm, "updates", "wake") == "hear"
    if hears and not (exchange.needs_learner or exchange.updates_on_hearing):
        yield Fault(f"{kind} needs gossip: it updates a model when it hears another", key)
    if not algorithm.takes_answers and exchange.sends_back:
        yield Fault(f"{kind} needs no answers: it takes push", f"{key}.mode")


def _kinds(scenario: ScenarioFields) -> Iterator[Fault]:
    """Means over agents of a kind need kinds."""
    by = scenario.record.by
    if by == "group" and scenario.data.groups is None:
        yield Fault("group needs groups of agents: give data.groups", "record.by")
    if by not in (None, "group") and scenario.network.exchange.needs_learner:
        yield Fault(f"{by} is for agents on a graph", "record.by")
    topology = scenario.network.topology
    if by == "block" and not topology.block_sizes(topology.size or 2):
        yield Fault(f"block needs a topology that is drawn in blocks, got {topology.kind}", "record.by")
    if by is None:
        return
    of_each = [name for name, metric in GRAPH_METRICS.items() if metric.each]
    if not set(of_each) & set(scenario.record.metrics):
        known = [name for name in of_each if name in meanings_of(scenario)]
        which = f"; such are {', '.join(known)}" if known else ""
        message = f"has no effect: record.metrics has no metric that single agents have{which}"
        yield Fault(message, "record.by")


def _columns(section: str, scenario: ScenarioFields) -> Iterator[Fault]:
    """A column that gives each owner a number is listed, so that it is no feature in any cell."""
    listed = scenario.data.per_owner or []
    for key, part in columns_in(getattr(scenario, section), section):
        if part.column not in listed:
            yield Fault(f"needs data.per_owner: [{', '.join([*listed, part.column])}]", f"{key}.column")


def _agents(scenario: ScenarioFields) -> Iterator[Fault]:
    """Sections must agree on how many agents there are, and name no others."""
    try:
        number, names = scenario.network.topology.size_and_names()
    except MissingSourceError:
        return  # said where the file is needed: what a finished run was made from may be gone
    of_data = dict(_numbers(scenario))
    for key, other in of_data.items():
        if number not in (None, other):
            yield Fault(f"gives {other} owners, but network.topology asks for {number}", key)
    number = number if number is not None else next(iter(of_data.values()), None)
    if number is None:
        return
    some = scenario.network.exchange.asked(number)
    if some > number:
        message = f"must be at most the number of owners, {number}, got {some}"
        yield Fault(message, "network.exchange.participants")
    yield from _names(scenario, number, names, _checks(scenario))


def _agents_of_privacy(scenario: ScenarioFields) -> Iterator[Fault]:
    """What names agents in the privacy section, and how many agents may hold a record."""
    privacy = scenario.privacy
    named = mappings_from_agents(privacy, "privacy") if privacy.mechanism.is_private else ()
    mappings = list(named)
    if not mappings and privacy.overlap.holders == 1:
        return
    try:
        number, names = scenario.network.topology.size_and_names()
    except MissingSourceError:
        return
    number = number if number is not None else next((other for _, other in _numbers(scenario)), None)
    if number is None:
        return
    if (holders := privacy.overlap.holders) > number:
        message = f"must be at most the number of owners, {number}, got {holders}"
        yield Fault(message, "privacy.overlap.holders")
    groups = _groups(scenario)
    checks = (partial(_check_mapping, value, groups, key) for key, value in mappings)
    yield from _names(scenario, number, names, checks)


def _names(
    scenario: ScenarioFields, number: int, names: Sequence[str] | None, checks: Iterator[NameCheck]
) -> Iterator[Fault]:
    labels = _agent_names(scenario, number, names)
    if labels is None:
        return
    # What the nodes of a file are called, where agents do not have their names yet.
    nodes = None
    if names is None and scenario.data.source.generated:
        nodes = scenario.network.topology.by_order().size_and_names()[1]
    for check in checks:
        try:
            check(labels)
        except MissingSourceError:
            pass  # said where the file is needed, too
        except MeaningError as error:
            cure = ""
            with suppress(InputError):
                if nodes is not None:
                    check(nodes)
                    cure = "; network.topology.nodes: order gives agents the names of the file's nodes"
            yield from (replace(fault, message=fault.message + cure) for fault in error.faults)


def _numbers(scenario: ScenarioFields) -> Iterator[tuple[str, int]]:
    """Numbers of agents that the data section gives, each by its key."""
    data = scenario.data
    if data.groups is not None and data.groups.merge:
        yield "data.groups.merge", len(data.groups.names)
        return
    for section, part in (("data.source", data.source), ("data.partition", data.partition)):
        if part is not None and part.given_owners is not None:
            key, number = part.given_owners
            yield f"{section}.{key}", number


def _agent_names(scenario: ScenarioFields, number: int, names: Sequence[str] | None) -> Sequence[str] | None:
    """What agents are called; None where the records say it."""
    data = scenario.data
    if data.groups is not None and data.groups.merge:
        return data.groups.names
    if data.names_owners:
        return None
    if names is not None:
        return names
    # So many do not fit into memory, which is said elsewhere.
    return [str(i) for i in range(number)] if number <= _MOST_LABELS else None


def _groups(scenario: ScenarioFields) -> Sequence[str]:
    groups = scenario.data.groups
    return groups.names if groups is not None and not groups.merge else []


def _checks(scenario: ScenarioFields) -> Iterator[NameCheck]:
    """What names agents: each raises an error where it means none of those labels."""
    network, source = scenario.network, scenario.data.source
    availability, clock = network.availability, network.clock
    if clock is not None:
        yield clock.check_names
    if network.compute is not None:
        yield network.compute.check_names
    for key, value in mappings_from_agents(network, "network"):
        yield partial(_check_mapping, value, _groups(scenario), key)
    for key, value in mappings_from_agents(source, "data.source"):
        yield partial(_check_mapping, value, [], key)
    yield lambda labels: availability.check_names(Members(labels))


def _check_mapping(
    value: Mapping[str, float], groups: Sequence[str], key: str, labels: Sequence[str]
) -> None:
    """Check the names; who is in which group the records say."""
    if not groups:
        per_agent(value, labels, key=key)
    AgentNames(labels).resolve((name for name in value if name not in groups), key)


def _metrics(scenario: ScenarioFields) -> Iterator[Fault]:
    record = scenario.record
    if not all(_knows(scenario, name) for name in (*record.metrics, *record.per_agent)):
        load_installed()
    kept = (record.metrics, record.per_agent, record.events, record.noise, record.models, record.data)
    if not any(kept):
        message = "is empty, and nothing else is kept; add a metric, such as relative_fitness"
        yield Fault(message, "record.metrics")
    for key, name in named_metrics(record):
        if not _knows(scenario, name):
            yield _unknown_metric(scenario, name, meanings_of(scenario), key)
        elif key.startswith("record.per_agent") and not parts("metric")[name].each:
            yield Fault(f"{name} is one number for all agents; record it under metrics", key)


def _unknown_metric(scenario: ScenarioFields, name: str, known: Mapping[str, str], key: str) -> Fault:
    """A metric that is not known, or is of other algorithms than that of the scenario."""
    if name in parts("metric"):
        algorithm = scenario.learning.algorithm
        why = f"{name} is of other algorithms than {algorithm.kind}"
        if not parts("metric")[name].__module__.startswith("p2psim.") and name in GRAPH_METRICS:
            why += f" (its objectives have no {algorithm.objective!r})"
        return Fault(f"{why}; known: {', '.join(known)}", key)
    return Fault(unknown("metric", name, list(known)), key, names_part=True)


def meanings_of(scenario: ScenarioFields) -> dict[str, str]:
    """What can be recorded with the scenario's algorithm, and what it means."""
    all_of_them = meanings(METRICS, GRAPH_METRICS, GRAPH_FACTS, NETWORK_METRICS, SPENDING)
    return {name: meaning for name, meaning in all_of_them.items() if _knows(scenario, name)}


def _knows(scenario: ScenarioFields, name: str) -> bool:
    """Whether a metric can be recorded with the scenario's algorithm."""
    algorithm, of_graph = scenario.learning.algorithm, GRAPH_METRICS.get(name)
    return (
        (algorithm.objective == "fitness" and name in METRICS)
        or (of_graph is not None and algorithm.objective in of_graph.objectives)
        or (not algorithm.star_exchanges and name in GRAPH_FACTS)
        or name in NETWORK_METRICS
        or name in SPENDING
    )


def all_meanings() -> dict[str, str]:
    """What can be recorded with any algorithm, and what it means."""
    return meanings(METRICS) | meanings(NETWORK_METRICS, SPENDING) | meanings(GRAPH_METRICS, GRAPH_FACTS)


def _sequential(scenario: ScenarioFields) -> Iterator[Fault]:
    """What decides on more replicas must be recorded."""
    rule = scenario.replicas
    if isinstance(rule, int):
        return
    if rule.most < rule.least:
        yield Fault(f"must be at least least, {rule.least}; got {rule.most}", "replicas.most")
    recorded = scenario.record.metrics
    if rule.until.metric not in recorded:
        yield Fault(unknown("recorded metric", rule.until.metric, recorded), "replicas.until.metric")
    models = ["main", *(baseline.kind for baseline in scenario.learning.baselines)]
    if rule.until.model not in models:
        yield Fault(unknown("model", rule.until.model, models), "replicas.until.model")


def _tuned_metric(scenario: ScenarioFields) -> Iterator[Fault]:
    if scenario.tune is not None and scenario.tune.metric not in (known := meanings_of(scenario)):
        yield _unknown_metric(scenario, scenario.tune.metric, known, "tune.metric")


def _network_metrics(scenario: ScenarioFields) -> Iterator[Fault]:
    """Some metrics say something of some networks only."""
    exchange = scenario.network.exchange
    for key, name in named_metrics(scenario.record):
        if name in NETWORK_METRICS and (
            why := NETWORK_METRICS[name].refusal(exchange.kind, exchange.has_clocks, exchange.by_edge)
        ):
            yield Fault(why, key)


def _named_once(scenario: ScenarioFields) -> Iterator[Fault]:
    lists: dict[str, Sequence[str]] = {
        "record.metrics": scenario.record.metrics,
        "record.per_agent": scenario.record.per_agent,
        "learning.baselines": [baseline.kind for baseline in scenario.learning.baselines],
        "privacy.accountant": scenario.privacy.accountant,
        "independent": scenario.independent,
    }
    for key, names in lists.items():
        for i, name in enumerate(names):
            if name in names[:i]:
                yield Fault(f"{name} is named twice", f"{key}.{i}")
    if not scenario.privacy.accountant:
        yield Fault("is empty; add an accountant, such as basic", "privacy.accountant")


def rules_of(algorithm: Any) -> tuple[Rule, ...]:
    """Rules for an algorithm: by whether there is a learner, and by what is minimised."""
    of_network = (_star, _silent_owners) if algorithm.star_exchanges else (_graph, section_rules.changing)
    of_objective: dict[str, tuple[Rule, ...]] = {
        "fitness": (section_rules.fitness, _kinds, section_rules.reweighting),
        "personalised": (section_rules.personalised, _kinds, section_rules.alone),
        "shared": (section_rules.shared, _kinds),
    }
    return of_network + of_objective[algorithm.objective]


#: Rules for all algorithms.
RULES: tuple[Rule, ...] = (
    *(*section_rules.NETWORK_RULES, *section_rules.PRIVACY_RULES),
    *(_agents, _agents_of_privacy, _metrics, _sequential, _network_metrics),
    *(partial(_columns, "network"), partial(_columns, "privacy"), _named_once),
    *(section_rules.labels, _tuned_metric, tuning),
)
