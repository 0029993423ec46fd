"""The asynchronous star (F Algorithm 1): what a scenario says of it, and its step sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from p2psim.learning.batches import Batch, Whole
from p2psim.learning.weighting import Fresh, Staleness, Weighting
from p2psim.options import Count, Options, Positive, Step


class RhoFromH(Options):
    """Choose ρ from the records, so that the steepest owner has the given h = lr·λ_max. Flagged: it depends on data."""

    h: Step = Field(description="h of the steepest owner; 1 is fastest")


def _number_or_part(value: Any) -> str:
    return "part" if isinstance(value, dict | RhoFromH) else "number"


class AsyncStar(Options):
    """A central learner and N owners, one answer at a time (F Algorithm 1)."""

    kind: Literal["async-star"] = "async-star"
    horizon: Count = Field(description="T, the number of answers to apply")
    rho: Annotated[
        Annotated[Step, Tag("number")] | Annotated[RhoFromH, Tag("part")], Discriminator(_number_or_part)
    ] = Field(description="step parameter ρ, or {h: …} to choose it from the records")
    theta_max: Positive = Field(description="Θ is the box |θ_j| ≤ theta_max")
    form: Literal["printed", "corrected"] = Field("corrected", description="the learner's weight on g")
    batch: Batch = Field(Whole(), description="which of an agent's records take part in a release")
    stale: Literal["blend", "overwrite"] = Field(
        "blend",
        description="what an answer to an older query is applied to: the current or the queried model",
    )
    reweight: Literal["none", "known", "estimated"] = Field(
        "none", description="whether gradients are divided by how often their owners answer (F, Remark 4)"
    )
    reweight_at: Literal["learner", "owner"] = Field("learner", description="who does that")
    staleness: Staleness = Field(Fresh(), description="whether old answers count less")


@dataclass(frozen=True)
class StarMethod:
    """The numbers of F Algorithm 1.

    Attributes
    ----------
    step : float
        ρ/(T²σ), with σ = 2·l2.
    learner_weight : float
        c_L: the weight of ∇g in the learner's own update.
    overwrite : bool
        Whether an answer is applied to the model that was queried, not to the current one.
    weighting : Weighting, optional
        What answers are multiplied by; all count alike when left out.
    """

    step: float
    learner_weight: float
    overwrite: bool
    weighting: Weighting | None = None


def star_method(
    algorithm: AsyncStar, rho: float, l2: float, owners: int, weighting: Weighting | None = None
) -> StarMethod:
    """Numbers of F Algorithm 1 for N owners.

    F prints c_L = (N − 1)/N; its derivation uses η = 1/(2N), which gives 1/2 (the corrected form).
    """
    weight = (owners - 1) / owners if algorithm.form == "printed" else 0.5
    return StarMethod(
        rho / (algorithm.horizon**2 * 2 * l2), weight, algorithm.stale == "overwrite", weighting
    )
