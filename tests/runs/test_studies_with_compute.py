"""Studies whose agents take time to compute: what they learn, and that they are checked like others."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from graph_cases import graph_scenario
from plugin_cases import PARTS, PLUGINS, within
from small_study import tree

import p2psim
from p2psim.cli.main import main
from p2psim.core.errors import InputError, MeaningError
from p2psim.core.events import BEGIN, COMMIT
from p2psim.scenario.model import Scenario
from p2psim.simulation.algorithms import adapter_of
from p2psim.simulation.simulate import early_end_warning
from p2psim.simulation.workspace import Workspace

GRAPH = {"record.events": True, "record.noise": True, "record.models": True}


def star(exchange: dict[str, Any], compute: dict[str, Any] | None, **changes: Any) -> Scenario:
    study = tree(replicas=2, sweep={}, **changes)
    study["network"] = {**study["network"], "exchange": exchange} | ({"compute": compute} if compute else {})
    study["record"] |= {"metrics": ["relative_fitness", "version_lag"], "models": True, "noise": True}
    return Scenario.from_dict(study)


def cell_of(scenario: Scenario) -> Any:
    return adapter_of(scenario).cell(scenario, Workspace(None).case(scenario, 0), 0)


def values(result: p2psim.Result) -> np.ndarray:
    return result.metrics[["step", "time", "value"]].to_numpy()


@pytest.mark.parametrize(
    "exchange",
    [{"kind": "request", "service": 0.3}, {"kind": "poll", "response": 0.3}],
    ids=["request", "poll"],
)
def test_a_star_learns_what_it_learns_where_owners_answer_as_late(
    exchange: dict[str, Any], tmp_path: Path
) -> None:
    kept = {"kind": exchange["kind"]}
    theirs = p2psim.run(star(exchange, None), tmp_path / "theirs", progress=False)
    ours = p2psim.run(star(kept, {"time": 0.3}), tmp_path / "ours", progress=False)
    assert values(ours).tolist() == values(theirs).tolist()
    assert main(["verify", str(tmp_path / "ours")]) == 0


@pytest.mark.parametrize(
    "changes",
    [
        {"network.exchange": "broadcast"},
        {"network.exchange": {"kind": "gossip", "mode": "push"}},
        {
            "network.exchange": "broadcast",
            "network.compute": {"seconds_per_record": 0.02, "absence": "cancel"},
        },
    ],
    ids=str,
)
def test_runs_on_graphs_are_verified(changes: dict[str, Any], tmp_path: Path) -> None:
    away = {"kind": "renewal", "up": 3.0, "down": 1.0}
    changes = (
        {"network.compute": {"time": {"exponential": 0.5}}, "network.availability": away} | GRAPH | changes
    )
    result = p2psim.run(graph_scenario(changes), tmp_path / "run", progress=False, check_events=True)
    assert (result.events["kind"] == "begin").any()
    assert main(["verify", str(tmp_path / "run")]) == 0


@pytest.mark.parametrize(
    ("kind", "mode"), [("push-sum", "push"), *(("averaging", mode) for mode in ("push", "pull", "push-pull"))]
)
def test_averaging_uses_the_model_that_it_has_begun_with(kind: str, mode: str, tmp_path: Path) -> None:
    changes: dict[str, Any] = {
        "network.exchange": {"kind": "gossip", "mode": mode},
        "network.compute": {"time": {"exponential": 0.6}},
        "network.channel": {"latency": {"exponential": 0.5}},
        "learning.algorithm": {"kind": kind, "time": 40.0},
        "privacy": None,
    }
    result = p2psim.run(graph_scenario(GRAPH | changes), tmp_path / "run", progress=False, check_events=True)
    assert (result.events["outcome"] == "superseded").any()
    assert main(["verify", str(tmp_path / "run")]) == 0


def test_an_algorithm_of_ones_own_uses_the_model_that_it_has_begun_with(tmp_path: Path) -> None:
    out = tmp_path / "run"
    given = ("--set", "network.compute={time: {exponential: 0.5}}", "--set", "record.events=true")
    done = within("run", str(PLUGINS / "gossip_sgd.yaml"), "--out", str(out), "--jobs", "1", *given, *PARTS)
    assert done.returncode == 0, done.stderr
    assert within("verify", str(out), *PARTS).returncode == 0


def test_check_shows_the_mean_time_of_each_agent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = tree(replicas=1, sweep={})
    study["network"]["compute"] = {"seconds_per_record": 0.01, "slowdown": {"0": 1, "1": 3, "2": 5}}
    study["data"]["source"]["points"] = 30
    path = tmp_path / "s.yaml"
    path.write_text(Scenario.from_dict(study).to_yaml(), encoding="utf-8")
    assert main(["check", str(path), "--no-pilot"]) == 0
    shown = capsys.readouterr().out
    assert "mean time to" in shown
    assert main(["check", str(path), "--no-pilot", "--json"]) == 0
    (cell,) = json.loads(capsys.readouterr().out)[0]["cells"]
    records = np.array(cell["records"])
    assert cell["mean_work"] == pytest.approx(0.01 * records * [1, 3, 5])


def test_without_it_nothing_is_said_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(Scenario.from_dict(tree(replicas=1, sweep={})).to_yaml(), encoding="utf-8")
    assert "compute" not in path.read_text(encoding="utf-8")
    assert main(["check", str(path), "--no-pilot", "--json"]) == 0
    assert "mean_work" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"network.exchange": {"kind": "gossip", "mode": "edge"},
          "learning.algorithm": {"kind": "gossip-admm", "mu": 1.0, "rho": 1.0, "commits": 20, "inner": 1}},
         "network.compute: gossip-admm takes no time to compute"),
        ({"network.availability": {"kind": "renewal", "up": 1, "down": 1, "rejoin": "fetch"}},
         "network.availability.rejoin: fetch takes another model"),
        ({"network.compute": {"time": 1.0, "slowdown": {"0": 2.0}}}, "network.compute.slowdown: "),
        ({"network.compute": {"time": 1.0, "slowdown": {"nobody": 2.0}}}, "network.compute.slowdown"),
        ({"network.compute": {}}, "network.compute: give exactly one of time and seconds_per_record"),
        ({"network.compute": {"time": 1.0, "absence": "sleep"}}, "network.compute.absence: "),
    ],
    ids=str,
)  # fmt: skip
def test_what_contradicts_itself(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=re.escape(said)):
        cell_of(graph_scenario({"network.compute": {"time": 1.0}} | changes))


def test_lags_of_links_are_refused() -> None:
    changes = {
        "network.exchange": {"kind": "gossip", "mode": "edge"},
        "learning.algorithm": {"kind": "gossip-admm", "mu": 1.0, "rho": 1.0, "commits": 20, "inner": 1},
        "record.metrics": ["version_lag"],
    }
    with pytest.raises(InputError, match=r"record\.metrics\.0: version_lag compares versions of models"):
        graph_scenario(changes)


def test_forecasts_refuse_it() -> None:
    from p2psim.analysis.forecasts.star_setting import refuse_unknown

    for exchange in ("request", {"kind": "poll"}, "broadcast"):
        study = tree(replicas=1, sweep={})
        network = study["network"] | {"exchange": exchange, "compute": {"time": 0.1}}
        section = type(Scenario.from_dict(study).network).model_validate(network)
        with pytest.raises(MeaningError, match="forecasts do not cover the time that agents take to compute"):
            refuse_unknown(section)


def test_a_run_that_budgets_would_end_is_not_foretold() -> None:
    """With clocks alone a warning says when; who computes makes its releases later."""
    changes = {"learning.algorithm.updates_per_agent": None, "learning.algorithm.time": 60.0}
    changes |= {"privacy.allocation": {"kind": "cap", "releases": 3}, "privacy.when_spent": "silent"}
    for compute, told in ((None, True), ({"time": 50.0}, False)):
        scenario = graph_scenario(changes | ({"network.compute": compute} if compute else {}))
        assert bool(early_end_warning(cell_of(scenario).setup)) == told


def test_events_of_the_star_begin_with_the_version_of_the_query() -> None:
    simulated = p2psim.simulate(star({"kind": "poll"}, {"time": 0.2}), 0)
    kinds = simulated.events["kind"].to_numpy()
    assert {"begin", "commit"} <= set(kinds.tolist())
    assert (BEGIN, COMMIT) == (8, 4)
