"""The ``data`` section of a scenario."""

from typing import Annotated, Literal

from pydantic import Field

from p2psim.core.options import Count, Options, Whole
from p2psim.data.classes import Classes
from p2psim.data.features import Features
from p2psim.data.groups import Groups
from p2psim.data.partitions import AnyPartition
from p2psim.data.scaling import Scale
from p2psim.data.sources import AnySource


class Public(Options):
    """Rows that the learner knows and no owner holds; whatever is fitted, is fitted on them."""

    last: Count = Field(
        description="how many: the last after shuffling; of generated data, this many more are drawn"
    )


class DataSection(Options):
    """Who holds which records, and how they are prepared.

    Choices
    -------
    redraw: never
        one draw for all replicas
    redraw: replica
        a new draw in every replica
    center: user
        each owner's labels less their mean
    classes: all
        every different label is a class
    """

    unsaid = ("classes", "validation_fraction", "per_owner")

    source: AnySource = Field(description="where records come from")
    classes: Classes | None = Field(
        None,
        description="labels are classes: all, a list of those whose records are kept, or a mapping from classes "
        "to the labels that each is made of; two classes are −1 and +1 in this order, more are 0 … C − 1; left out, "
        "labels are numbers, or the classes of the source",
    )
    public: Public | None = Field(None, description="rows that the learner knows")
    shuffle: bool = Field(
        True, description="shuffle the rows first; what a source gives to owners stays there"
    )
    seed: Whole | None = Field(None, description="seed of the data draws; left out, the scenario's")
    redraw: Literal["never", "replica"] | None = Field(
        None,
        description="draw anew in every replica; left out: generated data and test splits replica, "
        "real data never",
    )
    test_fraction: Annotated[float, Field(gt=0, lt=1)] | None = Field(
        None, description="part of its records that each owner keeps for tests, drawn at random"
    )
    validation_fraction: Annotated[float, Field(gt=0, lt=1)] | None = Field(
        None,
        description="part of its training records that each owner keeps for validation: they take the place of test "
        "records, which nobody sees",
    )
    center: Literal["user"] | None = Field(
        None, description="user: each owner subtracts the mean of its training labels from its labels"
    )
    features: Features = Field([], description="maps of the features, in order")
    scale: Scale = Field(Scale(), description="bounds on features and labels")
    partition: AnyPartition | None = Field(
        None, description="who holds which rows; not for sources that say so"
    )
    groups: Groups | None = Field(None, description="groups of owners, for what is given per group")
    per_owner: Annotated[list[str], Field(min_length=1)] | None = Field(
        None,
        description="columns of csv or parquet with one number per owner, the same in all rows of an owner, in "
        "original units; they are no features, and {column: NAME} takes budgets, rates or participation from them",
    )

    @property
    def names_owners(self) -> bool:
        """Whether the records say how many owners there are, and what they are called."""
        if self.groups is not None and self.groups.merge:
            return False
        if self.partition is None:
            return not self.source.generated
        return self.partition.divides_by is not None

    @property
    def holds_out(self) -> bool:
        """Whether owners keep some of their records from training."""
        return self.test_fraction is not None or self.validation_fraction is not None

    @property
    def records_redrawn(self) -> bool:
        """Whether every replica has records of its own."""
        return (self.redraw or ("replica" if self.source.generated else "never")) == "replica"

    @property
    def redrawn(self) -> bool:
        """Whether anything in the data differs between replicas: the records, or who tests with which."""
        return self.records_redrawn or (self.holds_out and self.redraw is None)
