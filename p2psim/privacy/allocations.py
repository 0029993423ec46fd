from typing import Annotated, Literal
from pydantic import Field, model_validator
from p2psim.options import BY_NAME, Count, Options

class Horizon(Options):
    """ε/T for each of T releases, T the horizon."""

    kind: Literal["horizon"] = "horizon"

class Cap(Options):
    """ε/m for each of m releases, then none."""

    kind: Literal["cap"] = "cap"
    releases: Count | None = Field(None, description="m")
    tail: Annotated[float, Field(gt=0, lt=1)] | None = Field(None, description="choose m so that more answers than m have at most this probability; lossless, always-on request star only")

    @model_validator(mode="after")
    def _one_of_them(self) -> "Cap":
        if (self.releases is None) == (self.tail is None):
            raise ValueError("give exactly one of releases and tail")
        return self

class Geometric(Options):
    """ε(1 − r)r^j for the j-th release, any number of releases."""

    kind: Literal["geometric"] = "geometric"
    ratio: Annotated[float, Field(gt=0, lt=1)] = Field(0.99, description="r")

Allocation = Annotated[Horizon | Cap | Geometric, Field(discriminator="kind"), BY_NAME]
