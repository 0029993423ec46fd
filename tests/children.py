"""Processes that are forked from the tests': they have all imported already."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from multiprocessing import forkserver
from pathlib import Path


def forked(task: Callable[[], int], place: Path, seconds: int = 120) -> "subprocess.CompletedProcess[str]":
    """Do a task in a process of its own, ended after some time; what it prints goes through files in a folder.

    Parameters
    ----------
    task : callable
        Returns the exit code.
    place : Path
    seconds : int
    """
    names = place / "stdout", place / "stderr"
    pid = os.fork()
    if not pid:
        code = 99
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(seconds)
            # The server of workers that an earlier test began is the parent's child: this process begins another.
            forkserver._forkserver.__init__()
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            for number, name in enumerate(names, 1):
                os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
            sys.stdin, sys.stdout, sys.stderr = (os.fdopen(number, mode) for number, mode in enumerate("rww"))
            sys.__stdout__, sys.__stderr__ = sys.stdout, sys.stderr
            code = task()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return subprocess.CompletedProcess(task, code, *(name.read_text("utf-8") for name in names))
