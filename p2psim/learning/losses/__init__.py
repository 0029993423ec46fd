"""Losses of one record."""

from typing import Annotated, Literal

from pydantic import Field

from p2psim.options import BY_NAME, Options


class Squared(Options):
    """(θᵀx − y)²."""

    kind: Literal["squared"] = "squared"
    intercept: bool = Field(False, description="append a feature that is always one")


class Hinge(Options):
    """max(0, 1 − y·θᵀx), y = ±1."""

    kind: Literal["hinge"] = "hinge"
    intercept: bool = Field(True, description="append a feature that is always one")


class Logistic(Options):
    """log(1 + exp(−y·θᵀx)), y = ±1."""

    kind: Literal["logistic"] = "logistic"
    intercept: bool = Field(True, description="append a feature that is always one")


Loss = Annotated[Squared | Hinge | Logistic, Field(discriminator="kind"), BY_NAME]
