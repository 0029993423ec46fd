"""An interrupt while a command starts: nothing has been done yet, so that it ends there and then."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def leave_at_once(code: int) -> Iterator[None]:
    """While the block imports what a command needs, end the process with `code` on Ctrl-C.

    Python's own way is to raise an error in the middle of an import, which some libraries swallow or wrap.
    """

    def leave(*_: object) -> None:
        with suppress(OSError):
            os.write(2, b"p2psim: interrupted\n")
        os._exit(code)

    try:
        before = signal.getsignal(signal.SIGINT)
        if before is signal.default_int_handler:
            signal.signal(signal.SIGINT, leave)
    except ValueError:  # not the main thread, which alone is interrupted
        before = None
    try:
        yield
    finally:
        if before is signal.default_int_handler:
            with suppress(ValueError):
                signal.signal(signal.SIGINT, before)
