"""Slips of W, F and B in formulas and claims, each beside what follows from the paper's own definitions."""

from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import binom, laplace, norm

from p2psim.learning.losses import Logistic
from p2psim.privacy.accounting.accountants import ACCOUNTANTS, largest_loss
from p2psim.privacy.accounting.noises import GAUSSIAN, LAPLACE
from p2psim.privacy.shares import Overlap, budgets_of
from p2psim.scenario.model import Scenario
from p2psim.theory.bounds import asynchronous, graph, shape

ROOT = Path(__file__).parents[2]


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


@pytest.mark.parametrize("p", [1, 4, 10])
def test_noise_for_an_l2_bound_loses_the_root_of_p_times_the_claim(p):
    """F1 and F2, Assumption 2: b = 2Ξ/ε for a gradient of L2 norm Ξ in p equal coordinates, which turns round."""
    bound, epsilon = 3.0, 0.7
    gradient = np.full(p, bound / np.sqrt(p))
    outputs = np.array([1.0, 2.0, 5.0])[:, None] * gradient  # beyond both
    ratios = laplace.logpdf(outputs, gradient, 2 * bound / epsilon) - laplace.logpdf(
        outputs, -gradient, 2 * bound / epsilon
    )
    np.testing.assert_allclose(ratios.sum(axis=1), np.sqrt(p) * epsilon)


def test_the_first_line_of_an_owners_update_in_f_climbs_its_gradient():
    """Appendix B: θ̄ − αη∇g + α(n_i/n)Q̄, then the same with a minus sign, which is Algorithm 1 with η = 1/(2N)."""
    owners, rho, horizon, sigma, share = 3, 2.0, 50, 0.4, 0.25
    at, of_g, answer = np.array([0.3, -1.0]), np.array([0.24, -0.8]), np.array([1.5, 0.5])
    alpha = owners * rho / (horizon**2 * sigma)
    algorithm = at - owners * rho / (horizon**2 * sigma) * (of_g / (2 * owners) + share * answer)
    np.testing.assert_allclose(at - alpha * (of_g / (2 * owners) + share * answer), algorithm)
    first = at - alpha / (2 * owners) * of_g + alpha * share * answer
    np.testing.assert_allclose(first - algorithm, 2 * alpha * share * answer)


@pytest.mark.parametrize("owners", [1, 3, 10])
def test_the_mean_averaging_of_f_has_the_same_sign_in_every_owners_row(owners):
    """E[W] = I − M: the last owner's row of M is printed with +1/(2N) at the learner; then W takes no mean."""
    mean = np.eye(owners + 1)
    for i in range(owners):
        apart = np.eye(owners + 1)[i] - np.eye(owners + 1)[owners]
        mean -= np.outer(apart, apart) / (2 * owners)
    M = np.eye(owners + 1) - mean
    np.testing.assert_allclose(M[:owners, owners], -1 / (2 * owners))
    np.testing.assert_allclose(mean.sum(axis=1), 1)
    M[owners - 1, owners] *= -1
    assert (np.eye(owners + 1) - M).sum(axis=1)[owners - 1] == pytest.approx(1 - 1 / owners)


def test_composition_changes_how_f_depends_on_epsilon_and_by_a_factor_that_grows_with_t():
    """F3, Remark 3: what noise costs goes with 1/loss², loss the part of ε that one of T answers may have; δ = 1e-5."""
    budgets = np.array([0.1, 1.0, 10.0, 100.0])

    def excess(loss, answers, epsilon):
        """ε of equal pure releases at δ (Kairouz, Oh, Viswanath 2017, Theorem 3.5), less what is given."""
        drift = answers * loss * np.tanh(loss / 2)
        logarithm = min(np.log(np.e + np.sqrt(answers) * loss / 1e-5), np.log(1e5))
        return min(answers * loss, drift + loss * np.sqrt(2 * answers * logarithm)) - epsilon

    def part(epsilon, answers):
        return brentq(excess, epsilon / answers / 2, 2 * epsilon, args=(answers, epsilon), xtol=1e-14)

    parts = np.array([[part(epsilon, T) for epsilon in budgets] for T in (100, 1000)])
    ours = [
        [largest_loss(ACCOUNTANTS["kov"], LAPLACE, np.ones(T), epsilon, 1e-5) for epsilon in budgets]
        for T in (100, 1000)
    ]
    np.testing.assert_allclose(ours, parts, rtol=1e-6)
    gains = (parts * np.array([[100], [1000]]) / budgets) ** 2
    np.testing.assert_allclose(gains[1], [63.4, 47.7, 31.0, 10.3], rtol=0.01)  # as the page has them
    # Ten times the answers, ten times the gain: no constant, unless T is one.
    np.testing.assert_allclose(gains[1, :3] / gains[0, :3], 10, rtol=0.01)
    slopes = -2 - np.diff(np.log10(gains[1]))
    np.testing.assert_allclose(slopes, [-1.88, -1.81, -1.52], atol=0.01)
    # The best there is, Gaussian noise: P(N > ε/μ − μ/2) − e^ε·P(N > ε/μ + μ/2) = δ.
    mu = np.array(
        [
            largest_loss(ACCOUNTANTS["gaussian"], GAUSSIAN, np.ones(1), epsilon, 1e-5, 2) ** 0.5
            for epsilon in budgets
        ]
    )
    tails = norm.sf(budgets / mu - mu / 2) - np.exp(budgets + norm.logsf(budgets / mu + mu / 2))
    np.testing.assert_allclose(tails, 1e-5, rtol=1e-6)
    np.testing.assert_allclose(-2 * np.diff(np.log10(mu)), [-1.83, -1.75, -1.45], atol=0.01)


@pytest.mark.parametrize("holders", [2, 3])
def test_overlap_costs_kappa_squared_where_budgets_are_equal_alone(holders):
    """W, section II: (9) goes with Σ1/ε². Where budgets differ, keeping all promises costs more."""

    def cost(epsilon, form):
        kept = budgets_of(Overlap(holders=holders, form=form), np.array(epsilon))
        return shape.inverse_square_sum(kept) / shape.inverse_square_sum(np.array(epsilon))

    for form in ("printed", "corrected"):
        assert cost([2.0, 2.0, 2.0], form) == pytest.approx(holders**2)
    assert cost([0.1, 10.0, 10.0], "printed") == pytest.approx(holders**2)
    assert cost([0.1, 10.0, 10.0], "corrected") == pytest.approx(3 * holders**2, rel=1e-3)


def test_models_of_w_leave_every_compact_set_where_nothing_projects_them():
    """W after Assumption 3: strong convexity keeps the model in a compact set. Laplace noise has no bound, so that the
    squared loss has gradients of any length: P(|θ[2]| > r) = e^(−r/(ρb)) from θ[1] = θ* = 0.
    """
    step, scale = 0.5, 2.0
    moved = np.abs(step * np.random.default_rng(0).laplace(0, scale, 200_000))
    for radius in (1.0, 3.0, 6.0):
        chance = np.exp(-radius / (step * scale))
        assert np.mean(moved > radius) == pytest.approx(chance, abs=5 * (chance / moved.size) ** 0.5)


def test_the_logistic_loss_of_b_is_no_1_lipschitz_where_points_are_long():
    """Section 5.1: a step of δ along the signs of x moves the loss by up to ‖x‖₁·δ, 500 on average in [−10, 10]^100."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-10, 10, (2000, 100))
    lengths = np.abs(x).sum(axis=1)
    assert lengths.mean() == pytest.approx(500, abs=3 * 29 / 2000**0.5)
    y, far = np.ones(2000), np.full(2000, -50.0)
    step = 1e-3
    moved = Logistic.values(far - step * lengths, y) - Logistic.values(far, y)
    np.testing.assert_allclose(moved / step, lengths, rtol=1e-6)


def test_bottlenecks_of_b_are_agents_whose_degree_and_confidence_are_far_from_others():
    """After Proposition 1: σ/L_max is largest where D_ii·c_i are alike; a rich hub or a poor end lowers it."""

    def progress(degrees, confidence, mu=0.5, curvature=(0.1, 1.0)):
        flattest, steepest = curvature
        lipschitz = degrees * (1 + mu * confidence * steepest)
        return 1 - graph.contraction_rate(mu * (degrees * confidence).min() * flattest, lipschitz.tolist())

    alike = progress(np.full(5, 2.0), np.full(5, 0.5))
    hub = progress(np.array([8.0, 2, 2, 2, 2]), np.array([1.0, 0.5, 0.5, 0.5, 0.5]))
    end = progress(np.array([0.5, 2, 2, 2, 2]), np.array([0.1, 0.5, 0.5, 0.5, 0.5]))
    assert hub < alike / 4
    assert end == pytest.approx(alike / 20)


@pytest.mark.parametrize("curvature", [0.3, 1.0, 4.0])
def test_distances_of_10_of_w_need_eight_times_the_last_term_that_it_and_its_proof_print(curvature):
    """f(θ) = L/2·‖θ − θ*‖², at a model whose gap is all that the lines before allow without noise."""
    slack, optimum = 0.7, np.array([1.0, -2.0])

    def square_distance(gap):
        theta = optimum + np.sqrt(2 * gap / curvature) * np.array([0.6, 0.8])
        assert curvature / 2 * ((theta - optimum) ** 2).sum() == pytest.approx(gap)
        return ((theta - optimum) ** 2).sum()

    # The proof's gap ends with ε/(2L) and its distance with ε/(8L²); (9) ends with ε and (10) with ε/(4L).
    for gap, printed in (
        (slack / (2 * curvature), slack / (8 * curvature**2)),
        (slack, slack / (4 * curvature)),
    ):
        assert square_distance(gap) == pytest.approx(8 * printed)
        # (15), the line between them, gives 16 times as much.
        assert 4 / curvature * gap == pytest.approx(16 * printed)


def test_figures_10_and_11_of_w_are_of_classes_and_have_no_interest_rates():
    """The text calls figure 10 "Figure 5", and the caption of figure 11 speaks of "lending interest rates"."""
    rates = Scenario.load(ROOT / "scenarios" / "w_fig3_surface.yaml")
    assert not rates.learning.score_loss.needs_classes
    for name, figures in (
        ("w_fig8_fraud_surface", {"epsilon", "size"}),
        ("w_fig11_value", {"collaboration"}),
    ):
        cards = Scenario.load(ROOT / "scenarios" / f"{name}.yaml")
        assert cards.learning.score_loss.needs_classes
        assert cards.data.source.kind == "creditcard"
        assert {figure.kind for figure in cards.figure} == figures


def test_11_of_f_follows_from_9_and_not_from_8_which_depends_on_the_unit_of_a_model():
    """θ' = θ/s has the gradients s·∇ and the curvature s²σ. f, which (11) bounds, is the same; (8) is 1/s² as large."""

    def square_distance(unit):
        return asynchronous.printed_square_distance(
            3e4, [1.0, 2.0], 1.5 * unit, 0.2 * unit, 0.1 * unit**2, 2.0, 1000
        )

    def descend(unit):
        """f and ‖θ‖² after ten steps ρ/(T²σ) on σ/2·(θ − 3)²."""
        sigma, theta = 0.2 * unit**2, 0.0
        for _ in range(10):
            theta -= 2e4 / (1e3**2 * sigma) * sigma * (theta - 3 / unit)
        return sigma / 2 * (theta - 3 / unit) ** 2, theta**2

    for unit in (2.0, 10.0):
        assert square_distance(unit) == pytest.approx(square_distance(1.0) / unit**2)
        (f, length), (f_before, length_before) = descend(unit), descend(1.0)
        assert f == pytest.approx(f_before)
        assert length == pytest.approx(length_before / unit**2)


@pytest.mark.parametrize("far", [0.0, 10.0, 1000.0])
def test_7_of_b_needs_the_difference_of_two_messages_and_not_the_length_of_one(far):
    """Appendix A.1: the update (4) from neighbouring records with ‖x‖₁ ≤ 1, so that L₀ = 1, beside (8) and (9)."""
    rng = np.random.default_rng(3)
    records, confidence, mu, degree = 20, 0.6, 0.8, 1.5
    lipschitz = degree * (1 + mu * confidence * 0.3)
    X, y = rng.dirichlet(np.ones(4), records), rng.choice([-1.0, 1.0], records)
    others, own = rng.standard_normal(4) + far, rng.standard_normal(4) + far
    other_x, other_y = X.copy(), y.copy()
    other_x[7], other_y[7] = -X[7], y[7]

    def gradient(X, y):
        return Logistic.slopes(X @ own, y) @ X / records

    def message(X, y):
        return own - degree / lipschitz * (own - others + mu * confidence * gradient(X, y))

    moved = np.abs(message(X, y) - message(other_x, other_y)).sum()
    of_8 = mu * confidence * degree / lipschitz * np.abs(gradient(X, y) - gradient(other_x, other_y)).sum()
    of_9 = 2 * mu * confidence * degree / (records * lipschitz)
    assert moved == pytest.approx(of_8, abs=1e-12 * (1 + far))
    assert 0 < moved <= of_9
    # As printed, the sensitivity grows with the model, which the record does not, and is never within (9).
    assert np.abs(message(X, y)).sum() > 10 * of_9
