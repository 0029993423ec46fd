"""Losses of one record, each a function of the score z = θᵀx and the label y; see `RecordLoss` for what they offer."""

from typing import Annotated

from pydantic import Field

from p2psim.learning.losses.hinge import Hinge
from p2psim.learning.losses.logistic import Logistic
from p2psim.learning.losses.protocol import RecordLoss
from p2psim.learning.losses.squared import Squared
from p2psim.options import BY_NAME

Loss = Annotated[Squared | Hinge | Logistic, Field(discriminator="kind"), BY_NAME]

__all__ = ["Hinge", "Logistic", "Loss", "RecordLoss", "Squared"]
