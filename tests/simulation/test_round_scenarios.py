"""Synchronous rounds as scenarios: what is refused, what noise is drawn, what is recomputed and flagged."""

import numpy as np
import pandas as pd
import pytest
from star_cases import scenario

import p2psim
from p2psim.core.errors import InputError
from p2psim.runs.verification import verify_result

DESCENT = {"kind": "synchronous-descent", "horizon": 30, "rho": 0.2, "theta_max": 3.0}
AVERAGING = {"kind": "synchronous-averaging", "horizon": 30, "c1": 0.5, "theta_max": 3.0}
ROUNDS = {"network.exchange": {"kind": "round"}, "learning.algorithm": DESCENT, "replicas": 1}
SLOW = {"kind": "round", "interval": 0.3, "response": {"exponential": 0.5}, "deadline": 0.6}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"network.exchange": "request"}, "network.exchange: synchronous-descent needs round, got request"),
        (
            {"learning.regularizer": {"l2": 0}, "learning.loss": "hinge"},
            "learning.regularizer.l2: must be positive: the hinge loss alone may have many optima; got 0",
        ),
        ({"learning.algorithm": {**DESCENT, "horizon": 1}}, "learning.algorithm.horizon"),
        ({"learning.algorithm": {**AVERAGING, "rho": 1}}, "learning.algorithm.rho: unknown key"),
        (
            {"learning.algorithm": {**AVERAGING, "c1": 1e308}},
            "learning.algorithm.c1: must be a positive number of at most 1e+100, got 1e+308",
        ),
        ({"network.clock": {"rate": 2}}, "network.clock: agents have no clock under round"),
        ({"record.metrics": ["waiting_time"]}, "for a learner that serves owners on request"),
        ({"privacy.sensitivity": "bounds"}, "bounds needs models that stay in Θ"),
        ({"privacy.allocation": {"kind": "cap", "tail": 0.01}}, "needs exchange: request"),
        ({"network.exchange": {"kind": "round", "deadline": 0}}, "network.exchange.deadline"),
        (
            {"network.exchange": {"kind": "round", "participants": 4}},
            "network.exchange.participants: must be at most the number of owners, 3, got 4",
        ),
        ({"network.exchange": "synchronous"}, "synchronous-descent needs round, got synchronous"),
        (
            {
                "learning.algorithm": {**DESCENT, "reweight": "known"},
                "network.availability": {"kind": "leave", "after": 9.0},
            },
            "known frequencies cannot be said",
        ),
    ],
)
def test_what_means_nothing_is_refused(changes, said, tmp_path):
    with pytest.raises(InputError) as raised:
        p2psim.run(scenario({**ROUNDS, **changes}), tmp_path / "run", progress=False)
    assert said in str(raised.value)
    assert not (tmp_path / "run").exists()


def test_async_star_takes_no_rounds():
    with pytest.raises(InputError, match="async-star needs request or poll, got round"):
        scenario({"network.exchange": "round"})


@pytest.mark.parametrize(
    ("algorithm", "loss", "exchange"),
    [
        (DESCENT, "squared", {"kind": "round"}),
        (AVERAGING, "squared", SLOW),
        (DESCENT, "logistic", SLOW),
        (AVERAGING, "logistic", {"kind": "round"}),
        (DESCENT, "hinge", {"kind": "round"}),
        (DESCENT, "squared", {"kind": "round", "participants": 2}),
        (AVERAGING, "squared", SLOW | {"participants": 1}),
        (AVERAGING, "hinge", SLOW),
    ],
)
def test_runs_are_recomputed_plainly(algorithm, loss, exchange, tmp_path):
    changes = {"learning.algorithm": algorithm, "network.exchange": exchange, "learning.loss": loss}
    if loss != "squared":
        changes["data.source"] = {"kind": "linear-classification", "agents": 3, "dimension": 3, "points": 30}
    channel = {"network.channel": {"loss": 0.1, "latency": 0.01}}
    result = p2psim.run(
        scenario({**ROUNDS, **changes, **channel}), tmp_path / "run", progress=False, check_events=True
    )
    assert result.metrics["step"].max() == 29
    checked = verify_result(result)
    assert [one.verdict for one in checked] == ["right"]
    table = pd.read_parquet(result.path / "metrics.parquet")
    table.loc[table.index[-1], "value"] += 1e-6
    table.to_parquet(result.path / "metrics.parquet", index=False)
    assert [one.verdict for one in verify_result(p2psim.Result.load(result.path))] == ["wrong"]


def rows(X, y):
    """Records of three owners as a source."""
    pieces = np.array_split(np.arange(len(X)), 3)
    return p2psim.Arrays.per_agent([X[piece] for piece in pieces], [y[piece] for piece in pieces])


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_without_a_regulariser_the_optimum_is_that_of_the_mean_loss(loss, tmp_path):
    """W has g₁ = 0 for loans: ψ of what plain optimisation finds is 0, and runs are recomputed."""
    random = np.random.default_rng(3)
    X = random.standard_normal((90, 3))
    y = X @ [1.0, -0.5, 0.2] + random.standard_normal(90)
    y = y if loss == "squared" else np.where(y > 0, 1.0, -1.0)
    changes = {
        "learning.regularizer": {"l2": 0},
        "learning.loss": loss,
        "learning.algorithm": AVERAGING,
        "data.source": rows(X, y),
        "record.metrics": ["relative_fitness", "isolated_fitness"],
    }
    given = scenario({**ROUNDS, **changes})
    result = p2psim.run(given, tmp_path / "run", progress=False)
    assert [one.verdict for one in verify_result(result, given)] == ["right"]
    if loss == "squared":
        best = np.linalg.lstsq(X, y, rcond=None)[0]
        gap = np.square(X @ np.zeros(3) - y).sum() / np.square(X @ best - y).sum() - 1
        assert result.metrics.query("metric == 'relative_fitness'")["value"].iloc[0] == pytest.approx(gap)


@pytest.mark.parametrize(
    ("X", "y", "metrics", "said"),
    [
        (np.ones((30, 3)), np.arange(30.0), ["relative_fitness"], "the owners' records have rank 1 in 3"),
        (np.eye(3)[np.arange(30) % 3], np.ones(30), ["relative_fitness"], "fits all records without error"),
        (
            np.eye(3)[np.arange(30) // 10],
            np.arange(30.0),
            ["isolated_fitness"],
            "for isolated_fitness, the records of owner 0 have rank 1 in 3",
        ),
    ],
)
def test_without_a_regulariser_records_must_say_which_model_is_best(X, y, metrics, said, tmp_path):
    changes = {"learning.regularizer": {"l2": 0}, "data.source": rows(X, y), "record.metrics": metrics}
    with pytest.raises(InputError) as raised:
        p2psim.run(scenario({**ROUNDS, **changes}), tmp_path / "run", progress=False)
    assert "learning.regularizer.l2" in str(raised.value)
    assert said in str(raised.value)


def test_loss_on_records_held_out_is_that_of_plain_numpy(tmp_path):
    random = np.random.default_rng(5)
    X = random.standard_normal((90, 2))
    y = X @ [1.0, -0.5] + random.standard_normal(90)
    changes = {
        "data.source": rows(X, y),
        "data.test_fraction": 0.5,
        "record.metrics": ["relative_fitness", "test_loss"],
        "record.models": True,
        "record.data": True,
    }
    given = scenario({**ROUNDS, **changes})
    result = p2psim.run(given, tmp_path / "run", progress=False)
    held, found = result.data(cell=0, replica=0), result.metrics.query("metric == 'test_loss'")
    assert len(held["test_y"]) == 45
    for model, theta in (("main", result.models[0, 0]), ("optimum", held["optimum"][None])):
        expected = np.square(held["test_X"] @ theta.T - held["test_y"][:, None]).mean(axis=0)
        np.testing.assert_allclose(
            found["value"][found["model"] == model],
            np.broadcast_to(expected, (max(len(theta), 2),)),
            rtol=1e-12,
        )
    assert [one.verdict for one in verify_result(result, given)] == ["right"]
    with pytest.raises(InputError, match="test_loss needs records that are held out"):
        p2psim.run(scenario({**ROUNDS, "record.metrics": ["test_loss"]}), tmp_path / "none", progress=False)


def test_noise_is_that_of_as_many_answers_as_the_horizon(tmp_path):
    """Laplace of scale 2ΞT/(n_iε_i), although T − 1 are given. Fixed seed; five standard errors, three owners: 2e-6."""
    algorithm = {**DESCENT, "horizon": 400}
    changes = {
        "learning.algorithm": algorithm,
        "privacy.epsilon": {0: 1.0, 1: 10.0, 2: 50.0},
        "record.noise": True,
    }
    result = p2psim.run(scenario({**ROUNDS, **changes}), tmp_path / "run", progress=False)
    noise = next(iter(np.load(result.path / "noise.npz").values()))
    assert noise.shape == (3 * 399, 3)
    for i, (records, epsilon) in enumerate([(40, 1.0), (60, 10.0), (100, 50.0)]):
        own = np.abs(noise[399 * i : 399 * (i + 1)])
        expected = 2 * 1.0 * 400 / (records * epsilon)
        assert own.mean() == pytest.approx(expected, abs=5 * expected / np.sqrt(own.size))
    np.testing.assert_allclose(result.ledger["epsilon_basic"], np.array([1.0, 10.0, 50.0]) * 399 / 400)


def test_a_declared_bound_is_checked_outside_of_the_box_too(tmp_path):
    """Models of Algorithm 1 are not projected: far out gradients exceed a bound that holds on all of Θ."""
    changes = {
        "learning.algorithm": {**DESCENT, "rho": 5000.0, "horizon": 8, "theta_max": 0.01},
        "privacy.sensitivity": {"kind": "declared", "bound": 200.0},
        "privacy.epsilon": float("inf"),
    }
    tree = {**ROUNDS, **changes}
    result = p2psim.run(scenario(tree), tmp_path / "far", progress=False)
    assert result.ledger["bound_violated"].all()
    assert (result.ledger["violation_step"] > 0).all()
    near = {**tree, "learning.algorithm": {**changes["learning.algorithm"], "rho": 1e-3}}
    assert not p2psim.run(scenario(near), tmp_path / "near", progress=False).ledger["bound_violated"].any()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"network.channel": {"loss": 0.2, "retransmit": "same"}}, "what is sent again is not in it"),
        (
            {"network.exchange": {"kind": "round", "deadline": 1.0}, "network.channel": {"latency": 0.1}},
            "latency",
        ),
        ({"network.exchange": {"kind": "round", "response": 0.5, "deadline": 0.1}}, "never answers in time"),
    ],
)
def test_frequencies_that_cannot_be_known_are_not_taken_as_known(changes, said, tmp_path):
    tree = {**ROUNDS, "learning.algorithm": {**DESCENT, "reweight": "known"}, **changes}
    with pytest.raises(InputError, match=said):
        p2psim.run(scenario(tree), tmp_path / "run", progress=False)


@pytest.mark.parametrize("participants", [None, 2])
def test_known_frequencies_are_those_of_answers_that_are_used(participants, tmp_path):
    """There, heard, and in time: the factor is one over .8·.9·.9·(1 − 1/e); and over 2/3 where two are drawn."""
    from p2psim.simulation.algorithms import adapter_of
    from p2psim.simulation.workspace import Workspace

    changes = {
        "network.exchange": {
            "kind": "round",
            "response": {"exponential": 0.5},
            "deadline": 0.5,
            "participants": participants,
        },
        "network.channel": {"loss": 0.1},
        "network.availability": {"kind": "bernoulli", "drop": 0.2},
        "learning.algorithm": {**DESCENT, "reweight": "known"},
    }
    made = scenario({**ROUNDS, **changes})
    cell = adapter_of(made).cell(made, Workspace(tmp_path).case(made, 0), 0)
    expected = 1 / (0.8 * 0.9 * 0.9 * (1 - np.exp(-1)) * ((participants or 3) / 3))
    np.testing.assert_allclose(cell.method.weighting.at_learner, expected, rtol=1e-12)


def test_check_warns_of_steps_that_do_nothing_or_too_much():
    import tempfile
    from pathlib import Path

    from p2psim.runs.checking import assess_cells
    from p2psim.scenario.cells import cells
    from p2psim.simulation.workspace import Workspace

    def warnings(basis=DESCENT, **algorithm):
        made = scenario({**ROUNDS, "learning.algorithm": {**basis, **algorithm}})
        with tempfile.TemporaryDirectory() as folder:
            (fact,) = assess_cells(made, cells(made), Workspace(Path(folder)))
        return " ".join(fact.warnings)

    assert "hardly moves" in warnings(form="printed")
    assert "too far" in warnings(rho=100.0)
    assert "hardly" not in warnings(rho=2.0)
    assert "too far" not in warnings(rho=2.0)
    for c1 in (1e4, 1e100):
        assert "does not settle in Θ" in warnings(AVERAGING, c1=c1)
    assert "settle" not in warnings(AVERAGING)
