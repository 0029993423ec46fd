from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from ruamel.yaml import YAML
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

from p2psim.core.errors import MeaningError
from p2psim.data.prepare import prepare
from p2psim.data.section import DataSection

SCENARIOS = Path(__file__).parents[2] / "scenarios"


def generate(seed=0, replica=0, agents=None, section=(), **source):
    tree = {"source": {"kind": "linear-classification", **source}, **dict(section)}
    return prepare(DataSection.model_validate(tree), seed, replica, agents=agents)


def owned(data, owner):
    rows, tests = slice(*data.offsets[owner : owner + 2]), slice(*data.test_offsets[owner : owner + 2])
    return data.X[rows], data.y[rows], data.test_X[tests], data.test_y[tests]


def test_shapes_and_bounds():
    data = generate(agents=3, dimension=4, points={0: 5, "1": 6, 2: 7}, test_points=9)
    assert data.offsets.tolist() == [0, 5, 11, 18]
    assert data.test_offsets.tolist() == [0, 9, 18, 27]
    assert (data.X.shape, data.test_X.shape, data.targets.shape) == ((18, 4), (27, 4), (3, 4))
    assert (data.x_l1, data.x_max, data.y_max, data.class_count) == (4.0, 1.0, 1.0, 2)
    assert data.X.flags.c_contiguous
    assert data.test_X.flags.c_contiguous
    assert data.profiles is None
    assert data.data_dependent == ()
    assert generate(agents=2, dimension=3, test_points=0).test_offsets.tolist() == [0, 0, 0]


@pytest.mark.parametrize("x", ["uniform", "gaussian", "l1-ball", {"kind": "uniform", "bound": 10.0}])
def test_labels_are_the_sign_of_the_agents_own_model(x):
    data = generate(agents=5, dimension=6, points=40, label_noise=0.0, x=x)
    for owner, target in enumerate(data.targets):
        X, y, test_X, test_y = owned(data, owner)
        assert (y == np.sign(X @ target)).all()
        assert (test_y == np.sign(test_X @ target)).all()


def test_training_labels_are_flipped_with_the_probability_asked_for_and_test_labels_never():
    """40,000 labels at .2: standard error .002, so .01 is 5 of them (false alarm below 1e-6)."""
    data = generate(agents=40, dimension=3, points=1000, label_noise=0.2)
    right = np.concatenate([owned(data, i)[0] @ data.targets[i] for i in range(40)])
    assert np.mean(data.y != np.sign(right)) == pytest.approx(0.2, abs=0.01)
    right = np.concatenate([owned(data, i)[2] @ data.targets[i] for i in range(40)])
    assert (data.test_y == np.sign(right)).all()
    assert (generate(agents=2, label_noise=1.0).y == -generate(agents=2, label_noise=0.0).y).all()


@given(st.integers(0, 100), st.integers(1, 6), st.sampled_from(["subspace", "common"]))
@settings(deadline=None, max_examples=20)
def test_an_owners_records_depend_on_nobody_else(seed, more, targets):
    options = {"dimension": 3, "points": {"uniform": [2, 9]}, "test_points": 4, "targets": targets}
    few, many = generate(seed, agents=2, **options), generate(seed, agents=2 + more, **options)
    for owner in range(2):
        for one, other in zip(owned(few, owner), owned(many, owner), strict=True):
            assert one.tobytes() == other.tobytes()
    assert (few.targets == many.targets[:2]).all()
    assert few.X.tobytes() != generate(seed, 1, agents=2, **options).X.tobytes()


def test_numbers_of_records_take_both_ends_and_all_between_equally_often():
    """3,000 draws of 6 numbers: chi-square of 5 degrees above 25.7 has probability 1e-4."""
    sizes = np.diff(generate(agents=3000, dimension=2, points={"uniform": [10, 15]}, test_points=0).offsets)
    counts = np.bincount(sizes, minlength=16)[10:]
    assert counts.sum() == 3000
    assert ((counts - 500) ** 2 / 500).sum() < 25.7


def test_targets_in_a_subspace():
    """Mean squares of 4,000 normals: relative standard error √(2/n) = 2.2 %, so 12 % is 5 of them."""
    targets = generate(agents=4000, dimension=5, points=1, test_points=0).targets
    np.testing.assert_allclose((targets**2).mean(axis=0), [0.5, 0.5, 0, 0, 0], rtol=0.12)
    wide = generate(
        agents=4000, dimension=5, points=1, test_points=0, targets={"kind": "subspace", "dimension": 5}
    ).targets
    np.testing.assert_allclose((wide**2).mean(axis=0), 0.2, rtol=0.12)


def test_targets_around_a_common_one():
    options = {"agents": 4000, "dimension": 5, "points": 1, "test_points": 0}
    same = generate(**options, targets="common").targets
    assert (same == same[0]).all()
    assert np.linalg.norm(same[0]) == pytest.approx(1)
    own = generate(**options, targets={"kind": "common", "spread": 0.3}).targets - same
    # Standard errors: of a coordinate's mean .3/√(5·4000) = .0021; of mean squares as above.
    np.testing.assert_allclose(own.mean(axis=0), 0, atol=0.011)
    np.testing.assert_allclose((own**2).mean(axis=0), 0.3**2 / 5, rtol=0.12)


def test_public_rows_are_of_one_more_person():
    section = {"public": {"last": 200}, "features": ["standardise"]}
    alone, with_public = generate(agents=2), generate(agents=2, section=section)
    assert alone.y.tobytes() == with_public.y.tobytes()
    mean = np.array(with_public.fitted["features"][0]["mean"])
    np.testing.assert_allclose(
        with_public.test_X,
        (alone.test_X - mean) / np.array(with_public.fitted["features"][0]["std"]),
        rtol=1e-12,
    )


def test_each_record_is_normalised_in_training_and_test_alike():
    section = {"scale": {"x": {"norm": "l1", "bound": 1.0, "at": "each-record"}}}
    data, raw = generate(agents=4, section=section), generate(agents=4)
    for scaled, before in ((data.X, raw.X), (data.test_X, raw.test_X)):
        np.testing.assert_allclose(scaled, before / np.abs(before).sum(axis=1, keepdims=True), rtol=1e-13)
        assert (np.abs(scaled).sum(axis=1) <= 1).all()
    assert data.x_l1 == 1.0


@pytest.mark.parametrize(("name", "agents"), [("personalised_graph", 100), ("dropout_topology", 60)])
def test_the_scenarios_are_prepared_as_written(name, agents):
    tree = YAML(typ="safe").load(SCENARIOS / f"{name}.yaml")["data"]
    data = prepare(DataSection.model_validate(tree), 0, 0, agents=agents)
    low, high = tree["source"]["points"]["uniform"]
    sizes = np.diff(data.offsets)
    assert low <= sizes.min() < sizes.max() <= high
    assert (np.diff(data.test_offsets) == 100).all()
    assert (data.x_l1, data.class_count, data.X.shape[1]) == (1.0, 2, 10)


@pytest.mark.parametrize(
    ("source", "agents", "key"),
    [
        (
            {"dimension": 3, "targets": {"kind": "subspace", "dimension": 4}},
            2,
            "data.source.targets.dimension",
        ),
        ({}, None, "data.source.agents"),
        ({"agents": 3}, 2, "data.source.agents"),
        ({"points": {"uniform": [1.2, 1.8]}}, 2, "data.source.points"),
        ({"points": {"uniform": [0, 0]}}, 2, "data.source.points"),
        ({"points": {"0": 5}}, 2, "data.source.points"),
    ],
)
def test_refused(source, agents, key):
    with pytest.raises(MeaningError) as caught:
        generate(agents=agents, **source) if "agents" not in source else prepare(
            DataSection.model_validate({"source": {"kind": "linear-classification", **source}}),
            0,
            0,
            "",
            agents,
        )
    assert [fault.key for fault in caught.value.faults] == [key]


@pytest.mark.parametrize(
    "source",
    [
        {"label_noise": 1.5},
        {"test_points": -1},
        {"targets": "isotropic"},
        {"targets": {"kind": "common", "spread": -1}},
    ],
)
def test_malformed(source):
    with pytest.raises(ValidationError):
        generate(agents=2, **source)


def fit(X, y):
    """Logistic regression with ‖θ‖²/m, by a general-purpose minimiser."""

    def objective(theta):
        margins = y * (X @ theta)
        slopes = -y / (1 + np.exp(margins))
        value = np.logaddexp(0, -margins).mean() + theta @ theta / len(y)
        return value, X.T @ slopes / len(y) + 2 * theta / len(y)

    return minimize(objective, np.zeros(X.shape[1]), jac=True, method="L-BFGS-B").x


@pytest.mark.verification
@pytest.mark.parametrize(("dimension", "known"), [(20, 0.829), (50, 0.743), (100, 0.681)])
def test_local_models_are_as_accurate_as_known(dimension, known):
    """Known from an independent computation; means over 4 replicas of 100 agents, within .02."""
    accuracies = []
    with threadpool_limits(limits=1):
        for replica in range(4):
            data = generate(7, replica, agents=100, dimension=dimension, points={"uniform": [10, 100]})
            for owner in range(100):
                X, y, test_X, test_y = owned(data, owner)
                accuracies.append(np.mean(np.sign(test_X @ fit(X, y)) == test_y))
    assert np.mean(accuracies) == pytest.approx(known, abs=0.02)


@pytest.mark.parametrize("targets", [{"kind": "common", "spread": 0.3}, {"kind": "subspace", "dimension": 3}])
def test_agents_draw_the_same_records_among_few_and_among_many(targets):
    """Compiled code draws for many agents, NumPy for few; of so many normal numbers some are in a tail."""
    source = {"dimension": 6, "points": 3, "test_points": 2, "targets": targets}
    few, many = generate(agents=9_999, **source), generate(agents=10_001, **source)
    assert (many.X[: len(few.X)] == few.X).all()
    assert (few.y == many.y[: len(few.y)]).all()
    assert (few.test_X == many.test_X[: len(few.test_X)]).all()
    assert (few.test_y == many.test_y[: len(few.test_y)]).all()
    assert (few.targets == many.targets[:9_999]).all()
    assert generate(agents=10_000, **source | {"test_points": 0}).test_X.size == 0
