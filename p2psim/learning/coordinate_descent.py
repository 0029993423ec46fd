"""Coordinate descent on a graph (B, section 3), model propagation (B, appendix C), and where they start."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from p2psim.options import BY_NAME, Count, Options, Positive


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


Start = Annotated[Zero | Local | PrivateWarmStart, Field(discriminator="kind"), BY_NAME]


class _OnGraph(Options):
    """What algorithms on a graph have in common: their ends, of which just one is given."""

    updates_per_agent: Positive | None = Field(
        None, description="end at the time at which clocks of the mean rate ticked so often, on average"
    )
    time: Positive | None = Field(None, description="end before this simulated time")
    commits: Count | None = Field(None, description="end with this many updates")

    @model_validator(mode="after")
    def _one_end(self):  # type: ignore[no-untyped-def]
        given = [key for key in ("updates_per_agent", "time", "commits") if getattr(self, key) is not None]
        if len(given) != 1:
            raise ValueError(f"give exactly one of updates_per_agent, time and commits; got {given or 'none'}")
        return self


class CoordinateDescent(_OnGraph):
    """On waking, an agent steps down its own loss and towards its neighbours' models (B, section 3)."""

    kind: Literal["coordinate-descent"] = "coordinate-descent"
    mu: Positive = Field(description="μ, the weight of the agents' own losses")
    start: Start = Field(Zero(), description="the agents' first models")

    touches_data: ClassVar[bool] = True


class ModelPropagation(_OnGraph):
    """On waking, an agent averages its neighbours' models with its own local one (B, appendix C)."""

    kind: Literal["model-propagation"] = "model-propagation"
    mu: Positive = Field(description="μ, the weight of the agents' local models")
    start: Start = Field(Local(), description="the local models, which are also the agents' first ones")

    touches_data: ClassVar[bool] = False
