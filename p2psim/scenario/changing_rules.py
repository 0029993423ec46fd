"""Rules for graphs that change with time: what has no meaning where degrees and weights are those of a moment."""

from collections.abc import Iterator

from p2psim.core.errors import Fault
from p2psim.learning.graph.metrics import GRAPH_FACTS, GRAPH_METRICS
from p2psim.network.topologies import ChangingTopology
from p2psim.scenario.fields import ScenarioFields


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
