"""The ``record`` section of a scenario."""

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from p2psim.metric import Metric, Registered
from p2psim.options import Count, Options, Positive
from p2psim.registry import register


class Spending(Metric):
    """Base of metrics of the privacy spent."""


register(
    Spending.of(
        "epsilon_spent",
        None,
        "mean over agents of what their releases and starts so far are claimed to cost: the sum of their "
        "ε where noise is pure, else ε by the accountant that enforces budgets; infinite without noise",
        label="privacy spent (mean ε of the agents)",
        rises=True,
    )
)

#: What can be recorded of the privacy spent by any algorithm.
SPENDING = Registered(Spending)


class EveryTime(Options):
    """Record at regular simulated times."""

    time: Positive = Field(description="simulated time between records")


def _kind(value: Any) -> str:
    return "time" if isinstance(value, dict | EveryTime) else "steps"


class RecordSection(Options):
    """What is kept."""

    metrics: list[str] = Field(
        ["relative_fitness"],
        description="metrics to record; of agents on a graph by default objective_gap and, where records are held "
        "out, test_accuracy of classes or test_rmse",
    )
    per_agent: list[str] = Field(
        [], description="metrics to record for each agent as well, where they are of each"
    )
    by: Literal["group"] | None = Field(None, description="also give the mean over each group of agents")
    every: Annotated[
        Annotated[Count, Tag("steps")] | Annotated[EveryTime, Tag("time")], Discriminator(_kind)
    ] = Field(1, description="steps between records, or {time: simulated time between records}")
    events: bool = Field(False, description="keep events, and all that verify needs")
    noise: bool = Field(False, description="keep the noise of every release")
    data: bool = Field(False, description="keep the prepared data")
    models: bool = Field(False, description="keep the recorded models")
