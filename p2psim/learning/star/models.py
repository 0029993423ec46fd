"""The base class of replays with a central learner, which take chunks of events and return the learner's models."""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

from p2psim.core.compiled import njit
from p2psim.learning.batches import Sampling
from p2psim.learning.in_flight import DONE, InFlight
from p2psim.learning.owner_kernel import OwnerRecords, Records
from p2psim.learning.star.problem import StarProblem
from p2psim.privacy.releases import Violations


class Keep(NamedTuple):
    """Where to keep the learner's model in a chunk of events, rows to keep them in, and how many are kept."""

    stops: np.ndarray
    models: np.ndarray
    kept: np.ndarray


@njit(inline="always")
def keep_model(at, models, row, keep):  # type: ignore[no-untyped-def]
    """Keep a row of ``models`` as often as it is to be kept before event ``at``."""
    while keep.kept[0] < keep.stops.size and keep.stops[keep.kept[0]] <= at:
        keep.models[keep.kept[0]] = models[row]
        keep.kept[0] += 1


_NOWHERE = np.empty(0, np.int64)


class LearnerReplay(ABC):
    """One replica with a central learner, fed with chunks of events.

    Parameters
    ----------
    problem : StarProblem
    method : StarMethod or RoundMethod
    rule : OwnerRule
    sampling : Sampling, optional
        How the records of each release are drawn; all take part when left out.
    start : ndarray, shape (p,), optional
        First model of the learner and of all owners; zero, as in the papers, when left out.

    Attributes
    ----------
    violations : Violations
        Releases at which a record of each owner, in the batch or not, exceeded the claimed bound.
    """

    #: What a commit is called where a model is not finite.
    step_name = "commit"

    #: Numbers in an answer, by p: it begins with the noisy gradient.
    vectors = 1

    def __init__(
        self,
        problem: StarProblem,
        method: Any,
        rule: Any,
        sampling: Sampling | None = None,
        start: np.ndarray | None = None,
    ):
        self._problem, self._grid = problem, rule.grid
        self._mail = InFlight.of(self.vectors * problem.dimension)
        self._commits, self._counts = np.zeros(1, np.int64), np.zeros(problem.owners, np.int64)
        sums = problem.gram, problem.moment
        self._held = OwnerRecords(
            Records.of(problem, rule), rule.how, *sums, rule.suspects, rule.suspect_offsets
        )
        self._batch = None if sampling is None else sampling.for_kernel(problem.records)
        self.violations = Violations.none(problem.owners)
        self._begin(method, np.zeros(problem.dimension) if start is None else start)

    @abstractmethod
    def _begin(self, method: Any, start: np.ndarray) -> None:
        """Set up what the kernel keeps between chunks."""

    def feed(self, events: np.ndarray, noise: np.ndarray, stops: np.ndarray = _NOWHERE) -> np.ndarray:
        """Replay the next chunk.

        Parameters
        ----------
        events : ndarray of EVENT
        noise : ndarray, shape (releases in these events, p)
            Noise to add to the mean gradients, in the order of the events.
        stops : ndarray of int64, shape (s,), optional
            After how many of the events to keep the learner's model, in order.

        Returns
        -------
        ndarray, shape (s, p)
            The models kept.
        """
        keep = Keep(stops, np.empty((stops.size, self._problem.dimension)), np.zeros(1, np.int64))
        start, noise_row = 0, np.zeros(1, np.int64)
        while start < events.size:
            status, start = self._replay(events, start, noise, noise_row, keep)
            if status != DONE:
                self._make_room(status)
        return keep.models

    @property
    @abstractmethod
    def model(self) -> np.ndarray:
        """The learner's model now, shape (p,)."""

    def answers(self, seqs: np.ndarray) -> np.ndarray:
        """Noisy gradients of answers on their way, shape (k, p), by the seq of their sends, shape (k,).

        Raises
        ------
        KeyError
            If one of them is not on its way.
        """
        return self._mail.payloads_of(seqs)[:, : self._problem.dimension]

    @abstractmethod
    def _replay(
        self, events: np.ndarray, start: int, noise: np.ndarray, noise_row: np.ndarray, keep: Keep
    ) -> tuple[int, int]:
        """Status, and next event."""

    def _make_room(self, status: int) -> None:
        """Double what the kernel found to be full."""
        self._mail = self._mail.with_room(status)
