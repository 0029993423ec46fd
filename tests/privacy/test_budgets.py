"""Budgets: what allocations spend of them, by every accountant that may enforce them, and where releases end."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from own_parts import let_in

from p2psim.core.errors import MeaningError
from p2psim.privacy.accounting.accountants import ACCOUNTANTS
from p2psim.privacy.accounting.charges import Charges
from p2psim.privacy.accounting.noises import GAUSSIAN, LAPLACE, Subsampled, before_sampling
from p2psim.privacy.allocations import Cap, Constant, Contraction, Geometric, Horizon, Listed, Uniform
from p2psim.privacy.mechanisms import DiscreteLaplace, Gaussian, Laplace
from p2psim.privacy.plan import Claims, Limit
from p2psim.privacy.planning import allowance, plan
from p2psim.privacy.shares import UNLIMITED, Releases

with let_in("own_noise"):
    from own_noise import Logistic

DELTA = 1e-5
HORIZON = 40
PURE = ("basic", "advanced", "kov", "rdp", "zcdp", "best")
NORMAL = ("rdp", "zcdp", "gaussian", "best")
MECHANISMS = {
    "laplace": (Laplace(), PURE),
    "discrete": (DiscreteLaplace(grid=1e-3), PURE),
    "own": (Logistic(), PURE),
    "gaussian": (Gaussian(), NORMAL),
}
PRINTED = Contraction(rate=0.97, form="printed")
SPREAD = [
    Horizon(),
    Cap(releases=7),
    Geometric(ratio=0.9),
    Contraction(rate=0.97),
    Contraction(rate=0.97, form="printed"),
]
STATED = [Constant(loss=0.07), Listed(losses=[0.4, 0.1, 0.3, 0.05, 0.6, 0.2, 0.2, 0.4])]
#: ε's of budgets may be exceeded by rounding of sums alone.
ROUNDING = 1 + 1e-9


def plans(mechanism, allocation, epsilon, enforce="basic", start=None, rates=None, **more):
    epsilon = np.array(epsilon, dtype=float)
    n = epsilon.size
    limit = Limit(epsilon, DELTA, enforce, start, start)
    divisors = 100.0 * np.arange(1, n + 1)
    return plan(
        mechanism,
        allocation,
        limit,
        1.5,
        divisors,
        HORIZON,
        np.full(n, 1 / n),
        dimension=3,
        rates=rates,
        **more,
    )


def some(counts):
    """The first so many releases of each agent, in turns."""
    pairs = [
        (agent, number)
        for number in range(max(counts, default=0))
        for agent, count in enumerate(counts)
        if number < count
    ]
    agents, numbers = np.array(pairs, np.int64).reshape(-1, 2).T
    return Releases(agents, numbers, np.arange(agents.size))


def spent(made, counts, accountant=None):
    releases = some(counts)
    order = np.argsort(releases.agents, kind="stable")
    losses = made.claimed(releases, made.totals([releases]))
    charges = made.charges(Claims(releases.agents[order], losses[order]), made.limit.start)
    return made.epsilon(accountant or made.limit.enforce, charges)


cases = [
    (mechanism, enforce) for mechanism, (_, accountants) in MECHANISMS.items() for enforce in accountants
]


#: Each budget takes seconds: the law of losses is integrated anew for each loss that is tried.
COSTLY = ("own", "best")


@settings(max_examples=30, deadline=None)
@example(case=COSTLY, allocation=SPREAD[0], epsilon=[2.0], start=None, counts=[60, 0, 0])
@given(
    case=st.sampled_from([case for case in cases if case != COSTLY]),
    allocation=st.sampled_from([*SPREAD, *STATED]),
    epsilon=st.lists(st.floats(0.05, 30.0), min_size=1, max_size=3),
    start=st.none() | st.floats(0.01, 0.9),
    counts=st.lists(st.integers(0, 60), min_size=3, max_size=3),
)
def test_no_number_of_releases_exceeds_a_budget(case, allocation, epsilon, start, counts):
    """Whatever clocks, losses, dropouts and resumes make of a run, it is a number of releases of each agent."""
    mechanism, enforce = MECHANISMS[case[0]][0], case[1]
    if start is not None:
        worth = allowance(mechanism, np.array(epsilon), DELTA, enforce) ** (1 / mechanism.power)
        start = start * worth
    made = plans(mechanism, allocation, epsilon, enforce, start)
    counts = [min(count, limit) for count, limit in zip(counts, made.releases, strict=False)]
    assert (spent(made, counts) <= np.array(epsilon) * ROUNDING).all()


@pytest.mark.parametrize(
    ("mechanism", "enforce"),
    [pytest.param(*case, marks=pytest.mark.verification if case == COSTLY else ()) for case in cases],
)
def test_an_agent_stops_just_before_its_budget_would_be_exceeded(mechanism, enforce):
    epsilon = np.array([0.3, 1.1])
    for allocation in STATED:
        made = plans(MECHANISMS[mechanism][0], allocation, epsilon, enforce)
        losses = allocation.stated_losses(np.arange(4 * HORIZON))[: allocation.limit(10**9, 0.5, 1.0)]
        noise = MECHANISMS[mechanism][0].noise
        for agent, limit in enumerate(made.releases):
            told = [
                ACCOUNTANTS[enforce].epsilon(Charges.of(noise, losses[:m]), DELTA)[0]
                for m in (limit, limit + 1)
            ]
            assert told[0] <= epsilon[agent]
            assert told[1] > epsilon[agent] or limit == losses.size


def test_a_budget_below_the_first_loss_permits_nothing():
    assert plans(Laplace(), Listed(losses=[2.0, 0.1]), [1.0, 3.0]).releases.tolist() == [0, 2]


@pytest.mark.parametrize("start", [None, pytest.param(0.5, marks=pytest.mark.verification)])
@pytest.mark.parametrize(("mechanism", "enforce"), [case for case in cases if case[1] != "best"])
def test_composed_losses_are_the_largest(mechanism, enforce, start):
    """A thousandth more would be too much, and a start is a part of the whole."""
    noise = MECHANISMS[mechanism][0]
    epsilon = np.array([0.4, 1.0, 8.0])
    if start is not None:
        worth = allowance(noise, epsilon, DELTA, enforce)
        start = 0.5 * worth ** (1 / noise.power)
    made = plans(noise, Cap(releases=50, compose=enforce), epsilon, enforce, start)
    assert made.releases.tolist() == [50] * 3
    assert (spent(made, [50] * 3) <= epsilon).all()
    more = plans(noise, Cap(releases=50, compose=enforce), epsilon * 1.001, enforce, start)
    assert (more.claimed(some([1, 1, 1])) > made.claimed(some([1, 1, 1]))).all()
    releases = some([50] * 3)
    order = np.argsort(releases.agents, kind="stable")
    charges = made.charges(Claims(releases.agents[order], made.claimed(releases)[order] * 1.001), start)
    assert (made.epsilon(enforce, charges) > epsilon).all()


def test_known_calibrations():
    """Analytic Gaussian at (10, 1e-5): σ = .499888619709·Δ; 100 Laplace releases at (1, 1e-6): b = 41.48748·Δ."""
    one = plan(
        Gaussian(), Cap(releases=1), Limit(np.array([10.0]), 1e-5, "gaussian"), 0.5, np.ones(1), 1, np.ones(1)
    )
    assert one.scales(some([1]))[0] == pytest.approx(0.499888619709, rel=1e-8)
    allocation = Cap(releases=100, compose="pld")
    many = plan(Laplace(), allocation, Limit(np.array([1.0]), 1e-6, "pld"), 0.5, np.ones(1), 100, np.ones(1))
    assert 41.48745 <= many.scales(some([1]))[0] <= 41.48745 * (1 + 1e-3)


@pytest.mark.parametrize("allocation", [*SPREAD, Uniform(), Contraction(wakes="known", rate=0.9)])
def test_squares_of_gaussian_losses_share_what_one_release_may_have(allocation):
    """Σ μ² is at most μ̄², and all of it where an allocation comes to an end."""
    made = plans(Gaussian(), allocation, [0.5, 2.0], "gaussian")
    counts = [int(min(limit, 4000)) for limit in made.releases]
    releases = some(counts)
    losses = made.claimed(releases, made.totals([releases]))
    squares = np.bincount(releases.agents, losses**2)
    # μ̄ is that of one release whose ε at δ is the budget.
    np.testing.assert_allclose(
        [ACCOUNTANTS["gaussian"].epsilon(Charges.of(GAUSSIAN, [math.sqrt(s)]), DELTA)[0] for s in squares],
        [0.5, 2.0],
        rtol=1e-6,
    )


def test_contraction_spreads_squares_by_the_fourth_root():
    """Σ C^{T−1−t}/μ² is least under a given Σ μ² for μ ∝ C^{(T−1−t)/4}: n = 2 commits from one release to the next."""
    made = plans(Gaussian(), Contraction(rate=0.9, releases=12), [1.0, 1.0], "gaussian")
    losses = made.claimed(some([12, 0]))
    np.testing.assert_allclose(losses[1:] / losses[:-1], 0.9 ** (-2 / 4), rtol=1e-12)

    def objective(mu):
        return np.sum(0.9 ** (2 * (11 - np.arange(12.0))) / mu**2)

    random = np.random.default_rng(0)
    for _ in range(50):
        other = losses * np.exp(0.1 * random.standard_normal(12))
        other *= math.sqrt(np.sum(losses**2) / np.sum(other**2))
        assert objective(losses) < objective(other)


@pytest.mark.parametrize("enforce", ["basic", "kov"])
@pytest.mark.parametrize("rate", [0.01, 0.3, 1.0])
def test_samples_are_given_what_their_amplification_saves(enforce, rate):
    """ε/m each after sampling; composed, the largest that the accountant of sampled releases permits."""
    for allocation in (Cap(releases=20), Cap(releases=20, compose=enforce)):
        made = plans(Laplace(), allocation, [0.5, 2.0], enforce, rates=np.array([rate, 1.0]))
        total = spent(made, [20, 20])
        assert (total <= np.array([0.5, 2.0]) * ROUNDING).all()
        if enforce == "basic":
            np.testing.assert_allclose(total, [0.5, 2.0], rtol=1e-8)


@given(loss=st.floats(1e-12, 1e6), rate=st.floats(1e-6, 1.0))
def test_what_is_sampled_has_the_loss_that_was_asked_for(loss, rate):
    before = before_sampling(np.array([loss]), np.array([rate]))
    assert before[0] >= loss
    assert Subsampled(LAPLACE, rate).pure(before)[0] == pytest.approx(loss, rel=1e-9)


def test_infinite_budgets_are_no_noise_for_any_allocation():
    for (mechanism, accountants), allocation in itertools.product(MECHANISMS.values(), [*SPREAD, *STATED]):
        made = plans(mechanism, allocation, [math.inf, math.inf], accountants[0])
        assert (made.releases == UNLIMITED).all()
        assert made.scales(some([3, 20])).tolist() == [0.0] * 23
        assert np.isinf(spent(made, [1, 1])).all()


@pytest.mark.parametrize("scale", [0.5, 1.0, 7.0, 50.0])
@pytest.mark.parametrize("mechanism", ["laplace", "own", "gaussian"])
def test_scaled_records_multiply_the_loss_of_the_real_ones(mechanism, scale):
    noise, accountants = MECHANISMS[mechanism]
    made = plans(noise, Cap(releases=5), [1.0, 2.0], accountants[0], scale_records=scale)
    np.testing.assert_allclose(made.stretch, scale, rtol=1e-14)
    losses = made.sensitivity[[0]] / made.scales(some([1, 0]))
    np.testing.assert_allclose(losses, scale * made.claimed(some([1, 0])), rtol=1e-14)


@given(scale=st.floats(0.1, 100.0), grid=st.sampled_from([1e-4, 1e-2, 1.0]))
def test_on_a_grid_they_multiply_it_by_what_rounded_values_move(scale, grid):
    """Of g(⌈Δ/g⌉ + p − 1), Δ = 3/100 and p = 3: for the real records over for the scaled ones."""
    made = plans(DiscreteLaplace(grid=grid), Cap(releases=5), [1.0], scale_records=scale)
    real, scaled = (grid * (math.ceil(d / grid) + 2) for d in (3 / 100, 3 / 100 / scale))
    assert made.stretch[0] == pytest.approx(real / scaled, rel=1e-12)


def test_a_start_that_takes_it_all_is_refused():
    with pytest.raises(
        MeaningError, match=r"start\.epsilon: must be less than privacy\.epsilon, 2 for agent 1"
    ):
        plans(Laplace(), Horizon(), [3.0, 2.0], start=np.array([2.0, 2.0]))


def test_what_nobody_can_foresee_needs_losses_that_add_up():
    with pytest.raises(
        MeaningError, match=r"privacy\.allocation: uniform spreads .* logistic noise has none"
    ):
        plans(MECHANISMS["own"][0], Uniform(), [1.0])


def test_budgets_are_each_agents_own():
    """One agent's budget, start or number of releases changes nothing for another."""
    alone = plans(Laplace(), Cap(releases=9, compose="kov"), [1.0, 2.0], "kov")
    other = plans(Laplace(), Cap(releases=9, compose="kov"), [1.0, 5.0], "kov")
    assert alone.claimed(some([9, 0])).tolist() == other.claimed(some([9, 0])).tolist()
    assert spent(alone, [9, 3])[0] == spent(other, [9, 9])[0]
