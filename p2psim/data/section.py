"""The ``data`` section of a scenario."""

from typing import Literal

from pydantic import Field

from p2psim.data.features import Features
from p2psim.data.partitions import Groups, Partition
from p2psim.data.scaling import Scale
from p2psim.data.sources import Source
from p2psim.options import Count, Options


class Public(Options):
    """Rows that the learner knows and no owner holds; whatever is fitted, is fitted on them."""

    last: Count = Field(
        description="how many: the last after shuffling; of generated data, so many more are drawn"
    )


class DataSection(Options):
    """Who holds which records, and how they are prepared."""

    source: Source = Field(description="where records come from")
    public: Public | None = Field(None, description="rows that the learner knows")
    shuffle: bool = Field(
        True, description="shuffle the rows first; what a source gives to owners stays there"
    )
    seed: int | None = Field(None, description="seed of the data draws; left out, the scenario's")
    redraw: Literal["never", "replica"] | None = Field(
        None, description="draw anew in every replica; left out: generated data replica, real data never"
    )
    features: Features = Field([], description="maps of the features, in order")
    scale: Scale = Field(Scale(), description="bounds on features and labels")
    partition: Partition | None = Field(None, description="who holds which rows; not for sources that say so")
    groups: Groups | None = Field(None, description="groups of owners, for what is given per group")

    @property
    def redrawn(self) -> bool:
        """Whether every replica has data of its own."""
        return (self.redraw or ("replica" if self.source.generated else "never")) == "replica"
