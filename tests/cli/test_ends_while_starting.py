"""SIGINT, SIGTERM and SIGHUP end a command with the same code while it starts, too."""

import signal
import subprocess
import sys

import pytest

from p2psim.core.process import leave_at_once

STARTING = """
import os, signal
from p2psim.core.process import leave_at_once
with leave_at_once(130):
    signal.raise_signal(int(os.sys.argv[1]))
print("went on")
"""
ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_code_is_that_of_an_interrupt(ending: signal.Signals) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", STARTING, str(int(ending))], capture_output=True, text=True, timeout=60
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (130, "", "p2psim: interrupted\n")


@pytest.mark.parametrize("ending", ENDINGS)
def test_what_was_set_before_is_kept(ending: signal.Signals) -> None:
    before = signal.getsignal(ending)
    try:
        for handler in (signal.SIG_IGN, signal.SIG_DFL):
            signal.signal(ending, handler)
            with leave_at_once(130):
                assert (signal.getsignal(ending) is handler) == (handler is signal.SIG_IGN)
            assert signal.getsignal(ending) is handler
    finally:
        signal.signal(ending, before)
