"""While kernels are compiled: interrupts wait until it is done, and are lost nowhere; no garbage is collected."""

import gc
import math
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import numba
import pytest
from numba.core import event

import p2psim
from p2psim.core import compiled, files


def fresh(number: int) -> Any:
    """A function that has not been compiled yet; it takes some tenths of a second."""
    factor = 1.0 + number

    def wave(x: float) -> float:
        total = 0.0
        for i in range(3):
            total += math.sin(factor * x + i) if x > i else math.cos(x - i)
        return total

    return numba.njit(wave)


class Begun(event.Listener):
    """Starts a timer when the compilation begins, however slow the machine is."""

    def __init__(self, timer: threading.Timer):
        self.timer = timer

    def on_start(self, event: Any) -> None:
        if self.timer.ident is None:
            self.timer.start()

    def on_end(self, event: Any) -> None:
        """Nothing."""


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_waits_for_the_end_of_the_compilation(
    ending: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At any moment of it: what was begun is compiled, the interrupt comes once, and the handlers are back."""
    compiled.njit()  # as every kernel of p2psim does
    lost: list[Any] = []
    monkeypatch.setattr("sys.unraisablehook", lost.append)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(ending, interrupt)
    try:
        for number, delay in enumerate((0.002, 0.01, 0.03, 0.06)):
            kernel = fresh(10 * ending + number)
            timer = threading.Timer(delay, os.kill, (os.getpid(), ending))
            begun = Begun(timer)
            with event.install_listener("numba:compiler_lock", begun), pytest.raises(KeyboardInterrupt):
                _ = kernel(1.0), time.sleep(5)
            assert kernel.signatures
            assert kernel(1.0) == pytest.approx(kernel.py_func(1.0))
            assert signal.getsignal(ending) is interrupt
    finally:
        signal.signal(ending, before)
    assert not lost


class Noting(event.Listener):
    """Notes whether garbage is collected while something is compiled, and afterwards."""

    open = 0

    def __init__(self) -> None:
        self.seen: list[bool] = []

    def on_start(self, event: Any) -> None:
        self.open += 1

    def on_end(self, event: Any) -> None:
        self.open -= 1

    def collecting(self, phase: str, info: object) -> None:
        """Called by Python when it begins and ends."""
        self.seen.append(self.open > 0)


@pytest.mark.parametrize("collects", [True, False])
def test_garbage_is_collected_after_a_compilation_as_before(collects: bool) -> None:
    """Not meanwhile: nothing of what the compiler makes is free before it is done."""
    compiled.njit()
    noting, before, thresholds = Noting(), gc.isenabled(), gc.get_threshold()
    gc.callbacks.append(noting.collecting)
    try:
        (gc.enable if collects else gc.disable)()
        gc.set_threshold(50)
        with event.install_listener("numba:compile", noting):
            fresh(1000 + collects)(1.0)
            made = [[i] for i in range(1000)]
        assert gc.isenabled() is collects
        assert len(made) == 1000
        assert set(noting.seen) == ({False} if collects else set())
    finally:
        gc.callbacks.remove(noting.collecting)
        gc.set_threshold(*thresholds)
        (gc.enable if before else gc.disable)()


def test_every_source_that_is_compiled_decides_where_kernels_are_kept() -> None:
    """Numba does not see that another file has changed whose function was compiled into a kernel."""
    package = Path(p2psim.__file__).parent
    listed = {path for pattern in files.SOURCES for path in package.glob(pattern)}
    holding = {path for path in package.rglob("*.py") if "@njit" in path.read_text()}
    assert holding
    assert holding <= listed | {package / "testing/parts.py"}
    assert all(list(package.glob(pattern)) for pattern in files.SOURCES)
