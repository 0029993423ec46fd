"""Budgets spread by contraction and over known wakes, against plain sums, plain loops and closed forms."""

import math
from decimal import Decimal, getcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ring_cases import AGENTS, CENTRES, optimum, plan_of, play, problem
from star_cases import scenario

from p2psim.core.errors import MeaningError
from p2psim.core.events import COMMIT, EVENT
from p2psim.learning.graph.problem import GraphRule, GraphTask
from p2psim.learning.graph.replay import GraphReplay
from p2psim.privacy.allocations import Contraction, Uniform
from p2psim.privacy.mechanisms import Laplace
from p2psim.privacy.plan import Limit
from p2psim.privacy.planning import plan
from p2psim.privacy.shares import UNLIMITED, Releases
from p2psim.simulation.simulate import simulate
from p2psim.simulation.workspace import Workspace

KNOWN = [Uniform(), Contraction(wakes="known"), Contraction(wakes="known", form="printed")]
EXPECTED = [Contraction(), Contraction(form="printed"), Contraction(exponent="quarter")]


def made(allocation, *, agents=2, expected=20.0, rate=None, budget=1.0):
    return plan(
        Laplace(),
        allocation,
        Limit(np.full(agents, budget)),
        1.0,
        np.full(agents, 50),
        round(agents * expected),
        np.full(agents, 1 / agents),
        contraction=rate,
    )


def of_one(steps, agent=0):
    steps = np.asarray(steps, np.int64)
    return Releases(np.full(steps.size, agent), np.arange(steps.size), steps)


def shares_in_decimals(allocation, steps, rate):
    """Of one agent's releases, in numbers of 60 digits and any exponent."""
    getcontext().prec = 60
    power = {"auto": Decimal(1) / 3, "third": Decimal(1) / 3, "quarter": Decimal(1) / 4}[allocation.exponent]
    last = max(steps)
    away = [t if allocation.form == "printed" else last - t for t in steps]
    weights = [(power * int(a) * Decimal(rate).ln()).exp() for a in away]
    return [float(w / sum(weights)) for w in weights]


@given(
    form=st.sampled_from(["printed", "corrected"]),
    exponent=st.sampled_from(["third", "quarter"]),
    rate=st.floats(0.01, 1 - 1e-9),
    steps=st.lists(st.integers(0, 10**6), min_size=1, max_size=30, unique=True).map(sorted),
    split=st.integers(0, 30),
)
def test_known_wakes_share_as_exact_numbers_do(form, exponent, rate, steps, split):
    """Up to T = 1e6, in any pieces; what lies below the range of floating point is 0."""
    allocation = Contraction(wakes="known", form=form, exponent=exponent, rate=rate)
    plans, releases = made(allocation), of_one(steps)
    cut = [Releases(a, b, c) for a, b, c in zip(*(np.split(part, [split]) for part in (
        releases.agents, releases.numbers, releases.steps)), strict=True)]  # fmt: skip
    exact = shares_in_decimals(allocation, steps, rate)
    for totals in (plans.totals([releases]), plans.totals(cut)):
        claimed = plans.claimed(releases, totals)
        # Exponents reach 1e6·ln(100)/3 = 2e6, whose rounding is 2e-10 of a weight.
        np.testing.assert_allclose(claimed, exact, rtol=1e-8, atol=1e-300)
        assert math.fsum(claimed) == pytest.approx(1.0, rel=1e-12)


def test_noise_beyond_numbers_is_an_error_not_a_zero_or_nan():
    """Shares fall by 10^15.25 in 1000 steps at C = .9, so the scale .04/share passes 1e300 at the 20th."""
    steps = np.arange(0, 1_000_000, 1000)
    for form, number in (("corrected", 0), ("printed", 20)):
        plans = made(Contraction(wakes="known", form=form, rate=0.9))
        with pytest.raises(
            MeaningError, match=f"release {number} of agent 0 overflows; its share of the budget"
        ):
            plans.scales(of_one(steps), plans.totals([of_one(steps)]))
    gentle = made(Contraction(wakes="known", rate=1 - 1e-6))
    scales = gentle.scales(of_one(steps), gentle.totals([of_one(steps)]))
    assert np.isfinite(scales).all()
    assert (np.diff(scales) < 0).all()


@given(
    form=st.sampled_from(["printed", "corrected"]),
    rate=st.floats(0.5, 1 - 1e-12),
    count=st.integers(1, 200),
    agents=st.integers(1, 50),
)
def test_expected_wakes_share_the_whole_budget(form, rate, count, agents):
    """K releases at steps n, 2n, …: as exact numbers have it, and of sum one."""
    allocation = Contraction(form=form, rate=rate)
    plans = made(allocation, agents=agents, expected=count)
    assert plans.limits.tolist() == [count] * agents
    claimed = plans.claimed(of_one(np.zeros(count)))
    exact = shares_in_decimals(allocation, [agents * (k + 1) for k in range(count)], rate)
    np.testing.assert_allclose(claimed, exact, rtol=1e-10, atol=1e-300)
    assert math.fsum(claimed) == pytest.approx(1.0, rel=1e-12)


def test_releases_at_expected_wakes_may_be_given():
    assert made(Contraction(rate=0.9, releases=7)).limits.tolist() == [7, 7]
    assert made(Contraction(rate=0.9, wakes="known")).limits is None
    assert made(Contraction(rate=0.9)).limits.tolist() == [20, 20]
    by_horizon = plan(
        Laplace(),
        Contraction(rate=0.9),
        Limit(np.ones(3)),
        1.0,
        np.ones(3),
        100,
        np.array([0.5, 0.499, 0.001]),
    )
    assert by_horizon.limits.tolist() == [50, 50, 1]


@pytest.mark.parametrize("allocation", [*KNOWN, *EXPECTED])
def test_before_the_run_it_is_forecast(allocation):
    """The first of 20 releases, at C = .9 and n = 2."""
    fall = 0.9 ** (2 * (1 / 4 if getattr(allocation, "exponent", "") == "quarter" else 1 / 3))
    weights = np.ones(20) if allocation.kind == "uniform" else fall ** np.arange(20)
    first = weights[0 if getattr(allocation, "form", "") == "printed" else -1] / weights.sum()
    plans = made(allocation, rate=0.9)
    assert plans.claimed(of_one([0]))[0] == pytest.approx(first, rel=1e-12)
    assert plans.scales(of_one([0]))[0] == pytest.approx(2 / 50 / first, rel=1e-12)


@pytest.mark.parametrize("allocation", [*KNOWN, *EXPECTED])
def test_infinite_budgets_limit_nobody(allocation):
    plans = made(allocation, rate=0.9, budget=math.inf)
    assert plans.limits is None
    assert (plans.releases == UNLIMITED).all()
    totals = plans.totals([of_one([3, 5])])
    assert plans.claimed(of_one([3, 5]), totals).tolist() == [math.inf] * 2
    assert plans.scales(of_one([3, 5]), totals).tolist() == [0.0] * 2


def test_agents_without_records_add_nothing():
    plans = plan(Laplace(), Uniform(), Limit(np.ones(2)), 1.0, np.array([0, 10]), 100, np.full(2, 0.5))
    assert plans.sensitivity.tolist() == [0.0, 0.2]


@pytest.mark.parametrize("rate", [None, 1.0])
def test_auto_needs_a_theory(rate):
    for allocation in (Contraction(), Contraction(wakes="known")):
        with pytest.raises(MeaningError, match=r"^privacy\.allocation\.rate: auto"):
            made(allocation, rate=rate).claimed(of_one([0]))


def test_known_wakes_on_a_star_spend_exactly_the_budget(tmp_path):
    """Through a whole run of several chunks: flagged, and never over budget; other allocations are not flagged."""
    changes = {"learning.algorithm.horizon": 20_000, "record.every": 5000}
    for allocation in ("uniform", {"kind": "contraction", "wakes": "known", "rate": 0.9995}):
        one = scenario({**changes, "privacy.allocation": allocation})
        outcome = simulate(one, 0, Workspace(tmp_path))
        assert outcome.events.size > 2 * (1 << 15)
        np.testing.assert_allclose(outcome.ledger["epsilon_basic"], outcome.ledger["budget"], rtol=1e-11)
        assert outcome.ledger["clairvoyant"].all()
        assert not outcome.ledger["over_budget"].any()
    unknowing = {"kind": "contraction", "rate": 0.9995}
    outcome = simulate(scenario({**changes, "privacy.allocation": unknowing}), 0, Workspace(tmp_path))
    assert not outcome.ledger["clairvoyant"].any()
    assert (outcome.ledger["epsilon_basic"] <= outcome.ledger["budget"] * (1 + 1e-12)).all()
    assert outcome.ledger["releases"].max() == 6667  # a third of the horizon, rounded


def by_hand(kind, form, mu, wakes, events, unit):
    """The ring in a plain loop over who wakes: update, noise and budget from the formulas of the paper."""
    who = events["agent"][events["kind"] == COMMIT]
    C, T = 1 - mu / (5 * (1 + mu)), who.size
    weights = {
        ("uniform", "corrected"): lambda t, k: 1.0,
        ("known", "printed"): lambda t, k: C ** (t / 3),
        ("known", "corrected"): lambda t, k: C ** ((T - 1 - t) / 3),
        ("expected", "printed"): lambda t, k: C ** ((k + 1) * 5 / 3),
        ("expected", "corrected"): lambda t, k: C ** ((wakes - (k + 1) * 5) / 3),
    }[kind, form]
    number = [int((who[:t] == who[t]).sum()) for t in range(T)]
    raw = np.array([weights(t, k) for t, k in enumerate(number)])
    if kind == "expected":
        total = np.full(5, sum(weights(0, k) for k in range(wakes // 5)))
    else:
        total = np.array([raw[who == i].sum() for i in range(5)])
    epsilon, theta = raw / total[who], optimum(mu) + 1
    for t, i in enumerate(who):
        noise = unit[t] * 2 * 1 / (epsilon[t] * 50)
        near = (theta[(i - 1) % 5] + theta[(i + 1) % 5]) / 2
        theta[i] = theta[i] / (1 + mu) * mu + (near - mu * (theta[i] - CENTRES[i] + noise)) / (1 + mu)
    return theta, epsilon


@pytest.mark.parametrize("replica", range(4))
@pytest.mark.parametrize(
    ("allocation", "kind", "form"),
    [
        (Uniform(), "uniform", "corrected"),
        (Contraction(wakes="known", form="printed"), "known", "printed"),
        (Contraction(wakes="known"), "known", "corrected"),
        (Contraction(form="printed"), "expected", "printed"),
        (Contraction(), "expected", "corrected"),
    ],
)
def test_ring_is_that_of_a_plain_loop_run_for_run(allocation, kind, form, replica):
    mu, wakes = (1.0, 200) if replica % 2 else (0.2, 600)
    theta, events, _, epsilon, unit = play(allocation, mu, wakes, replica)
    again, spent = by_hand(kind, form, mu, wakes, events, unit)
    np.testing.assert_allclose(epsilon, spent, rtol=1e-11)
    np.testing.assert_allclose(theta, again, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("mu", [0.2, 1.0, 3.0])
def test_noise_enters_beside_the_mean_gradient_and_is_scaled_with_it(mu):
    """One step from Θ* + e_i: Θ_i = Θ*_i + α·1 − α·μ·(1 + η) + (1 − α), α = 1/(1 + μ), for each agent.

    Noise added after the step (unscaled), outside μ, or to the sum of 50 gradients, gives another number.
    """
    best, eta = optimum(mu), 0.75
    for i in range(AGENTS):
        start = best.copy()
        start[i] += 1
        event = np.zeros(1, EVENT)
        event["kind"], event["agent"], event["version"], event["cause"] = COMMIT, i, 1, -1
        replay = GraphReplay(GraphTask(problem(mu), GraphRule(), start[:, None]))
        replay.feed(event, np.array([[eta]]))
        moved = replay.theta[i, 0] - best[i]
        alpha = 1 / (1 + mu)
        # At Θ* the step stands still; from one further, own pull (1 − α) and gradient −αμ cancel for curvature 1.
        assert moved == pytest.approx((1 - alpha) - alpha * mu * (1 + eta), rel=1e-12)
        assert moved == pytest.approx(-mu * eta / (1 + mu), rel=1e-12)
        for wrong in (-eta, -alpha * eta, -mu * eta, -alpha * mu * eta / 50):
            if abs(wrong + alpha * mu * eta) > 1e-9:
                assert moved != pytest.approx(wrong, rel=1e-3)


def test_noise_of_a_release_has_the_scale_of_its_share():
    """s = 2L₀/(ε(t)·m_i) through plan and unit noise: Ξ = 1, m = 50."""
    plans = plan_of(Contraction(wakes="known"), 1.0, 200)
    steps = of_one([0, 7, 50, 199])
    totals = plans.totals([steps])
    epsilon = plans.claimed(steps, totals)
    np.testing.assert_allclose(plans.scales(steps, totals), 2 / (epsilon * 50), rtol=1e-14)
    np.testing.assert_allclose(epsilon[1:] / epsilon[:-1], 0.9 ** (-np.diff(steps.steps) / 3), rtol=1e-12)
