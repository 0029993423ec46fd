"""Metrics from outside p2psim: of a star, of models on a graph, and of the network."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from graph_cases import graph_scenario
from plugin_cases import PARTS, PLUGINS, within
from plugin_cases import p2psim as command
from star_cases import scenario as star_scenario

import p2psim
from p2psim.core import registry
from p2psim.core.errors import InputError, SimulationError
from p2psim.core.figures import Metric
from p2psim.learning.graph.metrics import GraphMetric, Snapshot
from p2psim.learning.metrics import Series, StarMetric
from p2psim.learning.star.problem import Recorded, StarProblem
from p2psim.network.metrics import NetworkMetric, NetworkState
from p2psim.runs.summary import rises
from p2psim.runs.verification import verify_result
from p2psim.scenario.record import label_of
from p2psim.scenario.rules import all_meanings


class Length(StarMetric):
    """Length of the learner's model."""

    name = "model_length"
    meaning = "‖θ‖ of the learner's model"
    label = "length of the model (units of θ)"

    @staticmethod
    def measure(problem: StarProblem, recorded: Recorded) -> Iterator[Series]:
        """One number a record."""
        values = np.linalg.norm(recorded.theta, axis=1)
        yield Series("model_length", "main", None, recorded.step, recorded.time, values)


class Lengths(GraphMetric):
    """Lengths of models."""

    name = "model_lengths"
    meaning = "‖θ_i‖ of each agent"
    each = True

    @staticmethod
    def measure(seen: Snapshot) -> np.ndarray:
        """One number an agent."""
        return np.asarray(np.linalg.norm(seen.theta, axis=1))


class SentEach(GraphMetric):
    """Vectors that an agent has sent."""

    name = "sent_each"
    meaning = "p-vectors sent so far, per agent"
    rises = True
    of_models = False

    @staticmethod
    def measure(seen: Snapshot) -> float:
        """Of the whole network, over its agents."""
        return seen.vectors_sent / seen.problem.agents


class Wakes(NetworkMetric):
    """Wakes of an agent."""

    name = "wakes_each"
    meaning = "wakes so far, per agent"
    needs = "clock"
    most_agents = 1_000

    @staticmethod
    def measure(seen: NetworkState) -> float:
        """Of the whole network, over its agents."""
        return float(seen.tally["wakes"] / seen.tally.links.agents)


class NotFinite(NetworkMetric):
    """Nothing."""

    name = "not_finite"
    meaning = "no number"

    @staticmethod
    def measure(seen: NetworkState) -> float:
        """Never."""
        return float("nan")


OWN: dict[str, list[type[Metric]]] = {"star": [Length, Wakes], "graph": [Lengths, SentEach, Wakes]}


@pytest.fixture(autouse=True, scope="module")
def registered() -> Iterator[None]:
    metrics = [Length, Lengths, SentEach, Wakes, NotFinite]
    registry.register_all(metrics)
    yield
    for metric in metrics:
        registry.forget("metric", metric.name)


def run(family: str, folder: Path, **more: Any) -> p2psim.Result:
    make = {"star": star_scenario, "graph": graph_scenario}[family]
    names = [metric.name for metric in OWN[family]]
    changes = {"replicas": 1, "record.every": 7, "record.metrics": names, "record.events": True, **more}
    return p2psim.run(make(changes), folder, jobs=1, progress=False)


@pytest.mark.parametrize("family", OWN)
def test_they_are_recorded_recomputed_and_kept_in_the_manifest(family: str, tmp_path: Path) -> None:
    result = run(family, tmp_path / "run")
    assert set(result.metrics["metric"]) == {metric.name for metric in OWN[family]}
    origin = result.manifest["made_by"]["parts"][__name__]
    assert origin["used"] == sorted(f"{__name__}:{metric.__name__}" for metric in OWN[family])
    (checked,) = verify_result(result)
    assert checked.verdict == "right"


@pytest.mark.parametrize(
    ("family", "metric"), [(family, one) for family, all_ in OWN.items() for one in all_]
)
def test_a_changed_number_is_found(family: str, metric: type[Metric], tmp_path: Path) -> None:
    result = run(family, tmp_path / "run")
    table = pd.read_parquet(result.path / "metrics.parquet")
    row = table.index[table["metric"] == metric.name][2]
    table.loc[row, "value"] += 1e-3
    table.to_parquet(result.path / "metrics.parquet", index=False)
    assert [one.verdict for one in verify_result(p2psim.Result.load(result.path))] == ["wrong"]


def test_recording_them_changes_nothing_else(tmp_path: Path) -> None:
    both = run("graph", tmp_path / "both", **{"record.metrics": ["objective", "model_lengths", "sent_each"]})
    alone = run("graph", tmp_path / "alone", **{"record.metrics": ["objective"]})
    of_both = both.metrics.query("metric == 'objective'")["value"]
    assert of_both.tolist() == alone.metrics["value"].tolist()


def test_every_metric_says_what_it_is() -> None:
    for name, metric in registry.parts("metric").items():
        assert name == metric.name
        assert all_meanings()[name] == metric.meaning
        assert label_of(name) == (metric.label or name.replace("_", " "))
        assert rises(name) == rises(f"{name}[group]") == metric.rises


def test_they_are_refused_where_they_say_nothing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="model_length is of other algorithms than coordinate-descent"):
        graph_scenario({"record.metrics": ["model_length"]})
    with pytest.raises(InputError, match="model_lengths is of other algorithms than async-star"):
        star_scenario({"record.metrics": ["model_lengths"]})
    with pytest.raises(InputError, match="sent_each is one number for all agents"):
        graph_scenario({"record.per_agent": ["sent_each"]})
    with pytest.raises(InputError, match="wakes_each compares with the ticks of clocks, and poll has none"):
        star_scenario({"network.exchange": "poll", "network.clock": None, "record.metrics": ["wakes_each"]})
    with pytest.raises(SimulationError, match="not_finite is not finite at time 0"):
        run("graph", tmp_path / "run", **{"record.metrics": ["not_finite"]})


def test_a_name_that_exists_is_refused() -> None:
    class Again(NetworkMetric):
        name = "objective"
        meaning = "another"

    with pytest.raises(
        InputError, match=r"the metric 'objective' of .* cannot be registered: p2psim has one"
    ):
        registry.register(Again)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("median") / "run"
    done = command("run", str(PLUGINS / "median.yaml"), "--out", str(out), "--jobs", "2", *PARTS)
    assert done.returncode == 0, done.stderr
    return out


def test_a_metric_of_a_package_is_used_by_workers_and_verified(finished: Path) -> None:
    assert within("verify", str(finished), *PARTS).returncode == 0
    (origin,) = json.loads((finished / "manifest.json").read_text())["made_by"]["parts"].values()
    assert origin["used"] == ["p2psim_example_parts.median_accuracy:MedianAccuracy"]
    table = pd.read_parquet(finished / "metrics.parquet")
    each = table[(table["metric"] == "test_accuracy") & table["agent"].notna()]
    median = each.groupby(["replica", "step"])["value"].median()
    recorded = table[table["metric"] == "median_accuracy"].set_index(["replica", "step"])["value"]
    assert recorded.to_dict() == pytest.approx(median.to_dict())


def test_list_schema_and_errors_know_a_metric_of_a_package() -> None:
    assert "median over agents" in within("list", "median", *PARTS).stdout
    assert "histogram of the last values" in within("list", "histogram", *PARTS).stdout
    schema = json.loads(within("schema", *PARTS).stdout)
    assert "histogram" in schema["$defs"]["FigureOptions"]["properties"]["kind"]["enum"]
    assert "median_accuracy" in schema["$defs"]["RecordSection"]["properties"]["metrics"]["items"]["enum"]
    done = within("check", str(PLUGINS / "median.yaml"))
    assert done.returncode == 2
    assert "record.metrics.1: unknown metric 'median_accuracy'; known: objective" in done.stderr
    assert "figure.0: unknown kind 'histogram'; known: fitness" in done.stderr


def test_a_figure_of_a_package_is_drawn_where_the_package_is_let_in(finished: Path, tmp_path: Path) -> None:
    for options in ([], ["--kind", "histogram", "--metric", "test_accuracy"], ["--kind", "all"]):
        out = tmp_path / str(len(options))
        done = within("plot", str(finished), "--out", str(out), *options, *PARTS)
        assert done.returncode == 0, done.stderr
        drawn = {path.stem for path in out.iterdir()}
        assert ("histogram-median_accuracy" in drawn) == (not options)
        assert ("histogram-test_accuracy" in drawn) == ("test_accuracy" in options)
    # Without the package its figure is unknown, and other figures are drawn, also of its metric.
    done = within("plot", str(finished), "--out", str(tmp_path / "none"))
    assert done.returncode == 2
    assert "there is no figure called 'histogram', only fitness" in done.stderr
    done = within("plot", str(finished), "--out", str(tmp_path / "none"), "--metric", "median_accuracy")
    assert done.returncode == 0, done.stderr
