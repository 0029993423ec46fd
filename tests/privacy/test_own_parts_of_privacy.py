"""Mechanisms, allocations and accountants of the registry, those of the example package, and what is refused."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from own_parts import let_in
from scipy import stats

from p2psim.core import registry
from p2psim.core.errors import InputError
from p2psim.core.randomness import stream_key
from p2psim.privacy.accounting.accountants import ACCOUNTANTS
from p2psim.privacy.accounting.charges import Charges
from p2psim.privacy.accounting.noises import GAUSSIAN, LAPLACE
from p2psim.scenario.schema import catalogue, json_schema
from p2psim.testing import check_part

PLUGINS = Path(__file__).parents[1] / "plugins"

#: Keys that have no default, of every part that has some, and further ones.
KEYS: dict[str, list[dict[str, Any]]] = {
    "discrete-laplace": [{"grid": 0.1}],
    "staircase": [{"step": 0.1}, {"step": 2.0, "gamma": 0.1}],
    "cap": [{"releases": 5}, {"tail": 0.01}, {"releases": 5, "compose": "kov"}],
    "list": [{"losses": [0.3, 0.1]}],
    "constant": [{"loss": 0.1}],
    "contraction": [{"rate": 0.9}, {"rate": 0.9, "form": "printed"}, {"rate": 0.9, "wakes": "known"}],
    "halving": [{"releases": 1}, {"releases": 6}],
}


@pytest.fixture(autouse=True, scope="module")
def example_parts():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(PLUGINS)
        with let_in("p2psim_example_parts"):
            yield


@pytest.mark.parametrize("kind", ["mechanism", "allocation"])
def test_every_part_keeps_the_protocol_of_its_kind(kind):
    for name, part in registry.parts(kind).items():
        for keys in KEYS.get(name, [{}]):
            check_part(part(**keys))


def test_every_accountant_keeps_the_protocol():
    for accountant in ACCOUNTANTS.values():
        check_part(accountant)


def test_all_are_named_everywhere():
    names = {(entry.key, entry.name) for entry in catalogue()}
    wanted = {("privacy.mechanism", "staircase"), ("privacy.allocation", "halving")}
    wanted |= {(f"privacy.{key}", "gdp") for key in ("accountant", "enforce", "allocation.compose")}
    assert wanted <= names
    assert ("privacy.accountant", "gdp", ACCOUNTANTS["gdp"].meaning) in {
        (entry.key, entry.name, entry.meaning) for entry in catalogue()
    }
    assert {"Staircase", "Halving"} <= json_schema()["$defs"].keys()


@given(
    losses=st.lists(st.floats(1e-3, 3.0), min_size=1, max_size=5),
    count=st.integers(1, 50),
    delta=st.sampled_from([1e-9, 1e-5, 1e-2]),
)
def test_gaussian_dp_composes_exactly(losses, count, delta):
    """Two programs for one theorem: √Σμ² (Dong, Roth, Su 2022, Corollary 3.3) and its curve."""
    charges = Charges.of(GAUSSIAN, losses, np.full(len(losses), float(count)))
    found = ACCOUNTANTS["gdp"].epsilon(charges, delta)[0]
    assert found == pytest.approx(ACCOUNTANTS["gaussian"].epsilon(charges, delta)[0], rel=1e-6, abs=1e-9)


def test_gaussian_dp_refuses_what_it_does_not_know():
    assert not ACCOUNTANTS["gdp"].supports(LAPLACE)
    with pytest.raises(ValueError, match="gdp cannot account for laplace releases"):
        ACCOUNTANTS["gdp"].epsilon(Charges.of(LAPLACE, [1.0]), 1e-5)


def stair(x, g, gamma):
    """Number of the stair that x stands on, counted from 0."""
    return np.floor(np.abs(x) / g + 1 - gamma)


@given(
    g=st.sampled_from([0.1, 1.0]),
    gamma=st.floats(0.05, 0.95),
    x=st.lists(st.floats(-5, 5), min_size=3, max_size=3),
    move=st.lists(st.floats(-2, 2), min_size=3, max_size=3),
)
def test_a_move_passes_no_more_stairs_than_are_claimed(g, gamma, x, move):
    part = registry.parts("mechanism")["staircase"](step=g, gamma=gamma)
    there, moved = np.array(x), np.array(move)
    passed = np.abs(stair(there + moved, g, gamma) - stair(there, g, gamma)).sum()
    total = np.abs(moved).sum() + 1e-9  # rounding of x + move
    assert passed <= part.sensitivity_of(np.array([total]), 3)[0] / g + 1e-6


@pytest.mark.parametrize(("g", "gamma", "scale"), [(0.5, 0.5, 0.3), (1.0, 0.1, 2.0), (0.1, 0.9, 0.05)])
def test_staircase_noise_has_its_law(g, gamma, scale):
    """P(|x| ≤ γg + kg) in closed form: shares of the stairs are γ and, for k ≥ 1, e^{−kg/b}. False alarm 1e-4."""
    part = registry.parts("mechanism")["staircase"](step=g, gamma=gamma)
    unit = np.empty((20_000, 1))
    part.fill_unit(stream_key(0, 0, "noise"), np.zeros(20_000, np.int64), np.arange(20_000), unit)
    noise = part.of_scale(unit, np.full(20_000, scale)).ravel()
    q = math.exp(-g / scale)
    whole = gamma + q / (1 - q)

    def cumulative(x):
        size = np.abs(x) / g
        k = np.floor(size + 1 - gamma)
        before = np.where(k == 0, 0.0, gamma + (q - q ** np.maximum(k, 1)) / (1 - q))
        begun = np.where(k == 0, size, size - gamma - (k - 1))
        share = (before + q**k * begun) / whole
        return 0.5 + np.sign(x) * share / 2

    assert stats.kstest(noise, cumulative).pvalue > 1e-4
    assert stats.kstest(noise * 1.1, cumulative).pvalue < 1e-4


def test_a_name_that_exists_is_refused():
    with pytest.raises(InputError, match=r"the accountant 'rdp' of .* cannot be registered: p2psim has one"):
        registry.register(type("Mine", (type(ACCOUNTANTS["gdp"]),), {"name": "rdp", "__module__": "mine"}))


def test_best_asks_those_of_p2psim_alone():
    with let_in("lying_accountant"):
        charges = Charges.of(LAPLACE, [1.0])
        assert ACCOUNTANTS["liar"].epsilon(charges, 1e-5)[0] == 0
        assert ACCOUNTANTS["best"].epsilon(charges, 1e-5)[0] > 0.9
