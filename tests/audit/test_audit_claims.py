"""The statistics of audits, by what is known of Laplace noise and of the binomial law."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2psim.audit.claims import Canary, clopper_pearson, findings, lower_bound, thresholds_for

GAMMA = 1e-6


def reject(canaries, delta_of, thresholds, gamma) -> bool:
    """Whether the claim is refuted: wrongly with probability at most γ."""
    return any(finding.rejects for finding in findings(canaries, delta_of, thresholds, gamma))


def scores(rng: np.random.Generator, samples: int, scale: float, side: int, releases: int = 1) -> np.ndarray:
    """Claimed log-likelihood ratios of Laplace releases of loss 1, made with noise of another scale."""
    seen = side * 0.5 + scale * rng.laplace(size=(samples, releases))
    return np.asarray((np.abs(seen + 0.5) - np.abs(seen - 0.5)).sum(axis=1))


def canary(seed: int, samples: int, scale: float, releases: int = 1) -> Canary:
    rng = np.random.default_rng(seed)
    return Canary("one", scores(rng, samples, scale, 1, releases), scores(rng, samples, scale, -1, releases))


def one_release(e: float) -> float:
    """δ(e) of a Laplace release of loss 1: 1 − exp((e − 1)/2), and 0 beyond."""
    return max(0.0, -math.expm1((e - 1) / 2))


def ten_releases(e: float) -> float:
    """δ(e) of ten of them, exactly: the loss of one is ±1 with weights ½ and ½e⁻¹, or has density ¼e^{(x−1)/2}.

    Convolved on a grid of 2/4096 with the mass of each interval at its upper end, so that it is never too small.
    """
    cells = 4096
    step = 2.0 / cells
    edges = -1 + step * np.arange(cells + 1)
    upto = 0.5 * np.exp((edges - 1) / 2)  # P(loss ≤ x) for x in [−1, 1)
    mass = np.concatenate([[upto[0]], np.diff(upto)])
    mass[-1] += 0.5
    total = np.ones(1)
    for _ in range(10):
        total = np.convolve(total, mass)
    losses = -10 + step * np.arange(total.size)
    return float((total * np.maximum(0.0, -np.expm1(e - losses))).sum())


@given(st.integers(1, 40).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.floats(1e-9, 0.4))
def test_bounds_are_where_the_binomial_tail_is_alpha(trial: tuple[int, int], alpha: float) -> None:
    hits, samples = trial
    lower, upper = clopper_pearson(hits, samples, alpha)

    def at_least(p: float) -> float:
        return sum(math.comb(samples, k) * p**k * (1 - p) ** (samples - k) for k in range(hits, samples + 1))

    def at_most(p: float) -> float:
        return sum(math.comb(samples, k) * p**k * (1 - p) ** (samples - k) for k in range(hits + 1))

    assert (lower == 0) == (hits == 0)
    assert (upper == 1) == (hits == samples)
    if hits:
        assert at_least(lower) == pytest.approx(alpha, rel=1e-6)
    if hits < samples:
        assert at_most(upper) == pytest.approx(alpha, rel=1e-6)


def test_bounds_keep_a_tiny_alpha() -> None:
    assert clopper_pearson(0, 1000, 1e-18)[1] == pytest.approx(-math.expm1(math.log(1e-18) / 1000), rel=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_the_right_noise_is_not_refuted(seed: int) -> None:
    # False alarms: 20 audits at γ = 1e-6, so at most 2e-5 over all seeds.
    assert not reject([canary(seed, 2000, 1.0)], one_release, thresholds_for(np.ones(1)), GAMMA)


def test_false_alarms_are_no_more_than_gamma() -> None:
    # 500 audits at γ = .2 by the exact claim. Were γ just met, more than 100 would be refuted with probability near ½;
    # bounds that hold together are far safer.
    claim, e = one_release, thresholds_for(np.ones(1))
    refuted = sum(reject([canary(seed, 300, 1.0)], claim, e, 0.2) for seed in range(500))
    assert refuted <= 100


@pytest.mark.parametrize("seed", range(5))
def test_half_the_noise_is_refuted_by_a_thousand_samples(seed: int) -> None:
    assert reject([canary(seed, 1000, 0.5)] * 2, one_release, thresholds_for(np.ones(1)), GAMMA)


def test_nine_tenths_of_the_noise_are_refuted_by_ten_thousand_samples_of_ten_releases() -> None:
    e = thresholds_for(np.ones(10))
    assert reject([canary(1, 10_000, 0.9, 10)] * 2, ten_releases, e, GAMMA)
    assert not reject([canary(1, 10_000, 1.0, 10)] * 2, ten_releases, e, GAMMA)


@given(st.integers(0, 10_000))
def test_pure_noise_shows_nothing(seed: int) -> None:
    # Outputs that do not depend on the data. At γ = 1e-6 a bound above zero is as good as impossible.
    rng = np.random.default_rng(seed)
    noise = scores(rng, 500, 1.0, 1), scores(rng, 500, 1.0, 1)
    found = findings([Canary("one", *noise)], one_release, thresholds_for(np.ones(1)), GAMMA)
    assert lower_bound(found, 0.0) == 0.0
    assert not any(one.rejects for one in found)


@pytest.mark.parametrize("scale", [0.5, 1.0, 2.0])
def test_the_lower_bound_is_below_the_truth_and_near_it(scale: float) -> None:
    # 20 intervals at γ = 1e-6.
    for seed in range(20):
        found = findings([canary(seed, 20_000, scale)], one_release, thresholds_for(np.ones(1)), GAMMA)
        assert 0.6 / scale < lower_bound(found, 0.0) <= 1 / scale


def test_a_delta_lowers_the_bound() -> None:
    found = findings([canary(0, 5000, 0.5)], one_release, (0.0, 0.5, 1.0), GAMMA)
    bounds = [lower_bound(found, delta) for delta in (0.0, 1e-5, 0.1, 0.9)]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[-1] == 0.0


def test_more_canaries_share_gamma() -> None:
    one = canary(0, 5000, 0.5)
    alone = findings([one], one_release, (0.0,), GAMMA)[0]
    beside = findings([one, one], one_release, (0.0,), GAMMA)[0]
    assert beside.p_low < alone.p_low
    assert beside.q_up > alone.q_up


def test_the_last_bits_of_a_score_say_nothing() -> None:
    # All scores are 1 or −1 but for the rounding of large numbers, which tells P from Q.
    p, q = np.full(5000, 1 + 1e-15), np.where(np.arange(5000) < 1839, 1 - 1e-15, -1.0)
    p[2500:] = -1.0
    assert not reject([Canary("one", p, q)], one_release, (1.0,), GAMMA)
