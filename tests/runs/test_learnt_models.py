"""A model that a run learnt takes records as the source has them, and says labels in their units."""

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
    with pytest.raises(InputError, match="is no saved model"):
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


@pytest.mark.parametrize("change", ["cut", "flip", "empty", "nan"])
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
    path.write_bytes({"cut": content[:-40], "empty": b""}.get(change, content))
    with pytest.raises(InputError, match="is no saved model"):
        LearntModel.load(path)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda result, table: result.model(agent="north"), "the index of an agent is expected, got 'north'"),
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
        (lambda result, table: result.model(step=21), "no model was recorded at 21"),
        (lambda result, table: result.model(agent=1), "the learner's model is the only one"),
        (lambda result, table: result.model().predict(table.drop(columns="b")), "columns are missing: b"),
        (lambda result, table: result.model().predict(table.assign(b="x")), "'b' must hold numbers"),
        (lambda result, table: result.model().predict(np.ones((2, 5))), "3 columns are expected, got 5"),
        (lambda result, table: result.model().predict(table.assign(b=np.inf)), "finite"),
    ],
)
def test_what_cannot_be_is_refused(act: Any, message: str, loans: Path, numbers: p2psim.Result) -> None:
    with pytest.raises(InputError, match=message):
        act(numbers, pd.read_csv(loans))
