"""Algorithms that train one model of all agents' records by stochastic gradient steps, as scenarios name them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from p2psim.core.options import Count, NonNegative, Positive
from p2psim.learning.batches import Batch, Whole
from p2psim.learning.sgd.protocol import OfLearner, OnGraph, Order, TrainingAlgorithm
from p2psim.learning.step_sizes import AnyStep, Discount, NoDiscount, PolynomialDiscount, size_at
from p2psim.network.mixing import MixingRule

if TYPE_CHECKING:
    from p2psim.learning.sgd.problem import Answer, Gradient, Memory, Receivers, TrainingTask
    from p2psim.learning.sgd.replay import ModelsReplay, Planner
    from p2psim.learning.sgd.training import Training
    from p2psim.network.exchanges import Exchange
    from p2psim.network.graph import Graph

Share = Annotated[float, Field(gt=0, le=1)]
BelowOne = Annotated[float, Field(ge=0, lt=1)]


class SgdAlgorithm(TrainingAlgorithm):
    """Base of those built in: planners turn their events into instructions for compiled code."""

    step: AnyStep = Field(description="step size η: a number, or how it falls")
    batch: Batch = Field(Whole(), description="which of an agent's records take part in a gradient")
    momentum: BelowOne = Field(0.0, description="β of v ← β·v + g, x ← x − η·v")
    weight_decay: NonNegative = Field(0.0, description="λ: the gradient has λ·θ added, as of ½·λ·‖θ‖²")
    time: Positive | None = Field(None, description="end after what happens at this simulated time")
    commits: Count | None = Field(None, description="end with this many updates")

    def train(self, model: np.ndarray, gradient: Gradient, t: int, memory: Memory) -> np.ndarray:
        """See `TrainingAlgorithm.train`: local steps, whose momentum begins anew."""
        x, v, eta = model, np.zeros_like(model), size_at(self.step, t)
        proximal = getattr(self, "proximal", 0.0)
        for _ in range(getattr(self, "local_steps", 1)):
            v = self.momentum * v + gradient(x)
            x = x - eta * (v + proximal * (x - model))
        return x

    @abstractmethod
    def planner(self, task: TrainingTask, links: Graph, exchange: Exchange) -> Planner:
        """What turns events into instructions."""

    def replay(
        self, task: TrainingTask, links: Graph, exchange: Exchange, receivers: Receivers
    ) -> ModelsReplay:
        """See `TrainingAlgorithm.replay`."""
        from p2psim.learning.sgd.replay import TrainingReplay

        return TrainingReplay(self.planner(task, links, exchange), task, receivers)


class GraphSgd(SgdAlgorithm):
    """Base of those without a learner."""

    audited_as: ClassVar[str] = "training"
    takes_changes: ClassVar[bool] = True

    updates_per_agent: Positive | None = Field(
        None, description="end at the time at which clocks of the mean rate ticked so often, on average"
    )


class DecentralisedSgd(GraphSgd, OnGraph):
    """Agents mix their models with those of neighbours, and step down their own loss (D-PSGD, AD-PSGD).

    Choices
    -------
    order: gossip-then-gradient
        x_i ← y − η·g(y), y = Σ_j W_ij x_j
    order: gradient-then-gossip
        x_i ← Σ_j W_ij (x_j − η·g(x_j))
    order: together
        x_i ← Σ_j W_ij x_j − η·g(x_i) (Lian and others 2017)
    mixing: metropolis
        W_ij = 1/(1 + the larger of both degrees)
    mixing: uniform
        W_ij = 1/(1 + the largest degree of all)
    mixing: degree
        W_ij = 1/(the larger of both degrees)
    mixing: links
        W_ij is the weight of the link
    """

    kind: Literal["decentralised-sgd"] = "decentralised-sgd"
    order: Order = Field("gossip-then-gradient", description="what comes first")
    mixing: MixingRule = Field("metropolis", description="weights W_ij; two agents that meet take ½ each")

    forecast: ClassVar[str] = "graph_training"

    def train(self, model: np.ndarray, gradient: Gradient, t: int, memory: Memory) -> np.ndarray:
        """See `TrainingAlgorithm.train`: one step, whose momentum goes on."""
        memory["velocity"] = self.momentum * memory.get("velocity", 0.0) + gradient(model)
        return np.asarray(model - size_at(self.step, t) * memory["velocity"])

    def planner(self, task: TrainingTask, links: Graph, exchange: Exchange) -> Planner:
        """See `TrainingAlgorithm.planner`."""
        from p2psim.learning.sgd.replay import DecentralisedPlanner
        from p2psim.learning.sgd.training import Training

        training = Training.of(self.step, task.private, momentum=self.momentum)
        return DecentralisedPlanner(training, self.order, exchange, self.weights(task, links))


class GossipLearning(GraphSgd):
    """Models walk over the graph and learn on their way (Ormándi, Hegedűs, Jelasity 2013).

    Choices
    -------
    merge: walk
        what an agent hears is updated: a random walk
    merge: merge-update
        what it hears is merged with what it heard before, then updated
    merge: update-merge
        both are updated, then merged
    merge_weights: equal
        a merge is the mean of both
    merge_weights: age
        each counts by how often it was updated
    """

    kind: Literal["gossip-learning"] = "gossip-learning"
    merge: Literal["walk", "merge-update", "update-merge"] = Field(
        "merge-update", description="what an agent makes of the model that it hears and the one before"
    )
    merge_weights: Literal["equal", "age"] = Field("equal", description="what each counts in a merge")
    local_steps: Count = Field(1, description="gradient steps in an update")

    updates: ClassVar[Literal["wake", "hear"]] = "hear"

    @property
    def queries(self) -> int:
        """See `TrainingAlgorithm.queries`."""
        return self.local_steps * (2 if self.merge == "update-merge" else 1)

    def planner(self, task: TrainingTask, links: Graph, exchange: Exchange) -> Planner:
        """See `TrainingAlgorithm.planner`."""
        from p2psim.learning.sgd.replay import GossipPlanner
        from p2psim.learning.sgd.training import Training

        training = Training.of(self.step, task.private, self.local_steps, self.momentum)
        return GossipPlanner(training, self.merge, self.merge_weights == "age", links.agents)

    def reference(
        self, task: TrainingTask, links: Graph, exchange: Exchange, events: np.ndarray, noise: np.ndarray
    ) -> Iterator[np.ndarray]:
        """See `TrainingAlgorithm.reference`."""
        from p2psim.learning.sgd.reference import reference_gossip_learning

        return reference_gossip_learning(self, task, events, noise)


class FederatedAlgorithm(SgdAlgorithm, OfLearner):
    """Base of those with a learner: an owner answers with what its local steps make of the learner's model."""

    audited_as: ClassVar[str] = "owners-training"

    local_steps: Count = Field(1, description="K, gradient steps of an answer")
    local_epochs: Count | None = Field(
        None,
        description="E, passes over its records in an owner's answer, in place of local_steps; with noise only if all "
        "owners then take as many steps",
    )
    proximal: NonNegative = Field(
        0.0, description="weight of ½‖x − x₀‖² in local steps, x₀ the learner's model (FedProx)"
    )

    @model_validator(mode="after")
    def _steps_or_epochs(self):  # type: ignore[no-untyped-def]
        if self.local_epochs is not None and self.local_steps != 1:
            raise ValueError(
                f"give local_steps or local_epochs; got {self.local_steps} and {self.local_epochs}"
            )
        return self

    def steps_of(self, records: np.ndarray) -> np.ndarray:
        """See `TrainingAlgorithm.steps_of`."""
        if self.local_epochs is None:
            return super().steps_of(records)
        return self.local_epochs * self.batch.epoch(records)

    def with_steps(self, steps: int) -> Self:
        """See `TrainingAlgorithm.with_steps`."""
        return self.model_copy(update={"local_steps": steps, "local_epochs": None})

    def training(self, private: bool) -> Training:
        """How an owner trains."""
        from p2psim.learning.sgd.training import Training

        return Training.of(self.step, private, self.local_steps, self.momentum, self.proximal)

    @abstractmethod
    def rule(self) -> Any:
        """What the learner does, as `p2psim.learning.sgd.learner.LearnerRule`."""

    def planner(self, task: TrainingTask, links: Graph, exchange: Exchange) -> Planner:
        """See `TrainingAlgorithm.planner`."""
        from p2psim.learning.sgd.replay import LearnerPlanner

        steps = self.steps_of(task.problem.records)
        return LearnerPlanner(self.training(task.private), self.rule(), self.answer_weights(task), steps)

    def answer_weights(self, task: TrainingTask) -> np.ndarray:
        """What each owner's answer counts beside others, shape (N,)."""
        return np.ones(task.problem.agents)


def stepped(algorithm: Any, model: np.ndarray, change: Any, memory: Memory) -> np.ndarray:
    """The learner's model after a step along a change of it, with the momentum of such steps."""
    memory["velocity"] = algorithm.server_momentum * memory.get("velocity", 0.0) + change
    return np.asarray(model + algorithm.server_step * memory["velocity"])


class FedAvg(FederatedAlgorithm):
    """In each round the learner averages its owners' locally trained models (McMahan and others 2017).

    Choices
    -------
    answers: records
        an answer counts by its owner's number of records, among those of the owners that answered
    answers: equal
        all answers count alike
    """

    kind: Literal["fedavg"] = "fedavg"
    answers: Literal["records", "equal"] = Field("records", description="what an answer counts")
    server_step: Positive = Field(1.0, description="the learner's step along the mean change")
    server_momentum: BelowOne = Field(0.0, description="momentum of that (FedAvgM)")

    star_exchanges: ClassVar[tuple[str, ...]] = ("round",)

    def answer_weights(self, task: TrainingTask) -> np.ndarray:
        """See `FederatedAlgorithm.answer_weights`."""
        return (
            task.problem.records.astype(float) if self.answers == "records" else super().answer_weights(task)
        )

    def use(self, model: np.ndarray, answers: Sequence[Answer], memory: Memory) -> np.ndarray:
        """See `OfLearner.use`."""
        weights = [answer.records if self.answers == "records" else 1 for answer in answers]
        mean = sum(weight / sum(weights) * a.model for weight, a in zip(weights, answers, strict=True))
        return stepped(self, model, mean - model, memory)

    def rule(self) -> Any:
        """See `FederatedAlgorithm.rule`."""
        from p2psim.learning.sgd.learner import AVERAGE, LearnerRule

        return LearnerRule(AVERAGE, self.server_step, self.server_momentum)


class FedAsync(FederatedAlgorithm):
    """The learner blends each answer with its model as it comes (Xie, Koyejo, Gupta 2019)."""

    kind: Literal["fedasync"] = "fedasync"
    alpha: Share = Field(0.6, description="α: x ← (1 − α·s)·x + α·s·answer, s the weight of its age")
    staleness: Discount = Field(NoDiscount(), description="how an answer counts less as it ages")

    star_exchanges: ClassVar[tuple[str, ...]] = ("request", "poll")

    def use(self, model: np.ndarray, answers: Sequence[Answer], memory: Memory) -> np.ndarray:
        """See `OfLearner.use`."""
        blend = self.alpha * self.staleness.weight(answers[0].age)
        return np.asarray((1 - blend) * model + blend * answers[0].model)

    def rule(self) -> Any:
        """See `FederatedAlgorithm.rule`."""
        from p2psim.learning.sgd.learner import BLEND, LearnerRule

        return LearnerRule(BLEND, self.alpha, 0.0, 1, self.staleness.code, *self.staleness.numbers)


class FedBuff(FederatedAlgorithm):
    """The learner steps along the mean change of m answers (Nguyen and others 2022)."""

    kind: Literal["fedbuff"] = "fedbuff"
    buffer: Count = Field(10, description="m, answers to a step of the learner")
    server_step: Positive = Field(1.0, description="the learner's step along the mean change")
    server_momentum: BelowOne = Field(0.0, description="momentum of that")
    staleness: Discount = Field(
        PolynomialDiscount(power=0.5),
        description="how an answer counts less as it ages, in steps of the learner",
    )

    star_exchanges: ClassVar[tuple[str, ...]] = ("request", "poll")

    def train(self, model: np.ndarray, gradient: Gradient, t: int, memory: Memory) -> np.ndarray:
        """See `TrainingAlgorithm.train`; t counts steps of the learner."""
        return super().train(model, gradient, t // self.buffer, memory)

    def use(self, model: np.ndarray, answers: Sequence[Answer], memory: Memory) -> np.ndarray:
        """See `OfLearner.use`."""
        (answer,) = answers
        commits = answer.version + answer.age
        age = commits // self.buffer - answer.version // self.buffer
        changes = memory.setdefault("changes", [])
        changes.append(self.staleness.weight(age) * (answer.model - answer.start))
        if len(changes) < self.buffer:
            return model
        mean, memory["changes"] = sum(changes) / self.buffer, []
        return stepped(self, model, mean, memory)

    def rule(self) -> Any:
        """See `FederatedAlgorithm.rule`."""
        from p2psim.learning.sgd.learner import BUFFER, LearnerRule

        discount = self.staleness.code, *self.staleness.numbers
        return LearnerRule(BUFFER, self.server_step, self.server_momentum, self.buffer, *discount)


class StarTraining(OfLearner):
    """Base of a training algorithm of your own with a central learner: write `train` and `use`.

    Attributes
    ----------
    star_exchanges : tuple of str
        ``("round",)``: `use` takes the answers of a round; or ``("request", "poll")``: each answer as it comes.
    """

    batch: Batch = Field(Whole(), description="which of an owner's records take part in a gradient")
    local_steps: Count = Field(1, description="gradients of an answer at most; each is accounted for")
    time: Positive | None = Field(None, description="end after what happens at this simulated time")
    commits: Count | None = Field(None, description="end with this many updates")

    star_exchanges: ClassVar[tuple[str, ...]] = ("round",)

    def replay(
        self, task: TrainingTask, links: Graph, exchange: Exchange, receivers: Receivers
    ) -> ModelsReplay:
        """See `TrainingAlgorithm.replay`."""
        from p2psim.learning.sgd.own import StarMethods

        return StarMethods(self, task, exchange, receivers)


class GraphTraining(OnGraph):
    """Base of a training algorithm of your own among agents on a graph: write `train`, and `mix` if it is no mean.

    The exchange is ``gossip``, ``broadcast`` or ``synchronous``. In ``push-pull`` the agent that answers only mixes.
    """

    batch: Batch = Field(Whole(), description="which of an agent's records take part in a gradient")
    local_steps: Count = Field(1, description="gradients of a release at most; each is accounted for")
    mixing: MixingRule = Field("metropolis", description="weights W_ij; two agents that meet take ½ each")
    updates_per_agent: Positive | None = Field(
        None, description="end at the time at which clocks of the mean rate ticked so often, on average"
    )
    time: Positive | None = Field(None, description="end after what happens at this simulated time")
    commits: Count | None = Field(None, description="end with this many updates")

    order: ClassVar[Order] = "gossip-then-gradient"  # type: ignore[misc]

    def replay(
        self, task: TrainingTask, links: Graph, exchange: Exchange, receivers: Receivers
    ) -> ModelsReplay:
        """See `TrainingAlgorithm.replay`."""
        from p2psim.learning.sgd.own import GraphMethods

        return GraphMethods(self, task, links, exchange, receivers)
