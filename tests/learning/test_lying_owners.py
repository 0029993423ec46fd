"""Owners that answer wrongly, and what the learner makes of answers: a step by hand, and runs against the reference."""

import numpy as np
import pytest

import p2psim
from p2psim.analysis.forecasts.study import forecast_scenario
from p2psim.core.errors import InputError
from p2psim.data.prepare import prepare
from p2psim.learning.star.rounds import trimmed_mean
from p2psim.runs.verification import verify_result
from p2psim.scenario.model import Scenario

OWNERS, P = 6, 3


def scenario(**algorithm):
    return Scenario.from_dict(
        {
            "name": "liars",
            "seed": 4,
            "network": {"topology": {"kind": "star", "agents": OWNERS}, "exchange": "round"},
            "data": {
                "source": {
                    "kind": "linear-regression",
                    "dimension": P,
                    "points": {str(i): 10 * (i + 1) for i in range(OWNERS)},
                }
            },
            "learning": {
                "algorithm": {"kind": "synchronous-descent", "horizon": 2, "rho": 1.0, "theta_max": 3.0}
                | algorithm,
                "loss": "squared",
                "regularizer": {"l2": 0.1},
            },
            "record": {"models": True},
        }
    )


def answers():
    """Each owner's mean gradient at zero, −2/n Xᵀy, and its share of the records."""
    given = scenario()
    held = prepare(given.data, given.seed, 0, agents=OWNERS)
    ends = list(zip(held.offsets[:-1], held.offsets[1:], strict=True))
    gradients = [-2 * held.X[a:b].T @ held.y[a:b] / (b - a) for a, b in ends]
    return np.array(gradients), np.diff(held.offsets) / held.offsets[-1]


def stepped(**algorithm):
    """Minus the model after a step of length 1 from zero: what the learner made of the answers."""
    return -p2psim.simulate(scenario(**algorithm)).models[-1]


def clipped(rows, norm):
    return rows * np.minimum(1, norm / np.linalg.norm(rows, axis=1))[:, None]


def test_a_learner_sums_clips_or_takes_medians():
    Q, shares = answers()
    np.testing.assert_allclose(stepped(), shares @ Q, rtol=1e-12)
    norm = float(np.median(np.linalg.norm(Q, axis=1)))
    np.testing.assert_allclose(
        stepped(aggregate={"kind": "clip", "norm": norm}), shares @ clipped(Q, norm), rtol=1e-12
    )
    np.testing.assert_allclose(stepped(aggregate="median"), np.median(Q, axis=0), rtol=1e-12)
    trimmed = np.sort(Q, axis=0)[1:5].mean(axis=0)  # int(.3·6) = 1 at each end
    np.testing.assert_allclose(stepped(aggregate={"kind": "trimmed-mean", "trim": 0.3}), trimmed, rtol=1e-12)


@pytest.mark.parametrize(
    ("how", "lie"),
    [("flip", lambda q: -7 * q), ("scale", lambda q: 7 * q), ("constant", lambda q: np.full_like(q, 7.0))],
)
def test_liars_answer_something_else(how, lie):
    Q, shares = answers()
    Q[:2] = lie(Q[:2])
    for whom in ({"share": 0.35}, {"owners": [0, 1]}):
        np.testing.assert_allclose(stepped(liars=whom | {"how": how, "size": 7.0}), shares @ Q, rtol=1e-12)


def test_random_answers_are_the_same_in_all_rounds_and_replicas():
    Q, shares = answers()
    liars = {"share": 0.2, "how": "random", "size": 100.0}
    drawn = [stepped(liars=liars), -p2psim.simulate(scenario(liars=liars), replica=3).models[-1]]
    assert np.linalg.norm(drawn[0] - shares @ Q) > 1
    # Another replica has other records: what the liar adds is the same.
    given = scenario()
    held = prepare(given.data, given.seed, 3, agents=OWNERS)
    ends = zip(held.offsets[:-1], held.offsets[1:], strict=True)
    others = np.array([-2 * held.X[a:b].T @ held.y[a:b] / (b - a) for a, b in ends])
    np.testing.assert_allclose(drawn[0] - shares[1:] @ Q[1:], drawn[1] - shares[1:] @ others[1:], rtol=1e-9)


def test_a_median_survives_liars_that_a_sum_does_not():
    Q, _ = answers()
    liars = {"share": 0.35, "how": "constant", "size": 1e6}
    assert np.abs(stepped(liars=liars)).max() > 1e4
    assert (stepped(liars=liars, aggregate="median") <= Q.max(axis=0)).all()
    assert (stepped(liars=liars, aggregate="median") >= Q.min(axis=0)).all()


def test_trimmed_means_of_known_numbers():
    arrived = np.array([[5.0], [1.0], [9.0], [2.0], [100.0]])
    column = np.empty(5)
    everyone, four = np.ones(5, bool), np.array([True, True, True, True, False])
    assert trimmed_mean(arrived, everyone, 0, 0.5, column) == 5.0
    assert trimmed_mean(arrived, four, 0, 0.5, column) == 3.5
    assert trimmed_mean(arrived, everyone, 0, 0.2, column) == 16 / 3
    assert trimmed_mean(arrived, everyone, 0, 0.19, column) == 117 / 5
    assert trimmed_mean(arrived, np.array([False, False, True, False, False]), 0, 0.5, column) == 9.0


def test_the_share_that_is_trimmed_is_not_cut_by_rounding():
    """0.29·100 is 28.999… in floating-point numbers."""
    arrived = np.random.default_rng(5).standard_normal((100, 1))
    expected = np.sort(arrived[:, 0])[29:71].mean()
    assert trimmed_mean(arrived, np.ones(100, bool), 0, 0.29, np.empty(100)) == pytest.approx(
        expected, rel=1e-12
    )


def test_runs_agree_with_the_reference_and_lies_cost_no_privacy(tmp_path):
    tree = scenario().resolved()
    tree["learning"]["algorithm"] |= {"horizon": 8, "liars": {"share": 0.35, "how": "flip", "size": 3.0}}
    tree["learning"]["algorithm"]["reweight"] = "answered"
    tree["network"]["channel"] = {"loss": 0.2}
    tree["privacy"] = {"mechanism": "laplace", "epsilon": 5.0, "sensitivity": {"kind": "clip", "bound": 1.0}}
    tree["record"] = {"metrics": ["relative_fitness"], "events": True}
    kinds = [None, {"kind": "clip", "norm": 0.5}, {"kind": "trimmed-mean", "trim": 0.2}, {"kind": "median"}]
    tree["sweep"] = {
        "learning.algorithm.aggregate": kinds,
        "learning.algorithm.liars.how": ["flip", "random"],
    }
    result = p2psim.run(Scenario.from_dict(tree), tmp_path / "run", progress=False)
    assert {check.verdict for check in verify_result(result)} == {"right"}
    spent = result.ledger.groupby("agent")["epsilon_basic"]
    assert (spent.max() == spent.min()).all()
    del tree["sweep"], tree["learning"]["algorithm"]["liars"]
    honest = p2psim.run(Scenario.from_dict(tree), tmp_path / "honest", progress=False)
    assert honest.ledger.groupby("agent")["epsilon_basic"].max().equals(spent.max())
    assert np.isfinite(spent.max()).all()


def test_scenarios_without_liars_are_what_they_were():
    assert not {"liars", "aggregate"} & scenario().resolved()["learning"]["algorithm"].keys()


@pytest.mark.parametrize(
    ("liars", "message"),
    [
        ({"how": "flip"}, "exactly one of owners and share"),
        ({"share": 0.1, "owners": ["0"], "how": "flip"}, "exactly one of owners and share"),
        ({"owners": ["nobody"], "how": "flip"}, "no agent is called 'nobody'"),
    ],
)
def test_who_lies_must_be_known(liars, message):
    with pytest.raises(InputError, match=message):
        p2psim.simulate(scenario(liars=liars))


@pytest.mark.parametrize("changes", [{"aggregate": "median"}, {"liars": {"share": 0.5, "how": "flip"}}])
def test_forecasts_know_sums_of_right_answers_alone(changes):
    (key,) = changes
    with pytest.raises(
        InputError, match=f"learning.algorithm.{key}: forecasts cover sums of correct answers only"
    ):
        forecast_scenario(scenario(**changes))
