"""Why replicas are not drawn in antithetic pairs: noise and its mirror image give nearly the same fitness."""

from pathlib import Path

import numpy as np
import pytest
import small_study as small

import p2psim
from p2psim.privacy.plan import Plan
from p2psim.simulation import simulate


def finals(folder: Path, study: p2psim.Scenario) -> np.ndarray:
    metrics = p2psim.run(study, folder, progress=False).metrics
    return metrics.sort_values("step").groupby("replica")["value"].last().to_numpy()


def test_mirrored_noise_tells_nothing_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ψ after convergence is a quadratic form of the noise, and so even: pairs are correlated positively.

    An antithetic pair is worth two replicas where the correlation is 0, more where it is negative, and one where it
    is 1. Here it is 0.997 with 60 replicas: by chance below 0.5 with a probability far below 1e-6. The mean of the
    noise, a control variate of known expectation 0, explains next to nothing for the same reason.
    """
    study = small.scenario(
        replicas=60,
        learning=small.tree()["learning"]
        | {"algorithm": {"kind": "async-star", "horizon": 400, "rho": {"h": 0.5}, "theta_max": 50}},
        record={"metrics": ["relative_fitness"], "every": 400},
        sweep={},
    )
    plain = finals(tmp_path / "plain", study)
    drawn, sums = Plan.noise, []

    def mirrored(self, *arguments):
        noise = drawn(self, *arguments)
        sums.append(float(noise.mean()))
        return -noise

    monkeypatch.setattr(Plan, "noise", mirrored)
    monkeypatch.setattr(simulate, "simulated_at_once", lambda *given: 1)
    mirror = finals(tmp_path / "mirror", study)
    assert not np.array_equal(plain, mirror)
    correlation = float(np.corrcoef(plain, mirror)[0, 1])
    assert correlation > 0.5
    # A control variate leaves 1 − r² of the variance.
    assert len(sums) == 60
    assert float(np.corrcoef(plain, sums)[0, 1]) ** 2 < 0.3
