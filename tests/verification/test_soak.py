"""Many sweeps one after the other in one process: memory, open files and threads do not grow."""

import json
import subprocess
import sys
from pathlib import Path
from statistics import median

import pytest

pytestmark = [
    pytest.mark.verification,
    pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads /proc, as Linux has it"),
]

#: Run in a process of its own: what other tests hold would hide what is lost.
PROGRAM = """
import gc, json, os, resource, sys, threading
from pathlib import Path
import p2psim

if __name__ == "__main__":
    folder, times = Path(sys.argv[1]), int(sys.argv[2])
    star = {
        "name": "soak-star", "replicas": 20,
        "network": {"topology": {"kind": "star", "agents": 3}, "exchange": "request"},
        "data": {"source": {"kind": "linear-regression", "dimension": 4, "points": 50}},
        "learning": {"algorithm": {"kind": "async-star", "horizon": 2000, "rho": 1.0, "theta_max": 2.0},
                     "loss": "squared", "regularizer": {"l2": 0.01}},
        "record": {"every": 1, "events": True},
        "sweep": {"privacy.epsilon": [0.5, 1, 2]},
    }
    graph = {
        "name": "soak-graph", "replicas": 4,
        "network": {"topology": {"kind": "ring", "agents": 60}, "exchange": {"kind": "gossip", "mode": "push-pull"},
                    "channel": {"latency": {"exponential": 0.2}, "loss": 0.1}},
        "data": {"source": {"kind": "linear-classification", "dimension": 5}},
        "learning": {"algorithm": {"kind": "coordinate-descent", "mu": 1.0, "updates_per_agent": 40},
                     "loss": "logistic", "regularizer": {"l2": "inverse-size"}},
        "privacy": {"mechanism": "laplace", "epsilon": 1.0, "sensitivity": {"kind": "clip", "norm": "l1", "bound": 1.0},
                    "allocation": {"kind": "cap", "releases": 20}, "when_spent": "coast"},
        "record": {"metrics": ["objective"], "every": 60, "events": True},
        "sweep": {"network.channel.loss": [0.0, 0.3]},
    }
    studies, rows = [star, graph], []
    for k in range(times):
        study = {**studies[k % 2], "seed": k}
        p2psim.run(p2psim.Scenario.model_validate(study), folder / str(k), jobs=1 + (k // 2) % 2, progress=False)
        gc.collect()
        resident = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
        rows.append([resident / 2**20, len(os.listdir("/proc/self/fd")), threading.active_count()])
    print(json.dumps(rows))
"""


def test_24_sweeps_in_one_process(tmp_path: Path) -> None:
    """Stars and graphs by turns, with one worker and with two: the last eight need what eight before them needed.

    Medians of the memory after each sweep may differ by 30 MB: by allocators they do by 5. Events and numbers of a star
    are 40 MB, so that what was kept of four would be 160 MB.
    """
    program = tmp_path / "soak.py"
    program.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, str(program), str(tmp_path), "24"], check=True, capture_output=True, text=True
    )
    rows = json.loads(done.stdout.splitlines()[-1])
    megabytes, files, threads = (list(column) for column in zip(*rows, strict=True))
    assert median(megabytes[16:]) < median(megabytes[8:16]) + 30, megabytes
    assert max(files[16:]) <= max(files[8:16]), files
    assert max(threads[16:]) <= max(threads[8:16]), threads
