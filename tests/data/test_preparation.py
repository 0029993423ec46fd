"""Shuffling, public rows, owners, and what is refused."""

import json
import os
import pickle
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
from p2psim.data.sources.arrays import Arrays


def numbered(rows, columns=3):
    """Rows that tell which they are: y is the number of the row."""
    X = np.random.default_rng(rows).normal(size=(rows, columns))
    return X, np.arange(rows, dtype=float)


def section(rows=100, **tree):
    tree.setdefault("partition", {"kind": "equal", "agents": 2})
    return DataSection.model_validate({"source": Arrays.rows(*numbered(rows)), **tree})


@given(st.integers(2, 80), st.integers(0, 40), st.integers(1, 4), st.booleans(), st.integers(0, 9))
@settings(deadline=None)
def test_every_row_is_public_or_held_once(rows, public, agents, shuffle, seed):
    public = min(public, rows - 1)
    agents = min(agents, rows - public)
    tree = {"partition": {"kind": "equal", "agents": agents}, "shuffle": shuffle}
    if public:
        tree["public"] = {"last": public}
    data = prepare(section(rows, **tree), seed, None)
    X, _ = numbered(rows)
    held = data.y.astype(int)
    assert len(held) == rows - public == len(set(held.tolist()))
    assert data.X.tobytes() == X[held].tobytes()
    if not shuffle:
        assert held.tolist() == list(range(rows - public))


def test_fits_use_the_public_rows_which_nobody_holds():
    data = prepare(section(public={"last": 30}, features=["standardise"]), 4, None)
    X, _ = numbered(100)
    public = np.setdiff1d(np.arange(100), np.round(data.y).astype(int))
    assert len(public) == 30
    np.testing.assert_allclose(data.fitted["features"][0]["mean"], X[public].mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(data.fitted["features"][0]["std"], X[public].std(axis=0), rtol=1e-12)


@given(st.integers(0, 100), st.floats(0.1, 10), st.floats(0.05, 1.0))
@settings(deadline=None, max_examples=40)
def test_bounds_hold_whatever_is_done_before(seed, bound, quantile):
    tree = {
        "public": {"last": 20},
        "features": ["standardise", {"kind": "pca", "components": 2}, "whiten"],
        "scale": {"x": {"bound": bound, "at": {"quantile": quantile}}, "y": {"bound": bound}},
    }
    data = prepare(section(**tree), seed, None)
    assert data.X.shape == (80, 2)
    assert data.X.flags.c_contiguous
    assert (data.x_l1, data.x_max, data.y_max) == (bound, bound, bound)
    assert (np.abs(data.X).sum(axis=1) <= bound).all()
    assert (np.abs(data.y) <= bound).all()


def test_same_seed_same_bytes_other_seed_other_order():
    first, again, other = (prepare(section(), seed, None) for seed in (1, 1, 2))
    assert first.y.tobytes() == again.y.tobytes()
    assert first.X.tobytes() == again.X.tobytes()
    assert first.y.tobytes() != other.y.tobytes()
    assert first.y.tobytes() != prepare(section(), 1, None, variant="other").y.tobytes()
    assert first.y.tobytes() == prepare(section(seed=1), 7, None).y.tobytes()
    orders = {prepare(section(), seed, None).y.tobytes() for seed in range(7)}
    assert len(orders) == 7


def test_real_records_are_redrawn_only_when_asked():
    assert not section().redrawn
    assert prepare(section(), 0, 0).y.tobytes() == prepare(section(), 0, 3).y.tobytes()
    anew = section(redraw="replica")
    assert anew.redrawn
    assert prepare(anew, 0, 0).y.tobytes() != prepare(anew, 0, 3).y.tobytes()
    assert prepare(anew, 0, None).y.tobytes() == prepare(anew, 0, 0).y.tobytes()


def test_random_sizes_are_random_without_shuffling():
    tree = {"partition": {"kind": "sizes", "sizes": [10, 20]}, "shuffle": False}
    first, other = (prepare(section(**tree), seed, None) for seed in (0, 1))
    assert len(set(first.y.tolist())) == 30
    assert first.y.tobytes() != other.y.tobytes()
    assert first.fitted["unused_rows"] == 70


@pytest.mark.parametrize(("owned", "warned"), [(100, False), (50, False), (49, True)])
def test_rows_that_nobody_holds_are_counted_and_warned_of_when_they_are_most(owned, warned):
    prepared = prepare(section(partition={"kind": "contiguous", "sizes": [owned]}), 0, None)
    assert prepared.fitted["unused_rows"] == 100 - owned
    assert prepared.warnings == ((f"{100 - owned} of 100 rows are held by no owner",) if warned else ())


def test_what_was_fitted_is_plain_json():
    tree = {"public": {"last": 20}, "features": ["standardise", "whiten"], "scale": {"x": {}, "y": {}}}
    fitted = prepare(section(**tree), 0, None).fitted
    assert json.loads(json.dumps(fitted)) == fitted
    assert fitted["source"]["kind"] == "arrays"
    assert [step["kind"] for step in fitted["features"]] == ["standardise", "whiten"]
    assert fitted["records"] == [40, 40]


def test_other_processes_and_thread_counts_give_the_same_bytes():
    program = textwrap.dedent("""
        import hashlib
        from p2psim.data.prepare import prepare
        from p2psim.data.section import DataSection
        section = DataSection.model_validate({
            "source": "schools", "public": {"last": 3000}, "features": ["standardise", "whiten"],
            "scale": {"x": {}, "y": {}}, "partition": {"kind": "equal", "agents": 4},
        })
        data = prepare(section, 3, 0)
        print(hashlib.sha256(data.X.tobytes() + data.y.tobytes()).hexdigest())
    """)
    answers = set()
    for threads in ("1", "2", "4"):
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": threads, "OMP_NUM_THREADS": threads}
        answer = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment
        )
        answers.add(answer.stdout)
    assert len(answers) == 1


def test_a_section_survives_writing_and_sending():
    tree = {
        "source": {"kind": "linear-regression", "points": {0: 5, "1": 7}, "agents": 2},
        "public": {"last": 9},
        "features": {"kind": "pca", "components": 2},
        "scale": {"x": {"at": 3.0}},
        "groups": {"cut": [6], "names": ["small", "large"]},
    }
    one = DataSection.model_validate(tree)
    assert DataSection.model_validate(one.model_dump(mode="json")) == one
    assert pickle.loads(pickle.dumps(one)) == one
    assert prepare(one, 0, 0).groups == ("small", "large")
    DataSection.model_json_schema()


@pytest.mark.parametrize(
    ("tree", "agents", "key"),
    [
        ({"public": {"last": 100}}, None, "data.public.last"),
        ({"public": {"last": 1000}}, None, "data.public.last"),
        ({"features": ["whiten"]}, None, "data.public"),
        ({"scale": {"x": {}}}, None, "data.public"),
        ({"scale": {"y": {}}}, None, "data.public"),
        ({"scale": {"x": {"at": "each-record"}}}, None, "data.scale.x.at"),
        ({"public": {"last": 10}, "features": ["pca"]}, None, "data.features.0.components"),
        ({"partition": {"kind": "contiguous", "sizes": [60, 60]}}, None, "data.partition.sizes"),
        (
            {"public": {"last": 50}, "partition": {"kind": "sizes", "sizes": [60]}},
            None,
            "data.partition.sizes",
        ),
        ({"partition": {"kind": "contiguous", "sizes": [6, 6]}}, 3, "data.partition.sizes"),
        ({"partition": {"kind": "column", "column": "state"}}, None, "data.partition.column"),
        ({"partition": None}, None, "data.partition"),
        ({}, 5, "data.partition.agents"),
    ],
)
def test_refused(tree, agents, key):
    with pytest.raises(MeaningError) as caught:
        prepare(section(**tree), 0, None, agents=agents)
    assert [fault.key for fault in caught.value.faults] == [key]


def test_refused_for_records_that_owners_hold():
    generated = {"source": {"kind": "linear-regression", "agents": 2, "points": 5}}
    divided = DataSection.model_validate({**generated, "partition": {"kind": "equal"}})
    with pytest.raises(
        MeaningError, match=r"data\.partition: linear-regression gives each owner its records already"
    ):
        prepare(divided, 0, 0)
    given_arrays = DataSection(source=Arrays.per_agent([np.ones((2, 1))] * 2, [np.ones(2)] * 2))
    with pytest.raises(MeaningError, match=r"data\.source: gives 2 owners, but network\.topology asks for 3"):
        prepare(given_arrays, 0, 0, agents=3)


@pytest.mark.parametrize("step", ["standardise", "whiten", {"kind": "pca", "components": 1}])
def test_overflow_is_an_error(step):
    X = np.array([[1e300, 1.0], [-1e300, 2.0], [1e300, 3.0], [1e300, -4.0]])
    tree = {
        "source": Arrays.rows(X, np.arange(4.0)),
        "partition": {"kind": "equal", "agents": 1},
        "public": {"last": 3},
        "features": [step],
        "shuffle": False,
    }
    with pytest.raises(MeaningError, match=r"data\.features\.0: the public rows hold numbers too large"):
        prepare(DataSection.model_validate(tree), 0, 0)
    tree = {**tree, "features": [], "scale": {"x": {"at": 1e-300}}}
    with pytest.raises(MeaningError, match=r"data\.scale: numbers overflow"):
        prepare(DataSection.model_validate(tree), 0, 0)


@pytest.mark.parametrize(
    "tree",
    [
        {"public": {"last": 0}},
        {"public": {"last": -1}},
        {"public": 10},
        {"redraw": "always"},
        {"seed": 1.5},
        {"features": ["centre"]},
        {"features": [{"kind": "pca", "components": 0}]},
        {"partition": "shard"},
        {"partition": {"kind": "contiguous", "sizes": [-1]}},
        {"shufle": True},
    ],
)
def test_malformed(tree):
    with pytest.raises(ValidationError):
        section(**tree)


def test_libraries_that_are_loaded_later_have_one_thread_too() -> None:
    """NumPy and SciPy bring a library each; afterwards both have as many threads as before."""
    script = (
        "import numpy\n"
        "from threadpoolctl import threadpool_info\n"
        "from p2psim.core.process import one_thread\n"
        "def threads(): return [one['num_threads'] for one in threadpool_info() if one['user_api'] == 'blas']\n"
        "with one_thread(): print(*threads())\n"
        "import scipy.linalg\n"
        "with one_thread(): print(*threads())\n"
        "print(*threads())\n"
    )
    threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS"), "2")
    ran = subprocess.run(
        [sys.executable, "-c", script], env=os.environ | threads, capture_output=True, text=True, check=True
    )
    first, inside, after = (line.split() for line in ran.stdout.splitlines())
    assert set(first + inside) == {"1"}
    assert len(inside) == len(after)
    assert set(after) == {"2"}
