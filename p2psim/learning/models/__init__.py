"""Models that learning trains: functions of a flat vector of parameters and a record; see `Model`."""

from typing import Annotated

from p2psim.core.options import BY_NAME
from p2psim.core.part_types import AnyOf
from p2psim.core.registry import register_all
from p2psim.learning.models.layered import MLP, Linear, Softmax
from p2psim.learning.models.protocol import Model

register_all([Linear, Softmax, MLP])

#: Any model that is registered.
AnyModel = Annotated[Model, AnyOf("model"), BY_NAME]

__all__ = ["MLP", "AnyModel", "Linear", "Model", "Softmax"]
