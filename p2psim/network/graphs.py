from typing import Annotated, Literal
from pydantic import Field
from p2psim.options import BY_NAME, Count, Options

class Star(Options):
    """A central learner (index −1) and its data owners."""

    kind: Literal["star"] = "star"
    agents: Count | None = Field(None, description="number of owners; left out, as many as the data gives")

class Complete(Options):
    """Everyone is linked with everyone."""

    kind: Literal["complete"] = "complete"
    agents: Count | None = Field(None, description="number of agents")

class Ring(Options):
    """Every agent is linked with the next one."""

    kind: Literal["ring"] = "ring"
    agents: Count | None = Field(None, description="number of agents")

Topology = Annotated[Star | Complete | Ring, Field(discriminator="kind"), BY_NAME]
