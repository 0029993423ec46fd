"""Models to compare with: each alone, all as one, and all on records that were made private one by one."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from p2psim.options import BY_NAME, Options


class LocalModels(Options):
    """Every agent learns from its own records alone."""

    kind: Literal["local"] = "local"
    reduction: Literal["mean", "sum"] = Field(
        "mean", description="whether λ_i‖θ‖² is added to the mean or to the sum of an agent's losses"
    )


class GlobalModel(Options):
    """One model for all, learned from all records together."""

    kind: Literal["global"] = "global"


class LocalPrivacy(Options):
    """Every record is made private by itself, then the agents minimise Q_L exactly, without further noise."""

    kind: Literal["local-dp"] = "local-dp"

    is_random: ClassVar[bool] = True


Baseline = Annotated[LocalModels | GlobalModel | LocalPrivacy, Field(discriminator="kind"), BY_NAME]
