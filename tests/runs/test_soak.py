"""Sweeps one after the other in one process: memory does not grow with their number."""

import gc
import os
from pathlib import Path

import numpy as np
import pytest
import small_study as small

import p2psim

pytestmark = [
    pytest.mark.verification,
    pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read as Linux shows it"),
]

#: Sweeps, those after which caches are taken to be full, and those of which a mean is taken: what is free is given back
#: to the system after every second one, perhaps.
SWEEPS, FIRST, SOME = 24, 8, 4


def memory() -> float:
    """MB that this process holds now, after what nobody can reach is gone."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def test_twenty_four_sweeps(tmp_path: Path) -> None:
    """Each has data of its own, of 4.8 MB, and keeps events and noise of its simulations."""
    held = []
    for number in range(SWEEPS):
        source = {"kind": "linear-regression", "dimension": 20, "points": 10_000}
        study = small.scenario(seed=number, data={"source": source, "redraw": "never"})
        result = p2psim.run(study, tmp_path / str(number), progress=False)
        assert result.events is not None
        assert len(result.metrics) > len(result.summary()) > 0
        held.append(memory())
    # The data of two of the last sixteen would be more.
    assert np.mean(held[-SOME:]) - np.mean(held[FIRST - SOME : FIRST]) < 8.0, held
