"""Forecasts of scenarios in synchronous rounds: exact where they say so, and consistent where they search."""

import json
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
from star_cases import scenario as small_scenario

from p2psim.analysis.forecasts.collaboration import Alike
from p2psim.analysis.forecasts.forecast import forecast, setting
from p2psim.analysis.forecasts.star_setting import changed
from p2psim.analysis.forecasts.study import best, calibrate
from p2psim.cli.main import main
from p2psim.simulation.workspace import Workspace

#: All replicas share the data, and so one forecast.
ROUNDS = {
    "data.redraw": "never",
    "network.exchange": {"kind": "round"},
    "learning.algorithm": {"kind": "synchronous-averaging", "horizon": 30, "c1": 0.6, "theta_max": 1e6},
    "learning.regularizer.l2": 0.01,
    "privacy.sensitivity": {"kind": "declared", "bound": 1.0},
    "privacy.epsilon": {"0": 30.0, "1": 60.0, "2": 20.0},
    "record.every": 5,
    "record.events": False,
    "record.models": False,
}
DESCENT = {"learning.algorithm": {"kind": "synchronous-descent", "horizon": 30, "rho": 0.4, "theta_max": 1e6}}


def scenario(changes):
    """The small one; what it is made of stays as it is."""
    return small_scenario(deepcopy(changes))


@pytest.fixture
def workspace(tmp_path):
    return Workspace(tmp_path)


def made(one, workspace):
    return forecast(setting(one, workspace.case(one, 0)))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        pytest.param({"learning.algorithm.form": "printed"}, marks=pytest.mark.verification),
        DESCENT,
        pytest.param(
            {**DESCENT, "learning.algorithm.rho": 300.0, "learning.algorithm.form": "printed"},
            marks=pytest.mark.verification,
        ),
        {"network.channel": {"loss": 0.2}, "learning.algorithm.reweight": "answered"},
        {
            "network.availability": {"kind": "bernoulli", "drop": {"0": 0.5, "1": 0.1, "2": 0.3}},
            "learning.algorithm.reweight": "known",
            "privacy.allocation": {"kind": "geometric", "ratio": 0.9},
        },
        pytest.param(
            {
                "network.exchange": {
                    "kind": "round",
                    "response": {"exponential": 0.5},
                    "deadline": 0.6,
                    "interval": 1.0,
                }
            },
            marks=pytest.mark.verification,
        ),
        {"privacy.mechanism": "none", "privacy.sensitivity": None, "privacy.epsilon": None},
    ],
    ids=["average", "printed", "descent", "printed descent", "lost", "away", "late", "no noise"],
)
def test_an_exact_forecast_is_the_mean_of_runs(changes, workspace):
    """|z| < 4 at all six moments, through the whole simulation: odds of a false alarm 4e-4 a case; fixed seeds."""
    one = scenario({**ROUNDS, **changes})
    found = made(one, workspace)
    assert found.approximate == ()
    assert len(found.parts.psi) == 30
    measured = calibrate(one, workspace, 120, found)
    assert np.abs(measured.z).max() < 4, measured.z
    # Where nothing is left to chance, the run itself is forecast.
    assert measured.mean[1:] == pytest.approx(measured.forecast[1:], rel=0.5)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (
            {"network.channel": {"loss": {"kind": "gilbert-elliott", "mean": 0.2, "burst": 3}}},
            "bursts",
        ),
        (
            {
                "network.availability": {
                    "kind": "renewal",
                    "up": 5,
                    "down": 2,
                }
            },
            "in a row",
        ),
        ({"learning.algorithm.reweight": "estimated"}, "estimated"),
        ({"learning.algorithm.theta_max": 3.0, "privacy.epsilon": 0.1}, "leave the box"),
        (
            {
                "network.exchange": {
                    "kind": "round",
                    "response": {"gamma": {"mean": 1, "shape": 2}},
                    "deadline": 1,
                }
            },
            "draws",
        ),
        (
            {"network.exchange": {"kind": "round", "deadline": 1}, "network.channel": {"latency": 0.1}},
            "latency",
        ),
    ],
)
def test_what_is_approximate_says_why(changes, reason, workspace):
    assert any(reason in text for text in made(scenario({**ROUNDS, **changes}), workspace).approximate)


def test_at_the_break_even_budget_nobody_gains_or_loses(workspace):
    one = scenario({**ROUNDS, "learning.algorithm.horizon": 3000})
    found = made(one, workspace)
    ends = [party for party in found.parties if party.break_even not in (None, np.inf)]
    assert ends
    for party in ends:
        factor = party.break_even / party.epsilon
        again = made(changed(one, budgets=found.setting.cell.setup.plan.budget * factor), workspace)
        assert again.psi == pytest.approx(party.alone, rel=1e-6)
        assert party.gains == (factor < 1)


def test_average_owners_are_the_owners_where_these_are_alike(workspace):
    one = scenario({**ROUNDS, "privacy.epsilon": 30.0, "data.source.points": 50})
    given = setting(one, workspace.case(one, 0))
    same = replace(given, model=given.model.alike(3))
    assert Alike(same).psi(3) == pytest.approx(forecast(same).psi, rel=1e-9)


def test_noise_is_linear_in_its_variance_whatever_the_path(workspace):
    """Constant variances take the short way, histories the long one."""
    one = scenario(ROUNDS)
    walk = setting(one, workspace.case(one, 0)).walk()
    constant = np.broadcast_to([1.0, 2.0, 3.0], (29, 3))
    nearly = constant + 1e-12 * np.arange(29)[:, None]
    assert walk.noise(constant) == pytest.approx(walk.noise(nearly), rel=1e-8)
    assert walk.noise(constant) == pytest.approx(walk.split(constant).noise[-1])


@pytest.mark.parametrize("changes", [{}, DESCENT])
def test_the_best_choice_reaches_what_it_promises(changes, workspace):
    one = scenario({**ROUNDS, "privacy.epsilon": 5.0, **changes})
    found = made(one, workspace)
    choice = best(found.setting)
    kind, _, value = choice.allocation.rstrip(")").partition("(")
    written = {"kind": kind}
    if value:
        key, _, number = value.partition("=")
        written[key] = float(number)
    allocation = scenario({**ROUNDS, "privacy.allocation": written}).privacy.allocation
    again = made(changed(one, allocation, horizon=choice.horizon, rho=choice.rho, c1=choice.c1), workspace)
    assert again.psi == pytest.approx(choice.psi, rel=1e-9)
    assert choice.psi < found.psi


def test_the_command_tells_and_draws(tmp_path, capsys):
    path, folder = tmp_path / "small.yaml", tmp_path / "figures"
    path.write_text(scenario(ROUNDS).to_yaml())
    assert main(["forecast", str(path), "--best", "--figures", str(folder), "--json"]) == 0
    tree = json.loads(capsys.readouterr().out)
    cell = tree["cells"][0]
    assert cell["approximate"] == []
    assert cell["run"]["step"][-1] == 29
    assert cell["best"]["rho"] is None
    assert cell["best"]["c1"] > 0
    assert len(list(folder.glob("*.png"))) == 6
