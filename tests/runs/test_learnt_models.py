"""A model that a run learnt takes records as the source has them, and says labels in their units."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import p2psim
from p2psim.core.errors import InputError
from p2psim.runs.learnt import LearntModel

ROWS = 400


@pytest.fixture(scope="module")
def loans(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table whose column c never varies, and whose label has units."""
    random = np.random.default_rng(5)
    a, b = random.normal(50, 9, ROWS), random.exponential(3, ROWS)
    table = pd.DataFrame({"a": a, "c": 7.0, "b": b, "rate": 12 + 0.2 * a - b + random.normal(0, 0.5, ROWS)})
    table["good"] = np.where(table["rate"] > table["rate"].median(), "yes", "no")
    path = tmp_path_factory.mktemp("loans") / "loans.csv"
    table.to_csv(path, index=False)
    return path


def run(
    loans: Path, folder: Path, source: dict[str, Any], data: dict[str, Any], **learning: Any
) -> p2psim.Result:
    scenario = {
        "name": "loans", "replicas": 1,
        "network": {"topology": {"kind": "star", "agents": 3}, "exchange": "request"},
        "data": {
            "source": {"kind": "csv", "path": str(loans), "x": ["a", "c", "b"], **source}, "public": {"last": 100},
            "features": ["standardise", "whiten"], "partition": "equal", **data,
        },
        "learning": {
            "algorithm": {"kind": "async-star", "horizon": 60, "rho": {"h": 0.3}, "theta_max": 30},
            "regularizer": {"l2": 1e-3}, **learning,
        },
        "record": {"metrics": ["relative_fitness"], "every": 20, "models": True, "data": True},
    }  # fmt: skip
    return p2psim.run(p2psim.Scenario.from_dict(scenario), folder, jobs=1, progress=False)


@pytest.fixture(scope="module")
def numbers(loans: Path, tmp_path_factory: pytest.TempPathFactory) -> p2psim.Result:
    data = {"scale": {"x": {"at": 9.0}, "y": {"bound": 1.0}}}
    return run(
        loans,
        tmp_path_factory.mktemp("numbers") / "run",
        {"y": "rate"},
        data,
        loss={"kind": "squared", "intercept": True},
    )


@pytest.fixture(scope="module")
def classes(loans: Path, tmp_path_factory: pytest.TempPathFactory) -> p2psim.Result:
    data = {"classes": "all", "scale": {"x": {"at": 9.0}}}
    return run(
        loans,
        tmp_path_factory.mktemp("classes") / "run",
        {"y": "good"},
        data,
        loss={"kind": "logistic", "intercept": True},
    )


def test_features_are_those_of_the_preparation(loans: Path, numbers: p2psim.Result) -> None:
    """Each of the owners' records is one of the table's rows, mapped."""
    mapped = numbers.model().records(pd.read_csv(loans))
    owners = numbers.data(0, 0)["X"][:, :-1]
    distances = np.abs(mapped[None] - owners[:, None]).max(axis=2).min(axis=1)
    assert distances.max() < 1e-12


def test_predictions_are_in_units_of_the_labels(loans: Path, numbers: p2psim.Result) -> None:
    table, model = pd.read_csv(loans), numbers.model()
    rows = table[["a", "c", "b"]].to_numpy()
    prepared = np.column_stack([model.records(table), np.ones(ROWS)])
    y = numbers.described.fitted[numbers.described.cells[0].content]["scale"]["y"]
    expected = (prepared @ numbers.models[0, 0][-1]) * y["divisor"] + y["mean"]
    assert model.predict(table) == pytest.approx(expected, rel=1e-12)
    assert model.predict(rows) == pytest.approx(expected, rel=1e-12)
    assert model.score(table, table["rate"]) == pytest.approx(
        1 - np.sum((table["rate"] - expected) ** 2) / np.sum((table["rate"] - table["rate"].mean()) ** 2)
    )
    assert not np.allclose(numbers.model(step=20).theta, model.theta)


def test_a_saved_model_says_the_same(loans: Path, numbers: p2psim.Result, tmp_path: Path) -> None:
    numbers.model().save(tmp_path / "model.npz")
    table = pd.read_csv(loans)
    assert np.array_equal(
        LearntModel.load(tmp_path / "model.npz").predict(table), numbers.model().predict(table)
    )
    (tmp_path / "other.npz").write_bytes(b"nothing")
    # NumPy's own words would show how to load a pickle.
    with pytest.raises(InputError, match=r"is not a saved model \(LearntModel.save wrote no such file\)$"):
        LearntModel.load(tmp_path / "other.npz")


@pytest.mark.parametrize("kind", ["numbers", "classes"])
def test_scikit_learn_says_the_same(kind: str, loans: Path, request: pytest.FixtureRequest) -> None:
    """But for records that scaling pulls onto its ball: at radius 9 there are none."""
    model = request.getfixturevalue(kind).model()
    table = pd.read_csv(loans)[["a", "c", "b"]]
    estimator = model.to_sklearn()
    if kind == "numbers":
        assert estimator.predict(table) == pytest.approx(model.predict(table), rel=1e-9)
    else:
        assert (estimator.predict(table) == model.predict(table)).all()
        assert estimator.decision_function(table) == pytest.approx(model.decision_function(table), rel=1e-9)
        assert set(model.predict(table)) == {"no", "yes"}
        assert model.score(table, pd.read_csv(loans)["good"]) > 0.6


def test_an_agent_is_known_by_its_index_and_by_its_label(loans: Path, tmp_path: Path) -> None:
    table = pd.read_csv(loans).assign(bank=np.resize(["north", "1", "south", "0"], ROWS))
    table.to_csv(tmp_path / "banks.csv", index=False)
    links = tmp_path / "links.edges"
    links.write_text("north 1\n1 south\nsouth 0\n0 north\n")
    scenario = {
        "name": "banks", "replicas": 1,
        "network": {"topology": {"kind": "file", "path": str(links)}, "exchange": "gossip"},
        "data": {
            "source": {"kind": "csv", "path": str(tmp_path / "banks.csv"), "x": ["a", "b"], "y": "rate"},
            "public": {"last": 100}, "features": ["standardise"], "scale": {"y": {}},
            "partition": {"kind": "column", "column": "bank"},
        },
        "learning": {
            "algorithm": {"kind": "coordinate-descent", "mu": 0.1, "commits": 40},
            "loss": "squared", "regularizer": {"l2": 1e-2},
        },
        "record": {"metrics": ["objective"], "models": True},
    }  # fmt: skip
    result = p2psim.run(p2psim.Scenario.from_dict(scenario), tmp_path / "run", jobs=1, progress=False)
    labels = result.agents.sort_values("index")["label"].tolist()
    assert sorted(labels) == ["0", "1", "north", "south"]
    models = [result.model(agent=label).theta for label in labels]
    assert np.array_equal(models, result.models[0, 0][-1])
    assert np.array_equal(models, [result.model(agent=i).theta for i in range(4)])
    with pytest.raises(InputError, match=r"no agent has the label 'east'; the labels are .*north"):
        result.model(agent="east")
    # A prediction needs no graph: another file in its place is no reason to refuse a saved model.
    model = result.model(agent="north")
    model.save(tmp_path / "north.npz")
    links.write_text("north 1\n")
    assert np.array_equal(LearntModel.load(tmp_path / "north.npz").predict(table), model.predict(table))


def test_a_saved_model_needs_no_other_file(loans: Path, numbers: p2psim.Result, tmp_path: Path) -> None:
    """The table may be gone, and no other scenario is read."""
    path, other = tmp_path / "model.npz", tmp_path / "other.npz"
    numbers.model().save(path)
    table, expected = pd.read_csv(loans), numbers.model().predict(pd.read_csv(loans))
    moved = loans.rename(tmp_path / "moved.csv")
    try:
        assert np.array_equal(LearntModel.load(path).predict(table), expected)
    finally:
        moved.rename(loans)
    base = tmp_path / "base.yaml"
    base.write_text(numbers.model().scenario.to_yaml())
    replace(numbers.model(), scenario=Extending(f"name: x\nextends: {base}\n")).save(other)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"is not a saved model .*extends another file"):
        LearntModel.load(other)


class Extending:
    """A scenario that says it is another file's."""

    def __init__(self, text: str):
        self.text = text

    def to_yaml(self) -> str:
        return self.text


def test_random_features_have_no_coefficients_of_columns(loans: Path, tmp_path: Path) -> None:
    data = {
        "features": ["standardise", {"kind": "random-fourier", "components": 4}],
        "scale": {"y": {"bound": 1.0}},
    }
    model = run(loans, tmp_path / "run", {"y": "rate"}, data, loss="squared").model()
    table = pd.read_csv(loans)
    assert np.isfinite(model.predict(table)).all()
    with pytest.raises(InputError, match=r"data\.features: random-fourier is not linear"):
        model.coefficients()
    assert model.to_sklearn().predict(table) == pytest.approx(model.predict(table), rel=1e-9)


@pytest.mark.parametrize("kind", ["numbers", "classes"])
@pytest.mark.parametrize("at", [0.4, {"quantile": 0.3}, None])
def test_scikit_learn_says_the_same_of_records_that_scaling_shortens(
    kind: str, at: Any, loans: Path, tmp_path: Path
) -> None:
    """Of any record, far outside too; where nothing shortens, the estimator has coefficients of columns."""
    data = {"scale": {"x": None if at is None else {"at": at}, "y": {"bound": 1.0}}}
    loss = {"kind": "squared" if kind == "numbers" else "logistic", "intercept": True}
    if kind == "classes":
        data = {"classes": "all", "scale": {"x": data["scale"]["x"]}}
    y = "rate" if kind == "numbers" else "good"
    result = run(loans, tmp_path / "run", {"y": y}, data, loss=loss)
    model, table = result.model(), pd.read_csv(loans)
    far = pd.concat([table, table.assign(a=1e6), table.assign(b=-1e3)], ignore_index=True)
    far = far[["a", "c", "b"]]
    estimator = model.to_sklearn()
    if kind == "numbers":
        assert estimator.predict(far) == pytest.approx(model.predict(far), rel=1e-9, abs=1e-6)
    else:
        assert estimator.predict(far).tolist() == model.predict(far).tolist()
    assert hasattr(estimator, "coef_") == (at is None)
    shortened = [text for text in result.warnings if text.startswith("data.scale.x: ")]
    # Of whitened features with ‖x‖₁ of 1.6 in the mean, most are above 0.4; 70 % above the quantile are as said.
    assert len(shortened) == (at == 0.4)
    for text in shortened:
        count, records = map(int, re.findall(r"(\d+) of (\d+) training records", text)[0])
        norms = np.abs(model.records(table)).sum(axis=1)
        assert records == 300
        assert 0.5 < count / records < 1
        assert count == pytest.approx(np.sum(norms > 1 - 1e-9) * 300 / ROWS, abs=25)


def test_classes_are_scored_by_name_or_by_number(loans: Path, tmp_path: Path) -> None:
    """Classes 0 and 1, given as numbers of any type, as text, or as one column."""
    table = pd.read_csv(loans)
    table["good"] = (table["good"] == "yes").astype(int)
    table.to_csv(tmp_path / "coded.csv", index=False)
    data = {"classes": "all", "scale": {"x": {"at": 9.0}}}
    loss = {"kind": "logistic", "intercept": True}
    model = run(tmp_path / "coded.csv", tmp_path / "run", {"y": "good"}, data, loss=loss).model()
    share = float(np.mean(model.predict(table).astype(int) == table["good"]))
    assert 0.5 < share < 1
    for labels in (
        table["good"],
        table["good"].astype(float),
        table["good"].astype(bool),
        table["good"].astype(str),
    ):
        assert model.score(table, labels) == share
    assert model.score(table, table[["good"]]) == share
    for labels in (table["good"][:-1], np.where(table["good"] > 0, np.nan, 0.0)):
        with pytest.raises(InputError, match="labels: "):
            model.score(table, labels)


@pytest.mark.parametrize("change", ["cut", "flip", "empty", "nan", "theta", "preparation", "unsealed"])
def test_damaged_files_are_refused(change: str, numbers: p2psim.Result, tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    numbers.model().save(path)
    content = bytearray(path.read_bytes())
    if change == "flip":
        content[len(content) // 2] ^= 255
    elif change == "nan":
        model = numbers.model()
        model.theta[0] = np.nan
        model.save(path)
        content = bytearray(path.read_bytes())
    elif change in ("theta", "preparation", "unsealed"):
        # As another program would write them: each part of the archive is whole.
        with np.load(path) as archive:
            parts = dict(archive)
        if change == "theta":
            parts["theta"] = parts["theta"] * (1 + 1e-15)
        elif change == "preparation":
            parts["described"] = np.array(str(parts["described"]).replace('"radius": 9.0', '"radius": 8.0'))
        else:
            del parts["sha256"]
        np.savez(path, **parts)
        content = bytearray(path.read_bytes())
    path.write_bytes({"cut": content[:-40], "empty": b""}.get(change, content))
    with pytest.raises(InputError, match="is not a saved model"):
        LearntModel.load(path)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (
            lambda result, table: result.model(agent=1.5),
            "the index or the label of an agent is expected, got 1.5",
        ),
        (lambda result, table: result.model(agent="north"), "the learner's model is the only one"),
        (lambda result, table: result.model().predict(np.ones((2, 3)) * 1j), "real numbers are expected"),
        (
            lambda result, table: result.model().predict(np.ma.masked_equal(np.ones((2, 3)), 1)),
            "real numbers",
        ),
        (lambda result, table: result.model().predict([["a", "b", "c"]]), "must hold numbers"),
        (
            lambda result, table: result.model().score(table, ["x"] * len(table)),
            "labels: numbers are expected",
        ),
        (lambda result, table: result.model(replica=4), "no model of cell 0, replica 4"),
        (lambda result, table: result.model(step=21), "no model was recorded at 21; recorded: "),
        (lambda result, table: result.model(agent=1), "the learner's model is the only one"),
        (lambda result, table: result.model().predict(table.drop(columns="b")), "columns are missing: b"),
        (lambda result, table: result.model().predict(table.assign(b="x")), "'b' must hold numbers"),
        (lambda result, table: result.model().predict(np.ones((2, 5))), "3 columns are expected, got 5"),
        (lambda result, table: result.model().predict(table.assign(b=np.inf)), "finite"),
        (
            lambda result, table: replace(result.model(), theta=np.full(3, 1.7e308)).predict(table),
            r"records: numbers overflow in row \d",
        ),
    ],
)
def test_what_cannot_be_is_refused(act: Any, message: str, loans: Path, numbers: p2psim.Result) -> None:
    with pytest.raises(InputError, match=message):
        act(numbers, pd.read_csv(loans))
