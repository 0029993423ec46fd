"""One part of every kind and name that is registered, the example package's among them, to be tested alike."""

import sys
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np

from p2psim.core import registry
from p2psim.data.sources import Arrays

PLUGINS = Path(__file__).parent / "plugins"
sys.path.append(str(PLUGINS))

import p2psim_example_parts  # noqa: E402, F401

import p2psim.scenario.model  # noqa: E402, F401  declares all parts that ship

#: Keys of parts that cannot do without; of topologies, those that make graphs of twelve agents or of any number.
KEYS: dict[tuple[str, str], dict[str, Any]] = {
    ("topology", "grid"): {"shape": (3, 4)},
    ("topology", "random-regular"): {"degree": 4},
    ("topology", "erdos-renyi"): {"probability": 0.3},
    ("topology", "small-world"): {"neighbours": 4, "rewire": 0.3},
    ("topology", "scale-free"): {"attach": 2},
    ("topology", "two-cluster"): {"within": 0.5, "between": 0.2},
    ("topology", "stochastic-block"): {"blocks": 3, "within": 0.6, "between": 0.2},
    ("topology", "knn"): {"neighbours": 5},
    ("topology", "file"): {"path": str(Path(__file__).parent / "network" / "twelve.edges")},
    ("topology", "networkx"): {"graph": nx.icosahedral_graph()},
    ("topology", "one-peer-exponential"): {"interval": 1.0},
    ("topology", "random-matching"): {"interval": 1.0},
    ("topology", "random-waypoint"): {"radius": 0.3, "speed": (0.05, 0.1), "interval": 1.0},
    ("topology", "changing-file"): {"path": str(Path(__file__).parent / "network" / "twelve.csv")},
    ("topology", "rewired"): {"of": {"kind": "ring"}, "share": 0.2, "interval": 1.0},
    ("topology", "caveman"): {"cliques": 3, "members": 4},
    ("channel", "blackout"): {"begin": 3.0, "end": 6.0},
    ("channel", "jamming"): {"period": 2.0, "length": 0.5},
    ("availability", "bernoulli"): {"drop": 0.2},
    ("availability", "renewal"): {"up": 3.0, "down": 2.0},
    ("availability", "outage"): {"up": 3.0, "down": 2.0},
    ("availability", "learner"): {"up": 3.0, "down": 2.0},
    ("availability", "diurnal"): {"period": 3.0, "participation": 0.4},
    ("availability", "scripted"): {"intervals": [{"agent": 1, "begin": 0.5, "end": 3.0}]},
    ("availability", "leave"): {"after": 2.0},
    ("availability", "join"): {"after": 2.0},
    ("availability", "remove"): {"share": 0.3},
    ("availability", "all-of"): {
        "parts": ({"kind": "bernoulli", "drop": 0.2}, {"kind": "leave", "after": 2.0})
    },
    ("availability", "pareto"): {"up": 3.0, "down": 2.0},
    ("algorithm", "gossip-sgd"): {"commits": 9, "learning_rate": 0.1},
    ("algorithm", "server-momentum"): {"commits": 9, "step": 0.1},
    ("algorithm", "trimmed-gossip"): {"commits": 9, "step": 0.1},
    ("loss", "huber"): {"delta": 0.7},
    ("model", "mlp"): {"layers": [5, 4], "activation": "tanh"},
    ("source", "csv"): {"path": "people.csv", "y": "age"},
    ("source", "parquet"): {"path": "people.parquet", "y": "age"},
    ("source", "libsvm"): {"path": "people.svm"},
    ("source", "arrays"): {"records": Arrays.rows(np.eye(12), np.arange(12.0)).records},
    ("source", "arff"): {"path": str(PLUGINS / "people.arff"), "y": "pays"},
    ("partition", "contiguous"): {"sizes": [2, 3, 4]},
    ("partition", "sizes"): {"sizes": [2, 3, 4]},
    ("partition", "column"): {"column": "owner"},
    ("partition", "dirichlet"): {"concentration": 1.0},
    ("partition", "unbalanced"): {"sizes": 1.0},
    ("feature", "pca"): {"components": 2},
    ("feature", "als"): {"factors": 2},
    ("feature", "fourier"): {"components": 4},
}


def registered(kind: str) -> list[Any]:
    """A part of each name, in the order of the registry; one whose keys are not known here is an error."""
    return [
        part.model_validate({"kind": name, **KEYS.get((kind, name), {})})
        for name, part in registry.parts(kind).items()
    ]
