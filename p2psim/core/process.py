"""A process: how it is ended from outside, while it starts too, and how many threads libraries have in it."""

import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import lru_cache
from typing import Any

#: How a process is asked to end: by a service manager, or since its terminal has gone (not on Windows).
ENDINGS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
#: What Python does with a signal by itself.
_PYTHONS = (signal.SIG_DFL, signal.default_int_handler)


def say_interrupted() -> None:
    """Write that the command was interrupted, whatever has become of the streams."""
    with suppress(OSError):
        os.write(2, b"p2psim: interrupted\n")


@contextmanager
def ignore_interrupts_afterwards(is_last: bool) -> Iterator[None]:
    """After the block, ignore Ctrl-C, if it is the last that the process does.

    The exit code is settled then, and Python gives the signal its deadly default before it has tidied everything up.
    Nor may Python go by what it has noted: of an interrupt in code that a library gave it as text, as for a data class,
    it takes a note that nobody had caught it, and has the process die of the signal at its end.
    """
    try:
        yield
    finally:
        if is_last:
            with suppress(ValueError):  # not the main thread, which alone is interrupted
                signal.signal(signal.SIGINT, signal.SIG_IGN)
            # With the next text the note is made anew.
            exec("")


@contextmanager
def _handled(endings: Iterable[int], handler: Callable[..., object]) -> Iterator[None]:
    """Set a handler for some signals while the block runs; outside the main thread, which alone gets signals, none."""
    before = {ending: signal.getsignal(ending) for ending in endings}
    with suppress(ValueError):
        for ending in before:
            signal.signal(ending, handler)
    try:
        yield
    finally:
        with suppress(ValueError):
            for ending, earlier in before.items():
                signal.signal(ending, earlier)


@contextmanager
def interrupted_afterwards() -> Iterator[None]:
    """Hold Ctrl-C, SIGTERM and SIGHUP back until the block is over: a library would make another error of them."""
    held: list[int] = []
    # Those that end the process at once make no error; nothing is known of handlers that are not of Python.
    ours = [ending for ending in (signal.SIGINT, *ENDINGS) if callable(signal.getsignal(ending))]
    try:
        with _handled(ours, lambda number, frame: held.append(number)):
            yield
    finally:
        for number in held[:1]:
            signal.raise_signal(number)


@contextmanager
def leave_at_once(code: int) -> Iterator[None]:
    """While the block imports what a command needs, end the process with `code` on Ctrl-C, SIGTERM and SIGHUP.

    Python's own way is to raise an error in the middle of an import, which some libraries swallow or wrap.
    """

    def leave(*_: object) -> None:
        say_interrupted()
        os._exit(code)

    ours = [ending for ending in (signal.SIGINT, *ENDINGS) if signal.getsignal(ending) in _PYTHONS]
    with _handled(ours, leave):
        yield


@contextmanager
def ended_as_interrupted() -> Iterator[None]:
    """While the block runs, have SIGTERM and SIGHUP end it as Ctrl-C does; ignored ones stay so."""

    def interrupt(*_: object) -> None:
        # Often several come one after the other: none may disturb the tidying up.
        for ending in ours:
            signal.signal(ending, signal.SIG_IGN)
        raise KeyboardInterrupt

    ours = [ending for ending in ENDINGS if signal.getsignal(ending) is signal.SIG_DFL]
    with _handled(ours, interrupt):
        yield


def one_thread() -> AbstractContextManager[object]:
    """Have libraries use one thread while a block runs: sums must not depend on how many a process may use."""
    return _libraries(len(sys.modules)).limit(limits=1)


@lru_cache(maxsize=1)
def _libraries(modules: int) -> Any:
    """Libraries that have threads, looked for again after imports: the search takes as long as a small simulation."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
