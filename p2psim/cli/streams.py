"""Standard output and standard error of the command, as text or, for standard error, as JSON lines.

`lasting_streams` keeps output from failing: a character that a stream cannot encode is written in ASCII, and what is
written after the reader has gone is dropped. `standard_error_as_lines` covers everything that is written to standard
error, whether by this process, by its workers, or by a library in C.
"""

import argparse
import codecs
import io
import json
import os
import re
import sys
import threading
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO, TextIO

#: How to write characters that an encoding lacks, where Unicode itself does not say it.
_SPELLED = {
    "·": "*", "×": "x", "−": "-", "–": "-", "‑": "-", "≥": ">=", "≤": "<=", "→": "->", "√": "sqrt ", "‖": "||",
    "∝": "~", "≈": "~", "∞": "inf", "±": "+-", "Σ": "sum ", "½": "1/2", "¼": "1/4", "‘": "'", "’": "'", "“": '"',
    "”": '"',
}  # fmt: skip


def spelled(character: str) -> str:
    """Write a character in ASCII: ``ε`` as ``epsilon``, ``≤`` as ``<=``; what has no such form, as an escape."""
    if character in _SPELLED:
        return _SPELLED[character]
    name = unicodedata.name(character, "").split()
    if name[:1] == ["GREEK"] and "LETTER" in name:
        letter = name[name.index("LETTER") + 1].replace("LAMDA", "LAMBDA")
        return letter.capitalize() if "CAPITAL" in name else letter.lower()
    plain = unicodedata.normalize("NFKD", character).encode("ascii", "ignore").decode()
    if plain:
        return f"^{plain}" if unicodedata.decomposition(character).startswith("<super>") else plain
    code = ord(character)
    # A byte of a file name that is no text.
    return f"\\x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else ascii(character)[1:-1]


def _spell(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    return "".join(map(spelled, error.object[error.start : error.end])), error.end


codecs.register_error("p2psim-spelled", _spell)


#: Characters that command a terminal, which names in a table may have; on standard error escapes are of progress.
_HIDDEN = (
    re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]"),
    re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f]"),
)


class Outlet(io.FileIO):
    """A file descriptor to which nobody need listen: what is written after the reader has gone is dropped.

    So a command ends as it would have ended, with its own exit code. Any other fault of standard output is raised,
    once (a full disk); of standard error there is nobody left to tell.
    """

    def write(self, data: Any) -> int:
        """Write bytes; to a terminal, those that would move its cursor are spelled."""
        hidden = _HIDDEN[self.fileno() == 2]
        try:
            if not hidden.search(data) or not self.isatty():
                return super().write(data) or 0
            super().write(hidden.sub(lambda found: b"\\x%02x" % found[0][0], bytes(data)))
            return len(data)
        except OSError as error:
            _open_null(self.fileno(), os.O_WRONLY)
            if self.fileno() == 1 and not isinstance(error, BrokenPipeError):
                raise OSError(error.errno, f"standard output cannot be written: {error.strerror}") from None
            return len(data)


def _open_null(descriptor: int, mode: int) -> None:
    null = os.open(os.devnull, mode)
    if null != descriptor:
        os.dup2(null, descriptor)
        os.close(null)


@contextmanager
def lasting_streams() -> Iterator[None]:
    """While the block runs, let nothing that is printed fail because of its characters or its readers.

    Streams that are no files of this process (a test's, a notebook's) stay as they are.
    """
    for descriptor in range(3):
        # One that is closed would be taken by the next file that is opened, which would get our output.
        try:
            os.fstat(descriptor)
        except OSError:
            _open_null(descriptor, os.O_RDWR)
    kept = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = _lasting(sys.stdout, sys.__stdout__, 1), _lasting(sys.stderr, sys.__stderr__, 2)
    try:
        yield
    finally:
        for stream, before in zip((sys.stdout, sys.stderr), kept, strict=True):
            if stream is not before:
                with suppress(OSError, ValueError):
                    stream.flush()
        sys.stdout, sys.stderr = kept


def _lasting(stream: TextIO | None, original: TextIO | None, descriptor: int) -> TextIO:
    encoding, lines, through = "utf-8", False, False
    if stream is not None:
        if stream is not original or not isinstance(stream, io.TextIOWrapper):
            return stream
        with suppress(OSError):
            stream.flush()
        encoding, lines, through = stream.encoding, stream.line_buffering, stream.write_through
    buffer = io.BufferedWriter(Outlet(descriptor, "wb", closefd=False))
    return io.TextIOWrapper(
        buffer, encoding, "p2psim-spelled", line_buffering=lines or descriptor == 2, write_through=through
    )


#: Stands between what was written before the end and nothing.
_END = b"\0end\n"
#: Seconds until the last lines are given up, where nobody takes them.
_PATIENCE = 5.0


def wanted(arguments: Sequence[str]) -> bool:
    """Whether the command line says ``--progress json``; also of one that is wrong elsewhere."""
    known = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    known.add_argument("--progress")
    try:
        args, _ = known.parse_known_args(list(arguments))
    except argparse.ArgumentError:
        return False
    return bool(args.progress == "json")


def as_line(line: bytes) -> bytes:
    """A line that is a JSON object stays; of any other one is made; of nothing, nothing."""
    text = line.decode(errors="replace").rstrip()
    if not text:
        return b""
    with suppress(ValueError, RecursionError):
        # Strict JSON has no NaN and no infinity: what reads these constants refuses them.
        if isinstance(json.loads(text, parse_constant=int), dict):
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
