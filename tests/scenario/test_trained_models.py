"""``learning.model``: which algorithms train it, and when it takes a loss."""

import pytest
from language import VALID, messages

from p2psim.learning.models import Linear
from p2psim.learning.star.algorithms import AsyncStar
from p2psim.scenario.model import Scenario
from p2psim.scenario.rules import check_consistency

LOSS = "  loss: {kind: squared}\n"


def with_model(model: str, loss: str = "") -> str:
    """The valid scenario with another model, and a loss or none."""
    return VALID.replace(LOSS, f"  model: {model}\n{loss}")


@pytest.fixture
def any_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the algorithm trained any model."""
    monkeypatch.setattr(AsyncStar, "trains_any_model", True)


def test_linear_models_are_the_default() -> None:
    scenario = Scenario.parse(VALID)
    assert scenario.learning.model == Linear()
    assert scenario.resolved()["learning"]["model"] == {"kind": "linear"}
    assert Scenario.parse(with_model("linear", LOSS)) == scenario
    assert scenario.learning.trained_model.loss == scenario.learning.loss


@pytest.mark.parametrize("model", ["softmax", "{kind: mlp, layers: [3]}"])
@pytest.mark.parametrize("loss", ["", LOSS])
def test_algorithms_of_linear_models_refuse_others(model: str, loss: str) -> None:
    text = with_model(model, loss)
    kind = "mlp" if "mlp" in model else "softmax"
    assert [m for m in messages(text) if "learning" in m] == [
        f"s.yaml:16:10: learning.model: async-star trains linear models only, got {kind}"
    ]


def test_linear_models_need_a_loss() -> None:
    for text in (VALID.replace(LOSS, ""), with_model("linear"), VALID.replace(LOSS, "  loss: null\n")):
        what = "learning.loss: is missing; a linear model needs the loss of its score, such as squared"
        assert {said.partition(" ")[2] for said in messages(text)} == {what}


def test_a_missing_loss_hides_nothing_else() -> None:
    said = messages(VALID.replace(LOSS, "").replace("l2: 1e-5", "l2: 0"))
    assert len(said) == 2
    assert "must be a positive number, got 0" in " ".join(said)


@pytest.mark.usefixtures("any_model")
def test_other_models_take_no_loss() -> None:
    (said,) = messages(with_model("softmax", LOSS).replace("y: {center: true}", "y: null"))
    assert "learning.loss: is for linear models; softmax has its own loss: remove loss" in said


@pytest.mark.usefixtures("any_model")
def test_labels_of_classes_are_not_scaled() -> None:
    scenario = Scenario.parse(VALID)
    learning = Scenario.parse(with_model("softmax").replace(", y: {center: true}", "")).learning
    assert learning.loss is None
    assert "loss" not in learning.model_dump(exclude_none=True)
    said = [str(fault) for fault in check_consistency(scenario.model_copy(update={"learning": learning}))]
    assert said == ["data.scale.y: softmax takes classes, which are not scaled"]


@pytest.mark.usefixtures("any_model")
def test_a_scenario_without_a_loss_survives_being_written() -> None:
    scenario = Scenario.parse(with_model("{kind: mlp, layers: [3, 2]}").replace(", y: {center: true}", ""))
    tree = scenario.resolved()["learning"]
    assert tree["model"] == {"kind": "mlp", "layers": [3, 2], "activation": "relu"}
    assert "loss" not in tree
    assert Scenario.parse(scenario.to_yaml()) == scenario


def test_what_a_perceptron_needs() -> None:
    for model in ("mlp", "{kind: mlp, layers: []}", "{kind: mlp, layers: [0]}"):
        assert any("learning.model" in said for said in messages(with_model(model)))
