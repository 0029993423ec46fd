"""Where the bound Ξ on the norm of one record's gradient comes from: the L1 norm for Laplace noise, L2 for Gaussian.

Replacing one of an owner's n_i records moves its mean gradient by at most 2Ξ/n_i in that norm. A bound on the L1 norm
is one on the L2 norm, since ‖g‖₂ ≤ ‖g‖₁; the converse is false by up to √p.
"""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from p2psim.options import BY_NAME, Options, Positive


class Clip(Options):
    """Clip each record's gradient to a norm: always safe where the noise is for that norm."""

    kind: Literal["clip"] = "clip"
    norm: Literal["l1", "l2"] = Field(
        "l1",
        description="norm that is clipped: Laplace noise needs l1; Gaussian noise takes both, and l2 clips less",
    )
    bound: Positive = Field(description="Ξ, the largest norm")
    holds: ClassVar[bool] = True


class Declared(Options):
    """A public bound, checked against the data at every release; a violation voids the guarantee and is flagged."""

    kind: Literal["declared"] = "declared"
    bound: Positive = Field(
        description="Ξ, the largest norm of one record's gradient, in the mechanism's norm"
    )
    holds: ClassVar[bool] = True


class Bounds(Options):
    """Computed from the public bounds on x, y and θ, in the mechanism's norm."""

    kind: Literal["bounds"] = "bounds"
    holds: ClassVar[bool] = True


class Empirical(Options):
    """The largest that the records in hand can reach on Θ, as the papers did: not private, always flagged."""

    kind: Literal["empirical"] = "empirical"
    holds: ClassVar[bool] = False


class AsPrinted(Options):
    """Clip each record's gradient as B does and claim what B claims, true or not: always flagged, with an infinite ε.

    An L2 bound beside Laplace noise understates the loss by up to √p. On graphs only.
    """

    kind: Literal["as-printed"] = "as-printed"
    norm: Literal["l1", "l2"] = Field("l2", description="norm that is clipped, whatever the noise needs")
    bound: Positive = Field(description="Ξ, the largest norm, taken for a bound on the L1 norm")
    #: Whether ε follows from it; where not, the ledger's is infinite and only the claim is finite.
    holds: ClassVar[bool] = False


Sensitivity = Annotated[
    Clip | Declared | Bounds | Empirical | AsPrinted, Field(discriminator="kind"), BY_NAME
]
