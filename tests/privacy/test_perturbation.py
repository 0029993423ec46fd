"""Output and objective perturbation (Chaudhuri, Monteleoni, Sarwate 2011): their law, their ε, their conditions."""

import math
import re
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
from graph_cases import graph_scenario
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import minimize

from p2psim.audit.claims import Canary, findings, thresholds_for
from p2psim.core.errors import InputError
from p2psim.learning.graph.problem import GraphProblem
from p2psim.learning.losses import Logistic
from p2psim.learning.steps import PrivateWarmStart
from p2psim.privacy.accounting.noises import LAPLACE, PURE
from p2psim.privacy.perturbation import objective_noise, output_rate, radial_noise
from p2psim.simulation.algorithms.graph import GraphCell
from p2psim.simulation.algorithms.graph_setting import perturbed_models
from p2psim.simulation.simulate import simulate
from p2psim.simulation.workspace import Workspace

KEY = np.array([20, 11], np.uint64)
LAMBDA = 0.02


def alike(X, y, agents, ridge=LAMBDA / 2):
    """Agents on a ring who all hold the same records."""
    n, ones = agents, np.ones(agents)
    links = np.sort(np.stack([(np.arange(n) - 1) % n, (np.arange(n) + 1) % n], axis=1), axis=1)
    return GraphProblem(
        Logistic(),
        1.0,
        np.tile(X, (n, 1)),
        np.tile(y, n),
        np.arange(n + 1) * len(y),
        ridge * ones,
        ones,
        ones,
        np.arange(n + 1) * 2,
        links.ravel(),
        np.ones(2 * n),
        X[:0],
        y[:0],
        np.zeros(n + 1, np.int64),
    )


def released(problem, kind, epsilon, key=KEY):
    start = PrivateWarmStart(epsilon=epsilon, perturbation=kind)
    return perturbed_models(start, problem, start.models(problem), key)


def gradient(theta, X, y, strong):
    """n·∇J, by hand."""
    return -(X * (y / (1 + np.exp(y * (X @ theta))))[:, None]).sum(axis=0) + len(y) * strong * theta


def hessian(theta, X, y, strong):
    chance = 1 / (1 + np.exp(y * (X @ theta)))
    return (X * (chance * (1 - chance))[:, None]).T @ X + len(y) * strong * np.eye(X.shape[1])


@pytest.mark.parametrize("p", [1, 2, 5, 100])
def test_norms_are_gamma_and_directions_uniform(p):
    noise = radial_noise(KEY, np.arange(5000), p)
    norms = np.linalg.norm(noise, axis=1)
    assert stats.kstest(norms, stats.gamma(p).cdf).pvalue > 1e-3
    assert stats.kstest(norms[::2], stats.gamma(p, scale=0.9).cdf).pvalue < (1e-3 if p > 1 else 0.02)
    along = noise[:, 0] / norms
    if p > 1:
        # (1 + u₁)/2 of a uniform direction is Beta((p − 1)/2, (p − 1)/2).
        assert stats.kstest((1 + along) / 2, stats.beta((p - 1) / 2, (p - 1) / 2).cdf).pvalue > 1e-3
        assert abs(stats.spearmanr(along, norms).statistic) < 0.05
    else:
        assert 0.45 < (along > 0).mean() < 0.55


def test_noise_of_an_agent_hangs_on_itself_alone():
    every = radial_noise(KEY, np.arange(10), 3)
    np.testing.assert_array_equal(radial_noise(KEY, np.array([7]), 3)[0], every[7])
    assert np.unique(every).size == every.size


@pytest.mark.parametrize(
    ("n", "strong", "epsilon", "rate"), [(50, 0.02, 0.05, 0.025), (100, 0.1, 1.0, 5.0), (1, 2.0, 3.0, 3.0)]
)
def test_rate_of_output_perturbation(n, strong, epsilon, rate):
    """nΛε/2, but for the error of minimisers: 1e-8 of gradient, so n·1e-8 beside 1."""
    found = output_rate(np.array([n]), np.array([strong]), epsilon)
    assert found == pytest.approx(rate, rel=1.1e-8 * n)
    assert found < rate


@pytest.mark.parametrize(
    ("n", "strong", "epsilon", "rate", "extra"),
    [
        # nΛ = 10: ε′ = 1 − ln(1 + .05 + .000625) = 1 − .049385.
        (100, 0.1, 1.0, 0.4753074, 0.0),
        # nΛ = 2: ln(1 + .25 + .015625) = .235566 exceeds ε; Δ = .25/(100·.01257845) − .02.
        (100, 0.02, 0.05, 0.0125, 0.1787526),
        # ε′ is just positive.
        (100, 0.02, 0.2355661 + 1e-6, 5e-7, 0.0),
    ],
)
def test_objective_perturbation_in_both_cases(n, strong, epsilon, rate, extra):
    found = objective_noise(np.array([n]), np.array([strong]), 0.25, epsilon)
    assert found[0] == pytest.approx(rate, rel=0.1 if rate < 1e-6 else 1e-6)
    assert found[1] == pytest.approx(extra, abs=1e-7)


@settings(max_examples=50, deadline=None)
@given(
    n=st.integers(1, 1000),
    strong=st.floats(1e-4, 10),
    curvature=st.floats(0.01, 10),
    epsilon=st.floats(1e-3, 10),
)
def test_noise_and_volume_share_the_budget(n, strong, curvature, epsilon):
    """2β for the noise and 2·ln(1 + c/(n(Λ + Δ))) for the volume make ε; nothing is taken off Λ."""
    rate, extra = (
        float(v[0]) for v in objective_noise(np.array([n]), np.array([strong]), curvature, epsilon)
    )
    assert rate > 0
    assert extra >= 0
    volume = 2 * math.log1p(curvature / (n * (strong + extra)))
    assert 2 * rate + volume == pytest.approx(epsilon, rel=1e-9)


def records(seed, n=20, p=3):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, p))
    return X / np.linalg.norm(X, axis=1)[:, None], np.sign(random.normal(size=n))


def test_models_are_minimisers_with_the_noise_that_is_claimed():
    X, y = records(1)
    problem, epsilon = alike(X, y, 800), 0.5
    exact = minimize(
        lambda t: np.logaddexp(0, -y * (X @ t)).mean() + LAMBDA / 2 * t @ t, np.zeros(3), tol=1e-12
    ).x
    noise = released(problem, "output", epsilon) - exact
    norms = np.linalg.norm(noise, axis=1) * 20 * LAMBDA * epsilon / 2
    assert stats.kstest(norms, stats.gamma(3).cdf).pvalue > 1e-3
    # n∇J + nΔθ + b = 0 at what objective perturbation releases, Δ and β as in the case of a small ε.
    strong = 0.25 / (20 * math.expm1(epsilon / 4))
    noise = np.array([-gradient(t, X, y, strong) for t in released(problem, "objective", epsilon)])
    norms = np.linalg.norm(noise, axis=1) * epsilon / 4
    assert stats.kstest(norms, stats.gamma(3).cdf).pvalue > 1e-3


def neighbours(seed, n, p):
    """Data that differ in the last record, by as much as it can."""
    X, y = records(seed, n, p)
    return (X, y), (X, np.append(y[:-1], -y[-1]))


def log_density(kind, theta, data, strong, rate, extra):
    X, y = data
    if kind == "output":
        exact = minimize(
            lambda t: np.logaddexp(0, -y * (X @ t)).mean() + strong / 2 * t @ t,
            np.zeros(X.shape[1]),
            tol=1e-13,
        ).x
        return -rate * np.linalg.norm(theta - exact, axis=1)
    whole = strong + extra
    noise = [-rate * np.linalg.norm(gradient(t, X, y, whole)) for t in theta]
    return np.array(noise) + [np.linalg.slogdet(hessian(t, X, y, whole))[1] for t in theta]


@pytest.mark.parametrize("kind", ["output", "objective"])
@pytest.mark.parametrize(("n", "p", "epsilon"), [(1, 1, 0.3), (1, 1, 3.0), (4, 3, 1.0), (20, 2, 0.05)])
def test_no_output_tells_more_than_epsilon(kind, n, p, epsilon):
    """The exact log-likelihood ratio of two neighbouring data sets stays within ε; with a planted fault it does not."""
    strong = 0.5
    size, lam = np.array([n]), np.array([strong])

    def largest(rate, extra):
        worst = 0.0
        for seed in range(3):
            both = neighbours(seed, n, p)
            random = np.random.default_rng(seed)
            theta = random.normal(size=(200, p)) * np.geomspace(0.01, 100, 200)[:, None]
            # Along the record that differs the ratio is the largest.
            theta[::2] = (
                both[0][0][-1]
                * np.concatenate([-np.geomspace(0.01, 300, 50), np.geomspace(0.01, 300, 50)])[:, None]
            )
            ratio = np.subtract(*(log_density(kind, theta, data, strong, rate, extra) for data in both))
            worst = max(worst, float(np.abs(ratio).max()))
        return worst

    if kind == "output":
        rate, extra = float(output_rate(size, lam, epsilon)[0]), 0.0
        assert largest(rate, extra) <= epsilon * (1 + 1e-6)
        # Half of the noise: seen where the minimiser moves by more than half of what it can.
        assert n > 1 or largest(4 * rate, extra) > epsilon
        return
    rate, extra = (float(v[0]) for v in objective_noise(size, lam, 0.25, epsilon))
    assert largest(rate, extra) <= epsilon * (1 + 1e-9)
    assert largest(epsilon / 2 * 2.2, extra) > epsilon


@pytest.mark.parametrize("kind", ["output", "objective"])
def test_an_audit_lets_the_claim_stand_and_finds_noise_that_is_too_small(kind):
    """One record, x = 1, y = ±1, which moves all it can; 1,500 releases each by the code that runs use."""
    epsilon, samples = 1.0, 1500
    X, ridge = np.ones((1, 1)), 2.0
    P, Q = (alike(X, np.array([label]), samples, ridge) for label in (1.0, -1.0))
    size, lam = np.ones(1), np.full(1, 2 * ridge)
    if kind == "output":
        rate, extra, noise = float(output_rate(size, lam, epsilon)[0]), 0.0, LAPLACE
    else:
        rate, extra = (float(v[0]) for v in objective_noise(size, lam, 0.25, epsilon))
        noise = PURE

    def stands(spends):
        scored = []
        for problem, key in ((P, KEY), (Q, KEY + np.uint64(1))):
            theta = released(problem, kind, spends, key)
            to = [
                log_density(kind, theta, (X, np.array([label])), 2 * ridge, rate, extra)
                for label in (1.0, -1.0)
            ]
            scored.append(to[0] - to[1])
        claim = lambda e: float(noise.delta(np.array(epsilon), np.array(e)))  # noqa: E731
        sets = findings(
            [Canary("a label", *scored)], claim, thresholds_for(np.array([epsilon])), 1e-6, (0, 0, 0)
        )
        return not any(one.rejects for one in sets)

    assert stands(epsilon)
    # x = 1 moves an output by less than it could by a steeper loss: a fault of five times is certain to be seen.
    assert not stands(5 * epsilon)


START = {"kind": "private", "epsilon": 0.05, "perturbation": "output"}
CHANGES = {
    "data.source": {
        "kind": "linear-classification", "agents": 8, "dimension": 4, "points": 40, "test_points": 50,
        "x": {"kind": "uniform", "bound": 0.5},
    },
    "data.scale": {},
    "network.topology": {"kind": "ring", "agents": 8},
    "learning.algorithm.start": START,
    "record.metrics": ["test_accuracy"],
}  # fmt: skip


def scenario(**changes):
    named = {key.replace("__", "."): value for key, value in changes.items()}
    return graph_scenario({**deepcopy(CHANGES), **named})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"data__source__x__bound": 0.51},
         "output needs public bounds that keep ‖x‖₂ within 1; they keep it within 1.02"),
        ({"data__source__x": "gaussian", "privacy__sensitivity": {"kind": "clip", "bound": 1.0}},
         "output needs public bounds that keep ‖x‖₂ within 1; they keep it within inf"),
        ({"learning__loss": {"kind": "logistic", "intercept": True}},
         "within 1, the intercept counted; they keep it within 1.41421"),
        ({"learning__loss": "squared", "privacy__sensitivity": {"kind": "clip", "bound": 1.0}},
         "output needs slopes of at most 1; those of squared reach inf"),
        ({"privacy__mechanism": "gaussian", "privacy__delta": 1e-5, "privacy__accountant": "gaussian"},
         "output needs a mechanism whose ε add up, such as laplace; got gaussian"),
        ({"privacy__scale_records": 10}, "output needs privacy.scale_records 1, got 10"),
        ({"learning__regularizer__l2": 0}, "private needs a positive learning.regularizer.l2"),
    ],
    ids=str,
)  # fmt: skip
def test_where_nothing_is_proved_it_is_refused(changes, said, tmp_path):
    def prepare():
        one = scenario(**changes)
        GraphCell.cell(one, Workspace(tmp_path).case(one, 0), 0)

    with pytest.raises(InputError, match=re.escape(said)):
        prepare()


def test_objective_perturbation_needs_second_derivatives(tmp_path, monkeypatch):
    monkeypatch.setattr(Logistic, "twice_differentiable", False)
    one = scenario()
    GraphCell.cell(one, Workspace(tmp_path).case(one, 0), 0)
    one = scenario(learning__algorithm__start={**START, "perturbation": "objective"})
    with pytest.raises(
        InputError, match="objective needs a loss that is twice differentiable, which logistic"
    ):
        GraphCell.cell(one, Workspace(tmp_path).case(one, 0), 0)


@pytest.mark.parametrize("kind", ["output", "objective"])
def test_the_ledger_charges_the_start_beside_the_releases(kind, tmp_path):
    start = {**START, "epsilon": 0.5, "perturbation": kind}
    one = scenario(
        learning__algorithm__start=start,
        privacy__epsilon=2.0,
        privacy__delta=1e-5,
        privacy__accountant=["basic", "pld"],
        privacy__allocation={"kind": "cap", "releases": 3},
    )
    book = simulate(one, 0, Workspace(tmp_path)).ledger
    spent = 0.5 + 1.5 * (book["releases"] - 1) / 3  # the start is a release too
    np.testing.assert_allclose(book["epsilon_basic"], spent, rtol=1e-9)
    assert (book["epsilon_pld"] <= spent * (1 + 1e-9)).all()
    assert not (book["not_private"] | book["bound_violated"]).any()


def test_a_sum_of_losses_has_noise_as_much_larger_as_there_are_records():
    X, y = records(2)
    problem = alike(X, y, 5)
    noises = []
    for reduction in ("mean", "sum"):
        start = PrivateWarmStart(epsilon=1.0, perturbation="output", reduction=reduction)
        exact = start.models(problem)
        noises.append(perturbed_models(start, problem, exact, KEY) - exact)
    np.testing.assert_allclose(noises[1], 20 * noises[0], rtol=1e-6)
    # The minimisers are those of B's appendix C: of Σℓ + λ‖θ‖².
    by_hand = minimize(
        lambda t: np.logaddexp(0, -y * (X @ t)).sum() + LAMBDA / 2 * t @ t, np.zeros(3), tol=1e-12
    ).x
    np.testing.assert_allclose(exact[0], by_hand, atol=1e-5)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("kind", ["output", "objective"])
def test_a_warm_start_of_a_twentieth_knows_nothing(kind, reduction, tmp_path):
    """λ = 1/m, B's: models that are propagated guess at ε = .05, and are right at ε = 10,000, where noise is small."""
    right = []
    for epsilon in (0.05, 1e4):
        start = {**START, "perturbation": kind, "reduction": reduction, "epsilon": epsilon}
        algorithm = {"kind": "model-propagation", "mu": 1.0, "updates_per_agent": 1, "start": start}
        one = scenario(
            data__source={
                **CHANGES["data.source"],
                "agents": 60,
                "targets": {"kind": "subspace", "dimension": 2},
            },
            network__topology={
                "kind": "similarity",
                "kernel": "angular",
                "gamma": 0.1,
                "keep_connected": 1e-3,
            },
            learning__algorithm=algorithm,
            learning__regularizer__l2="inverse-size",
            privacy__epsilon=math.inf,
        )
        right.append(simulate(one, 0, Workspace(tmp_path / str(epsilon))).series[0].value[0])
    assert abs(right[0] - 0.5) < 0.2
    assert right[1] > 0.8


def test_replaced_problems_keep_their_records():
    """The check of exactness looks at the ridge of the start, not at that of Q_L."""
    X, y = records(3)
    problem = replace(alike(X, y, 3), ridge=np.full(3, 0.5))
    start = PrivateWarmStart(epsilon=1.0, perturbation="output", reduction="sum")
    np.testing.assert_allclose(start.ridge(problem), 0.5 / 20)
    assert np.isfinite(perturbed_models(start, problem, start.models(problem), KEY)).all()
