"""Recorded metrics of the network are recomputed from the events plainly, and what was changed in them is found."""

from pathlib import Path

import pandas as pd
import pytest
from graph_cases import graph_scenario
from star_cases import scenario as star_scenario

import p2psim
from p2psim.network.metrics import NETWORK_METRICS
from p2psim.runs.verification import verify_result

EVERY = [name for name, metric in NETWORK_METRICS.items() if metric.needs != "request"]
CHANNEL = {"latency": {"exponential": 0.3}, "loss": 0.2, "retransmit": {"kind": "same", "limit": 1}}
AWAY = {"kind": "renewal", "up": 5.0, "down": 1.0}


def run(family: str, every: object, folder: Path) -> p2psim.Result:
    changes = {"replicas": 1, "network.channel": CHANNEL, "network.availability": AWAY, "record.every": every}
    if family == "graph":
        scenario = graph_scenario({**changes, "record.metrics": ["objective", *EVERY]})
    else:
        scenario = star_scenario({**changes, "record.metrics": ["relative_fitness", *NETWORK_METRICS]})
    return p2psim.run(scenario, folder, progress=False)


@pytest.mark.parametrize("family", ["graph", "star"])
@pytest.mark.parametrize("every", [1, 7, {"time": 1.3}])
def test_recounted_to_rounding(family, every, tmp_path):
    checked = verify_result(run(family, every, tmp_path / "run"))
    assert [one.verdict for one in checked] == ["right"]
    assert checked[0].largest < 1e-9


@pytest.mark.parametrize("metric", EVERY)
def test_a_changed_number_is_found(metric, tmp_path):
    result = run("graph", 7, tmp_path / "run")
    table = pd.read_parquet(result.path / "metrics.parquet")
    row = table.index[table["metric"] == metric][2]
    table.loc[row, "value"] += 1e-6
    table.to_parquet(result.path / "metrics.parquet", index=False)
    assert [one.verdict for one in verify_result(p2psim.Result.load(result.path))] == ["wrong"]
