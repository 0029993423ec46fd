"""Forecasts from what parties exchange: the same as from data, private as charged, and off by what noise makes them."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from star_cases import scenario

from p2psim.analysis.forecasts.exchange import (
    Disclosure,
    case_of,
    disclose,
    exported,
    read_parties,
    write_parties,
)
from p2psim.analysis.forecasts.forecast import forecast, setting
from p2psim.analysis.forecasts.study import forecast_scenario
from p2psim.cli.main import main
from p2psim.core.errors import InputError, MeaningError
from p2psim.simulation.workspace import Workspace
from p2psim.theory.forecasts.statistics import (
    SENSITIVITY,
    disclosed,
    entries_of,
    joint_moment,
    nearest_psd,
    of_entries,
)

BOUNDED = {
    "data.public": {"last": 100},
    "data.source.points": {"0": 3000, "1": 2000, "2": 1000},
    "data.scale": {"x": {"bound": 1.0}, "y": {"bound": 1.0}},
    "learning.regularizer.l2": 0.01,
    "privacy.sensitivity": "bounds",
}


def numbers(tree):
    """All numbers of a tree, in order."""
    if isinstance(tree, dict):
        return [one for value in tree.values() for one in numbers(value)]
    if isinstance(tree, list):
        return [one for value in tree for one in numbers(value)]
    return [float(tree)] if isinstance(tree, int | float) else []


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"privacy.sensitivity": {"kind": "declared", "bound": 2.0}, "learning.algorithm.form": "printed"},
        {
            "privacy.epsilon": {"0": 3.0, "1": 30.0, "2": 10.0},
            "privacy.allocation": {"kind": "cap", "tail": 1e-6},
        },
    ],
)
def test_statistics_forecast_what_the_data_does(changes, tmp_path):
    """Through the files, all numbers of all cells: to 1e-9."""
    one = scenario({**BOUNDED, **changes, "sweep": {"privacy.mechanism": ["laplace", "none"]}})
    file = str(tmp_path / "all.json")
    write_parties(exported(one, None, Disclosure()), file)
    with_data = [found.as_tree() for found in forecast_scenario(one)]
    without = [found.as_tree() for found in forecast_scenario(one, statistics=read_parties([file]))]
    assert numbers(without) == pytest.approx(numbers(with_data), rel=1e-9, abs=1e-12)


def test_a_file_a_party_is_one_file_of_all(tmp_path):
    one = scenario(BOUNDED)
    files = [str(tmp_path / f"{i}.json") for i in range(3)]
    for i, file in enumerate(files):
        write_parties(exported(one, str(i), Disclosure()), file)
    assert read_parties(files) == exported(one, None, Disclosure())


def test_arrays_are_read_as_well(tmp_path):
    made = exported(scenario(BOUNDED), None, Disclosure())
    file = tmp_path / "all.npz"
    fields = ("records", "gram", "moment", "energy", "x_l1", "y_max")
    np.savez(file, **{name: np.array([getattr(one, name) for one in made]) for name in fields})
    assert read_parties([str(file)]) == made


def record(x, y):
    """Entries that one record adds."""
    return entries_of(joint_moment(np.outer(x, x), x * y, y * y))


PARTS = st.integers(1, 5).flatmap(
    lambda p: st.tuples(
        *[arrays(float, p, elements=st.floats(-1, 1)) for _ in range(2)],
        *[st.floats(-1, 1) for _ in range(2)],
        st.booleans(),
    )
)


@given(PARTS)
def test_no_replaced_record_moves_more_than_the_sensitivity(parts):
    """Records inside the bounds, on the sphere or not."""
    x, other, y, y_other, on_sphere = parts
    for one in (x, other):
        norm = np.abs(one).sum()
        if norm > 1 or (on_sphere and norm > 1e-3):
            one /= norm * (1 + 1e-15)
    moved = record(x, y) - record(other, y_other)
    assert np.abs(moved).sum() <= SENSITIVITY["l1"] * (1 + 1e-9)
    assert np.linalg.norm(moved) <= SENSITIVITY["l2"] * (1 + 1e-9)


def test_some_replaced_record_moves_as_much():
    moved = record(np.array([1.0, 0.0]), 1.0) - record(np.array([0.0, 1.0]), 1.0)
    assert np.abs(moved).sum() == SENSITIVITY["l1"]
    assert np.linalg.norm(moved) == SENSITIVITY["l2"]


@given(st.integers(2, 6), st.integers(0, 1000))
def test_the_nearest_matrix_is_what_it_says(size, seed):
    """Positive semidefinite; and the residual is one, orthogonal to it: the conditions of the projection on a cone."""
    random = np.random.default_rng(seed)
    given_one = random.normal(size=(size, size))
    given_one = given_one + given_one.T
    assert of_entries(entries_of(given_one)) == pytest.approx(given_one)
    near = nearest_psd(given_one)
    left = near - given_one
    assert np.linalg.eigvalsh(near)[0] > -1e-12
    assert np.linalg.eigvalsh(left)[0] > -1e-12
    assert abs((near * left).sum()) < 1e-10
    assert nearest_psd(near) == pytest.approx(near)


def test_noise_is_in_the_units_of_the_bounds():
    """With bounds B and Y: entries of A move by B², of b by BY, of c by Y² times the noise."""
    joint = np.diag([100.0, 100.0, 1000.0])
    noise = np.arange(1.0, 7.0)
    moved = disclosed(joint, 2.0, 3.0, 0.1, noise) - joint
    expected = 0.1 * np.array([[1 * 4, 2 * 4, 3 * 6], [2 * 4, 4 * 4, 5 * 6], [3 * 6, 5 * 6, 6 * 9]])
    assert moved == pytest.approx(expected)


@pytest.fixture
def cell(tmp_path):
    one = scenario(BOUNDED)
    return setting(one, Workspace(tmp_path).case(one, 0)).cell


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_noise_has_the_variance_of_its_charge(cell, delta):
    """Laplace: 2b², b = 4/(n·ε). Gaussian: (2/(n·μ))², μ the root of Balle and Wang's curve (2018, theorem 8).

    250 draws of 10 entries: the standard error is below 6 %, odds of being 24 % off below 1e-4.
    """
    from scipy.optimize import brentq
    from scipy.stats import norm

    def over(mu):
        return norm.cdf(mu / 2 - 20 / mu) - np.exp(20) * norm.cdf(-mu / 2 - 20 / mu) - 1e-5

    variance = (2 / (1000 * brentq(over, 1.0, 10.0))) ** 2 if delta else 2 * (4 / (1000 * 20.0)) ** 2
    exact = disclose(cell, 2, Disclosure()).joint
    made = [disclose(cell, 2, Disclosure(20.0, delta, seed)) for seed in range(250)]
    off = np.array([entries_of(one.joint - exact) for one in made])
    assert made[0].charge.scale ** 2 * (1 if delta else 2) == pytest.approx(variance, rel=1e-6)
    # Making it positive semidefinite moves few of the entries, and only where noise drowns an eigenvalue.
    assert off.var() == pytest.approx(variance, rel=0.24)


def test_fresh_noise_differs_and_a_seed_repeats_it(cell):
    fresh = [disclose(cell, 0, Disclosure(1.0)) for _ in range(2)]
    assert fresh[0].energy != fresh[1].energy
    again = [disclose(cell, 0, Disclosure(1.0, seed=4)) for _ in range(2)]
    assert again[0] == again[1]
    assert disclose(cell, 1, Disclosure(1.0, seed=4)).gram != again[0].gram


def test_more_budget_makes_better_forecasts():
    """Median error of ψ over 20 draws: falls as ε⁻¹ while it is small, and says that it is approximate."""
    one = scenario({**BOUNDED, "privacy.epsilon": 10.0})
    right = forecast_scenario(one)[0].forecast.psi
    medians = []
    for epsilon in (2.0, 20.0, 200.0):
        off = []
        for seed in range(20):
            parties = exported(one, None, Disclosure(epsilon, seed=seed))
            found = forecast(setting(one, case_of(one, parties)))
            assert any("noise" in reason for reason in found.approximate)
            off.append(abs(found.psi / right - 1))
        medians.append(np.median(off))
    assert medians[2] < 0.01
    assert medians[1] / medians[2] == pytest.approx(10, rel=0.5)
    assert medians[0] > medians[1]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {
                "learning.loss": "logistic",
                "data.source.kind": "linear-classification",
                "data.scale": {"x": {"bound": 1.0}},
            },
            "squared loss only",
        ),
        ({"privacy.sensitivity": "empirical"}, "needs the records"),
        ({"network.topology.agents": 4, "data.source.points": 100}, "statistics of 3"),
        ({"learning.algorithm.batch": {"kind": "poisson", "rate": 0.5}}, "take whole"),
        (
            {
                "network.availability": {
                    "kind": "bernoulli",
                    "drop": 0.2,
                    "depends": {"on": "label", "strength": 1.0},
                }
            },
            "by label",
        ),
    ],
)
def test_what_needs_records_is_refused(changes, message):
    parties = exported(scenario(BOUNDED), None, Disclosure())
    with pytest.raises(MeaningError, match=message):
        case_of(scenario({**BOUNDED, **changes}), parties)


def test_statistics_do_not_show_what_is_clipped():
    one = scenario({**BOUNDED, "privacy.sensitivity": {"kind": "clip", "bound": 0.1}})
    found = forecast(setting(one, case_of(one, exported(one, None, Disclosure()))))
    assert any("clipped" in reason for reason in found.approximate)


def test_noise_needs_public_bounds():
    one = scenario({"privacy.sensitivity": {"kind": "declared", "bound": 1.0}})
    with pytest.raises(MeaningError, match="public bounds"):
        exported(one, None, Disclosure(1.0))


@pytest.mark.parametrize(
    "how", [Disclosure(0.0), Disclosure(-1.0), Disclosure(1.0, 1.0), Disclosure(float("nan"))]
)
def test_budgets_out_of_range_are_refused(how, cell):
    with pytest.raises(InputError, match="must be"):
        disclose(cell, 0, how)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"gram": [[1.0]]}, "3 × 3"),
        ({"energy": 1e-6}, "cannot come from records"),
        ({"records": 0}, "greater than 0"),
        ({"moment": [0.0, 0.0, float("inf")]}, "finite"),
        ({"label": "1"}, "different labels"),
        ({"unknown": 1}, "unknown"),
    ],
)
def test_malformed_statistics_are_refused_with_the_place(change, message, tmp_path):
    parties = [one.model_dump(mode="json") for one in exported(scenario(BOUNDED), None, Disclosure())]
    parties[0] |= change
    file = tmp_path / "bad.json"
    file.write_text(json.dumps({"parties": parties}))
    with pytest.raises(InputError, match=message):
        read_parties([str(file)])


def test_graphs_have_no_statistics(tmp_path, capsys):
    write_parties(exported(scenario(BOUNDED), None, Disclosure()), str(tmp_path / "a.json"))
    asked = ["forecast", "scenarios/personalised_graph.yaml", "--statistics", str(tmp_path / "a.json")]
    assert main(asked) == 2
    assert "of the parties of a learner" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "[]", '{"parties": []}', "{}"])
def test_files_that_are_no_statistics_are_refused(text, tmp_path):
    file = tmp_path / "bad.json"
    file.write_text(text)
    with pytest.raises(InputError, match=r"bad\.json"):
        read_parties([str(file)])
    with pytest.raises(InputError, match="cannot read"):
        read_parties([str(tmp_path / "none.json")])


def test_the_command_writes_reads_and_tells_the_charge(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.yaml").write_text(scenario(BOUNDED).to_yaml())
    export = ["forecast", "one.yaml", "--export-statistics"]
    assert main([*export, "a.json", "--party", "0"]) == 0
    assert "exact statistics protect no record" in capsys.readouterr().out
    assert main([*export, "b.json", "--party", "1", "--statistics-epsilon", "3"]) == 0
    assert "charged ε = 3," in capsys.readouterr().out
    noisy = ["--statistics-epsilon", "3", "--statistics-delta", "1e-6", "--statistics-seed", "1"]
    assert main([*export, "c.json", "--party", "2", *noisy]) == 0
    assert "not private" in capsys.readouterr().out
    charge = json.loads((tmp_path / "b.json").read_text())["parties"][0]["charge"]
    assert charge["epsilon"] == 3
    assert charge["sensitivity"] == pytest.approx(4 / 2000)
    assert charge["scale"] == pytest.approx(4 / 2000 / 3)
    assert main(["forecast", "one.yaml", "--statistics", "a.json", "b.json", "c.json", "--json"]) == 0
    cell = json.loads(capsys.readouterr().out)["cells"][0]
    assert cell["approximate"] == ["the statistics of 2 of 3 parties have noise"]
    assert [one["records"] for one in cell["parties"]] == [3000, 2000, 1000]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (["--party", "0"], "needs --export-statistics"),
        (["--export-statistics", "a.json", "--statistics-delta", "1e-5"], "needs --statistics-epsilon"),
        (["--export-statistics", "a.json", "--party", "9"], "no owner 9"),
        (["--export-statistics", "none/a.json"], "cannot write"),
        (["--export-statistics", "a.json", "--set", "sweep.data.redraw=[never, replica]"], "sweeps its data"),
    ],
)
def test_the_command_refuses_what_does_not_go_together(asked, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.yaml").write_text(scenario(BOUNDED).to_yaml())
    assert main(["forecast", "one.yaml", *asked]) == 2
    assert message in capsys.readouterr().err
