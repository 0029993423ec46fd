"""Accountants against certified values.

``certified.json``: exact finite sums in ball arithmetic, and printed formulas evaluated with many digits. PURE is what
knows ε₀ only, Laplace the mechanism itself. No accountant may be below what is certified for what it knows by more than
1e-9 of it.
"""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from p2psim.privacy.accounting import classical, pld
from p2psim.privacy.accounting.accountants import ACCOUNTANTS, largest_loss
from p2psim.privacy.accounting.charges import Charges
from p2psim.privacy.accounting.classical import RDP, gaussian_mu, pure_sums
from p2psim.privacy.accounting.noises import DISCRETE_LAPLACE, GAUSSIAN, LAPLACE, PURE

CERTIFIED = json.loads((Path(__file__).parent / "certified.json").read_text(encoding="utf-8"))
TABLE = CERTIFIED["laplace_table k|eps0|delta"]
DELTAS = {"exp(-5)": math.exp(-5), "1e-5": 1e-5, "1e-6": 1e-6}
HETERO = CERTIFIED["hetero eps_t=t/10,t=1..10"]


def cell(key: str) -> tuple[int, float, float, dict[str, float]]:
    k, loss, delta = key.split("|")
    return int(k), float(loss), DELTAS[delta], {name: float(value) for name, value in TABLE[key].items()}


@pytest.mark.parametrize("key", TABLE)
class TestCells:
    def test_none_is_below_what_is_certified(self, key: str) -> None:
        k, loss, delta, row = cell(key)
        for noise, exact in (
            (LAPLACE, "PLD_Laplace_exact"),
            (PURE, "KOV_exact"),
            (DISCRETE_LAPLACE, "KOV_exact"),
        ):
            charges = Charges.of(noise, np.full(k, loss))
            for accountant in ACCOUNTANTS.values():
                if accountant.supports(noise):
                    assert accountant.epsilon(charges, delta)[0] >= row[exact] * (1 - 1e-9), accountant.name

    def test_loss_distributions_are_close_above(self, key: str) -> None:
        k, loss, delta, row = cell(key)
        charges = Charges.of(LAPLACE, np.full(k, loss))
        assert ACCOUNTANTS["pld"].epsilon(charges, delta)[0] <= row["PLD_Laplace_exact"] * (1 + 1e-3)
        assert pld.FINE.epsilon(charges, delta)[0] <= row["PLD_Laplace_exact"] * (1 + 1e-4)
        pure = Charges.of(PURE, np.full(k, loss))
        assert ACCOUNTANTS["pld"].epsilon(pure, delta)[0] <= row["KOV_exact"] * (1 + 1e-3)

    def test_formulas_are_those_of_the_papers(self, key: str) -> None:
        k, loss, delta, row = cell(key)
        charges = Charges.of(LAPLACE, np.full(k, loss))
        S1, S2, B, D = pure_sums(charges)
        assert S1[0] == pytest.approx(row["basic"], rel=1e-12)
        assert classical.advanced(S2, D, delta)[0] == pytest.approx(row["DRV10"], rel=1e-12)
        assert classical.advanced(S2, B, delta)[0] == pytest.approx(row["DRV_tanh"], rel=1e-12)
        assert classical.kov_logarithm(S2, B, delta)[0] == pytest.approx(row["KOV_e_term"], rel=1e-12)
        assert classical.kov(S1, S2, B, delta)[0] == pytest.approx(row["KOV_formula"], rel=1e-12)
        assert classical.zcdp(S2 / 2, delta)[0] == pytest.approx(row["zCDP(BS16)"], rel=1e-12)

    def test_rdp_is_at_its_optimum(self, key: str) -> None:
        k, loss, delta, row = cell(key)
        charges = Charges.of(LAPLACE, np.full(k, loss))
        assert RDP().epsilon_bound(charges, delta)[0] == pytest.approx(row["RDP_CKS20"], rel=1e-6)
        capped = ACCOUNTANTS["rdp"].epsilon(charges, delta)[0]
        assert capped == pytest.approx(min(row["RDP_CKS20"], k * loss), rel=1e-6)

    def test_accountants_return_the_smaller_of_formula_and_basic(self, key: str) -> None:
        k, loss, delta, row = cell(key)
        charges = Charges.of(LAPLACE, np.full(k, loss))
        assert ACCOUNTANTS["advanced"].epsilon(charges, delta)[0] == pytest.approx(
            min(row["DRV10"], row["basic"]), rel=1e-12
        )
        assert ACCOUNTANTS["kov"].epsilon(charges, delta)[0] == pytest.approx(row["KOV_formula"], rel=1e-12)


@pytest.mark.parametrize("delta", HETERO)
def test_unequal_releases(delta: str) -> None:
    losses = np.arange(1, 11) / 10
    for noise, name in ((LAPLACE, "Laplace"), (PURE, "pureDP_opt")):
        exact = float(HETERO[delta][name])
        for accountant, above in ((ACCOUNTANTS["pld"], 1e-3), (pld.FINE, 1e-4)):
            found = accountant.epsilon(Charges.of(noise, losses), DELTAS[delta])[0]
            assert exact * (1 - 1e-9) <= found <= exact * (1 + above)
        for accountant in ACCOUNTANTS.values():
            if accountant.supports(noise):
                assert accountant.epsilon(Charges.of(noise, losses), DELTAS[delta])[0] >= exact * (1 - 1e-9)


@pytest.mark.parametrize("key", CERTIFIED["rr_ln3"])
def test_randomised_response(key: str) -> None:
    k, delta = key.split("|")
    exact = float(CERTIFIED["rr_ln3"][key])
    found = ACCOUNTANTS["pld"].epsilon(Charges.of(PURE, np.full(int(k), math.log(3))), float(delta))[0]
    assert exact * (1 - 1e-9) <= found <= exact * (1 + 1e-3)


def test_many_large_releases() -> None:
    charges = Charges.of(PURE, np.ones(500))
    assert ACCOUNTANTS["pld"].epsilon(charges, 1e-5)[0] == pytest.approx(311.767604639710743, rel=1e-6)
    assert ACCOUNTANTS["pld"].epsilon(charges, 1e-5)[0] >= 311.767604639710743 * (1 - 1e-9)
    assert ACCOUNTANTS["basic"].epsilon(charges, 1e-5)[0] == 500


@pytest.mark.parametrize("mu", [mu for mu in CERTIFIED["gaussian_mu"] if mu != "deltas"])
def test_gaussians_are_exact_however_they_are_parted(mu: str) -> None:
    for delta, exact in zip(CERTIFIED["gaussian_mu"]["deltas"], CERTIFIED["gaussian_mu"][mu], strict=True):
        for parts in (1, 7):
            charges = Charges.of(GAUSSIAN, np.full(parts, float(mu) / math.sqrt(parts)))
            for name in ("gaussian", "pld", "best"):
                found = ACCOUNTANTS[name].epsilon(charges, DELTAS[delta])[0]
                assert found == pytest.approx(float(exact), rel=1e-12)


def test_replacing_a_record_doubles_the_loss_of_a_gaussian() -> None:
    # C = σ = 1: a record replaced moves the sum by 2C. Half of it, as for adding a record, would be 4.377.
    assert ACCOUNTANTS["gaussian"].epsilon(Charges.of(GAUSSIAN, [2.0]), 1e-5)[0] == pytest.approx(
        9.99725614643, rel=1e-11
    )


def test_analytic_calibration() -> None:
    assert 1 / gaussian_mu(10, 1e-5) == pytest.approx(0.499888619709, rel=1e-11)
    for epsilon, delta in ((0.01, 1e-9), (1.0, 1e-5), (30.0, 0.1)):
        mu = gaussian_mu(epsilon, delta)
        assert GAUSSIAN.delta(np.array(mu), np.array(epsilon)) <= delta
        assert GAUSSIAN.delta(np.array(mu * (1 + 1e-9)), np.array(epsilon)) > delta


def test_noise_for_a_hundred_laplace_releases() -> None:
    """Never less than 41.48745, the noise that the exact account asks for."""
    loss = largest_loss(ACCOUNTANTS["pld"], LAPLACE, np.ones(100), 1.0, 1e-6)
    assert 41.48745 <= 1 / loss <= 41.48748 * (1 + 1e-4)
    assert ACCOUNTANTS["pld"].epsilon(Charges.of(LAPLACE, np.full(100, loss)), 1e-6)[0] <= 1.0


def test_advanced_composition_has_its_logarithm() -> None:
    S2 = np.array([100 * 0.1**2])
    # Without the logarithm the term is √2 = 1.414.
    assert classical.advanced(S2, np.zeros(1), 1e-5)[0] == pytest.approx(4.79852591219, rel=1e-11)
    ten = pure_sums(Charges.of(LAPLACE, np.ones(10)))
    assert classical.advanced(ten[1], ten[3], math.exp(-5))[0] == pytest.approx(27.18, abs=0.005)


@pytest.mark.parametrize("noise", [LAPLACE, PURE, GAUSSIAN])
@pytest.mark.parametrize("loss", [0.03, 0.7, 3.0])
def test_renyi_divergences_are_those_of_the_pair(noise: object, loss: float) -> None:
    """Against a Riemann sum over the pair's own densities, by their logarithms."""
    x = np.linspace(-60, 60, 2_000_001)
    weight = x[1] - x[0]
    if noise is LAPLACE:
        p, q = -np.abs(x) - math.log(2), -np.abs(x - loss) - math.log(2)
    elif noise is GAUSSIAN:
        p, q = (-((x - mean) ** 2) / 2 - math.log(2 * math.pi) / 2 for mean in (0, loss))
    else:
        p, weight = np.array([0, loss]) - math.log(1 + math.exp(loss)), 1.0
        q = p[::-1]
    for order in (1.01, 1.7, 4.0, 20.0):
        terms = order * p - (order - 1) * q
        peak = terms.max()
        expected = (peak + math.log(np.exp(terms - peak).sum() * weight)) / (order - 1)
        found = noise.rdp(np.array(loss), np.array(order))  # type: ignore[attr-defined]
        assert float(found) == pytest.approx(expected, rel=1e-4, abs=1e-7)


def test_the_best_order_is_found() -> None:
    charges = Charges.of(LAPLACE, np.linspace(0.05, 0.4, 30))

    def at(x: float) -> float:
        order = 1 + math.exp(x)
        total = float(LAPLACE.rdp(charges.loss, np.array(order)).sum())
        return float(classical.rdp(np.array(total), np.array(order), 1e-6))

    best = minimize_scalar(at, bounds=(-5, 10), method="bounded", options={"xatol": 1e-10})
    assert RDP().epsilon_bound(charges, 1e-6)[0] == pytest.approx(best.fun, rel=1e-9)
