"""Random quantities as a scenario writes them: a constant, or a distribution such as ``{exponential: 0.5}``."""

import math
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from pydantic import Field, ValidationInfo, model_validator

from p2psim.core.files import DataPath, Seal, absolute, at_home, fault_of, sealed
from p2psim.core.options import AS_TUPLE, NonNegative, NumberOr, OneOf, Options, Positive
from p2psim.core.text_tables import BeyondFloatError, number, shown

#: Below 0.1 the moments of a law overflow, or its draws underflow.
Shape = Annotated[float, Field(ge=0.1, le=1000)]
#: Above 10 a lognormal's mean is more than e⁵⁰ times its median.
Sigma = Annotated[float, Field(gt=0, le=10)]


class Lognormal(OneOf):
    """exp(Z), Z normal; many short times and a few very long ones."""

    median: Positive | None = Field(None, description="exp(μ), μ the mean of the logarithm")
    mean: Positive | None = Field(None, description="exp(μ + σ²/2), in place of the median")
    sigma: Sigma = Field(description="standard deviation of the logarithm")

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        if (self.median is None) == (self.mean is None):
            raise ValueError("give either median or mean")
        return self

    @property
    def location(self) -> float:
        """Mean of the logarithm."""
        if self.median is not None:
            return math.log(self.median)
        assert self.mean is not None
        return math.log(self.mean) - self.sigma**2 / 2

    @property
    def expected(self) -> float:
        """Expected value."""
        return math.exp(self.location + self.sigma**2 / 2)

    def sample(self, random: np.random.Generator, size: int) -> np.ndarray:
        """Independent values, shape (size,)."""
        return random.lognormal(self.location, self.sigma, size)


class _WithMean(Options):
    """A distribution that is given by its mean."""

    mean: Positive = Field(description="expected value")

    @property
    def expected(self) -> float:
        """Expected value."""
        return self.mean


class Weibull(_WithMean):
    """P(X > x) = exp(−(x/c)^k), with the scale c = mean/Γ(1 + 1/k)."""

    shape: Shape = Field(description="k; 1 is the exponential distribution, below it tails are longer")

    def sample(self, random: np.random.Generator, size: int) -> np.ndarray:
        """Independent values, shape (size,)."""
        return self.mean / math.gamma(1 + 1 / self.shape) * random.weibull(self.shape, size)


class Gamma(_WithMean):
    """Gamma law; with a whole shape k the sum of k exponential times."""

    shape: Shape = Field(description="k; the scale is mean/k")

    def sample(self, random: np.random.Generator, size: int) -> np.ndarray:
        """Independent values, shape (size,)."""
        return random.gamma(self.shape, self.mean / self.shape, size)


class Empirical(Options):
    """Values of a file, each as likely as the others: one number a line, ``#`` begins a comment.

    The hash of the file's contents is written down with the path, so that a run tells which values they were.
    """

    path: DataPath = Field(description="the file; a relative path starts from the scenario's folder")
    sha256: Seal = ""

    @model_validator(mode="before")
    @classmethod
    def _seal(cls, value: Any, info: ValidationInfo) -> Any:
        """A path alone will do; the hash is found where it is not given."""
        entries = {"path": value} if isinstance(value, str) else value
        if not isinstance(entries, dict) or not isinstance(entries.get("path"), str):
            return entries
        entries = sealed(entries, info)
        place = at_home(absolute(entries["path"], info))
        if not place.is_file():
            raise ValueError(fault_of(place) or f"no such file: {place}")
        _read(str(place), entries["sha256"])
        return entries

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: Any) -> dict[str, Any]:
        """A path alone will do."""
        return {"anyOf": [{"type": "string"}, handler(schema)]}

    @property
    def values(self) -> np.ndarray:
        """What the file holds, shape (m,)."""
        return _read(str(at_home(self.path)), self.sha256)

    @property
    def expected(self) -> float:
        """Mean of the values."""
        return float(self.values.mean())

    def sample(self, random: np.random.Generator, size: int) -> np.ndarray:
        """Independent values, shape (size,)."""
        values = self.values
        return values[random.integers(values.size, size=size)]


@lru_cache(maxsize=64)
def _read(path: str, sha256: str) -> np.ndarray:
    """Numbers of a file; the hash is there to read a file again that has changed."""
    values = []
    for line_number, line in enumerate(
        Path(path).read_text(encoding="utf-8-sig", errors="replace").splitlines(), 1
    ):
        text = line.split("#", 1)[0].strip()
        if not text:
            continue
        try:
            value = number(text)
        except BeyondFloatError as error:
            raise ValueError(f"{path}, line {line_number}: {error}") from None
        if value is None or not (math.isfinite(value) and value >= 0):
            raise ValueError(
                f"{path}, line {line_number}: expected a finite number from 0 on, got {shown(text)}"
            )
        values.append(value)
    if not values:
        raise ValueError(f"{path} holds no numbers")
    array = np.array(values)
    array.setflags(write=False)
    return array


class Distribution(OneOf):
    """A distribution over the non-negative numbers; exactly one key is given."""

    in_words: ClassVar[str] = "a distribution"

    uniform: Annotated[tuple[NonNegative, NonNegative], AS_TUPLE] | None = Field(
        None, description="lower and upper end"
    )
    exponential: Positive | None = Field(None, description="mean")
    lognormal: Lognormal | None = Field(None, description="median or mean, and sigma")
    weibull: Weibull | None = Field(None, description="mean and shape")
    gamma: Gamma | None = Field(None, description="mean and shape")
    empirical: Empirical | None = Field(
        None, description="a file of values, one per line, that are drawn again"
    )

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        given = [name for name in type(self).model_fields if getattr(self, name) is not None]
        if len(given) != 1:
            known = ", ".join(type(self).model_fields)
            raise ValueError(f"give exactly one of {known}; got {given or 'none'}")
        low, high = self.uniform or (0.0, 0.0)
        if low > high:
            raise ValueError(f"uniform: the lower end {low} is above the upper end {high}")
        return self

    @property
    def _law(self) -> Lognormal | Weibull | Gamma | Empirical:
        law = self.lognormal or self.weibull or self.gamma or self.empirical
        assert law is not None
        return law

    @property
    def mean(self) -> float:
        """Expected value."""
        if self.uniform is not None:
            return (self.uniform[0] + self.uniform[1]) / 2
        return self.exponential if self.exponential is not None else self._law.expected

    @property
    def least(self) -> float:
        """Lower end of the values."""
        if self.uniform is not None:
            return self.uniform[0]
        return float(self.empirical.values.min()) if self.empirical is not None else 0.0

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
        if self.exponential is not None:
            return random.exponential(self.exponential, size)
        return self._law.sample(random, size)


#: A constant or a distribution.
Quantity = NumberOr[NonNegative, Distribution]


def mean(quantity: float | Distribution) -> float:
    """Expected value of a constant or a distribution."""
    return quantity.mean if isinstance(quantity, Distribution) else quantity


def least(quantity: float | Distribution) -> float:
    """Lower end of the values of a constant or a distribution."""
    return quantity.least if isinstance(quantity, Distribution) else quantity


def sample(quantity: float | Distribution, random: np.random.Generator, size: int) -> np.ndarray:
    """Draw independent values of a constant or a distribution."""
    return quantity.sample(random, size) if isinstance(quantity, Distribution) else np.full(size, quantity)
