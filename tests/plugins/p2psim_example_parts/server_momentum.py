"""A training algorithm with a learner: owners' steps are pulled back to its model (FedProx), its own have momentum."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from pydantic import Field

import p2psim


@p2psim.register
class ServerMomentum(p2psim.StarTraining):
    """Owners minimise their loss near the learner's model, which moves along the mean change with momentum."""

    kind: Literal["server-momentum"] = "server-momentum"
    step: float = Field(gt=0, description="length of an owner's step")
    proximal: float = Field(0.0, ge=0, description="weight of ½‖x − x₀‖², x₀ the learner's model")
    momentum: float = Field(0.9, ge=0, lt=1, description="β of v ← β·v + mean change")

    def train(self, model: np.ndarray, gradient: Any, t: int, memory: dict[str, Any]) -> np.ndarray:
        x = model
        for _ in range(self.local_steps):
            x = x - self.step * (gradient(x) + self.proximal * (x - model))
        return x

    def use(self, model: np.ndarray, answers: Sequence[p2psim.Answer], memory: dict[str, Any]) -> np.ndarray:
        records = sum(answer.records for answer in answers)
        change = sum(answer.records / records * answer.model for answer in answers) - model
        memory["velocity"] = self.momentum * memory.get("velocity", 0.0) + change
        return model + memory["velocity"]
