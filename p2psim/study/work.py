"""What of a study is still to be done: a fixed number of replicas, or more of them until each cell has enough."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from p2psim.study.batches import BatchResult, Item
from p2psim.study.finals import values_of_content, values_of_part
from p2psim.study.replicas import Sequential
from p2psim.study.stopping import Verdict, judge, share_of

if TYPE_CHECKING:
    from p2psim.study.cells import Cell
    from p2psim.study.scenario import Scenario
    from p2psim.study.store import Content


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
        self._grid = grid
        self.planned = 0
        self._done = set(content.sources()) if content is not None else set()
        rule = scenario.replicas
        self._rule = rule if isinstance(rule, Sequential) and only is None else None
        self.verdicts: dict[str, Verdict] = {}
        self._values: dict[str, dict[int, float]] = {}
        self._failed: dict[str, set[int]] = {}
        if self._rule is not None:
            until = self._rule.until
            held = values_of_content(content, until.metric, until.model) if content is not None else {}
            for cell, replica in self._done:
                self._values.setdefault(cell, {})[replica] = held.get((cell, replica), math.nan)
            self.items = self.more()
        else:
            replicas = range(rule) if isinstance(rule, int) else range(0)
            wanted = [only] if only is not None else [(cell.index, r) for r in replicas for cell in grid]
            self.items = [item for item in wanted if (grid[item[0]].content, item[1]) not in self._done]
            self.planned = len(self.items)

    @property
    def is_sequential(self) -> bool:
        """Whether results decide what comes next."""
        return self._rule is not None

    def more(self) -> list[Item]:
        """The next round: replica by replica, the cells of one together, to share its events."""
        assert self._rule is not None
        wanted = []
        for cell in self._grid:
            verdict = self.verdicts.get(cell.content)
            if verdict is None or not verdict.why:
                values, failed = self._values.get(cell.content, {}), self._failed.get(cell.content, set())
                verdict = self.verdicts[cell.content] = judge(self._rule, values, failed)
            if not verdict.why:
                missing = set(range(verdict.replicas)) - values.keys() - failed
                wanted += [(replica, cell.index) for replica in missing]
        self.planned += len(wanted)
        return [(index, replica) for replica, index in sorted(wanted)]

    def take_in(self, result: BatchResult) -> None:
        """Learn what a batch gave."""
        if self._rule is None:
            return
        if result.part is not None:
            until = self._rule.until
            held = values_of_part(result.part, until.metric, until.model)
            for cell, replica in result.part.runs:
                self._values.setdefault(cell, {})[replica] = held.get((cell, replica), math.nan)
        for cell, replica in result.failed:
            self._failed.setdefault(cell, set()).add(replica)

    def stopped(self) -> dict[str, dict[str, Any]]:
        """Why each cell stopped, for the manifest; nothing where the number of replicas was given."""
        if self._rule is None:
            return {}
        error = 1 - self._rule.until.confidence
        told = {}
        for content, verdict in self.verdicts.items():
            told[content] = {"why": verdict.why, "replicas": verdict.replicas, "look": verdict.look}
            if verdict.interval is not None and verdict.interval.known:
                told[content] |= {
                    "estimate": verdict.interval.estimate,
                    "low": verdict.interval.low,
                    "high": verdict.interval.high,
                    "confidence": 1 - share_of(verdict.look, error),
                }
        return told
