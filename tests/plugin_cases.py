"""The example package of parts, and the command with it importable, but not installed."""

import contextlib
import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from children import forked
from own_parts import kept, parts_of, show

from p2psim.cli.main import main
from p2psim.core import registry

PLUGINS = Path(__file__).parent / "plugins"
PACKAGE = "p2psim_example_parts"
PARTS = ["--parts", PACKAGE]

Done = subprocess.CompletedProcess[str]


def p2psim(*arguments: str) -> Done:
    """Run the command in a process forked from this one, which knows the package only if it is named."""

    def task() -> int:
        os.environ |= {
            "PYTHONPATH": f"{PLUGINS}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
            "NO_COLOR": "1",
        }
        sys.path.insert(0, str(PLUGINS))
        registry.LOADED.clear()
        show(parts_of(PACKAGE) if PACKAGE in arguments else {})
        try:
            return main(arguments)
        except SystemExit as ended:
            return int(ended.code or 0)

    with tempfile.TemporaryDirectory() as place:
        return forked(task, Path(place), seconds=200)


def started(*arguments: str, paths: tuple[Path, ...] = (PLUGINS,)) -> Done:
    """Run the command in a process of its own, with packages in these places importable."""
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
        stack.enter_context(kept())
        show(parts_of(PACKAGE) if PACKAGE in arguments else {})
        try:
            code = main(arguments)
        except SystemExit as ended:
            code = int(ended.code or 0)
    out, err = (stream.buffer.getvalue().decode() for stream in streams)
    return subprocess.CompletedProcess(arguments, code, out, err)


def run_alone(scenario: str | Path, folders: pytest.TempPathFactory) -> Path:
    """Run a study in this process; before two workers do, which would both compile its kernels at one time."""
    out = folders.mktemp("alone") / "run"
    done = within("run", str(scenario), "--out", str(out), "--jobs", "1", *PARTS)
    assert done.returncode == 0, done.stderr
    return out
