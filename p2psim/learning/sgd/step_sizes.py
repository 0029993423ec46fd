"""Step sizes of stochastic gradient steps: constant, inverse in time, or along a cosine."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from p2psim.core.options import Count, NonNegative, NumberOr, Options, Step

#: How step sizes fall, for kernels.
CONSTANT, INVERSE, COSINE = 0, 1, 2


class StepSize(Options):
    """Base of step sizes η_t."""

    code: ClassVar[int]

    @property
    @abstractmethod
    def numbers(self) -> tuple[float, float, float]:
        """First step size, and two numbers that say how it falls."""

    @abstractmethod
    def at(self, t: int) -> float:
        """η_t, t from 0: the plain form of `step_size`."""


class InverseStep(StepSize):
    """η_t = η₀/(1 + decay·t)."""

    kind: Literal["inverse"] = "inverse"
    first: Step = Field(description="η₀")
    decay: NonNegative = Field(1.0, description="how fast it falls")

    code: ClassVar[int] = INVERSE

    @property
    def numbers(self) -> tuple[float, float, float]:
        """See `StepSize.numbers`."""
        return self.first, self.decay, 0.0

    def at(self, t: int) -> float:
        """See `StepSize.at`."""
        return self.first / (1 + self.decay * t)


class CosineStep(StepSize):
    """η_t = last + (η₀ − last)·(1 + cos(π·t/T))/2, and last from T on (Loshchilov and Hutter 2017)."""

    kind: Literal["cosine"] = "cosine"
    first: Step = Field(description="η₀")
    horizon: Count = Field(description="T")
    last: NonNegative = Field(0.0, description="step size from T on")

    code: ClassVar[int] = COSINE

    @property
    def numbers(self) -> tuple[float, float, float]:
        """See `StepSize.numbers`."""
        return self.first, float(self.horizon), self.last

    def at(self, t: int) -> float:
        """See `StepSize.at`."""
        passed = min(t / self.horizon, 1.0)
        return self.last + (self.first - self.last) * (1 + math.cos(math.pi * passed)) / 2


AnyStep = NumberOr[Step, Annotated[InverseStep | CosineStep, Field(discriminator="kind")]]


def size_at(step: float | StepSize, t: int) -> float:
    """η_t of a number or a step size."""
    return step.at(t) if isinstance(step, StepSize) else float(step)
