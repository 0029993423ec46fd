"""The example package of parts, and the command with it importable, but not installed."""

import os
import subprocess
import sys
from pathlib import Path

PLUGINS = Path(__file__).parent / "plugins"
PARTS = ["--parts", "p2psim_example_parts"]


def p2psim(*arguments: str, paths: tuple[Path, ...] = (PLUGINS,)) -> subprocess.CompletedProcess[str]:
    """Run the command with the package importable."""
    path = os.pathsep.join([*map(str, paths), str(PLUGINS.parents[1]), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-m", "p2psim", *arguments],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": path, "NO_COLOR": "1"},
        timeout=200,
    )
