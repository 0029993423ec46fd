"""What every accountant keeps to, whatever the releases."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2psim.privacy.accounting import accountant as questions
from p2psim.privacy.accounting.accountants import (
    ACCOUNTANTS,
    largest_loss,
    most_releases,
    trade_off,
    type_two_error,
)
from p2psim.privacy.accounting.charges import Charges
from p2psim.privacy.accounting.noises import (
    DISCRETE_LAPLACE,
    GAUSSIAN,
    LAPLACE,
    PURE,
    Noise,
    PoissonGaussian,
    Subsampled,
)
from p2psim.privacy.accounting.pld import PLD

NOISES: tuple[Noise, ...] = (
    LAPLACE, PURE, GAUSSIAN, DISCRETE_LAPLACE, Subsampled(LAPLACE, 0.1), Subsampled(GAUSSIAN, 0.3),
    PoissonGaussian(0.25),
)  # fmt: skip
NAMES = sorted(ACCOUNTANTS)
#: Discretisation differs from list to list: loss distributions compare within what it adds.
SLACK = {"pld": 4e-3, "best": 4e-3}

losses = st.lists(st.floats(1e-3, 3.0), min_size=1, max_size=6)
deltas = st.sampled_from([1e-9, 1e-5, 0.01])


@st.composite
def charges(draw: st.DrawFn) -> Charges:
    """One agent's releases with several noises."""
    rows = draw(
        st.lists(st.tuples(st.integers(0, len(NOISES) - 1), st.floats(1e-3, 3.0)), min_size=1, max_size=6)
    )
    kind, loss = zip(*rows, strict=True)
    return Charges(NOISES, np.array(kind, np.int8), np.array(loss), np.array([0, len(rows)]))


def able(own: Charges) -> list[Any]:
    return [one for one in ACCOUNTANTS.values() if all(one.supports(noise) for noise in own.used)]


def joined(*parts: Charges) -> Charges:
    """As releases of one agent."""
    loss = np.concatenate([part.loss for part in parts])
    return Charges(NOISES, np.concatenate([part.kind for part in parts]), loss, np.array([0, loss.size]))


@settings(max_examples=8, deadline=None)
@given(charges(), charges(), deltas)
def test_more_releases_never_cost_less(a: Charges, b: Charges, delta: float) -> None:
    both = joined(a, b)
    for one in able(both):
        slack = 1 + SLACK.get(one.name, 1e-9)
        assert one.epsilon(a, delta)[0] <= one.epsilon(both, delta)[0] * slack + 1e-9


@settings(max_examples=8, deadline=None)
@given(charges(), deltas, st.floats(1.0, 2.0))
def test_larger_losses_never_cost_less(own: Charges, delta: float, factor: float) -> None:
    larger = Charges(own.noises, own.kind, own.loss * factor, own.offsets)
    for one in able(own):
        slack = 1 + SLACK.get(one.name, 1e-9)
        assert one.epsilon(own, delta)[0] <= one.epsilon(larger, delta)[0] * slack + 1e-9


@settings(max_examples=6, deadline=None)
@given(charges(), deltas, st.randoms())
def test_order_does_not_matter(own: Charges, delta: float, random: Any) -> None:
    order = list(range(own.loss.size))
    random.shuffle(order)
    turned = Charges(own.noises, own.kind[order], own.loss[order], own.offsets)
    for one in able(own):
        assert one.epsilon(turned, delta)[0] == pytest.approx(one.epsilon(own, delta)[0], rel=1e-9)


@settings(max_examples=5, deadline=None)
@given(st.lists(charges(), min_size=1, max_size=4), deltas)
def test_agents_are_accounted_for_apart(agents: list[Charges], delta: float) -> None:
    sizes = [own.loss.size for own in agents]
    together = Charges(
        NOISES,
        np.concatenate([own.kind for own in agents]),
        np.concatenate([own.loss for own in agents]),
        np.concatenate([[0], np.cumsum(sizes)]),
    )
    for one in able(together):
        alone = [one.epsilon(own, delta)[0] for own in agents]
        assert one.epsilon(together, delta) == pytest.approx(alone, rel=1e-9)
        assert (
            one.epsilon(together, delta).tolist() == one.epsilon(together, delta).tolist()
        )  # two reads agree


@settings(max_examples=6, deadline=None)
@given(charges(), st.floats(0.0, 6.0))
def test_curves_do_not_rise_and_undo_each_other(own: Charges, epsilon: float) -> None:
    for one in able(own):
        grid = np.linspace(0, epsilon + 1, 3)
        curve = trade_off(one, own, grid)[0]
        assert (np.diff(curve) <= 0).all()
        assert ((curve >= 0) & (curve <= 1)).all()
        at = one.delta(own, epsilon)[0]
        if 1e-12 < at < 1 - 1e-9:
            # ε at the δ of an ε is that ε, up to the discretisation; never above by more.
            back = one.epsilon(own, float(at))[0]
            assert back <= epsilon * (1 + SLACK.get(one.name, 1e-7)) + 2e-3 * (one.name in SLACK) + 1e-9


@settings(max_examples=40, deadline=None)
@given(losses, losses)
def test_basic_adds_up_and_parting_a_release_does_not_shrink_it(a: list[float], b: list[float]) -> None:
    basic = ACCOUNTANTS["basic"]
    together = basic.epsilon(Charges.of(LAPLACE, [*a, *b]), 0.0)[0]
    assert together == pytest.approx(math.fsum([*a, *b]), rel=1e-15)
    halves = [x / 4 for x in a for _ in range(4)]
    assert basic.epsilon(Charges.of(LAPLACE, halves), 0.0)[0] >= math.fsum(a) * (1 - 1e-15)


@settings(max_examples=8, deadline=None)
@given(charges(), deltas)
def test_best_is_the_least(own: Charges, delta: float) -> None:
    found = {one.name: one.epsilon(own, delta)[0] for one in able(own)}
    assert found.pop("best") == min(found.values())


@given(losses, st.floats(0.1, 10.0))
def test_only_the_ratio_of_sensitivity_to_scale_matters(own: list[float], factor: float) -> None:
    scaled = [(x * factor) / factor for x in own]
    for name in ("kov", "rdp", "zcdp"):
        one = ACCOUNTANTS[name]
        assert one.epsilon(Charges.of(LAPLACE, scaled), 1e-5)[0] == pytest.approx(
            one.epsilon(Charges.of(LAPLACE, own), 1e-5)[0], rel=1e-9
        )


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: noise.name)
@settings(max_examples=60, deadline=None)
@given(loss=st.floats(1e-6, 30.0), epsilon=st.floats(0, 40.0))
def test_curves_of_noises_are_curves_of_pairs(noise: Noise, loss: float, epsilon: float) -> None:
    """Between 0 and 1, symmetric, falling, convex in e^ε."""
    e = np.sort(np.array([-epsilon, -epsilon / 2, 0.0, epsilon / 2, epsilon]))
    delta = noise.delta(np.array(loss), e)
    assert ((delta >= 0) & (delta <= 1)).all()
    assert (np.diff(delta) <= 1e-12).all()
    assert 1 - delta[0] == pytest.approx(math.exp(-epsilon) * (1 - delta[-1]), rel=1e-9, abs=1e-15)
    middle = np.log((np.exp(e[:-1]) + np.exp(e[1:])) / 2)
    chords = (delta[:-1] + delta[1:]) / 2
    assert (noise.delta(np.array(loss), middle) <= chords + 1e-12).all()


@settings(max_examples=40, deadline=None)
@given(st.floats(0.05, 3.0), st.floats(0.02, 1.0), st.sampled_from([LAPLACE, GAUSSIAN, PURE]))
def test_sampling_never_costs_more_and_all_of_the_records_cost_the_same(
    loss: float, rate: float, noise: Noise
) -> None:
    e = np.linspace(0, 4, 9)
    sampled = Subsampled(noise, rate).delta(np.array(loss), e)
    whole = noise.delta(np.array(loss), e)
    assert (sampled <= whole + 1e-12).all()
    assert Subsampled(noise, 1.0).delta(np.array(loss), e) == pytest.approx(whole, abs=1e-12)


@pytest.mark.parametrize("rate", [0.05, 0.3])
@pytest.mark.parametrize("loss", [0.4, 2.0])
def test_sampled_curve_covers_the_worst_pair_of_a_poisson_sample(rate: float, loss: float) -> None:
    """Laplace noise on a sum over a sample: mixtures of densities at 0 and ±Δ/2 (the record there, or its replacement).

    The hockey stick is integrated on a grid, for both signs of what the replacement gives.
    """
    x = np.linspace(-60, 60, 1_200_001)
    step = x[1] - x[0]

    def density(at: float) -> np.ndarray:
        return np.exp(-np.abs(x - at)) / 2

    P = (1 - rate) * density(0) + rate * density(loss / 2)
    for other in (-loss / 2, 0.0, loss / 4):
        Q = (1 - rate) * density(0) + rate * density(other)
        for epsilon in (0.0, 0.01, 0.1, 0.5):
            exact = float(np.maximum(P - math.exp(epsilon) * Q, 0).sum() * step)
            bound = float(Subsampled(LAPLACE, rate).delta(np.array(loss), np.array(epsilon)))
            assert exact <= bound + 1e-9


def test_pure_loss_of_a_sample() -> None:
    sampled = Subsampled(LAPLACE, 0.1)
    assert sampled.pure(np.array([1.0]))[0] == pytest.approx(math.log(1 + 0.1 * (math.e - 1)), rel=1e-14)
    assert np.isfinite(sampled.pure(np.array([1e4]))[0])
    # Accountants that know no amplification for replacing a record refuse.
    for name in ("rdp", "zcdp", "gaussian"):
        assert not ACCOUNTANTS[name].supports(sampled)
    for name in ("basic", "kov", "pld", "best"):
        assert ACCOUNTANTS[name].supports(sampled)
    assert not ACCOUNTANTS["basic"].supports(Subsampled(GAUSSIAN, 0.1))


class TestEdges:
    @pytest.mark.parametrize("name", NAMES)
    def test_nothing_released_costs_nothing_and_no_noise_costs_everything(self, name: str) -> None:
        noise = GAUSSIAN if name == "gaussian" else LAPLACE
        own = Charges((noise,), np.zeros(3, np.int8), np.array([np.inf, 0.3, 0.0]), np.array([0, 0, 1, 2, 3]))
        one = ACCOUNTANTS[name]
        epsilon = one.epsilon(own, 1e-5)
        assert epsilon[0] == 0
        assert epsilon[1] == np.inf
        assert np.isfinite(epsilon[2])
        assert epsilon[3] == 0
        delta = one.delta(own, 0.7)
        assert delta[0] == 0
        assert delta[1] == 1
        assert delta[3] == 0

    @pytest.mark.parametrize("name", [name for name in NAMES if name != "gaussian"])
    @pytest.mark.parametrize(
        ("count", "loss"), [(1, 1e-12), (100_000, 1e-9), (100_000, 0.01), (3, 1e3), (50, 700.0), (1, 1e-3)]
    )
    def test_extreme_losses_give_numbers(self, name: str, count: int, loss: float) -> None:
        own = Charges.of(LAPLACE, np.full(count, loss))
        with np.errstate(all="raise", under="ignore"):
            epsilon = ACCOUNTANTS[name].epsilon(own, 1e-6)[0]
        assert 0 <= epsilon <= count * loss * (1 + 1e-12)
        assert 0 <= ACCOUNTANTS[name].delta(own, epsilon)[0] <= 1

    @pytest.mark.parametrize("name", NAMES)
    def test_what_means_nothing_is_refused(self, name: str) -> None:
        one = ACCOUNTANTS[name]
        own = Charges.of(GAUSSIAN if name == "gaussian" else LAPLACE, [0.1])
        for delta in (-0.1, 1.0, np.nan):
            with pytest.raises(ValueError, match="δ must be"):
                one.epsilon(own, delta)
        for epsilon in (-1.0, np.nan):
            with pytest.raises(ValueError, match="ε must not"):
                one.delta(own, epsilon)
        for loss in (-1.0, np.nan):
            with pytest.raises(ValueError, match="losses must not"):
                Charges.of(LAPLACE, [loss])

    def test_a_release_that_is_not_known_is_refused(self) -> None:
        with pytest.raises(ValueError, match="kov cannot account for gaussian"):
            ACCOUNTANTS["kov"].epsilon(Charges.of(GAUSSIAN, [1.0]), 1e-5)
        with pytest.raises(ValueError, match="gaussian cannot account for laplace"):
            ACCOUNTANTS["gaussian"].epsilon(Charges.of(LAPLACE, [1.0]), 1e-5)

    def test_at_delta_zero_only_pure_releases_have_an_account(self) -> None:
        assert ACCOUNTANTS["pld"].epsilon(Charges.of(LAPLACE, [0.1, 0.2]), 0.0)[0] == pytest.approx(0.3)
        assert ACCOUNTANTS["pld"].epsilon(Charges.of(GAUSSIAN, [0.1]), 0.0)[0] == np.inf


class TestCalibration:
    @settings(max_examples=12, deadline=None)
    @given(
        st.sampled_from(["basic", "kov", "rdp", "zcdp", "pld"]),
        st.lists(st.floats(0.1, 1.0), min_size=1, max_size=5),
        st.floats(0.05, 20.0),
    )
    def test_a_budget_is_not_overshot_and_nearly_used(
        self, name: str, weights: list[float], epsilon: float
    ) -> None:
        one, w = ACCOUNTANTS[name], np.array(weights)
        factor = largest_loss(one, LAPLACE, w, epsilon, 1e-5)
        assert one.epsilon(Charges.of(LAPLACE, factor * w), 1e-5)[0] <= epsilon
        more = one.epsilon(Charges.of(LAPLACE, factor * w * (1 + SLACK.get(name, 1e-6))), 1e-5)[0]
        assert more >= epsilon * (1 - SLACK.get(name, 1e-6))

    def test_squares_of_gaussian_losses_are_shared(self) -> None:
        w = np.array([0.5, 0.25, 0.25])
        square = largest_loss(ACCOUNTANTS["gaussian"], GAUSSIAN, w, 2.0, 1e-5, power=2)
        assert ACCOUNTANTS["gaussian"].epsilon(Charges.of(GAUSSIAN, [math.sqrt(square)]), 1e-5)[
            0
        ] == pytest.approx(2.0)

    @pytest.mark.parametrize("name", ["basic", "kov", "rdp", "pld"])
    def test_most_releases_is_the_last_that_fits(self, name: str) -> None:
        one = ACCOUNTANTS[name]
        for losses in (0.05, np.linspace(0.01, 0.4, 60)):
            most = most_releases(one, LAPLACE, losses, 2.0, 1e-6)
            listed = np.full(most + 1, losses) if np.ndim(losses) == 0 else np.asarray(losses)[: most + 1]
            assert one.epsilon(Charges.of(LAPLACE, listed[:most]), 1e-6)[0] <= 2.0
            assert one.epsilon(Charges.of(LAPLACE, listed), 1e-6)[0] > 2.0


def test_trade_off_of_a_gaussian_is_its_own() -> None:
    """From its (ε, δ) pairs the trade-off function Φ(Φ⁻¹(1 − α) − μ) comes back (Dong, Roth, Su 2022)."""
    from scipy.stats import norm

    epsilons = np.linspace(0, 12, 4001)
    curve = trade_off(ACCOUNTANTS["gaussian"], Charges.of(GAUSSIAN, [1.0]), epsilons)[0]
    alpha = np.array([0.001, 0.05, 0.3, 0.7])
    exact = norm.cdf(norm.ppf(1 - alpha) - 1.0)
    assert type_two_error(epsilons, curve, alpha) == pytest.approx(exact, abs=1e-5)


def test_losses_of_all_reorderings_are_distinguished_once() -> None:
    rows = list(itertools.permutations([0.1, 0.2, 0.3]))
    own = Charges((LAPLACE,), np.zeros(18, np.int8), np.array(rows).ravel(), np.arange(0, 19, 3))
    assert own.condensed[0].agents == 1


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1), st.sampled_from([0.0, 0.1, 0.2, np.inf]))),
    st.randoms(),
)
def test_the_order_of_an_agents_releases_does_not_count(made, random) -> None:
    """Releases that stand in order are not sorted; those that do not, are."""

    def condensed(rows):
        rows = sorted(rows, key=lambda row: row[0])
        owners, kinds, losses = (np.array([row[i] for row in rows]) for i in range(3))
        offsets = np.searchsorted(owners, np.arange(4))
        few, places = Charges(
            (LAPLACE, GAUSSIAN), kinds.astype(np.int8), losses.astype(float), offsets
        ).condensed
        return few.kind, few.loss, few.counts, few.offsets, places

    shuffled = list(made)
    random.shuffle(shuffled)
    for one, other in zip(condensed(sorted(made)), condensed(shuffled), strict=True):
        np.testing.assert_array_equal(one, other)


@settings(max_examples=6, deadline=None)
@given(st.lists(st.tuples(charges(), st.sampled_from([0.0, 1e-6, 1e-3])), min_size=1, max_size=4), st.data())
def test_a_question_asked_again_among_others_has_the_same_answer(
    asked: list[tuple[Charges, float]], data: st.DataObject
) -> None:
    """Answers are kept: none is given to another question, and the kept one cannot be changed."""
    accountant = ACCOUNTANTS["best"]
    fresh = []
    for given_charges, delta in asked:
        questions.kept_epsilon.cache_clear()
        fresh.append(accountant.epsilon(given_charges, delta).copy())
    for place in data.draw(st.lists(st.integers(0, len(asked) - 1), max_size=12)):
        answer = accountant.epsilon(*asked[place])
        np.testing.assert_array_equal(answer, fresh[place])
        with pytest.raises(ValueError, match="read-only"):
            answer[:] = -1.0


@pytest.mark.parametrize(("agents", "releases"), [(100_000, 3), (1, 100_000)])
def test_large_questions_are_not_kept(agents: int, releases: int) -> None:
    questions.kept_epsilon.cache_clear()
    offsets = np.full(agents + 1, releases)
    offsets[0] = 0
    asked = Charges((LAPLACE,), np.zeros(releases, np.int8), np.full(releases, 0.1), offsets)
    assert ACCOUNTANTS["basic"].epsilon(asked, 0.0)[0] == pytest.approx(0.1 * releases, rel=1e-12)
    assert not questions.kept_epsilon.cache_info().currsize


@given(data=st.data())
@settings(deadline=None, max_examples=8)
def test_a_noise_that_is_listed_twice_costs_what_it_costs_when_listed_once(data: st.DataObject) -> None:
    """A start and the releases after it are listed apart, with the same noise."""
    noises = st.sampled_from([LAPLACE, GAUSSIAN, PURE, DISCRETE_LAPLACE, Subsampled(GAUSSIAN, 0.5)])
    used = data.draw(st.lists(noises, min_size=1, max_size=3, unique=True))
    listed = [*used, *used]
    releases = data.draw(
        st.lists(st.tuples(st.integers(0, len(listed) - 1), st.floats(0.05, 2)), min_size=1, max_size=5)
    )
    kind, loss = np.array([k for k, _ in releases], np.int8), np.array([loss for _, loss in releases])
    offsets = np.array([0, loss.size])
    twice = Charges(tuple(listed), kind, loss, offsets)
    once = Charges(tuple(used), kind % len(used), loss, offsets)
    for accountant in ACCOUNTANTS.values():
        if all(map(accountant.supports, once.used)):
            assert accountant.epsilon(twice, 1e-5) == pytest.approx(accountant.epsilon(once, 1e-5), rel=1e-6)
            assert accountant.delta(twice, 1.0) == pytest.approx(
                accountant.delta(once, 1.0), rel=1e-6, abs=1e-12
            )


@settings(max_examples=15)
@given(lists=st.lists(losses, min_size=2, max_size=4), noise=st.sampled_from(NOISES), delta=deltas)
def test_loss_distributions_give_an_agent_the_same_alone_and_among_others(
    lists: list[list[float]], noise: Noise, delta: float
) -> None:
    """To the last bit, whoever was asked for before: accounts are kept."""
    offsets = np.cumsum([0, *map(len, lists)])
    every = np.concatenate([np.array(one) for one in lists])
    together = PLD().epsilon(Charges((noise,), np.zeros(every.size, np.int8), every, offsets), delta)
    alone = [PLD().epsilon(Charges.of(noise, one), delta)[0] for one in lists]
    again = ACCOUNTANTS["pld"].epsilon(
        Charges((noise,), np.zeros(every.size, np.int8), every, offsets), delta
    )
    assert together.tolist() == alone == again.tolist()
