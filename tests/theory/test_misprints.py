"""Slips of W, F and B in formulas and claims, each beside what follows from the paper's own definitions."""

import numpy as np
import pytest
from scipy.stats import binom

from p2psim.theory.bounds import shape


def spread(values):
    return max(values) - min(values)


@pytest.mark.parametrize("owners", [2, 3, 17])
def test_terms_without_a_sign_in_13_of_f_vanish_for_the_eta_of_its_proof_alone(owners):
    """α_L = α_i/N = α/σ, γ_L = 1, γ_i = 1/N, σ_L = (1 − ηN)σ, σ_i = ησ: both δ are 0 only at η = 1/(2N)."""
    sigma, alpha = 0.7, 0.01
    steps = alpha / sigma, owners * alpha / sigma

    def terms(eta):
        curvatures = (1 - eta * owners) * sigma, eta * sigma
        by_curvature = spread([step * curvature for step, curvature in zip(steps, curvatures, strict=True)])
        by_frequency = spread([steps[0] * 1, steps[1] / owners])
        return by_curvature, by_frequency

    assert terms(1 / (2 * owners)) == pytest.approx((0, 0), abs=1e-15)
    assert terms(0.9 / owners)[0] > alpha / 2


def test_13_of_f_needs_a_plus_sign_to_be_the_square_of_a_length():
    """Models s times as long have steps of s² and gradients of 1/s: a sum of the terms grows as s², a product as s⁴."""

    def terms(s):
        delta_sigma, delta_gamma, C, diameter, step = 0.2, 0.3 * s**2, 5.0 / s, 2.0 * s, 0.01 * s**2
        return np.array([delta_sigma * diameter**2, delta_gamma * C * diameter, step**2 * C**2])

    for s in (2.0, 10.0):
        np.testing.assert_allclose(terms(s) / terms(1.0), s**2)
        assert terms(s)[:2].prod() / terms(1.0)[:2].prod() == pytest.approx(s**4)


def test_claims_of_f_on_partners_lie_on_one_curve_but_that_of_the_abstract():
    """(11) with c̄₁' = 0: N owners of 10,000 records promise ψ = c̄₂'/(N·n_i²·ε²), so that ε²N decides who gains."""
    promised = {
        (owners, epsilon): float(
            shape.ShapeBound(0.0, 2.1e9)(owners * 10_000, shape.inverse_square_sum(np.full(owners, epsilon)))
        )
        for owners, epsilon in ((5, 10.0), (100, 2.5), (10, 1.0))
    }
    assert promised[5, 10.0] == pytest.approx(0.042)
    assert promised[100, 2.5] == pytest.approx(0.0336)
    # If these two break even, the abstract's is fifty times too high.
    assert promised[10, 1.0] == pytest.approx(50 * promised[5, 10.0])


def test_the_second_line_of_4_of_b_is_no_gradient_step_unless_alpha_is_one():
    rng = np.random.default_rng(0)
    weights, confidence, mu, smoothness = np.array([0.3, 1.2]), 0.6, 0.8, 2.5
    own, gradient, others = rng.standard_normal(3), rng.standard_normal(3), rng.standard_normal((2, 3))
    degree = weights.sum()
    lipschitz = degree * (1 + mu * confidence * smoothness)
    of_3 = degree * (own + mu * confidence * gradient) - weights @ others
    step = own - of_3 / lipschitz
    alpha = 1 / (1 + mu * confidence * smoothness)
    mean, pull = weights @ others / degree, mu * confidence * gradient
    np.testing.assert_allclose((1 - alpha) * own + alpha * (mean - pull), step)
    printed = (1 - alpha) * own + alpha * mean - pull
    np.testing.assert_allclose(step - printed, (1 - alpha) * pull)


@pytest.mark.parametrize("budget", [0.15, 1.0, 8.0])
def test_shares_of_lemma_3_of_b_add_up_to_the_budget_outside_the_root_alone(budget):
    C, T = 0.97, 40
    t = np.arange(T)
    shares = (C ** (1 / 3) - 1) / (C ** (T / 3) - 1) * C ** (t / 3)
    assert (shares * budget).sum() == pytest.approx(budget)
    printed = (C ** (1 / 3) - 1) / (C ** (T / 3) - 1) * np.cbrt(C**t * budget)
    assert printed.sum() == pytest.approx(np.cbrt(budget))
    # Proposition 2 prints the roots of C − 1 and C^t − 1; the second is zero at t = 0.
    assert np.cbrt(C - 1) != pytest.approx(C ** (1 / 3) - 1, rel=0.1)
    assert np.cbrt(C ** t[0] - 1) == 0


@pytest.mark.parametrize(
    ("releases", "one", "delta"), [(100, 0.1, 1e-6), (100, 0.1, 1e-5), (10, 0.1, np.exp(-5))]
)
def test_the_second_term_of_theorem_1_of_b_is_not_private_as_printed_for_a_small_delta(releases, one, delta):
    """Beside the exact δ of so many answers by randomised response: the loss is (2j − k)·ε, j binomial."""
    j = np.arange(releases + 1)
    loss = (2 * j - releases) * one
    chance = binom.pmf(j, releases, 1 / (1 + np.exp(-one)))

    def exact(epsilon):
        return (chance * -np.expm1(np.minimum(epsilon - loss, 0))).sum()

    total, mean = releases * one**2, releases * one * np.tanh(one / 2)

    def claimed(inside):
        return mean + np.sqrt(2 * total * np.log(np.e + inside))

    printed, right = claimed(np.sqrt(total / delta)), claimed(np.sqrt(total) / delta)
    assert printed < 0.75 * right
    assert exact(right) <= delta
    # At B's own δ = e⁻⁵ even the smaller ε is kept.
    assert (exact(printed) > 5 * delta) == (delta < 1e-3)
