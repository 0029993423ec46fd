"""Call p2psim where what Windows lacks is missing, in worker processes too: they import this file."""

import ctypes
import errno
import multiprocessing.context
import os
import signal
import subprocess  # noqa: F401 - which looks for msvcrt itself
import sys
from pathlib import Path
from types import SimpleNamespace

sys.modules["fcntl"] = sys.modules["resource"] = None  # type: ignore[assignment]
sys.modules["msvcrt"] = SimpleNamespace(locking=lambda *_: None, LK_NBLCK=2)  # type: ignore[assignment]
del signal.SIGHUP, signal.pthread_sigmask, os.O_DIRECTORY, os.sched_getaffinity
multiprocessing.context.DefaultContext.get_all_start_methods = lambda self: ["spawn"]  # type: ignore[method-assign]
multiprocessing.get_all_start_methods = lambda: ["spawn"]
opened, flushed = os.open, os.fsync


def open_file(path: "str | Path", flags: int, *others: int, **more: int) -> int:
    """As ``os.open``, which opens no folders."""
    if os.path.isdir(path):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))
    return opened(path, flags, *others, **more)


def flush(descriptor: int) -> None:
    """As ``os.fsync``, for which a file must be open for writing."""
    flags = ctypes.CDLL(None).fcntl(descriptor, 3)
    if not flags & (os.O_WRONLY | os.O_RDWR):
        raise OSError(errno.EBADF, "Bad file descriptor")
    flushed(descriptor)


os.open, os.fsync = open_file, flush  # type: ignore[assignment]

if __name__ == "__main__":
    from p2psim.cli.main import main

    sys.exit(main())
