"""What a compiled function is: it has a way in for Python, and another for kernels that call it.

With every function that a kernel calls numba would compile a way in for Python and another for C, in a sixth of all the
time that compiling takes, though Python calls few of these functions.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any

from numba.core.registry import CPUDispatcher


class Kernel(CPUDispatcher):
    """A function that is compiled with a way in for Python when Python calls it, and without when kernels do.

    Parameters
    ----------
    function : callable
    options : dict
        As of `numba.njit`.
    keep : callable
        Has numba keep the machine code of a function in a folder of a name.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        options: dict[str, Any],
        keep: Callable[[CPUDispatcher, str], None],
    ):
        self._options = {"nopython": True, "boundscheck": None, "no_cfunc_wrapper": True, **options}
        self._keep = keep
        super().__init__(function, targetoptions=self._options)
        keep(self, "")

    @property
    def _numba_type_(self) -> Any:
        """What kernels see in place of the function."""
        return self.of_kernels._type

    @cached_property
    def of_kernels(self) -> Any:
        """The function as kernels call it."""
        without = CPUDispatcher(self.py_func, targetoptions={**self._options, "no_cpython_wrapper": True})
        self._keep(without, "of-kernels")
        return without
