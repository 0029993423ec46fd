"""Standard error as lines of JSON, whoever writes to it: this process, its workers, or a library in C."""

import argparse
import json
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import BinaryIO

#: Stands between what was written before the end and nothing.
_END = b"\0end\n"
#: Seconds until the last lines are given up, where nobody takes them.
_PATIENCE = 5.0


def wanted(arguments: Sequence[str]) -> bool:
    """Whether the command line says ``--progress json``; also of one that is wrong elsewhere."""
    known = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    known.add_argument("--progress")
    try:
        asked, _ = known.parse_known_args(list(arguments))
    except argparse.ArgumentError:
        return False
    return bool(asked.progress == "json")


def _refuse(constant: str) -> None:
    """Strict JSON has no NaN and no infinity."""
    raise ValueError(constant)


def as_line(line: bytes) -> bytes:
    """A line that is a JSON object stays; of any other one is made; of nothing, nothing."""
    text = line.decode(errors="replace").rstrip()
    if not text:
        return b""
    with suppress(ValueError, RecursionError):
        if isinstance(json.loads(text, parse_constant=_refuse), dict):
            return text.encode() + b"\n"
    return json.dumps({"output": text}).encode() + b"\n"


@contextmanager
def standard_error_as_lines() -> Iterator[None]:
    """Pass everything that is written to standard error through `as_line` while the block runs.

    It is the file descriptor that is replaced, which child processes inherit: what Python writes when a worker cannot
    start, or the system when it has no memory, never reaches `sys.stderr` of this process.
    """
    reader, writer = os.pipe()
    sys.stderr.flush()
    kept = os.dup(2)
    os.dup2(writer, 2)
    os.close(writer)
    source, target = os.fdopen(reader, "rb"), os.fdopen(kept, "wb")
    thread = threading.Thread(target=_pass_on, args=(source, target), daemon=True)
    thread.start()
    try:
        yield
    finally:
        with suppress(OSError, ValueError):
            sys.stderr.flush()
        os.write(2, b"\n" + _END)
        thread.join(_PATIENCE)
        os.dup2(target.fileno(), 2)
        if not thread.is_alive():
            source.close()
            with suppress(OSError):
                target.close()


def _pass_on(source: BinaryIO, target: BinaryIO) -> None:
    # Children may hold the other side open after the end; so there is a mark, and not the end of the file.
    while (line := source.readline()) not in (b"", _END):
        # Nobody may be reading any more: whoever writes to us must not wait for that.
        with suppress(OSError):
            target.write(as_line(line))
            target.flush()
