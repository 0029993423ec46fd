"""Step sizes of stochastic gradient steps, and how answers of owners count less as they age."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from p2psim.core.options import ByKind, Count, NonNegative, NumberOr, Options, Positive, Step

#: How step sizes fall, for kernels.
CONSTANT, INVERSE, COSINE = 0, 1, 2


def _numbers(part: Options, count: int) -> list[float]:
    """Values of its keys, in their order, and zeros up to a count."""
    values = [float(getattr(part, name)) for name in type(part).model_fields if name != "kind"]
    return values + [0.0] * (count - len(values))


class StepSize(Options):
    """Base of step sizes η_t, each with at most three keys, η₀ first."""

    #: Its form for kernels, beside `numbers` (`p2psim.learning.sgd.training.step_size`).
    code: ClassVar[int]

    @property
    def numbers(self) -> tuple[float, float, float]:
        """Values of its keys: η₀, and two numbers that say how it falls."""
        first, second, third = _numbers(self, 3)
        return first, second, third

    @abstractmethod
    def at(self, t: int) -> float:
        """η_t, t from 0: the plain form of `step_size`."""


class InverseStep(StepSize):
    """η_t = η₀/(1 + decay·t)."""

    kind: Literal["inverse"] = "inverse"
    first: Step = Field(description="η₀")
    decay: NonNegative = Field(1.0, description="how fast it falls")

    code: ClassVar[int] = INVERSE

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

    def at(self, t: int) -> float:
        """See `StepSize.at`."""
        passed = min(t / self.horizon, 1.0)
        return self.last + (self.first - self.last) * (1 + math.cos(math.pi * passed)) / 2


AnyStep = NumberOr[Step, Annotated[InverseStep | CosineStep, Field(discriminator="kind")]]


def size_at(step: float | StepSize, t: int) -> float:
    """η_t of a number or a step size."""
    return step.at(t) if isinstance(step, StepSize) else float(step)


class AnswerDiscount(Options):
    """Base of discounts, each with at most two keys: how an answer counts less as it ages."""

    #: Its form for kernels, beside `numbers` (`p2psim.learning.sgd.learner.discounted`).
    code: ClassVar[int]

    @property
    def numbers(self) -> tuple[float, float]:
        """Values of its keys."""
        first, second = _numbers(self, 2)
        return first, second

    @abstractmethod
    def weight(self, age: int) -> float:
        """Weight of an answer to a model that ``age`` newer ones have followed: the plain form of kernels."""


class NoDiscount(AnswerDiscount):
    """Answers of any age count alike."""

    kind: Literal["none"] = "none"

    code: ClassVar[int] = 0

    def weight(self, age: int) -> float:
        """See `AnswerDiscount.weight`."""
        return 1.0


class InverseDiscount(AnswerDiscount):
    """An answer to a model that k newer ones have followed counts 1/(1 + rate·k)."""

    kind: Literal["inverse"] = "inverse"
    rate: Positive = Field(1.0, description="per newer version")

    code: ClassVar[int] = 1

    def weight(self, age: int) -> float:
        """See `AnswerDiscount.weight`."""
        return 1 / (1 + self.rate * age)


class ExponentialDiscount(AnswerDiscount):
    """An answer to a model that k newer ones have followed counts exp(−rate·k)."""

    kind: Literal["exponential"] = "exponential"
    rate: Positive = Field(0.1, description="per newer version")

    code: ClassVar[int] = 2

    def weight(self, age: int) -> float:
        """See `AnswerDiscount.weight`."""
        return math.exp(-self.rate * age)


Staleness = ByKind[NoDiscount | InverseDiscount | ExponentialDiscount]


class PolynomialDiscount(AnswerDiscount):
    """An answer to a model that k newer ones have followed counts (1 + k)^−power (Xie, Koyejo, Gupta 2019)."""

    kind: Literal["polynomial"] = "polynomial"
    power: Positive = Field(0.5, description="a")

    code: ClassVar[int] = 3

    def weight(self, age: int) -> float:
        """See `AnswerDiscount.weight`."""
        return float((1.0 + age) ** -self.power)


class HingeDiscount(AnswerDiscount):
    """An answer counts 1 up to an age, and 1/(1 + rate·(k − age)) after (Xie, Koyejo, Gupta 2019)."""

    kind: Literal["hinge"] = "hinge"
    rate: Positive = Field(10.0, description="a")
    age: NonNegative = Field(4.0, description="b")

    code: ClassVar[int] = 4

    def weight(self, age: int) -> float:
        """See `AnswerDiscount.weight`."""
        return 1.0 if age <= self.age else 1 / (1 + self.rate * (age - self.age))


Discount = ByKind[NoDiscount | InverseDiscount | ExponentialDiscount | PolynomialDiscount | HingeDiscount]
