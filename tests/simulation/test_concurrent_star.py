"""A star whose learner serves several owners at once, as a scenario."""

import pytest
from star_cases import scenario

import p2psim
from p2psim.core.errors import InputError
from p2psim.runs.verification import verify_result

SEVERAL = {"kind": "request", "service": {"exponential": 2.0}, "busy": "queue", "concurrency": 2}
STAR = {"network.exchange": SEVERAL, "replicas": 1}


def test_runs_are_recomputed_plainly(tmp_path):
    metrics = ["relative_fitness", "utilisation", "waiting_time", "turned_away", "staleness"]
    changes = {"record.metrics": metrics, "record.events": True, "record.noise": True}
    result = p2psim.run(scenario({**STAR, **changes}), tmp_path / "run", progress=False, check_events=True)
    assert [one.verdict for one in verify_result(result)] == ["right"]
    last = result.metrics.groupby("metric")["value"].last()
    assert 0.5 < last["utilisation"] <= 1.0
    assert last["waiting_time"] > 0
    # Whoever is served while another is answers an older model: one version at a time, of two places.
    assert 0 < last["staleness"] < 2


def test_frequencies_of_owners_that_are_served_together_are_not_known(tmp_path):
    algorithm = {"kind": "async-star", "horizon": 30, "rho": {"h": 0.2}, "theta_max": 3, "reweight": "known"}
    tree = {**STAR, "learning.algorithm": algorithm}
    with pytest.raises(
        InputError, match="known frequencies cannot be said under concurrency; take estimated"
    ):
        p2psim.run(scenario(tree), tmp_path / "run", progress=False)
    instant = {**tree, "network.exchange": {"kind": "request", "concurrency": "all"}}
    p2psim.run(scenario(instant), tmp_path / "instant", progress=False)


def test_how_often_an_owner_answers_at_most_is_not_known(tmp_path):
    tree = {**STAR, "privacy.allocation": {"kind": "cap", "tail": 0.01}}
    with pytest.raises(InputError, match=r"privacy\.allocation\.tail: needs concurrency: 1"):
        p2psim.run(scenario(tree), tmp_path / "run", progress=False)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (STAR, "request: answers to older models, and not by independent owners"),
        (
            {
                "network.exchange": {"kind": "round", "participants": 2},
                "learning.algorithm": {
                    "kind": "synchronous-descent",
                    "horizon": 30,
                    "rho": 0.2,
                    "theta_max": 3.0,
                },
            },
            "owners are drawn for each round: taken as independent of each other",
        ),
    ],
)
def test_a_forecast_says_what_it_does_not_know(changes, said):
    from p2psim.analysis.forecasts.study import forecast_scenario

    (cell,) = forecast_scenario(scenario(changes))
    assert said in cell.forecast.approximate
