import json
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from p2psim.core.errors import MeaningError
from p2psim.data.prepare import prepare
from p2psim.data.section import DataSection


def generate(seed=0, replica=0, agents=None, public=0, **source):
    tree = {"source": {"kind": "linear-regression", **source}}
    if public:
        tree["public"] = {"last": public}
    return prepare(DataSection.model_validate(tree), seed, replica, agents=agents)


def test_shapes_and_bounds():
    data = generate(
        agents=4, dimension=3, points={"0": 5, 1: 6, 2: 7, 3: 8}, x={"kind": "l1-ball", "radius": 2.0}
    )
    assert data.offsets.tolist() == [0, 5, 11, 18, 26]
    assert data.X.shape == (26, 3)
    assert data.X.flags.c_contiguous
    assert (data.x_l1, data.x_max, data.y_max) == (2.0, 2.0, None)
    assert (np.abs(data.X).sum(axis=1) <= 2).all()


def test_labels_are_the_linear_model():
    data = generate(agents=2, dimension=4, points=50, noise=0, targets={"kind": "common", "norm": 3.0})
    target = np.array(data.fitted["source"]["target"])
    assert np.linalg.norm(target) == pytest.approx(3)
    np.testing.assert_allclose(data.y, data.X @ target, rtol=1e-12, atol=1e-14)


def test_noise_has_the_standard_deviation_asked_for():
    """Variance of 40,000 normals: relative standard error √(2/n) = .7 %, so 4 % is beyond 5 of them."""
    data = generate(agents=1, dimension=2, points=40_000, noise=0.5)
    residual = data.y - data.X @ np.array(data.fitted["source"]["target"])
    assert residual.var() == pytest.approx(0.25, rel=0.04)


def test_laws_of_x():
    """Means of 40,000 draws; tolerances are 5 standard errors or more (false alarm below 1e-5 each)."""
    n = 40_000
    ball = generate(agents=1, dimension=3, points=n, x="l1-ball").X
    # Uniform in the ball: ‖x‖₁^p is uniform in [0, 1]; |x_j| is Beta(1, p), of mean 1/(p + 1).
    assert np.mean(np.abs(ball).sum(axis=1) ** 3) == pytest.approx(0.5, abs=0.008)
    np.testing.assert_allclose(np.abs(ball).mean(axis=0), 0.25, atol=0.006)
    np.testing.assert_allclose(ball.mean(axis=0), 0, atol=0.008)
    cube = generate(agents=1, dimension=2, points=n, x={"kind": "uniform", "bound": 3.0})
    assert np.abs(cube.X).max() <= 3
    np.testing.assert_allclose(cube.X.var(axis=0), 3.0, rtol=0.03)
    assert (cube.x_l1, cube.x_max) == (6.0, 3.0)
    normal = generate(agents=1, dimension=2, points=n, x="gaussian")
    np.testing.assert_allclose(normal.X.var(axis=0), 1.0, rtol=0.04)
    assert (normal.x_l1, normal.x_max) == (None, None)


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 3), st.integers(0, 100))
@settings(max_examples=30, deadline=None)
def test_more_agents_change_nobodys_records(few, more, replica, seed):
    options = {"dimension": 3, "points": {"uniform": [1, 20]}}
    small = generate(seed, replica, few, **options)
    large = generate(seed, replica, few + more, **options)
    held = small.offsets[-1]
    assert large.offsets[: few + 1].tolist() == small.offsets.tolist()
    assert large.X[:held].tobytes() == small.X.tobytes()
    assert large.y[:held].tobytes() == small.y.tobytes()


def test_sizes_of_others_change_nobodys_records():
    one = generate(agents=2, points={0: 7, 1: 5})
    two = generate(agents=2, points={0: 900, 1: 5})
    assert one.X[7:].tobytes() == two.X[900:].tobytes()
    assert one.y[7:].tobytes() == two.y[900:].tobytes()


def test_seed_replica_and_variant():
    first = generate(1, 0, 3, points=10)
    assert first.X.tobytes() == generate(1, 0, 3, points=10).X.tobytes()
    assert first.X.tobytes() != generate(2, 0, 3, points=10).X.tobytes()
    assert first.X.tobytes() != generate(1, 1, 3, points=10).X.tobytes()
    section = DataSection.model_validate({"source": {"kind": "linear-regression", "agents": 3, "points": 10}})
    assert first.X.tobytes() != prepare(section, 1, 0, variant="a").X.tobytes()
    fixed = section.model_copy(update={"redraw": "never"})
    assert prepare(fixed, 1, 0).X.tobytes() == prepare(fixed, 1, 5).X.tobytes()
    own = section.model_copy(update={"seed": 1})
    assert prepare(own, 99, 0).X.tobytes() == first.X.tobytes()


def test_public_rows_are_more_rows_of_the_same_law():
    """The owners' records stay the same, and scaling by the learner's own rows works."""
    plain = generate(agents=2, points=20)
    tree = {
        "source": {"kind": "linear-regression", "agents": 2, "points": 20},
        "public": {"last": 500},
        "features": ["whiten"],
        "scale": {"x": {}, "y": {}},
    }
    data = prepare(DataSection.model_validate(tree), 0, 0)
    matrix = np.array(data.fitted["features"][0]["matrix"])
    mean = np.array(data.fitted["features"][0]["mean"])
    expected = (plain.X - mean) @ matrix / data.fitted["scale"]["x"]["radius"]
    expected /= np.maximum(1, np.abs(expected).sum(axis=1))[:, None]
    np.testing.assert_allclose(data.X, expected, rtol=1e-10, atol=1e-13)
    assert data.x_l1 == 1.0
    assert data.y_max == 1.0


def test_points_from_a_distribution_are_whole_and_at_least_one():
    data = generate(agents=200, dimension=1, points={"exponential": 1.0})
    sizes = np.diff(data.offsets)
    assert sizes.min() == 1
    assert sizes.max() > 2
    sizes = np.diff(generate(agents=200, dimension=1, points={"uniform": [10, 12]}).offsets)
    assert set(sizes.tolist()) == {10, 11, 12}


@pytest.mark.parametrize(
    ("asked", "source", "key"),
    [
        (None, {}, "data.source.agents"),
        (3, {"agents": 4}, "data.source.agents"),
        (3, {"points": {0: 5, 1: 5}}, "data.source.points"),
        (2, {"points": {0: 5, 1: 5, 2: 5}}, "data.source.points"),
    ],
)
def test_refused(asked, source, key):
    section = DataSection.model_validate({"source": {"kind": "linear-regression", **source}})
    with pytest.raises(MeaningError) as caught:
        prepare(section, 0, 0, agents=asked)
    assert caught.value.faults[0].key == key


@pytest.mark.parametrize(
    "source",
    [
        {"points": 0},
        {"points": -5},
        {"points": 2.5},
        {"points": {"a": 0}},
        {"points": {"uniform": [5, 1]}},
        {"points": {"normal": 3.0, "uniform": [1, 2]}},
        {"dimension": 0},
        {"noise": -0.1},
        {"noise": float("nan")},
        {"x": "cauchy"},
        {"x": {"kind": "l1-ball", "radius": -1.0}},
        {"targets": "subspace"},
        {"point": 3},
    ],
)
def test_malformed(source):
    with pytest.raises(ValidationError):
        generate(agents=2, **source)


@pytest.mark.verification
def test_paper_size_stays_below_a_gigabyte():
    """750,000 records of 10 features, prepared and scaled, in a process of its own: its peak memory."""
    program = textwrap.dedent("""
        import json
        from p2psim.data.prepare import prepare
        from p2psim.data.section import DataSection
        section = DataSection.model_validate({
            "source": {"kind": "linear-regression", "agents": 3, "dimension": 10, "points": 250000},
            "public": {"last": 10000},
            "features": ["standardise", "whiten"],
            "scale": {"x": {}, "y": {}},
        })
        data = prepare(section, 0, 0)
        from p2psim.runs.system import peak_memory
        print(json.dumps([list(data.X.shape), peak_memory()]))
    """)
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    shape, peak = json.loads(answer.stdout)
    assert shape == [750_000, 10]
    assert peak < 1e9
