"""A progress bar on standard error, with the time left; silent when that is not a terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(total: int, wanted: bool, what: str = "simulations") -> Iterator[Callable[[int], None]]:
    """Show progress while the block runs.

    Parameters
    ----------
    total : int
        Number of steps.
    wanted : bool
        False for none at all.
    what : str
        What a step is.

    Yields
    ------
    callable
        To be called with the number of steps just done.
    """
    if not (wanted and total and sys.stderr.isatty()):
        yield lambda steps: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(what, total=total)
        yield lambda steps: bar.advance(task, steps)


def say(message: str, wanted: bool = True) -> None:
    """Write one line for a person to standard error."""
    if wanted:
        print(message, file=sys.stderr, flush=True)
