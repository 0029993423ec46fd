"""The ``record``, ``replicas`` and ``tune`` sections: what is recorded, repetitions of each cell, and a tuned key.

Importing this registers the metric of the privacy spent.
"""

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from p2psim.core.figures import Metric, Registered
from p2psim.core.options import INT32, Count, Few, NumberOr, Options, Positive
from p2psim.core.registry import parts, register


class SpendingMetric(Metric):
    """Base of metrics of the privacy spent."""


register(
    SpendingMetric.of(
        "epsilon_spent",
        None,
        "mean over agents of what their releases and starts so far are claimed to cost: the sum of their "
        "ε where noise is pure, else ε by the accountant that enforces budgets; infinite without noise",
        label="privacy spent (mean ε of the agents)",
        rises=True,
        each=True,
    )
)

#: What can be recorded of the privacy spent by any algorithm.
SPENDING = Registered(SpendingMetric)


class EveryTime(Options):
    """Record at regular simulated times."""

    time: Positive = Field(description="simulated time between records")


def between_records(every: int | EveryTime) -> tuple[int | None, float | None]:
    """Steps and simulated time between records: the one that ``record.every`` gives, and None."""
    return (None, every.time) if isinstance(every, EveryTime) else (every, None)


class RecordSection(Options):
    """What is kept.

    Choices
    -------
    by: group
        also the mean over each group of agents
    by: degree
        also the mean over the agents of each number of neighbours
    by: cluster
        also the mean over each cluster of the graph, by greedy modularity (Clauset, Newman, Moore 2004)
    by: louvain
        also the mean over each cluster of the graph, by Louvain's method (Blondel et al. 2008) with the scenario's seed
    by: block
        also the mean over each block of a topology that is drawn in blocks, such as stochastic-block
    """

    metrics: list[str] = Field(
        ["relative_fitness"],
        description="metrics to record; of agents on a graph by default objective_gap and, where records are held "
        "out, test_accuracy of classes or test_rmse",
    )
    per_agent: list[str] = Field(
        [], description="metrics to record for each agent as well, where they are of each"
    )
    by: Literal["group", "degree", "cluster", "louvain", "block"] | None = Field(
        None, description="also give means over agents of the same kind"
    )
    every: NumberOr[Count, EveryTime] = Field(
        1, description="steps between records, or {time: simulated time between records}"
    )
    events: bool = Field(False, description="keep events, and all that verify needs")
    noise: bool = Field(False, description="keep the noise of every release")
    data: bool = Field(False, description="keep the prepared data")
    models: bool = Field(False, description="keep the recorded models")
    centralities: bool | None = Field(
        None,
        description="keep closeness and betweenness of each agent, of graphs of up to 2,000 agents: to find them takes "
        "agents times links steps for each graph; when absent, where metrics of single agents are recorded",
    )

    unsaid: ClassVar[tuple[str, ...]] = ("centralities",)

    @property
    def has_centralities(self) -> bool:
        """Whether closeness and betweenness are kept."""
        return bool(self.per_agent) if self.centralities is None else self.centralities


def named_metrics(record: RecordSection) -> Iterator[tuple[str, str]]:
    """Dotted key and name of each metric of a section: those of all agents, then those of each agent."""
    for key in ("metrics", "per_agent"):
        yield from ((f"record.{key}.{i}", name) for i, name in enumerate(getattr(record, key)))


def metric_named(name: str) -> type[Metric] | None:
    """The metric of a name in tables, which may end with a group in brackets; None if it is not known here."""
    return parts("metric").get(name.partition("[")[0])


def label_of(name: str) -> str:
    """Label of a metric's axis, on one line; what is not known here, or of a group, keeps its name."""
    known = metric_named(name) if "[" not in name else None
    return (known.label if known is not None else "") or name.replace("_", " ")


class Until(Options):
    """The interval that is to become narrow.

    Choices
    -------
    statistic: mean
        by Student's t, which is exact for normal values
    statistic: median
        by order statistics, which holds for any distribution
    """

    metric: str = Field(description="a recorded metric; its last recorded value in each replica counts")
    model: str = Field("main", description="main, or the name of a baseline")
    statistic: Literal["mean", "median"] = Field(
        "mean",
        description="mean, by Student's t, exact for normal values; or median, by order statistics, for any "
        "distribution",
    )
    width: Positive = Field(description="the most that the whole interval may be wide")
    relative: bool = Field(True, description="whether width is a share of the estimate's absolute value")
    confidence: Annotated[float, Field(gt=0, lt=1)] = Field(
        0.95,
        description="that the interval at which a cell stops holds the truth, however often it was looked at",
    )


class Sequential(Options):
    """Replicas are added to each cell until its interval is narrow enough."""

    until: Until = Field(description="the interval that is to become narrow")
    least: Annotated[int, Field(ge=2, le=INT32)] = Field(
        10, description="replicas of each cell at the first look"
    )
    most: Annotated[int, Field(ge=2, le=INT32)] = Field(
        1000, description="replicas at which a cell stops in any case"
    )


Replicas = NumberOr[Few, Sequential]


class Tune(Options):
    """A key whose value each cell chooses by a metric on validation problems, without looking at test records.

    Choices
    -------
    validation: problems
        generated problems of another seed: no record of the study takes part, so that the choice costs no privacy
    validation: split
        a part of each owner's training records: the choice looks at them without noise, so that the ledger has ε = ∞
    """

    unsaid: ClassVar[tuple[str, ...]] = ("chosen",)

    key: str = Field(description="the dotted key")
    values: Annotated[list[Any], Field(min_length=2)] = Field(description="values to choose from")
    metric: str = Field(
        description="decides by its mean over replicas of the last value of the main model; the first of equal values"
    )
    validation: Literal["problems", "split"] = Field(description="what the metric is measured on")
    fraction: Annotated[float, Field(gt=0, lt=1)] = Field(
        0.2, description="of a split: the part of its training records that each owner keeps for validation"
    )
    replicas: Few = Field(5, description="replicas of each value")
    chosen: Annotated[list[Any], Field(min_length=1)] | None = Field(
        None, description="in a resolved scenario: the value of each cell, which nothing chooses again"
    )


def fewest(replicas: int | Sequential) -> int:
    """Replicas that each cell has at least."""
    return replicas if isinstance(replicas, int) else replicas.least


def most(replicas: int | Sequential) -> int:
    """Replicas that each cell has at most."""
    return replicas if isinstance(replicas, int) else replicas.most


def has_minimum(scenario: Any) -> bool:
    """Whether f* of what is trained is known; without the loss that a model needs, which is said elsewhere, it is."""
    learning = scenario.learning
    return (learning.model.uses_loss and learning.loss is None) or learning.trained_model.is_convex


def with_metrics(scenario: Any) -> RecordSection:
    """What is recorded, also where the file does not say it: of models on a graph other metrics than of a star."""
    record, algorithm = scenario.record, scenario.learning.algorithm
    if "metrics" in record.model_fields_set or algorithm.objective == "fitness":
        return record
    source = scenario.data.source
    tested = scenario.data.holds_out or bool(getattr(source, "test_points", getattr(source, "test_path", 0)))
    test = "test_rmse" if scenario.learning.trained_model.labels == "numbers" else "test_accuracy"
    of_gap = algorithm.objective == "personalised" or has_minimum(scenario)
    gap = "objective_gap" if of_gap else "objective"
    return record.model_copy(update={"metrics": [gap, test] if tested else [gap]})
