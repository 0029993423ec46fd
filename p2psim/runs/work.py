"""What of a study is still to be done: a fixed number of replicas, or more until each interval is narrow enough.

Checking an interval repeatedly, and stopping when it is narrow, raises the error rate. So check k uses an interval of
confidence 1 − α_k with α_k = α/(k(k + 1)); these sum to at most α. The interval at which a cell stops misses the truth
with probability at most α, whatever made it stop (Boole's inequality; spending of α in the sense of Lan and DeMets,
Biometrika 70, 1983). The first check spends half of α: cells of little variance stop at the price of an interval of
confidence 1 − α/2. The sum has no last term, so `most` may be raised later at no cost. A decision depends on the values
of the replicas alone, so it is the same for any number of workers and after any interruption.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from p2psim.core.intervals import Interval, mean_interval
from p2psim.runs.batches import BatchResult, Item
from p2psim.runs.compaction import values_of_content, values_of_part
from p2psim.runs.parts import RunKey, StoredPart
from p2psim.runs.store import Content
from p2psim.scenario.model import Cell, Scenario
from p2psim.scenario.record import Sequential, Until, most


class Work:
    """The simulations that are missing, in rounds of which each needs the results of those before.

    Parameters
    ----------
    scenario : Scenario
    grid : sequence of Cell
    content : Content or None
        What the run folder holds.
    only : (cell, replica), optional
        The one simulation that is wanted.

    Attributes
    ----------
    grid : sequence of Cell
    rule : Sequential or None
        By which results decide what comes next; None where the number of replicas is given.
    items : list of (position, replica)
        The first round.
    planned : int
        Simulations of all rounds so far.
    verdicts : dict of str to Verdict
        Of each cell, by content, where replicas are added until there are enough.
    """

    def __init__(
        self, scenario: Scenario, grid: Sequence[Cell], content: Content | None, only: Item | None = None
    ):
        self.grid = grid
        self.planned = 0
        self.verdicts: dict[str, Verdict] = {}
        self._values = defaultdict[str, dict[int, float]](dict)
        self._failed = defaultdict[str, set[int]](set)
        rule = scenario.replicas
        self.rule = rule if isinstance(rule, Sequential) and only is None else None
        if self.rule is not None:
            if content is not None:
                self._take_in_values(values_of_content(content, self.rule.until))
            self.items = self.more()
        else:
            every = ((cell.index, replica) for replica in range(most(rule)) for cell in grid)
            wanted = every if only is None else iter([only])
            done = content.sources() if content is not None else {}
            self.items = [item for item in wanted if (grid[item[0]].content, item[1]) not in done]
            self.planned = len(self.items)

    def more(self) -> list[Item]:
        """The next round: replica by replica, the cells of one together, to share its events."""
        if self.rule is None:
            return []
        wanted = []
        for cell in self.grid:
            verdict = self.verdicts.get(cell.content)
            if verdict is None or not verdict.why:
                values, failed = self._values[cell.content], self._failed[cell.content]
                verdict = self.verdicts[cell.content] = judge(self.rule, values, failed)
            if not verdict.why:
                missing = set(range(verdict.replicas)) - values.keys() - failed
                wanted += [(replica, cell.index) for replica in missing]
        self.planned += len(wanted)
        return [(index, replica) for replica, index in sorted(wanted)]

    def take_in(self, result: BatchResult, part: StoredPart | None) -> None:
        """Learn what a batch gave, and where that is kept."""
        if self.rule is not None and part is not None:
            self._take_in_values(values_of_part(part, self.rule.until))
        for cell, replica in result.failed:
            self._failed[cell].add(replica)

    def _take_in_values(self, values: Mapping[RunKey, float]) -> None:
        for (cell, replica), value in values.items():
            self._values[cell][replica] = value

    def stopped(self) -> dict[str, dict[str, Any]]:
        """Why each cell stopped, for the manifest; nothing where the number of replicas was given."""
        if self.rule is None:
            return {}
        error = 1 - self.rule.until.confidence
        reasons = {}
        for content, verdict in self.verdicts.items():
            reasons[content] = {"why": verdict.why, "replicas": verdict.replicas, "look": verdict.look}
            if verdict.interval is not None and verdict.interval.known:
                confidence = 1 - share_of(verdict.look, error)
                reasons[content] |= asdict(verdict.interval) | {"confidence": confidence}
        return reasons


#: Each look is at so many times the replicas of the one before.
GROWTH = 1.5


def looks(least: int, most: int) -> Iterator[int]:
    """Numbers of replicas at which a cell is looked at: least, then half as many again each time, up to most."""
    number = min(least, most)
    while number < most:
        yield number
        number = math.ceil(GROWTH * number)
    yield most


def share_of(look: int, error: float) -> float:
    """Chance of error that a look, counted from 1, may spend of all that there is."""
    return error / (look * (look + 1))


@lru_cache(maxsize=4096)
def _rank(size: int, error: float) -> int:
    """Largest k for which the k-th smallest and k-th largest of `size` values miss the median with at most `error`."""
    # `scipy.stats` has the same, and takes a second to load.
    from scipy.special import bdtr

    # They miss it if fewer than k values lie on one side: 2·P(Bin(n, 1/2) ≤ k − 1).
    rank, above = 0, size // 2 + 1
    while above - rank > 1:
        middle = (rank + above) // 2
        if 2 * bdtr(middle - 1, size, 0.5) > error:
            above = middle
        else:
            rank = middle
    return rank


def order_interval(values: np.ndarray, confidence: float) -> Interval:
    """Median of independent values with an interval between two order statistics.

    Right for every law, with no assumption (David and Nagaraja, Order Statistics, 2003, section 7.1).

    Parameters
    ----------
    values : ndarray, shape (n,)
        Not NaN; may be infinite.
    confidence : float
        In (0, 1).

    Returns
    -------
    Interval
        Without ends where n is too small for the confidence.
    """
    ordered = np.sort(values)
    middle = float(ordered[(values.size - 1) // 2 : values.size // 2 + 1].mean())
    rank = _rank(values.size, 1 - confidence)
    if rank == 0:
        return Interval(middle, math.nan, math.nan)
    return Interval(middle, float(ordered[rank - 1]), float(ordered[-rank]))


def interval_of(until: Until, values: np.ndarray, look: int) -> Interval:
    """Interval of a look, counted from 1; without ends where values are not finite, or too few."""
    confidence = 1 - share_of(look, 1 - until.confidence)
    if np.isnan(values).any() or (until.statistic == "mean" and not np.isfinite(values).all()):
        return Interval(math.nan, math.nan, math.nan)
    return (mean_interval if until.statistic == "mean" else order_interval)(values, confidence)


@dataclass(frozen=True)
class Verdict:
    """What is known of one cell.

    Attributes
    ----------
    replicas : int
        That the cell shall have.
    why : str
        ``reached`` the width, ``most`` replicas, ``failed`` in every replica so far; empty while it goes on.
    look : int
        The look, counted from 1, at which this was decided; that which comes next while the cell goes on.
    interval : Interval or None
        Of that look.
    """

    replicas: int
    why: str = ""
    look: int = 1
    interval: Interval | None = None


def judge(rule: Sequential, values: Mapping[int, float], failed: Set[int] = frozenset()) -> Verdict:
    """Look at one cell as often as its replicas allow.

    Parameters
    ----------
    rule : Sequential
    values : mapping from replica to number
        More replicas than a look is at do not count in it.
    failed : set of int
        Replicas without a value. They are left out, so that the interval is of those that end.

    Returns
    -------
    Verdict
        The first look at which the cell stops, or the first for which replicas are missing.
    """
    schedule = list(looks(rule.least, rule.most))
    for look, number in enumerate(schedule, 1):
        if any(replica not in values and replica not in failed for replica in range(number)):
            return Verdict(number, "", look)
        known = np.array([values[replica] for replica in range(number) if replica in values])
        if not known.size:
            return Verdict(number, "failed", look)
        interval = interval_of(rule.until, known, look)
        scale = abs(interval.estimate) if rule.until.relative else 1.0
        if interval.known and interval.high - interval.low <= rule.until.width * scale:
            return Verdict(number, "reached", look, interval)
    return Verdict(rule.most, "most", len(schedule), interval)
