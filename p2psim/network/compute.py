"""Time to compute: how long agents work on an update, and what becomes of the work of those who leave.

The model is read when the work begins, which is an event of its own (`p2psim.core.events.BEGIN`).
"""

from collections.abc import Iterator, Sequence
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from p2psim.core.distributions import Distribution, Quantity, least, mean
from p2psim.core.errors import MeaningError
from p2psim.core.options import NonNegative, OneOf
from p2psim.network.availability import AnyAvailability
from p2psim.network.exchanges import Exchange
from p2psim.network.members import Members, Slowdown, SlowdownTable


class Compute(OneOf):
    """Time that agents take to compute an update; the model is read when the work begins.

    The time of an agent is its slowdown × a draw of ``time``, or its slowdown × ``seconds_per_record`` × the records
    that an update takes: those of a batch × local steps. An agent does one thing at a time.

    Choices
    -------
    absence: interrupt
        the work of an agent that leaves pauses, and goes on when it returns
    absence: cancel
        the work of an agent that leaves is dropped
    """

    time: Quantity | None = Field(
        None, description="time of an update: a constant, or a distribution that is drawn anew for each"
    )
    seconds_per_record: NonNegative | None = Field(
        None, description="in place of time: time per record that an update takes, in the unit of all times"
    )
    slowdown: Slowdown = Field(
        1.0,
        description="what the time of an agent is multiplied by; {path: FILE} takes it from a CSV file with columns "
        "agent, slowdown",
    )
    absence: Literal["interrupt", "cancel"] = Field(
        "interrupt", description="what becomes of the work of an agent that leaves"
    )

    alternatives: ClassVar[tuple[str, ...]] = ("time", "seconds_per_record")

    @property
    def quantity(self) -> float | Distribution:
        """What is drawn for each update."""
        quantity = self.time if self.time is not None else self.seconds_per_record
        assert quantity is not None
        return quantity

    def check_names(self, labels: Sequence[str]) -> None:
        """Raise a MeaningError if a table names an agent that there is not, or leaves one out."""
        if isinstance(self.slowdown, SlowdownTable):
            self.slowdown.values(labels)

    def factors(self, members: Members, work: np.ndarray | None) -> np.ndarray:
        """What an agent's draws are multiplied by, shape (n,).

        Parameters
        ----------
        members : Members
        work : ndarray, shape (n,), optional
            Records that an update of each agent takes.

        Raises
        ------
        MeaningError
            If a slowdown is not finite, an agent has none or two, or the records are needed and not known.
        """
        key = SlowdownTable.key
        factors = members.values(self.slowdown, key)
        if not np.isfinite(factors).all():
            raise MeaningError(key, f"must be positive finite numbers, got {factors.max()}")
        if self.seconds_per_record is None:
            return factors
        if work is None:
            raise MeaningError(
                "network.compute.seconds_per_record",
                "needs the number of records that an update takes: give Network its work, or give time",
            )
        if work.shape != factors.shape or not (np.isfinite(work) & (work >= 0)).all():
            raise MeaningError(
                "network.compute.seconds_per_record",
                f"work must be {factors.size} finite numbers of 0 or more, got {work}",
            )
        return factors * work

    def means(self, members: Members, work: np.ndarray | None) -> np.ndarray:
        """Mean time of an update of each agent, shape (n,); raises as `factors` does."""
        return mean(self.quantity) * self.factors(members, work)

    def least(self, members: Members, work: np.ndarray | None) -> np.ndarray:
        """Lower end of the times of each agent, shape (n,); raises as `factors` does."""
        return least(self.quantity) * self.factors(members, work)


def contradictions(
    compute: Compute, exchange: Exchange, availability: AnyAvailability
) -> Iterator[tuple[str, str]]:
    """What of a network contradicts its time to compute: keys of the scenario, and messages."""
    if not exchange.computes:
        message = (
            f"{exchange.kind} has nothing computed, as far as it says: an exchange of your own sets computes"
        )
        yield "network.exchange", message
    if exchange.answer_delay != 0:
        key = exchange.delay_key
        yield f"network.exchange.{key}", f"network.compute takes the place of {key}: leave one of them out"
    if compute.absence == "interrupt" and availability.rejoin != "stale":
        yield (
            "network.availability.rejoin",
            f"{availability.rejoin} takes another model, while the work that an absence interrupts goes on with "
            "the one that was read: take stale, or network.compute.absence: cancel",
        )
