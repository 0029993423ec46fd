"""How long a study will take, and how much memory: from a second of it.

The smallest cell warms up, which also tells whether whole simulations fit into the time that is left. If they do, the
study's own simulations follow in its own order, so that what its cells share is shared here too. If not, the pace of
that one simulation has to do. Either way seconds are taken to grow as events do: a guess within a factor of about two.
"""

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from p2psim.study.invocations import peak_memory
from p2psim.study.replicas import fewest, most

if TYPE_CHECKING:
    from p2psim.study.cells import Cell
    from p2psim.study.families.stage import Assessment
    from p2psim.study.scenario import Scenario
    from p2psim.study.workspace import Workspace

#: Seconds that a pilot takes, beside the one chunk of events or simulation in which they end.
SECONDS = 1.0
#: Seconds until a pool of processes works.
_START = 1.0


@dataclass(frozen=True)
class Pilot:
    """What a pilot found.

    Attributes
    ----------
    simulations : int
        That came to their end.
    events : int
        Played in all, those of the warming up not counted where others followed.
    events_per_second : float
        Of one process, with recording and everything else.
    least_seconds, most_seconds : float
        Of the whole study, with `jobs` processes; they differ where the number of replicas is not given.
    jobs : int
    memory : int
        Bytes of one process, libraries included.
    """

    simulations: int
    events: int
    events_per_second: float
    least_seconds: float
    most_seconds: float
    jobs: int
    memory: int

    def as_tree(self) -> dict[str, Any]:
        """Everything as plain values."""
        return asdict(self)


def fly(
    scenario: "Scenario",
    grid: "Sequence[Cell]",
    facts: "Sequence[Assessment]",
    workspace: "Workspace",
    jobs: int,
    seconds: float = SECONDS,
) -> Pilot:
    """Simulate for about a second, and extrapolate.

    Parameters
    ----------
    scenario : Scenario
    grid, facts : sequence of Cell and of Assessment
        Of all cells.
    workspace : Workspace
        With the data prepared.
    jobs : int
        Processes that the study shall have.
    seconds : float
        Time that may be taken.

    Returns
    -------
    Pilot
    """
    from p2psim.study.batches import BatchOptions, run_batch
    from p2psim.study.simulate import sample

    began = time.perf_counter()
    until = began + seconds
    smallest = min(range(len(grid)), key=lambda i: facts[i].events)
    played, ended = sample(grid[smallest].scenario, 0, workspace, began + seconds / 2)
    spent, done = time.perf_counter() - began, int(ended)
    pace = played / max(spent, 1e-9)
    share = min(1.0, played / max(facts[smallest].events, 1))
    counted, taken = 0, 0.0
    order = ((replica, cell) for replica in range(fewest(scenario.replicas)) for cell in grid)
    for replica, cell in order if ended else ():
        if time.perf_counter() + facts[cell.index].events / pace > until:
            break
        result = run_batch(grid, [(cell.index, replica)], workspace, BatchOptions())
        if result.stopped is not None:
            raise result.stopped
        done += 1
        counted += facts[cell.index].events
        taken += result.seconds
    if taken:
        played, pace = counted, counted / taken
    each = sum(fact.events for fact in facts)
    alone = [count(scenario.replicas) * each / pace for count in (fewest, most)]
    together = [min(one, one / jobs + _START) for one in alone]
    kept = (1 - share) * facts[smallest].bytes_of_events if scenario.record.events else 0
    return Pilot(done, played, pace, together[0], together[1], jobs, peak_memory() + int(kept))


def told_seconds(seconds: float) -> str:
    """A length of time as a person says it."""
    for unit, size in (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:.2g} {unit}" if seconds < 100 * size else f"{seconds / size:,.0f} {unit}"
    return f"{seconds:.2g} seconds" if seconds < 100 else f"{seconds:.0f} seconds"
