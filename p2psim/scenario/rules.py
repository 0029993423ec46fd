"""Rules between the sections of a scenario: values that are valid alone and contradict each other.

Each rule is a function from a scenario (of one cell) to faults with a key. Rules judge what is known before any record
is read; what depends on the data itself, such as sizes, is checked where the data is prepared.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from pydantic import BaseModel

from p2psim.core.agent_names import AgentNames
from p2psim.core.errors import Fault, InputError, MeaningError, MissingSourceError
from p2psim.core.faults import unknown
from p2psim.core.figures import meanings
from p2psim.core.options import mappings_from_agents, per_agent
from p2psim.core.registry import load_installed
from p2psim.learning.graph.metrics import GRAPH_FACTS, GRAPH_METRICS
from p2psim.learning.metrics import METRICS
from p2psim.network.compute import contradictions
from p2psim.network.members import Members
from p2psim.network.metrics import NETWORK_METRICS
from p2psim.network.section import scope_message
from p2psim.scenario import learning_rules
from p2psim.scenario.fields import ScenarioFields, is_whole
from p2psim.scenario.privacy_rules import PRIVACY_RULES
from p2psim.scenario.record import SPENDING
from p2psim.scenario.tuning import tuning

Rule = Callable[[ScenarioFields], Iterator[Fault]]

#: Agents beyond which names are not judged one by one.
_MOST_LABELS = 10_000_000


def check_consistency(scenario: ScenarioFields) -> list[Fault]:
    """Return everything in a scenario that contradicts something else in it.

    Of a scenario without some of its sections or keys (see :mod:`p2psim.scenario.partly`), what the others contradict.
    """
    rules = RULES
    with suppress(AttributeError):
        rules = rules_of(scenario.learning.algorithm) + rules
    faults = list(_faults_of(learning_rules.model, scenario))
    # Without the loss that it needs, rules that read it are skipped.
    lenient = bool(faults)
    faults += (fault for rule in rules for fault in _faults_of(rule, scenario, lenient))
    return list(dict.fromkeys(faults))


def _faults_of(rule: Rule, scenario: ScenarioFields, lenient: bool = False) -> Iterator[Fault]:
    """Faults that a rule yields, or that a part of the user's own raises."""
    try:
        yield from rule(scenario)
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


def _star_owners(scenario: ScenarioFields) -> Iterator[Fault]:
    """Owners of a star have no models, and no groups are told apart."""
    for key in ("per_agent", "by"):
        if getattr(scenario.record, key):
            yield Fault("is for agents on a graph", f"record.{key}")


def _silent_owners(scenario: ScenarioFields) -> Iterator[Fault]:
    """An owner tells the learner nothing without its data."""
    if scenario.privacy.when_spent != "silent":
        message = (
            "an owner of a star has nothing to tell the learner without its data; silent is what it can do"
        )
        yield Fault(message, "privacy.when_spent")


def _rejoin(scenario: ScenarioFields) -> Iterator[Fault]:
    """A model of one's own to come back with is known of these algorithms."""
    algorithm, rejoin = scenario.learning.algorithm, scenario.network.availability.rejoin
    if rejoin != "stale" and not algorithm.rejoins:
        known = "async-star, coordinate-descent and model-propagation"
        message = f"{rejoin} is for {known}; {algorithm.kind} takes stale"
        yield Fault(message, "network.availability.rejoin")


def _graph(scenario: ScenarioFields) -> Iterator[Fault]:
    """Algorithms of agents who learn their own models each."""
    exchange, algorithm, key = scenario.network.exchange, scenario.learning.algorithm, "network.exchange"
    kind = algorithm.kind
    if exchange.needs_learner:
        yield Fault(f"{kind} needs broadcast or gossip, got {exchange.kind}", key)
    if algorithm.by_edge and not exchange.by_edge:
        yield Fault(f"{kind} is for links that wake: {{kind: gossip, mode: edge}}", key)
    if exchange.by_edge and not algorithm.by_edge:
        message = f"links that wake are for gossip-admm; {kind} takes push, pull or push-pull"
        yield Fault(message, f"{key}.mode")
    if exchange.in_rounds and not exchange.needs_learner and not algorithm.takes_rounds:
        yield Fault(f"{kind} is for agents that act each for itself: it takes broadcast or gossip", key)
    if getattr(exchange, "blocking", False) and algorithm.answerer_releases:
        message = (
            f"is for algorithms in which who answers makes no release, such as decentralised-sgd; got {kind}"
        )
        yield Fault(message, f"{key}.blocking")
    hears = getattr(algorithm, "updates", "wake") == "hear"
    if hears and not (exchange.needs_learner or exchange.updates_on_hearing):
        yield Fault(f"{kind} needs gossip: it updates a model when it hears another", key)
    if not algorithm.takes_answers and getattr(exchange, "mode", "push") != "push":
        yield Fault(f"{kind} needs no answers: it takes push", f"{key}.mode")


def _kinds(scenario: ScenarioFields) -> Iterator[Fault]:
    """Means over agents of a kind need kinds."""
    by = scenario.record.by
    if by == "group" and scenario.data.groups is None:
        yield Fault("group needs groups of agents: give data.groups", "record.by")
    if by in ("degree", "cluster") and scenario.network.exchange.needs_learner:
        yield Fault(f"{by} is for agents on a graph", "record.by")


def _clock(scenario: ScenarioFields) -> Iterator[Fault]:
    """Where the learner asks, nobody has a clock of its own."""
    kind = scenario.network.exchange.kind
    if not scenario.network.exchange.has_clocks and scenario.network.clock is not None:
        wakes = "the learner's queries" if scenario.network.exchange.needs_learner else "rounds"
        message = f"agents have no clock under {kind}: {wakes} wake them; remove clock"
        hint = ", or use request" if scenario.network.exchange.polled else ""
        yield Fault(message + hint, "network.clock")


def _silence(scenario: ScenarioFields) -> Iterator[Fault]:
    """A run to a number of commits ends only if messages arrive."""
    if "request" in scenario.learning.algorithm.star_exchanges and scenario.network.channel.loss == 1:
        yield Fault("every message is lost, so that no commit would ever be made", "network.channel.loss")


def _compute(scenario: ScenarioFields) -> Iterator[Fault]:
    """Time to compute, in place of other times, and for algorithms that know of it."""
    network, algorithm = scenario.network, scenario.learning.algorithm
    if network.compute is None:
        return
    if not algorithm.computes:
        yield Fault(f"{algorithm.kind} takes no time to compute: remove compute", "network.compute")
    for key, message in contradictions(network.compute, network.exchange, network.availability):
        yield Fault(message, key)


def _array_engine(scenario: ScenarioFields) -> Iterator[Fault]:
    """The array engine makes the events of networks all of whose parts have a compiled form."""
    network = scenario.network
    uncompiled = network.uncompiled_parts()
    if network.engine == "array" and uncompiled:
        yield Fault(f"{scope_message(uncompiled)}; auto takes it where it can", "network.engine")


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
    some = getattr(scenario.network.exchange, "participants", None)
    if some is not None and some > number:
        message = f"must be at most the number of owners, {number}, got {some}"
        yield Fault(message, "network.exchange.participants")
    holders = scenario.privacy.overlap.holders
    if holders > number:
        message = f"must be at most the number of owners, {number}, got {holders}"
        yield Fault(message, "privacy.overlap.holders")
    labels = _agent_names(scenario, number, names)
    if labels is None:
        return
    # What the nodes of a file are called, where agents do not have their names yet.
    nodes = None
    if names is None and scenario.data.source.generated:
        nodes = scenario.network.topology.by_order().size_and_names()[1]
    for check in _checks(scenario):
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
    for key, part in (("data.source", data.source), ("data.partition", data.partition)):
        agents, sizes = getattr(part, "agents", None), getattr(part, "sizes", None)
        if isinstance(agents, int):
            yield f"{key}.agents", agents
        if isinstance(sizes, list):
            yield f"{key}.sizes", len(sizes)


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


def _checks(scenario: ScenarioFields) -> Iterator[Callable[[Sequence[str]], Any]]:
    """What names agents: each raises an error where it means none of those labels."""
    network, groups, source = scenario.network, scenario.data.groups, scenario.data.source
    of_group = groups.names if groups is not None and not groups.merge else []
    availability, clock = network.availability, network.clock
    sections: dict[str, BaseModel] = {"network": network}
    if scenario.privacy.mechanism.is_private:
        sections["privacy"] = scenario.privacy
    if clock is not None:
        yield clock.check_names
    if network.compute is not None:
        yield network.compute.check_names
    for section, part in sections.items():
        for key, value in mappings_from_agents(part, section):
            yield partial(_check_mapping, value, of_group, key)
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
    known = meanings_of(scenario)
    if not known.keys() >= {*record.metrics, *record.per_agent} and load_installed():
        known = meanings_of(scenario)
    kept = (record.metrics, record.per_agent, record.events, record.noise, record.models, record.data)
    if not any(kept):
        yield Fault("names no metric, and nothing else is kept; relative_fitness is one", "record.metrics")
    for key in ("metrics", "per_agent"):
        for i, name in enumerate(getattr(record, key)):
            if name not in known:
                yield Fault(unknown("metric", name, list(known)), f"record.{key}.{i}")
            elif key == "per_agent" and (name not in GRAPH_METRICS or not GRAPH_METRICS[name].each):
                message = f"{name} is one number for all agents; record it under metrics"
                yield Fault(message, f"record.per_agent.{i}")


def meanings_of(scenario: ScenarioFields) -> dict[str, str]:
    """What can be recorded with the scenario's algorithm, and what it means."""
    algorithm = scenario.learning.algorithm
    if algorithm.objective == "fitness":
        return meanings(METRICS, NETWORK_METRICS, SPENDING)
    fitting = {
        name: metric for name, metric in GRAPH_METRICS.items() if algorithm.objective in metric.objectives
    }
    return meanings(fitting, {} if algorithm.star_exchanges else GRAPH_FACTS, NETWORK_METRICS, SPENDING)


def all_meanings() -> dict[str, str]:
    """What can be recorded with any algorithm, and what it means."""
    common = meanings(NETWORK_METRICS, SPENDING)
    return meanings(METRICS) | common | meanings(GRAPH_METRICS, GRAPH_FACTS)


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
        yield Fault(unknown("metric", scenario.tune.metric, list(known)), "tune.metric")


def _network_metrics(scenario: ScenarioFields) -> Iterator[Fault]:
    """Some metrics say something of some networks only."""
    exchange = scenario.network.exchange
    for i, name in enumerate(scenario.record.metrics):
        if name in NETWORK_METRICS and (
            why := NETWORK_METRICS[name].refusal(exchange.kind, exchange.has_clocks, exchange.by_edge)
        ):
            yield Fault(why, f"record.metrics.{i}")


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
        yield Fault("names no accountant; basic is one", "privacy.accountant")


def rules_of(algorithm: Any) -> tuple[Rule, ...]:
    """Rules for an algorithm: by whether there is a learner, and by what is minimised."""
    of_network = (_star, _silent_owners) if algorithm.star_exchanges else (_graph, learning_rules.changing)
    of_objective: dict[str, tuple[Rule, ...]] = {
        "fitness": (learning_rules.fitness, _star_owners, learning_rules.reweighting),
        "personalised": (learning_rules.personalised, _kinds, learning_rules.alone),
        "shared": (learning_rules.shared, _kinds),
    }
    return of_network + of_objective[algorithm.objective]


#: Rules for all algorithms.
RULES: tuple[Rule, ...] = (
    *(_rejoin, _clock, _silence, _compute, _array_engine, *PRIVACY_RULES, _agents, _metrics, _sequential),
    *(_network_metrics, _named_once, learning_rules.labels, _tuned_metric, tuning),
)
