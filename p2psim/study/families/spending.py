"""Records how much privacy has been spent, so that runs can be compared at the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from p2psim.privacy.accounting.noises import Noise, PureNoise, is_pure
from p2psim.privacy.ledger import Claims, claimed_charges
from p2psim.privacy.plan import Plan
from p2psim.privacy.releases import Book, by_agent, joined
from p2psim.privacy.shares import Releases, Totals
from p2psim.study.compared import Compared
from p2psim.study.families.marks import Marks, places_of
from p2psim.study.outcome import Series
from p2psim.study.record import SPENDING, RecordSection


class Spending:
    """Series of the privacy spent in progress; idle where it is not recorded.

    Parameters
    ----------
    record : RecordSection
    plan : Plan
    totals : Totals or None
        From `Plan.totals`.
    """

    def __init__(self, record: RecordSection, plan: Plan, totals: Totals | None):
        self._on = not SPENDING.keys().isdisjoint(record.metrics)
        self._marks = Marks(record.every)
        self._plan, self._totals = plan, totals
        # The mean over agents of what their own releases cost; of a record that several hold it is a maximum.
        alone = plan.limit.holders == 1
        self._adds_up = alone and (not plan.mechanism.is_private or is_pure(plan.mechanism.noise))
        self._parts: list[Releases] = []
        self._rows: list[tuple[int, float, float]] = []
        self._spent = mean_spent(plan, joined([]), totals) if self._on else 0.0

    def feed(self, events: np.ndarray, releases: Releases) -> None:
        """Read the next chunk of the stream, and the releases in it."""
        if not self._on or not events.size:
            return
        marks = list(self._marks.places(events))
        counts = np.searchsorted(releases.places, [stop for stop, _, _ in marks]).tolist()
        if self._adds_up:
            costs = _costs(self._plan, releases, self._totals) / self._plan.budget.size
            spent = [self._spent, *(self._spent + np.cumsum(costs)).tolist()]
            values = [spent[count] for count in counts]
            self._spent = spent[-1]
        else:
            values = [self._after(_first(releases, count)) for count in counts]
            self._parts.append(releases)
        self._rows += [(step, time, value) for (_, step, time), value in zip(marks, values, strict=True)]

    def finish(self) -> tuple[Series, ...]:
        """Record the last moment, and return the series."""
        if not self._on:
            return ()
        if not self._rows or not self._marks.is_last(self._rows[-1][:2]):
            last = self._spent if self._adds_up else self._after(joined([]))
            self._rows.append((self._marks.step, self._marks.time, last))
        steps, times, values = zip(*self._rows, strict=True)
        (name,) = SPENDING
        return (Series(name, "main", None, np.array(steps), np.array(times), np.array(values)),)

    def _after(self, more: Releases) -> float:
        """What is spent after the parts before, and some more."""
        return mean_spent(self._plan, joined([*self._parts, more]), self._totals)


def mean_spent(plan: Plan, releases: Releases, totals: Totals | None) -> float:
    """What is spent after these releases, from the first on."""
    pure = plan.mechanism.is_private and is_pure(plan.mechanism.noise)
    accountant = "basic" if pure else plan.limit.enforce
    return float(plan.epsilon(accountant, claimed_charges(plan, Claims.of(plan, releases, totals))).mean())


def _costs(plan: Plan, releases: Releases, totals: Totals | None) -> np.ndarray:
    """ε of each release, in the order of the events; infinite without noise."""
    if not plan.mechanism.is_private:
        return np.full(releases.agents.size, np.inf)
    order = by_agent(releases)
    charges = plan.charges(releases.agents[order], plan.claimed(releases, totals)[order])
    costs = np.empty(order.size)
    costs[order] = charges.each(_pure)
    return costs


def _pure(noise: Noise, losses: np.ndarray) -> np.ndarray:
    assert isinstance(noise, PureNoise)
    return noise.pure(losses)


def _first(releases: Releases, count: int) -> Releases:
    return Releases(releases.agents[:count], releases.numbers[:count], releases.steps[:count])


def compare_spending(
    plan: Plan, record: RecordSection, events: np.ndarray, series: Sequence[Series]
) -> Iterator[Compared]:
    """Set recorded spending beside what accountants say of all releases until each record."""
    if not series:
        return
    releases, _ = Book.empty(plan.budget.size).read(events)
    totals = plan.totals([releases])
    for one in series:
        counts = np.searchsorted(releases.places, places_of(record.every, events, one.step, one.time))
        again = np.array([mean_spent(plan, _first(releases, count), totals) for count in counts.tolist()])
        finite = again[np.isfinite(again)]
        yield Compared(one.value, again, max(1.0, finite.max(initial=0.0)))
