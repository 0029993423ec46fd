"""Sampled releases at any δ: near the truth from above, down to δ = 1e-300 and for any number of releases.

Oracles: the curve of one release, solved for ε; plain convolution of a law whose losses are all moved down, or all up;
numbers that others have found.
"""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr, ndtri_exp

from p2psim.privacy.accounting import pld
from p2psim.privacy.accounting.accountants import ACCOUNTANTS
from p2psim.privacy.accounting.charges import Charges
from p2psim.privacy.accounting.noises import GAUSSIAN, LAPLACE, PURE, Noise, Subsampled

PLD, BEST = ACCOUNTANTS["pld"], ACCOUNTANTS["best"]

losses = st.floats(-2.5, 1.0).map(lambda x: 10.0**x)
rates = st.floats(-6.0, 0.0).map(lambda x: 10.0**x)
deltas = st.one_of(st.floats(-12, -1), st.floats(-300, -12)).map(lambda x: 10.0**x)


def epsilon(noise: Noise, loss: float, count: int, delta: float) -> float:
    return float(PLD.epsilon(Charges.of(noise, [loss], [count]), delta)[0])


@pytest.mark.parametrize("one", [PLD, BEST], ids=lambda one: one.name)
@pytest.mark.parametrize(
    ("loss", "rate", "count", "delta", "low", "high"),
    [
        # A batch of fixed size costs 11.66 at least; the composition of the curve 11.93 to 11.96.
        (2.0, 0.00105, 5000, 1e-12, 11.93, 11.97),
        (0.25, 0.00033, 10_000, 1.1e-18, 0.0725, 0.0734),
    ],
)
def test_known_values(one, loss, rate, count, delta, low, high) -> None:
    found = float(one.epsilon(Charges.of(Subsampled(GAUSSIAN, rate), [loss], [count]), delta)[0])
    assert low <= found <= high


@settings(max_examples=5, deadline=None)
@given(losses, rates, deltas)
@example(0.4658, 3.64e-5, 1.33e-49)  # what is left of the law after tilting lies at its end
@example(1.5, 1e-7, 1e-12)
def test_one_release_costs_what_its_curve_says(loss: float, rate: float, delta: float) -> None:
    noise = Subsampled(GAUSSIAN, rate)

    def over(at: float) -> float:
        return math.log(max(float(noise.delta(np.array(loss), np.array(at))), 5e-324)) - math.log(delta)

    if over(0.0) <= 0:
        assert epsilon(noise, loss, 1, delta) == 0
        return
    exact = brentq(over, 0.0, loss * loss / 2 + 40 * loss, xtol=1e-300, rtol=1e-14)
    room = 1.05 if delta >= 1e-12 else 1.2
    # Where δ is near the whole variation, ε is small beside the losses that it is made of.
    assert exact * (1 - 1e-11) <= epsilon(noise, loss, 1, delta) <= exact * room + 0.01 * rate * loss
    found = float(PLD.delta(Charges.of(noise, [loss]), exact)[0])
    assert delta * (1 - 1e-9) <= found <= delta * 1.5


def bracket(loss: float, rate: float, doublings: int, delta: float, cells: int = 1000) -> tuple[float, float]:
    """ε at δ of 2^doublings sampled Gaussians, from below and from above, by plain convolution of positive numbers.

    Of the pair, the ratio is 1 + q(e^{μx − μ²/2} − 1) for x > μ/2, which is N(0, 1) under Q; the lower half mirrors it.
    """
    count = 2**doublings
    beyond = min(math.log(delta * 1e-3 / count / rate), -1.0)
    furthest = loss - float(ndtri_exp(beyond))
    end = math.log1p(rate * math.expm1(loss * furthest - loss**2 / 2))
    edges = np.linspace(0.0, end, cells + 1)
    x = np.log1p(np.expm1(edges) / rate) / loss + loss / 2
    under_q = -np.diff(ndtr(-x))
    under_p = (1 - rate) * under_q - rate * np.diff(ndtr(loss - x))
    rest = (1 - rate) * float(ndtr(-x[-1])) + rate * math.exp(float(log_ndtr(loss - x[-1])))
    found = []
    for up in (0, 1):
        mass = np.zeros(2 * cells + 1)
        mass[cells + up : 2 * cells + up] += under_p
        mass[1 - up : cells + 1 - up][::-1] += under_q if up else 0.0
        if not up:
            mass[:cells][::-1] += under_q
            mass[-1] += rest
        mass[cells] += 1 - mass.sum() - (rest if up else 0.0)
        lost = count * rest if up else 0.0
        for _ in range(doublings):
            mass = np.convolve(mass, mass)
        places = (np.arange(mass.size) - mass.size // 2) * (end / cells)

        def exceeds(at: float, mass=mass, places=places, lost=lost) -> bool:
            above = places > at
            return lost - float(mass[above] @ np.expm1(at - places[above])) > delta

        low, high = 0.0, count * end * (1 + 1e-9)
        if not exceeds(0.0):
            found.append(0.0)
            continue
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (middle, high) if exceeds(middle) else (low, middle)
        found.append(high if up else low)
    return found[0], found[1]


@settings(max_examples=5, deadline=None)
@given(losses, rates, st.integers(1, 3), deltas)
@example(2.0, 1e-3, 3, 1e-12)
@example(2.0, 1e-3, 3, 1e-300)
@example(0.3, 1.0, 3, 1e-200)
def test_a_few_releases_are_bracketed(loss: float, rate: float, doublings: int, delta: float) -> None:
    low, high = bracket(loss, rate, doublings, delta)
    found = epsilon(Subsampled(GAUSSIAN, rate), loss, 2**doublings, delta)
    assert low * (1 - 1e-11) <= found
    assert found <= high * (1.05 if delta >= 1e-12 else 1.2) + 0.01 * rate * loss


@settings(max_examples=4, deadline=None)
@given(losses, rates, st.floats(0.0, 6.0).map(lambda x: round(10**x)), deltas, st.data())
def test_more_of_anything_costs_no_less(loss: float, rate: float, count: int, delta: float, data) -> None:
    """In the number, the rate and the loss; and at a smaller δ. Up to what discretisation adds."""
    here = epsilon(Subsampled(GAUSSIAN, rate), loss, count, delta)
    factor = data.draw(st.floats(1.5, 100.0))
    more = {
        "count": epsilon(Subsampled(GAUSSIAN, rate), loss, math.ceil(count * factor), delta),
        "rate": epsilon(Subsampled(GAUSSIAN, min(1.0, rate * factor)), loss, count, delta),
        "loss": epsilon(Subsampled(GAUSSIAN, rate), loss * factor, count, delta),
        "delta": epsilon(Subsampled(GAUSSIAN, rate), loss, count, max(delta / factor**5, 1e-300)),
        "whole": epsilon(GAUSSIAN, loss, count, delta),
    }
    for name, found in more.items():
        assert here <= found * (1.05 if delta >= 1e-12 else 1.2) + 0.01 * rate * loss, name


@pytest.mark.parametrize(("loss", "rate"), [(0.01, 0.5), (0.5, 0.01), (5.0, 1e-5)])
def test_a_million_releases_cost_what_a_finer_grid_says(loss: float, rate: float) -> None:
    charges = Charges.of(Subsampled(GAUSSIAN, rate), [loss], [1e6])
    found = [float(PLD.epsilon(charges, delta)[0]) for delta in (1e-300, 1e-12)]
    assert found[1] < found[0] < math.inf
    finer = [pld.FINE.epsilon(charges, delta)[0] for delta in (1e-300, 1e-12)]
    assert found == pytest.approx(finer, rel=0.01)


@pytest.mark.parametrize(
    "noise", [Subsampled(LAPLACE, 0.01), Subsampled(PURE, 0.01)], ids=lambda noise: noise.name
)
@pytest.mark.parametrize("delta", [1e-9, 1e-14, 1e-20, 1e-40])
def test_sampled_pure_noise_has_no_floor_either(noise: Noise, delta: float) -> None:
    """Nowhere above what Rényi divergences say of a release of which the pure ε alone is known."""
    pure = float(noise.pure(np.array(0.5)))
    known = float(ACCOUNTANTS["rdp"].epsilon(Charges.of(PURE, [pure], [2000]), delta)[0])
    assert epsilon(noise, 0.5, 1, delta) < epsilon(noise, 0.5, 2000, delta) <= known


def test_samples_beside_other_releases() -> None:
    """Sampled and whole Gaussians and Laplace noise of one agent: no less than any of them, no more than their sum."""
    noises: tuple[Noise, ...] = (Subsampled(GAUSSIAN, 0.01), GAUSSIAN, LAPLACE)
    own = Charges(noises, np.arange(3, dtype=np.int8), np.array([1.0, 0.2, 0.3]), np.array([0, 3]))
    for delta in (1e-6, 1e-30, 1e-290):
        found = float(PLD.epsilon(own, delta)[0])
        parts = [
            (epsilon(noise, loss, 1, delta), epsilon(noise, loss, 1, delta / 3))
            for noise, loss in zip(noises, (1.0, 0.2, 0.3), strict=True)
        ]
        assert max(alone for alone, _ in parts) <= found <= sum(share for _, share in parts) * 1.001
