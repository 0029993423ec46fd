"""What each run on a folder was asked for, and what it took: the provenance of its results.

Names and units of `Resources` are those of the provenance schema of tskit, which msprime uses
(https://tskit.dev/tskit/docs/stable/provenance.html).
"""

import operator
import os
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from p2psim.core import __version__
from p2psim.runs.system import cpu_seconds, peak_memory

#: How an invocation ended whose process was ended before it could say anything.
KILLED = "killed"
_RUNNING = "running"


@dataclass(frozen=True)
class Resources:
    """What processes used.

    Attributes
    ----------
    elapsed_time : float
        Wall time in seconds.
    user_time, sys_time : float
        CPU seconds in the program, and in the system for it.
    max_memory : int
        Largest resident memory of a process since its start, in bytes.
    """

    elapsed_time: float
    user_time: float
    sys_time: float
    max_memory: int

    def __add__(self, other: "Resources") -> "Resources":
        """Times add up; of memory the larger counts."""
        return Resources(
            self.elapsed_time + other.elapsed_time,
            self.user_time + other.user_time,
            self.sys_time + other.sys_time,
            max(self.max_memory, other.max_memory),
        )


#: What nobody uses.
NOTHING = Resources(0.0, 0.0, 0.0, 0)


class Meter:
    """Measures what this process uses from now on. The clock is one that nobody can set back."""

    def __init__(self) -> None:
        self._begun = self._now()

    @staticmethod
    def _now() -> tuple[float, ...]:
        return time.monotonic(), *cpu_seconds()

    def read(self) -> Resources:
        """What was used since the beginning."""
        elapsed, user, system = map(operator.sub, self._now(), self._begun)
        return Resources(elapsed, user, system, peak_memory())


@dataclass(frozen=True)
class Invocation:
    """One run on a folder.

    Attributes
    ----------
    began : str
        When, in UTC: ``2026-01-31T12:00:00Z``.
    arguments : tuple of str or None
        Of the command line; None when it was called from Python.
    p2psim : str
        Version.
    executor : str
        Who did the work.
    jobs : int or None
        Number of processes asked for; None where the program was to decide.
    ended : str
        ``running``, ``finished``, ``failed``, ``interrupted``, or ``killed``, which only a later invocation can tell.
    simulations : int
        How many it tried.
    resources : Resources
        Of the process that was called; zero before the end.
    workers : int
        Number of other processes that gave results.
    of_workers : Resources
        Of their batches: times are sums, memory is of the largest.
    """

    began: str
    arguments: tuple[str, ...] | None
    p2psim: str
    executor: str
    jobs: int | None
    ended: str = _RUNNING
    simulations: int = 0
    resources: Resources = NOTHING
    workers: int = 0
    of_workers: Resources = NOTHING


class InvocationRecorder:
    """The invocation that goes on: counts what its workers use.

    Parameters
    ----------
    arguments, executor, jobs
        As in `Invocation`.
    """

    def __init__(self, arguments: tuple[str, ...] | None, executor: str, jobs: int | None) -> None:
        self._meter = Meter()
        self._workers: set[str] = set()
        began = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        self._counted = Invocation(began, arguments, __version__, executor, jobs)

    def take_in(self, worker: str, simulations: int, used: Resources | None) -> None:
        """Count a batch: of a worker, or of this process, which measures itself."""
        so_far = self._counted
        self._counted = replace(so_far, simulations=so_far.simulations + simulations)
        if used is not None and worker != str(os.getpid()):
            self._workers.add(worker)
            total = so_far.of_workers + used
            self._counted = replace(self._counted, workers=len(self._workers), of_workers=total)

    def so_far(self, ended: str = _RUNNING) -> Invocation:
        """The invocation as it stands, or as it ended."""
        return replace(self._counted, ended=ended, resources=self._meter.read())


def earlier(invocations: Iterable[Invocation]) -> tuple[Invocation, ...]:
    """Invocations of a folder that nobody is writing into: one that seems to go on was killed."""
    return tuple(replace(call, ended=KILLED) if call.ended == _RUNNING else call for call in invocations)


def to_tree(invocation: Invocation) -> dict[str, Any]:
    """As it stands in the manifest."""
    tree = asdict(invocation)
    for name in ("resources", "of_workers"):
        # Memory is a whole number, which stays as it is.
        tree[name] = {key: round(value, 3) for key, value in tree[name].items()}
    return tree


def from_tree(tree: dict[str, Any]) -> Invocation:
    """The inverse of `to_tree`, but for the rounding of times."""
    arguments = None if tree["arguments"] is None else tuple(tree["arguments"])
    used = {name: Resources(**tree[name]) for name in ("resources", "of_workers")}
    return Invocation(**tree | {"arguments": arguments} | used)
