"""Where the bound Ξ on the L1 norm of one record's gradient comes from.

Replacing one of an owner's n_i records moves its mean gradient by at most 2Ξ/n_i in L1.
"""

from typing import Annotated, Literal

from pydantic import Field

from p2psim.options import BY_NAME, Options, Positive


class Clip(Options):
    """Clip each record's gradient to an L1 norm: always safe."""

    kind: Literal["clip"] = "clip"
    norm: Literal["l1"] = Field("l1", description="norm that is clipped; Laplace noise needs l1")
    bound: Positive = Field(description="Ξ, the largest norm")


class Declared(Options):
    """A public bound, checked against the data at every release; a violation voids the guarantee and is flagged."""

    kind: Literal["declared"] = "declared"
    bound: Positive = Field(description="Ξ, the largest L1 norm of one record's gradient")


class Bounds(Options):
    """Computed from the public bounds on x, y and θ."""

    kind: Literal["bounds"] = "bounds"


class Empirical(Options):
    """The largest that the records in hand can reach on Θ, as the papers did: not private, always flagged."""

    kind: Literal["empirical"] = "empirical"


Sensitivity = Annotated[Clip | Declared | Bounds | Empirical, Field(discriminator="kind"), BY_NAME]
