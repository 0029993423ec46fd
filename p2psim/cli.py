"""The command ``p2psim``: its exit codes. What a command does is in :mod:`p2psim.commands`."""

import os
import sys
import traceback
from collections.abc import Sequence

from p2psim.command_line import parser
from p2psim.errors import InputError, P2PSimError
from p2psim.json_lines import standard_error_as_lines, wanted
from p2psim.printing import complain

#: Exit codes: done; a run failed; bad input or usage; interrupted.
DONE, FAILED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130
_KEPT = "what was finished is kept, the same command goes on from there"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    arguments : sequence of str, optional
        Those of the process by default.

    Returns
    -------
    int
        The exit code.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    if not wanted(arguments):
        return _done(arguments, False)
    with standard_error_as_lines():
        try:
            return _done(arguments, True)
        except Exception:
            # A fault of ours. Python would tell it after the block, as text, with the same exit code.
            complain(traceback.format_exc(), "error", as_line=True)
            return FAILED


def _done(arguments: Sequence[str], lines: bool) -> int:
    """Do what the arguments say; with `lines`, say what is wrong as JSON."""

    def end(message: object, code: int) -> int:
        complain(message, "error" if lines else "p2psim", lines)
        return code

    asked = parser().parse_args(arguments)
    asked.arguments = tuple(arguments)
    try:
        # Here and not above: `--help` must not wait for it.
        from p2psim import commands

        if asked.parts:
            from p2psim.parts import load_parts

            load_parts(*asked.parts)
        code = commands.COMMANDS[asked.command](asked)
        sys.stdout.flush()
        return code
    except InputError as error:
        return end(error, BAD_INPUT)
    except P2PSimError as error:
        return end(error, FAILED)
    except KeyboardInterrupt:
        return end(f"interrupted; {_KEPT}", INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output has gone. Python would complain once more on flushing at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except (OSError, MemoryError) as error:
        what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        return end(f"{what}; {_KEPT}", FAILED)
