"""Rules on the ``learning`` section: which algorithm, model, loss, regulariser and changing graph can be combined."""

import math
from collections.abc import Iterator

from p2psim.core.errors import Fault
from p2psim.learning.graph.metrics import GRAPH_FACTS, GRAPH_METRICS
from p2psim.network.topologies import ChangingTopology
from p2psim.scenario.fields import ScenarioFields


def model(scenario: ScenarioFields) -> Iterator[Fault]:
    """Algorithms train linear models, and some any model; a linear model takes the loss of its score."""
    learning, kind = scenario.learning, scenario.learning.model.kind
    if not learning.model.uses_loss and not learning.algorithm.trains_any_model:
        yield Fault(f"{learning.algorithm.kind} trains linear models only, got {kind}", "learning.model")
    elif learning.model.uses_loss and learning.loss is None:
        yield Fault(
            f"is missing; a {kind} model needs the loss of its score, such as squared", "learning.loss"
        )
    elif not learning.model.uses_loss and learning.loss is not None:
        yield Fault(f"is for linear models; {kind} has a loss of its own: remove loss", "learning.loss")


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
    kind = privacy.allocation.kind
    if privacy.mechanism.is_private and privacy.allocation.for_stars:
        message = f"{kind} is for a star, whose horizon it divides by; give another allocation, such as cap"
        yield Fault(message, "privacy.allocation")


def alone(scenario: ScenarioFields) -> Iterator[Fault]:
    """Whoever minimises its own loss alone needs a regulariser: it may have fewer records than features."""
    learning = scenario.learning
    if learning.regularizer.l2 != 0:
        return
    parts = {"learning.algorithm.start": getattr(learning.algorithm, "start", None)}
    parts |= {f"learning.baselines.{i}": baseline for i, baseline in enumerate(learning.baselines)}
    for key, part in parts.items():
        if part is not None and getattr(part, "needs_l2", False):
            yield Fault(f"{part.kind} needs a positive learning.regularizer.l2, got 0", key)


def shared(scenario: ScenarioFields) -> Iterator[Fault]:
    """What algorithms that train one model need."""
    learning, privacy, kind = scenario.learning, scenario.privacy, scenario.learning.algorithm.kind
    if isinstance(learning.regularizer.l2, str):
        message = f"{learning.regularizer.l2} is for models of their own; {kind} needs a number"
        yield Fault(message, "learning.regularizer.l2")
    if learning.baselines:
        yield Fault("are for models of their own", "learning.baselines")
    for i, name in enumerate(scenario.record.metrics):
        if name == "objective_gap" and not learning.trained_model.is_convex:
            message = f"objective_gap needs the minimum, which is not known of {learning.model.kind}; record objective"
            yield Fault(message, f"record.metrics.{i}")
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
        message = "each-record is for classification only: it changes what a label that is a number means"
        yield Fault(message, "data.scale.x.at")


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
            f"{topology.kind} at times; take metropolis, uniform or links",
            "learning.algorithm.mixing",
        )
    # One model for all agents has an objective that no graph is in.
    of_graph = {
        name
        for name, metric in GRAPH_METRICS.items()
        if metric.needs_objective and algorithm.objective == "personalised"
    }
    for key in ("metrics", "per_agent"):
        for i, name in enumerate(getattr(scenario.record, key)):
            if name in GRAPH_FACTS or name in of_graph:
                why = f"{name} is of a graph that stays, and {topology.kind} changes with time"
                yield Fault(why, f"record.{key}.{i}")
    availability = scenario.network.availability
    for part in (availability, *getattr(availability, "parts", ())):
        depends = getattr(part, "depends", None)
        words = {getattr(part, "by", None), getattr(depends, "on", None)} & {"degree", "betweenness"}
        for word in sorted(map(str, words)):
            why = f"{part.kind} goes by {word}, which changes with time under {topology.kind}"
            yield Fault(why, "network.availability")
