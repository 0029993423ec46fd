"""The asynchronous star (F Algorithm 1)."""

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from p2psim.options import Count, Options, Positive


class RhoFromH(Options):
    """Choose ρ from the data, so that the steepest owner has the given h = lr·λ_max."""

    h: Positive = Field(description="h of the steepest owner; 1 is fastest")


def _number_or_part(value: Any) -> str:
    return "part" if isinstance(value, dict | RhoFromH) else "number"


class AsyncStar(Options):
    """A central learner and N owners, one answer at a time (F Algorithm 1)."""

    kind: Literal["async-star"] = "async-star"
    horizon: Count = Field(description="T, the number of answers to apply")
    rho: Annotated[
        Annotated[Positive, Tag("number")] | Annotated[RhoFromH, Tag("part")], Discriminator(_number_or_part)
    ] = Field(description="step parameter ρ")
    theta_max: Positive = Field(description="Θ is the box |θ_j| ≤ theta_max")
    form: Literal["printed", "corrected"] = Field("corrected", description="the learner's weight on g")
    stale: Literal["blend", "overwrite"] = Field(
        "blend", description="what an answer to an older query is applied to: the current or the queried model"
    )
