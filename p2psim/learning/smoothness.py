"""How steep an agent's loss may be, which sets its steps on a graph."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

Smoothness = Annotated[
    Literal["public", "data"],
    Field(
        description="where L_i^loc comes from, which sets the steps: public bounds on x if there are any, or "
        "the records (then ε does not cover the steps)"
    ),
]
