"""Names of a graph's nodes beside data that is generated: what does not join them says how it is done."""

import pytest

from p2psim.core.errors import InputError
from p2psim.scenario.model import Scenario

NAMES = {"a": 1.0, "b": 2.0, "c": 3.0}

#: Wherever a mapping may name agents.
MAPPINGS = {
    "privacy.epsilon": NAMES,
    "network.availability": {"kind": "renewal", "up": NAMES, "down": 1.0},
    "network.clock": {"rate": NAMES},
    "data.source.points": {name: int(10 * value) for name, value in NAMES.items()},
    "network.availability.kind": {
        "kind": "scripted",
        "intervals": [{"agent": "b", "begin": 0.0, "end": 1.0}],
    },
}


def tree(path: str, key: str, value: object, **nodes: str) -> dict[str, object]:
    made: dict[str, dict[str, object]] = {
        "network": {"topology": {"kind": "file", "path": path, **nodes}, "exchange": "broadcast"},
        "data": {"source": {"kind": "linear-regression", "points": 12, "dimension": 2}},
        "learning": {
            "algorithm": {"kind": "coordinate-descent", "mu": 1.0, "updates_per_agent": 5},
            "loss": "squared",
            "regularizer": {"l2": 0.1},
        },
        "privacy": {
            "mechanism": "laplace",
            "epsilon": 1.0,
            "sensitivity": {"kind": "clip", "bound": 1.0},
            "allocation": {"kind": "cap", "releases": 3},
        },
    }
    first, *rest = key.removesuffix(".kind").split(".")
    place = made[first]
    for step in rest[:-1]:
        place = place[step]  # type: ignore[assignment]
    place[rest[-1]] = value
    return {"name": "named", **made}


@pytest.mark.parametrize("key", MAPPINGS)
def test_the_cure_is_named_and_cures(key: str, tmp_path) -> None:
    graph = tmp_path / "named.gml"
    nodes = "".join(f'node [ id {i} label "{name}" ] ' for i, name in enumerate(NAMES))
    graph.write_text(f"graph [ {nodes} edge [ source 0 target 1 ] edge [ source 1 target 2 ] ]")
    with pytest.raises(InputError, match=r"topology\.nodes: order gives agents the names"):
        Scenario.from_dict(tree(str(graph), key, MAPPINGS[key]))
    Scenario.from_dict(tree(str(graph), key, MAPPINGS[key], nodes="order"))
    # It is no cure for a name that no node has.
    wrong = str(MAPPINGS[key]).replace("'b'", "'zz'")
    with pytest.raises(InputError) as refused:
        Scenario.from_dict(tree(str(graph), key, eval(wrong)))
    assert "nodes: order" not in str(refused.value)
