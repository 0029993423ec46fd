"""What Windows lacks (``fcntl``, ``resource``): locks of files, and numbers on memory and time."""

import contextlib
import os
import sys
from typing import IO, Any

#: None on Windows.
fcntl: Any
resource: Any
try:
    import fcntl
    import resource
except ImportError:
    fcntl = resource = None


def take_lock(file: IO[bytes], shared: bool = False) -> None:
    """Lock an open file until it is closed, without waiting; on Windows only one process at a time, even if `shared`.

    Raises
    ------
    BlockingIOError
        If another process has locked it.
    OSError
        If the file system has no locks.
    """
    if fcntl is not None:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        return
    import msvcrt

    try:
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
    except PermissionError as error:
        raise BlockingIOError(error.errno, error.strerror) from None


def peak_memory() -> int:
    """Most bytes of memory that this process has had so far; 0 where the system does not say."""
    # On Linux `ru_maxrss` may be that of the program which started this one.
    with contextlib.suppress(OSError), open("/proc/self/status", "rb") as status:
        for line in status:
            if line.startswith(b"VmHWM:"):
                return int(line.split()[1]) * 1024
    if resource is None:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def cpu_seconds() -> tuple[float, float]:
    """CPU seconds of this process in the program, and in the system for it."""
    user, system, *_ = os.times() if resource is None else resource.getrusage(resource.RUSAGE_SELF)
    return user, system


def address_limit() -> float:
    """Bytes of address space that a process may have (``ulimit -v``); infinite without a limit."""
    if resource is None:
        return float("inf")
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return float("inf") if soft == resource.RLIM_INFINITY else soft
