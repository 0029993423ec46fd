"""Rules on one section, ``network``, ``learning`` or ``privacy``: which of its parts can be combined."""

import math
from collections.abc import Callable, Iterator
from typing import Any

from p2psim.core.errors import Fault
from p2psim.data.scaling import NOT_EACH_RECORD
from p2psim.learning.batches import batch_of
from p2psim.learning.graph.metrics import GRAPH_FACTS, GRAPH_METRICS
from p2psim.network.compute import contradictions
from p2psim.network.section import scope_message
from p2psim.network.topologies import ChangingTopology
from p2psim.privacy.allocations import Allocation
from p2psim.scenario.fields import ScenarioFields
from p2psim.scenario.record import has_minimum, named_metrics


def model(scenario: ScenarioFields) -> Iterator[Fault]:
    """Algorithms train linear models, and some any model; a linear model takes the loss of its score."""
    learning, kind = scenario.learning, scenario.learning.model.kind
    if not learning.model.uses_loss and not learning.algorithm.trains_any_model:
        yield Fault(f"{learning.algorithm.kind} trains linear models only, got {kind}", "learning.model")
    elif learning.model.uses_loss and learning.loss is None:
        message = f"is missing; a {kind} model needs the loss of its score, such as squared"
        yield Fault(message, "learning.loss")
    elif not learning.model.uses_loss and learning.loss is not None:
        yield Fault(f"is for linear models; {kind} has its own loss: remove loss", "learning.loss")


def fitness(scenario: ScenarioFields) -> Iterator[Fault]:
    """One model of all owners, with a regulariser of its own."""
    learning, kind, key = scenario.learning, scenario.learning.algorithm.kind, "learning.regularizer.l2"
    if isinstance(learning.regularizer.l2, str):
        message = f"{learning.regularizer.l2} is for agents on a graph; {kind} needs a positive number"
        yield Fault(message, key)
    elif learning.regularizer.l2 == 0 and kind == "async-star":
        yield Fault("async-star divides by 2·l2, which must be a positive number, got 0", key)
    elif learning.regularizer.l2 == 0 and not math.isfinite(learning.score_loss.curvature):
        message = f"must be positive: the {learning.score_loss.kind} loss alone may have many optima; got 0"
        yield Fault(message, key)
    if learning.baselines:
        yield Fault("are for agents on a graph; of a star record isolated_fitness", "learning.baselines")
    yield from _judged(scenario)


def _judged(scenario: ScenarioFields) -> Iterator[Fault]:
    """Metrics of predicted classes are not for a model that predicts numbers, nor the reverse."""
    learning, labels = scenario.learning, scenario.learning.trained_model.labels
    known, cure = ("numbers", "test_rmse") if labels == "numbers" else ("classes", "test_accuracy")
    trained = learning.model.kind if learning.loss is None else learning.loss.kind
    for key, name in named_metrics(scenario.record):
        judged = GRAPH_METRICS[name].labels if name in GRAPH_METRICS else ""
        if judged not in ("", known):
            message = f"{name} is of labels that are {judged}, and {trained} takes {known}; record {cure}"
            yield Fault(message, key)


def reweighting(scenario: ScenarioFields) -> Iterator[Fault]:
    """Only the learner counts answers."""
    algorithm = scenario.learning.algorithm
    reweighting = getattr(algorithm, "reweight", ""), getattr(algorithm, "reweight_at", "")
    if reweighting == ("estimated", "owner"):
        message = "estimated counts are the learner's; an owner does not know them"
        yield Fault(message, "learning.algorithm.reweight_at")


def personalised(scenario: ScenarioFields) -> Iterator[Fault]:
    """What agents who learn their own models can minimise, release and record."""
    learning, privacy = scenario.learning, scenario.privacy
    if not math.isfinite(learning.score_loss.curvature):
        message = f"{learning.algorithm.kind} needs a smooth loss, such as squared or logistic"
        yield Fault(message, "learning.loss")
    inner = getattr(learning.algorithm, "inner", 1)
    if inner > 1 and privacy.mechanism.is_private and privacy.epsilon != math.inf:
        message = f"must be 1 with noise: each of {inner} inner steps takes the gradient anew, and one draw hides one"
        yield Fault(message, "learning.algorithm.inner")
    yield from _divided(scenario)


def _divided(scenario: ScenarioFields) -> Iterator[Fault]:
    """Some allocations divide a budget by the horizon, which only a star has: of n agents each would get a n-th."""
    allocation = scenario.privacy.allocation
    if scenario.privacy.mechanism.is_private and allocation.for_stars:
        message = f"{allocation.kind} is for a star, whose horizon it divides by; give another allocation, such as cap"
        yield Fault(message, "privacy.allocation")


def alone(scenario: ScenarioFields) -> Iterator[Fault]:
    """Whoever minimises its own loss alone needs a regulariser: it may have fewer records than features."""
    learning = scenario.learning
    if learning.regularizer.l2 != 0:
        return
    parts: dict[str, Any] = {"learning.algorithm.start": learning.algorithm.first_models}
    parts |= {f"learning.baselines.{i}": baseline for i, baseline in enumerate(learning.baselines)}
    for key, part in parts.items():
        if part is not None and getattr(part, "needs_l2", False):
            yield Fault(f"{part.kind} needs a positive learning.regularizer.l2, got 0", key)


def shared(scenario: ScenarioFields) -> Iterator[Fault]:
    """What algorithms that train one model need."""
    learning, privacy, kind = scenario.learning, scenario.privacy, scenario.learning.algorithm.kind
    if isinstance(learning.regularizer.l2, str):
        message = (
            f"{learning.regularizer.l2} is for agents that learn their own models; {kind} needs a number"
        )
        yield Fault(message, "learning.regularizer.l2")
    if learning.baselines:
        yield Fault("are for agents that learn their own models", "learning.baselines")
    for i, name in enumerate(scenario.record.metrics):
        if name == "objective_gap" and not has_minimum(scenario):
            message = f"objective_gap needs the minimum, which is not known of {learning.model.kind}; record objective"
            yield Fault(message, f"record.metrics.{i}")
    yield from _judged(scenario)
    if not learning.algorithm.star_exchanges:
        yield from _divided(scenario)
    buffer, commits = (getattr(learning.algorithm, name, None) for name in ("buffer", "commits"))
    if buffer is not None and commits is not None and buffer > commits:
        message = (
            f"must be at most the answers of the run, commits: {commits}, or no step is made; got {buffer}"
        )
        yield Fault(message, "learning.algorithm.buffer")
    bound = privacy.sensitivity if privacy.mechanism.is_private else None
    if bound is not None and not (bound.holds and bound.clipping):
        message = f"{kind} takes clip: no bound on its gradients is public; got {bound.kind}"
        yield Fault(message, "privacy.sensitivity")
    if privacy.when_spent == "anchored":
        yield Fault(f"{kind} has no anchors; take silent or coast", "privacy.when_spent")


def labels(scenario: ScenarioFields) -> Iterator[Fault]:
    """Classes are taken as they are; what numbers mean depends on the scale of x."""
    learning, scale = scenario.learning, scenario.data.scale
    labels = learning.trained_model.labels
    if labels == "signs" and scale.y is not None:
        message = f"the {learning.score_loss.kind} loss takes labels ±1, which are not scaled"
        yield Fault(message, "data.scale.y")
    if labels == "classes" and scale.y is not None:
        yield Fault(f"{learning.model.kind} takes classes, which are not scaled", "data.scale.y")
    if labels == "numbers" and scale.x is not None and scale.x.at == "each-record":
        yield Fault(NOT_EACH_RECORD, "data.scale.x.at")


def changing(scenario: ScenarioFields) -> Iterator[Fault]:
    """Graphs that change are for algorithms, metrics and absences that need no weights and degrees of all time."""
    topology, algorithm = scenario.network.topology, scenario.learning.algorithm
    if not isinstance(topology, ChangingTopology):
        return
    if not algorithm.takes_changes:
        yield Fault(
            f"{topology.kind} changes with time, and {algorithm.kind} needs weights of links that stay; averaging, "
            "push-sum, decentralised-sgd and gossip-learning do not",
            "network.topology",
        )
    if getattr(algorithm, "mixing", None) == "degree":
        yield Fault(
            f"degree leaves no weight for their own models to two agents who are alone with each other, as under "
            f"{topology.kind} at times; take metropolis or uniform",
            "learning.algorithm.mixing",
        )
    # One model for all agents has an objective that no graph is in.
    is_own = algorithm.objective == "personalised"
    of_graph = {name for name, metric in GRAPH_METRICS.items() if is_own and metric.needs_objective}
    for key, name in named_metrics(scenario.record):
        if name in GRAPH_FACTS or name in of_graph:
            yield Fault(f"{name} is of a graph that stays, and {topology.kind} changes with time", key)
    for part in scenario.network.availability.reasons:
        depends = getattr(part, "depends", None)
        words = {getattr(part, "by", None), getattr(depends, "on", None)} & {"degree", "betweenness"}
        for word in sorted(map(str, words)):
            why = f"{part.kind} goes by {word}, which changes with time under {topology.kind}"
            yield Fault(why, "network.availability")


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


def _sensitivity(scenario: ScenarioFields) -> Iterator[Fault]:
    """What a bound says of the noise, and of where it is used."""
    if (bound := scenario.privacy.sensitivity) is not None:
        yield from bound.faults(scenario.privacy, bool(scenario.learning.algorithm.star_exchanges))


def _accountants(scenario: ScenarioFields) -> Iterator[Fault]:
    """Whoever accounts must know the noise, and have the δ that it needs."""
    privacy = scenario.privacy
    if not privacy.mechanism.is_private:
        return
    from p2psim.privacy.accounting.accountants import ACCOUNTANTS
    from p2psim.privacy.accounting.noises import Subsampled

    noise = privacy.mechanism.noise
    if batch_of(scenario.learning.algorithm).amplifies:
        noise = Subsampled(noise, 0.5)  # or one for Poisson samples, which the same accountants know
    named = [(f"privacy.accountant.{i}", name) for i, name in enumerate(privacy.accountant)]
    named += [("privacy.enforce", privacy.enforce)] if privacy.enforce else []
    compose = privacy.allocation.composed_by
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
        message = f"composes by {compose}, but {privacy.enforcing} enforces the budget"
        yield Fault(f"{message}: give enforce: {compose}", "privacy.allocation.compose")


def _allocation(scenario: ScenarioFields) -> Iterator[Fault]:
    """What an allocation says of its keys."""
    allocation = scenario.privacy.allocation
    yield from allocation.faults(bool(scenario.learning.algorithm.star_exchanges))
    if allocation.clairvoyant and type(allocation).logarithms is Allocation.logarithms:
        yield Fault(f"{allocation.kind} is clairvoyant, and its class lacks logarithms", "privacy.allocation")


def _overlap(scenario: ScenarioFields) -> Iterator[Fault]:
    """A record may have several holders only among the owners of a star."""
    if scenario.privacy.overlap.holders > 1 and not scenario.learning.algorithm.star_exchanges:
        yield Fault("must be 1 without a star, whose owners it is for", "privacy.overlap.holders")


def _tail(scenario: ScenarioFields) -> Iterator[Fault]:
    """The tail of a binomial counts the answers only where each answer is anyone's, independently."""
    if not scenario.privacy.allocation.counts_answers:
        return
    network = scenario.network
    holds = {
        "exchange: request": network.exchange.anyone_answers,
        "concurrency: 1": network.exchange.places(2) == 1,
        "a channel without latency and loss": network.channel.ideal,
        "availability: always": network.availability.ideal,
    }
    if missing := [need for need in holds if not holds[need]]:
        yield Fault(f"needs {', '.join(missing)}; elsewhere give releases", "privacy.allocation.tail")


def _anchor(scenario: ScenarioFields) -> Iterator[Fault]:
    """Some algorithms go on without their data by mixing alone."""
    algorithm = scenario.learning.algorithm
    if scenario.privacy.when_spent == "anchored" and not algorithm.has_anchor:
        yield Fault(f"{algorithm.kind} has no anchor; give silent or coast", "privacy.when_spent")


def _rejoin(scenario: ScenarioFields) -> Iterator[Fault]:
    """A model of one's own to come back with is known of these algorithms."""
    algorithm, rejoin = scenario.learning.algorithm, scenario.network.availability.rejoin
    if rejoin != "stale" and not algorithm.rejoins:
        known = "async-star, coordinate-descent and model-propagation"
        yield Fault(f"{rejoin} is for {known}; {algorithm.kind} takes stale", "network.availability.rejoin")


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


NETWORK_RULES: tuple[Callable[[ScenarioFields], Iterator[Fault]], ...] = (
    _rejoin, _clock, _silence, _compute, _array_engine,
)  # fmt: skip
PRIVACY_RULES: tuple[Callable[[ScenarioFields], Iterator[Fault]], ...] = (
    _noise, _sensitivity, _accountants, _allocation, _overlap, _tail, _anchor,
)  # fmt: skip
