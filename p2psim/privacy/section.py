"""The ``privacy`` section of a scenario."""

from typing import Annotated, Literal

from pydantic import Field

from p2psim.options import AS_LIST, Options, PerAgent, Positive
from p2psim.privacy.accounting.names import AccountantName
from p2psim.privacy.allocations import AnyAllocation, Horizon
from p2psim.privacy.mechanisms import AnyMechanism
from p2psim.privacy.overlap import Overlap
from p2psim.privacy.sensitivity import Sensitivity


class PrivacySection(Options):
    """What is released, and what it costs."""

    mechanism: AnyMechanism = Field(description="the noise")
    epsilon: PerAgent | None = Field(None, description="budget of each agent; .inf is no noise")
    delta: Annotated[Positive, Field(lt=1)] | None = Field(
        None, description="δ at which accountants report ε; Gaussian noise needs one"
    )
    sensitivity: Sensitivity | None = Field(
        None, description="where the bound on one record's gradient comes from"
    )
    allocation: AnyAllocation = Field(Horizon(), description="how a budget is spread over releases")
    when_spent: Literal["silent", "coast", "anchored"] = Field(
        "silent",
        description="what an agent does when it may release no more: nothing, average its neighbours' models, or do so "
        "towards its own last model that touched its data",
    )
    accountant: Annotated[list[AccountantName], AS_LIST] = Field(
        ["basic"], description="who adds up the losses, at δ where that is of use"
    )
    enforce: AccountantName | None = Field(
        None,
        description="whose budget stops releases before it would be exceeded; the first accountant when left out",
    )
    overlap: Overlap = Field(
        Overlap(), description="records that several owners of a star hold, and what that costs"
    )
    scale_records: Positive = Field(1.0, description="noise as if each record stood for this many")

    @property
    def enforcing(self) -> AccountantName:
        """The accountant whose budget stops releases."""
        return self.enforce or self.accountant[0]

    @property
    def accountants(self) -> list[str]:
        """All that are named, each once."""
        named = [*self.accountant, self.enforcing, self.allocation.composed_by]
        return list(dict.fromkeys(name for name in named if name is not None))
