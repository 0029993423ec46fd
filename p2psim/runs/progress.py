"""How far a study is: a bar for people, lines of JSON for machines, both on standard error."""

import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

#: Seconds between two lines of JSON at least.
LINE_SECONDS = 0.5


@dataclass
class ProgressCount:
    """What has been done so far. Times are of a clock that no one can set back.

    Attributes
    ----------
    total : int
        Simulations to be done, as far as is known.
    done, failed : int
    workers : Counter
        Simulations that each worker has done; by process, and computer where that is another one.
    show : callable
        Called after each count.
    """

    total: int
    done: int = 0
    failed: int = 0
    workers: Counter[str] = field(default_factory=Counter)
    show: Callable[[], object] = lambda: None
    _begun: float = field(default_factory=lambda: time.monotonic())
    _first: tuple[float, int] | None = None

    def add(self, done: int, failed: int, worker: str, total: int) -> None:
        """Count what a worker has just done."""
        self.total = total
        self.done += done
        self.failed += failed
        self.workers[worker] += done
        if self._first is None:
            self._first = time.monotonic(), self.done
        self.show()

    def rate(self) -> float:
        """Simulations a second since the first ones, which may have had to compile, or of all."""
        now = time.monotonic()
        if self._first is not None and self.done > self._first[1] and now > self._first[0]:
            return (self.done - self._first[1]) / (now - self._first[0])
        return self.done / max(now - self._begun, 1e-9)

    def as_tree(self) -> dict[str, Any]:
        """Everything as plain values; `left` in seconds, null before anything is done."""
        rate = self.rate()
        return {
            "done": self.done,
            "total": self.total,
            "failed": self.failed,
            "seconds": round(time.monotonic() - self._begun, 3),
            "rate": round(rate, 3),
            "left": round((self.total - self.done) / rate, 3) if rate else None,
            "workers": dict(sorted(self.workers.items())),
        }


#: Takes simulations just done, how many of them failed, by which worker, and the total as it is now known.
Advance = Callable[[int, int, str, int], None]


@contextmanager
def shown(total: int, way: str) -> Iterator[Advance]:
    """Show progress while the block runs.

    Parameters
    ----------
    total : int
        Number of simulations.
    way : str
        ``bar``, which is shown on a terminal only; ``json``; or ``none``.

    Yields
    ------
    callable
        See `Advance`.
    """
    count = ProgressCount(total)
    if not total or way == "none" or (way == "bar" and not sys.stderr.isatty()):
        yield count.add
    else:
        with (_lines if way == "json" else _bar)(count) as count.show:
            yield count.add


@contextmanager
def _lines(count: ProgressCount) -> Iterator[Callable[[], None]]:
    """Lines of JSON: one at the start, one at the end, however it ends, and not too many between."""
    last = -LINE_SECONDS

    def write() -> None:
        print(json.dumps(count.as_tree()), file=sys.stderr, flush=True)

    def show() -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= LINE_SECONDS:
            write()
            last = now

    write()
    try:
        yield show
    finally:
        write()


@contextmanager
def _bar(count: ProgressCount) -> Iterator[Callable[[], None]]:
    from rich import progress
    from rich.console import Console

    columns = (
        "simulations",
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(),
        "left",
        progress.TimeRemainingColumn(),
        progress.TextColumn("{task.fields[words]}"),
    )
    with progress.Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=count.total, words="")

        def show() -> None:
            words = [f"{count.rate():.3g}/s"]
            if len(count.workers) > 1:
                words.append(f"{len(count.workers)} workers")
            if count.failed:
                words.append(f"{count.failed} failed")
            bar.update(task, completed=count.done, total=count.total, words=", ".join(words))

        yield show


def time_range(least: float, most: float) -> str:
    """From one length of time to another, with the unit said once where it is the same."""
    low, high = time_in_words(least), time_in_words(most)
    if low == high:
        return low
    number, unit = low.split(" ")
    return f"{number if high.endswith(f' {unit}') else low} to {high}"


def time_in_words(seconds: float) -> str:
    """A length of time as a person says it."""
    for unit, size in (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:.2g} {unit}" if seconds < 100 * size else f"{seconds / size:,.0f} {unit}"
    return f"{seconds:.2g} seconds" if seconds < 100 else f"{seconds:.0f} seconds"
