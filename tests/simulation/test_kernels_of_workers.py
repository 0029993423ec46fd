"""Workers read data from disk, and a process that works alone keeps them in memory: one kernel serves both."""

import sys

import pytest
from graph_cases import graph_scenario
from star_cases import scenario

from p2psim.core.compiled import Kernel
from p2psim.simulation.simulate import simulate
from p2psim.simulation.workspace import Workspace

#: Data of all replicas are the same.
SHARED = {"data.redraw": "never"}

#: Each family of algorithms whose kernels take records.
STUDIES = {
    "star": scenario(SHARED),
    "rounds": scenario(
        SHARED
        | {
            "network.exchange": {"kind": "round"},
            "learning.algorithm": {
                "kind": "synchronous-averaging",
                "horizon": 9,
                "c1": 0.6,
                "theta_max": 3.0,
            },
        }
    ),
    "training": scenario(
        SHARED
        | {
            "learning.algorithm": {"kind": "fedasync", "step": 0.1, "commits": 20},
            "privacy.allocation": {"kind": "cap", "releases": 3},
            "record.metrics": ["objective"],
        }
    ),
    "graph": graph_scenario(SHARED),
    "links": graph_scenario(
        SHARED
        | {
            "learning.algorithm": {"kind": "gossip-admm", "mu": 0.5, "rho": 0.7, "inner": 1, "commits": 40},
            "network.exchange": {"kind": "gossip", "mode": "edge"},
        }
    ),
    "sgd": graph_scenario(
        SHARED
        | {
            "learning.algorithm": {"kind": "decentralised-sgd", "step": 0.1, "commits": 40},
            "learning.regularizer.l2": 0.01,
            "privacy.sensitivity": {"kind": "clip", "norm": "l1", "bound": 1.0},
            "network.exchange": {"kind": "gossip", "mode": "push-pull"},
            "record.metrics": ["objective"],
        }
    ),
}


def compiled() -> dict[str, list[str]]:
    """Signatures that this process has looked for, of each kernel."""
    return {
        f"{module.__name__}.{name}": [str(one) for one in kernel.signatures]
        for module in [module for name, module in sys.modules.items() if name.startswith("p2psim.")]
        for name, kernel in vars(module).items()
        if isinstance(kernel, Kernel) and "of_python" in vars(kernel)
    }


@pytest.mark.parametrize("name", STUDIES)
def test_data_on_disk_need_no_kernels_of_their_own(name: str, tmp_path) -> None:
    study = STUDIES[name]
    in_memory = simulate(study, 0, Workspace(None))
    known = compiled()
    mapped = simulate(study, 0, Workspace(tmp_path))
    assert len(known) > 3
    assert compiled() == known
    for one, other in zip(in_memory.series, mapped.series, strict=True):
        assert one.value.tobytes() == other.value.tobytes()
