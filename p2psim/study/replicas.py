"""How often each cell is repeated: a number, or until an interval is narrow enough."""

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from p2psim.options import INT32, Few, Options, Positive


class Until(Options):
    """The interval that is to become narrow."""

    metric: str = Field(description="a recorded metric; its last recorded value in each replica counts")
    model: str = Field("main", description="main, or the name of a baseline")
    statistic: Literal["mean", "median"] = Field(
        "mean",
        description="mean, by Student's t, exact for normal values; or median, by order statistics, for any law",
    )
    width: Positive = Field(description="the most that the whole interval may be wide")
    relative: bool = Field(True, description="whether width is a share of the estimate's absolute value")
    confidence: Annotated[float, Field(gt=0, lt=1)] = Field(
        0.95,
        description="that the interval at which a cell stops holds the truth, however often it was looked at",
    )


class Sequential(Options):
    """Replicas are added to each cell until its interval is narrow enough."""

    until: Until = Field(description="the interval that is to become narrow")
    least: Annotated[int, Field(ge=2, le=INT32)] = Field(
        10, description="replicas of each cell at the first look"
    )
    most: Annotated[int, Field(ge=2, le=INT32)] = Field(
        1000, description="replicas at which a cell stops in any case"
    )


def _kind(value: Any) -> str:
    return "rule" if isinstance(value, dict | Sequential) else "number"


Replicas = Annotated[Annotated[Few, Tag("number")] | Annotated[Sequential, Tag("rule")], Discriminator(_kind)]


def fewest(replicas: int | Sequential) -> int:
    """Replicas that each cell has at least."""
    return replicas if isinstance(replicas, int) else replicas.least


def most(replicas: int | Sequential) -> int:
    """Replicas that each cell has at most."""
    return replicas if isinstance(replicas, int) else replicas.most
