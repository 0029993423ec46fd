"""Classes and held-out records in the data that cells share."""

import numpy as np
import pytest
from graph_cases import graph_scenario
from star_cases import scenario

from p2psim.core.errors import MeaningError
from p2psim.simulation.simulate import simulate
from p2psim.simulation.workspace import Workspace

FRUITS = ["fig", "pear", "plum", "pear", "fig", "pear"]


@pytest.fixture
def fruits(tmp_path):
    """A CSV file with a column of three classes."""
    path = tmp_path / "fruits.csv"
    rows = [f"{(i * i) % 7},{i % 5},{FRUITS[i % 6]}" for i in range(180)]
    path.write_text("\n".join(["a,b,fruit", *rows]) + "\n")
    return {"kind": "csv", "path": str(path), "y": "fruit"}


def of_star(source, **data):
    return scenario(
        {"data": {"source": source, "partition": "equal", **data}, "learning.loss": {"kind": "logistic"}}
    )


def of_graph(source, **data):
    changes = {
        "data": {"source": source, "partition": "equal", **data},
        "privacy.sensitivity": {"kind": "clip", "norm": "l1", "bound": 1.0},
        "record.metrics": ["objective"],
    }
    return graph_scenario(changes)


@pytest.mark.parametrize("of", [of_star, of_graph])
@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_losses_of_linear_models_refuse_more_than_two_classes(of, loss, fruits, tmp_path):
    one = of(fruits, classes="all")
    tree = one.resolved()
    tree["learning"]["loss"] = {"kind": loss}
    with pytest.raises(MeaningError) as caught:
        Workspace(tmp_path / "w").case(type(one).from_dict(tree), 0)
    assert str(caught.value) == (
        f"learning.loss: {loss} is for numbers or two classes; these labels are 3 classes: choose two of them, such as "
        "data.classes: [fig, pear]"
    )


@pytest.mark.parametrize("of", [of_star, of_graph])
def test_a_case_says_how_its_classes_are_called(of, fruits, tmp_path):
    """Whether it is in memory or was read from a folder."""
    for folder in (None, tmp_path / "w"):
        named = Workspace(folder).case(of(fruits, classes=["plum", "pear"]), 0)
        assert named.class_names == ("plum", "pear")
        assert named.class_count == 2
        assert set(named.arrays["y"].tolist()) == {-1.0, 1.0}
    numbers = scenario({"data.source.points": 20})
    assert Workspace(None).case(numbers, 0).class_count == 0
    signs = Workspace(None).case(graph_scenario(), 0)
    assert signs.class_names == ("-1", "1")
    assert "classes" not in signs.arrays


@pytest.mark.parametrize("of", [of_star, of_graph])
def test_records_held_out_reach_the_case(of, fruits, tmp_path):
    case = Workspace(tmp_path / "w").case(of(fruits, classes=["fig", "pear"], test_fraction=0.25), 0)
    held_out = case.arrays["test_y"].size
    assert held_out == case.arrays["test_offsets"][-1] == len(case.arrays["test_X"])
    assert held_out == pytest.approx((case.arrays["y"].size + held_out) / 4, abs=5)
    assert case.arrays["test_X"].shape[1] == case.arrays["X"].shape[1]


def test_a_star_without_held_out_records_has_no_arrays_of_them(fruits):
    assert "test_X" not in Workspace(None).case(of_star(fruits, classes=["fig", "pear"]), 0).arrays
    intercept = of_star(fruits, classes=["fig", "pear"], test_fraction=0.2).resolved()
    intercept["learning"]["loss"] = {"kind": "hinge"}
    one = type(of_star(fruits)).from_dict(intercept)
    assert (np.asarray(Workspace(None).case(one, 0).arrays["test_X"])[:, -1] == 1).all()


def test_signs_are_two_classes_of_a_model_of_classes(tmp_path):
    """One step of softmax regression from zero along the mean of x·(1/2 − 1[its class]): of labels ±1 without names."""
    tree = {
        "name": "signs",
        "network": {"topology": {"kind": "star", "agents": 2}, "exchange": "round"},
        "data": {"source": {"kind": "linear-classification", "dimension": 3, "points": 20}},
        "learning": {
            "algorithm": {"kind": "fedavg", "step": 0.5, "commits": 1},
            "model": "softmax",
            "regularizer": {"l2": 0.01},
        },
        "record": {"metrics": ["objective"], "models": True},
    }
    made, workspace = type(scenario({})).from_dict(tree), Workspace(tmp_path)
    case, outcome = workspace.case(made, 0), simulate(made, 0, workspace)
    assert case.class_names == ("-1", "1")
    X, y = np.column_stack([case.arrays["X"], np.ones(40)]), case.arrays["y"]
    weights = [-0.5 * (X * (0.5 - (y == c))[:, None]).mean(axis=0) for c in (0, 1)]
    expected = np.concatenate([*(w[:3] for w in weights), [w[3] for w in weights]])
    np.testing.assert_allclose(outcome.models[-1].squeeze(), expected, rtol=1e-12)
