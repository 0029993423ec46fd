"""Losses of one record, each a function of the score z = θᵀx and the label y; see `Loss` for what they offer."""

from typing import Annotated

from p2psim.core.options import BY_NAME
from p2psim.core.registry import AnyOf, register_all
from p2psim.learning.losses.hinge import Hinge
from p2psim.learning.losses.logistic import Logistic
from p2psim.learning.losses.protocol import Loss
from p2psim.learning.losses.squared import Squared

register_all([Squared, Hinge, Logistic])

#: Any loss that is registered.
AnyLoss = Annotated[Loss, AnyOf("loss"), BY_NAME]

__all__ = ["AnyLoss", "Hinge", "Logistic", "Loss", "Squared"]
