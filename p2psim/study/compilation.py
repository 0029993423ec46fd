"""Whether the kernels are compiled already, told without loading the compiler."""

import os
from pathlib import Path

import p2psim

#: Modules whose kernels every run needs, by their place in the package.
_KERNELS = ("network/array_engine.py", "learning/star_kernel.py")


def is_compiled() -> bool:
    """Whether a compiled form of the kernels is in the cache that is not older than their source.

    Numba keeps an index ``MODULE.FUNCTION-LINE.pyXY.nbi`` beside the source, or in ``NUMBA_CACHE_DIR``, or,
    where the package cannot be written to, in the user's cache.
    """
    package = Path(p2psim.__file__).parent
    return all(_has_index(package / kernel) for kernel in _KERNELS)


def _has_index(source: Path) -> bool:
    pattern = f"{source.stem}.*.nbi"
    asked = os.environ.get("NUMBA_CACHE_DIR")
    beside = source.parent / "__pycache__"
    places = Path(asked).rglob(pattern) if asked else beside.glob(pattern)
    changed = source.stat().st_mtime
    if any(index.stat().st_mtime >= changed for index in places):
        return True
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "numba"
    return not asked and any(index.stat().st_mtime >= changed for index in cache.rglob(pattern))
