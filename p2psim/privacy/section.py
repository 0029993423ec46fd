"""The ``privacy`` section of a scenario: what is released at what cost, and bounds on gradients.

Ξ bounds the norm of one record's gradient: the L1 norm for Laplace noise, the L2 norm for Gaussian noise. Replacing one
of an owner's n_i records moves its mean gradient by at most 2Ξ/n_i in that norm. A bound on the L1 norm is one on the
L2 norm, since ‖g‖₂ ≤ ‖g‖₁; the converse is false by up to √p.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from p2psim.core.errors import Fault
from p2psim.core.options import AS_LIST, ByKind, Options, PerAgent, Positive
from p2psim.privacy.accounting.accountants import AccountantName
from p2psim.privacy.allocations import AnyAllocation, Horizon
from p2psim.privacy.mechanisms import AnyMechanism
from p2psim.privacy.shares import Overlap


class SensitivityBound(Options):
    """Base of where the bound on one record's gradient comes from.

    Attributes
    ----------
    holds : bool
        Whether ε follows from it; where not, the ledger's is infinite and only the claim is finite.
    is_checked : bool
        Whether it bounds gradients that are not clipped, and is checked at every release.
    over_models : bool
        Whether it is taken over all models, so that it is finite only where models or slopes are bounded.
    audit_note : str
        What an audit says of it beside its findings; empty for nothing.
    needs_records : bool
        Whether it is read off the records in hand.
    """

    kind: Any

    holds: ClassVar[bool] = True
    is_checked: ClassVar[bool] = False
    over_models: ClassVar[bool] = False
    needs_records: ClassVar[bool] = False
    audit_note: ClassVar[str] = ""

    @property
    def clipping(self) -> tuple[Literal["l1", "l2"], float] | None:
        """Norm and size to which each record's gradient is clipped; None where it is not."""
        return None

    @abstractmethod
    def claim(self, public: Callable[[], float], largest: Callable[[], float]) -> float:
        """Ξ.

        Parameters
        ----------
        public, largest : callable
            Give the bound from public bounds on x, y and θ, and the largest that the records in hand can reach.
        """

    def faults(self, privacy: PrivacySection, star: bool) -> Iterator[Fault]:
        """What the noise, or a star or agents on a graph, cannot use of it."""
        return iter(())


class _Clipping(SensitivityBound):
    """Base of those that clip."""

    kind: Any
    norm: Literal["l1", "l2"]
    bound: Positive

    @property
    def clipping(self) -> tuple[Literal["l1", "l2"], float] | None:
        """See `SensitivityBound.clipping`."""
        return self.norm, self.bound

    def claim(self, public: Callable[[], float], largest: Callable[[], float]) -> float:
        """See `SensitivityBound.claim`."""
        return self.bound


class Clip(_Clipping):
    """Clip each record's gradient to a norm: always safe where the noise is for that norm.

    Choices
    -------
    norm: l1
        the sum of absolute values
    norm: l2
        the Euclidean norm
    """

    kind: Literal["clip"] = "clip"
    norm: Literal["l1", "l2"] = Field(
        "l1",
        description="norm that is clipped: Laplace noise needs l1; Gaussian noise takes both, and l2 clips less",
    )
    bound: Positive = Field(description="Ξ, the largest norm")

    def faults(self, privacy: PrivacySection, star: bool) -> Iterator[Fault]:
        """A bound on an L2 norm is none on the L1 norm, unless that is asked for by its name; the converse holds."""
        if self.norm == "l2" and privacy.mechanism.is_private and privacy.mechanism.norm == "l1":
            hint = ", or give gaussian noise" if star else "; as-printed makes that claim, flagged"
            message = (
                f"{privacy.mechanism.title} needs l1: beside l2 clipping the loss is up to √p times the claim"
            )
            yield Fault(message + hint, "privacy.sensitivity.norm")


class Declared(SensitivityBound):
    """A public bound, checked against the data at every release; a violation voids the guarantee and is flagged."""

    kind: Literal["declared"] = "declared"
    bound: Positive = Field(
        description="Ξ, the largest norm of one record's gradient, in the mechanism's norm"
    )
    is_checked: ClassVar[bool] = True

    def claim(self, public: Callable[[], float], largest: Callable[[], float]) -> float:
        """See `SensitivityBound.claim`."""
        return self.bound


class Bounds(SensitivityBound):
    """Computed from the public bounds on x, y and θ, in the mechanism's norm."""

    kind: Literal["bounds"] = "bounds"
    is_checked: ClassVar[bool] = True
    over_models: ClassVar[bool] = True

    def claim(self, public: Callable[[], float], largest: Callable[[], float]) -> float:
        """See `SensitivityBound.claim`."""
        return public()


class Empirical(SensitivityBound):
    """The largest that the records in hand can reach on Θ, as the papers did: not private, always flagged."""

    kind: Literal["empirical"] = "empirical"
    holds: ClassVar[bool] = False
    needs_records: ClassVar[bool] = True
    over_models: ClassVar[bool] = True
    audit_note: ClassVar[str] = (
        "an empirical bound is read off the data: audited as if it held, which nothing guarantees"
    )

    def claim(self, public: Callable[[], float], largest: Callable[[], float]) -> float:
        """See `SensitivityBound.claim`."""
        return largest()


class AsPrinted(_Clipping):
    """Clip each record's gradient as B does and claim what B claims, true or not: always flagged, with an infinite ε.

    An L2 bound beside Laplace noise understates the loss by up to √p. On graphs only.
    """

    kind: Literal["as-printed"] = "as-printed"
    norm: Literal["l1", "l2"] = Field("l2", description="norm that is clipped, whatever the noise needs")
    bound: Positive = Field(description="Ξ, the largest norm, taken for a bound on the L1 norm")
    holds: ClassVar[bool] = False

    def faults(self, privacy: PrivacySection, star: bool) -> Iterator[Fault]:
        """It is not for stars."""
        if star:
            yield Fault("as-printed is for agents on a graph; give clip, or empirical", "privacy.sensitivity")


Sensitivity = ByKind[Clip | Declared | Bounds | Empirical | AsPrinted]


class PrivacySection(Options):
    """What is released, and what it costs.

    Choices
    -------
    when_spent: silent
        the agent does nothing any more
    when_spent: coast
        the agent averages its neighbours' models
    when_spent: anchored
        the agent averages towards its own last model that touched its data
    """

    mechanism: AnyMechanism = Field(description="the noise")
    epsilon: PerAgent | None = Field(
        None,
        description="budget of each agent; .inf is no noise; a list is of agents 0, 1, …; {column: NAME} takes it "
        "from a column of data.per_owner",
    )
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
