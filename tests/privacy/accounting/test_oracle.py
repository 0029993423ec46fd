"""Accountants against dp-accounting, which no production code asks, and where it errs against what is right.

It knows adding or removing a record; scales are normalised by the sensitivity of a replacement, so that the pairs of
laws are the same. Its optimistic and pessimistic estimates stand on either side of the truth.
"""

import ast
import math
from pathlib import Path

import dp_accounting
import numpy as np
import pytest
from dp_accounting import rdp
from dp_accounting.pld import pld_privacy_accountant
from dp_accounting.pld import privacy_loss_distribution as theirs
from hypothesis import given, settings
from hypothesis import strategies as st

import p2psim
from p2psim.privacy.accounting.accountants import ACCOUNTANTS
from p2psim.privacy.accounting.charges import Charges
from p2psim.privacy.accounting.noises import DISCRETE_LAPLACE, GAUSSIAN, LAPLACE, PURE, Subsampled, sampled
from p2psim.privacy.accounting.relations import (
    AddedToPoisson,
    RemovedFromPoisson,
    epsilon_of_adding_or_removing,
)

REPLACE = dp_accounting.NeighboringRelation.REPLACE_ONE
GRID = 1e-3
DELTA = 1e-5


def single(noise, loss, pessimistic=True, **sampled):
    """Their loss distribution of one release."""
    given = {"value_discretization_interval": GRID, "pessimistic_estimate": pessimistic, **sampled}
    if noise is PURE:
        return theirs.from_randomized_response(2 / (1 + math.exp(loss)), 2, **given)
    made = theirs.from_laplace_mechanism if noise is LAPLACE else theirs.from_gaussian_mechanism
    return made(1 / loss, use_connect_dots=pessimistic, **given)


@pytest.mark.parametrize("noise", [LAPLACE, GAUSSIAN, PURE], ids=lambda noise: noise.name)
@pytest.mark.parametrize(
    "releases", [[0.3] * 20, [0.05] * 100, [0.1, 0.4, 0.2, 0.7, 1.1]], ids=["few", "many", "unequal"]
)
def test_loss_distributions_agree(noise, releases):
    """Not below their lower estimate, and not above their upper one by more than discretisation."""
    own = Charges.of(noise, releases)
    epsilon = ACCOUNTANTS["pld"].epsilon(own, DELTA)[0]
    bounds = []
    for pessimistic in (False, True):
        total = single(noise, releases[0], pessimistic)
        for loss in releases[1:]:
            total = total.compose(single(noise, loss, pessimistic))
        bounds.append(total.get_epsilon_for_delta(DELTA))
    assert bounds[0] * (1 - 1e-9) <= epsilon <= bounds[1] * (1 + 1e-3)
    at = ACCOUNTANTS["pld"].delta(own, 1.0)[0]
    assert at <= total.get_delta_for_epsilon(1.0) * (1 + 1e-2) + 1e-12


def test_discrete_laplace_is_covered():
    """Noise on whole steps where a record moves one of them: randomised response covers it."""
    total = theirs.from_discrete_laplace_mechanism(0.3, 1, value_discretization_interval=GRID).self_compose(
        20
    )
    epsilon = ACCOUNTANTS["pld"].epsilon(Charges.of(DISCRETE_LAPLACE, [0.3], [20]), DELTA)[0]
    assert total.get_epsilon_for_delta(DELTA) * (1 - 1e-3) <= epsilon <= 6.0


@pytest.mark.parametrize(("noise", "event"), [(LAPLACE, "LaplaceDpEvent"), (GAUSSIAN, "GaussianDpEvent")])
def test_renyi_accounts_agree(noise, event):
    """Theirs takes the best of some orders, ours of all: nowhere above, and near."""
    accountant = rdp.RdpAccountant(orders=np.linspace(1.1, 80, 1500))
    accountant.compose(getattr(dp_accounting, event)(1 / 0.3), 20)
    found = ACCOUNTANTS["rdp"].epsilon(Charges.of(noise, [0.3], [20]), DELTA)[0]
    assert found <= accountant.get_epsilon(DELTA) * (1 + 1e-9)
    assert found == pytest.approx(accountant.get_epsilon(DELTA), rel=1e-3)


@pytest.mark.parametrize("rate", [0.01, 0.2])
@pytest.mark.parametrize("count", [1, 50])
def test_sampled_gaussians_cover_theirs(rate, count):
    """A Poisson sample, and a record replaced that moves the sum by half of Δ on either side: theirs is exact."""
    total = single(GAUSSIAN, 0.5, sampling_prob=rate, neighboring_relation=REPLACE).self_compose(count)
    own = ACCOUNTANTS["pld"]
    # A sum of records of norm 1 and noise of σ = 2: Δ/σ = 1.
    charges = Charges.of(Subsampled(GAUSSIAN, rate), [1.0], [count])
    for epsilon in (0.05, 0.3, 1.0):
        exact = total.get_delta_for_epsilon(epsilon)
        assert own.delta(charges, epsilon)[0] >= exact * (1 - 2e-2) - 1e-9
    # Amplification is counted: far below that of the whole.
    assert own.delta(charges, 0.3)[0] < own.delta(Charges.of(GAUSSIAN, [1.0], [count]), 0.3)[0]


#: Noise by the norm of a record, chance to be drawn, releases.
SAMPLES = [(1.0, 0.01, 1000), (2.0, 0.1, 200), (0.8, 0.02, 1), (5.0, 0.5, 20)]


@pytest.mark.parametrize(("sigma", "rate", "count"), SAMPLES)
def test_poisson_samples_equal_theirs_where_a_record_is_added_or_removed(sigma, rate, count):
    """Within a thousandth of ε; theirs is the larger of both directions, too."""
    total = single(GAUSSIAN, 1 / sigma, sampling_prob=rate).self_compose(count)
    found = epsilon_of_adding_or_removing(GAUSSIAN, 1 / sigma, rate, count, DELTA)
    assert found == pytest.approx(total.get_epsilon_for_delta(DELTA), rel=1e-3)


@pytest.mark.parametrize("rate", [0.05, 0.4])
def test_laplace_noise_on_poisson_samples_equals_theirs(rate):
    total = single(LAPLACE, 0.7, sampling_prob=rate).self_compose(30)
    found = epsilon_of_adding_or_removing(LAPLACE, 0.7, rate, 30, DELTA)
    assert found == pytest.approx(total.get_epsilon_for_delta(DELTA), rel=1e-3)


@pytest.mark.parametrize(("sigma", "rate", "count"), SAMPLES)
def test_poisson_samples_equal_theirs_where_a_record_is_replaced(sigma, rate, count):
    """A record moves the sum by 1 to either side, so that the loss of a replacement is 2/σ.

    Their lower estimate is of a pair that neighbouring data give, and so below the truth.
    """
    of_pair = {"sampling_prob": rate, "neighboring_relation": REPLACE}
    lower, upper = (
        single(GAUSSIAN, 1 / sigma, pessimistic, **of_pair).self_compose(count).get_epsilon_for_delta(DELTA)
        for pessimistic in (False, True)
    )
    found = ACCOUNTANTS["pld"].epsilon(
        Charges.of(sampled(GAUSSIAN, rate, poisson=True), [2 / sigma], [count]), DELTA
    )[0]
    assert lower * (1 - 1e-9) <= found <= upper * (1 + 1e-3)
    # What is charged whatever kind of batch it is, is more.
    assert (
        found
        < ACCOUNTANTS["pld"].epsilon(Charges.of(Subsampled(GAUSSIAN, rate), [2 / sigma], [count]), DELTA)[0]
    )


@pytest.mark.parametrize("direction", [RemovedFromPoisson, AddedToPoisson])
@pytest.mark.parametrize("noise", [LAPLACE, GAUSSIAN], ids=lambda noise: noise.name)
@pytest.mark.parametrize("rate", [0.03, 0.6])
def test_curves_of_a_direction_are_those_of_densities(direction, noise, rate):
    """The hockey stick of the two mixtures, integrated."""
    x = np.linspace(-40, 40, 800_001)
    loss = 1.3

    def density(at):
        z = x - at
        return np.exp(-np.abs(z)) / 2 if noise is LAPLACE else np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)

    with_it, without = (1 - rate) * density(0) + rate * density(loss), density(0)
    P, Q = (with_it, without) if direction is RemovedFromPoisson else (without, with_it)
    epsilon = np.array([-1.0, -0.2, 0.0, 0.01, 0.1, 0.5])
    exact = [np.maximum(P - math.exp(e) * Q, 0).sum() * (x[1] - x[0]) for e in epsilon]
    np.testing.assert_allclose(direction(noise, rate).delta(np.array(loss), epsilon), exact, atol=1e-7)


@settings(max_examples=10, deadline=None)
@given(
    direction=st.sampled_from([RemovedFromPoisson, AddedToPoisson]),
    rate=st.floats(0.01, 0.9),
    loss=st.floats(0.1, 3.0),
    epsilon=st.floats(0.0, 3.0),
)
def test_a_release_of_a_direction_costs_what_its_curve_says(direction, rate, loss, epsilon):
    """Through grid and transform: never less, and no more than at an ε that is a hundredth smaller."""
    noise = direction(GAUSSIAN, rate)
    exact = float(noise.delta(np.array(loss), np.array(epsilon)))
    found = float(ACCOUNTANTS["pld"].delta(Charges.of(noise, loss), epsilon)[0])
    nearby = float(noise.delta(np.array(loss), np.array(0.99 * epsilon)))
    assert exact * (1 - 1e-9) <= found <= nearby * (1 + 1e-2) + 1e-12


class TestWhereItErrs:
    """It is asked for no account; where its own accountants err, ours do not."""

    def test_no_code_asks_it(self):
        for path in Path(p2psim.__file__).parent.rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                assert not any(name.split(".")[0] == "dp_accounting" for name in names), path

    def test_counts_of_randomised_response(self):
        """Its accountant of loss distributions takes many for one."""
        loss, count = math.log(3), 50
        total = single(PURE, loss).self_compose(count).get_epsilon_for_delta(DELTA)
        accountant = pld_privacy_accountant.PLDAccountant(REPLACE)
        accountant.compose(dp_accounting.RandomizedResponseDpEvent(0.5, 2), count)
        assert accountant.get_epsilon(DELTA) < 0.1 * total
        found = ACCOUNTANTS["pld"].epsilon(Charges.of(PURE, [loss], [count]), DELTA)[0]
        assert found == pytest.approx(total, rel=1e-3)

    def test_a_replaced_record_under_gaussian_noise(self):
        """Its Rényi accountant misses the factor 2 of the sensitivity: 4.73 for 9.997."""
        accountant = rdp.RdpAccountant(neighboring_relation=REPLACE)
        accountant.compose(dp_accounting.GaussianDpEvent(1.0))
        right = 9.99725614643
        assert accountant.get_epsilon(DELTA) < 0.5 * right
        for name in ("gaussian", "rdp", "zcdp", "pld", "best"):
            found = ACCOUNTANTS[name].epsilon(Charges.of(GAUSSIAN, [2.0]), DELTA)[0]
            assert found >= right * (1 - 1e-9)

    def test_a_replaced_record_under_laplace_noise(self):
        """Its accountant of loss distributions refuses it."""
        accountant = pld_privacy_accountant.PLDAccountant(REPLACE)
        assert not accountant.supports(dp_accounting.LaplaceDpEvent(1.0))
        assert ACCOUNTANTS["pld"].epsilon(Charges.of(LAPLACE, [2.0]), DELTA)[0] <= 2.0
