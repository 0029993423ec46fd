"""Audits of noise whose law is not known: claims of pure DP against noise that is too small, or that cannot be pure.

What is shown and claimed of one release of loss 1 is computed by the audit's own statistics, on plain draws in the
place of runs. The numbers of samples are those that `docs/privacy.md` states.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2psim.audit.claims import Claim, findings_of
from p2psim.audit.noise import LAPLACE, learned, log_ratio
from p2psim.privacy.accounting.noises import PURE

Draw = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]

GAMMA = 1e-6
COORDINATES = 3
CANARIES = np.array([1.0, 0.0, 0.0]), np.full(COORDINATES, 1 / COORDINATES)


def laplace(scale: float) -> Draw:
    return lambda rng, shape: scale * rng.laplace(size=shape)


def gaussian(scale: float) -> Draw:
    return lambda rng, shape: scale * rng.standard_normal(shape)


def uniform(half: float) -> Draw:
    return lambda rng, shape: rng.uniform(-half, half, shape)


def logistic(scale: float) -> Draw:
    return lambda rng, shape: scale * rng.logistic(size=shape)


def none(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return np.zeros(shape)


def refuted(draw: Draw, samples: int, seed: int, gamma: float = GAMMA) -> bool:
    """Whether an audit refutes that a release with this noise is 1-DP."""
    rng = np.random.default_rng(seed)
    laws = replace(LAPLACE, cumulative=None), learned(draw(rng, (max(500, samples // 10), 1, COORDINATES)))
    scores = []
    for moved in CANARIES:
        for side in (0.5, -0.5):
            seen = side * moved + draw(rng, (samples, 1, COORDINATES))
            scores.append(np.stack([log_ratio(law, seen, moved / 2, -moved / 2) for law in laws]))
    found = findings_of(["one coordinate", "dense"], scores, Claim(PURE, np.ones(1), 1.0), gamma / 3)
    return any(one.rejects for one in found)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("draw", "samples"),
    [
        (none, 500),
        (uniform(2.0), 2000),
        (gaussian(1.0), 10_000),
        (laplace(0.5), 2000),
        (laplace(0.9), 80_000),
    ],
    ids=["none", "uniform", "gaussian", "half", "nine tenths"],
)
def test_a_wrong_claim_is_refuted_at_the_stated_number_of_samples(
    draw: Draw, samples: int, seed: int
) -> None:
    assert refuted(draw, samples, seed)


@pytest.mark.verification
def test_three_hundredths_too_little_noise_are_refuted_by_a_million_samples() -> None:
    assert refuted(laplace(0.97), 1_000_000, 0)


@settings(max_examples=12)
@given(st.floats(0.1, 0.7), st.integers(0, 10_000))
def test_noise_far_below_its_scale_is_refuted(scale: float, seed: int) -> None:
    assert refuted(laplace(scale), 10_000, seed)


@settings(max_examples=12)
@given(st.floats(0.05, 4.0), st.integers(0, 10_000))
def test_outcomes_that_one_of_the_pair_makes_impossible_refute(half: float, seed: int) -> None:
    """P sees what Q never does with probability 1/(2·half), and 1 for less than half a scale."""
    assert refuted(uniform(half), 10_000, seed)


@settings(max_examples=25)
@given(st.floats(1.0, 10.0), st.sampled_from([laplace, logistic]), st.integers(0, 10_000))
def test_right_noise_is_never_refuted(scale: float, law: Callable[[float], Draw], seed: int) -> None:
    # |d ln f/dx| ≤ 1/scale for both, so that they are 1-DP. False alarms: 25 audits at γ = 1e-6.
    assert not refuted(law(scale), 5000, seed)


def test_false_alarms_are_no_more_than_gamma_where_the_claim_is_just_met() -> None:
    # 60 audits at γ = 0.2; were γ just met, more than 12 would be refuted with probability near ½.
    assert sum(refuted(laplace(1.0), 400, seed, 0.2) for seed in range(60)) <= 12


def test_a_learned_law_ends_where_the_noise_does() -> None:
    law = learned(np.random.default_rng(0).uniform(-2.0, 2.0, 10_000))
    inside, outside = np.linspace(-1.99, 1.99, 50), np.array([-2.1, 2.1, 7.0])
    assert law.distance(inside) == pytest.approx(np.log(4), abs=0.5)
    assert (law.distance(outside) > 20).all()
