"""A training algorithm among agents: decentralised SGD that leaves out, by coordinate, what is far from its own."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from pydantic import Field

import p2psim


@p2psim.register
class TrimmedGossip(p2psim.GraphTraining):
    """In each coordinate an agent mixes its model with those of neighbours except the farthest ones, then steps."""

    kind: Literal["trimmed-gossip"] = "trimmed-gossip"
    step: float = Field(gt=0, description="length of a step")
    left_out: int = Field(1, ge=0, description="neighbours that are left out in each coordinate")

    def mix(self, model: np.ndarray, heard: Sequence[p2psim.Heard], memory: dict[str, Any]) -> np.ndarray:
        if len(heard) <= self.left_out:
            return model
        changes = np.array([weight * (other - model) for _, weight, other in heard])
        near = np.argsort(np.abs(changes), axis=0)[: len(heard) - self.left_out]
        return model + np.take_along_axis(changes, near, axis=0).sum(axis=0)

    def train(self, model: np.ndarray, gradient: Any, t: int, memory: dict[str, Any]) -> np.ndarray:
        for _ in range(self.local_steps):
            model = model - self.step * gradient(model)
        return model
