"""When a run on a graph ends."""

from __future__ import annotations

from pydantic import Field, model_validator

from p2psim.options import Count, Options, Positive


class RunEnd(Options):
    """What algorithms on a graph have in common: their ends, of which just one is given."""

    updates_per_agent: Positive | None = Field(
        None, description="end at the time at which clocks of the mean rate ticked so often, on average"
    )
    time: Positive | None = Field(None, description="end after what happens at this simulated time")
    commits: Count | None = Field(None, description="end with this many updates")

    @model_validator(mode="after")
    def _one_end(self):  # type: ignore[no-untyped-def]
        given = [key for key in ("updates_per_agent", "time", "commits") if getattr(self, key) is not None]
        if len(given) != 1:
            raise ValueError(
                f"give exactly one of updates_per_agent, time and commits; got {given or 'none'}"
            )
        return self
