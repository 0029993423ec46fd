"""What is not allowed to be lost when losses are discretised and their sum is transformed.

Oracles: integrals over the densities of single releases; plain convolution; finite sums over all outcomes of randomised
responses.
"""

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from p2psim.privacy.accounting import convolution, pld
from p2psim.privacy.accounting.accountants import ACCOUNTANTS
from p2psim.privacy.accounting.charges import Charges
from p2psim.privacy.accounting.convolution import Tilted, convolve, curve
from p2psim.privacy.accounting.grids import LossDistributions, discretise
from p2psim.privacy.accounting.noises import GAUSSIAN, LAPLACE, PURE, Noise, PoissonGaussian, Subsampled


@dataclass(frozen=True)
class Own:
    """A noise of one's own, of which no more is known than its curve: Laplace noise in disguise."""

    name: str = "own"

    def delta(self, losses: np.ndarray, epsilon: np.ndarray) -> np.ndarray:
        return LAPLACE.delta(losses, epsilon)


NOISES: tuple[Noise, ...] = (
    LAPLACE,
    GAUSSIAN,
    PURE,
    Own(),
    Subsampled(LAPLACE, 0.1),
    Subsampled(GAUSSIAN, 0.2),
    PoissonGaussian(0.2),
)


def places(law: LossDistributions, h: float) -> np.ndarray:
    return np.arange(-law.width, law.width + 1) * h


def stick(law: LossDistributions, h: float, epsilon: float) -> float:
    """δ(ε) of a discretised law."""
    return float(law.beyond[0] + (law.mass[0] * np.maximum(-np.expm1(epsilon - places(law, h)), 0)).sum())


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: noise.name)
@settings(max_examples=40)
@given(loss=st.floats(1e-3, 8.0), steps=st.floats(0.3, 60.0))
def test_a_discretised_law_touches_the_curve_at_its_points_and_lies_above_between(
    noise: Noise, loss: float, steps: float
) -> None:
    h = loss / steps
    law = discretise(noise, np.array([loss]), h)
    assert law.mass.min() >= 0
    assert law.mass.sum() + law.beyond[0] == pytest.approx(1, abs=1e-12)
    for j in np.unique(np.linspace(0, law.width, 9).astype(int)):
        exact = float(noise.delta(np.array(loss), np.array(j * h)))
        assert stick(law, h, j * h) == pytest.approx(exact, rel=1e-9, abs=1e-14)
        assert stick(law, h, j * h) >= exact - 1e-15
        between = (j + 0.4) * h
        assert stick(law, h, between) >= float(noise.delta(np.array(loss), np.array(between))) - 1e-15


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: noise.name)
@settings(max_examples=20)
@given(loss=st.floats(1e-3, 8.0), steps=st.floats(0.3, 60.0))
def test_a_discretised_law_is_symmetric(noise: Noise, loss: float, steps: float) -> None:
    """P(L = −l) = e^−l·P(L = l), so that its mass under Q is 1 less what has no P."""
    h = loss / steps
    law = discretise(noise, np.array([loss]), h)
    where = places(law, h)
    upper = law.mass[0][law.width + 1 :]
    assert law.mass[0][: law.width][::-1] == pytest.approx(upper * np.exp(-where[law.width + 1 :]), rel=1e-12)
    assert (law.mass[0] * np.exp(-where)).sum() == pytest.approx(1 - law.beyond[0], abs=1e-9)


@dataclass(frozen=True)
class Trembling(Own):
    """The same with errors of rounding of the size that is allowed, down and up in turn."""

    sign: float = 1.0

    def delta(self, losses: np.ndarray, epsilon: np.ndarray) -> np.ndarray:
        exact = LAPLACE.delta(losses, epsilon)
        turns = np.where(np.arange(exact.size) % 2, 1.0, -1.0).reshape(exact.shape)
        return np.clip(exact + 3.9e-16 * self.sign * turns, 0.0, 1.0)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("h", [1e-3, 1e-2])
def test_rounding_of_a_curve_does_not_make_it_smaller(sign: float, h: float) -> None:
    """Far out, where δ is small, a sum has all its digits: the law is above the exact curve without a tolerance."""
    law = discretise(Trembling(sign=sign), np.array([1.0]), h)
    for j in range(round(1 / h) - 4, round(1 / h) + 1):
        assert stick(law, h, j * h) >= float(LAPLACE.delta(np.array(1.0), np.array(j * h)))


@dataclass(frozen=True)
class Leaking(Own):
    """The same, but that with a probability of 1e-4 it tells all."""

    def delta(self, losses: np.ndarray, epsilon: np.ndarray) -> np.ndarray:
        return 1e-4 + (1 - 1e-4) * LAPLACE.delta(losses, epsilon)


def test_a_noise_that_may_tell_all() -> None:
    """Ten releases tell all with a probability of 1 − .9999¹⁰, and are Laplace noise otherwise."""
    own, plain = Charges.of(Leaking(), [0.5], [10]), Charges.of(LAPLACE, [0.5], [10])
    leak = 1 - 0.9999**10
    for epsilon in (0.5, 2.0, 4.0):
        exact = leak + (1 - leak) * pld.FINE.delta(plain, epsilon)[0]
        assert exact * (1 - 1e-5) <= ACCOUNTANTS["pld"].delta(own, epsilon)[0] <= exact * 1.003
    assert ACCOUNTANTS["pld"].epsilon(own, leak * 0.9)[0] == np.inf
    assert ACCOUNTANTS["pld"].epsilon(own, leak * 1.1)[0] < 5


@settings(max_examples=25)
@given(
    st.lists(st.floats(0.05, 1.5), min_size=1, max_size=3),
    st.lists(st.integers(1, 4), min_size=3, max_size=3),
    st.sampled_from([0.3, 3.0, 30.0]),
)
def test_a_transform_is_within_its_bound_of_plain_convolution(
    losses: list[float], often: list[int], tilt: float
) -> None:
    counts, h = np.array(often[: len(losses)], float), 0.05
    tilted = Tilted(discretise(LAPLACE, np.array(losses), h), counts, h, tilt)
    rows = [row for row, count in zip(tilted.weights, counts, strict=True) for _ in range(int(count))]
    plain = np.ones(1, np.longdouble)
    for row in rows:
        plain = np.convolve(plain, row.astype(np.longdouble))
    first = int(tilted.lowest)
    N = plain.size + 7
    found, rounding = convolve(tilted, N)
    exact = found[np.arange(first, first + plain.size) % N]
    assert np.abs(exact - plain).max() <= rounding
    assert rounding < 1e-11


def exact_responses(losses: list[float], epsilon: float) -> float:
    """δ at ε of randomised responses: the sum over all outcomes of P(o) − e^ε·Q(o) where that is positive."""
    terms = []
    for signs in itertools.product((1, -1), repeat=len(losses)):
        p = math.prod(1 / (1 + math.exp(-sign * loss)) for sign, loss in zip(signs, losses, strict=True))
        q = math.prod(1 / (1 + math.exp(sign * loss)) for sign, loss in zip(signs, losses, strict=True))
        terms.append(max(p - math.exp(epsilon) * q, 0.0))
    return math.fsum(terms)


@settings(max_examples=30)
@given(st.lists(st.floats(0.02, 2.0), min_size=1, max_size=8), st.floats(0.0, 0.9))
def test_different_randomised_responses(losses: list[float], share: float) -> None:
    epsilon = share * sum(losses)
    exact = exact_responses(losses, epsilon)
    own = Charges.of(PURE, losses)
    for accountant in (ACCOUNTANTS["pld"], pld.FINE):
        assert accountant.delta(own, epsilon)[0] >= exact * (1 - 1e-12)
    if 1e-9 < exact < 1:
        back = ACCOUNTANTS["pld"].epsilon(own, exact)[0]
        assert epsilon * (1 - 1e-9) - 1e-12 <= back <= epsilon * (1 + 1e-3) + 2e-3 * sum(losses) * 0.1


def test_equal_randomised_responses_far_in_the_tail() -> None:
    """k-fold hockey sticks as sums over the number of responses that are true, in whole numbers: e^ε₀ = 3."""
    k, own = 60, Charges.of(PURE, np.full(60, math.log(3)))
    for true in (40, 50, 57):
        # At ε = (2·true − k)·ln 3, e^ε = 3^(2·true − k).
        top = sum(
            math.comb(k, j) * (3**j - 3 ** (2 * true - k) * 3 ** (k - j)) for j in range(true + 1, k + 1)
        )
        exact = top / 4**k
        found = ACCOUNTANTS["pld"].delta(own, (2 * true - k) * math.log(3))[0]
        assert exact * (1 - 1e-9) <= found <= exact * 1.01


@pytest.mark.parametrize(("laplace", "mu"), [(0.5, 1.0), (2.0, 0.3), (0.01, 4.0)])
def test_laplace_beside_gaussian(laplace: float, mu: float) -> None:
    """The curve of both, integrated over the loss of the Laplace release."""
    own = Charges((LAPLACE, GAUSSIAN), np.array([0, 1], np.int8), np.array([laplace, mu]), np.array([0, 2]))
    for epsilon in (0.1, 1.0, 3.0):

        def rest(loss: float, epsilon: float = epsilon) -> float:
            return float(GAUSSIAN.delta(np.array(mu), np.array(epsilon - loss)))

        density = quad(
            lambda at: 0.25 * math.exp((at - laplace) / 2) * rest(at), -laplace, laplace, epsabs=0
        )[0]
        exact = 0.5 * rest(laplace) + 0.5 * math.exp(-laplace) * rest(-laplace) + density
        found = ACCOUNTANTS["pld"].delta(own, epsilon)[0]
        assert exact * (1 - 1e-9) <= found <= exact * 1.003


@pytest.mark.parametrize(("first", "second"), [(0.3, 0.3), (0.1, 1.5), (2.0, 1.0)])
def test_two_coordinates_are_dominated_by_one_that_moves_by_both(first: float, second: float) -> None:
    for epsilon in np.linspace(0, first + second, 12):

        def rest(loss: float, epsilon: float = float(epsilon)) -> float:
            return float(LAPLACE.delta(np.array(second), np.array(epsilon - loss)))

        density = quad(lambda at: 0.25 * math.exp((at - first) / 2) * rest(at), -first, first, limit=200)[0]
        both = 0.5 * rest(first) + 0.5 * math.exp(-first) * rest(-first) + density
        assert both <= float(LAPLACE.delta(np.array(first + second), np.array(epsilon))) + 1e-9


@pytest.mark.parametrize(("loss", "count"), [(0.1, 100), (1.0, 10), (0.01, 10)])
@pytest.mark.parametrize("delta", [1e-2, 1e-5])
def test_a_noise_that_tells_its_curve_alone(loss: float, count: int, delta: float) -> None:
    known = pld.FINE.epsilon(Charges.of(LAPLACE, [loss], [count]), delta)[0]
    found = ACCOUNTANTS["pld"].epsilon(Charges.of(Own(), [loss], [count]), delta)[0]
    assert known * (1 - 1e-5) <= found <= known * (1 + 1e-3)
    for name in ("basic", "advanced", "kov", "rdp", "zcdp", "gaussian"):
        assert not ACCOUNTANTS[name].supports(Own())


@pytest.mark.parametrize("delta", [1e-2, 1e-6])
def test_a_short_window_changes_nothing(delta: float, monkeypatch: pytest.MonkeyPatch) -> None:
    own = Charges.of(LAPLACE, np.random.default_rng(0).uniform(0.01, 0.3, 150))
    sizes, find = [], convolution.convolve

    def sized(tilted: Tilted, N: int) -> tuple[np.ndarray, float]:
        sizes.append(N)
        return find(tilted, N)

    monkeypatch.setattr(convolution, "convolve", sized)
    epsilon = pld.epsilon_of(own, delta, pld.FINE)
    short = epsilon, pld.delta_of(own, epsilon, pld.FINE)
    monkeypatch.setattr(convolution, "NORMAL", 0.0)  # no sum is so normal: the window holds it
    whole = pld.epsilon_of(own, delta, pld.FINE), pld.delta_of(own, epsilon, pld.FINE)
    assert short == pytest.approx(whole, rel=1e-11)
    assert abs(short[0] / whole[0] - 1) < 1e-12
    assert sizes[0] < sizes[2]


def test_what_leaves_the_window_is_counted() -> None:
    """Of 400 releases the window holds a part of what their sum can be: above it δ is small, and not 0."""
    h, counts = 0.02, np.array([400.0])
    found = curve(Tilted(discretise(LAPLACE, np.array([0.2]), h), counts, h, 1.0))
    assert found.points[-1] < 400 * 0.2
    assert 0 < found.values[-1] < 1e-9 * np.interp(10.0, found.points, found.values)
    assert (np.diff(found.values) < 0).all()


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: noise.name)
@pytest.mark.parametrize(
    "loss",
    [
        1e-300,
        700.0,
        *(pytest.param(x, marks=pytest.mark.verification) for x in (1e-12, 1e-6, 1e5, 1e200, 1e308)),
    ],
)
def test_no_loss_is_too_small_or_too_large_for_a_number(noise: Noise, loss: float) -> None:
    """Nothing warns, nothing is no number, ε falls as δ grows, and no bound is below what one release costs."""
    own = Charges.of(noise, [loss], [10])
    for name, accountant in ACCOUNTANTS.items():
        if not accountant.supports(noise):
            continue
        found = [accountant.epsilon(own, delta)[0] for delta in (1e-200, 1e-5, 0.5)]
        assert not np.isnan(found).any(), name
        assert found[0] >= found[1] * (1 - 1e-9), name
        assert found[1] >= found[2] * (1 - 1e-9), name
        for delta, epsilon in zip((1e-200, 1e-5, 0.5), found, strict=True):
            if np.isfinite(epsilon):
                assert float(noise.delta(np.array(loss), np.array(epsilon))) <= delta * (1 + 1e-6), name
        at = accountant.delta(own, 1.0)[0]
        assert 0 <= at <= 1
