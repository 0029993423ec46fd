"""The ``learning`` section of a scenario."""

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from p2psim.learning.admm import GossipAdmm
from p2psim.learning.async_star import AsyncStar
from p2psim.learning.averaging import Averaging
from p2psim.learning.baselines import Baseline
from p2psim.learning.coordinate_descent import CoordinateDescent
from p2psim.learning.losses import AnyLoss
from p2psim.learning.model_propagation import ModelPropagation
from p2psim.learning.push_sum import PushSum
from p2psim.learning.synchronous import SynchronousAveraging, SynchronousDescent
from p2psim.options import AS_LIST, BY_NAME, NonNegative, Options

Algorithm = Annotated[
    AsyncStar
    | SynchronousDescent
    | SynchronousAveraging
    | CoordinateDescent
    | ModelPropagation
    | GossipAdmm
    | Averaging
    | PushSum,
    Field(discriminator="kind"),
    BY_NAME,
]

#: Algorithms of a central learner, by the exchanges that they take.
STARS = {
    "async-star": ("request", "poll"),
    "synchronous-descent": ("round",),
    "synchronous-averaging": ("round",),
}


def _number_or_name(value: Any) -> str:
    if not isinstance(value, str):
        return "number"
    try:
        float(value)
    except ValueError:
        return "name"
    return "number"  # which a number in quotes is not, and will be told so


class Regularizer(Options):
    """The regulariser l2·‖θ‖²: of the whole fitness of a star, of each agent's loss on a graph."""

    l2: Annotated[
        Annotated[NonNegative, Tag("number")] | Annotated[Literal["inverse-size"], Tag("name")],
        Discriminator(_number_or_name),
    ] = Field(description="weight of the squared Euclidean norm; inverse-size is λ_i = 1/m_i")


class LearningSection(Options):
    """What is computed."""

    algorithm: Algorithm = Field(description="the update rule")
    loss: AnyLoss = Field(description="the loss of one record")
    regularizer: Regularizer = Field(description="l2·‖θ‖²")
    baselines: Annotated[list[Baseline], AS_LIST] = Field(
        [], description="models to compare with, on a graph"
    )
