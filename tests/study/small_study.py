"""A study that takes no time, and ways of looking at its run folder."""

import hashlib
from pathlib import Path
from typing import Any

from p2psim.study.scenario import Scenario

RESULTS = ("metrics.parquet", "ledger.parquet", "agents.parquet", "events.parquet", "noise.npz", "data.npz")


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
