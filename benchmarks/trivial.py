"""What every run needs at least, as a process of its own: four libraries, and a kernel from Numba's cache."""

import numba
import numpy  # noqa: F401
import pandas  # noqa: F401
import pyarrow  # noqa: F401


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def added(x: float) -> float:
    """The trivial kernel."""
    return x + 1.0


added(1.0)
