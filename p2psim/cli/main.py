"""The command ``p2psim``: its parser, put together from one module per command, and its exit codes."""

# Imported where they are used: an interrupt during start-up must find `main` ready for it.
from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Sequence

#: Exit codes: done; a run failed; bad input or usage; interrupted.
DONE, FAILED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130
#: Commands in the order of the help: module and name.
_COMMANDS = (
    "run.run", "run.check", "show.show", "plot.plot", "plot.report", "verify.verify", "audit.audit",
    "forecast.forecast", "account.account", "compare.compare", "show.export", "data.data", "new.start",
    "catalogue.list_names", "catalogue.schema", "catalogue.completion",
)  # fmt: skip
_KEPT = "finished simulations are kept; the same command continues from there"


def parser() -> ArgumentParser:
    """Return the parser of the command line."""
    from argparse import ArgumentParser
    from importlib import import_module

    from p2psim.core import __version__

    top = ArgumentParser(
        prog="p2psim",
        description="Simulate private, asynchronous and decentralised machine learning.",
        epilog="Exit codes: 0 done; 1 a run failed (finished simulations are kept); 2 bad input (nothing was "
        "written); 130 interrupted (finished simulations are kept).",
    )
    top.add_argument("--version", action="version", version=f"p2psim {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for place in _COMMANDS:
        module, _, name = place.partition(".")
        getattr(import_module(f"p2psim.cli.{module}"), name)(commands)
    return top


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
    lines, is_process = False, arguments is None
    try:
        import sys
        from contextlib import nullcontext

        from p2psim.core.process import ignore_interrupts_afterwards, leave_at_once

        if is_process:
            _start_fast()
        with ignore_interrupts_afterwards(is_process):
            arguments = sys.argv[1:] if arguments is None else arguments
            with leave_at_once(INTERRUPTED):
                from p2psim.cli.streams import lasting_streams, standard_error_as_lines, wanted

                lines = wanted(arguments)
            with lasting_streams(), standard_error_as_lines() if lines else nullcontext():
                return _done(arguments, lines, is_process)
    except KeyboardInterrupt:
        if not lines:
            from p2psim.core.process import say_interrupted

            say_interrupted()
        return INTERRUPTED


def _start_fast() -> None:
    """Spare a process that is one p2psim command the garbage collection of its imports, and plugins of pydantic."""
    import gc
    import os

    gc.disable()
    # Pydantic would read the metadata of all installed packages; which may not change checks of scenarios.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")


def _done(arguments: Sequence[str], lines: bool, is_process: bool) -> int:
    """Do what the arguments say; with `lines`, say what is wrong as JSON."""
    import gc
    import sys
    import traceback
    from contextlib import nullcontext
    from importlib import import_module

    from p2psim.cli.catalogue import complete
    from p2psim.core.errors import InputError, P2PSimError
    from p2psim.core.printing import complain
    from p2psim.core.process import ended_as_interrupted, leave_at_once

    def end(message: object, code: int) -> int:
        complain(message, "error" if lines else "p2psim", lines)
        return code

    try:
        # As lines, what is said about an interrupt must be one, too.
        with nullcontext() if lines else leave_at_once(INTERRUPTED):
            made = parser()
            complete(made)
            args = made.parse_args(arguments)
            args.arguments = tuple(arguments)
            if is_process and args.command == "run" and (args.jobs or 1) > 1 and args.executor == "local":
                from p2psim.runs.system import warm_up

                # Workers' imports take as long as those of this process: both are done at once.
                warm_up()
            # Here and not above: `--help` must not wait for it.
            for module in args.needs:
                import_module(module)
            if is_process:
                gc.freeze()
                gc.enable()
        for text in arguments:
            if any("\ud800" <= character <= "\udfff" for character in text):
                raise InputError(f"the argument {text!a} is not text")
        if args.parts:
            from p2psim.core.registry import load_parts

            load_parts(*args.parts)
        with ended_as_interrupted():
            code: int | None = args.act(args)
        sys.stdout.flush()
        return code or DONE
    except InputError as error:
        code = end(error, BAD_INPUT)
        strange = any(fault.names_part for fault in error.faults)
        if strange and not any(text.startswith("--parts") for text in arguments):
            complain("parts and metrics of your own are known with --parts MODULE", "note", lines)
        return code
    except P2PSimError as error:
        return end(error, FAILED)
    except KeyboardInterrupt:
        return end(f"interrupted; {_KEPT}", INTERRUPTED)
    except MemoryError as error:
        return end(f"not enough memory{f' ({error})' if str(error) else ''}; {_KEPT}", FAILED)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return end(f"{where}{error.strerror or error}; {_KEPT}", FAILED)
    except Exception:
        if not lines:
            raise
        # A fault of ours. Python would print it as text after the stream of lines has ended, with the same exit code.
        return end(traceback.format_exc(), FAILED)
    finally:
        if is_process:
            # Else Python would go through all objects once more, though the process ends and gives all memory back.
            gc.freeze()
