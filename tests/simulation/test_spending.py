"""Privacy spent along a run ends where the ledger ends, never falls, and is recomputed from the events."""

import numpy as np
import pandas as pd
import pytest
from graph_cases import graph_scenario
from star_cases import scenario as star_scenario

import p2psim
from p2psim.core.events import COMMIT, SEND
from p2psim.runs.verification import verify_result
from p2psim.simulation.simulate import simulate
from p2psim.simulation.workspace import Workspace

BATCH = {"learning.algorithm.batch": {"kind": "poisson", "rate": 0.2}}
GAUSSIAN = {
    "privacy.mechanism": "gaussian",
    "privacy.delta": 1e-5,
    "privacy.accountant": "gaussian",
    "privacy.sensitivity": {"kind": "clip", "norm": "l2", "bound": 1.0},
}
OF_STAR = {"record.metrics": ["relative_fitness", "epsilon_spent"], "record.per_agent": ["epsilon_spent"]}
OF_GRAPH = OF_STAR | {"record.metrics": ["objective", "epsilon_spent"]}
CASES = {
    "star": star_scenario({**OF_STAR}),
    "star, cap": star_scenario(
        {
            **OF_STAR,
            "privacy.allocation": {"kind": "cap", "releases": 7},
            "record.every": {"time": 2.0},
            "network.channel.loss": 0.2,
        }
    ),
    "star, gaussian": star_scenario({**OF_STAR, **GAUSSIAN}),
    "star, batches": star_scenario({**OF_STAR, **BATCH}),
    "graph": graph_scenario({**OF_GRAPH, "record.every": 3}),
    "graph, clairvoyant": graph_scenario({**OF_GRAPH, "privacy.allocation": "uniform"}),
    "graph, private start": graph_scenario(
        {
            **OF_GRAPH,
            "learning.algorithm.start": {"kind": "private", "epsilon": 2.0},
        }
    ),
}


def spent_of(outcome):
    series, *of_each = [one for one in outcome.series if one.metric == "epsilon_spent"]
    assert [one.agent for one in of_each] == outcome.ledger["agent"].tolist()
    np.testing.assert_allclose(np.mean([one.value for one in of_each], axis=0), series.value, rtol=1e-9)
    return series


@pytest.mark.parametrize("case", CASES)
def test_spending_ends_where_the_ledger_does_and_never_falls(case, tmp_path):
    outcome = simulate(CASES[case], 0, Workspace(tmp_path))
    series = spent_of(outcome)
    assert series.value[-1] == pytest.approx(outcome.ledger["epsilon_claimed"].mean(), rel=1e-9)
    assert (np.diff(series.value) >= -1e-12).all()
    last = [
        one.value[-1] for one in outcome.series if one.metric == "epsilon_spent" and one.agent is not None
    ]
    assert last == pytest.approx(list(outcome.ledger["epsilon_claimed"]), rel=1e-9)
    others = [one for one in outcome.series if one.metric != "epsilon_spent" and one.model == "main"]
    assert series.step.tolist() == others[0].step.tolist()
    assert series.time.tolist() == others[0].time.tolist()
    assert series.value[0] == (pytest.approx(2.0) if "start" in case else 0.0)


def test_each_answer_of_a_star_costs_its_share_when_it_is_sent(tmp_path):
    outcome = simulate(CASES["star"], 0, Workspace(tmp_path))
    series, events = spent_of(outcome), outcome.events
    commits = np.cumsum(events["kind"] == COMMIT)
    for step, value in zip(series.step[:-1], series.value[:-1], strict=True):
        before = events[: np.searchsorted(commits, step) + 1] if step else events[:0]
        made = ((before["kind"] == SEND) & (before["release"] >= 0)).sum()
        assert value == pytest.approx(made * 500 / 60 / 3, rel=1e-12)


def test_without_noise_the_first_release_costs_everything(tmp_path):
    bare = {"privacy": {"mechanism": "none"}, **OF_STAR}
    values = spent_of(simulate(star_scenario(bare), 0, Workspace(tmp_path))).value
    assert values[0] == 0
    assert np.isinf(values[1:]).all()


@pytest.mark.parametrize("case", CASES)
def test_it_is_recomputed_and_a_change_is_found(case, tmp_path):
    result = p2psim.run(CASES[case], tmp_path / "run", progress=False)
    assert {one.verdict for one in verify_result(result)} == {"right"}
    table = pd.read_parquet(result.path / "metrics.parquet")
    table.loc[table.index[table["metric"] == "epsilon_spent"][1], "value"] += 1e-4
    table.to_parquet(result.path / "metrics.parquet", index=False)
    assert "wrong" in {one.verdict for one in verify_result(p2psim.Result.load(result.path))}
