"""Ends of a command from outside: an interrupt while it starts, and the signals that end it as an interrupt does."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

#: How a process is asked to end: by a service manager, or since its terminal has gone.
ENDINGS = (signal.SIGTERM, signal.SIGHUP)
#: What Python does with a signal by itself.
_PYTHONS = (signal.SIG_DFL, signal.default_int_handler)


def say_interrupted() -> None:
    """Write that the command was interrupted, whatever has become of the streams."""
    with suppress(OSError):
        os.write(2, b"p2psim: interrupted\n")


@contextmanager
def deaf_afterwards(is_last: bool) -> Iterator[None]:
    """After the block, ignore Ctrl-C, if it is the last that the process does.

    The exit code is settled then, and Python gives the signal its deadly default before it has tidied everything up.
    """
    try:
        yield
    finally:
        if is_last:
            with suppress(ValueError):  # not the main thread, which alone is interrupted
                signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def interrupted_afterwards() -> Iterator[None]:
    """Hold Ctrl-C, SIGTERM and SIGHUP back until the block is over: a library would make another error of them."""
    held: list[int] = []
    before = {ending: signal.getsignal(ending) for ending in (signal.SIGINT, *ENDINGS)}
    # Those that end the process at once make no error; nothing is known of handlers that are not of Python.
    ours = [ending for ending, handler in before.items() if callable(handler)]
    if threading.current_thread() is not threading.main_thread():  # which alone is interrupted
        yield
        return
    for ending in ours:
        signal.signal(ending, lambda number, frame: held.append(number))
    try:
        yield
    finally:
        for ending in ours:
            signal.signal(ending, before[ending])
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

    before = {ending: signal.getsignal(ending) for ending in (signal.SIGINT, *ENDINGS)}
    ours = [ending for ending, handler in before.items() if handler in _PYTHONS]
    with suppress(ValueError):  # not the main thread, which alone is interrupted
        for ending in ours:
            signal.signal(ending, leave)
    try:
        yield
    finally:
        with suppress(ValueError):
            for ending in ours:
                signal.signal(ending, before[ending])


@contextmanager
def ended_as_interrupted() -> Iterator[None]:
    """While the block runs, have SIGTERM and SIGHUP end it as Ctrl-C does; ignored ones stay so."""

    def interrupt(*_: object) -> None:
        # Often several come one after the other: none may disturb the tidying up.
        for ending in before:
            signal.signal(ending, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = [ending for ending in ENDINGS if signal.getsignal(ending) is signal.SIG_DFL]
    with suppress(ValueError):  # not the main thread, which alone is interrupted
        for ending in before:
            signal.signal(ending, interrupt)
    try:
        yield
    finally:
        with suppress(ValueError):
            for ending in before:
                signal.signal(ending, signal.SIG_DFL)
