"""Whether the script that asks for worker processes can be imported by them."""

import ast
import multiprocessing
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from p2psim.errors import InputError

_CURE = (
    "worker processes import the script, which would begin the run anew in each of them: put what it does under\n\n"
    'if __name__ == "__main__":\n    ...\n\nor give jobs=1'
)


def refuse_unguarded() -> None:
    """Refuse to start workers for a script that is now running a statement which each of them would run, too.

    Raises
    ------
    InputError
        With what is missing.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise InputError(_CURE)
    file = getattr(sys.modules.get("__main__"), "__file__", None)
    frame = next(
        (one for one in _frames() if one.f_globals.get("__name__") == "__main__" and _is_top(one)), None
    )
    if file is None or frame is None or frame.f_code.co_filename != file:
        return
    try:
        statements = ast.parse(Path(file).read_bytes()).body
    except (OSError, SyntaxError, ValueError):
        return
    for statement in statements:
        if any(
            isinstance(node, ast.Compare) and "__name__" in ast.unparse(node) for node in ast.walk(statement)
        ):
            return
        if statement.lineno <= frame.f_lineno <= (statement.end_lineno or statement.lineno):
            raise InputError(f"{file}:{statement.lineno}: {_CURE}")


def _frames() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        yield frame
        frame = frame.f_back


def _is_top(frame: FrameType) -> bool:
    return frame.f_code.co_name == "<module>"
