"""The ``learning`` section of a scenario: the algorithm, the loss, the regulariser, and the baselines on a graph.

A baseline is a set of models to compare with: each agent learns alone, all agents learn one model together, or each
record is made private before learning.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Discriminator, Field, Tag

from p2psim.core.options import AS_LIST, BY_NAME, ByKind, NonNegative, Options
from p2psim.core.part_types import AnyOf
from p2psim.core.registry import declare
from p2psim.learning.losses import AnyLoss, Loss
from p2psim.learning.models import AnyModel, Linear, Model
from p2psim.learning.steps import LearningAlgorithm

if TYPE_CHECKING:
    from numpy.random import Generator

    from p2psim.learning.graph.problem import GraphProblem


class BaselineModels(Options):
    """Base of baselines."""

    #: Whether records are made private at random, within the agents' budgets.
    is_random: ClassVar[bool] = False

    @abstractmethod
    def models(
        self, problem: GraphProblem, epsilon: np.ndarray, bounds: tuple[float, float], random: Generator
    ) -> np.ndarray:
        """Models of all agents, shape (n, p).

        Parameters
        ----------
        problem : GraphProblem
        epsilon : ndarray, shape (n,)
            Budget of each record.
        bounds : tuple of two floats
            Public bounds on ‖x‖₁, the intercept not counted, and on |y|.
        random : numpy.random.Generator
        """


class LocalModels(BaselineModels):
    """Every agent learns from its own records alone.

    Choices
    -------
    reduction: mean
        λ_i‖θ‖² is added to the mean of an agent's losses
    reduction: sum
        λ_i‖θ‖² is added to the sum of an agent's losses
    """

    kind: Literal["local"] = "local"
    reduction: Literal["mean", "sum"] = Field(
        "mean", description="whether λ_i‖θ‖² is added to the mean or to the sum of an agent's losses"
    )
    needs_l2: ClassVar[bool] = True

    def models(self, problem: GraphProblem, *noise: Any) -> np.ndarray:
        """See `BaselineModels.models`."""
        from p2psim.learning.graph.optimum import minimise_alone

        return minimise_alone(problem, self.reduction)


class GlobalModel(BaselineModels):
    """One model for all, learned from all records together."""

    kind: Literal["global"] = "global"

    def models(self, problem: GraphProblem, *noise: Any) -> np.ndarray:
        """See `BaselineModels.models`."""
        from p2psim.learning.graph.optimum import global_model

        return global_model(problem)


class LocalPrivacy(BaselineModels):
    """Every record is made private by itself, then agents learn from these records exactly, without further noise.

    Choices
    -------
    learns: together
        the agents minimise Q_L
    learns: alone
        each agent minimises its own loss
    """

    kind: Literal["local-dp"] = "local-dp"
    learns: Literal["together", "alone"] = Field("together", description="what is minimised")

    is_random: ClassVar[bool] = True

    @property
    def needs_l2(self) -> bool:
        """Whether an agent's own loss needs a regulariser."""
        return self.learns == "alone"

    def models(
        self, problem: GraphProblem, epsilon: np.ndarray, bounds: tuple[float, float], random: Generator
    ) -> np.ndarray:
        """See `BaselineModels.models`."""
        from p2psim.learning.graph.optimum import from_private_records

        return from_private_records(problem, epsilon, bounds, random, self.learns == "alone")


Baseline = ByKind[LocalModels | GlobalModel | LocalPrivacy]

declare(
    "algorithm",
    "p2psim.learning",
    {
        "async-star": "star.algorithms:AsyncStar",
        "synchronous-descent": "star.algorithms:SynchronousDescent",
        "synchronous-averaging": "star.algorithms:SynchronousAveraging",
        "coordinate-descent": "graph.algorithms:CoordinateDescent",
        "model-propagation": "graph.algorithms:ModelPropagation",
        "gossip-admm": "graph.algorithms:GossipAdmm",
        "averaging": "graph.algorithms:Averaging",
        "push-sum": "graph.algorithms:PushSum",
        "decentralised-sgd": "sgd.algorithms:DecentralisedSgd",
        "gossip-learning": "sgd.algorithms:GossipLearning",
        "fedavg": "sgd.algorithms:FedAvg",
        "fedasync": "sgd.algorithms:FedAsync",
        "fedbuff": "sgd.algorithms:FedBuff",
    },
)

#: Any algorithm that is registered.
Algorithm = Annotated[LearningAlgorithm, AnyOf("algorithm"), BY_NAME]


def _number_or_name(value: Any) -> str:
    if not isinstance(value, str):
        return "number"
    try:
        float(value)
    except ValueError:
        return "name"
    return "number"  # which a number in quotes is not, and will be told so


class Regularizer(Options):
    """The regulariser l2·‖θ‖²: of the whole fitness of a star, of each agent's loss on a graph.

    Choices
    -------
    l2: inverse-size
        λ_i = 1/m_i, with m_i the agent's number of records
    """

    l2: Annotated[
        Annotated[NonNegative, Tag("number")] | Annotated[Literal["inverse-size"], Tag("name")],
        Discriminator(_number_or_name),
    ] = Field(description="weight of the squared Euclidean norm; inverse-size is λ_i = 1/m_i")


class LearningSection(Options):
    """What is computed."""

    unsaid = ("loss",)

    algorithm: Algorithm = Field(description="the update rule")
    model: AnyModel = Field(Linear(), description="what is trained: a function of parameters and a record")
    loss: AnyLoss | None = Field(
        None, description="the loss of one record; of linear models, which need it, and of no others"
    )
    regularizer: Regularizer = Field(description="l2·‖θ‖²")
    baselines: Annotated[list[Baseline], AS_LIST] = Field(
        [], description="models to compare with, on a graph"
    )

    @property
    def score_loss(self) -> Loss:
        """The loss of a linear model's score.

        Raises
        ------
        AttributeError
            If there is none: algorithms of linear models alone have one, by the rules of scenarios.
        """
        if self.loss is None:
            raise AttributeError("the scenario has no learning.loss")
        return self.loss

    @property
    def trained_model(self) -> Model:
        """The model, with the loss of its score where it is linear."""
        return self.model.with_loss(self.loss)
