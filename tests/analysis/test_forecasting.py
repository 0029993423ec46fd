"""Forecasts of scenarios: exact where they say so, and consistent with themselves where they search."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from star_cases import random_problem, scenario

from p2psim.analysis.forecasts.collaboration import Alike
from p2psim.analysis.forecasts.forecast import forecast, setting
from p2psim.analysis.forecasts.star_setting import changed
from p2psim.analysis.forecasts.study import best, calibrate, forecast_scenario
from p2psim.analysis.forecasts.variances import answer_variances, overruns
from p2psim.cli.main import main
from p2psim.core.errors import InputError, MeaningError, SimulationError
from p2psim.learning.losses import Logistic, Squared
from p2psim.learning.star.expansion import balance, expansion
from p2psim.simulation.workspace import Workspace

#: What makes the small star one whose iterates are linear. All replicas share the data, and so one forecast.
LINEAR = {
    "data.redraw": "never",
    "learning.algorithm.theta_max": 1e6,
    "learning.regularizer.l2": 0.01,
    "privacy.sensitivity": {"kind": "declared", "bound": 1.0},
    "privacy.epsilon": {"0": 30.0, "1": 60.0, "2": 20.0},
    "record.every": 10,
    "record.events": False,
    "record.models": False,
}


@pytest.fixture
def workspace(tmp_path):
    return Workspace(tmp_path)


def made(one, workspace):
    return forecast(setting(one, workspace.case(one, 0)))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"learning.algorithm.form": "printed"},
        pytest.param(
            {"privacy.allocation": {"kind": "geometric", "ratio": 0.9}}, marks=pytest.mark.verification
        ),
        pytest.param(
            {
                "privacy.mechanism": "gaussian",
                "privacy.delta": 1e-5,
                "privacy.epsilon": 5.0,
                "privacy.accountant": "zcdp",
            },
            marks=pytest.mark.verification,
        ),
        {
            "network.clock": {"rate": {"0": 1.0, "1": 2.0, "2": 0.5}},
            "learning.algorithm.reweight": "known",
            "privacy.allocation": {"kind": "geometric", "ratio": 0.9},
        },
        pytest.param(
            {
                "network.clock": {"rate": {"0": 1.0, "1": 2.0, "2": 0.5}},
                "learning.algorithm.reweight": "known",
                "learning.algorithm.reweight_at": "owner",
            },
            marks=pytest.mark.verification,
        ),
        {"privacy.mechanism": "none", "privacy.sensitivity": None, "privacy.epsilon": None},
    ],
    ids=["corrected", "printed", "geometric", "gaussian", "reweighted", "reweighted by owners", "no noise"],
)
def test_an_exact_forecast_is_the_mean_of_runs(changes, workspace):
    """|z| < 4 at all six moments, through the whole simulation: odds of a false alarm 4e-4 a case; fixed seeds."""
    one = scenario({**LINEAR, **changes})
    found = made(one, workspace)
    assert found.approximate == ()
    measured = calibrate(one, workspace, 120, found)
    assert np.abs(measured.z).max() < 4
    assert measured.mean[-1] < measured.mean[0]


@pytest.mark.parametrize(
    "weighs",
    [
        {},
        {"reweight": "known"},
        {"reweight": "known", "reweight_at": "owner"},
        {"reweight": "estimated"},
        {"form": "printed", "reweight": "known"},
    ],
    ids=["not reweighted", "by the learner", "by owners", "estimated", "printed"],
)
def test_check_knows_the_noise_that_a_forecast_tends_to(weighs, workspace):
    """With one feature owners share their eigenvector, so that the floor is exact; the recursion is another way."""
    algorithm = {f"learning.algorithm.{key}": value for key, value in weighs.items()}
    one = scenario(
        {
            **LINEAR,
            "data.source.dimension": 1,
            "learning.algorithm.horizon": 2000,
            "network.clock": {"rate": {"0": 1.0, "1": 2.0, "2": 0.3}},
            **algorithm,
        }
    )
    found = made(one, workspace)
    floor = found.setting.cell.assessment.facts["noise floor of ψ"]
    assert floor == pytest.approx(found.parts.noise[-1].sum(), rel=1e-6)


def test_estimated_frequencies_count_as_known(workspace):
    """In the long run estimates are what they estimate: (count + 1)/(k + N) tends to γ."""
    rates = {"network.clock": {"rate": {"0": 1.0, "1": 2.0, "2": 0.3}}}
    known, estimated = (
        made(scenario({**LINEAR, **rates, "learning.algorithm.reweight": how}), workspace)
        for how in ("known", "estimated")
    )
    assert np.array_equal(known.psi, estimated.psi)
    facts = [found.setting.cell.assessment.facts for found in (known, estimated)]
    assert facts[0]["h"] == facts[1]["h"]


def test_data_that_replicas_draw_anew_have_forecasts_each(workspace):
    one = scenario({**LINEAR, "data.redraw": "replica"})
    measured = calibrate(one, workspace, 100)
    assert np.abs(measured.z).max() < 4
    assert measured.forecast[0] != made(one, workspace).psi


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"privacy.sensitivity": {"kind": "clip", "bound": 1.0}}, "clipped"),
        ({"network.exchange": "poll"}, "poll"),
        ({"network.channel": {"latency": 0.1}}, "channel"),
        ({"network.availability": {"kind": "bernoulli", "participation": 0.5}}, "away"),
        ({"learning.algorithm.theta_max": 1e-3}, "box"),
        ({"learning.algorithm.theta_max": 3.0, "privacy.epsilon": 1.0}, "leave the box"),
        ({"learning.algorithm.reweight": "estimated"}, "estimated"),
        ({"privacy.allocation": "uniform"}, "uniform"),
        ({"privacy.allocation": {"kind": "cap", "releases": 20}}, "runs out"),
        ({"learning.algorithm.batch": {"kind": "poisson", "rate": 0.5}}, "batches"),
    ],
)
def test_what_is_approximate_says_why(changes, reason, workspace):
    assert any(reason in text for text in made(scenario({**LINEAR, **changes}), workspace).approximate)


def test_a_cap_that_is_hardly_met_is_exact_enough(workspace):
    one = scenario({**LINEAR, "privacy.allocation": {"kind": "cap", "tail": 1e-6}})
    found = made(one, workspace)
    assert found.approximate == ()
    assert 0 < overruns(found.setting.cell.setup.plan, found.setting.frequencies, 60) <= 1e-6


@pytest.mark.parametrize("in_time", [False, True])
@pytest.mark.parametrize("releases", [[1, 7, 60], [59, 61, 200]])
def test_the_chance_of_running_out_is_the_tail_of_a_law(releases, in_time):
    """Binomial of a number of steps, Poisson in a time, also where there are more releases than steps."""
    plan, shares = SimpleNamespace(releases=np.array(releases)), np.array([0.1, 0.2, 0.7])
    sums = np.arange(400)
    law = stats.poisson(60 * shares[:, None]) if in_time else stats.binom(60, shares[:, None])
    beyond = np.where(sums > np.array(releases)[:, None], law.pmf(sums), 0.0).sum(axis=1)
    assert overruns(plan, shares, 60, in_time) == pytest.approx(beyond.max(), rel=1e-9, abs=1e-300)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"learning.loss": "hinge"}, "no curvature"),
        ({"privacy.allocation": {"kind": "geometric", "ratio": 1e-3}}, "overflow"),
    ],
)
def test_what_has_no_forecast_is_refused(changes, message, workspace):
    changes = {**LINEAR, "privacy.epsilon": 1e-3, **changes}
    if changes.get("learning.loss") == "hinge":
        changes["data.source.kind"] = "linear-classification"
        changes["learning.algorithm.rho"] = 1.0
    one = scenario(changes)
    with pytest.raises(MeaningError, match=message):
        made(one, workspace)


def test_an_unstable_step_is_told(workspace):
    one = scenario({**LINEAR, "learning.algorithm.rho": {"h": 300.0}, "learning.algorithm.horizon": 400})
    with pytest.raises(SimulationError, match="unstable"):
        made(one, workspace)


def test_at_the_break_even_budget_nobody_gains_or_loses(workspace):
    one = scenario(LINEAR)
    found = made(one, workspace)
    ends = [party for party in found.parties if party.break_even not in (None, np.inf)]
    assert ends
    for party in found.parties:
        # Where no budget is enough, nothing is gained without noise either.
        assert party.break_even != np.inf or found.parts.noiseless[-1] >= party.alone
    for party in ends:
        factor = party.break_even / party.epsilon
        budgets = found.setting.cell.setup.plan.budget * factor
        again = made(changed(one, budgets=budgets), workspace)
        assert again.psi == pytest.approx(party.alone, rel=1e-6)
        assert party.gains == (factor < 1)


def test_figures_are_drawn_from_the_forecast(workspace):
    """With budgets as they are ψ is the forecast; multiplied to break even, what an owner reaches alone; with ε so
    small that noise has no scale, nothing.
    """
    cell = forecast_scenario(scenario(LINEAR))[0]
    assert cell.forecast.psi_at(1.0) == pytest.approx(cell.forecast.psi)
    party = next(one for one in cell.forecast.parties if one.break_even is not None)
    assert cell.forecast.psi_at(party.break_even / party.epsilon) == pytest.approx(party.alone, rel=1e-6)
    assert cell.forecast.psi_at(1e-320) == np.inf


def test_parties_noise_is_all_noise(workspace):
    found = made(scenario(LINEAR), workspace)
    assert sum(one.noise for one in found.parties) + found.parts.noiseless[-1] == pytest.approx(found.psi)


def test_average_owners_are_the_owners_where_these_are_alike(workspace):
    """All owners with the same second moments and budgets: as many average ones have the same forecast."""
    one = scenario({**LINEAR, "privacy.epsilon": 30.0, "data.source.points": 50})
    given = setting(one, workspace.case(one, 0))
    same = replace(given, model=given.model.alike(3))
    found = forecast(same)
    alike = Alike(same)
    assert alike.epsilon == pytest.approx(30.0)
    assert alike.psi(3) == pytest.approx(found.psi, rel=1e-9)


def test_break_even_number_gains_and_the_one_before_does_not(workspace):
    one = scenario({**LINEAR, "privacy.epsilon": 10.0, "learning.algorithm.horizon": 600})
    given = setting(one, workspace.case(one, 0))
    alike = Alike(given)
    alone = float(np.median([alike.psi(4), alike.psi(5)]))
    lowered = Alike(replace(given, model=replace(given.model, isolated=np.full(3, alone))))
    owners = lowered.break_even()
    assert owners is not None
    assert owners > 2
    assert lowered.psi(owners) < alone <= lowered.psi(owners - 1)


def test_the_best_choice_reaches_what_it_promises(workspace):
    """The scenario with the choice written into it has the forecast that the search tells; and beats what it was."""
    one = scenario({**LINEAR, "privacy.epsilon": 10.0})
    found = made(one, workspace)
    choice = best(found.setting)
    kind, _, value = choice.allocation.rstrip(")").partition("(")
    key, _, number = value.partition("=")
    written = scenario(
        {**LINEAR, "privacy.allocation": {"kind": kind, key: float(number)}}
    ).privacy.allocation
    again = made(changed(one, written, horizon=choice.horizon, rho=choice.rho), workspace)
    assert again.psi == pytest.approx(choice.psi, rel=1e-9)
    assert choice.psi < found.psi


def test_variances_are_those_of_the_plan(workspace):
    """Laplace noise of scale 2ΞT/(n_i·ε_i) has variance 2b²."""
    one = scenario(LINEAR)
    given = setting(one, workspace.case(one, 0))
    scales = 2 * 60 / (np.array([40, 60, 100]) * np.array([30.0, 60.0, 20.0]))
    variances = answer_variances(given.cell.setup.plan, given.frequencies, 60)
    assert variances == pytest.approx(np.broadcast_to(2 * scales**2, (60, 3)))


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("loss", [Squared(), Logistic()])
def test_jacobians_are_differences_of_clipped_gradients(loss, order):
    """Between kinks: a central difference of gradients whose records are clipped one by one."""
    problem = random_problem(loss, [9, 14], 3, seed=4)
    theta, clip, step = np.array([0.3, -0.2, 0.1]), 0.7, 1e-6
    gradients, jacobians = expansion(problem, theta, clip, order)
    for i in range(2):
        rows = slice(problem.offsets[i], problem.offsets[i + 1])
        X, y = problem.X[rows], problem.y[rows]

        def mean(at, X=X, y=y):
            each = loss.slopes(X @ at, y)[:, None] * X
            norms = np.linalg.norm(each, ord=order, axis=1)
            return (each * np.minimum(1, clip / norms)[:, None]).mean(axis=0)

        assert gradients[i] == pytest.approx(mean(theta))
        for j in range(3):
            unit = step * np.eye(3)[j]
            slope = (mean(theta + unit) - mean(theta - unit)) / (2 * step)
            assert jacobians[i][:, j] == pytest.approx(slope, abs=1e-6)


def test_clipped_gradients_balance():
    problem = random_problem(Squared(), [30, 50], 3, seed=5)
    at = balance(problem, 0.5)
    gradients, _ = expansion(problem, at, 0.5)
    assert 2 * problem.l2 * at + problem.shares @ gradients == pytest.approx(np.zeros(3), abs=1e-8)
    assert np.abs(at - problem.optimum).max() > 1e-3  # clipping moves it
    assert balance(problem, np.inf) == pytest.approx(problem.optimum)


def test_an_approximation_of_logistic_loss_is_near(workspace):
    """Small noise: the quadratic model is off by little, which is what calibrating measures."""
    one = scenario(
        {
            **LINEAR,
            "data.source.kind": "linear-classification",
            "learning.loss": "logistic",
            "learning.algorithm.horizon": 200,
            "privacy.epsilon": 1000.0,
            "privacy.sensitivity": {"kind": "declared", "bound": 5.0},
        }
    )
    found = made(one, workspace)
    assert any("quadratic" in reason for reason in found.approximate)
    assert abs(calibrate(one, workspace, 100, found).off) < 0.2


def test_pilots_are_none_or_several():
    with pytest.raises(InputError, match="at least 2"):
        forecast_scenario(scenario(LINEAR), 1)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "small.yaml"
    one = scenario({**LINEAR, "sweep": {"privacy.mechanism": ["laplace", "none"]}})
    path.write_text(one.to_yaml())
    return path


def test_the_command_tells_and_draws(file, tmp_path, capsys):
    folder = tmp_path / "figures"
    asked = ["forecast", str(file), "--calibrate", "3", "--best", "--figures", str(folder)]
    assert main(asked) == 0
    told = capsys.readouterr().out
    for word in ("expected ψ at the end", "alone and together", "along the run", "least forecast", "pilot ψ"):
        assert word in told
    names = {path.name for path in folder.iterdir() if path.suffix == ".png"}
    assert names == {
        "forecast-run.png",
        "forecast-owners-0.png",
        "forecast-partners-0.png",
        "forecast-surface-0.png",
        "forecast-alone-0.png",
        "forecast-budgets.png",
    }


def test_the_command_speaks_json(file, capsys):
    assert main(["forecast", str(file), "--json"]) == 0
    tree = json.loads(capsys.readouterr().out)
    cell = tree["cells"][0]
    assert cell["exact"] is True
    parts = cell["run"]
    total = cell["bias"] + np.array(parts["optimisation"]) + parts["order"] + parts["noise"]
    assert parts["psi"] == pytest.approx(total)
    assert parts["psi"][-1] == cell["psi"]
    assert len(cell["parties"]) == 3


def test_the_command_refuses_what_has_no_forecast(capsys):
    assert main(["forecast", "scenarios/push_sum.yaml"]) == 2
    assert "need messages that take no time" in capsys.readouterr().err
