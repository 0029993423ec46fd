"""The small networks that algorithms provide for an audit, and the privacy that is claimed for their releases.

The production kernels of the algorithms run on data made for the audit. A claim is δ at ε, or ε at δ, by the accountant
of privacy loss distributions (``pld``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from p2psim.audit.canaries import Reach
from p2psim.core.errors import MeaningError
from p2psim.core.events import COMMIT, SEND
from p2psim.learning.batches import Batch
from p2psim.network.simulation import Network
from p2psim.privacy.accounting.accountants import ACCOUNTANTS
from p2psim.privacy.accounting.charges import Charges
from p2psim.privacy.accounting.noises import Noise, Subsampled
from p2psim.privacy.shares import Releases

#: Records that an audited agent holds at most; those but one have no gradient.
MOST_RECORDS = 4

#: The same where batches have a size, of which the rate of a batch depends on how many there are.
MOST_WITH_BATCHES = 2000


def records_here(records: np.ndarray, batch: Batch) -> np.ndarray:
    """How many records agents hold in an audit.

    Raises
    ------
    MeaningError
        If batches have a size and agents so many records that an audit would take long.
    """
    if batch.kind != "fixed":
        return np.minimum(records, MOST_RECORDS)
    if records.max() > MOST_WITH_BATCHES:
        raise MeaningError(
            "learning.algorithm.batch",
            f"an audit takes agents of at most {MOST_WITH_BATCHES} records with batches of fixed size, got "
            f"{records.max()}",
        )
    return records


@dataclass(frozen=True)
class Record:
    """One record, and the model that its agent begins at."""

    x: np.ndarray
    y: float
    start: np.ndarray


@dataclass(frozen=True)
class Seen:
    """What is published of each release, turned back into the noisy mean gradient by the claimed constants.

    Attributes
    ----------
    gradients : ndarray, shape (copies, releases, p)
    models : ndarray, shape (copies, releases, p)
        The published model at which each was computed.
    """

    gradients: np.ndarray
    models: np.ndarray


class AuditSystem(Protocol):
    """A small network of agents of a cell."""

    #: Its agents, by their indices in the cell; the first one is audited.
    agents: tuple[int, ...]
    #: How many records each holds here, shape (agents,): as in the cell, but for a great many.
    records: np.ndarray
    #: What each one's sum of gradients is divided by here, shape (agents,): its records, or a number for batches; and
    #: by what it multiplies gradients before noise.
    divisors: np.ndarray
    #: How much larger gradients of the audited agent are here than in the cell, which has more records; as the noise
    #: of every mechanism scales, noise and its grid are made larger alike.
    enlargement: float
    #: Probability that a record is in the batch of a release; 1 where all are.
    rate: float
    #: What noisy gradients are rounded to multiples of, here; None for no rounding.
    grid: float | None

    @property
    def dimension(self) -> int:
        """Length p of a release."""

    @property
    def reach(self) -> Reach:
        """What limits gradients."""

    @property
    def network(self) -> Network:
        """The small network: the scenario's exchange, and nothing that gets lost."""

    def play(self, held: Sequence[Record], events: np.ndarray, noise: np.ndarray, key: np.ndarray) -> Seen:
        """Replay events for many copies.

        Parameters
        ----------
        held : sequence of Record
            Of each agent; its other records have no gradient.
        events : ndarray of EVENT
            Of one copy.
        noise : ndarray, shape (copies, releases, p)
            In the order of the events.
        key : ndarray, shape (2,)
            Of the stream that batches are drawn from.
        """


def releases_of(events: np.ndarray) -> tuple[Releases, np.ndarray]:
    """Releases in a small network's events, by its own agents, and the places of the events that make them."""
    makes = (events["release"] >= 0) & np.isin(events["kind"], (SEND, COMMIT)) & (events["agent"] >= 0)
    places = np.flatnonzero(makes)
    keys = events["agent"][places].astype(np.int64) << 32 | events["release"][places]
    _, first = np.unique(keys, return_index=True)  # a release counts where it first appears
    places = places[np.sort(first)]
    steps = np.concatenate([[0], np.cumsum(events["kind"] == COMMIT)])[places]
    made = events[places]
    return (
        Releases(made["agent"].astype(np.int64), made["release"].astype(np.int64), steps.astype(np.int64)),
        places,
    )


def tables(
    held: Sequence[Record], records: np.ndarray, copies: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X, y and offsets of all copies' records; those that have no gradient are zero.

    Parameters
    ----------
    held : sequence of A Record
    records : ndarray of int, shape (A,)
        How many each agent holds.
    copies : int
    """
    first = np.concatenate([[0], np.cumsum(records)])
    X, y = np.zeros((first[-1], held[0].x.size)), np.zeros(first[-1])
    X[first[:-1]] = [record.x for record in held]
    y[first[:-1]] = [record.y for record in held]
    offsets = np.concatenate([[0], np.cumsum(np.tile(records, copies))]).astype(np.int64)
    return np.tile(X, (copies, 1)), np.tile(y, copies), offsets


#: Exact up to a hair above: of every noise it needs the curve of one release alone.
_ACCOUNTANT = "pld"


def after_sampling(losses: np.ndarray, rate: float) -> np.ndarray:
    """Pure losses log(1 + q(e^ε₀ − 1)) of releases of batches that hold a record with probability q."""
    return np.asarray(np.log1p(rate * np.expm1(losses)))


def before_sampling(loss: float, rate: float) -> float:
    """Inverse of `after_sampling`."""
    return float(np.log1p(np.expm1(loss) / rate))


@dataclass(frozen=True)
class Claim:
    """What releases of one agent are claimed to cost together.

    Attributes
    ----------
    noise : Noise
    losses : ndarray, shape (releases,)
        Sensitivity over scale.
    rate : float
        Probability that a record is in the batch of a release, in (0, 1].
    """

    noise: Noise
    losses: np.ndarray
    rate: float

    def part(self, releases: slice) -> Claim:
        """Claim of some of the releases."""
        return Claim(self.noise, self.losses[releases], self.rate)

    @property
    def told(self) -> np.ndarray:
        """Losses after sampling, shape (releases,)."""
        return after_sampling(self.losses, self.rate)

    @property
    def _charges(self) -> Charges:
        return Charges.of(self.noise if self.rate == 1 else Subsampled(self.noise, self.rate), self.losses)

    def delta(self, epsilon: float) -> float:
        """δ at ε."""
        return float(ACCOUNTANTS[_ACCOUNTANT].delta(self._charges, epsilon)[0])

    def epsilon(self, delta: float) -> float:
        """ε at δ; infinite where there is none."""
        return float(ACCOUNTANTS[_ACCOUNTANT].epsilon(self._charges, delta)[0])
