"""Noises: their laws, their sensitivities, noise of one's own, and what is refused."""

import inspect
import math
import sys
from decimal import Decimal, getcontext
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from own_parts import let_in
from scipy import stats
from star_cases import scenario

import p2psim
from p2psim.core.errors import InputError, MeaningError
from p2psim.core.randomness import stream_key
from p2psim.privacy.accounting.noises import PURE
from p2psim.privacy.mechanisms import DiscreteLaplace, Gaussian, Laplace, NoNoise
from p2psim.simulation.simulate import simulate
from p2psim.simulation.workspace import Workspace

#: Each test of a law rejects a right one with this probability; seeds are fixed.
LEVEL = 1e-4

with let_in("own_noise"):
    from own_noise import Logistic


@pytest.fixture(autouse=True, scope="module")
def noise_of_ones_own():
    with let_in("own_noise"):
        yield


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    return Workspace(tmp_path_factory.mktemp("workspace"))


def drawn(mechanism, scale, releases=5000, p=4):
    unit = np.empty((releases, p))
    agents = np.arange(releases) % 7
    mechanism.fill_unit(stream_key(0, 0, "noise"), agents, np.arange(releases) // 7, unit)
    return mechanism.of_scale(unit, np.full(releases, scale))


class TestLaws:
    @pytest.mark.parametrize(
        ("mechanism", "law"),
        [
            (Laplace(), stats.laplace(scale=0.3)),
            (Gaussian(), stats.norm(scale=0.3)),
            (Logistic(), stats.logistic(scale=0.3)),
            (Logistic(stretch=2.0), stats.logistic(scale=0.6)),
        ],
        ids=["laplace", "gaussian", "own", "own with options"],
    )
    def test_of_a_density(self, mechanism, law):
        values = drawn(mechanism, 0.3).ravel()
        assert stats.kstest(values, law.cdf).pvalue > LEVEL
        # The test has power: a tenth more noise is seen.
        assert stats.kstest(values / 1.1, law.cdf).pvalue < LEVEL

    @pytest.mark.parametrize("scale", [0.05, 0.3, 2.0, 30.0])
    def test_on_a_grid(self, scale):
        """Chi-square over all values that are expected at least ten times, and the rest as one."""
        grid = 0.1
        steps = np.rint(drawn(DiscreteLaplace(grid=grid), scale) / grid).astype(int).ravel()
        a = math.exp(-grid / scale)
        far = int(np.abs(steps).max()) + 1
        values = np.arange(-far, far + 1)
        expected = steps.size * (1 - a) / (1 + a) * a ** np.abs(values)
        often = expected >= 10
        seen = np.array([np.count_nonzero(steps == k) for k in values[often]])
        observed = np.append(seen, steps.size - seen.sum())
        wanted = np.append(expected[often], steps.size - expected[often].sum())
        assert stats.chisquare(observed, wanted).pvalue > LEVEL

    @pytest.mark.parametrize("mechanism", [NoNoise(), Laplace(), Gaussian(), DiscreteLaplace(grid=0.4)])
    def test_variance(self, mechanism):
        """Within six standard errors, of samples whose kurtosis is at most 9, somewhat above that of Laplace noise."""
        values = drawn(mechanism, 0.3, 20_000).ravel()
        variance = float(mechanism.variance(np.array([0.3]))[0])
        assert np.mean(values**2) == pytest.approx(variance, rel=6 * math.sqrt(8 / values.size))

    def test_none_is_known_of_ones_own(self):
        assert np.isnan(Logistic().variance(np.ones(2))).all()


class TestGrid:
    @settings(max_examples=300)
    @given(
        u=st.integers(0, 2**53 - 1).map(lambda k: k * 2.0**-53)
        | st.sampled_from([0.0, 2**-53, 0.5, 1 - 2**-53]),
        steps=st.floats(1e-3, 1e9),
    )
    def test_a_draw_is_the_quantile(self, u, steps):
        """P(X < k) ≤ u ≤ P(X ≤ k) in numbers of 40 digits, but for rounding in the last of a double's."""
        getcontext().prec = 40
        a = (-1 / Decimal(steps)).exp()

        def below_or_at(k):
            return a**-k / (1 + a) if k < 0 else 1 - a ** (k + 1) / (1 + a)

        k = int(DiscreteLaplace(grid=1.0).of_scale(np.array([[u]]), np.array([steps]))[0, 0])
        near = Decimal(max(min(u, 1 - u), 2.0**-54))
        slack = near * Decimal("2e-13")
        u_exact = Decimal(u) if u > 0 else near
        assert below_or_at(k - 1) - slack <= u_exact <= below_or_at(k) + slack

    @settings(max_examples=300)
    @given(
        p=st.integers(1, 6),
        grid=st.sampled_from([0.01, 0.3, 1.0, 7.0]),
        moved=st.floats(1e-3, 20.0),
        seed=st.integers(0, 10**6),
    )
    def test_rounded_values_move_by_no_more_than_is_claimed(self, p, grid, moved, seed):
        random = np.random.default_rng(seed)
        # Beside halves of the grid, where rounding tears values apart most.
        one = grid * (random.integers(-3, 3, p) + 0.5 - random.choice([0.0, 1e-9, 0.3], p))
        move = random.dirichlet(np.full(p, 0.3)) * moved * random.choice([-1.0, 1.0], p)
        steps = np.floor((one + move) / grid + 0.5) - np.floor(one / grid + 0.5)
        claimed = DiscreteLaplace(grid=grid).sensitivity_of(np.array([moved]), p)[0]
        assert np.abs(steps).sum() <= claimed / grid * (1 + 1e-12)

    @pytest.mark.parametrize(
        ("p", "moved", "steps"), [(1, 0.4, 1), (1, 1.0, 1), (1, 1.5, 2), (5, 2.0, 6), (5, 2.1, 7)]
    )
    def test_the_claim_is_reached(self, p, moved, steps):
        """p − 1 coordinates move by 1e-9 across a half, one by the rest: g(⌈Δ/g⌉ + p − 1), g = 1."""
        assert DiscreteLaplace(grid=1.0).sensitivity_of(np.array([moved]), p)[0] == steps
        move = np.full(p, 1e-9)
        move[0] = moved - (p - 1) * 1e-9
        one = np.full(p, 0.5 - 5e-10)
        assert np.abs(np.floor(one + move + 0.5) - np.floor(one + 0.5)).sum() == steps

    def test_who_has_no_records_has_nothing_to_hide(self):
        assert DiscreteLaplace(grid=0.1).sensitivity_of(np.array([0.0, 0.1]), 3).tolist() == pytest.approx(
            [0.0, 0.3]
        )

    def test_a_grid_too_fine_to_count_is_refused(self):
        with pytest.raises(
            MeaningError, match=r"privacy\.mechanism\.grid: 1e-20 is too fine for noise of scale 1: give"
        ):
            drawn(DiscreteLaplace(grid=1e-20), 1.0, 7)

    def test_no_noise_on_a_grid_is_none(self):
        assert not drawn(DiscreteLaplace(grid=0.1), 0.0, 70).any()

    def test_noise_of_a_run_lies_on_the_grid(self, workspace):
        one = scenario(
            {"privacy.mechanism": {"kind": "discrete-laplace", "grid": 0.01}, "privacy.epsilon": 100.0}
        )
        steps = simulate(one, 0, workspace).noise / 0.01
        np.testing.assert_allclose(steps, np.rint(steps), rtol=1e-12)
        assert np.unique(np.rint(steps)).size > 5


class TestOnesOwn:
    def test_is_the_one_that_the_page_shows(self):
        page = Path(__file__).parents[2] / "docs" / "privacy.md"
        assert inspect.getsource(sys.modules["own_noise"].Logistic) in page.read_text()

    def test_is_scaled_and_accounted_like_any_other(self, workspace):
        changes = {"privacy.allocation": {"kind": "cap", "releases": 9}, "privacy.epsilon": 20.0}
        own = simulate(scenario({"privacy.mechanism": "logistic", **changes}), 0, workspace)
        laplace = simulate(scenario(changes), 0, workspace)
        np.testing.assert_allclose(own.ledger["epsilon_basic"], laplace.ledger["epsilon_basic"], rtol=1e-12)
        # Both turn the same uniform draws into noise of the same scale, 2Ξ·9/(n·ε): logistic of Laplace quantiles.
        scales = np.repeat(2 * 9 / (np.array([40, 60, 100]) * 20.0), own.ledger["releases"])[:, None]
        u = stats.laplace.cdf(laplace.noise / scales)
        np.testing.assert_allclose(own.noise / scales, np.log(u / (1 - u)), rtol=1e-9, atol=1e-9)

    def test_ends_when_the_enforcing_accountant_says_so(self, workspace):
        """Any number of geometric parts would be within ε by basic composition; here the plan counts them anyway."""
        one = scenario(
            {"privacy.mechanism": "logistic", "privacy.allocation": {"kind": "geometric", "ratio": 0.5}}
        )
        assert (simulate(one, 0, workspace).ledger["epsilon_basic"] <= 500.0).all()

    @pytest.mark.parametrize(
        ("mechanism", "message"),
        [
            (
                "absent",
                ": unknown kind 'absent'; known: none, laplace, gaussian, discrete-laplace, logistic, ",
            ),
            ("other-norm", ": other-norm has the norm 'l3'; must be l1 or l2"),
            ({"kind": "logistic", "stretch": -1.0}, ".stretch: must be "),
            ({"kind": "logistic", "other": 1}, ".other: unknown key; "),
            (
                {"kind": "registered", "name": "own_noise:Logistic"},
                ": there is no kind 'registered' any more: your own mechanism is a class with a new kind",
            ),
        ],
    )
    def test_what_is_none_is_refused(self, mechanism, message):
        with pytest.raises(InputError) as error:
            scenario({"privacy.mechanism": mechanism})
        (fault,) = error.value.faults
        assert str(fault).startswith(f"privacy.mechanism{message}")

    @pytest.mark.parametrize("lacking", ["norm", "noise", "fill_unit"])
    def test_a_class_that_lacks_something_is_not_registered(self, lacking):
        has = {
            "norm": property(lambda _: "l1"),
            "noise": property(lambda _: PURE),
            "fill_unit": Logistic.fill_unit,
        }
        del has[lacking]
        kind = {"kind": "lacking", "__annotations__": {"kind": Literal["lacking"]}}
        with pytest.raises(InputError, match=f"the mechanism 'lacking' of .* lacks {lacking}$"):
            p2psim.register(type("Lacking", (p2psim.Mechanism,), {"__module__": __name__} | kind | has))

    def test_draws_that_are_no_numbers_are_refused(self, workspace):
        broken = scenario({"privacy.mechanism": "broken"})
        with pytest.raises(MeaningError, match="broken drew noise that is not a finite number"):
            simulate(broken, 0, workspace)


GAUSSIAN = {"privacy.mechanism": "gaussian", "privacy.accountant": "gaussian", "privacy.delta": 1e-5}
L2 = {"kind": "clip", "norm": "l2", "bound": 1.0}
KOV = {"kind": "cap", "releases": 3, "compose": "kov"}


@pytest.mark.parametrize(
    ("changes", "key", "message"),
    [
        (
            {"privacy.mechanism": {"kind": "discrete-laplace", "grid": 0.1}, "privacy.sensitivity": L2},
            "privacy.sensitivity.norm",
            "discrete Laplace noise needs l1: beside l2 clipping the loss is up to √p times the claim",
        ),
        (
            {"privacy.mechanism": "logistic", "privacy.sensitivity": L2},
            "privacy.sensitivity.norm",
            "the logistic mechanism needs l1",
        ),
        (
            {**GAUSSIAN, "privacy.accountant": "basic"},
            "privacy.accountant.0",
            "basic cannot account for gaussian noise; rdp, zcdp, gaussian, pld, best can",
        ),
        (
            {"privacy.accountant": ["basic", "gaussian"], "privacy.delta": 1e-5},
            "privacy.accountant.1",
            "gaussian cannot account for laplace noise; basic, advanced, kov, rdp, zcdp, pld, best can",
        ),
        ({**GAUSSIAN, "privacy.enforce": "kov"}, "privacy.enforce", "kov cannot account for gaussian noise"),
        ({**GAUSSIAN, "privacy.delta": None}, "privacy.delta", "gaussian needs a δ: give a number between 0 and 1"),
        ({"privacy.accountant": ["basic", "pld"]}, "privacy.delta", "pld needs a δ"),
        (
            {"privacy.allocation": KOV, "privacy.delta": 1e-5},
            "privacy.allocation.compose",
            "composes by kov, but basic enforces the budget: give enforce: kov",
        ),
        ({"privacy.mechanism": {"kind": "discrete-laplace", "grid": 0}}, "privacy.mechanism.grid", "must be"),
        ({"privacy.allocation": {"kind": "list", "losses": []}}, "privacy.allocation.losses", ""),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(changes, key, message):
    with pytest.raises(InputError) as error:
        scenario(changes)
    (fault,) = error.value.faults
    assert fault.key == key
    assert fault.message.startswith(message)


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_gaussian_noise_takes_either_norm(norm):
    scenario({**GAUSSIAN, "privacy.sensitivity": {"kind": "clip", "norm": norm, "bound": 1.0}})
