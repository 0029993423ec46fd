"""Recorded noise: its law, its scale, and that no two releases share it."""

import numpy as np
import pytest
from scipy import stats
from star_cases import scenario

from p2psim.core.events import SEND
from p2psim.simulation.simulate import simulate
from p2psim.simulation.workspace import Workspace

LONG = {
    "learning.algorithm.horizon": 3000,
    "record.every": 500,
    "privacy.epsilon": {0: 30.0, 1: 600.0, 2: 1e4},
}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    return Workspace(tmp_path_factory.mktemp("workspace"))


def by_agent(outcome):
    ends = np.cumsum(outcome.ledger["releases"])
    return np.split(outcome.noise, ends[:-1])


def test_noise_is_laplace_of_the_right_scale(workspace):
    """Kolmogorov-Smirnov at 1e-6 an agent: three false alarms in a million seeds; this one is fixed."""
    outcome = simulate(scenario(LONG), 0, workspace)
    records = np.array([40, 60, 100])
    for noise, n, epsilon in zip(by_agent(outcome), records, (30.0, 600.0, 1e4), strict=True):
        scale = 2 * 1.0 * 3000 / (n * epsilon)
        assert len(noise) > 800
        assert stats.kstest(noise.ravel(), stats.laplace(scale=scale).cdf).pvalue > 1e-6
        # E|w| = b with standard deviation b/√size: five of them have odds of 6e-7.
        assert np.abs(noise).mean() == pytest.approx(scale, rel=5 / np.sqrt(noise.size))
        # The first test has power: half more noise is seen.
        assert stats.kstest(noise.ravel(), stats.laplace(scale=1.5 * scale).cdf).pvalue < 1e-6


def test_noise_of_a_geometric_budget_grows_as_it_should(workspace):
    one = scenario(
        {**LONG, "privacy.allocation": {"kind": "geometric", "ratio": 0.995}, "privacy.epsilon": 50.0}
    )
    outcome = simulate(one, 0, workspace)
    for noise, n in zip(by_agent(outcome), (40, 60, 100), strict=True):
        scale = 2 / (n * 50.0 * 0.005 * 0.995 ** np.arange(len(noise)))
        assert stats.kstest((noise / scale[:, None]).ravel(), stats.laplace.cdf).pvalue > 1e-6


def test_no_two_agents_steps_or_replicas_share_noise(workspace):
    one = scenario(
        {**LONG, "privacy.epsilon": 100.0, "privacy.sensitivity": {"kind": "declared", "bound": 1.0}}
    )
    outcomes = [simulate(one, replica, workspace) for replica in range(3)]
    # Per unit of scale, so that equal draws would show as equal numbers.
    unit = [
        noise * n for outcome in outcomes for noise, n in zip(by_agent(outcome), (40, 60, 100), strict=True)
    ]
    draws = np.sort(np.abs(np.concatenate([rows.ravel() for rows in unit])))
    # 27,000 numbers of 53 bits: two independent ones within 1e-13 of each other have odds of about 1e-4.
    assert (np.diff(draws) > 1e-13 * draws[1:]).all()


def test_noise_of_a_release_is_the_same_whatever_else_happens(workspace):
    """Common random numbers: only the scale differs between budgets, allocations, and exchanges."""
    base = simulate(scenario(LONG), 0, workspace)
    unit = [
        rows * (n * e / 6000)
        for rows, n, e in zip(by_agent(base), (40, 60, 100), (30, 600, 1e4), strict=True)
    ]
    capped = simulate(scenario({**LONG, "privacy.allocation": {"kind": "cap", "releases": 50}}), 0, workspace)
    for rows, all_rows, n, e in zip(by_agent(capped), unit, (40, 60, 100), (30, 600, 1e4), strict=True):
        assert len(rows) == 50
        np.testing.assert_allclose(rows * (n * e / 100), all_rows[:50], rtol=1e-13)
    polled = simulate(
        scenario({**LONG, "network.exchange": "poll", "network.channel": {"loss": 0.3}}), 0, workspace
    )
    for rows, all_rows, n, e in zip(by_agent(polled), unit, (40, 60, 100), (30, 600, 1e4), strict=True):
        common = min(len(rows), len(all_rows))
        np.testing.assert_allclose(rows[:common] * (n * e / 6000), all_rows[:common], rtol=1e-13)


def test_noise_does_not_depend_on_what_is_recorded(workspace):
    base = simulate(scenario(), 0, workspace)
    more = simulate(
        scenario(
            {"record": {"metrics": ["isolated_fitness", "relative_fitness"], "every": 1, "noise": True}}
        ),
        0,
        workspace,
    )
    assert more.events is None
    assert more.noise.tobytes() == base.noise.tobytes()
    neither = simulate(scenario({"record": {"every": {"time": 0.3}}}), 0, workspace)
    assert neither.noise is None
    assert neither.models is None


def test_rows_are_ordered_by_agent_and_release_across_chunks(workspace):
    """With more events than a chunk holds, rows still match the (agent, release) pairs of the events."""
    long = {**LONG, "learning.algorithm.horizon": 20_000}
    outcome = simulate(scenario(long), 0, workspace)
    sent = outcome.events[(outcome.events["kind"] == SEND) & (outcome.events["release"] >= 0)]
    assert outcome.events.size > 2 * (1 << 15)
    assert len(outcome.noise) == sent.size == 20_000
    short = simulate(scenario(LONG), 0, workspace)
    for rows, first in zip(by_agent(outcome), by_agent(short), strict=True):
        np.testing.assert_allclose(rows[: len(first)], first * (20_000 / 3000), rtol=1e-13)
