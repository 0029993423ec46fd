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

import p2psim
from p2psim.privacy.accounting.accountants import ACCOUNTANTS
from p2psim.privacy.accounting.charges import Charges
from p2psim.privacy.accounting.noises import DISCRETE_LAPLACE, GAUSSIAN, LAPLACE, PURE, Subsampled

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
