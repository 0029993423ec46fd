"""An algorithm: gossip SGD, which averages with the model that was heard and steps down its own loss."""

from typing import Literal

import numpy as np
from pydantic import Field

import p2psim
from p2psim.learning.graph.gossip import ForKernel, compiled_form


def _mix(own: np.ndarray, received: np.ndarray, parameters: np.ndarray, out: np.ndarray) -> None:
    out[:] = (own + received) / 2


def _step(
    at: np.ndarray, gradient: np.ndarray, updates: int, parameters: np.ndarray, out: np.ndarray
) -> None:
    learning_rate, decay = parameters
    out[:] = at - learning_rate / (1 + decay * updates) * gradient


@p2psim.register
class GossipSgd(p2psim.GossipAlgorithm):
    """On hearing a model, an agent takes the mean of it and its own, and steps along its noisy mean gradient there."""

    kind: Literal["gossip-sgd"] = "gossip-sgd"
    learning_rate: float = Field(gt=0, description="length of the first step")
    decay: float = Field(0.0, ge=0, description="step k is the first over 1 + decay·k")

    def mix(self, own: np.ndarray, received: np.ndarray) -> np.ndarray:
        return (own + received) / 2

    def step(self, at: np.ndarray, gradient: np.ndarray, updates: int) -> np.ndarray:
        return at - self.learning_rate / (1 + self.decay * updates) * gradient

    def for_kernel(self) -> ForKernel:
        return compiled_form(_mix, _step, (self.learning_rate, self.decay))
