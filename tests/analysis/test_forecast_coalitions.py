"""Coalitions by forecast: judged on everybody's records, and consistent with the forecast of all."""

import json

import numpy as np
import pytest
from star_cases import scenario

from p2psim.analysis.forecasts.collaboration import Coalitions, market
from p2psim.analysis.forecasts.forecast import forecast, setting
from p2psim.cli.main import main
from p2psim.core.errors import InputError
from p2psim.simulation.workspace import Workspace

MARKET = {
    "learning.algorithm.theta_max": 1e6,
    "learning.regularizer.l2": 0.01,
    "privacy.sensitivity": {"kind": "declared", "bound": 1.0},
    "privacy.epsilon": {"0": 30.0, "1": 60.0, "2": 20.0},
    "network.topology.agents": 3,
}


@pytest.fixture
def game(tmp_path):
    one = scenario(dict(MARKET))
    return Coalitions(setting(one, Workspace(tmp_path).case(one, 0)))


def test_all_are_the_forecast_and_one_is_alone(game):
    found = forecast(game.setting)
    assert game.psi(game.all) == pytest.approx(found.psi, rel=1e-9)
    assert [game.psi(1 << i) for i in range(3)] == pytest.approx(found.alone.tolist())
    assert game.psi(0) == pytest.approx(found.parts.psi[0])


def test_coalitions_keep_the_largest_h(game):
    """α·N·(n_i/n)·λ_i is at most the same in each."""

    def steepest(one, factor):
        peaks = np.linalg.eigvalsh(one.model.gram)[:, -1]
        return factor * (len(peaks) * one.model.shares * peaks).max()

    for coalition in (3, 5, 6):
        among = game.setting.among(np.flatnonzero([coalition >> i & 1 for i in range(3)]))
        assert steepest(among, among.factor_among(game.setting)) == pytest.approx(steepest(game.setting, 1.0))


def test_shapley_values_share_what_all_are_worth(game):
    assert game.shapley().values.sum() == pytest.approx(game.worth(game.all))


def test_owners_alike_get_the_same(tmp_path):
    one = scenario({**MARKET, "privacy.epsilon": 30.0, "data.source.points": 50})
    given = setting(one, Workspace(tmp_path).case(one, 0)).alike(3)
    values = Coalitions(given).shapley().values
    assert values == pytest.approx(np.full(3, values.mean()), rel=1e-9)


def test_the_marginal_value_of_a_budget_is_of_its_noise(game):
    """Noise goes as ε⁻², so −∂ψ/∂ε = 2·noise/ε."""
    parts = forecast(game.setting).parts
    for i in range(3):
        assert game.marginal(i) == pytest.approx(2 * parts.noise[-1, i] / game.budgets[i], rel=1e-5)


def test_at_its_least_budget_the_others_gain_and_lose_nothing(game):
    least = [game.least_budget(i) for i in range(3)]
    assert any(least)
    for i, epsilon in enumerate(least):
        without = game.psi(game.all & ~(1 << i))
        if epsilon:
            budgets = game.budgets.copy()
            budgets[i] = epsilon
            assert game.psi_with(game.all, budgets) == pytest.approx(without, rel=1e-4)


def test_rounds_have_coalitions_as_well(tmp_path):
    algorithm = {"kind": "synchronous-averaging", "horizon": 40, "c1": 0.5, "theta_max": 1e6}
    one = scenario({**MARKET, "network.exchange": {"kind": "round"}, "learning.algorithm": algorithm})
    game = Coalitions(setting(one, Workspace(tmp_path).case(one, 0)))
    assert game.psi(7) == pytest.approx(forecast(game.setting).psi)
    assert game.shapley().values.sum() == pytest.approx(game.worth(7))


def test_many_owners_are_sampled(tmp_path):
    one = scenario(
        {**MARKET, "network.topology.agents": 14, "privacy.epsilon": 50.0, "data.source.points": 30}
    )
    game = Coalitions(setting(one, Workspace(tmp_path).case(one, 0)))
    found = game.shapley(permutations=5)
    assert (found.errors > 0).all()
    assert found.values.sum() == pytest.approx(game.worth(game.all))
    with pytest.raises(InputError, match="at most 12"):
        game.table()


def test_without_noise_there_is_no_market(tmp_path):
    one = scenario(
        {**MARKET, "privacy.mechanism": "none", "privacy.sensitivity": None, "privacy.epsilon": None}
    )
    with pytest.raises(InputError, match="here is none"):
        market(setting(one, Workspace(tmp_path).case(one, 0)))


def test_the_command_lists_coalitions(tmp_path, capsys):
    file = tmp_path / "small.yaml"
    file.write_text(scenario(dict(MARKET)).to_yaml())
    assert main(["forecast", str(file), "--coalitions"]) == 0
    told = capsys.readouterr().out
    assert "0 + 1 + 2" in told
    assert "what owners add to all" in told
    assert main(["forecast", str(file), "--coalitions", "--json"]) == 0
    made = json.loads(capsys.readouterr().out)["cells"][0]["coalitions"]
    psi = [one["psi"] for one in made["coalitions"]]
    assert len(psi) == 7
    assert psi == sorted(psi)
    assert len(made["stakes"]) == 3


def test_graphs_have_no_coalitions_here(capsys):
    assert main(["forecast", "scenarios/personalised_graph.yaml", "--coalitions"]) == 2
    assert "a graph has none" in capsys.readouterr().err
