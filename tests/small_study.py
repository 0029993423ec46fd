"""A study that takes no time, and ways of looking at its run folder."""

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from p2psim.runs.seals import sealed
from p2psim.scenario.model import Scenario

RESULTS = (
    "metrics.parquet", "ledger.parquet", "agents.parquet", "events.parquet", "links.parquet", "noise.npz", "data.npz",
)  # fmt: skip


def tree(**changes: Any) -> dict[str, Any]:
    """The study as plain values; dotted keys with underscores for dots change it at the top."""
    study: dict[str, Any] = {
        "name": "small",
        "seed": 5,
        "replicas": 3,
        "network": {"topology": {"kind": "star", "agents": 3}, "exchange": "request"},
        "data": {"source": {"kind": "linear-regression", "dimension": 3, "points": 20}, "redraw": "never"},
        "learning": {
            "algorithm": {"kind": "async-star", "horizon": 40, "rho": {"h": 0.5}, "theta_max": 3},
            "loss": "squared",
            "regularizer": {"l2": 1e-3},
        },
        "privacy": {
            "mechanism": "laplace",
            "epsilon": 10,
            "sensitivity": {"kind": "clip", "norm": "l1", "bound": 1.0},
        },
        "record": {"metrics": ["relative_fitness"], "every": 10, "events": True},
        "sweep": {"privacy.epsilon": [1, 100]},
    }
    return study | changes


def scenario(**changes: Any) -> Scenario:
    return Scenario.from_dict(tree(**changes))


def digests(folder: Path) -> dict[str, str]:
    """Hash of each table and archive."""
    return {
        name: hashlib.sha256((folder / name).read_bytes()).hexdigest()
        for name in RESULTS
        if (folder / name).exists()
    }


def snapshot(folder: Path) -> dict[str, str]:
    """Hash of every file anywhere in the folder, the lock not counted."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != ".lock"
    }


def everything(folder: Path) -> dict[str, object]:
    """Bytes of every file, the lock not counted; of the manifest all but times and how it was called."""
    files: dict[str, object] = {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in (".lock", "manifest.json")
    }
    tree = json.loads((folder / "manifest.json").read_text())
    for key in ("invocations", "sha256"):
        tree.pop(key, None)
    for cell in tree["cells"]:
        del cell["seconds"]
    return files | {"manifest.json": tree}


def forked(task: Callable[[], object]) -> int:
    """Exit code of a process that does a task; 0 if it comes to its end."""
    pid = os.fork()
    if not pid:
        code = 99
        try:
            task()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def reseal(folder: Path, change: Callable[[dict[str, Any]], object] = lambda tree: None) -> None:
    """Change the manifest; list all files as they are now; and seal it, as somebody would who forges results."""
    path = folder / "manifest.json"
    tree = json.loads(path.read_text())
    tree.pop("sha256", None)
    change(tree)
    for name in tree.get("files", {}):
        if (folder / name).is_file():
            content = (folder / name).read_bytes()
            tree["files"][name] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    path.write_text(sealed(json.dumps(tree, indent=2)))
