"""Numbers far out: nothing that accountants are given makes them say something that is no number, or too little."""

import contextlib
import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from p2psim.privacy.accounting import classical, pld
from p2psim.privacy.accounting.accountants import ACCOUNTANTS, largest_loss, most_releases
from p2psim.privacy.accounting.charges import Charges
from p2psim.privacy.accounting.classical import gaussian_mu
from p2psim.privacy.accounting.noises import (
    DISCRETE_LAPLACE,
    GAUSSIAN,
    LAPLACE,
    PURE,
    Noise,
    PoissonGaussian,
    Subsampled,
)

NOISES: tuple[Noise, ...] = (
    LAPLACE, PURE, GAUSSIAN, DISCRETE_LAPLACE, Subsampled(LAPLACE, 1e-3), Subsampled(GAUSSIAN, 1e-3),
    Subsampled(PURE, 1e-300), PoissonGaussian(1e-3), PoissonGaussian(1e-300),
)  # fmt: skip
LEAST = 5e-324

powers = st.one_of(st.floats(-300, 300), st.floats(-3, 3)).map(lambda x: 10.0**x)
losses = st.one_of(st.sampled_from([0.0, LEAST, 1.7e308, math.inf]), powers)
epsilons = st.one_of(st.sampled_from([0.0, LEAST, 700.0, 710.0, 1.7e308]), powers)
deltas = st.one_of(
    st.sampled_from([0.0, LEAST, 1e-300, 0.5, 1 - 1e-16]), st.floats(-320, 0).map(lambda x: 0.9 * 10.0**x)
)
counts = st.sampled_from([1.0, 2.0, 1000.0])


@st.composite
def charges(draw: st.DrawFn) -> Charges:
    """One agent's releases: none, or some of any noise and size."""
    rows = draw(st.lists(st.tuples(st.integers(0, len(NOISES) - 1), losses, counts), max_size=2))
    kind, loss, count = (np.array([row[i] for row in rows]) for i in range(3))
    return Charges(
        NOISES, kind.astype(np.int8), loss.astype(float), np.array([0, len(rows)]), count.astype(float)
    )


def able(own: Charges) -> list[str]:
    return [
        name for name, one in ACCOUNTANTS.items() if all(one.supports(noise) for noise in own.used)
    ]  # fmt: skip


@settings(max_examples=12, deadline=None)
@given(charges(), st.lists(deltas, min_size=2, max_size=2))
@example(Charges.of(LAPLACE, [1e-3], [1e9]), [1e-300, 1e-320])  # 1/δ is no number any more
@example(Charges.of(GAUSSIAN, [1e-300]), [1e-300, LEAST])
@example(Charges.of(Subsampled(PURE, 1e-300), [1e-300]), [1e-5, 0.5])  # nor is the curve
@example(Charges.of(LAPLACE, []), [0.0, 0.5])
def test_epsilon_is_a_number_and_falls_with_delta(own: Charges, pair: list[float]) -> None:
    low, high = sorted(pair)
    at_low = {}
    for name in able(own):
        with np.errstate(all="raise", under="ignore"):
            more, less = (float(ACCOUNTANTS[name].epsilon(own, delta)[0]) for delta in (low, high))
        assert 0 <= less <= more * (1 + 1e-3), name
        # Infinite where nothing is guaranteed, or where the number is: half of squares, times all counts.
        if low > 0 and not (own.loss > 1e140).any():
            assert more < math.inf, name
        if np.isinf(own.loss).any():
            assert less == math.inf
        at_low[name] = more
    if at_low:
        assert at_low.pop("best") == min(at_low.values())


@settings(max_examples=12, deadline=None)
@given(charges(), st.lists(epsilons, min_size=2, max_size=2))
@example(
    Charges.of(Subsampled(LAPLACE, 1e-3), [1.0], [1e9]), [2000.0, 1e5]
)  # beside the window of a transform
@example(Charges.of(Subsampled(PURE, 1e-300), [1e-300]), [0.0, 1.0])
@example(Charges.of(LAPLACE, []), [0.0, 1.0])
@example(
    Charges.of(LAPLACE, [1.0]).plus(Charges.of(Subsampled(PURE, 1e-300), [1e-22])), [0.0, 1.0]
)  # a law that is finer than the least number
@example(
    Charges.of(LAPLACE, [5e-324]).plus(Charges.of(Subsampled(PURE, 1e-300), [1e-24])), [0.0, 1.0]
)  # and one that ends below it
def test_delta_is_a_probability_and_falls_with_epsilon(own: Charges, pair: list[float]) -> None:
    low, high = sorted(pair)
    # Rounding of a curve that is known by its values alone.
    floor = 1e-15 * float(own.counts.sum())
    at_low = {}
    for name in able(own):
        with np.errstate(all="raise", under="ignore"):
            more, less = (float(ACCOUNTANTS[name].delta(own, epsilon)[0]) for epsilon in (low, high))
        assert 0 <= less <= more * (1 + 1e-3) + floor <= 1 + 2e-3 + floor, name
        if np.isinf(own.loss).any():
            assert less == 1
        at_low[name] = more
    if at_low:
        assert at_low.pop("best") == min(at_low.values())


@settings(max_examples=12, deadline=None)
@given(powers, deltas.filter(lambda delta: delta > 0))
def test_one_laplace_release_costs_what_its_curve_says(loss: float, delta: float) -> None:
    """δ(ε) = 1 − e^{(ε − ε₀)/2}, so ε = ε₀ + 2·ln(1 − δ), or 0 where that is negative."""
    exact = max(0.0, loss + 2 * math.log1p(-delta))
    for name in ("advanced", "kov", "rdp", "zcdp", "pld", "best"):
        found = float(ACCOUNTANTS[name].epsilon(Charges.of(LAPLACE, [loss]), delta)[0])
        assert exact * (1 - 1e-9) <= found <= max(loss, 1e-100)
    if delta <= 0.5:  # nearer to 1 the grid, which is made for small δ, tells less
        found = float(ACCOUNTANTS["pld"].epsilon(Charges.of(LAPLACE, [loss]), delta)[0])
        assert found <= exact + 1e-3 * loss + 1e-100


@settings(max_examples=12, deadline=None)
@given(epsilons, deltas.filter(lambda delta: delta > 0))
@example(0.0, LEAST)
def test_gaussian_calibration_keeps_any_budget_or_says_that_it_cannot(epsilon: float, delta: float) -> None:
    with np.errstate(all="raise", under="ignore"):
        if epsilon < 1e-290 and delta < 1e-290:  # μ may be no number
            with contextlib.suppress(ValueError):
                gaussian_mu(epsilon, delta)
            return
        mu = gaussian_mu(epsilon, delta)
    assert 0 < mu < math.inf
    assert float(GAUSSIAN.delta(np.array(mu), np.array(epsilon))) <= delta


@settings(max_examples=12, deadline=None)
@given(
    st.sampled_from(["basic", "advanced", "kov", "rdp", "zcdp"]),
    powers,
    deltas.filter(lambda delta: delta > 0),
)
def test_searches_keep_any_budget_or_say_that_they_cannot(name: str, epsilon: float, delta: float) -> None:
    one = ACCOUNTANTS[name]
    with np.errstate(all="raise", under="ignore"):
        if epsilon < 1e-99:  # losses below 1e-100 count as that
            with pytest.raises(ValueError, match="finds no loss within"):
                largest_loss(one, LAPLACE, np.ones(1), epsilon / 10, delta)
            return
        loss = largest_loss(one, LAPLACE, np.ones(1), epsilon, delta)
        assert 0 < loss < math.inf
        assert one.epsilon(Charges.of(LAPLACE, [loss]), delta)[0] <= epsilon
        most = most_releases(one, LAPLACE, loss, epsilon, delta)
    assert most >= 1


@pytest.mark.parametrize("delta", [LEAST, 1e-310, 1e-300])
def test_formulas_take_any_delta(delta: float) -> None:
    """ln(1/δ) where 1/δ is no number, from ln(δ·2^60)."""
    logarithm = 60 * math.log(2) - math.log(delta * 2.0**60)
    one, none = np.array(1.0), np.array(0.0)
    assert float(classical.advanced(one, none, delta)) == pytest.approx(math.sqrt(2 * logarithm), rel=1e-12)
    assert float(classical.advanced(one, none, delta)) == pytest.approx(math.sqrt(2 * logarithm), rel=1e-12)
    assert float(classical.kov_logarithm(one, none, delta)) == pytest.approx(
        math.sqrt(2 * logarithm), rel=1e-3
    )
    assert float(classical.zcdp(one, delta)) == pytest.approx(1 + 2 * math.sqrt(logarithm), rel=1e-12)
    assert float(classical.rdp(none, np.array(2.0), delta)) == pytest.approx(
        logarithm - 2 * math.log(2), rel=1e-12
    )


def test_a_bound_beside_the_window_is_true_and_near() -> None:
    """Below the window of a transform δ is bounded by e^{K(λ) − λε}, nowhere below what the window of that ε says."""
    own = pld.released(Charges.of(LAPLACE, np.full(100, 0.1)))
    for epsilon in (1.0, 3.0, 5.0, 7.0):
        here, further = (
            pld.near(own, lambda tilt, cumulant, at=at: cumulant - tilt * at, pld.PLD())
            for at in (epsilon, 9.5)
        )
        exact = here.delta(epsilon)
        far = min(1.0, further.beyond + math.exp(min(0.0, further.cumulant - further.tilt * epsilon)))
        assert exact <= far
        near = here.beyond + math.exp(min(0.0, here.cumulant - here.tilt * epsilon))
        assert exact <= near <= 200 * exact
