"""What is kept of kernels is right whatever other processes keep at the same time."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba.core.caching import IndexDataCacheFile

from p2psim.core import compiled


def total(values: Any) -> Any:
    """Sum of the entries, in the type of the entries."""
    found = values[0]
    for value in values[1:]:
        found += value
    return found


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Any]:
    """`total` as a process that has just begun gets it; all share one empty cache."""
    monkeypatch.setattr(compiled, "cache_directory", lambda: tmp_path / "kernels")
    return lambda: compiled.njit()(total)


def test_processes_that_compile_for_different_types_at_once_leave_a_right_cache(
    kernel: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second reads the index before the first has written its own, and writes its machine code last."""
    first, second = kernel(), kernel()
    read: Any = IndexDataCacheFile._load_index
    write: Any = IndexDataCacheFile._save_data
    late: list[tuple[Any, ...]] = []
    inside = False

    def read_while_another_compiles(self: IndexDataCacheFile) -> Any:
        nonlocal inside
        found = read(self)
        # The first of two reads looks for machine code, the one that `save` makes is the second.
        if self is first.of_python._cache._cache_file and not inside and first.of_python.stats.cache_misses:
            inside = True
            second(np.arange(3.0))
        return found

    def write_last(self: IndexDataCacheFile, *arguments: Any) -> None:
        if self is second.of_python._cache._cache_file:
            late.append((self, *arguments))
        else:
            write(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(IndexDataCacheFile, "_load_index", read_while_another_compiles)
        patch.setattr(IndexDataCacheFile, "_save_data", write_last)
        assert first(np.arange(4)) == 6
    assert late
    for arguments in late:
        write(*arguments)
    third = kernel()
    assert third(np.arange(5)) == 10
    assert third(np.arange(5.0)) == 10.0


def test_a_second_process_takes_what_the_first_has_kept(kernel: Callable[[], Any]) -> None:
    assert kernel()(np.arange(4)) == 6
    again = kernel()
    assert again(np.arange(4)) == 6
    assert sum(again.of_python.stats.cache_hits.values()) == 1
    assert not again.of_python.stats.cache_misses
