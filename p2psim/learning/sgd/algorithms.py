"""Algorithms that train one model of all agents' records by stochastic gradient steps, as scenarios name them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from p2psim.core.options import ByKind, Count, NonNegative, Options, Positive
from p2psim.learning.batches import Batch, Whole
from p2psim.learning.sgd.step_sizes import AnyStep
from p2psim.learning.steps import ExponentialDiscount, InverseDiscount, LearningAlgorithm, NoDiscount
from p2psim.network.mixing import MixingRule, MomentWeights

if TYPE_CHECKING:
    from p2psim.learning.sgd.problem import TrainingTask
    from p2psim.learning.sgd.replay import Planner
    from p2psim.learning.sgd.training import Training
    from p2psim.network.exchanges import Exchange
    from p2psim.network.graph import Graph

Share = Annotated[float, Field(gt=0, le=1)]
BelowOne = Annotated[float, Field(ge=0, lt=1)]


class TrainingAlgorithm(LearningAlgorithm):
    """Base of algorithms that train one model; just one of their ends is given.

    Attributes
    ----------
    weighting : {"equal", "records"}
        What each agent's mean loss counts in f: all alike, or by its number of records.
    queries : int
        Gradients in a release, each of a batch of its own and with noise of its own.
    """

    adapter: ClassVar[str] = "training"
    trains_any_model: ClassVar[bool] = True
    objective: ClassVar[Literal["fitness", "personalised", "shared"]] = "shared"
    weighting: ClassVar[Literal["equal", "records"]] = "equal"

    step: AnyStep = Field(description="step size η: a number, or how it falls")
    batch: Batch = Field(Whole(), description="which of an agent's records take part in a gradient")
    momentum: BelowOne = Field(0.0, description="β of v ← β·v + g, x ← x − η·v")
    weight_decay: NonNegative = Field(0.0, description="λ: the gradient has λ·θ added, as of ½·λ·‖θ‖²")
    time: Positive | None = Field(None, description="end after what happens at this simulated time")
    commits: Count | None = Field(None, description="end with this many updates")

    @property
    def queries(self) -> int:
        """Gradients in a release."""
        return 1

    def work(self, records: np.ndarray) -> np.ndarray:
        """See `LearningAlgorithm.work`: every local step takes a batch."""
        return super().work(records) * self.queries

    @model_validator(mode="after")
    def _one_end(self):  # type: ignore[no-untyped-def]
        known = [name for name in ("updates_per_agent", "time", "commits") if name in type(self).model_fields]
        given = [name for name in known if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"give exactly one of {', '.join(known)}; got {given or 'none'}")
        return self

    @abstractmethod
    def planner(self, task: TrainingTask, links: Graph, exchange: Exchange) -> Planner:
        """What turns events into instructions."""

    @abstractmethod
    def reference(
        self, task: TrainingTask, links: Graph, exchange: Exchange, events: np.ndarray, noise: np.ndarray
    ) -> Iterator[np.ndarray]:
        """All measured models after every commit, shape (n, p) or (1, p); the start is the first.

        ``noise``, shape (queries, p), is ordered by agent, release and query; empty where nothing is added.
        """


class GraphTraining(TrainingAlgorithm):
    """Base of those without a learner."""

    audited_as: ClassVar[str] = "training"
    takes_changes: ClassVar[bool] = True

    updates_per_agent: Positive | None = Field(
        None, description="end at the time at which clocks of the mean rate ticked so often, on average"
    )


class DecentralisedSgd(GraphTraining):
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
    order: Literal["gossip-then-gradient", "gradient-then-gossip", "together"] = Field(
        "gossip-then-gradient", description="what comes first"
    )
    mixing: MixingRule = Field("metropolis", description="weights W_ij; two agents that meet take ½ each")

    takes_rounds: ClassVar[bool] = True
    forecast: ClassVar[str] = "graph_training"
    answerer_releases: ClassVar[bool] = False

    def updates_under(self, exchange: Exchange) -> Literal["wake", "hear"]:
        """See `LearningAlgorithm.updates_under`."""
        if exchange.in_rounds:
            return "wake" if self.order == "gradient-then-gossip" else "hear"
        mode = getattr(exchange, "mode", "")
        if mode == "push-pull":
            return "hear" if self.order == "gossip-then-gradient" else "wake"
        return "hear" if mode in ("push", "pull") else "wake"

    def planner(self, task: TrainingTask, links: Graph, exchange: Exchange) -> Planner:
        """See `TrainingAlgorithm.planner`."""
        from p2psim.learning.sgd.planners import DecentralisedPlanner
        from p2psim.learning.sgd.training import Training

        training = Training.of(self.step, task.private, momentum=self.momentum)
        return DecentralisedPlanner(
            training, self.order, exchange, MomentWeights(links, self.mixing, task.end)
        )

    def reference(
        self, task: TrainingTask, links: Graph, exchange: Exchange, events: np.ndarray, noise: np.ndarray
    ) -> Iterator[np.ndarray]:
        """See `TrainingAlgorithm.reference`."""
        from p2psim.learning.sgd.reference import reference_decentralised

        return reference_decentralised(self, task, links, exchange, events, noise)


class GossipLearning(GraphTraining):
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
        from p2psim.learning.sgd.planners import GossipPlanner
        from p2psim.learning.sgd.training import Training

        training = Training.of(self.step, task.private, self.local_steps, self.momentum)
        return GossipPlanner(training, self.merge, self.merge_weights == "age", links.agents)

    def reference(
        self, task: TrainingTask, links: Graph, exchange: Exchange, events: np.ndarray, noise: np.ndarray
    ) -> Iterator[np.ndarray]:
        """See `TrainingAlgorithm.reference`."""
        from p2psim.learning.sgd.reference import reference_gossip_learning

        return reference_gossip_learning(self, task, events, noise)


class PolynomialDiscount(Options):
    """An answer to a model that k newer ones have followed counts (1 + k)^−power (Xie, Koyejo, Gupta 2019)."""

    kind: Literal["polynomial"] = "polynomial"
    power: Positive = Field(0.5, description="a")

    def weight(self, age: int) -> float:
        """Weight of an answer of this age."""
        return float((1.0 + age) ** -self.power)


class HingeDiscount(Options):
    """An answer counts 1 up to an age, and 1/(1 + rate·(k − age)) after (Xie, Koyejo, Gupta 2019)."""

    kind: Literal["hinge"] = "hinge"
    rate: Positive = Field(10.0, description="a")
    age: NonNegative = Field(4.0, description="b")

    def weight(self, age: int) -> float:
        """Weight of an answer of this age."""
        return 1.0 if age <= self.age else 1 / (1 + self.rate * (age - self.age))


Discount = ByKind[NoDiscount | InverseDiscount | ExponentialDiscount | PolynomialDiscount | HingeDiscount]


class FederatedAlgorithm(TrainingAlgorithm):
    """Base of those with a learner: an owner answers with what its local steps make of the learner's model."""

    weighting: ClassVar[Literal["equal", "records"]] = "records"
    audited_as: ClassVar[str] = "owners-training"

    local_steps: Count = Field(1, description="K, gradient steps of an answer")
    proximal: NonNegative = Field(
        0.0, description="weight of ½‖x − x₀‖² in local steps, x₀ the learner's model (FedProx)"
    )

    @property
    def queries(self) -> int:
        """See `TrainingAlgorithm.queries`."""
        return self.local_steps

    def training(self, private: bool) -> Training:
        """How an owner trains."""
        from p2psim.learning.sgd.training import Training

        return Training.of(self.step, private, self.local_steps, self.momentum, self.proximal)

    @abstractmethod
    def rule(self) -> Any:
        """What the learner does, as `p2psim.learning.sgd.learner.LearnerRule`."""

    def planner(self, task: TrainingTask, links: Graph, exchange: Exchange) -> Planner:
        """See `TrainingAlgorithm.planner`."""
        from p2psim.learning.sgd.planners import LearnerPlanner

        return LearnerPlanner(self.training(task.private), self.rule(), self.answer_weights(task))

    def answer_weights(self, task: TrainingTask) -> np.ndarray:
        """What each owner's answer counts beside others, shape (N,)."""
        return np.ones(task.problem.agents)

    def reference(
        self, task: TrainingTask, links: Graph, exchange: Exchange, events: np.ndarray, noise: np.ndarray
    ) -> Iterator[np.ndarray]:
        """See `TrainingAlgorithm.reference`."""
        from p2psim.learning.sgd.reference import reference_federated

        return reference_federated(self, task, events, noise)


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

    def rule(self) -> Any:
        """See `FederatedAlgorithm.rule`."""
        from p2psim.learning.sgd.learner import BLEND, LearnerRule, discount_numbers

        return LearnerRule(BLEND, self.alpha, 0.0, 1, *discount_numbers(self.staleness))


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

    def rule(self) -> Any:
        """See `FederatedAlgorithm.rule`."""
        from p2psim.learning.sgd.learner import BUFFER, LearnerRule, discount_numbers

        numbers = discount_numbers(self.staleness)
        return LearnerRule(BUFFER, self.server_step, self.server_momentum, self.buffer, *numbers)
