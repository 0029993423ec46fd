"""The small networks that algorithms provide for an audit: their records, releases, and many copies of their events.

The production kernels of the algorithms run on data made for the audit.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np

from p2psim.audit.canaries import GradientLimits, Record
from p2psim.core.errors import MeaningError
from p2psim.core.events import COMMIT, EVENT, LEARNER, NEIGHBOURS, SEND
from p2psim.learning.batches import batch_of
from p2psim.network.section import Network
from p2psim.privacy.releases import ReleaseCounter
from p2psim.privacy.shares import Releases

#: Records that an audited agent holds at most; those but one have no gradient.
MOST_RECORDS = 4

#: The same where batches have a size, of which the rate of a batch depends on how many there are.
MOST_WITH_BATCHES = 2000


class Published(NamedTuple):
    """What is published of each release, turned back into the noisy mean gradient by the claimed constants.

    Attributes
    ----------
    gradients : ndarray, shape (copies, releases, p)
    models : ndarray, shape (copies, releases, p)
        The published model at which each was computed.
    """

    gradients: np.ndarray
    models: np.ndarray


class AuditSystem(ABC):
    """A small network of agents of a cell.

    Parameters
    ----------
    cell : PreparedCell
    agents : sequence of int
        Its agents, by their indices in the cell; the first one is audited.

    Raises
    ------
    MeaningError
        If batches have a size and agents so many records that an audit would take long, or are parts of epochs.

    Attributes
    ----------
    cell : PreparedCell
    agents : tuple of int
    dimension : int
        Length p of a release.
    records : ndarray of int, shape (agents,)
        How many each holds here: as in the cell, but for a great many.
    divisors : ndarray, shape (agents,)
        What each one's sum of gradients is divided by here: its records, or a number for batches; and by what it
        multiplies gradients before noise.
    enlargement : float
        How much larger gradients of the audited agent are here than in the cell, which has more records; as the noise
        of every mechanism scales, noise and its grid are made larger alike.
    rate : float
        Probability that a record is in the batch of a release; 1 where all are.
    grid : float or None
        What noisy gradients are rounded to multiples of, here; None for no rounding.
    """

    #: Whether agents release to each other, so that one alone releases nothing.
    needs_pair: ClassVar[bool]

    def __init__(self, cell: Any, agents: Sequence[int]):
        self.cell, self.agents, self.dimension = cell, tuple(agents), int(cell.problem.dimension)
        held = cell.problem.records[list(agents)]
        self._batch = batch_of(cell.scenario.learning.algorithm)
        if not self._batch.is_fresh:
            raise MeaningError(
                "learning.algorithm.batch",
                "an audit needs batches that are drawn anew for each release, and those of epochs are not: take fixed "
                "or poisson",
            )
        self.records = held if self._batch.needs_records else np.minimum(held, MOST_RECORDS)
        if self.records.max() > MOST_WITH_BATCHES:
            raise MeaningError(
                "learning.algorithm.batch",
                f"an audit takes agents of at most {MOST_WITH_BATCHES} records with batches of fixed size, got "
                f"{held.max()}",
            )
        self.divisors: np.ndarray = self._batch.divisors(self.records)
        self.enlargement = float(held[0] / self.records[0])
        self.rate = float(self._batch.rates(held)[0])
        self.grid: float | None = None if cell.rule.grid is None else cell.rule.grid * self.enlargement

    @property
    def mechanism(self) -> str:
        """What draws the noise, as a table says it."""
        return str(self.cell.scenario.privacy.mechanism.kind)

    @property
    def limits(self) -> GradientLimits:
        """What limits gradients."""
        cell, given = self.cell, self.cell.scenario.privacy.sensitivity
        x_bound = cell.bound if given.holds and given.over_models else None
        return GradientLimits(cell.problem.loss, cell.rule.clip, cell.bound, cell.rule.order, x_bound=x_bound)

    def problem(self, held: Sequence[Record], copies: int) -> Any:
        """The cell's problem with the records of many copies; those that have no gradient are zero.

        Parameters
        ----------
        held : sequence of Record
            Of each agent.
        copies : int
        """
        first = np.concatenate([[0], np.cumsum(self.records)])
        X, y = np.zeros((first[-1], self.dimension)), np.zeros(first[-1])
        X[first[:-1]] = [record.x for record in held]
        y[first[:-1]] = [record.y for record in held]
        offsets = np.concatenate([[0], np.cumsum(np.tile(self.records, copies))]).astype(np.int64)
        return replace(self.cell.problem, X=np.tile(X, (copies, 1)), y=np.tile(y, copies), offsets=offsets)

    @property
    @abstractmethod
    def network(self) -> Network:
        """The small network: the scenario's exchange, and nothing that gets lost."""

    @abstractmethod
    def play(
        self, held: Sequence[Record], events: np.ndarray, noise: np.ndarray, key: np.ndarray
    ) -> Published:
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


def releases_of(events: np.ndarray) -> Releases:
    """Releases in a small network's events, by its own agents."""
    return ReleaseCounter.empty(int(events["agent"].max(initial=-1)) + 1).read(events)


class Copies:
    """Events of copies: agent a of copy s is s·agents + a. The learner, if there is one, is common to all.

    Within a block each copy's events follow each other, as they do in the original; blocks follow in their order.

    Parameters
    ----------
    events : ndarray of EVENT
        Of one run of a small network.
    agents : int
        Of the small network.
    copies : int
    """

    def __init__(self, events: np.ndarray, agents: int, copies: int):
        self._events, self._agents = events, agents
        sends, commits = events["kind"] == SEND, events["kind"] == COMMIT
        of_learner = events["agent"] == LEARNER
        common = (sends | commits) & of_learner & (events["peer"] == NEIGHBOURS)
        self._each = np.where(common, 1, copies)
        # Where a block's events begin among those of all copies.
        self._first = np.concatenate([[0], np.cumsum(self._each)])
        # Blocks end after every commit and every send of an agent, and around what the learner does with all at once.
        ends = np.flatnonzero(common | commits | (sends & ~of_learner)) + 1
        cuts = np.unique([0, *np.flatnonzero(common), *ends, len(events)])
        self._blocks = [slice(*block) for block in pairwise(cuts.tolist())]

    def seqs(self, at: int, block: slice) -> np.ndarray:
        """Number of event ``at`` of a block in each copy, shape (copies,), or (1,) for what is common to all."""
        copies = np.arange(self._each[at], dtype=np.int64)
        return np.asarray(self._first[block.start] + (at - block.start) + (block.stop - block.start) * copies)

    def play(self, noise: np.ndarray) -> Iterator[tuple[slice, np.ndarray, dict[int, int], np.ndarray]]:
        """Yield each block, the events of all copies in it, its releases, and their noise.

        Parameters
        ----------
        noise : ndarray, shape (copies, releases, p)
            In the order of the events.

        Yields
        ------
        block : slice
        chunk : ndarray of EVENT
        releases : mapping from int to int
            Number of each release, by the place of the event that makes it.
        noise : ndarray, shape (copies * releases, p)
        """
        places = releases_of(self._events).places
        numbers: dict[int, np.ndarray] = {}
        for block in self._blocks:
            out = np.zeros(int(self._first[block.stop] - self._first[block.start]), EVENT)
            for at in range(block.start, block.stop):
                event = self._events[at]
                seqs = numbers[int(event["seq"])] = self.seqs(at, block)
                rows = seqs - self._first[block.start]
                out[rows] = event
                out["seq"][rows] = seqs
                cause = numbers.get(int(event["cause"]))
                if cause is not None:
                    # What is common to all has one of the causes: a query to a single owner is one to each copy's.
                    out["cause"][rows] = cause[: rows.size]
                shift = self._agents * np.arange(rows.size)
                for name in ("agent", "peer"):
                    if event[name] >= 0:
                        out[name][rows] = event[name] + shift
            made = slice(*np.searchsorted(places, [block.start, block.stop]))
            releases = dict(zip(places[made].tolist(), range(made.start, made.stop), strict=True))
            drawn = np.ascontiguousarray(noise[:, made]).reshape(-1, noise.shape[-1])
            yield block, out, releases, drawn
