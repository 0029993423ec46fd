"""The example package of parts, and the command with it importable, but not installed."""

import contextlib
import io
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from p2psim.cli.main import main
from p2psim.core import registry

PLUGINS = Path(__file__).parent / "plugins"
PACKAGE = "p2psim_example_parts"
PARTS = ["--parts", PACKAGE]

# Parts of the package that were registered once: Python does not import them again.
_KEPT: dict[tuple[str, str], Any] = {}

Done = subprocess.CompletedProcess[str]


def p2psim(*arguments: str, paths: tuple[Path, ...] = (PLUGINS,)) -> Done:
    """Run the command with the package importable."""
    path = os.pathsep.join([*map(str, paths), str(PLUGINS.parents[1]), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-m", "p2psim", *arguments],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": path, "NO_COLOR": "1"},
        timeout=200,
    )


def within(*arguments: str) -> Done:
    """Run the command in this process, which starts no other and knows the package only while the command runs."""
    streams = [io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2)]
    with pytest.MonkeyPatch.context() as patch, contextlib.ExitStack() as stack:
        patch.setenv("NO_COLOR", "1")
        patch.syspath_prepend(PLUGINS)
        stack.enter_context(contextlib.redirect_stdout(streams[0]))
        stack.enter_context(contextlib.redirect_stderr(streams[1]))
        stack.enter_context(_known(PACKAGE in arguments))
        try:
            code = main(arguments)
        except SystemExit as ended:
            code = int(ended.code or 0)
    out, err = (stream.buffer.getvalue().decode() for stream in streams)
    return subprocess.CompletedProcess(arguments, code, out, err)


def _registered() -> dict[tuple[str, str], Any]:
    """Parts of the package that are registered, by kind and name."""
    found = {(kind, name): part for kind in registry.KINDS for name, part in registry.parts(kind).items()}
    return {key: part for key, part in found.items() if registry.package_of(part) == PACKAGE}


def _show(wanted: dict[tuple[str, str], Any]) -> None:
    """Register these parts of the package, and no others."""
    now = _registered()
    _KEPT.update(now)
    with registry.registering():
        for key in now.keys() - wanted.keys():
            registry.forget(*key)
    registry.register_all([wanted[key] for key in wanted.keys() - now.keys()])


@contextlib.contextmanager
def _known(known: bool) -> Iterator[None]:
    """Let this process know the package or not, and what it knew before at the end."""
    before = _registered()
    loaded = registry._LOADED.copy()
    _show(_KEPT | before if known else {})
    try:
        yield
    finally:
        _show(before)
        registry._LOADED.clear()
        registry._LOADED.update(loaded)
