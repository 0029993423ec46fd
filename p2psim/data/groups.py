"""Groups of owners by their number of records."""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field, model_validator

from p2psim.options import Count, Options


class Groups(Options):
    """Owners grouped by their number of records."""

    by: Literal["records"] = Field("records", description="what decides")
    cut: Annotated[list[Count], Field(min_length=1)] = Field(
        description="ascending; who has exactly so many is above"
    )
    names: list[str] = Field(description="one name more than there are cuts, from the smallest owners on")
    merge: bool = Field(
        False, description="the owners of a group act as one larger owner, called as the group (F, Remark 2)"
    )

    @model_validator(mode="after")
    def _fits(self) -> "Groups":
        if sorted(set(self.cut)) != self.cut:
            raise ValueError(f"cut: must ascend, got {self.cut}")
        if len(self.names) != len(self.cut) + 1 or len(set(self.names)) != len(self.names):
            raise ValueError(f"names: {len(self.cut) + 1} different names are needed, got {self.names}")
        return self


def group_of(groups: Groups, records: np.ndarray) -> tuple[str, ...]:
    """Group of each owner.

    Parameters
    ----------
    groups : Groups
    records : ndarray of int, shape (N,)
        Number of records of each owner.
    """
    return tuple(groups.names[place] for place in np.searchsorted(groups.cut, records, side="right"))
