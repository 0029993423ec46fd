"""Whether a run is writing into a folder."""

from pathlib import Path

#: The file that a run holds while it writes.
LOCK = ".lock"


def is_running(folder: Path) -> bool:
    """Whether a run holds the lock of a folder at this moment."""
    import fcntl

    try:
        with open(folder / LOCK, "rb") as handle:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
