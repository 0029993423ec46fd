"""Where models on a graph start."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, ValidationInfo, model_validator

from p2psim.options import BY_NAME, Options, Positive
from p2psim.paths import DataPath, Seal, sealed


class Zero(Options):
    """All models start at zero."""

    kind: Literal["zero"] = "zero"


class Local(Options):
    """Every agent starts at the minimiser of its own loss. With a privacy mechanism this costs an infinite ε."""

    kind: Literal["local"] = "local"
    reduction: Literal["mean", "sum"] = Field(
        "mean", description="whether λ_i‖θ‖² is added to the mean or to the sum of an agent's losses"
    )


class PrivateWarmStart(Options):
    """Every agent perturbs the minimiser of its own loss, once; these models are propagated at no further cost."""

    kind: Literal["private"] = "private"
    epsilon: Positive = Field(description="ε of this release; it adds to the total")
    propagate: bool = Field(True, description="whether they are propagated to their fixed point first")

    is_random: ClassVar[bool] = True


class Given(Options):
    """Models from a file; that they do not depend on the records is taken on trust."""

    kind: Literal["given"] = "given"
    path: DataPath = Field(description="a .npy file of shape (agents, p), or a CSV file without a header")
    sha256: Seal = ""

    @model_validator(mode="before")
    @classmethod
    def _seal(cls, value: Any, info: ValidationInfo) -> Any:
        return sealed(value, info)


Start = Annotated[Zero | Local | PrivateWarmStart | Given, Field(discriminator="kind"), BY_NAME]
