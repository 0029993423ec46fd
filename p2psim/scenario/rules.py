"""Rules that hold between sections: what is well formed, but means nothing together.

Each rule is a short function from a scenario (of one cell) to faults with a key. What depends on the data
itself, such as sizes, is judged where the data is prepared.
"""

import math
from collections.abc import Callable, Iterator, Sequence

from p2psim.core.errors import Fault, MeaningError
from p2psim.core.figures import meanings
from p2psim.core.parts import load_installed
from p2psim.learning.graph.metrics import GRAPH_FACTS, GRAPH_METRICS
from p2psim.learning.metrics import METRICS
from p2psim.learning.section import STARS
from p2psim.network.compiled_engine.common import beyond_arrays, scope_message
from p2psim.network.metrics import NETWORK_METRICS
from p2psim.scenario.faults import unknown
from p2psim.scenario.fields import ScenarioFields, is_whole
from p2psim.scenario.record import SPENDING
from p2psim.scenario.rules_of_agents import AGENT_RULES, PRIVACY_RULES

Rule = Callable[[ScenarioFields], Iterator[Fault]]


def check_consistency(scenario: ScenarioFields) -> list[Fault]:
    """Return everything in a scenario that contradicts something else in it.

    Of a scenario without some of its sections or keys (see :mod:`p2psim.scenario.partly`), what the others contradict.
    """
    return list(dict.fromkeys(fault for rule in RULES for fault in _found(rule, scenario)))


def _found(rule: Rule, scenario: ScenarioFields) -> Iterator[Fault]:
    """What a rule finds, or what is wrong with a part of the user's own that it asked."""
    try:
        yield from rule(scenario)
    except MeaningError as error:
        yield from error.faults
    except AttributeError:
        # A rule that asked for a part that is not well formed.
        if is_whole(scenario):
            raise


def _star(scenario: ScenarioFields) -> Iterator[Fault]:
    """Algorithms of a central learner need one, and an exchange in which it asks."""
    network, kind = scenario.network, scenario.learning.algorithm.kind
    if kind not in STARS:
        return
    if network.topology.kind != "star":
        yield Fault(f"{kind} needs a star, got {network.topology.kind}", "network.topology")
    if network.exchange.kind not in STARS[kind]:
        needs = " or ".join(STARS[kind])
        yield Fault(f"{kind} needs {needs}, got {network.exchange.kind}", "network.exchange")


def _star_learning(scenario: ScenarioFields) -> Iterator[Fault]:
    """One model of all owners, with a regulariser of its own."""
    learning = scenario.learning
    kind = learning.algorithm.kind
    if kind not in STARS:
        return
    if isinstance(learning.regularizer.l2, str):
        message = f"{learning.regularizer.l2} is for agents on a graph; {kind} needs a positive number"
        yield Fault(message, "learning.regularizer.l2")
    elif learning.regularizer.l2 == 0:
        what = (
            "divides by 2·l2, which" if kind == "async-star" else "has one optimum for a positive l2, which"
        )
        yield Fault(f"{kind} {what} must be a positive number, got 0", "learning.regularizer.l2")
    if learning.baselines:
        yield Fault("are for agents on a graph; of a star record isolated_fitness", "learning.baselines")


def _star_owners(scenario: ScenarioFields) -> Iterator[Fault]:
    """Owners of a star have no models, and no groups are told apart."""
    if scenario.learning.algorithm.kind not in STARS:
        return
    for key in ("per_agent", "by"):
        if getattr(scenario.record, key):
            yield Fault("is for agents on a graph", f"record.{key}")
    if scenario.privacy.when_spent != "silent":
        message = (
            "an owner of a star has nothing to tell the learner without its data; silent is what it can do"
        )
        yield Fault(message, "privacy.when_spent")


def _reweighting(scenario: ScenarioFields) -> Iterator[Fault]:
    """Only the learner counts answers."""
    algorithm = scenario.learning.algorithm
    if algorithm.kind != "async-star":
        return
    if algorithm.reweight == "estimated" and algorithm.reweight_at == "owner":
        yield Fault(
            "estimated counts are the learner's; an owner does not know them",
            "learning.algorithm.reweight_at",
        )


def _rejoin(scenario: ScenarioFields) -> Iterator[Fault]:
    """A model of one's own to come back with is known of these algorithms."""
    kind, rejoin = scenario.learning.algorithm.kind, scenario.network.availability.rejoin
    if rejoin != "stale" and kind not in ("async-star", "coordinate-descent", "model-propagation"):
        yield Fault(
            f"{rejoin} is for async-star, coordinate-descent and model-propagation; {kind} takes stale",
            "network.availability.rejoin",
        )


def _graph(scenario: ScenarioFields) -> Iterator[Fault]:
    """Algorithms of agents who learn their own models each."""
    network, learning = scenario.network, scenario.learning
    kind = learning.algorithm.kind
    if kind in STARS:
        return
    if network.exchange.kind not in ("broadcast", "gossip"):
        yield Fault(f"{kind} needs broadcast or gossip, got {network.exchange.kind}", "network.exchange")
    meets = network.exchange.kind == "gossip"
    joins = meets and getattr(network.exchange, "mode", "") == "edge"
    if kind == "gossip-admm" and not joins:
        yield Fault("gossip-admm is for links that wake: {kind: gossip, mode: edge}", "network.exchange")
    if kind != "gossip-admm" and joins:
        message = f"links that wake are for gossip-admm; {kind} takes push, pull or push-pull"
        yield Fault(message, "network.exchange.mode")
    if kind in ("averaging", "push-sum") and network.exchange.kind == "broadcast":
        yield Fault(f"{kind} needs gossip: it updates a model when it hears another", "network.exchange")
    if kind == "push-sum" and getattr(network.exchange, "mode", "push") != "push":
        yield Fault("push-sum needs no answers: it takes push", "network.exchange.mode")


def _graph_learning(scenario: ScenarioFields) -> Iterator[Fault]:
    """What agents who learn their own models can minimise, release and record."""
    learning = scenario.learning
    kind = learning.algorithm.kind
    if kind in STARS:
        return
    if not math.isfinite(learning.loss.curvature):
        yield Fault(f"{kind} needs a smooth loss, such as squared or logistic", "learning.loss")
    inner, budget = getattr(learning.algorithm, "inner", 1), scenario.privacy.epsilon
    if inner > 1 and scenario.privacy.mechanism.is_private and budget != math.inf:
        message = f"must be 1 with noise: each of {inner} inner steps takes the gradient anew, and one draw hides one"
        yield Fault(message, "learning.algorithm.inner")
    allocation = scenario.privacy.allocation
    if scenario.privacy.mechanism.is_private and allocation.for_stars:
        message = f"{allocation.kind} is for a star, whose horizon it divides by; give another allocation, such as cap"
        yield Fault(message, "privacy.allocation")
    if scenario.record.by == "group" and scenario.data.groups is None:
        yield Fault("group needs groups of agents: give data.groups", "record.by")


def _alone(scenario: ScenarioFields) -> Iterator[Fault]:
    """Whoever minimises its own loss alone needs a regulariser: it may have fewer records than features."""
    learning = scenario.learning
    if learning.algorithm.kind in STARS or learning.regularizer.l2 != 0:
        return
    parts = {"learning.algorithm.start": getattr(learning.algorithm, "start", None)}
    parts |= {f"learning.baselines.{i}": baseline for i, baseline in enumerate(learning.baselines)}
    for key, part in parts.items():
        if part is not None and part.kind in ("local", "private"):
            yield Fault(f"{part.kind} needs a positive learning.regularizer.l2, got 0", key)


def _clock(scenario: ScenarioFields) -> Iterator[Fault]:
    """Where the learner asks, nobody has a clock of its own."""
    kind = scenario.network.exchange.kind
    if not scenario.network.exchange.has_clocks and scenario.network.clock is not None:
        message = f"agents have no clock under {kind}: the learner's queries wake them; remove clock"
        hint = ", or use request" if kind == "poll" else ""
        yield Fault(message + hint, "network.clock")


def _silence(scenario: ScenarioFields) -> Iterator[Fault]:
    """A run to a number of commits ends only if messages arrive."""
    if scenario.learning.algorithm.kind == "async-star" and scenario.network.channel.loss == 1:
        yield Fault("every message is lost, so that no commit would ever be made", "network.channel.loss")


def _array_engine(scenario: ScenarioFields) -> Iterator[Fault]:
    """The array engine makes the events of networks where nothing takes time."""
    network = scenario.network
    beyond = beyond_arrays(network.exchange, network.channel, network.availability)
    if network.engine == "array" and beyond:
        yield Fault(f"{scope_message(beyond)}; auto takes it where it can", "network.engine")


def _metrics(scenario: ScenarioFields) -> Iterator[Fault]:
    record = scenario.record
    known = meanings_of(scenario)
    if not known.keys() >= {*record.metrics, *record.per_agent}:
        load_installed()
        known = meanings_of(scenario)
    if not (
        record.metrics or record.per_agent or record.events or record.noise or record.models or record.data
    ):
        yield Fault("names no metric, and nothing else is kept; relative_fitness is one", "record.metrics")
    for i, name in enumerate(scenario.record.metrics):
        if name not in known:
            yield Fault(unknown("metric", name, list(known)), f"record.metrics.{i}")
    for i, name in enumerate(scenario.record.per_agent):
        if name not in known:
            yield Fault(unknown("metric", name, list(known)), f"record.per_agent.{i}")
        elif name not in GRAPH_METRICS or not GRAPH_METRICS[name].each:
            yield Fault(
                f"{name} is one number for all agents; record it under metrics", f"record.per_agent.{i}"
            )


def meanings_of(scenario: ScenarioFields) -> dict[str, str]:
    """What can be recorded with the scenario's algorithm, and what it means."""
    return _of_star() if scenario.learning.algorithm.kind in STARS else _of_graph()


def all_meanings() -> dict[str, str]:
    """What can be recorded with any algorithm, and what it means."""
    return _of_star() | _of_graph()


def _of_star() -> dict[str, str]:
    return meanings(METRICS, NETWORK_METRICS, SPENDING)


def _of_graph() -> dict[str, str]:
    return meanings(GRAPH_METRICS, GRAPH_FACTS, NETWORK_METRICS, SPENDING)


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


def _network_metrics(scenario: ScenarioFields) -> Iterator[Fault]:
    """Some metrics say something of some networks only."""
    exchange = scenario.network.exchange
    for i, name in enumerate(scenario.record.metrics):
        if name in NETWORK_METRICS and (
            why := NETWORK_METRICS[name].refusal(exchange.kind, exchange.has_clocks)
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


def _labels(scenario: ScenarioFields) -> Iterator[Fault]:
    """Losses of classes take labels ±1 as they are; others depend on the scale of x."""
    classes = scenario.learning.loss.needs_classes
    scale = scenario.data.scale
    if classes and scale.y is not None:
        yield Fault(
            f"the {scenario.learning.loss.kind} loss takes labels ±1, which are not scaled", "data.scale.y"
        )
    if not classes and scale.x is not None and scale.x.at == "each-record":
        message = "each-record is for classification only: it changes what a label that is a number means"
        yield Fault(message, "data.scale.x.at")


RULES: tuple[Rule, ...] = (
    _star,
    _star_learning,
    _star_owners,
    _graph,
    _graph_learning,
    _alone,
    _reweighting,
    _rejoin,
    _clock,
    _silence,
    _array_engine,
    *PRIVACY_RULES,
    *AGENT_RULES,
    _metrics,
    _sequential,
    _network_metrics,
    _named_once,
    _labels,
)
