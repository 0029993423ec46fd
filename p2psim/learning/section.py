"""The ``learning`` section of a scenario."""

from typing import Annotated

from pydantic import Field

from p2psim.learning.async_star import AsyncStar
from p2psim.learning.losses import Loss
from p2psim.options import BY_NAME, NonNegative, Options

Algorithm = Annotated[AsyncStar, BY_NAME]


class Regularizer(Options):
    """The regulariser g(θ) = l2·‖θ‖²."""

    l2: NonNegative = Field(description="weight of the squared Euclidean norm")


class LearningSection(Options):
    """What is computed."""

    algorithm: Algorithm = Field(description="the update rule")
    loss: Loss = Field(description="the loss of one record")
    regularizer: Regularizer = Field(description="g")
