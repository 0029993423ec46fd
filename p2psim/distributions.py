"""Random quantities as a scenario writes them: a constant, ``{uniform: [a, b]}``, ``{exponential: mean}``."""

from typing import Annotated, Any

import numpy as np
from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from p2psim.options import NonNegative, Options, Positive


def _pair(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


class Distribution(Options):
    """A distribution over the non-negative numbers; exactly one key is given."""

    uniform: Annotated[tuple[NonNegative, NonNegative], BeforeValidator(_pair)] | None = Field(
        None, description="lower and upper end"
    )
    exponential: Positive | None = Field(None, description="mean")

    @model_validator(mode="after")
    def _one_of_them(self) -> "Distribution":
        given = [name for name in type(self).model_fields if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(
                f"give exactly one of {', '.join(type(self).model_fields)}; got {given or 'none'}"
            )
        if self.uniform is not None and self.uniform[0] > self.uniform[1]:
            raise ValueError(
                f"uniform: the lower end {self.uniform[0]} is above the upper end {self.uniform[1]}"
            )
        return self

    @property
    def mean(self) -> float:
        """Expected value."""
        if self.uniform is not None:
            return (self.uniform[0] + self.uniform[1]) / 2
        assert self.exponential is not None
        return self.exponential

    def sample(self, random: np.random.Generator, size: int) -> np.ndarray:
        """Draw independent values.

        Parameters
        ----------
        random : numpy.random.Generator
        size : int

        Returns
        -------
        ndarray, shape (size,)
        """
        if self.uniform is not None:
            return random.uniform(self.uniform[0], self.uniform[1], size)
        assert self.exponential is not None
        return random.exponential(self.exponential, size)


def _shape(value: Any) -> str:
    return "distribution" if isinstance(value, dict | Distribution) else "number"


#: A constant or a distribution.
Quantity = Annotated[
    Annotated[NonNegative, Tag("number")] | Annotated[Distribution, Tag("distribution")],
    Discriminator(_shape),
]


def mean(quantity: "float | Distribution") -> float:
    """Expected value of a constant or a distribution."""
    return quantity.mean if isinstance(quantity, Distribution) else quantity


def least(quantity: "float | Distribution") -> float:
    """Lower end of the values of a constant or a distribution."""
    if isinstance(quantity, Distribution):
        return quantity.uniform[0] if quantity.uniform is not None else 0.0
    return quantity


def sample(quantity: "float | Distribution", random: np.random.Generator, size: int) -> np.ndarray:
    """Draw independent values of a constant or a distribution."""
    return quantity.sample(random, size) if isinstance(quantity, Distribution) else np.full(size, quantity)
