"""Which of an agent's records take part in a release, all or a batch that is drawn anew, and how they are clipped.

A batch's gradient is the sum of its records' gradients, divided by a public number: q·n_i or b, never by how many were
drawn. Replacing one record then moves it by at most 2Ξ over that number, and only where the record was drawn, which
is what amplification by subsampling rests on under replace-one (Balle, Barthe, Gaboardi, "Privacy amplification by
subsampling", NeurIPS 2018). It has the mean of the full gradient.

Batches of an epoch have no such gain: they are parts of one shuffle, so that who was in one of them is not in the next.
Their releases are charged as if every one held every record.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
from pydantic import Field

from p2psim.core.errors import AgentError
from p2psim.core.options import ByKind, Count, Options

#: How a batch is drawn, for kernels.
POISSON, FIXED, SHUFFLED = 0, 1, 2


class Spread(NamedTuple):
    """How batches spread the gradient g of one agent around that of all its records: Cov g = α·S − β·ḡḡᵀ.

    S is the mean of the records' g_r·g_rᵀ, and ḡ the mean of their g_r.

    Attributes
    ----------
    raw : float
        α.
    centred : float
        β.
    """

    raw: float
    centred: float

    @classmethod
    def whole(cls) -> Spread:
        """All records take part."""
        return cls(0.0, 0.0)

    @classmethod
    def poisson(cls, rate: float, records: int) -> Spread:
        """Each record takes part with a probability; the sum is divided by the expected number."""
        return cls((1 - rate) / (rate * records), 0.0)

    @classmethod
    def fixed(cls, size: int, records: int) -> Spread:
        """A fixed number of records, drawn without replacement."""
        if size == records:
            return cls.whole()
        share = (records - size) / (size * (records - 1))
        return cls(share, share)


class _Batch(Options):
    """Base of all batches: all records, which cost what they do."""

    kind: Any
    code: ClassVar[int | None] = None
    #: Whether batches are drawn in secret, each without regard to the others, so that a release costs less for it.
    amplifies: ClassVar[bool] = False
    #: Whether batches are drawn anew for each release.
    is_fresh: ClassVar[bool] = True
    #: Whether chances depend on how many records an agent holds.
    needs_records: ClassVar[bool] = False

    def rates(self, records: np.ndarray) -> np.ndarray:
        """Chance of each agent's records to take part, shape (N,).

        Raises
        ------
        MeaningError
            If an agent holds some records, but fewer than a batch of a fixed size has.
        """
        return np.ones(records.size)

    def epoch(self, records: np.ndarray) -> np.ndarray:
        """Batches in which an agent takes as many records as it holds, about, at least one, shape (N,)."""
        return np.maximum(1, np.ceil(records / self.divisors(records))).astype(np.int64)

    def divisors(self, records: np.ndarray) -> np.ndarray:
        """What each agent's sum of gradients is divided by, shape (N,); without records, as with one."""
        return np.maximum(records, 1).astype(float)

    def spread(self, records: int) -> Spread:
        """How batches that are drawn anew for each release spread gradients of an agent with this number of records."""
        raise NotImplementedError(f"batches of kind {self.kind} depend on those before")


class Whole(_Batch):
    """All records take part in every release."""

    kind: Literal["whole"] = "whole"

    def spread(self, records: int) -> Spread:
        """See the base."""
        return Spread.whole()


class PoissonBatch(_Batch):
    """Each record takes part with probability q, whatever the others do; a batch may be empty."""

    kind: Literal["poisson"] = "poisson"
    rate: Annotated[float, Field(gt=0, le=1)] = Field(description="q; the sum is divided by q·n_i")
    code: ClassVar[int | None] = POISSON
    amplifies: ClassVar[bool] = True

    def rates(self, records: np.ndarray) -> np.ndarray:
        """See the base."""
        return np.full(records.size, self.rate)

    def divisors(self, records: np.ndarray) -> np.ndarray:
        """See the base."""
        return self.rate * np.maximum(records, 1)

    def spread(self, records: int) -> Spread:
        """See the base."""
        return Spread.poisson(self.rate, records)


class _Sized(_Batch):
    size: Count = Field(description="b; no agent may hold fewer records, but one may hold none")

    def divisors(self, records: np.ndarray) -> np.ndarray:
        return np.where(records > 0, float(self.size), 1.0)


class FixedBatch(_Sized):
    """b records, all sets of so many alike, drawn without replacement."""

    kind: Literal["fixed"] = "fixed"
    code: ClassVar[int | None] = FIXED
    amplifies: ClassVar[bool] = True
    needs_records: ClassVar[bool] = True

    def rates(self, records: np.ndarray) -> np.ndarray:
        """See the base."""
        _check_size(self.size, records)
        return np.where(records > 0, self.size / np.maximum(records, 1), 1.0)

    def spread(self, records: int) -> Spread:
        """See the base."""
        return Spread.fixed(self.size, records)


class EpochBatch(_Sized):
    """b records each, the next ones of a shuffle of all, which is drawn anew for each epoch.

    An epoch is ⌊n_i/b⌋ releases. The records that are left over, fewer than b, take no part in it.
    """

    kind: Literal["epochs"] = "epochs"
    code: ClassVar[int | None] = SHUFFLED
    is_fresh: ClassVar[bool] = False

    def rates(self, records: np.ndarray) -> np.ndarray:
        """1 for all, as nothing is claimed for batches of an epoch; see the base."""
        _check_size(self.size, records)
        return super().rates(records)

    def epoch(self, records: np.ndarray) -> np.ndarray:
        """See the base; records that are left over take no part."""
        return np.maximum(1, records // self.size).astype(np.int64)


def _check_size(size: int, records: np.ndarray) -> None:
    """Raise if an agent holds some records, but fewer than a batch has."""
    short = np.flatnonzero((records > 0) & (records < size))
    if short.size:
        agent = int(short[0])
        raise AgentError(
            "learning.algorithm.batch.size",
            f"must be at most what each agent holds, {records[agent]} records for agent {{agent}}, got {size}",
            agent,
        )


Batch = ByKind[Whole | PoissonBatch | FixedBatch | EpochBatch]


_WHOLE = Whole()


def batch_of(algorithm: Any) -> Batch:
    """Which records take part in an algorithm's releases; all, for one that has no batches."""
    batch: Batch = getattr(algorithm, "batch", _WHOLE)
    return batch


#: Records whose norms are computed at once: temporary arrays stay small.
_ROWS = 1 << 12


def record_norms(X: np.ndarray, order: int) -> np.ndarray:
    """‖x‖ of each record, of order 1 or 2, shape (n, p) to (n,), without a second copy of all records."""
    norms = np.empty(len(X))
    for first in range(0, norms.size, _ROWS):
        rows = X[first : first + _ROWS]
        some = np.abs(rows).sum(axis=1) if order == 1 else np.sqrt(np.einsum("rp,rp->r", rows, rows))
        norms[first : first + _ROWS] = some
    return norms


@dataclass(frozen=True)
class GradientRule:
    """How an agent computes its mean gradient, and what is checked meanwhile.

    Attributes
    ----------
    clip : float
        Norm to which each record's gradient is clipped; infinite for none.
    order : int
        Order of that norm, 1 or 2.
    bound : float
        Claimed bound on a record's gradient in that norm, checked at every release; infinite for no claim.
    grid : float or None
        What noisy gradients are rounded to multiples of, halves upwards.
    """

    clip: float = np.inf
    order: int = 1
    bound: float = np.inf
    grid: float | None = None


@dataclass(frozen=True)
class Sampling:
    """How the records of each release are drawn in one replica.

    Attributes
    ----------
    code : int
        `POISSON`, `FIXED` or `SHUFFLED`.
    rates : ndarray, shape (N,)
        Chance of each agent's records to take part, as the batch's own `rates` tells it.
    sizes : ndarray of int64, shape (N,)
        Records in each batch of fixed size, or of an epoch.
    divisors : ndarray, shape (N,)
        Number by which each agent's sum of gradients is divided.
    key : ndarray of uint64, shape (2,)
        Of the stream ``batches``.
    """

    code: int
    rates: np.ndarray
    sizes: np.ndarray
    divisors: np.ndarray
    key: np.ndarray

    def for_kernel(self, records: np.ndarray) -> tuple[Any, ...]:
        """What the kernels take, with room for the largest batch: see `p2psim.learning.owner_kernel.batch_gradient`."""
        largest = int(records.max(initial=0))
        rows, taken = np.zeros(largest, np.int64), np.zeros(largest, np.bool_)
        return self.code, self.rates, self.sizes, self.divisors, self.key, rows, taken


def sampling(batch: Batch, records: np.ndarray, key: np.ndarray) -> Sampling | None:
    """How a scenario's batches are drawn; None where all records take part.

    Parameters
    ----------
    batch : Batch
    records : ndarray of int, shape (N,)
    key : ndarray of uint64, shape (2,)
        Of the stream ``batches``.

    Raises
    ------
    MeaningError
        As `FixedBatch.rates` and `EpochBatch.rates`.
    """
    if batch.code is None:
        return None
    rates = batch.rates(records)
    sizes = np.where(records > 0, getattr(batch, "size", 0), 0).astype(np.int64)
    return Sampling(batch.code, rates, sizes, batch.divisors(records), key)
