"""Models that learning trains: functions of a flat vector of parameters and a record; see `Model`."""

from p2psim.learning.models.layered import MLP, Softmax
from p2psim.learning.models.linear import Linear
from p2psim.learning.models.protocol import Model

__all__ = ["MLP", "Linear", "Model", "Softmax"]
