"""Accounts of sampled releases say what they assume beside the sensitivity, in text and as JSON."""

import json
import math

import numpy as np
import pytest
from scipy.stats import norm

from p2psim.cli.main import main


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["account", "releases", *arguments, "--delta", "1e-5", "--accountant", "pld"]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("noise", "assumed"), [("gaussian", "at most Δ in norm"), ("poisson-gaussian", "at most Δ/2 in norm")]
)
def test_of_samples(noise: str, assumed: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert assumed in printed(capsys, "--loss", f"{noise}:1@0.01")
    (said,) = json.loads(printed(capsys, "--loss", f"{noise}:1@0.01", "--json"))["assumed"]
    assert assumed in said


def test_of_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    assert "assumed" not in printed(capsys, "--loss", "gaussian:1")
    assert json.loads(printed(capsys, "--loss", "gaussian:1", "--json"))["assumed"] == []


def test_a_sampled_count_keeps_the_first_and_breaks_the_second(capsys: pytest.CaptureFixture[str]) -> None:
    """A record that adds 1 or 0, drawn with q = .01, to N(0, 1): the integral of (p − e^ε·p')₊ at the printed ε."""

    def excess(epsilon: float) -> float:
        x = np.linspace(-12, 14, 400_001)
        drawn = 0.99 * norm.pdf(x) + 0.01 * norm.pdf(x - 1)
        return float(np.trapezoid(np.maximum(drawn - math.exp(epsilon) * norm.pdf(x), 0), x))

    epsilon = {
        noise: json.loads(printed(capsys, "--loss", f"{noise}:1@0.01", "--json"))["accountants"][0]["epsilon"]
        for noise in ("gaussian", "poisson-gaussian")
    }
    assert excess(epsilon["gaussian"]) <= 1e-5 * (1 + 1e-6)
    assert excess(epsilon["poisson-gaussian"]) > 1e-5
