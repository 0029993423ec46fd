from typing import Annotated, Literal
from pydantic import Field
from p2psim.options import BY_NAME, Options, Positive

class Clip(Options):
    """Clip each record's gradient to an L1 norm: always safe."""

    kind: Literal["clip"] = "clip"
    norm: Literal["l1"] = Field("l1", description="norm that is clipped")
    bound: Positive = Field(description="largest norm Ξ")

class Declared(Options):
    """A public bound, checked against the data at every release."""

    kind: Literal["declared"] = "declared"
    bound: Positive = Field(description="largest L1 norm Ξ of one record's gradient")

class Bounds(Options):
    """Computed from the public bounds on x, y and θ."""

    kind: Literal["bounds"] = "bounds"

class Empirical(Options):
    """The largest that the data in hand allow: what the papers did. Not private, always flagged."""

    kind: Literal["empirical"] = "empirical"

Sensitivity = Annotated[Clip | Declared | Bounds | Empirical, Field(discriminator="kind"), BY_NAME]
