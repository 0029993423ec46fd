"""Numbers that floating point cannot compute with are refused by their key; no warning of NumPy passes."""

import copy

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from p2psim.core.errors import InputError
from p2psim.runs.checking import check_scenario
from p2psim.scenario.model import Scenario

STAR = {
    "name": "extreme",
    "network": {"topology": {"kind": "star", "agents": 3}, "exchange": {"kind": "request"}},
    "data": {
        "source": {
            "kind": "linear-regression",
            "dimension": 2,
            "points": 5,
            "noise": 0.1,
            "x": {"kind": "l1-ball", "radius": 1.0},
            "targets": {"kind": "common", "norm": 1.0},
        }
    },
    "learning": {
        "algorithm": {"kind": "async-star", "horizon": 20, "rho": 1.0, "theta_max": 10.0},
        "loss": "squared",
        "regularizer": {"l2": 0.1},
    },
    "privacy": {"mechanism": "laplace", "epsilon": 1.0, "sensitivity": {"kind": "clip", "bound": 1.0}},
}
POLL = STAR | {"network": STAR["network"] | {"exchange": {"kind": "poll", "interval": 1.0}}}
OPEN = STAR | {"privacy": {"mechanism": "none"}}
GRAPH = STAR | {
    "network": {
        "topology": {"kind": "complete", "agents": 3},
        "exchange": {"kind": "broadcast"},
        "clock": {"rate": 1.0},
    },
    "learning": STAR["learning"]
    | {"algorithm": {"kind": "coordinate-descent", "mu": 1.0, "updates_per_agent": 3}},
    "privacy": STAR["privacy"] | {"allocation": {"kind": "cap", "releases": 3}},
}
HINGE = OPEN | {
    "data": {"source": {"kind": "linear-classification", "dimension": 2, "points": 5}},
    "learning": OPEN["learning"] | {"loss": "hinge"},
}
LOGISTIC = HINGE | {"learning": OPEN["learning"] | {"loss": "logistic"}}
TREES = {"star": STAR, "poll": POLL, "open": OPEN, "graph": GRAPH, "hinge": HINGE, "logistic": LOGISTIC}


def keys_of(tree, inside=()):
    """Keys of numbers with a fraction."""
    for name, value in tree.items():
        if isinstance(value, dict):
            yield from keys_of(value, (*inside, name))
        elif isinstance(value, float):
            yield (*inside, name)


def put(tree, key, value):
    made = inner = copy.deepcopy(tree)
    for name in key[:-1]:
        inner = inner[name]
    inner[key[-1]] = value
    return made


def outcome(tree):
    """Faults, if there are any."""
    try:
        check_scenario(Scenario.from_dict(tree), "extreme")
    except InputError as error:
        return error.faults
    return []


@pytest.mark.parametrize("name", TREES)
@settings(max_examples=15, deadline=None)
@given(
    data=st.data(),
    value=st.sampled_from([5e-324, 1e-200, 1e-30, 1e30, 1e154, 1e200, 1.7e308])
    | st.floats(min_value=5e-324, allow_infinity=False, allow_nan=False),
)
def test_a_legal_number_is_computed_with_or_refused_by_its_key(name, data, value):
    key = data.draw(st.sampled_from(list(keys_of(TREES[name]))))
    for fault in outcome(put(TREES[name], key, value)):
        assert fault.key, fault
        assert "\n" not in fault.message
        assert not any(word in fault.message for word in ("Error", "encountered in", "NaN", "numpy"))


@pytest.mark.parametrize(
    ("key", "value", "size"),
    [
        ("learning.regularizer.l2", 1e308, "large"),
        ("learning.regularizer.l2", 1e-320, "small"),
        ("data.source.x.radius", 1e200, "large"),
        ("data.source.noise", 1e200, "large"),
    ],
)
def test_the_number_furthest_from_one_is_named(key, value, size):
    (fault,) = outcome(put(OPEN, key.split("."), value))
    assert fault.key == key
    assert f"is {value:g}, which is too {size}" in fault.message


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    column=st.lists(st.sampled_from([2**63 - 1, 2**63 - 2, 2**62, 5, -(2**63)]), min_size=9, max_size=9),
    other=st.sampled_from([1.0, 1e-12, 2.0**63, 1e160, 1e300]),
    tree=st.sampled_from([OPEN, GRAPH, HINGE | {"data": {}}]),
)
@example([2**63 - 1] * 9, 2.0**63, OPEN)
def test_columns_of_any_size_are_learned_from_or_said_to_be_out_of_scale(kind, tmp_path, column, other, tree):
    y = [1.0, -1.0, 1.0] * 3
    table = pa.table(
        {"id": column, "b": [other] * 9, "c": np.linspace(0, 1, 9), "y": y, "owner": [0, 1, 2] * 3}
    )
    path = tmp_path / f"t.{kind}"
    pq.write_table(table, path) if kind == "parquet" else table.to_pandas().to_csv(path, index=False)
    source = {"kind": kind, "path": str(path), "y": "y"}
    data = {"source": source, "partition": {"kind": "column", "column": "owner"}}
    faults = outcome(tree | {"data": data})
    assert all(fault.key == "data" and "scale them" in fault.message for fault in faults), faults
