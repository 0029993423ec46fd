"""What differs between systems: locks of files, numbers on memory and time, and how worker processes are started.

It imports nothing of p2psim that takes time, so that a command can start the server of workers before anything else.
"""

import contextlib
import mmap
import multiprocessing
import os
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from multiprocessing import forkserver, resource_tracker
from pathlib import Path
from typing import IO, Any

from p2psim.core.errors import InputError
from p2psim.core.process import ENDINGS

#: None on Windows.
fcntl: Any
resource: Any
try:
    import fcntl
    import resource
except ImportError:
    fcntl = resource = None

#: Of workers, and of the servers and trackers that are started with them: these would look for modules in the current
#: folder first. Each worker takes this process's path before it does anything.
SAFE_PATH = {"PYTHONSAFEPATH": "1"}
#: A path of a socket has at most 104 bytes on some systems, 108 on others; 32 of them are the socket's own.
_LONGEST_SOCKET_FOLDER = 70
#: What tells the server of workers, which is to load all that they share, from a process that may need none of it.
SERVER = "P2PSIM_SERVER"
#: Of workers: one thread each.
OF_WORKERS = SAFE_PATH | {"VECLIB_MAXIMUM_THREADS": "1", SERVER: "1"}
OF_WORKERS |= {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "NUMBA")}


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


def available_memory() -> float:
    """Bytes that this process may still take; infinite where the system does not say."""
    limits = [address_limit()]
    with contextlib.suppress(OSError, ValueError, IndexError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        limits += [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    with contextlib.suppress(OSError, ValueError):
        cgroup = Path("/sys/fs/cgroup")
        limits.append(int((cgroup / "memory.max").read_text()) - int((cgroup / "memory.current").read_text()))
    return max(min(limits), 0.0)


#: Bytes of address space that a process takes beyond what it has once a study is read: compiled kernels, tables; and
#: one with workers, which hands their results on.
_ALONE, _WITH_WORKERS = 510e6, 860e6


def limited_room() -> float:
    """Bytes of address space that its limit leaves to this process."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        return max(address_limit() - pages * mmap.PAGESIZE, 0)
    return address_limit()


def has_room_for_workers() -> bool:
    """Whether the limit on address space leaves enough for worker processes."""
    return limited_room() >= _WITH_WORKERS


def refuse_little_room(jobs: int | None) -> None:
    """Refuse to run where libraries, which end the process without a word or hang, have too little address space.

    Raises
    ------
    InputError
    """
    several = jobs is not None and jobs > 1
    room, need = limited_room(), _WITH_WORKERS if several else _ALONE
    if room < need:
        whose, cure = (f" for {jobs} workers", "use --jobs 1 or raise") if several else ("", "raise")
        raise InputError(
            f"too little memory{whose}: its limit (ulimit -v) leaves {sized(room)}, and about {sized(need)} are "
            f"needed; {cure} the limit"
        )


def sized(size: float) -> str:
    """Bytes in the largest unit that leaves a number of at least one."""
    units = ("bytes", "kB", "MB", "GB", "TB", "PB", "EB")
    power = next((power for power in range(6) if size < 1000 ** (power + 1)), 6)
    return f"{size / 1000**power:,.3g} {units[power]}"


def available_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def environment(values: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for the processes that are started inside."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name in values:
            os.environ.pop(name, None)
        os.environ.update({name: value for name, value in before.items() if value is not None})


@contextmanager
def block_sigint() -> Iterator[None]:
    """Block interrupts in the processes started here: they would end the server of workers during its imports."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows, which has neither this server nor masks
        yield
        return
    # The server starts the tracker first, unless it runs, and that unblocks the signals.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, *ENDINGS})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def worker_context() -> Any:
    """What starts workers: a server that has imported what they need, once for all, and is forked for each."""
    methods = multiprocessing.get_all_start_methods()
    # The server listens in the folder of temporary files, and the path of a socket is short.
    can_listen = len(os.fsencode(tempfile.gettempdir())) <= _LONGEST_SOCKET_FOLDER
    context = multiprocessing.get_context("forkserver" if "forkserver" in methods and can_listen else "spawn")
    context.set_forkserver_preload(["__main__", "p2psim.simulation.simulate", "p2psim.runs.pool"])
    return context


def warm_up() -> None:
    """Start the server of workers, which imports what they need while this process does the same, or something else."""
    if worker_context().get_start_method() == "forkserver":
        with environment(OF_WORKERS), block_sigint():
            forkserver.ensure_running()
